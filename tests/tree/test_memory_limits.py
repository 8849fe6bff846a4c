"""How much memory a fit may fill: a container's limit counts, whichever version of control groups says it."""

import math

from assay.tree.growth._bins import container_bytes


def limits(tmp_path, groups, **files):
    (tmp_path / "groups").write_text(groups)
    for name, text in files.items():
        path = tmp_path / "root" / name.replace("__", "/").replace("_of_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return container_bytes(tmp_path / "groups", tmp_path / "root")


def test_the_least_limit_of_a_group_and_those_around_it_counts(tmp_path):
    found = limits(tmp_path, "0::/app/job\n", app__memory_of_max="3000\n", app__job__memory_of_max="max\n")
    assert found == 3000.0
    assert limits(tmp_path, "0::/app/job\n", app__job__memory_of_max="2000\n") == 2000.0


def test_the_first_version_has_a_line_of_its_own(tmp_path):
    groups = "5:cpu:/x\n4:memory:/docker/a\n"
    assert limits(tmp_path, groups, memory__memory_of_limit_in_bytes="7000\n", memory_of_max="1\n") == 7000.0


def test_without_groups_there_is_no_limit(tmp_path):
    assert container_bytes(tmp_path / "none", tmp_path) == math.inf
    assert limits(tmp_path, "0::/\n", memory_of_max="max\n") == math.inf

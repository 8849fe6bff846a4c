"""Compiled loops without a cache: they run, and it is said once; a cache that others can write to is not loaded."""

import os
import subprocess
import sys

import pytest

LOOPS = """
from assay.jit import compiled

@compiled
def twice(x):
    return 2 * x

@compiled(reduction=True)
def thrice(x):
    return 3 * x
"""
RUN = "import loops; print(loops.twice(4), loops.thrice(5), sum(loops.twice.stats.cache_hits.values()))"
NO_PLACE = "from numba.core import caching; caching.CacheImpl._locator_classes = []; "


@pytest.fixture
def run(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)

    def call(code, mode=0o700):
        folder = tmp_path / "kept"
        folder.mkdir(exist_ok=True)
        paths = os.pathsep.join([str(tmp_path), *sys.path])
        places = {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(folder)}
        for place in (folder, *folder.iterdir()):
            place.chmod(mode)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | places, check=True
        )
        return done.stdout.split(), done.stderr

    return call


def test_without_a_place_for_the_cache_loops_are_compiled_and_it_is_said_once(run):
    printed, said = run(NO_PLACE + RUN)
    assert printed == ["8", "15", "0"]
    assert said.count("compiled loops are not cached") == 1
    assert "Traceback" not in said


def test_a_cache_is_used_when_only_its_owner_can_write_to_it(run):
    assert run(RUN) == (["8", "15", "0"], "")
    assert run(RUN) == (["8", "15", "1"], "")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
def test_a_cache_that_others_can_write_to_is_not_loaded(run):
    run(RUN)
    printed, said = run(RUN, mode=0o777)
    assert printed == ["8", "15", "0"]
    assert said.count("can be written to by others") == 1
    assert run(RUN)[0] == ["8", "15", "1"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_cache_of_another_user_is_not_loaded(run, tmp_path):
    run(RUN)
    for place in (tmp_path / "kept").rglob("*"):
        os.chown(place, 12345, 12345)
    printed, said = run(RUN)
    assert printed == ["8", "15", "0"]
    assert "can be written to by others" in said

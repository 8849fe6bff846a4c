"""The package: what importing it costs, and that the registry misses nothing."""

import pkgutil
import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import assay
from assay.registry import is_learner

README = Path(__file__).parents[1] / "README.md"
TRANSLATED = README.with_name("README_zh.md")
HEAVY = ["numba", "pandas", "polars", "pyarrow", "dask", "matplotlib", "skops", "typer", "rich"]


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy():
    more = [*HEAVY, "sklearn", "scipy", "numpy"]
    assert python(f"import sys, assay; print([m for m in {more} if m in sys.modules])").strip() == "[]"


def test_a_learner_is_imported_without_numba_or_frames():
    code = f"""
import sys, sklearn.base, sklearn.callback  # scikit-learn imports pandas where it is installed
before = set(sys.modules)
import assay; assay.learners()
print([m for m in {HEAVY} if m in sys.modules and m not in before])
"""
    assert python(code).strip() == "[]"


def test_every_public_name_is_there():
    for name in dir(assay):
        getattr(assay, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        assay.nothing  # noqa: B018


@pytest.mark.parametrize("page", [README, TRANSLATED], ids=["English", "Chinese"])
def test_the_readme_lists_every_room_and_links_to_pages_that_exist(page):
    readme = page.read_text(encoding="utf-8")
    assert [room for room in set(dir(assay)) - set(assay.__all__) if f"`{room}`" not in readme] == []
    links = re.findall(r"\]\((?!http)([^)#]+)", readme)
    assert [link for link in links if not (README.parent / link).exists()] == []


def test_the_translated_readme_has_the_code_and_the_commands_of_the_original():
    pages = [page.read_text(encoding="utf-8") for page in (README, TRANSLATED)]
    blocks, commands, inline = (
        [sorted(set(re.findall(pattern, page, flags))) for page in pages]
        for pattern, flags in ((r"```.*?```", re.DOTALL), (r"^    (assay .*?)  ", re.MULTILINE), (r"`[^`\n]+`", 0))
    )
    assert len(blocks[0]) == 3
    assert len(commands[0]) == 12
    assert blocks[0] == blocks[1]
    assert commands[0] == commands[1]
    assert inline[0] == inline[1]


def test_the_readme_snippet_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _, code = README.read_text(encoding="utf-8").split("```python\n")
    with warnings.catch_warnings(action="ignore"):
        exec(code.partition("```")[0], {})
    assert capsys.readouterr().out.startswith("Certificate of linear_model.LogisticRegression")
    assert (tmp_path / "model.assay").stat().st_size > 0


def test_the_registry_has_every_learner():
    """Walk through all modules: a class with a card that `learners()` does not list was forgotten."""
    found = set()
    for module in pkgutil.walk_packages(assay.__path__, "assay."):
        if module.name not in ("assay.__main__",) and not module.name.startswith("assay.testing"):
            found |= {thing for thing in vars(import_module(module.name)).values() if is_learner(thing)}
    assert found == set(assay.learners())
    assert assay.learners("regress") == [kind for kind in assay.learners() if kind.card.task == "regress"]


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert assay.__version__ == version("assay")

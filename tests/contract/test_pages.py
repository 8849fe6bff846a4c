"""Every page runs as it is printed, and every page is reached from the contents."""

import doctest
import re
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
MADE = ("_build", "reference", "gallery", "locale")
PAGES = {
    str(page.relative_to(DOCS).with_suffix("")): page
    for page in sorted(DOCS.rglob("*.md"))
    if page.relative_to(DOCS).parts[0] not in MADE
}
PROMPT = re.compile(r"^\s*>>> ", re.MULTILINE)


@pytest.mark.parametrize(
    "name", [name for name, page in PAGES.items() if PROMPT.search(page.read_text(encoding="utf-8"))]
)
def test_the_page_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS.parent)
    with warnings.catch_warnings(action="ignore"):
        outcome = doctest.testfile(str(PAGES[name]), False, encoding="utf-8", optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_every_page_is_in_the_contents() -> None:
    listed = {"index", "coverage"}
    for page in PAGES.values():
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {str((page.parent / line).resolve().relative_to(DOCS)) for line in lines}
    assert sorted(PAGES.keys() - listed) == []
    missing = {name for name in listed - PAGES.keys() if name.split("/")[0] not in MADE}
    assert missing == set()


def families() -> list[str]:
    """Return the pages of the user guide."""
    tree = re.search(r"```\{toctree\}\n(.*?)```", PAGES["guide"].read_text(encoding="utf-8"), re.DOTALL)[1]
    return [line for line in tree.splitlines() if line and not line.startswith(":")]


@pytest.mark.parametrize("name", families())
def test_a_page_of_the_guide_has_a_picture_its_use_its_cost_and_what_measures_it(name: str) -> None:
    text = PAGES[name].read_text(encoding="utf-8")
    wanted = (r"^\.\. plot::", r"^## When .*not", r"^## Cost$", r"`python -m bench \w+")
    assert [pattern for pattern in wanted if not re.search(pattern, text, re.MULTILINE)] == []


def test_the_first_page_in_chinese_has_the_code_of_the_original() -> None:
    def code(name: str) -> list[str]:
        text = PAGES[name].read_text(encoding="utf-8")
        examples = [part.source + part.want for part in doctest.DocTestParser().get_examples(text)]
        return examples + re.findall(r"^```.*?^```", text, re.DOTALL | re.MULTILINE)

    assert code("start_zh") == code("start")
    assert len(code("start")) > 15

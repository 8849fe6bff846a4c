"""Pages, option help and messages use the terms of the field: phrases that CONTRIBUTING.md replaces do not occur."""

import re
from pathlib import Path

import pytest

from assay.messages.en import MESSAGES

ROOT = Path(__file__).parents[2]
PHRASES = [
    r"tells? (?:\w+ )?apart",
    r"looks? otherwise",
    r"kept aside",
    r"unless told",
    r"rows? (?:is|are) opened",
    r"is no (?:text|number|date|learner of)",
    r"would mend",
    r"worth nothing",
    r"\bdear(?:er)?\b",
    r"\bof use\b",
    r"\bcommonest\b",
    r"\bwobble",
    r"\bposed\b",
    r"\bso many\b",
    r"\bhow sure\b",
]
MADE = ("coverage.md", "_build", "reference", "gallery", "errata")  # by programs, or about the words of others
PAGES = [page for page in (ROOT / "docs").rglob("*.md") if page.relative_to(ROOT / "docs").parts[0] not in MADE]
PAGES.append(ROOT / "README.md")


def _uses(text: str) -> list[str]:
    return [match.group() for phrase in PHRASES for match in re.finditer(phrase, text, re.IGNORECASE)]


def test_the_phrases_are_recognised() -> None:
    assert _uses("Rows that look otherwise are told apart? No: they tell them apart.") == [
        "tell them apart",
        "look otherwise",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_the_terms_of_the_field(page: Path) -> None:
    assert not _uses(page.read_text(encoding="utf-8"))


def test_option_help_and_messages_use_the_terms_of_the_field() -> None:
    for file in ("cli/app.py", "report/words_en.py"):
        assert not _uses((ROOT / "src/assay" / file).read_text(encoding="utf-8")), file
    assert not {code: _uses(sentence) for code, sentence in MESSAGES.items() if _uses(sentence)}

"""Sentences of other rooms are said on pages in the reader's language, and the list of them does not go stale."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.report.said import is_known, said
from assay.report.words_said import SAID


def literals() -> str:
    """Return every text that is written in the sources, blanks and joins of long sentences apart."""
    found = []
    for path in Path(assay.__file__).parent.rglob("*.py"):
        if path.name != "words_said.py":
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            found += [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return "\n".join(found)


def test_every_sentence_of_the_list_is_still_said_somewhere() -> None:
    """Sentences are put together from parts: many of each one's runs of three words must be written in the sources."""
    written, gone = literals(), []
    for source, _, _ in SAID:
        parts = [part.split() for part in re.split(r"\{\w+\}", source.removesuffix("$"))]
        runs = [" ".join(words[i : i + 3]) for words in parts for i in range(max(1, len(words) - 2)) if words]
        if sum(run in written for run in runs) < 0.4 * len(runs):
            gone.append(source)
    assert gone == []


def test_both_languages_have_the_blanks_of_the_sentence() -> None:
    for source, english, chinese in SAID:
        blanks = set(re.findall(r"\{(\w+)\}", source))
        for words in (english, chinese):
            assert set(re.findall(r"\{(\w+)\}", words)) <= blanks, source


def test_what_a_study_says_is_known(learnt: Any) -> None:
    found = learnt.person.workspace.runs[learnt.run.rsplit("/", 1)[1]].found
    reasons = [reason for _, reason in found["not_claimed"]]
    notes = [row["note"] for row in found["leaderboard"]]
    claims = [claim["says"] for claim in found["claims"] if not claim["says_zh"]]
    for text in (found["why"], *found["notes"], *reasons, *notes, *claims):
        assert is_known(text), text


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "{0.__class__}", "no. it was dropped.", "always x"])
def test_what_a_table_calls_itself_stays_text(name: str) -> None:
    text = str(said(f"Column '{name}' is left out: it has no value in any row.", "zh"))
    assert "<script" not in text
    assert "它在每一行都没有值" in text


def test_a_long_and_odd_text_is_read_in_no_time() -> None:
    for piece in (" is chosen: of ", " of ", "a. ", ", measured ", "Column is left out: "):
        assert len(said(200 * piece, "zh")) < 20_000

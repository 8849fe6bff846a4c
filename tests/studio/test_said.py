"""What a study says is data, which pages show in the reader's language."""

from typing import Any

import pytest

from assay.messages import Message, from_plain, plain
from assay.report.env import said


def test_whatever_a_study_says_is_a_message(learnt: Any) -> None:
    found = learnt.person.workspace.runs[learnt.run.rsplit("/", 1)[1]].found
    reasons = [reason for _, reason in found["not_claimed"]]
    notes = [row["note"] for row in found["leaderboard"] if row["note"]]
    for text in (found["why"], *found["notes"], *reasons, *notes, found["population"], *found["undetectable"]):
        assert isinstance(from_plain(text), Message), text
    assert all(claim["says_zh"] for claim in found["claims"])
    assert all(chinese for claim in found["claims"] for _, _, chinese in claim["assumes"])


def test_a_message_comes_through_the_pipe_and_is_shown_in_both_languages() -> None:
    note = Message("note.left-out", column="id", why=Message("column.identifier"))
    record = plain(note)
    assert (
        said(record, "en")
        == "Column &#39;id&#39; is left out: it identifies each row, so it carries no information about new ones."
    )
    assert said(record, "zh") == "不采用列 &#39;id&#39;：它给每一行一个名字，对新的行没有意义。"
    assert said("A library's own words.", "zh") == '<span lang="en">A library&#39;s own words.</span>'


def test_pages_name_no_options_and_begin_with_a_capital_letter() -> None:
    note = Message("target.one-class", label="yes")
    assert said(note, "en") == "The training rows have one class only (yes); learning needs two."
    assert "--" not in said(Message("split.groups", groups=2), "en")


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "{0.__class__}", "{code}", "no. it was dropped."])
def test_what_a_table_calls_itself_stays_text(name: str) -> None:
    text = str(said(plain(Message("note.left-out", column=name, why=Message("column.empty"))), "zh"))
    assert "<script" not in text
    assert "它在每一行都没有值" in text


def test_numbers_that_json_cannot_hold_are_shown_all_the_same() -> None:
    record = plain(Message("rival.median", value=float("inf")))
    assert said(record, "en") == "The median, inf"


def test_a_record_that_is_not_ours_is_shown_as_text() -> None:
    assert said({"code": "no-such", "values": {}}, "en") == "no-such"
    assert len(said("x" * 10_000, "en")) == 2_000

"""Messages keep what they are made of, and are rendered for each place; see `test_catalogue` for their sentences."""

import copy
import pickle
import warnings

import pytest

from assay.messages import Message, catalogue, from_plain, of_error, plain, render, sentences


@pytest.fixture(autouse=True)
def two_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a few sentences of known wording into both catalogues."""
    english = {
        "t.kept": "{n:,} of {rows} rows have no value of {name!r}.",
        "t.clip": "{--clip} is for regression.",
        "t.clip@page": "The largest error is for regression.",
        "t.type": "Pass {name:--nominal}, or {--time-column}.",
        "t.list": "one of {names:, }: {why}",
        "t.why": "too few",
    }
    chinese = {
        "t.kept": "{rows} 行中有 {n} 行没有“{name}”的值。",
        "t.clip": "仅用于回归。",
        "t.list": "{names:、}：{why}",
    }
    for code, text in english.items():
        monkeypatch.setitem(catalogue("en"), code, text)
    for code, text in (chinese | {"t.why": "太少"}).items():
        monkeypatch.setitem(catalogue("zh"), code, text)


def test_a_message_is_its_english_sentence() -> None:
    message = Message("t.kept", n=1200, rows=3000, name="y")
    assert message == "1,200 of 3000 rows have no value of 'y'."
    assert (message.code, message.values) == ("t.kept", {"n": 1200, "rows": 3000, "name": "y"})
    assert message.render("zh") == "3000 行中有 1200 行没有“y”的值。"


def test_parameters_are_named_as_the_place_names_them() -> None:
    message = Message("t.type", name="zip")
    assert message == "Pass nominal='zip', or time_column."
    assert message.render("en", "terminal") == "Pass --nominal zip, or --time-column."


def test_a_page_has_its_own_sentence_where_there_is_one() -> None:
    message = Message("t.clip")
    assert message == "clip is for regression."
    assert message.render("en", "page") == "The largest error is for regression."
    assert message.render("zh", "page") == "仅用于回归。"


def test_messages_among_the_values_are_rendered_with_the_whole() -> None:
    message = Message("t.list", names=["a", "b"], why=Message("t.why"))
    assert message == "one of a, b: too few"
    assert message.render("zh") == "a、b：太少"


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)), lambda m: from_plain(plain(m))]
)
def test_a_message_survives_being_copied_and_written_down(again) -> None:
    message = Message("t.list", names=["a", "b"], why=Message("t.why"))
    other = again(message)
    assert other == message
    assert (other.code, other.values, other.render("zh")) == (message.code, message.values, message.render("zh"))


def test_exceptions_and_warnings_hand_messages_on() -> None:
    message = Message("t.clip")
    with pytest.raises(ValueError, match=r"^clip is for regression\.$") as raised:
        raise ValueError(message)
    assert of_error(raised.value) is message
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.warn(message, UserWarning, stacklevel=1)
    assert of_error(heard[0].message) is message
    assert of_error(OSError(2, "No such file")) == "[Errno 2] No such file"


def test_sentences_are_joined_as_the_language_joins_them() -> None:
    both = sentences([Message("t.clip"), "", Message("t.why"), Message("t.why")])
    assert both == "clip is for regression. too few"
    assert render(both, "zh") == "仅用于回归。太少"
    assert sentences([]) == ""
    assert sentences(["alone"]) == "alone"


@pytest.mark.parametrize(
    "record",
    [
        {"code": "no-such", "values": {}},
        {"code": "t.kept", "values": {}},
        {"code": "t.kept", "values": {"n": "x", "rows": 1, "name": "y"}},
        {"code": "t.kept", "values": []},
        {"code": 5},
        {"values": {"code": "t.kept"}},
        {},
        [],
        5,
        None,
        {"code": "t.list", "values": {"names": {"code": "t.list", "values": {}}, "why": [[[]]]}},
    ],
)
def test_a_record_from_a_file_that_is_no_message_is_text(record: object) -> None:
    assert isinstance(from_plain(record), str)


def test_names_of_a_table_are_never_format_strings() -> None:
    name = "{rows.__class__} {--clip} {0}"
    assert name in Message("t.list", names=[name], why="{n}")
    assert repr(name) in Message("t.kept", n=1, rows=2, name=name)

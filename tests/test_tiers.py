"""Which tests `--long-part`, and which of scikit-learn's files `tests.dropin --day`, choose."""

from types import SimpleNamespace

import pytest

from tests.conftest import LONG_PARTS, in_part
from tests.dropin.__main__ import ALWAYS, FILES, IN_TURN, of_day


def item(number, *, marks=(), fixtures=()):
    marker = next((mark.mark for mark in marks), None)
    return SimpleNamespace(
        nodeid=f"tests/test_x.py::test_y[{number}]", fixturenames=fixtures, get_closest_marker=lambda name: marker
    )


@pytest.mark.parametrize("how", [{"marks": [pytest.mark.long]}, {"fixtures": ["long"]}], ids=["marked", "asks"])
def test_each_long_test_has_its_turn_in_one_of_three_days(how):
    turns = [[in_part(item(number, **how), day) for day in range(90, 93)] for number in range(60)]
    assert all(sum(days) == 1 for days in turns)
    assert all(10 <= sum(column) <= 30 for column in zip(*turns))


def test_other_tests_and_those_run_by_hand_have_none():
    assert not any(in_part(item(1), day) for day in range(LONG_PARTS))
    by_hand = item(1, marks=[pytest.mark.long(by_hand="a ratio of times")])
    assert not any(in_part(by_hand, day) for day in range(LONG_PARTS))


def test_files_of_three_days_are_all_that_have_a_turn():
    days = [of_day(day) for day in range(200, 203)]
    assert all(files[: len(ALWAYS)] == ALWAYS for files in days)
    turns = [file for files in days for file in files[len(ALWAYS) :]]
    assert sorted(turns) == sorted(IN_TURN)
    assert {*ALWAYS, *IN_TURN} <= {*FILES}

"""Which tests `--long-part` and `--quick` choose."""

from types import SimpleNamespace

import pytest

from tests.conftest import LONG_PARTS, in_part


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

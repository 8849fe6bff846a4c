"""The page runs as it is printed."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "semi_supervised.md"


def test_the_page_runs():
    assert doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8").failed == 0

"""The count of covered rows: what counts, and what does not."""

from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace

from tests.mission import FAMILIES, ROOT, Collector, page, ranges, row_names, row_places, summary


def report(test: str, outcome: str, when: str = "call") -> SimpleNamespace:
    return SimpleNamespace(nodeid=test, when=when, failed=outcome == "failed", passed=outcome == "passed")


def test_the_588_rows_are_named_once():
    names = row_names()
    assert len(names) == 588
    assert Counter(row[:3] for row in names) == {
        "CON": 54, "LTH": 60, "LIN": 59, "OPT": 34, "KER": 92, "TRE": 23, "ENS": 72, "MUL": 13, "BAY": 38,
        "LAT": 22, "CLU": 45, "DEC": 9, "NNW": 39, "FEA": 28,
    }  # fmt: skip
    assert {row[:3] for row in names} == set(FAMILIES)
    assert all(1 <= len(name) <= 60 for name in names.values())


def test_a_row_counts_when_a_test_passed_and_none_failed():
    collector = Collector()
    tests = {
        "t.py::a[1]": ["LIN-01"],
        "t.py::a[2]": ["LIN-01"],
        "t.py::b": ["LIN-01", "LIN-02"],
        "t.py::c": ["LIN-03"],
    }
    collector.rows = tests | {"t.py::d": ["LIN-04"], "t.py::e": ["LIN-02"]}
    for test in tests:
        collector.pytest_runtest_logreport(report(test, "passed", "setup"))
        collector.pytest_runtest_logreport(report(test, "skipped" if test == "t.py::c" else "passed"))
    collector.pytest_runtest_logreport(report("t.py::d", "failed", "setup"))
    collector.pytest_runtest_logreport(report("t.py::e", "failed"))
    assert collector.covered() == {"LIN-01": ["t.py::a", "t.py::b"]}


def test_summary_and_page_show_every_row():
    covered = {"LIN-01": ["tests/test_mission.py::test_summary_and_page_show_every_row"]}
    assert "LIN Linear models: 1 of 59; none for 2-59" in summary(covered)
    assert "All: 1 of 588 rows" in summary(covered)
    text = page(covered)
    assert all(f"| {row} |" in text for row in row_names())
    assert ranges([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"


def test_each_row_has_a_public_place_that_exists():
    missing = [(row, place) for row, places in row_places().items() for place in places if not exists(place)]
    assert missing == []


def exists(place: str) -> bool:
    """Tell whether a file of the project, or a public name of the package, is there."""
    if not place.startswith("assay"):
        return (ROOT / place).is_file()
    parts, found = place.split("."), None
    if any(part.startswith("_") for part in parts):
        return False
    for k in range(len(parts), 0, -1):
        if find_module(".".join(parts[:k])):
            found = import_module(".".join(parts[:k]))
            break
    for part in parts[k:]:
        found = getattr(found, part, None)
    return found is not None


def find_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, AttributeError, ValueError):
        return False

"""Which rows of the mission have a passing test.

    python -m tests.mission              run the suite, print the count per family, write docs/coverage.md
    python -m tests.mission tests/theory the same for a part of the suite, without writing

A test names the rows it proves with `@pytest.mark.mission("LIN-07", ...)`. A row is covered when at least one
test that names it passed and none failed.
"""

import csv
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COVERAGE = ROOT / "docs" / "coverage.md"
FAMILIES = {
    "CON": "Concepts and risk", "LTH": "Learning theory", "LIN": "Linear models", "OPT": "Optimisers",
    "KER": "Kernel machines", "TRE": "Trees", "ENS": "Boosting and ensembles",
    "MUL": "Many classes, imbalance", "BAY": "Bayes", "LAT": "Latent variables and EM",
    "CLU": "Clustering and distances", "DEC": "Decomposition", "NNW": "Neural networks", "FEA": "Features",
}  # fmt: skip


def row_names() -> dict[str, str]:
    """Return the name of each row of the mission by its id, in order."""
    with open(Path(__file__).with_name("mission_rows.csv"), newline="", encoding="utf-8") as file:
        return {row["id"]: row["name"] for row in csv.DictReader(file)}


def rows_of(item: pytest.Item) -> list[str]:
    """Return the rows that a test names."""
    return [row for mark in item.iter_markers("mission") for row in mark.args]


class Collector:
    """A pytest plugin that keeps, for each row, the tests that name it and how they ended."""

    def __init__(self) -> None:
        self.rows: dict[str, list[str]] = {}
        self.passed: set[str] = set()
        self.failed: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.rows = {item.nodeid: rows_of(item) for item in session.items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.passed and report.when == "call":
            self.passed.add(report.nodeid)

    def covered(self) -> dict[str, list[str]]:
        """Return the passing tests of each covered row, one name for all parameters of a test."""
        tests: dict[str, list[str]] = defaultdict(list)
        spoiled = {row for test in self.failed for row in self.rows.get(test, ())}
        for test in sorted(self.passed):
            for row in self.rows.get(test, ()):
                name = test.partition("[")[0]
                if row not in spoiled and name not in tests[row]:
                    tests[row].append(name)
        return {row: found for row, found in tests.items() if found}


def main(arguments: list[str]) -> int:
    collector = Collector()
    code = pytest.main(arguments or [str(ROOT / "tests")], plugins=[collector])
    covered = collector.covered()
    print(summary(covered))
    if not arguments:
        COVERAGE.parent.mkdir(exist_ok=True)
        COVERAGE.write_text(page(covered), encoding="utf-8")
        print(f"wrote {COVERAGE.relative_to(ROOT)}")
    return int(code)


def summary(covered: dict[str, list[str]]) -> str:
    """Return a line per family, with the rows that have no passing test."""
    names = row_names()
    total = Counter(row[:3] for row in names)
    done = Counter(row[:3] for row in covered)
    lines = []
    for family, title in FAMILIES.items():
        missing = [int(row[4:]) for row in names if row.startswith(family) and row not in covered]
        rest = f"; none for {ranges(missing)}" if missing else ""
        lines.append(f"{family} {title}: {done[family]} of {total[family]}{rest}")
    return "\n".join([*lines, f"All: {len(covered)} of {len(names)} rows have a passing test."])


def ranges(numbers: list[int]) -> str:
    """Return numbers in order with runs shortened: 1 2 3 7 gives "1-3, 7"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def page(covered: dict[str, list[str]]) -> str:
    """Return docs/coverage.md."""
    lines = [
        "# Coverage of the mission",
        "",
        "Written by `python -m tests.mission`. A row counts when a test that proves it passes.",
        "",
        *(f"    {line.partition(';')[0]}" for line in summary(covered).splitlines()),
        "",
        "| Row | What | Where in Assay | Test |",
        "|---|---|---|---|",
    ]
    where = row_places()
    for row, name in row_names().items():
        tests = covered.get(row, [])
        cells = (
            row,
            name,
            ", ".join(f"`{place}`" for place in where[row]),
            "<br>".join(f"`{test}`" for test in tests),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def row_places() -> dict[str, list[str]]:
    """Return where a person finds each row: names of the package, examples and pages, by hand."""
    with open(Path(__file__).with_name("mission_rows.csv"), newline="", encoding="utf-8") as file:
        return {row["id"]: row["place"].split("; ") for row in csv.DictReader(file)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

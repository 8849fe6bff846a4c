"""Does a row's own test notice a slip? Mutants of the functions that it reaches, run against it.

    python -m tests.mutants LTH-12 OPT           all mutants of one row, of one family
    python -m tests.mutants --sample 200         200 mutants of rows drawn at random, the same ones with the same --seed
    python -m tests.mutants --per-row 4 CON      at most four mutants of each row of a family

For each row its tests are run once, and the lines of Assay that they run are noted, in the places that
tests/mission_rows.csv names for the row: a function answers for itself and the private helpers of its file, a class of
a room for the room without its other public names, one of a module for its file and those of its bases. Mutants of
these lines (see `tests.mutant_operators`) are put into the living function, each in a process of its own, forked after
the imports, and the row's tests run again: the mutant is killed if one fails or takes five times as long. Compiled
loops run as plain Python; where that takes too long, or where one needs the compiler, they are left out, and the row
says so. A fork without a mutant is run first: if that fails, nothing is said about the row.

Mutants that no test can tell from the original are listed with the reason in tests/mutants_equivalent.csv and not run.
"""

import argparse
import csv
import functools
import gc
import json
import os
import random
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

from tests.mission import ROOT, rows_of
from tests.mutant_operators import Function, Mutant, mutants, mutated_code
from tests.mutant_places import Place, Watch, places

EQUIVALENT = Path(__file__).with_name("mutants_equivalent.csv")
SOURCE = ROOT / "src" / "assay"
FAILED: list[str] = []
"""Tests that failed since `run` last looked."""
_LEAST, _MOST, _SLOWER = 5.0, 60.0, 5.0  # seconds that a run may take, and how much longer than without a mutant


class Outcome(NamedTuple):
    """What became of the mutants of a row; `why` is set if it could not be judged."""

    row: str
    killed: int
    survivors: list[Mutant]
    equivalent: int
    why: str = ""
    loops: str = ""

    @property
    def run(self) -> int:
        return self.killed + len(self.survivors)

    def lines(self) -> Iterator[str]:
        """Yield the row as it is printed."""
        rest = f"; {self.equivalent} equivalent" if self.equivalent else ""
        rest += f"; {self.loops}" if self.loops else ""
        yield f"{self.row}  {self.why or f'{self.run} mutants, {len(self.survivors)} survived{rest}'}"
        for one in self.survivors:
            place = f"{_short(one.function.file)}:{one.line} {one.function.name}"
            nth = f" ({one.nth})" if one.nth > 1 else ""
            yield f"    {place}  {one.kind}: {one.before}  ->  {one.after}{nth}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("rows", nargs="*", help="rows (LTH-12) or families (LTH); all rows without")
    parser.add_argument("--sample", type=int, help="so many mutants in all, four of each row that is drawn")
    parser.add_argument("--per-row", type=int, help="at most so many mutants of each row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", default=str(ROOT / "tests"), help=argparse.SUPPRESS)
    parser.add_argument("--source", default=str(SOURCE), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    plugin = Judge(chosen)
    quick = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--no-header"]
    code = pytest.main([*quick, *_files_of(chosen)], plugins=[plugin])
    if not plugin.outcomes:
        return int(code) or 1
    print(summary(plugin.outcomes))
    return 0


def _files_of(chosen: argparse.Namespace) -> list[str]:
    """Return the test files that name one of the rows: collecting all of them takes longer than most mutants."""
    root = Path(chosen.tests)
    if not chosen.rows:
        return [str(root)]
    marks = [f'"{row}' for row in chosen.rows]
    found = [str(file) for file in sorted(root.rglob("test_*.py")) if any(m in file.read_text() for m in marks)]
    return found or [str(root)]


def summary(outcomes: Iterable[Outcome]) -> str:
    """Return a line per family: how many mutants its rows' own tests killed, and the rows below 85 %."""
    families = defaultdict(list)
    for one in outcomes:
        families[one.row[:3]].append(one)
    lines = []
    for family, of in families.items():
        run, killed = sum(one.run for one in of), sum(one.killed for one in of)
        weak = [one.row for one in of if one.run and one.killed < 0.85 * one.run]
        left = [one.row for one in of if not one.run]
        line = f"{family}: {killed} of {run} mutants killed" + (f" ({killed / run:.0%})" if run else "")
        line += f"; below 85 %: {', '.join(weak)}" if weak else ""
        lines.append(line + (f"; nothing to judge: {', '.join(left)}" if left else ""))
    return "\n".join(lines)


class Judge:
    """A pytest plugin that judges rows instead of running tests."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self.chosen, self.outcomes = chosen, []  # type: argparse.Namespace, list[Outcome]

    def pytest_collection(self, session: pytest.Session) -> None:
        import hypothesis

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # a failure need not be small
        hypothesis.settings.register_profile(
            "mutants", hypothesis.settings.default, database=None, phases=phases, print_blob=False
        )
        hypothesis.settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            FAILED.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.config.pluginmanager.unregister(name="terminalreporter")  # it would tell of every mutant's failure
        items: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            if not item.get_closest_marker("long"):
                for row in rows_of(item):
                    items[row].append(item)
        for row in self._rows(sorted(items)):
            for line in self._judged(row, items[row]).lines():
                print(line, flush=True)
            if self.chosen.sample and sum(one.run for one in self.outcomes) >= self.chosen.sample:
                break
        return True

    def _rows(self, rows: list[str]) -> list[str]:
        wanted = tuple(self.chosen.rows) or ("",)
        rows = [row for row in rows if row in wanted or row.partition("-")[0] in wanted or wanted == ("",)]
        if self.chosen.sample:
            random.Random(self.chosen.seed).shuffle(rows)
        return rows

    def _judged(self, row: str, items: list[pytest.Item]) -> Outcome:
        """Judge a row in a process of its own, so that what its tests leave behind does not matter to the next."""
        limit = self.chosen.per_row or (4 if self.chosen.sample else None)
        found = in_fork(lambda: _judge(row, items, Path(self.chosen.source), self.chosen.seed, limit), 3600.0)
        if isinstance(found, str):
            outcome = Outcome(row, 0, [], 0, f"not judged: {found}")
        else:
            survivors = [Mutant(Function(*one[0]), *one[1:]) for one in found["survivors"]]
            outcome = Outcome(row, found["killed"], survivors, found["equivalent"], found["why"], found["loops"])
        self.outcomes.append(outcome)
        return outcome


def _judge(row: str, items: list[pytest.Item], source: Path, seed: int, limit: int | None) -> dict[str, Any]:
    """Return the outcome of a row as plain data."""
    outcome: dict[str, Any] = {"killed": 0, "survivors": [], "equivalent": 0, "why": "", "loops": ""}
    watch = Watch(places(row, source))
    with watch:
        failed = run(items)
    if failed:
        return outcome | {"why": f"not judged: its test fails without a mutant, {failed}"}
    plain = seconds(lambda: run(items))
    if isinstance(plain, str):
        return outcome | {"why": f"not judged: {plain}"}
    reached, compiled = dict(watch.lines), dict[Function, set[int]]()
    slow = plain
    if dispatchers(source):
        found = in_fork(lambda: _reached_in_python(items, watch.places, source), _MOST)
        if isinstance(found, str):
            outcome["loops"] = f"compiled loops left out ({found})"
        else:
            slow = found["seconds"]
            loops = {Function(*key): set(lines) for key, lines in found["lines"]}
            compiled = {function: lines for function, lines in loops.items() if function not in reached}
    listed = equivalents()
    everything = [one for function, lines in (reached | compiled).items() for one in mutants(function, lines)]
    left = [one for one in everything if _told(one) not in listed]
    outcome["equivalent"] = len(everything) - len(left)
    left.sort()
    random.Random(f"{seed} {row}").shuffle(left)
    for mutant in left[:limit]:
        loop = mutant.function in compiled
        allowed = min(_MOST * _SLOWER, max(_LEAST, _SLOWER * (slow if loop else plain)))
        answer = in_fork(functools.partial(_killed, items, mutant, source if loop else None), allowed)
        if answer is False:
            outcome["survivors"].append(mutant)
        else:
            outcome["killed"] += 1
    return outcome | {"why": "" if left else "nothing of its place is run by its tests"}


def _killed(items: list[pytest.Item], mutant: Mutant, in_plain: Path | None) -> bool:
    if in_plain:
        in_python(in_plain)
    put(mutant)
    return bool(run(items))


def _reached_in_python(items: list[pytest.Item], places: list[Place], source: Path) -> dict[str, Any]:
    """Run the tests with compiled loops as plain Python, and return the lines that they run; raise if one fails."""
    in_python(source)
    forget()
    watch = Watch(places)
    with watch:
        failed = run(items)
    if failed:
        raise RuntimeError("they need the compiler")
    start = time.monotonic()
    run(items)
    lines = [(list(function), sorted(found)) for function, found in watch.lines.items()]
    return {"lines": lines, "seconds": time.monotonic() - start}


def run(items: list[pytest.Item]) -> str:
    """Run the tests until one fails; return its name, or "" if none does."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        FAILED.clear()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        if FAILED:
            return item.nodeid
    return ""


def put(mutant: Mutant) -> None:
    """Give every function object of the mutant's function its new code, and forget what was computed before."""
    new, place = mutated_code(mutant), mutant.function
    for one in gc.get_objects():
        if type(one) is FunctionType and _is(one.__code__, place):
            one.__code__ = new
    forget()


def _is(code: CodeType, place: Function) -> bool:
    return (code.co_filename, code.co_qualname, code.co_firstlineno) == place


def forget() -> None:
    """Empty every cache of functions: what stands in them was computed without the mutant, and pools of threads do not
    survive a fork."""
    for one in gc.get_objects():
        if type(one) is functools._lru_cache_wrapper:
            one.cache_clear()


def dispatchers(source: Path) -> list[tuple[dict[str, Any], str, Any]]:
    """Return every compiled loop of the package with the module and the name that it has there."""
    numba = sys.modules.get("numba")
    if numba is None:
        return []
    kind = numba.core.dispatcher.Dispatcher
    files = [(vars(module), getattr(module, "__file__", None)) for module in list(sys.modules.values())]
    modules = [names for names, file in files if file and Path(file).is_relative_to(source)]
    return [(names, name, value) for names in modules for name, value in list(names.items()) if isinstance(value, kind)]


def in_python(source: Path) -> None:
    """Replace every compiled loop by the Python function that it was made of."""
    for names, name, value in dispatchers(source):
        names[name] = value.py_func


def seconds(call: Callable[[], str]) -> float | str:
    """Return how long a call takes in a fork, or why it fails."""

    def timed() -> float:
        forget()
        start = time.monotonic()
        failed = call()
        if failed:
            raise RuntimeError(f"{failed} fails in a fork without a mutant")
        return time.monotonic() - start

    return in_fork(timed, 10 * _MOST)


def in_fork(call: Callable[[], Any], allowed: float) -> Any:
    """Return what the call returns in a forked process, by JSON, or in words why it did not."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(call, read, write)
    os.close(write)
    killer = threading.Timer(allowed, os.kill, (child, signal.SIGKILL))
    killer.start()
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    killer.cancel()
    if status:
        return "too slow" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL else "it crashed"
    return json.loads(said)


def _answer(call: Callable[[], Any], read: int, write: int) -> None:
    """Run the call in the child and end it."""
    os.close(read)
    os.setpgid(0, 0)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        said = json.dumps(call())
    except BaseException as error:
        said = json.dumps(str(error) or type(error).__name__)
    with os.fdopen(write, "wb") as pipe:
        pipe.write(said.encode())
    os._exit(0)


def equivalents() -> set[tuple[str, str, str, str, str]]:
    """Return the mutants that are argued to be equivalent, as `_told` tells them."""
    with open(EQUIVALENT, newline="", encoding="utf-8") as file:
        return {(row["file"], row["function"], row["before"], row["after"], row["nth"]) for row in csv.DictReader(file)}


def _told(one: Mutant) -> tuple[str, str, str, str, str]:
    return _short(one.function.file), one.function.name, one.before, one.after, str(one.nth)


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

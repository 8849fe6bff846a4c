"""Does a row's own test notice a slip? Mutants of the functions that it reaches, run against it.

    python -m tests.mutants LTH-12 OPT           all mutants of one row, of one family
    python -m tests.mutants --sample 200         200 mutants of rows drawn at random, the same ones with the same --seed
    python -m tests.mutants --per-row 4 CON      at most four mutants of each row of a family

For each row its tests are run once, and the lines of Assay that each of them runs are noted, in the places that
tests/mission_rows.csv names for the row: a function answers for itself and the private helpers of its file, a class of
a room for the room without its other public names, one of a module for its file and those of its bases. Mutants of
these lines (see `tests.mutant_operators`) are put into the living function, each in a process of its own, forked after
all that the tests import and compile. Those tests that run the line are run again, the fastest first: the mutant is
killed if one fails or takes five times as much of the processor. Compiled loops of these places run as plain Python;
where that takes too long, or where a test needs the compiler, they are left out, and the row says so. A fork without a
mutant is run first: if that fails, nothing is said about the row.

Mutants that no test can tell from the original are listed with the reason in tests/mutants_equivalent.csv and not run.
"""

import argparse
import csv
import functools
import gc
import itertools
import json
import math
import os
import random
import re
import resource
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import pytest

from tests.mission import ROOT, rows_of
from tests.mutant_operators import Function, Mutant, mutants, mutated_code
from tests.mutant_places import Watch, held, places, room_of

EQUIVALENT = Path(__file__).with_name("mutants_equivalent.csv")
SOURCE = ROOT / "src" / "assay"
FAILED: list[str] = []
"""Tests that failed since `run` last looked, and why."""
_LEAST, _MOST, _SLOWER = 5.0, 30.0, 5.0  # seconds of the processor that a run may take, and how much more than plain
_ROW = re.compile(r"[\"']([A-Z]{3}-[0-9]{2})[\"']")
_INTRINSICS: dict[str, Callable] = {
    "prefetch": lambda array, byte: None,
    "trailing_zeros": lambda word: (int(word) & -int(word)).bit_length() - 1,
    "bit_count": lambda word: int(word).bit_count(),
}
_WAIT = 40  # seconds by the clock for each second of the processor: tests wait, and machines are busy


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
    rows, files = _tests_of(chosen)
    plugin = Judge(chosen, rows)
    quick = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--no-header"]
    code = pytest.main([*quick, *files], plugins=[plugin])
    if not plugin.outcomes:
        return int(code) or 1
    print(summary(plugin.outcomes))
    return 0


def _tests_of(chosen: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the rows to judge, in order, and the test files that name one: collecting all of them takes minutes."""
    root = Path(chosen.tests)
    named = {file: set(_ROW.findall(file.read_text(encoding="utf-8"))) for file in sorted(root.rglob("test_*.py"))}
    rows = sorted(set().union(*named.values()))
    if chosen.rows:
        rows = [row for row in rows if row in chosen.rows or row.partition("-")[0] in chosen.rows]
    if chosen.sample:
        random.Random(chosen.seed).shuffle(rows)
        del rows[chosen.sample // 2 :]  # twice as many as it takes if each has four mutants
    return rows, [str(file) for file, its in named.items() if its & {*rows}]


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

    def __init__(self, chosen: argparse.Namespace, rows: list[str]) -> None:
        self.chosen, self.rows, self.outcomes = chosen, rows, []  # type: argparse.Namespace, list[str], list[Outcome]

    def pytest_collection(self, session: pytest.Session) -> None:
        import hypothesis

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # a failure need not be small
        hypothesis.settings.register_profile(
            "mutants", hypothesis.settings.default, database=None, phases=phases, print_blob=False
        )
        hypothesis.settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            FAILED.append(f"{report.nodeid}: {report.longreprtext.rstrip().rpartition(chr(10))[2]}")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.config.pluginmanager.unregister(name="terminalreporter")  # it would tell of every mutant's failure
        items: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            if not item.get_closest_marker("long"):
                for row in rows_of(item):
                    items[row].append(item)
        for row in filter(items.get, self.rows):
            for line in self._judged(row, items[row]).lines():
                print(line, flush=True)
            if self.chosen.sample and sum(one.run for one in self.outcomes) >= self.chosen.sample:
                break
        return True

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
        failed = run(items, watch.turn)
    if failed:
        return outcome | {"why": f"not judged: without a mutant {failed}"}
    plain = in_fork(lambda: seconds(items), 10 * _MOST)
    if isinstance(plain, str):
        return outcome | {"why": f"not judged: in a fork without a mutant {plain}"}
    reached = {function: (lines, plain) for function, lines in watch.lines.items()}
    loops = [one for one in dispatchers(source) if held(one[2].py_func.__code__, watch.places)]
    if loops:
        found = in_fork(lambda: _reached_in_python(items, watch, loops), _MOST)
        if isinstance(found, str):
            outcome["loops"] = f"compiled loops left out ({found})"
        else:
            lines = {Function(*key): {line: set(of) for line, of in its} for key, its in found["lines"]}
            reached = {function: (its, found["seconds"]) for function, its in lines.items()} | reached
    compiled = reached.keys() - watch.lines.keys()
    listed = equivalents()
    everything = [one for function, (lines, _) in reached.items() for one in mutants(function, lines)]
    left = sorted(one for one in everything if told(one) not in listed)
    outcome["equivalent"] = len(everything) - len(left)
    random.Random(f"{seed} {row}").shuffle(left)
    known = Living()
    for mutant in left[:limit]:
        lines, slow = reached[mutant.function]
        those = sorted(lines[mutant.line], key=slow.__getitem__)
        allowed = max(_LEAST, _SLOWER * sum(slow[one] for one in those))
        names = loops if mutant.function in compiled else []
        if in_fork(functools.partial(_killed, [items[one] for one in those], mutant, known, names), allowed) is False:
            outcome["survivors"].append(mutant)
        else:
            outcome["killed"] += 1
    if not everything:
        outcome["why"] = "nothing to change in what its tests run" if reached else "its tests run nothing of its place"
    return outcome


def _killed(items: list[pytest.Item], mutant: Mutant, known: "Living", loops: list[tuple]) -> bool:
    in_python(loops)
    known.put(mutant)
    return bool(run(items))


def _reached_in_python(items: list[pytest.Item], watch: Watch, loops: list[tuple]) -> dict[str, Any]:
    """Run the tests with compiled loops as plain Python, and return the lines that they run; raise if one fails."""
    in_python(loops)
    watch.lines.clear()
    with watch:
        spent = seconds(items, watch.turn)
    lines = [(list(key), [(line, sorted(of)) for line, of in its.items()]) for key, its in watch.lines.items()]
    return {"lines": lines, "seconds": spent}


def run(items: list[pytest.Item], turn: Callable[[int], None] = lambda nth: None) -> str:
    """Run the tests until one fails; return its name and why, or "" if none does."""
    for nth, (item, following) in enumerate(zip(items, [*items[1:], None], strict=True)):
        FAILED.clear()
        turn(nth)
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        if FAILED:
            return FAILED[0]
    return ""


def seconds(items: list[pytest.Item], turn: Callable[[int], None] = lambda nth: None) -> list[float]:
    """Return how much of the processor each test takes; raise if one fails."""
    starts: list[float] = []

    def timed(nth: int) -> None:
        starts.append(time.process_time())
        turn(nth)

    Living().forget()
    failed = run(items, timed)
    if failed:
        raise RuntimeError(failed)
    return [after - start for start, after in itertools.pairwise([*starts, time.process_time()])]


class Living:
    """The functions and caches that there are, found once: a process has millions of objects."""

    def __init__(self) -> None:
        self.functions: dict[Function, list[FunctionType]] = defaultdict(list)
        self.caches = []
        for one in gc.get_objects():
            if type(one) is FunctionType:
                code = one.__code__
                self.functions[Function(code.co_filename, code.co_qualname, code.co_firstlineno)].append(one)
            elif type(one) is functools._lru_cache_wrapper:
                self.caches.append(one)

    def put(self, mutant: Mutant) -> None:
        """Give every function object of the mutant's function its new code."""
        new = mutated_code(mutant)
        for one in self.functions[mutant.function]:
            one.__code__ = new
        self.forget()

    def forget(self) -> None:
        """Empty every cache of functions: what stands in them was computed without the mutant, and pools of threads do
        not survive a fork."""
        for one in self.caches:
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


def in_python(loops: list[tuple[dict[str, Any], str, Any]]) -> None:
    """Replace compiled loops by the Python functions that they were made of, and what they ask of the processor."""
    for names, name, value in loops:
        names[name] = value.py_func
        names.update({one: plain for one, plain in _INTRINSICS.items() if one in names})


def in_fork(call: Callable[[], Any], allowed: float) -> Any:
    """Return what the call returns in a forked process that may take so many seconds, by JSON, or why it did not."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(call, read, write, allowed)
    os.close(write)
    killer = threading.Timer(_WAIT * allowed, os.kill, (child, signal.SIGKILL))
    killer.start()
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    killer.cancel()
    if status:
        slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGXCPU)
        return "too slow" if slow else "it crashed"
    return json.loads(said)


def _answer(call: Callable[[], Any], read: int, write: int, allowed: float) -> None:
    """Run the call in the child and end it."""
    os.close(read)
    most = math.ceil(allowed)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
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
    """Return the mutants that are argued to be equivalent, as `told` tells them."""
    with open(EQUIVALENT, newline="", encoding="utf-8") as file:
        return {(row["room"], row["function"], row["before"], row["after"], row["nth"]) for row in csv.DictReader(file)}


def told(one: Mutant) -> tuple[str, str, str, str, str]:
    """Return the words for a mutant, which do not say in which file of its room the function is."""
    return room_of(one.function.file), one.function.name, one.before, one.after, str(one.nth)


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Claims forged and sealed again, which only the mathematics can notice: `python -m tests.fuzz --claims`.

Every attack of the suite brings honest cases made by hand, ways to forge them (numbers, witnesses, models, rows, with
fingerprints that fit), and an oracle that is not the checker. Here they are drawn without end: a case by its seed, a
way, and its random numbers. What is accepted must be true by the oracle.
"""

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tests.certificate import cases, test_cluster_claims, truths
from tests.certificate import test_compression_claims as compression
from tests.certificate import test_linear_machines as machines
from tests.certificate import test_margin_claims as margins
from tests.certificate import test_network_attacks as networks
from tests.certificate import test_online_claims as online
from tests.certificate import test_regression_norm as norms
from tests.certificate import test_rules_holdout as holdout
from tests.certificate import test_stump_claims as stumps
from tests.certificate import test_tree_attacks as trees
from tests.certificate.attacks import Tables, Truth, operators
from tests.certificate.forge import Case
from tests.model_selection import test_folds as folds
from tests.neighbors import test_claims as neighbors
from tests.watched import Outcome, watch

LIMIT = 60.0  # seconds of the processor for a case, its forgery and the oracle, which may count in rational numbers
MEMORY = 6 * 2**30  # bytes of addresses that a worker may have
SEEDS = 60  # honest cases of each kind
REPORT = 300.0  # seconds between reports of a long run


class Target(NamedTuple):
    """A kind of claim: honest cases by a seed, the oracle, and how cases are forged (None: as linear models are)."""

    name: str
    make: Callable[[int], Case]
    truth: Truth
    tables: Tables | None = None


def targets() -> list[Target]:
    return list(_targets())


def _targets() -> Iterator[Target]:
    for name, make in cases.CASES.items():
        yield Target(f"linear {name}", make, truths.truth)
    for room in (compression, holdout, machines, margins):
        for name, make in room.CASES.items():
            yield Target(f"{room.__name__.rpartition('_')[2]} {name}", make, room.truth)
    for room in (trees, networks, online):
        for name, make in room.CASES.items():
            yield Target(f"{room.__name__.rpartition('.')[2]} {name}", make, room.truth, room.TABLES)
    for name, (make, truth) in test_cluster_claims.CASES.items():
        made = lambda seed, make=make, name=name: make(seed, name)  # noqa: E731
        yield Target(f"clusters {name}", made, truth, test_cluster_claims.TABLES)
    for name in neighbors.ATTACKED:
        made = lambda seed, name=name: neighbors.honest(name, seed)  # noqa: E731
        yield Target(f"neighbors {name}", made, neighbors.truth, neighbors.TABLES)
    yield Target("norm", norms.norm_case, norms.truth)
    yield Target("stumps", stumps.stump_case, stumps.truth, stumps.TABLES)
    yield Target("folds", folds.folds_case, folds.folds_truth, folds.TABLES)


class Forgery(NamedTuple):
    """One forgery: of which kind, of which case, in which way."""

    target: Target
    seed: int
    way: str


def forgery(number: int, seed: int, known: list[Target]) -> tuple[Forgery, np.random.Generator]:
    """Return the forgery of that number, and the numbers that it draws."""
    rng = np.random.default_rng([seed, number])
    target = known[rng.integers(len(known))]
    ways = [name for name, *_ in operators(target.tables)]
    return Forgery(target, int(rng.integers(SEEDS)), str(rng.choice(ways))), rng


def run(drawn: Forgery, rng: np.random.Generator, honest: Callable[[Target, int], Case]) -> Outcome:
    """Return what becomes of a forgery: refused, accepted because it is true, wrong, or an error that is no verdict."""
    change, fatal = next((one, fatal) for name, one, fatal in operators(drawn.target.tables) if name == drawn.way)
    place = f"{drawn.target.name}: {drawn.way}"
    try:
        case = change(honest(drawn.target, drawn.seed), rng)
        if case is None:
            return Outcome("void")
        report = case.verify()
    except Exception:
        return Outcome("unexpected", place, traceback.format_exc(limit=-2))
    if not report.holds:
        return Outcome("refused")
    if fatal or not drawn.target.truth(case):
        return Outcome("wrong", place, f"case {drawn.seed}: {case.claim}"[:300])
    return Outcome("accepted")


class Tally:
    """What became of the forgeries so far."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.bad: dict[tuple[str, str], tuple[int, int, str]] = {}

    def add(self, number: int, outcome: Outcome) -> None:
        self.counts[outcome.kind] += 1
        if outcome.kind not in ("void", "refused", "accepted"):
            times, first, detail = self.bad.get((outcome.kind, outcome.place), (0, number, outcome.detail))
            self.bad[outcome.kind, outcome.place] = times + 1, first, detail

    def text(self, seconds: float) -> str:
        tried = sum(self.counts.values()) - self.counts["void"]
        named = ("refused", "accepted", "unexpected", "wrong", "crash", "hang")
        parts = ", ".join(f"{self.counts[kind]:,} {kind}" for kind in named)
        lines = [f"{tried:,} forged claims in {seconds:.0f} s: {parts}."]
        lines += [f"  {n} x {kind}: {at} [{first}]: {more}" for (kind, at), (n, first, more) in self.bad.items()]
        return "\n".join(lines)


def fuzz(minutes: float, seed: int = 0, most: int | None = None, known: list[Target] | None = None) -> Tally:
    """Forge claims for so long, or until so many were forged."""
    known = known or targets()
    by_name = {target.name: target for target in known}
    made = lru_cache(maxsize=4000)(lambda name, case: by_name[name].make(case))
    tally, number, began = Tally(), 0, time.monotonic()
    end, last = began + 60 * minutes, None if most is None else most - 1

    def run_one(number: int) -> Outcome:
        drawn, rng = forgery(number, seed, known)
        return run(drawn, rng, lambda target, case: made(target.name, case))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() < end and (last is None or number <= last):
            until = min(end, time.monotonic() + REPORT)
            number = watch(run_one, tally.add, number, end=until, seconds=LIMIT, memory=MEMORY, last=last)
            if time.monotonic() < end:
                print(tally.text(time.monotonic() - began), flush=True)
    print(tally.text(time.monotonic() - began), flush=True)
    return tally

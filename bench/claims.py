"""Do the probabilistic claims hold? Each is made many times where the truth is known; failures are counted.

    python -m bench claims [--repetitions 2000] [--only P10c] [--world circle] [--controls]

A claim at delta may fail in a share delta of the repetitions. It is accepted if that many violations or
more would happen with probability at least 1e-6 were its true failure rate delta. Controls are claims made
wrongly; the suite is broken if one of them is accepted. "informative" is the share of repetitions in which
the claim said something.
"""

import argparse
import math
import sys
import time
import zlib
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import binom

from bench.worlds import CASES, Case

DELTAS = (0.05, 0.2)
RARE = 1e-6


class Tally(NamedTuple):
    """What happened to one case at one delta."""

    case: Case
    rate: float
    repetitions: int
    violations: int
    limit: int
    informative: float
    seconds: float

    @property
    def accepted(self) -> bool:
        return self.violations <= self.limit

    @property
    def sound(self) -> bool:
        """Whether it went as it should: claims accepted, controls not."""
        return self.accepted != self.case.control


def largest_accepted(repetitions: int, rate: float) -> int:
    """Return the largest V with P[Bin(repetitions, rate) >= V] >= 1e-6."""
    return int(binom.isf(RARE, repetitions, rate))


def simulate(case: Case, delta: float, repetitions: int) -> Tally:
    """Run a case; its random numbers depend on its name and delta only."""
    rng = np.random.default_rng([zlib.crc32(f"{case.claim} {case.world}".encode()), round(delta * 1000)])
    start, count = time.perf_counter(), math.ceil(repetitions * case.times)
    outcomes = np.array([case.run(rng, delta) for _ in range(count)], dtype=bool)
    rate = delta if case.rate is None else case.rate
    violations, informative = int(outcomes[:, 0].sum()), float(outcomes[:, 1].mean())
    seconds = time.perf_counter() - start
    return Tally(case, rate, count, violations, largest_accepted(count, rate), informative, seconds)


def deltas(case: Case) -> tuple[float, ...]:
    """Return the deltas at which a case is run: controls and cases with a rate of their own once."""
    return (0.05,) if case.control or case.rate is not None else DELTAS


def show(tallies: list[Tally]) -> Table:
    table = Table("claim", "world", "rate", "runs", "violations", "accepted to", "informative", "s", "verdict")
    for t in tallies:
        verdict = ("caught" if t.case.control else "holds") if t.sound else "[bold red]WRONG[/]"
        kind = f"{t.case.claim}{' control' if t.case.control else ''}"
        seen = f"{t.violations} ({t.violations / t.repetitions:.2%})"
        share, spent = f"{t.informative:.0%}", f"{t.seconds:.0f}"
        table.add_row(kind, t.case.world, f"{t.rate:g}", str(t.repetitions), seen, str(t.limit), share, spent, verdict)
    return table


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench claims", description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--only", help="run the cases of one claim, such as P10c")
    parser.add_argument("--world", default="", help="run the cases whose world has these words in its name")
    parser.add_argument("--controls", action="store_true", help="run only the controls")
    options = parser.parse_args(arguments)
    chosen = [c for c in CASES if options.only in (None, c.claim) and (c.control or not options.controls)]
    chosen = [c for c in chosen if options.world in c.world]
    names = ", ".join(sorted({c.claim for c in CASES}))
    if not chosen:
        sys.exit(f"no case of {options.only!r} in {options.world!r}; choose from {names}")
    tallies = [simulate(case, delta, options.repetitions) for case in chosen for delta in deltas(case)]
    Console(width=150).print(show(tallies))
    broken = [t for t in tallies if not t.sound]
    silent = {t.case.claim for t in tallies if not t.case.control} - {
        t.case.claim for t in tallies if not t.case.control and t.informative >= 0.5
    }
    never = ", ".join(sorted(silent)) or "none"
    print(f"{len(tallies)} simulations, {len(broken)} wrong; never informative: {never}")
    sys.exit(1 if broken or silent else 0)

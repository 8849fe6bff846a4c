"""One claim in one world, and the list of all of them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Outcome = tuple[bool, bool]
Run = Callable[[np.random.Generator, float], Outcome]


@dataclass(frozen=True)
class Case:
    """One claim in one world. `rate` fixes the promised rate if it is not delta; a control must exceed it. `times`
    multiplies the number of repetitions: a share of them for a case that takes long. Of a `slow` one the tests run a
    tenth."""

    claim: str
    world: str
    run: Run
    control: bool = False
    rate: float | None = None
    times: float = 1
    slow: bool = False


CASES: list[Case] = []


def case(
    claim: str, world: str, *, control: bool = False, rate: float | None = None, times: float = 1, slow: bool = False
):
    def add(run: Run) -> Run:
        CASES.append(Case(claim, world, run, control, rate, times, slow))
        return run

    return add

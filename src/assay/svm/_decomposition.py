"""The support vector solver: many pairs per round, kernel rows in blocks, columns that cannot move set aside.

    minimise over beta   1/2 beta' K beta - v' beta + eps |beta|_1    subject to  group sums of beta kept,
    lo <= beta <= hi

A round takes the free variables and some that violate optimality, optimises them alone on their Gram matrix
(`_dual_state`), computes the kernel rows of what moved (BLAS and compiled transforms on all cores) and updates K beta.
The Gram matrix is kept for the next round and grows with the set of free variables, as far as memory allows.
Variables at a bound that would stay there are left out of the rounds (shrinking); what their rows missed is added when
they come back, before the end at the latest.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from assay.kernels._tiles import Tiles
from assay.svm._dual_state import DualState, Problem, descend, fill_gram
from assay.svm._growing_gram import GrowingGram
from assay.svm._kernel_rows import KernelRows, cache_floats, products

_WORKING = (2048, 6144)  # least variables of a working set, and most (in single precision) that need no cache
_WHOLE = 1500  # variables up to which the whole problem is one working set
_STEPS = 20  # pair steps of a round, at most, for each variable of its working set
_AIM = 0.2  # share of the violation to which a working set is solved
_STALL = 50  # rounds without progress near the optimum after which only rounding is left
_PATIENCE = 2  # rounds for which a variable must have been stuck before it is set aside


class Solution(NamedTuple):
    """beta, K beta, the objective and the last violation, what it cost, why it ended, and b if it is known.

    status : "converged", "max_iter", "interrupted" or "stalled" (rounding allows no further progress)
    """

    beta: np.ndarray
    F: np.ndarray
    objective: float
    violation: float
    rounds: int
    steps: int
    kernel_rows: int
    status: str
    b: float | None = None


Tell = Callable[[Solution], bool]
GiveUp = Callable[[np.ndarray, np.ndarray], bool]


def solve(
    source: Tiles,
    problem: Problem,
    *,
    tol: float,
    max_steps: int = -1,
    cache: float | str = "auto",
    shrinking: bool = True,
    seed: int = 0,
    n_jobs: int | None = None,
    tell: Tell | None = None,
    give_up: GiveUp | None = None,
) -> Solution:
    """Return the minimiser to a violation of `tol`; max_steps = -1 sets no limit.

    After each round `tell(solution so far)` may stop it, before it `give_up(beta, K beta)` of the active
    variables.
    """
    run = _Run(source, problem, cache, seed, n_jobs)
    run.shrinking = shrinking
    limit = np.inf if max_steps < 0 else max_steps
    status = "converged"
    try:
        while not run.optimal(tol) or not run.rounds:
            if run.steps >= limit or run.stalled():
                status = "max_iter" if run.steps >= limit else "stalled"
                break
            if give_up is not None and give_up(run.beta, run.F):
                status = "interrupted"
                break
            run.round(tol, limit)
            run.update_violation()
            if tell is not None and tell(run.snapshot()):
                status = "interrupted"
                break
    except KeyboardInterrupt:
        status = "interrupted"
    run.bring_back()
    run.update_violation()
    return run.snapshot(status)


class _Run(DualState):
    """State of one solve. Arrays named without `full_` belong to the active variables."""

    shrinking = True

    def __init__(self, source: Tiles, problem: Problem, cache: float | str, seed: int, n_jobs: int | None) -> None:
        self.n_jobs = n_jobs
        self.full_source, self.full_problem = source, problem
        self.full_beta = np.array(problem.start, dtype=np.float64)
        self.full_F = np.zeros(source.n)
        super().__init__(problem, self.full_beta, self.full_F, np.random.default_rng(seed))
        self.rounds = self.steps = self.kernel_rows = 0
        self._reserve(cache_floats(cache, source.dtype.itemsize))
        begun = np.flatnonzero(self.full_beta)
        if len(begun):
            products(source, self.full_F, np.arange(source.n), begun, self.full_beta[begun], n_jobs)
        self.best, self.since = np.inf, 0
        self.active: np.ndarray | None = None
        self.aside: list[tuple[np.ndarray, np.ndarray]] = []
        self._activate_all()

    def _reserve(self, room: int) -> None:
        """Set up memory for kernel values: rows, where they are dear, and a Gram matrix."""
        n, dtype, dear = self.full_source.n, self.full_source.dtype, self.full_source.dear
        self.whole: np.ndarray | None = None
        few = n <= _WHOLE
        least = (_WORKING[1] * 4 // dtype.itemsize) ** 2
        self.buffer = np.empty(min(room, n**2) if dear and not few else 0, dtype)
        self.gram = GrowingGram(0 if few else min(least if dear else max(least, room), n**2), dtype, self.n_jobs)

    # Active variables

    def _activate_all(self) -> None:
        self.active, self.aside = None, []
        stuck = np.zeros(self.full_source.n, np.int64)
        self._use(self.full_source, self.full_problem, self.full_beta, self.full_F, stuck)

    def _use(self, source: Tiles, problem: Problem, beta: np.ndarray, F: np.ndarray, stuck: np.ndarray) -> None:
        self.source, self.problem, self.beta, self.F, self.stuck = source, problem, beta, F, stuck
        self.rise, self.fall = np.empty(source.n), np.empty(source.n)
        self.rows = KernelRows(source, self.buffer, self.n_jobs)

    def _set_aside(self, gone: np.ndarray) -> None:
        """Leave out the variables marked in `gone`; remember beta, to know later what changed since."""
        ids = np.arange(self.full_source.n) if self.active is None else self.active
        self.full_beta[ids], self.full_F[ids] = self.beta, self.F
        self.aside.append((ids[gone], self.full_beta.copy()))
        kept = ~gone
        self.active = ids[kept]
        self.gram.members = (np.cumsum(kept) - 1)[self.gram.members]
        source = self.full_source.take(self.active)
        self._use(source, self.problem.take(kept), self.beta[kept], self.F[kept], self.stuck[kept])

    def bring_back(self) -> bool:
        """Activate all variables, with K beta brought up to date; tell whether any had been set aside."""
        if self.active is None:
            return False
        self.full_beta[self.active], self.full_F[self.active] = self.beta, self.F
        for ids, before in self.aside:
            moved = np.flatnonzero(self.full_beta != before)
            self.kernel_rows += len(moved)
            if len(moved):
                change = self.full_beta[moved] - before[moved]
                products(self.full_source, self.full_F, ids, moved, change, self.n_jobs)
        self.gram.members = self.active[self.gram.members]
        self._activate_all()
        return True

    # One round

    def optimal(self, tol: float) -> bool:
        self.update_violation()
        if self.violation <= tol and self.bring_back():
            self.update_violation()
        return self.violation <= tol

    def snapshot(self, status: str = "running") -> Solution:
        """Return the solution so far; K beta of variables set aside is as old as they are."""
        beta, F = self.full_beta.copy(), self.full_F.copy()
        if self.active is not None:
            beta[self.active], F[self.active] = self.beta, self.F
        size = self.problem.eps * float(np.abs(beta).sum())
        objective = float(0.5 * beta @ F - self.full_problem.v @ beta) + size
        return Solution(beta, F, objective, self.violation, self.rounds, self.steps, self.kernel_rows, status)

    def stalled(self) -> bool:
        """Tell whether the violation, small already, has not improved for many rounds: only rounding is
        left."""
        if self.violation < self.best:
            self.best, self.since = self.violation, self.rounds
        small = 1e-6 * (1.0 + float(np.abs(self.F).max(initial=0.0)))
        return self.rounds - self.since > _STALL and self.violation <= small

    def round(self, tol: float, limit: float) -> None:
        self.rounds += 1
        if self.full_source.n <= _WHOLE:
            self._round_of_all(tol, limit)
            return
        self._shrink()
        self.gram.hold(self.source, self.choose(*self._size()))
        members = self.gram.members
        part = self.problem.take(members)
        inside = DualState(part, self.beta[members], self.F[members], self.random)
        aim, most = max(_AIM * self.violation, 0.5 * tol), min(_STEPS * len(members), limit - self.steps)
        self.steps += descend(self.gram.small, self.gram.values, inside, aim, most, self.n_jobs)
        change = inside.beta - self.beta[members]
        self.beta[members] = inside.beta
        self._update(members, change, inside)

    def _round_of_all(self, tol: float, limit: float) -> None:
        """Optimise all variables at once."""
        n = self.source.n
        everything = np.argsort(self.problem.group, kind="stable")
        if self.whole is None:
            self.whole = fill_gram(self.source, everything, np.empty(n**2, self.source.dtype), self.n_jobs)
            self.kernel_rows += n
        most = int(min(max(n // 2, 20), limit - self.steps))
        made, change = self.pair_steps(everything, self.whole, 0.5 * tol, most)
        self.steps += made
        moved = change != 0
        self.F[everything] += self.whole[:, moved] @ change[moved]

    def _update(self, members: np.ndarray, change: np.ndarray, inside: DualState) -> None:
        """Add K change to F."""
        moved = change != 0
        if self.source.dear:
            self.rows.computed = 0
            self.rows.add(self.F, members[moved], change[moved], inside.is_free(moved))
            self.kernel_rows += self.rows.computed
            return
        self.F[members] = inside.F
        others = np.setdiff1d(np.arange(self.source.n), members, assume_unique=True)
        products(self.source, self.F, others, members[moved], change[moved], self.n_jobs)
        self.kernel_rows += int(moved.sum())

    def _size(self) -> tuple[int, np.ndarray]:
        """Return the size of a working set and the free variables in it: as many violators as are free."""
        free, most = np.flatnonzero(self.is_free()), self.gram.most
        size = min(len(free) + max(len(free), _WORKING[0]), most)
        if len(free) > 0.75 * most:
            free = self.random.choice(free, most // 2, replace=False)
        return size, free

    def _shrink(self) -> None:
        """Set aside variables that for some rounds were at a bound and on the right side of every possible
        pair."""
        high, low = self.high[self.problem.group], self.low[self.problem.group]
        still = ((self.up < low) & np.isinf(self.fall)) | ((self.down > high) & np.isinf(self.rise))
        self.stuck = np.where(still, self.stuck + 1, 0)
        if not self.shrinking or self.rounds % _PATIENCE or self.source.n <= 2 * _WORKING[0]:
            return
        gone = self.stuck >= _PATIENCE
        gone[self.gram.members] = False
        if gone.sum() > 0.2 * self.source.n and not gone.all():
            self._set_aside(gone)
            self.update_violation()

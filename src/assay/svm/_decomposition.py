"""The support vector solver: many pairs per round, kernel rows in blocks, columns that cannot move set aside.

    minimise over beta   1/2 beta' K beta - v' beta + eps |beta|_1    subject to  group sums of beta kept,
    lo <= beta <= hi

A round draws a working set among the variables that violate optimality, with probability in proportion to the
violation (the worst alone are so alike that correcting some overshoots the others), optimises it alone by pair steps
on its small Gram block, computes the kernel rows of what moved (BLAS and compiled transforms on all cores) and updates
K beta. The more variables are free, the larger the working set. Variables at a bound that would stay there are left out
of the rounds (shrinking); what their rows missed is added when they come back, before the end at the latest.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from assay.kernels._tiles import Tiles
from assay.scan import thread_map
from assay.svm._kernel_rows import KernelRows, cache_floats, products

_LOOK = 256  # rows of a tile of the working set's Gram matrix
_WORKING = (
    2048,
    6144,
)  # least and most (in single precision) variables of a working set, in between as many as are free
_WHOLE = 1500  # variables up to which the whole problem is one working set
_STEPS = 20  # pair steps of a round, at most, for each variable of its working set
_AIM = 0.07  # share of the violation to which a working set is solved
_OVERLAP = 0.15  # share of the variables from which products inside a working set are taken from its Gram matrix
_STALL = 50  # rounds without progress near the optimum after which only rounding is left
_PATIENCE = 2  # rounds for which a variable must have been stuck before it is set aside


class Problem(NamedTuple):
    """v, lo, hi, eps of the objective, a feasible start, and the group of each variable (one group:
    zeros)."""

    v: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    eps: float
    start: np.ndarray
    group: np.ndarray

    def take(self, index: np.ndarray) -> "Problem":
        v, lo, hi, eps, start, group = self
        return Problem(v[index], lo[index], hi[index], eps, start[index], group[index])


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
            run.look()
            if tell is not None and tell(run.snapshot()):
                status = "interrupted"
                break
    except KeyboardInterrupt:
        status = "interrupted"
    run.bring_back()
    run.look()
    return run.snapshot(status)


class _Run:
    """State of one solve. Arrays named without `full_` belong to the active variables."""

    shrinking = True

    def __init__(self, source: Tiles, problem: Problem, cache: float | str, seed: int, n_jobs: int | None) -> None:
        from assay.svm import _smo

        self.loops, self.n_jobs = _smo, n_jobs
        self.full_source, self.full_problem = source, problem
        self.full_beta = np.array(problem.start, dtype=np.float64)
        self.full_F = np.zeros(source.n)
        self.random = np.random.default_rng(seed)
        self.rounds = self.steps = self.kernel_rows = 0
        self.working = min(_WORKING[0], source.n) if source.n > _WHOLE else source.n
        room = min(cache_floats(cache, source.dtype.itemsize), source.n**2)
        self.buffer = np.empty(room if source.n > _WHOLE else 0, source.dtype)
        self.gram = np.empty(0, source.dtype)
        begun = np.flatnonzero(self.full_beta)
        if len(begun):
            products(source, self.full_F, np.arange(source.n), begun, self.full_beta[begun], n_jobs)
        self.whole: np.ndarray | None = None
        self.best, self.since = np.inf, 0
        self._activate_all()

    # Active variables

    def _activate_all(self) -> None:
        self.active: np.ndarray | None = None
        self.aside: list[tuple[np.ndarray, np.ndarray]] = []
        self._use(
            self.full_source,
            self.full_problem,
            self.full_beta,
            self.full_F,
            np.zeros(self.full_source.n, np.int64),
        )

    def _use(self, source: Tiles, problem: Problem, beta: np.ndarray, F: np.ndarray, stuck: np.ndarray) -> None:
        self.source, self.problem, self.beta, self.F, self.stuck = source, problem, beta, F, stuck
        self.rise, self.fall = np.empty(source.n), np.empty(source.n)
        self.rows = KernelRows(source, self.buffer, self.n_jobs)
        self.free = np.empty(0, np.int64)

    def _set_aside(self, gone: np.ndarray) -> None:
        """Leave out the variables marked in `gone`; remember beta, to know later what changed since."""
        ids = np.arange(self.full_source.n) if self.active is None else self.active
        self.full_beta[ids], self.full_F[ids] = self.beta, self.F
        self.aside.append((ids[gone], self.full_beta.copy()))
        kept = ~gone
        self.active = ids[kept]
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
        self._activate_all()
        return True

    # One round

    def look(self) -> None:
        """Measure how far each variable, and each group, is from optimal."""
        e = self.problem.v - self.F
        self.loops.offsets(self.beta, self.problem.lo, self.problem.hi, self.problem.eps, self.rise, self.fall)
        self.e, self.up, self.down = e, e + self.rise, e + self.fall
        self.violation = 0.0
        self.high, self.low = np.full(2, -np.inf), np.full(2, np.inf)
        for g in (0, 1):
            members = self.problem.group == g
            if members.any():
                self.high[g], self.low[g] = self.up[members].max(), self.down[members].min()
                self.violation = max(self.violation, float(self.high[g] - self.low[g]))

    def optimal(self, tol: float) -> bool:
        self.look()
        if self.violation <= tol and self.bring_back():
            self.look()
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
        self._shrink()
        working = self._choose()
        working = working[np.argsort(self.problem.group[working], kind="stable")]
        part = self.problem.take(working)
        gram = self._gram(working)
        local, old = self.beta[working], self.beta[working].copy()
        ends = np.searchsorted(part.group, [0, 1, 2])
        whole = len(working) == self.source.n
        most = int(min(max(len(working) // 2, 20) if whole else _STEPS * len(working), limit - self.steps))
        aim = 0.5 * tol if whole else max(_AIM * self.violation, 0.5 * tol)
        made, _ = self.loops.pair_steps(
            gram, self.e[working].astype(gram.dtype), local, part.lo, part.hi, part.eps, ends, aim, most,
            self.loops.ordering(gram.dtype),
        )  # fmt: skip
        self.steps += made
        self.rounds += 1
        self.beta[working] = local
        free = (local > part.lo) & (local < part.hi)
        self._update(working, local - old, free, gram)
        self.free = working[free]

    def _gram(self, working: np.ndarray) -> np.ndarray:
        """Return the Gram matrix of the working set; the memory is used again in the next round."""
        if self.whole is not None and len(working) == self.source.n == len(self.whole):
            return self.whole
        small = self.source.take(working)
        q = len(working)
        if len(self.gram) < q * q:
            self.gram = np.empty(q * q, self.source.dtype)
        gram = self.gram[: q * q].reshape(q, q)

        thread_map(
            lambda k: small.fill(np.arange(k, min(k + _LOOK, q)), 0, q, gram[k : k + _LOOK]),
            range(0, q, _LOOK),
            n_jobs=self.n_jobs,
        )
        if q == self.full_source.n:
            self.whole = gram
            self.kernel_rows += q
        return gram

    def _update(self, working: np.ndarray, change: np.ndarray, free: np.ndarray, gram: np.ndarray) -> None:
        """Add K change to F."""
        moved = change != 0
        if self.whole is not None:
            self.F[working] += gram[:, moved] @ change[moved]
        elif self.source.dear or len(working) < _OVERLAP * self.source.n:
            self.rows.computed = 0
            self.rows.add(self.F, working[moved], change[moved], free[moved] & self.source.dear)
            self.kernel_rows += self.rows.computed
        else:
            weights = change.astype(gram.dtype)
            starts = range(0, len(working), _LOOK)
            inside = thread_map(lambda k: gram[k : k + _LOOK] @ weights, starts, n_jobs=self.n_jobs)
            self.F[working] += np.concatenate(inside)
            others = np.setdiff1d(np.arange(self.source.n), working, assume_unique=True)
            products(self.source, self.F, others, working[moved], change[moved], self.n_jobs)
            self.kernel_rows += int(moved.sum())

    def _shrink(self) -> None:
        """Set aside variables that for some rounds were at a bound and on the right side of every possible
        pair."""
        high, low = self.high[self.problem.group], self.low[self.problem.group]
        still = ((self.up < low) & np.isinf(self.fall)) | ((self.down > high) & np.isinf(self.rise))
        self.stuck = np.where(still, self.stuck + 1, 0)
        if not self.shrinking or self.rounds % _PATIENCE or self.source.n <= 2 * _WORKING[0]:
            return
        gone = self.stuck >= _PATIENCE
        if gone.sum() > 0.2 * self.source.n and not gone.all():
            self._set_aside(gone)
            self.look()

    def _choose(self) -> np.ndarray:
        """Draw a working set: what was free in the last round, and violators of each group, up and down."""
        n, q = self.source.n, self._size()
        if q >= n:
            return np.arange(n)
        chosen = np.zeros(n, bool)
        chosen[self.free[: q // 4]] = True
        ends = np.where(np.isfinite(self.high) & np.isfinite(self.low), [self.high, self.low], 0.0)
        middle = ends.mean(axis=0)[self.problem.group]
        groups = [g for g in (0, 1) if self.high[g] - self.low[g] > 0]
        share = (q - int(chosen.sum())) // (2 * len(groups))
        for g in groups:
            for amount in (self.up - middle, middle - self.down):
                chosen[self._draw((amount > 0) & ~chosen & (self.problem.group == g), amount, share)] = True
        return np.flatnonzero(chosen)

    def _size(self) -> int:
        """Return the size of a working set: coupled free variables are better moved together, as far as a Gram matrix
        is affordable."""
        if self.working < _WORKING[0]:
            return self.working
        free = np.count_nonzero((self.beta > self.problem.lo) & (self.beta < self.problem.hi))
        least, most = _WORKING
        return int(np.clip(free, least, most * 4 // self.source.dtype.itemsize))

    def _draw(self, allowed: np.ndarray, weight: np.ndarray, size: int) -> np.ndarray:
        """Return at most `size` of the allowed variables, without replacement, with probabilities like
        their weights."""
        candidates = np.flatnonzero(allowed)
        if len(candidates) <= size:
            return candidates
        key = self.random.standard_exponential(len(candidates)) / weight[candidates]
        return candidates[np.argpartition(key, size)[:size]]

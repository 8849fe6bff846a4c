"""The support vector solver: many pairs per round, kernel rows in blocks, columns that cannot move set aside.

    minimise over beta   1/2 beta' K beta - v' beta + eps |beta|_1    subject to  group sums of beta kept,
    lo <= beta <= hi

A round draws a working set among the variables that violate optimality, with probability in proportion to
the violation
(the worst alone are so alike that correcting some overshoots the others), optimises it alone by pair steps
on its small
Gram block, computes the kernel rows of what moved (BLAS and compiled transforms on all cores) and updates
K beta.
Kernel rows are kept in a ring of slots. Variables at a bound that would stay there are left out of the
rounds (shrinking);
what their rows missed is added when they come back, before the end at the latest.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from assay.kernels._tiles import Tiles
from assay.scan import thread_map

_COLUMNS = 2048  # columns of a tile
_LOOK = 256  # rows of a tile
_WORKING = 2048  # variables of a working set
_WHOLE = 1500  # variables up to which the whole problem is one working set
_STEPS = 20  # pair steps of a round, at most, for each variable of its working set
_STALL = 50  # rounds without progress near the optimum after which only rounding is left
_PATIENCE = 4  # rounds for which a variable must have been stuck before it is set aside


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


def cache_floats(megabytes: float | str, itemsize: int) -> int:
    """Return how many kernel values may be kept: `megabytes`, or with "auto" 30 % of the free memory, at
    most 500 MB."""
    if megabytes == "auto":
        try:
            free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            free = 2_000_000_000
        return int(min(5e8, max(0.3 * free, 1e8))) // itemsize
    return int(float(megabytes) * 1e6) // itemsize


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


def products(
    source: Tiles, F: np.ndarray, rows: np.ndarray, moved: np.ndarray, change: np.ndarray, n_jobs: int | None
) -> None:
    """Add sum_m change_m kappa(x_m, x_r) to F[r] for r in `rows`; tile by tile, nothing is kept."""
    together = source.take(np.concatenate([moved, rows]))
    k = len(moved)

    def add(first: int) -> None:
        last = min(first + _COLUMNS, together.n)
        tile = np.empty((min(_LOOK, k), last - first), source.dtype)
        total = np.zeros(last - first)
        for at in range(0, k, _LOOK):
            some = np.arange(at, min(at + _LOOK, k))
            together.fill(some, first, last, tile[: len(some)])
            total += change[some].astype(source.dtype) @ tile[: len(some)]
        F[rows[first - k : last - k]] += total

    thread_map(add, range(k, together.n, _COLUMNS), n_jobs=n_jobs)


class _Ring:
    """Kernel rows of the active columns, in slots that are reused in turn.

    Fresh memory is dearer than a kernel row, so the ring starts small and doubles, as far as the buffer
    allows, when rows
    that it has lost are asked for again.
    """

    def __init__(self, source: Tiles, buffer: np.ndarray) -> None:
        self.source, self.buffer = source, buffer
        self.most = max(1, min(len(buffer) // source.n, source.n))
        self.slot = np.full(source.n, -1)
        self.known = np.zeros(source.n, bool)
        self.holder = np.empty(0, np.int64)
        self.next = self.again = 0
        self._extend(min(self.most, 2 * _WORKING))

    def _extend(self, slots: int) -> None:
        self.holder = np.concatenate([self.holder, np.full(slots - len(self.holder), -1)])
        self.rows = self.buffer[: slots * self.source.n].reshape(slots, self.source.n)
        self.slots, self.again = slots, 0

    def _grow(self, missing: np.ndarray) -> None:
        self.again += int(self.known[missing].sum())
        self.known[missing] = True
        if self.again > self.slots // 4 and self.slots < self.most:
            self.next = self.slots
            self._extend(min(2 * self.slots, self.most))

    def place(self, wanted: np.ndarray) -> list[tuple[np.ndarray, int]]:
        """Give each wanted row a slot; return what must be computed as runs (rows, first slot) of
        consecutive slots."""
        missing = wanted[self.slot[wanted] < 0]
        if len(missing) == 0:
            return []
        self._grow(missing)
        while True:  # a wanted row whose slot is needed is computed anew
            target = (self.next + np.arange(len(missing))) % self.slots
            losers = self.holder[target]
            losers = losers[losers >= 0]
            losers = losers[self.slot[losers] >= 0]
            self.slot[losers] = -1
            again = np.intersect1d(losers, wanted)
            if len(again) == 0:
                break
            missing = np.concatenate([missing, again])
        self.holder[target], self.slot[missing] = missing, target
        self.next = int(target[-1] + 1) % self.slots
        fits = self.slots - int(target[0])
        parts = [(missing[:fits], int(target[0])), (missing[fits:], 0)]
        return [(rows[k : k + _LOOK], at + k) for rows, at in parts for k in range(0, len(rows), _LOOK)]


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
        self.working = min(_WORKING, source.n) if source.n > _WHOLE else source.n
        room = cache_floats(cache, source.dtype.itemsize)
        needed = min(max(room, 2 * self.working * source.n), source.n**2)
        self.buffer = np.empty(needed if source.n > _WHOLE else 0, source.dtype)
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
        self.ring = _Ring(source, self.buffer) if len(self.buffer) else None
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
        keys = np.empty((3, len(working)), gram.dtype)
        order = keys.view(np.int32 if gram.dtype == np.float32 else np.int64)
        whole = len(working) == self.source.n
        most = int(min(max(len(working) // 2, 20) if whole else _STEPS * len(working), limit - self.steps))
        aim = 0.5 * tol if whole else max(0.1 * self.violation, 0.5 * tol)
        made, _ = self.loops.pair_steps(
            gram, self.e[working].astype(gram.dtype), local, part.lo, part.hi, part.eps, ends, aim, most,
            keys, order, 8 * gram.dtype.itemsize - 1,
        )  # fmt: skip
        self.steps += made
        self.rounds += 1
        self.beta[working] = local
        self._update(working, local - old, gram)
        self.free = working[(local > part.lo) & (local < part.hi)]

    def _gram(self, working: np.ndarray) -> np.ndarray:
        if self.whole is not None and len(working) == self.source.n == len(self.whole):
            return self.whole
        small = self.source.take(working)
        q = len(working)
        gram = np.empty((q, q), self.source.dtype)
        parts = range(0, q, _LOOK)
        thread_map(
            lambda k: small.fill(np.arange(k, min(k + _LOOK, q)), 0, q, gram[k : k + _LOOK]),
            parts,
            n_jobs=self.n_jobs,
        )
        if q == self.full_source.n:
            self.whole = gram
        self.kernel_rows += q if q == self.full_source.n else 0
        return gram

    def _update(self, working: np.ndarray, change: np.ndarray, gram: np.ndarray) -> None:
        """Add K change to F."""
        moved = change != 0
        ring = self.ring
        if ring is None:
            self.F[working] += gram[:, moved] @ change[moved]
            return
        rows = working[moved]
        runs = ring.place(rows)
        self.kernel_rows += sum(len(some) for some, _ in runs)
        slots, weights = ring.slot[rows], change[moved].astype(self.source.dtype)

        def columns(first: int) -> None:
            last = min(first + _COLUMNS, self.source.n)
            for some, at in runs:
                self.source.fill(some, first, last, ring.rows[at : at + len(some), first:last])
            self.loops.add_rows(self.F, ring.rows, slots, weights, first, last)

        thread_map(columns, range(0, self.source.n, _COLUMNS), n_jobs=self.n_jobs)

    def _shrink(self) -> None:
        """Set aside variables that for some rounds were at a bound and on the right side of every possible
        pair."""
        high, low = self.high[self.problem.group], self.low[self.problem.group]
        still = ((self.up < low) & np.isinf(self.fall)) | ((self.down > high) & np.isinf(self.rise))
        self.stuck = np.where(still, self.stuck + 1, 0)
        if not self.shrinking or self.rounds % _PATIENCE or self.source.n <= 2 * self.working:
            return
        gone = self.stuck >= _PATIENCE
        if gone.sum() > 0.2 * self.source.n and not gone.all():
            self._set_aside(gone)
            self.look()

    def _choose(self) -> np.ndarray:
        """Draw a working set: what was free in the last round, and violators of each group, up and down."""
        n, q = self.source.n, min(self.working, self.ring.slots if self.ring else self.working)
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

    def _draw(self, allowed: np.ndarray, weight: np.ndarray, size: int) -> np.ndarray:
        """Return at most `size` of the allowed variables, without replacement, with probabilities like
        their weights."""
        candidates = np.flatnonzero(allowed)
        if len(candidates) <= size:
            return candidates
        key = self.random.standard_exponential(len(candidates)) / weight[candidates]
        return candidates[np.argpartition(key, size)[:size]]

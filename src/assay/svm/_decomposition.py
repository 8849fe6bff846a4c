"""The support vector solver: many pairs per round, kernel rows in blocks, columns that cannot move set aside.

    minimise over beta   1/2 beta' K beta - v' beta + eps |beta|_1    subject to  group sums of beta kept,
    lo <= beta <= hi

A round takes the free variables and some that violate optimality, optimises them alone on their Gram matrix,
computes the kernel rows of what moved (BLAS and compiled transforms on all cores) and updates K beta.
The Gram matrix is kept for the next round and grows with the set of free variables, as far as memory allows.
Variables at a bound that would stay there are left out of the rounds (shrinking); what their rows missed is added when
they come back, before the end at the latest.

Working sets are drawn among the variables that violate optimality, with probability in proportion to the violation:
the worst alone are so alike that correcting some overshoots the others.

K change is added to K beta tile by tile. A tile fits the cache of a core: it is computed, used and, if its rows are
likely to be wanted again, written to memory. Reading a kept row back is faster than computing it, but writing it costs
as much as computing it, so only the rows of variables that are free to move again are kept, for as long as there is
room; none is ever thrown out for another.
"""

from collections.abc import Callable
from math import isqrt
from typing import NamedTuple

import numpy as np

from assay.kernels._tiles import MatrixTiles, Tiles
from assay.scan import thread_map

_WORKING = (2048, 6144)  # least variables of a working set, and most (in single precision) that need no cache
_WHOLE = 1500  # variables up to which the whole problem is one working set
_GROWTH = 8  # share of the steps made so far that a round of the whole problem may make: many steps, few rounds
_LONGEST = 100  # steps of such a round for each variable, at most: a round hears no Ctrl-C
_STEPS = 20  # pair steps of a round, at most, for each variable of its working set
_AIM = 0.2  # share of the violation to which a working set is solved
_STALL = 50  # rounds without progress near the optimum after which only rounding is left
_PATIENCE = 2  # rounds for which a variable must have been stuck before it is set aside
_SMALL = 768  # variables of a working set within a stored Gram matrix
_WORKING_TILE = _SMALL // 2  # rows of a Gram matrix that a thread computes at once
_DEPTH = 0.15  # share of the violation to which a working set is solved
_GRAM_TILE = (256, 1024)  # rows and columns that a thread computes at once
_ROW_LENGTH = 1.08  # row length, in variables at the start: fresh memory is dear
_STALE = 0.5  # share of variables nobody wants from which the matrix is begun anew
_PRODUCT_TILE = (512, 256)  # rows and columns
_STRIP = 4096  # columns of kept rows that are added together
_AUTO = 1500.0  # megabytes; fixed, because the size of working sets, and so the bits of a model, follow from it


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


class DualState:
    """beta, F = K beta and, after `update_violation`, how far each variable and each group is from optimal."""

    def __init__(self, problem: Problem, beta: np.ndarray, F: np.ndarray, random: np.random.Generator) -> None:
        from assay.svm import _smo

        self.loops, self.random = _smo, random
        self.problem, self.beta, self.F = problem, beta, F
        self.rise, self.fall = np.empty(len(beta)), np.empty(len(beta))

    def update_violation(self) -> None:
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

    def is_free(self, some: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Tell which variables are at no bound and no kink."""
        beta = self.beta[some]
        return (beta > self.problem.lo[some]) & (beta < self.problem.hi[some]) & (beta != 0)

    def choose(self, size: int, first: np.ndarray) -> np.ndarray:
        """Draw a working set: `first`, and violators of each group, up and down; sorted by group."""
        n, group = len(self.beta), self.problem.group
        chosen = np.zeros(n, bool)
        chosen[first if size < n else slice(None)] = True
        ends = np.where(np.isfinite(self.high) & np.isfinite(self.low), [self.high, self.low], 0.0)
        middle = ends.mean(axis=0)[group]
        groups = [g for g in (0, 1) if self.high[g] - self.low[g] > 0]
        share = (size - int(chosen.sum())) // (2 * len(groups))
        for g in groups:
            for amount in (self.up - middle, middle - self.down):
                chosen[self._draw((amount > 0) & ~chosen & (group == g), amount, share)] = True
        working = np.flatnonzero(chosen)
        return working[np.argsort(group[working], kind="stable")]

    def _draw(self, allowed: np.ndarray, weight: np.ndarray, size: int) -> np.ndarray:
        """Return at most `size` of the allowed variables, without replacement, with probabilities like
        their weights."""
        candidates = np.flatnonzero(allowed)
        if len(candidates) <= size:
            return candidates
        key = self.random.standard_exponential(len(candidates)) / weight[candidates]
        return candidates[np.argpartition(key, size)[:size]]

    def pair_steps(self, working: np.ndarray, gram: np.ndarray, aim: float, most: int) -> tuple[int, np.ndarray]:
        """Optimise the working set (sorted by group) alone, given its Gram matrix; return steps and change of beta.

        F is left as it was.
        """
        part = self.problem.take(working)
        local, old = self.beta[working], self.beta[working]
        ends = np.searchsorted(part.group, [0, 1, 2])
        made, _ = self.loops.pair_steps(
            gram, self.e[working].astype(gram.dtype), local, part.lo, part.hi, part.eps, ends, aim, most,
            self.loops.ordering(gram.dtype),
        )  # fmt: skip
        self.beta[working] = local
        return made, local - old


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
        most = int(min(max(n // 2, 20, min(self.steps // _GROWTH, _LONGEST * n)), limit - self.steps))
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


def fill_gram(source: Tiles, working: np.ndarray, out: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Write the Gram matrix of the working set to the front of `out`; return it."""
    q = len(working)
    gram, small = out[: q * q].reshape(q, q), source.take(working)
    thread_map(
        lambda k: small.fill(np.arange(k, min(k + _WORKING_TILE, q)), 0, q, gram[k : k + _WORKING_TILE]),
        range(0, q, _WORKING_TILE),
        n_jobs=n_jobs,
    )
    return gram


def descend(source: Tiles, gram: np.ndarray, at: DualState, aim: float, most: float, n_jobs: int | None) -> int:
    """Move to a violation of `aim` by pair steps on one small working set after another; return the steps made.

    source : kernel values of the variables of `at`; gram : (n, >= n) the same values, stored.
    A step on few variables costs little. The small Gram matrices are computed: scattered reads cost more.
    """
    out = np.empty(_SMALL**2, gram.dtype)
    steps, last = 0, np.empty(0, np.int64)
    at.update_violation()
    while at.violation > aim and steps < most:
        working = at.choose(_SMALL, last)
        depth = max(_DEPTH * at.violation, 0.5 * aim)
        made, change = at.pair_steps(working, fill_gram(source, working, out, n_jobs), depth, _STEPS * _SMALL)
        moved = change != 0
        add_rows(at.F, gram, working[moved], change[moved], n_jobs)
        last = working[at.is_free(working)][: _SMALL // 4]
        steps += made
        at.update_violation()
    return steps


class GrowingGram:
    """Kernel values among `members`: values[i, j] = kappa of members i and j.

    values (members, row length) has longer rows than it needs, so that members can be added where it is.
    """

    def __init__(self, room: int, dtype: np.dtype, n_jobs: int | None) -> None:
        self.buffer, self.most, self.n_jobs = np.empty(room, dtype), isqrt(room), n_jobs
        self.forget()

    def forget(self) -> None:
        self.members, self.length = np.empty(0, np.int64), 0

    def hold(self, source: Tiles, wanted: np.ndarray) -> None:
        """Make the wanted variables members (at most `most`), with their kernel values; `small` are their tiles."""
        isin = np.isin(wanted, self.members, assume_unique=True)
        new = wanted[~isin]
        stale = len(self.members) - isin.sum()
        if len(self.members) + len(new) > self.length or stale > _STALE * len(self.members):
            new, self.members = wanted, wanted[:0]
            self.length = min(self.most, int(_ROW_LENGTH * len(wanted)))
        old = len(self.members)
        self.members = np.concatenate([self.members, new])
        self.values = self.buffer[: len(self.members) * self.length].reshape(-1, self.length)
        self.small = source.take(self.members)
        self._fill(old)

    def _fill(self, old: int) -> None:
        """Compute the values of all pairs of members but the first `old` among themselves."""
        n, (height, width) = len(self.members), _GRAM_TILE

        def fill(corner: tuple[int, int]) -> None:
            row, column = corner
            rows = np.arange(row, min(row + height, n if row >= old else old))
            stop = min(column + width, n)
            tile = np.empty((len(rows), stop - column), self.values.dtype)
            self.small.fill(rows, column, stop, tile)
            self.values[rows[0] : rows[-1] + 1, column:stop] = tile

        corners = [(r, c) for r in range(0, old, height) for c in range(old, n, width)]
        corners += [(r, c) for r in range(old, n, height) for c in range(0, n, width)]
        thread_map(fill, corners, n_jobs=self.n_jobs)


def cache_floats(megabytes: float | str, itemsize: int) -> int:
    """Return how many kernel values may be kept: `megabytes`, or with "auto" 1500 of them."""
    return int(1e6 * (_AUTO if megabytes == "auto" else float(megabytes))) // itemsize


class KernelRows:
    """Rows of the kernel matrix of `source`, of which some are kept in `buffer` (all, if it is a matrix already);
    `computed` counts the others."""

    def __init__(self, source: Tiles, buffer: np.ndarray, n_jobs: int | None) -> None:
        self.source, self.n_jobs = source, n_jobs
        self.most = min(len(buffer) // max(source.n, 1), source.n)
        self.rows = buffer[: self.most * source.n].reshape(self.most, source.n)
        self.slot = np.full(source.n, -1)
        self.kept = self.computed = 0
        if isinstance(source, MatrixTiles):
            self.rows, self.slot = source.gram, np.arange(source.n)

    def add(self, F: np.ndarray, moved: np.ndarray, change: np.ndarray, again: np.ndarray) -> None:
        """Add sum_m change_m K[m] to F; `again` marks the rows that are worth keeping."""
        known = self.slot[moved] >= 0
        if known.any():
            add_rows(F, self.rows, self.slot[moved[known]], change[known], self.n_jobs)
        fresh = np.flatnonzero(~known)
        fresh = fresh[np.argsort(~again[fresh], kind="stable")]
        keep = min(int(again[fresh].sum()), self.most - self.kept)
        first = self.kept
        self.slot[moved[fresh[:keep]]] = np.arange(first, first + keep)
        self.kept += keep
        self.computed += len(fresh)
        add_products(self.source, F, moved[fresh], change[fresh], self.n_jobs, keep=self.rows[first : first + keep])


def add_rows(F: np.ndarray, rows: np.ndarray, slots: np.ndarray, change: np.ndarray, n_jobs: int | None) -> None:
    """Add sum_k change_k rows[slots_k] to F; rows may be longer than F."""
    from assay.svm import _smo

    weights, n = change.astype(rows.dtype), len(F)
    thread_map(
        lambda first: _smo.add_rows(F, rows, slots, weights, first, min(first + _STRIP, n)),
        range(0, n, _STRIP),
        n_jobs=n_jobs,
    )


def add_products(
    source: Tiles,
    F: np.ndarray,
    moved: np.ndarray,
    change: np.ndarray,
    n_jobs: int | None,
    *,
    begin: int = 0,
    keep: np.ndarray | None = None,
) -> None:
    """Add sum_m change_m kappa(x_m, x_r) to F[r] for r >= begin, and write the first len(keep) kernel rows there."""
    height, width = _PRODUCT_TILE
    weights = change.astype(source.dtype)
    kept = 0 if keep is None else len(keep)

    def add(first: int) -> None:
        last = min(first + width, source.n)
        tile = np.empty((min(height, len(moved)), last - first), source.dtype)
        for at in range(0, len(moved), height):
            some = moved[at : at + height]
            part = tile[: len(some)]
            source.fill(some, first, last, part)
            F[first:last] += weights[at : at + height] @ part
            if keep is not None and at < kept:
                keep[at : at + height, first:last] = part[: kept - at]

    if len(moved):
        thread_map(add, range(begin, source.n, width), n_jobs=n_jobs)


def products(
    source: Tiles, F: np.ndarray, rows: np.ndarray, moved: np.ndarray, change: np.ndarray, n_jobs: int | None
) -> None:
    """Add sum_m change_m kappa(x_m, x_r) to F[r] for r in `rows`."""
    together = source.take(np.concatenate([moved, rows]))
    total = np.zeros(together.n)
    k = len(moved)
    add_products(together, total, np.arange(k), change, n_jobs, begin=k)
    F[rows] += total[k:]

"""A feasible point, how far from optimal each variable is, and pair steps on some of them.

Working sets are drawn among the variables that violate optimality, with probability in proportion to the violation:
the worst alone are so alike that correcting some overshoots the others.
"""

from typing import NamedTuple

import numpy as np

from assay.kernels._tiles import Tiles
from assay.scan import thread_map
from assay.svm._kernel_rows import add_rows

_SMALL = 768  # variables of a working set within a stored Gram matrix
_TILE = _SMALL // 2  # rows of a Gram matrix that a thread computes at once
_STEPS = 20  # pair steps on a working set, at most, for each of its variables
_DEPTH = 0.15  # share of the violation to which a working set is solved


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


def fill_gram(source: Tiles, working: np.ndarray, out: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Write the Gram matrix of the working set to the front of `out`; return it."""
    q = len(working)
    gram, small = out[: q * q].reshape(q, q), source.take(working)
    thread_map(
        lambda k: small.fill(np.arange(k, min(k + _TILE, q)), 0, q, gram[k : k + _TILE]),
        range(0, q, _TILE),
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

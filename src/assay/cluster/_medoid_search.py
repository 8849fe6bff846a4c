"""The search for medoids: distances by blocks of candidates, and exchanges until none lowers the cost.

A candidate is compared with all medoids at once, in one pass over the rows, and takes the place of the best as soon as
that lowers the cost (FasterPAM, Schubert & Rousseeuw 2021). Candidates of a block are compared on threads with the
medoids as they stand, up to the first that is taken; the others are compared again. So exchanges are those of one
candidate after another, whatever the number of threads.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from assay.scan import thread_map

_KEPT = 2**26  # distances that are held at once; more are computed again in each pass
_BLOCK = 2**21  # distances of a block of candidates
_FEW = 2**17  # distances below which threads cost more than they save
_LEAST = 1e-10  # of the cost: a smaller change may be rounding


Between = Callable[[np.ndarray, np.ndarray | None], np.ndarray]
"""Gives, by their numbers, the distances of rows to others; without others, those of all rows to them, (rows, n)."""


class Distances:
    """Distances between numbered rows: stored if there are few, else computed when they are asked for."""

    def __init__(self, n: int, between: Between, n_jobs: int | None, *, stored: bool = True):
        self.n, self.between, self.n_jobs = n, between, n_jobs
        self.step = max(1, min(_BLOCK // n, n))
        self.stored: np.ndarray | None = None
        if stored and n * n <= _KEPT:
            cuts = np.array_split(np.arange(n), -(-n // self.step))
            self.stored = np.concatenate([self._computed(cut) for cut in cuts])

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Return the distances (rows, n) of all rows to some."""
        return self._computed(rows) if self.stored is None else self.stored[rows]

    def _computed(self, rows: np.ndarray) -> np.ndarray:
        if len(rows) * self.n < _FEW:
            return self.between(rows, None)
        parts = np.array_split(rows, min(len(rows), 8))
        return np.concatenate(thread_map(lambda part: self.between(part, None), parts, n_jobs=self.n_jobs))

    def to(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the distances (rows, others)."""
        return self.between(rows, others) if self.stored is None else self.stored[np.ix_(others, rows)].T


class State:
    """Medoids, and for each row its nearest and second nearest one."""

    def __init__(self, distances: Distances, medoids: np.ndarray):
        n, k = distances.n, len(medoids)
        self.distances, self.medoids = distances, np.array(medoids, dtype=np.int64)
        self.near, self.second = np.empty(n), np.empty(n)
        self.owner, self.runner = np.empty(n, np.int32), np.empty(n, np.int32)
        self._unsure = np.empty(n, np.int64)
        step = max(1, _BLOCK // k)
        for start in range(0, n, step):
            self._look(np.arange(start, min(start + step, n)))
        self._weigh()

    def _look(self, rows: np.ndarray) -> None:
        from assay.cluster._medoid_loop import two_nearest

        apart = self.distances.to(rows, self.medoids)
        two_nearest(apart, rows, self.near, self.second, self.owner, self.runner)

    def _weigh(self) -> None:
        self.cost = float(self.near.sum())
        if len(self.medoids) > 1:
            self.removal = np.bincount(self.owner, self.second - self.near, len(self.medoids))

    def changes(self, apart: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the least change of the cost that each candidate brings, and the medoid it would replace."""
        from assay.cluster._medoid_loop import best_exchanges

        if len(self.medoids) == 1:  # nobody is second
            return apart.sum(axis=1) - self.cost, np.zeros(len(apart), np.int64)
        change, slot = np.empty(len(apart)), np.empty(len(apart), np.int64)

        def compare(part: slice) -> None:
            best_exchanges(
                apart[part], self.near, self.second, self.owner, self.removal, change[part], slot[part]
            )

        if apart.size < _FEW:
            compare(slice(None))
        else:
            size = -(-len(apart) // 8)
            cuts = [slice(at, at + size) for at in range(0, len(apart), size)]
            thread_map(compare, cuts, n_jobs=self.distances.n_jobs)
        return change, slot

    def take(self, candidate: int, apart: np.ndarray, slot: int) -> None:
        """Let a candidate take the place of a medoid."""
        from assay.cluster._medoid_loop import exchange

        self.medoids[slot] = candidate
        m = exchange(apart, slot, self.near, self.second, self.owner, self.runner, self._unsure)
        if m:
            self._look(self._unsure[:m])
        self._weigh()


class Search(NamedTuple):
    """Where a search ended."""

    medoids: np.ndarray
    cost: float
    owner: np.ndarray
    n_iter: int
    n_swaps: int
    converged: bool


def descend(distances: Distances, medoids: np.ndarray, max_iter: int, log: Any, fitted: Any) -> Search:
    """Exchange medoids for candidates until no exchange lowers the cost, or `max_iter` passes over all candidates are
    made, or Ctrl-C is pressed. `fitted(state)` is what makes a learner usable as it stands."""
    state, n = State(distances, medoids), distances.n
    looked, idle, swaps = 0, 0, 0
    stop = log.step(state.cost, 0.0, **fitted(state))
    with log.keeping():
        while idle < n and looked < max_iter * n and not stop:
            start = looked % n
            rows = np.arange(start, min(start + min(distances.step, n - idle), n))
            apart, at, few = distances.of(rows), 0, 8
            while at < len(rows) and not stop:
                part = slice(at, at + few)
                change, slot = state.changes(apart[part])
                better = np.flatnonzero(change < -_LEAST * state.cost)
                if not len(better):
                    at, idle, looked = at + len(change), idle + len(change), looked + len(change)
                    few *= 2
                    continue
                first = int(better[0])
                state.take(int(rows[at + first]), apart[at + first], int(slot[first]))
                at, idle, looked, few, swaps = at + first + 1, 0, looked + first + 1, 8, swaps + 1
                stop = log.step(state.cost, -float(change[first]), **fitted(state))
    if log.stopped:  # perhaps in the middle of an exchange
        state, idle = State(distances, state.medoids), 0
    return Search(state.medoids, state.cost, state.owner, -(-looked // n), swaps, idle >= n)


def drawn_apart(distances: Distances, k: int, random: np.random.RandomState) -> np.ndarray:
    """Return k rows drawn one after another with probability proportional to the distance to the nearest row drawn so
    far; of 2 + ln k candidates a step the one that lowers the sum of these most."""
    trials, n = 2 + int(np.log(k)), distances.n
    chosen = [int(random.randint(n))]
    closest = distances.of(np.array(chosen))[0]
    while len(chosen) < k:
        until = np.cumsum(closest)
        if not until[-1] > 0:  # every row lies on one that was drawn
            rest = np.setdiff1d(np.arange(n), chosen)
            return np.append(chosen, random.choice(rest, k - len(chosen), replace=False))
        candidates = np.searchsorted(until, random.uniform(size=trials) * until[-1], side="right")
        near = np.minimum(distances.of(np.minimum(candidates, n - 1)), closest)
        best = int(near.sum(axis=1).argmin())
        chosen.append(int(min(candidates[best], n - 1)))
        closest = near[best]
    return np.array(chosen)

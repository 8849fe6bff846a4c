"""The search for prototypes of numbers and names: nearest prototypes, then means and modes, until no row moves."""

from typing import Any, NamedTuple

import numpy as np

from assay.scan import thread_map

_CHUNK = 4096  # rows of one task of a thread


class Problem:
    """The rows, numbers and names apart: levels of each column of names, and what a column has in the middle."""

    def __init__(self, X: np.ndarray, nominal: np.ndarray, gamma: float, n_jobs: int | None):
        self.X, self.nominal, self.gamma, self.n_jobs = X, nominal, gamma, n_jobs
        self.levels: dict[int, np.ndarray] = {}
        self.places: dict[int, np.ndarray] = {}
        self.middle = np.zeros(X.shape[1])
        for j in range(X.shape[1]):
            there = ~np.isnan(X[:, j])
            if nominal[j]:
                self.levels[j], place = np.unique(X[there, j], return_inverse=True)
                self.places[j] = np.full(len(X), -1)
                self.places[j][there] = place
                if there.any():
                    self.middle[j] = self.levels[j][np.bincount(place).argmax()]
            elif there.any():
                self.middle[j] = X[there, j].mean()

    def assign(self, prototypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return assigned(self.X, prototypes, self.nominal, self.gamma, self.n_jobs)

    def centred(self, labels: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return means and modes of the rows of each prototype; what no row tells stays as it was."""
        found, k = before.copy(), len(before)
        for j in range(self.X.shape[1]):
            if self.nominal[j]:
                size, there = len(self.levels[j]), self.places[j] >= 0
                if size:
                    counts = np.bincount(labels[there] * size + self.places[j][there], minlength=k * size)
                    counts = counts.reshape(k, size)
                    full = counts.any(axis=1)
                    found[full, j] = self.levels[j][counts.argmax(axis=1)][full]
                continue
            there = ~np.isnan(self.X[:, j])
            shift, counts = self.middle[j], np.bincount(labels[there], minlength=k)
            sums = np.bincount(labels[there], self.X[there, j] - shift, minlength=k)
            full = counts > 0
            found[full, j] = shift + sums[full] / counts[full]
        return found


class Found(NamedTuple):
    prototypes: np.ndarray
    labels: np.ndarray
    cost: float
    n_iter: int
    rests: bool


def descend(problem: Problem, prototypes: np.ndarray, max_iter: int, log: Any) -> Found:
    """Alternate from `prototypes` until no row moves, or Ctrl-C is pressed."""
    labels, costs = problem.assign(prototypes)
    rests, made = False, 0
    with log.keeping():
        while made < max_iter:
            labels = _filled(labels, costs, len(prototypes))
            prototypes = problem.centred(labels, prototypes)
            now, costs = problem.assign(prototypes)
            moved = int(np.sum(now != labels))
            rests, labels, made = moved == 0, now, made + 1
            if log.step(float(costs.sum()), float(moved), prototypes_=prototypes.copy()) or rests:
                break
    if log.stopped:  # perhaps between prototypes and labels
        labels, costs = problem.assign(prototypes)
    return Found(prototypes, labels, float(costs.sum()), made, rests)


def _filled(labels: np.ndarray, costs: np.ndarray, k: int) -> np.ndarray:
    """Return labels in which a prototype without rows has the row that is farthest from its own, if it is away."""
    counts = np.bincount(labels, minlength=k)
    empty = np.flatnonzero(counts == 0)
    labels = labels.copy()
    for j, i in zip(empty, np.argsort(-costs, kind="stable")):
        if costs[i] > 0 and counts[labels[i]] > 1:
            counts[labels[i]] -= 1
            labels[i], counts[j] = j, 1
    return labels


def drawn_apart(problem: Problem, k: int, random: np.random.RandomState) -> np.ndarray:
    """Return k rows drawn one after another with probability proportional to the dissimilarity to the nearest row drawn
    so far; of 2 + ln k candidates a step the one that lowers their sum most."""
    filled = np.where(np.isnan(problem.X), problem.middle, problem.X)
    chosen = [int(random.randint(len(filled)))]
    closest = problem.assign(filled[chosen])[1]
    while len(chosen) < k:
        until = np.cumsum(closest)
        if not until[-1] > 0:
            rest = np.setdiff1d(np.arange(len(filled)), chosen)
            return np.append(chosen, random.choice(rest, k - len(chosen), replace=False))
        drawn = np.searchsorted(until, random.uniform(size=2 + int(np.log(k))) * until[-1], side="right")
        drawn = np.minimum(drawn, len(filled) - 1)
        near = [np.minimum(problem.assign(filled[[i]])[1], closest) for i in drawn]
        best = int(np.argmin([one.sum() for one in near]))
        chosen.append(int(drawn[best]))
        closest = near[best]
    return np.array(chosen)


def assigned(
    X: np.ndarray, prototypes: np.ndarray, nominal: np.ndarray, gamma: float, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest prototype of each row and the dissimilarity to it."""
    from assay.cluster._mixed_loop import assign_mixed

    labels, costs = np.empty(len(X), np.int64), np.empty(len(X))

    def work(cut: slice) -> None:
        assign_mixed(X[cut], prototypes, nominal, gamma, labels[cut], costs[cut])

    thread_map(work, [slice(at, at + _CHUNK) for at in range(0, len(X), _CHUNK)], n_jobs=n_jobs)
    return labels, costs

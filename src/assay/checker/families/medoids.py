"""Rows near the closest of k medoids (k-medoids): their cost, and what one exchange could lower it by
(medoids.swap)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import UNDERFLOW, above, gamma
from assay.checker.predictors import DistanceModel
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.centroids import RISK, Centroids
from assay.claims.definitions import Definition
from assay.claims.sentences import Part, Sentence

_METRICS = ("euclidean", "cityblock", "chebyshev")
_MOST_PAIRS = 2**30  # of candidates and rows
_ENTRIES = 2**22  # distances held at once
_LEAST = 1e-120  # what the squares of a distance can lose to underflow, generously


class Medoids(DistanceModel):
    """Each row belongs to the medoid at the smallest distance."""

    clusters: int

    def to_medoids(self, X: np.ndarray) -> np.ndarray:
        """Return the distances (rows, k), each off by at most gamma(2 d + 8) of itself and _LEAST."""
        raise NotImplementedError

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.clusters

    def squared_distances(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the squared distance of each row to the nearest medoid."""
        least = self.to_medoids(X).min(axis=1)
        square, off = least * least, gamma(4 * self.columns + 24)
        low = np.where(square >= UNDERFLOW, square * (1 - off), 0.0)
        return low, above(square * (1 + off)) + UNDERFLOW


@dataclass(frozen=True)
class RowMedoids(Medoids):
    """Medoids that are rows, and one of three distances."""

    centers: np.ndarray  # (k, d)
    metric: int

    @property
    def clusters(self) -> int:  # type: ignore[override]
        return len(self.centers)

    @property
    def columns(self) -> int:
        return self.centers.shape[1]

    def to_medoids(self, X: np.ndarray) -> np.ndarray:
        if self.metric < 0:
            raise Refused("the distance of this model is not one that can be checked")
        return cdist(X, self.centers, _METRICS[self.metric])


class EuclideanMedoids(RowMedoids, Centroids):
    """Medoids that are centres as those of k-means are: what holds for any centres holds for them."""


@dataclass(frozen=True)
class NumberedMedoids(Medoids):
    """Medoids that are numbers of rows: a row of X holds its distances to all rows."""

    numbers: np.ndarray  # (k,)
    rows: int

    @property
    def columns(self) -> int:
        return self.rows

    @property
    def clusters(self) -> int:  # type: ignore[override]
        return len(self.numbers)

    def to_medoids(self, X: np.ndarray) -> np.ndarray:
        if np.any(X < 0):
            raise Rejected("a distance is negative")
        return X[:, self.numbers]


def read_rows(centers: np.ndarray, code: np.ndarray, classes: Any) -> RowMedoids:
    if centers.ndim != 2 or not centers.size:
        raise Rejected(f"cluster_centers_ has shape {centers.shape}; it must be (k, d)")
    if code.shape != (1,) or int(code[0]) not in (-1, 0, 1, 2):
        raise Rejected("distance_code_ must be one of -1, 0, 1, 2")
    return (EuclideanMedoids if int(code[0]) == 0 else RowMedoids)(centers, int(code[0]))


def read_numbers(numbers: np.ndarray, rows: np.ndarray, classes: Any) -> NumberedMedoids:
    if rows.shape != (1,) or numbers.ndim != 1 or not 1 <= len(numbers) <= int(rows[0]):
        raise Rejected("medoid_indices_ must be numbers of some of the rows")
    if len(np.unique(numbers)) < len(numbers) or numbers.min() < 0 or numbers.max() >= rows[0]:
        raise Rejected(f"medoid_indices_ must be distinct numbers from 0 to {int(rows[0]) - 1}")
    return NumberedMedoids(numbers.astype(np.int64), int(rows[0]))


class Swap(Rule):
    """medoids.swap: the distances of the rows to their nearest medoid sum to at most `cost`, every medoid is a row, and
    exchanging one medoid for one of `candidates` evenly spaced rows lowers the sum by at most `value`.

    With d1, d2 the distances of row o to its nearest and second nearest medoid and d that to a candidate, the exchange
    of medoid i changes the sum by  sum_o min(d - d1, 0) + sum over the rows of i of min(max(d, d1), d2) - d1.
    """

    def prepare(self) -> None:
        if not isinstance(self.model, Medoids):
            raise Rejected("it needs a model that is a set of medoids")
        if self.count("clusters", 1) != self.model.clusters:
            raise Rejected(f"clusters is {self.params['clusters']}; the model has {self.model.clusters}")
        self.check_rows()
        self.cost, tried = self.number("cost", zero=True), self.count("candidates", 1)
        if tried > self.rows or tried * self.rows > _MOST_PAIRS:
            raise Refused("so many candidates take too long")
        if isinstance(self.model, NumberedMedoids) and self.model.columns != self.rows:
            raise Rejected(f"there are {self.rows} rows and distances to {self.model.columns}")
        self.candidates = np.unique(np.linspace(0, self.rows - 1, tried).astype(np.int64))
        self.parts: list[np.ndarray] = []

    def block(self, view: View) -> None:
        self.parts.append(view.X.copy())
        if np.any(view.weight != 1):
            raise Rejected("it is about rows without weights")

    def measure(self) -> float:
        X = np.concatenate(self.parts)
        self._check_medoids(X)
        step = max(1, _ENTRIES // self.model.clusters)
        near, second, owner = (
            np.concatenate(part) for part in zip(*(self._two(X[i : i + step]) for i in range(0, len(X), step)))
        )
        order = np.argsort(owner, kind="stable")
        X, near, second = X[order], near[order], second[order]
        starts = np.searchsorted(owner[order], np.arange(self.model.clusters))
        filled = np.unique(owner)
        off, total = gamma(2 * len(X) + 8 * self.model.columns + 64), float(near.sum())
        if above(total * (1 + off)) + len(X) * _LEAST > self.cost:
            raise Rejected(f"cost is {self.cost:.10g}; the distances sum to {total:.10g}")
        least = np.inf
        for i in range(0, len(self.candidates), max(1, _ENTRIES // len(X))):
            self.context.clock.check()
            apart = self._apart(self.candidates[i : i + max(1, _ENTRIES // len(X))], X, order)
            gain = np.minimum(apart - near, 0.0).sum(axis=1)
            loss = np.add.reduceat(np.clip(apart, near, second) - near, starts[filled], axis=1)
            # A medoid without rows can go for nothing.
            best = loss.min(axis=1) if len(filled) == self.model.clusters else np.zeros(len(gain))
            least = min(least, float((gain + best - off * (best + 4 * total) - len(X) * _LEAST).min()))
        return float(above(max(-least, 0.0)))

    def _check_medoids(self, X: np.ndarray) -> None:
        if isinstance(self.model, NumberedMedoids):
            return
        kind = f"V{8 * X.shape[1]}"
        rows, own = (np.ascontiguousarray(part + 0.0).view(kind).ravel() for part in (X, self.model.centers))
        if not np.isin(own, rows).all():
            raise Rejected("a medoid is none of the training rows")
        self.kept = X

    def _two(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the distances to the nearest and to the second nearest medoid, and which is nearest."""
        apart = self.model.to_medoids(X)
        owner = apart.argmin(axis=1)
        at = np.arange(len(X))
        near = apart[at, owner]
        apart[at, owner] = np.inf
        return near, apart.min(axis=1), owner

    def _apart(self, numbers: np.ndarray, X: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Return the distances of all rows, in their new order, to the candidates, (candidates, rows)."""
        if isinstance(self.model, NumberedMedoids):
            return np.ascontiguousarray(X[:, numbers].T)
        return cdist(self.kept[numbers], X, _METRICS[self.model.metric])


_SWAP = Sentence(
    {
        "": "The distances of the {rows} training rows to the nearest of {clusters} medoids, which are training rows, "
        "sum to at most {cost:up10}, and exchanging one medoid for {every} training row lowers the sum by at most "
        "{value:up}.",
        "any": "any",
        "spaced": "any of {candidates} evenly spaced",
    },
    lambda value, direction, params: {"every": Part("any" if params["candidates"] == params["rows"] else "spaced")},
)


CLAIMS = {"D20/2": Definition("medoids.swap", Swap, _SWAP), "P26/1": RISK}
FAMILY = Family(
    "medoids",
    {
        "": Variant({"cluster_centers_": NUMBERS, "distance_code_": WHOLE}, read_rows, target=False),
        "pairs": Variant({"medoid_indices_": WHOLE, "n_pairs_": WHOLE}, read_numbers, target=False),
    },
    CLAIMS,
)

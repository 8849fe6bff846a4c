"""What predictors that ask stored rows share: the distance to the last bit, and votes whose ties go to the first."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.checker.numerics import gamma
from assay.checker.predictors import Predictor
from assay.checker.record import Refused


class AskedRows(Predictor):
    """Votes or means of stored rows X; `_predicted` gives them with bounds of their errors."""

    X: np.ndarray
    first_of_equals = True

    @property
    def columns(self) -> int:
        return self.X.shape[1]

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, errors = self._predicted(X)
        return values, errors if self.classes is not None else errors.max(axis=0)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self._predicted(X)[1]

    def _predicted(self, X: np.ndarray) -> tuple[Any, Any]:
        raise NotImplementedError


def power_of_gaps(gaps: np.ndarray, metric: int) -> np.ndarray:
    """Return sums of squares (metric 0), sums (1) or maxima (2) of the rows of gaps, added column by column as the
    learner does: the same bits."""
    if metric == 2:
        return gaps.max(axis=1)
    return np.add.accumulate(gaps * gaps if metric == 0 else gaps, axis=1)[:, -1]


_ENTRIES = 4_000_000  # distances that are held at once


_MOST_PAIRS = 2**26  # of a row and one that may be among its nearest, in a block


_SMALLEST = 1e-130


_GROUPS = 16


@dataclass(frozen=True)
class Near:
    """Pairs (query, stored row) that hold the nearest ones of each query, by query, power and stored row."""

    query: np.ndarray
    row: np.ndarray
    power: np.ndarray


@dataclass(frozen=True)
class StoredRows(AskedRows):
    """The k nearest of the stored rows: votes for their labels, or the mean of their targets."""

    X: np.ndarray
    y: np.ndarray  # (n,) positions of labels, or (n, targets)
    k: int
    metric: int  # 0 Euclidean, 1 Manhattan, 2 Chebyshev
    weights: int  # 0 equal, 1 inverse distances; -1, as for the metric, stands for others
    classes: tuple[str, ...] | None
    kept: dict[str, Any] = field(default_factory=dict, compare=False)

    def _check_known(self) -> None:
        if self.metric < 0 or self.weights < 0 or self.k > len(self.X):
            raise Refused("distance or weights are functions that the checker does not have, or rows are too few")

    def _predicted(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return votes or means (rows, K) and bounds of their errors."""
        self._check_known()
        row = self.nearest(X)
        weight = self._weights(X, row)
        if self.classes is not None:
            values = np.zeros((len(X), len(self.classes)))
            for j in range(self.k):
                values[np.arange(len(X)), self.y[row[:, j]]] += weight[:, j]
            return values, np.zeros_like(values)
        values = np.einsum("ij,ijt->it", weight, self.y[row]) / weight.sum(axis=1)[:, None]
        return values, np.repeat(gamma(8 * self.k + 32) * np.abs(self.y).max(axis=0)[None], len(X), axis=0)

    def _weights(self, X: np.ndarray, row: np.ndarray) -> np.ndarray:
        if not self.weights:
            return np.ones(row.shape)
        power = np.stack([self._powers(X, row[:, j]) for j in range(self.k)], axis=1)
        with np.errstate(divide="ignore"):
            weight = 1.0 / (np.sqrt(power) if self.metric == 0 else power)
        on_top = np.isinf(weight)
        return np.where(on_top.any(axis=1, keepdims=True), on_top, weight)

    def nearest(self, X: np.ndarray, own: int | None = None) -> np.ndarray:
        """Return the k nearest stored rows of each row, nearest first.

        With `own` the rows of X are the stored rows own, own + 1, ..., and none is its own neighbour.
        """
        self._check_known()
        near = self._near(X)
        query, row = near.query, near.row
        if own is not None:
            other = row != query + own
            query, row = query[other], row[other]
        return row[np.searchsorted(query, np.arange(len(X)))[:, None] + np.arange(self.k)]

    def _near(self, X: np.ndarray) -> Near:
        """Return pairs that hold the k + 1 nearest stored rows of every row; kept for the rules of one block."""
        if self.kept.get("X") is not X:
            self._check_size(X)
            step, parts, pairs = max(1, _ENTRIES // len(self._searched())), [], 0
            for i in range(0, len(X), step):
                parts.append(self._near_part(X[i : i + step], i))
                pairs += len(parts[-1][0])
                if pairs > _MOST_PAIRS:
                    raise Refused("too many rows are at nearly the same distance")
            self.kept["near"] = Near(*(np.concatenate(column) for column in zip(*parts)))
            self.kept["X"] = X
        return self.kept["near"]

    def _searched(self) -> np.ndarray:
        """Return the numbers of stored rows that can be among the nearest: the first k + 2 of equal ones."""
        if "rows" not in self.kept:
            whole = np.ascontiguousarray(self.X + 0.0).view(f"V{8 * self.columns}").ravel()
            _, group = np.unique(whole, return_inverse=True)
            order = np.argsort(group, kind="stable")
            before = np.arange(len(order)) - np.searchsorted(group[order], group[order])
            self.kept["rows"] = np.sort(order[before < self.k + 2])
            self.kept["stored"] = self.X[self.kept["rows"]]
        return self.kept["rows"]

    def _check_size(self, X: np.ndarray) -> None:
        """Refuse entries so small that squares of their differences lose digits."""
        if self.metric == 0 and any(np.any((part != 0) & (np.abs(part) < _SMALLEST)) for part in (X, self.X)):
            raise Refused("entries below 1e-130 have differences whose squares are not numbers; rescale the columns")

    def _near_part(self, X: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        power, error = self._bounded_powers(X)
        n = power.shape[1]
        want = min(self.k + 1, n)
        few = power
        if n >= 8 * _GROUPS * want:  # the k + 1 smallest of the minima of groups lie above the k + 1 smallest
            few = power[:, : n - n % _GROUPS].reshape(len(X), _GROUPS, -1).min(axis=1)
        limit = np.partition(few, want - 1, axis=1)[:, want - 1] + 2 * error
        query, place = np.nonzero(power <= limit[:, None])
        row = self.kept["rows"][place]
        exact = np.empty(len(query))
        step = max(1, _ENTRIES // self.columns)
        for i in range(0, len(query), step):
            exact[i : i + step] = self._powers(X[query[i : i + step]], row[i : i + step])
        order = np.lexsort((row, exact, query))
        return query[order] + first, row[order], exact[order]

    def _bounded_powers(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return powers (rows, stored), and a bound of the error of all those that are not above the k-th."""
        d, own_rows = self.columns, self.kept["stored"]
        if self.metric != 0:
            power = np.zeros((len(X), len(own_rows)))
            for j in range(d):
                gap = np.abs(X[:, j, None] - own_rows[None, :, j])
                power = np.maximum(power, gap) if self.metric == 2 else power + gap
            return power, gamma(2 * d + 8) * power.max(axis=1)
        if "centre" not in self.kept:
            centre = own_rows.mean(axis=0)
            stored = own_rows - centre
            self.kept["centre"] = centre, stored, np.einsum("ij,ij->i", stored, stored)
        centre, stored, squares = self.kept["centre"]
        rows = X - centre
        own = np.einsum("ij,ij->i", rows, rows)
        power = rows @ stored.T
        power *= -2.0
        power += squares
        power += own[:, None]
        return power, gamma(8 * d + 64) * (own + squares.max()) * 2

    def _powers(self, X: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Return the power of the distance between each row of X and the stored row beside it."""
        return power_of_gaps(np.abs(X - self.X[row]), self.metric)

"""Labels spread over a graph of stored rows: the checker's own graph, its predictions, and the fixed point
(graph.fixed-point)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array

from assay.checker.numerics import above, gamma
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.stored_rows import StoredRows

_CELLS = 500_000  # weights held at a time
_LEAST = 1e-300  # weights below are 0
_SMALL = 1e-280  # sums of weights below may lack some that rounding put below the least


@dataclass(frozen=True)
class Spread(StoredRows):
    """The sum of the distributions of the k nearest stored rows, or, where k is 0, the mean of all of them with weights
    exp(-sharpness |x - v|^2); the largest entry decides. A distribution is a row of F divided by its sum, 0 if that
    is 0."""

    F: np.ndarray = None  # type: ignore[assignment]
    labels: np.ndarray = None  # type: ignore[assignment]
    alpha: float = 0.0
    sharpness: float = 0.0

    @property
    def shares(self) -> np.ndarray:
        total = self.F.sum(axis=1, keepdims=True)
        return np.divide(self.F, total, out=np.zeros_like(self.F), where=total > 0)

    def _predicted(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.k:
            weights = [self.weights_of(part) for part in self._parts(X)]
            values = np.concatenate([W @ self.shares for W, _ in weights])
            total, edge = values.sum(axis=1, keepdims=True), np.concatenate([edge for _, edge in weights])[:, None]
            open_rows = (edge | (total > 0)) & (total < _SMALL)
            shares = np.divide(values, total, out=np.zeros_like(values), where=total > 0)
            return shares, above(np.where(total > 0, 2 * self.lost(), 0.0) + 2.0 * open_rows, 8) * np.ones_like(values)
        values = self.shares[self.nearest(X)].sum(axis=1)
        return values, np.full(values.shape, gamma(2 * self.k + len(self.classes or ()) + 8) * self.k)

    def _parts(self, X: np.ndarray) -> list[np.ndarray]:
        step = max(1, _CELLS // len(self.X))
        return [X[at : at + step] for at in range(0, max(1, len(X)), step)]

    def weights_of(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return exp(-sharpness |x - v|^2) for each row and each stored row, 0 below `_LEAST`, and whether rounding may
        have put a weight of the row on the wrong side of that."""
        square = np.zeros((len(X), len(self.X)))
        for j in range(self.columns):
            square += np.square(X[:, j, None] - self.X[None, :, j])
        W = np.exp(-self.sharpness * square)
        edge = np.asarray(((W > _LEAST / 2) & (W < _LEAST * 2)).any(axis=1))
        W[W < _LEAST] = 0.0
        return W, edge

    def lost(self) -> float:
        """Return the relative error of a sum of weights times numbers that are not negative: an exponent is at most 746
        where its weight is not lost, and is off by so many units."""
        return 2 * 746 * gamma(self.columns + 8) + gamma(2 * len(self.X) + 32)


def read_graph(
    X: np.ndarray, codes: np.ndarray, F: np.ndarray, numbers: np.ndarray, classes: tuple[str, ...]
) -> Spread:
    """Return the predictor after checking that rows, labels and distributions go together."""
    if X.ndim != 2 or not X.size or codes.shape != (len(X),) or F.shape != (len(X), len(classes)):
        raise Rejected(f"fit_X_ has shape {X.shape}, labels_ {codes.shape}, spread_ {F.shape}")
    if np.any((codes < -1) | (codes >= len(classes))) or np.any(F < 0):
        raise Rejected("labels_ are positions in classes_ or -1, and spread_ is not negative")
    if numbers.shape != (3,) or numbers[0] != np.rint(numbers[0]) or not 0 <= numbers[0] < len(X):
        raise Rejected("graph_numbers_ must be k, less than the number of rows, alpha and gamma")
    if not 0 <= numbers[1] < 1 or numbers[2] < 0:
        raise Rejected("alpha must lie in [0, 1), and gamma must not be negative")
    return Spread(X, codes, int(numbers[0]), 0, 0, classes, {}, F, codes, float(numbers[1]), float(numbers[2]))


class FixedPoint(Rule):
    """graph.fixed-point: F is what spreading labels over the graph leaves as it is.

    The graph joins two stored rows if one is among the k nearest of the other, or, where k is 0, any two, by the weight
    exp(-gamma |x - v|^2). alpha = 0: labels are held, and every other row that is joined to one is the weighted mean of
    its neighbours; else F = alpha S F + (1 - alpha) Y with S = D^(-1/2) W D^(-1/2). The value bounds the largest entry
    of the difference. The training rows are the stored rows with a label, in order.
    """

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, Spread):
            raise Rejected("it needs labels that are spread over a graph")
        self.check_rows()
        if self.count("k") != model.k or self.number("alpha", zero=True) != model.alpha:
            raise Rejected("k and alpha are not those of the model")
        if self.number("gamma", zero=True) != model.sharpness:
            raise Rejected("gamma is not that of the model")
        if self.count("stored", 2) != len(model.X):
            raise Rejected(f"the model keeps {len(model.X)} rows")
        self.where = np.flatnonzero(model.labels >= 0)
        if len(self.where) != self.rows:
            raise Rejected(f"the model keeps {len(self.where)} labelled rows, there are {self.rows}")

    def block(self, view: View) -> None:
        here = self.where[view.start : view.start + len(view.X)]
        if not np.array_equal(view.X, self.model.X[here]):
            raise Rejected("the labelled rows that the model keeps are not the training rows, in order")
        if not np.array_equal(view.known_codes, self.model.labels[here]):
            raise Rejected("the labels that the model keeps are not those of the training rows")

    def measure(self) -> float:
        model = self.model
        F, held = model.F, model.labels >= 0
        Y = np.zeros_like(F)
        Y[held, model.labels[held]] = 1.0
        want, slack = (self._near if model.k else self._gaussian)(F)
        alpha = model.alpha
        want = alpha * want + (1 - alpha) * Y if alpha else np.where(held[:, None], Y, want)
        return float(above(np.abs(F - want).max() + slack, 16))

    def _near(self, F: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the means of F over neighbours, or S F, and a bound of their error."""
        row = self.model.nearest(self.model.X, own=0)
        n, k = row.shape
        near = csr_array((np.ones(n * k), row.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
        W = near.maximum(near.T)
        degree = np.asarray(W.sum(axis=1)).ravel()
        slack = gamma(4 * int(degree.max()) + 64) * (1 + float(F.max()) * float(np.sqrt(degree.max())))
        if self.model.alpha == 0:
            return (W @ F) / degree[:, None], slack
        root = diags_array(1 / np.sqrt(degree))
        return root @ (W @ (root @ F)), slack

    def _gaussian(self, F: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the same for weights of all pairs, which are made twice, some rows at a time."""
        model = self.model
        sums = [(W.sum(axis=1), edge) for W, edge in self._weights()]
        degree, edge = (np.concatenate(part) for part in zip(*sums))
        if np.any(((degree > 0) | edge) & (degree < _SMALL)):
            raise Refused("a row is so far from all others that its weights have lost their digits")
        alone = degree == 0
        power = 1.0 if model.alpha == 0 else 0.5
        scale = np.divide(1.0, degree**power, out=np.zeros_like(degree), where=~alone)[:, None]
        inner = F if model.alpha == 0 else scale * F
        want = scale * np.concatenate([W @ inner for W, _ in self._weights()])
        if model.alpha == 0:
            want[alone] = F[alone]
        return want, float(above(model.lost() * max(1.0, float(want.max(initial=0.0))), 16))

    def _weights(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        at = 0
        for part in self.model._parts(self.model.X):
            self.context.clock.check()
            W, edge = self.model.weights_of(part)
            W[np.arange(len(part)), np.arange(at, at + len(part))] = 0.0
            at += len(part)
            yield W, edge

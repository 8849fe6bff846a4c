"""The checker's own oblique tree: rows near a border are routed in rational arithmetic."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import gamma
from assay.checker.predictors import Predictor
from assay.checker.record import Refused, Rejected

_MOST_EXACT = 4096  # rows at one border that are decided in rational arithmetic


@dataclass(frozen=True)
class ObliqueTree(Predictor):
    """A row goes to the first child of a node iff <w, x> <= t there; a leaf votes for its first largest share."""

    W: np.ndarray  # (nodes, d)
    threshold: np.ndarray
    child: np.ndarray
    value: np.ndarray  # (nodes, K)
    classes: tuple[str, ...]

    @property
    def columns(self) -> int:
        return self.W.shape[1]

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        votes = np.zeros((len(X), len(self.classes)))
        votes[np.arange(len(X)), self.value.argmax(axis=1)[self._leaves(X)]] = 1.0
        return votes, np.zeros(len(self.classes))

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return np.zeros((len(X), len(self.classes)))

    def exact_scores(self, x: np.ndarray) -> list[Fraction]:
        at = 0
        while self.child[at] >= 0:
            at = int(self.child[at]) + self._is_above(at, x)
        vote = int(self.value[at].argmax())
        return [Fraction(k == vote) for k in range(len(self.classes))]

    def _leaves(self, X: np.ndarray) -> np.ndarray:
        at = np.zeros(len(X), dtype=np.int64)
        for node in np.flatnonzero(self.child >= 0):
            here = np.flatnonzero(at == node)
            if len(here):
                at[here] = self.child[node] + self._sides(int(node), X[here])
        return at

    def _sides(self, node: int, X: np.ndarray) -> np.ndarray:
        w, t = self.W[node], self.threshold[node]
        z = X @ w
        error = gamma(2 * len(w) + 8) * (np.abs(X) @ np.abs(w) + abs(t))
        side = (z > t).astype(np.int64)
        near = np.flatnonzero(np.abs(z - t) <= error)
        if len(near) > _MOST_EXACT:
            raise Refused(f"{len(near)} rows lie too close to one border to be decided")
        for i in near:
            side[i] = self._is_above(node, X[i])
        return side

    def _is_above(self, node: int, x: np.ndarray) -> bool:
        terms = (Fraction(a) * Fraction(b) for a, b in zip(self.W[node].tolist(), x.tolist()) if a)
        return sum(terms, Fraction(0)) > Fraction(float(self.threshold[node]))


@dataclass(frozen=True)
class SoftTree(Predictor):
    """A tree that sends shares of a row both ways: it can be stored, and the checker has no scores of it."""

    n_columns: int
    classes: tuple[str, ...]

    @property
    def columns(self) -> int:
        return self.n_columns


def read_soft(W: np.ndarray, threshold: np.ndarray, child: np.ndarray, value: np.ndarray, classes: Any) -> SoftTree:
    """Return a tree without scores, after the same checks."""
    return SoftTree(read_oblique(W, threshold, child, value, classes).columns, classes)


def read_oblique(
    W: np.ndarray, threshold: np.ndarray, child: np.ndarray, value: np.ndarray, classes: tuple[str, ...]
) -> ObliqueTree:
    """Return the predictor after checking that the arrays are a tree."""
    n = len(child)
    if not n or child.ndim != 1 or W.ndim != 2 or value.ndim != 2 or not (len(W) == len(threshold) == len(value) == n):
        raise Rejected("the arrays of the oblique tree have different lengths")
    if threshold.ndim != 1 or value.shape[1] != len(classes) or not W.shape[1]:
        raise Rejected("the oblique tree has no columns, or its leaves do not go with its classes")
    whole = np.round(child)
    inner = np.flatnonzero(whole >= 0)
    if np.any(whole != child) or np.any(whole < -1) or np.any(whole[inner] <= inner):
        raise Rejected("the nodes do not describe a tree: a child does not follow its parent")
    if not np.array_equal(np.sort(np.concatenate([whole[inner], whole[inner] + 1])), np.arange(1, n)):
        raise Rejected("the nodes do not describe a tree: a node is the child of none, or of two")
    return ObliqueTree(W, threshold, whole.astype(np.int64), value, classes)


_ARRAYS = {"node_weights_": NUMBERS, "node_threshold_": NUMBERS, "node_child_": WHOLE, "node_value_": NUMBERS}
FAMILY = Family(
    "oblique",
    {"classifier": Variant(_ARRAYS, read_oblique, classes=True), "soft": Variant(_ARRAYS, read_soft, classes=True)},
)

"""The checker's own oblique tree: a row within rounding of a border on its way is left open."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import gamma
from assay.checker.predictors import Predictor
from assay.checker.record import Rejected


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
        leaf, unsure = self._leaves(X)
        votes = np.zeros((len(X), len(self.classes)))
        votes[np.arange(len(X)), self.value.argmax(axis=1)[leaf]] = 1.0
        return votes, np.repeat(unsure[:, None].astype(np.float64), votes.shape[1], axis=1)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self.scores(X, np.zeros(0))[1]

    def _leaves(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the leaf of each row, and whether rounding may send it to another one."""
        at, unsure = np.zeros(len(X), dtype=np.int64), np.zeros(len(X), dtype=bool)
        for node in np.flatnonzero(self.child >= 0):
            here = np.flatnonzero(at == node)
            w, t = self.W[node], self.threshold[node]
            z = X[here] @ w
            at[here] = self.child[node] + (z > t)
            if np.count_nonzero(w) > 1:  # a single product has the same rounding everywhere
                error = gamma(2 * len(w) + 8) * (np.abs(X[here]) @ np.abs(w) + abs(t))
                unsure[here] |= np.abs(z - t) <= error
        return at, unsure


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

"""Records that growers share: nodes, splits and limits as the compiled code reads them, and the way back to `Nodes`."""

from typing import Any, NamedTuple

import numpy as np

from assay.tree._nodes import Nodes

GINI, ENTROPY, SQUARED, FRIEDMAN, POISSON, ABSOLUTE = 0, 1, 2, 3, 4, 5
CRITERIA = {
    "gini": GINI,
    "gain": ENTROPY,
    "entropy": ENTROPY,
    "log_loss": ENTROPY,
    "squared_error": SQUARED,
    "friedman_mse": FRIEDMAN,
    "poisson": POISSON,
    "absolute_error": ABSOLUTE,
}

NODE = np.dtype(
    [
        ("column", np.int32),  # -1 in a leaf
        ("child", np.int32),  # first child, -1 in a leaf
        ("threshold", np.float64),
        ("purity", np.float64),  # see `_criteria`
        ("gain", np.float64),  # decrease of impurity times weight by the best split, 0 if there is none
        ("squares", np.float64),  # weighted squares of the targets; under Poisson's criterion sum w y ln y
        ("start", np.int64),
        ("stop", np.int64),
        ("depth", np.int64),
    ],
    align=True,
)
SPLIT = np.dtype(
    [
        ("purity", np.float64),  # of both children
        ("scale", np.float64),  # denominator of the purity, where fractions are compared
        ("column", np.int64),  # -1: none was found
        ("low", np.int64),  # last code or bin on the left
        ("high", np.int64),  # first one on the right
        ("threshold", np.float64),  # where it was drawn
        ("middle", np.float64),  # of the values of both children, where the column is monotone
    ],
    align=True,
)
LIMITS = np.dtype(
    [
        ("min_samples_leaf", np.int64),
        ("min_weight_leaf", np.float64),
        ("min_samples_split", np.int64),
        ("max_depth", np.int64),
        ("max_leaves", np.int64),
        ("min_decrease", np.float64),
        ("max_features", np.int64),
        ("random", np.bool_),
    ],
    align=True,
)

_MOST = 2**40
_WHOLE = ("min_samples_leaf", "min_samples_split", "max_depth", "max_leaves")


class Limits(NamedTuple):
    """When a node is not split, and how splits are drawn."""

    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    min_samples_split: int = 2
    max_depth: int = 2**31
    max_leaves: int = 0  # 0: any number
    min_decrease: float = 0.0  # of impurity times weight
    max_features: int = 2**31
    random: bool = False

    def record(self, n_columns: int) -> np.void:
        """Return the limits as compiled code reads them, for a table of that many columns; a larger number than any
        tree can reach is that number, so that sums of limits stay integers of 64 bits."""
        bounded: dict[str, Any] = {name: min(int(getattr(self, name)), _MOST) for name in _WHOLE}
        values = self._replace(**bounded)._replace(max_features=min(self.max_features, n_columns))
        return np.array([tuple(values)], dtype=LIMITS)[0]


class Target(NamedTuple):
    """What a tree learns: class numbers (or, with 0 classes, numbers) and weights (empty: all 1) of all rows, and the
    criterion."""

    y: np.ndarray
    weight: np.ndarray
    classes: int
    criterion: int


def as_nodes(grown: np.ndarray, sums: np.ndarray, n_classes: int, criterion: str) -> Nodes:
    """Return a tree that a compiled loop has grown, from its records and the sums of its nodes."""
    weight = sums.sum(axis=1) if n_classes else sums[:, 0]
    if n_classes:
        value = sums / weight[:, None]
        impurity = np.maximum(0.0, (1.0 if criterion == "gini" else 0.0) - grown["purity"] / weight)
    else:
        value = sums[:, 1:] / sums[:, :1]
        impurity = np.maximum(0.0, (grown["squares"] - grown["purity"]) / weight)
    column, threshold, child = (grown[name].copy() for name in ("column", "threshold", "child"))
    return binary_nodes(column, threshold, child, value, weight, impurity)


def binary_nodes(column, threshold, child, value, weight, impurity, sides=None) -> Nodes:
    """Return one tree of thresholds, whose splits send missing values to the side given, or, where it is -1, to the
    heavier child, the second of equals."""
    inner = child >= 0
    first = np.where(inner, child, 0)
    side = (weight[first] <= weight[np.minimum(first + 1, len(weight) - 1)]).astype(np.int32)
    if sides is not None:
        side = np.where(sides >= 0, sides, side)
    return Nodes(
        root=np.zeros(1, dtype=np.int32),
        column=np.asarray(column, dtype=np.int32),
        threshold=threshold,
        table=np.full(len(child), -1, dtype=np.int32),
        child=np.asarray(child, dtype=np.int32),
        n_children=np.where(inner, 2, 0).astype(np.int32),
        missing=np.where(inner, side, -1).astype(np.int32),
        value=value,
        weight=weight,
        impurity=impurity,
        tables=np.empty((0, 0), dtype=np.int32),
    )

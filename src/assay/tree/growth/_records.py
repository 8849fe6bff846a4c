"""What growers share: nodes, splits, limits and targets as compiled code reads them."""

from typing import Any, NamedTuple

import numpy as np

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
    """What a tree learns.

    y : (rows, outputs) class numbers, or numbers
    weight : (rows,), or empty: all 1
    first : (outputs + 1,) where the sums of each output begin; sums are the weight, then the weights of the classes of
        each output, or its weighted sum
    classes : 1 for classes, 0 for numbers
    """

    y: np.ndarray
    weight: np.ndarray
    first: np.ndarray
    classes: int
    criterion: int


def target_of(y: np.ndarray, weight: np.ndarray | None, n_classes: np.ndarray, criterion: str) -> Target:
    """Return what a tree learns, as compiled code reads it: y (rows,) or (rows, outputs), weights (None: all 1), and
    the classes of each output, none for numbers."""
    target = np.ascontiguousarray(y.reshape(len(y), -1), dtype=np.float64)
    sizes = n_classes if len(n_classes) else np.ones(target.shape[1])
    first = 1 + np.append(0, np.cumsum(sizes)).astype(np.int64)
    weights = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    return Target(target, weights, first, int(len(n_classes) > 0), CRITERIA[criterion])

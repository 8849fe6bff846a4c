"""Extremely randomised trees on all values of numeric columns; the compiled part is `_extra_loops`."""

import numpy as np

from assay.tree._nodes import Nodes
from assay.tree.growth._exact import nodes_of
from assay.tree.growth._records import CRITERIA, Limits, Target


def grow_extra(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, n_classes: np.ndarray, criterion: str, limits: Limits, seed: int
) -> Nodes:
    """Return one tree of the rows with a weight above 0; y and n_classes as in `grow_general`."""
    from assay.tree.growth._extra_loops import grow_extra as grow

    rows = np.flatnonzero(weight > 0).astype(np.uint64)
    y, weight = np.asarray(y, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    most = int(n_classes.max(initial=0))
    target = Target(y, weight, most, CRITERIA[criterion])
    grown, sums = grow(X, target, rows, limits.record(X.shape[1]), np.uint64(seed))
    if most:
        own = np.concatenate([o * most + np.arange(count) for o, count in enumerate(n_classes)])
        sums = np.column_stack([sums[:, : n_classes[0]].sum(axis=1), sums[:, own]])
    return nodes_of(grown, sums, criterion)

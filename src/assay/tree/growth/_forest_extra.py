"""Extremely randomised trees on all values of numeric columns: one copy of the rows for all trees, trees on threads."""

from collections.abc import Callable, Sequence

import numpy as np

from assay.tree._nodes import Nodes, joined
from assay.tree._reading import Read
from assay.tree.growth._general import nodes_of
from assay.tree.growth._parallel_trees import grown_trees, tree_seed
from assay.tree.growth._records import CRITERIA, Limits, Target


def draws(criterion: str, y: np.ndarray) -> bool:
    """Tell whether the criterion is one that such trees are grown by; Friedman's joins several outputs otherwise."""
    return criterion != "absolute_error" and (y.ndim == 1 or criterion != "friedman_mse")


def grow_extra_trees(
    data: Read,
    seeds: Sequence[int],
    times_of: Callable[[int], np.ndarray],
    n_classes: np.ndarray,
    criterion: str,
    limits: Limits,
    n_jobs: int | None,
) -> Nodes:
    """Return a tree for each seed; `times_of(seed)` says how often each row counts in it."""
    X = np.ascontiguousarray(data.dense("a tree of drawn thresholds"), dtype=np.float64)

    def tree(seed: int) -> Nodes:
        weight = times_of(seed) * (1.0 if data.weight is None else data.weight)
        return grow_extra_tree(X, data.y, weight, int(tree_seed(seed)), n_classes, criterion, limits)

    return joined(grown_trees(tree, seeds, n_jobs))


def grow_extra_tree(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, drawn: int, n_classes: np.ndarray, criterion: str, limits: Limits
) -> Nodes:
    """Return one tree of the rows with a weight above 0, which draws from the state `drawn`; y and n_classes as in
    `grow_general`."""
    from assay.tree.growth._extra_loops import grow_extra

    rows = np.flatnonzero(weight > 0).astype(np.uint64)
    y, weight = np.asarray(y, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    most = int(n_classes.max(initial=0))
    X, target = np.ascontiguousarray(X, dtype=np.float64), Target(y, weight, most, CRITERIA[criterion])
    grown, sums = grow_extra(X, target, rows, limits.record(X.shape[1]), np.uint64(drawn))
    if most:
        own = np.concatenate([o * most + np.arange(count) for o, count in enumerate(n_classes)])
        sums = np.column_stack([sums[:, : n_classes[0]].sum(axis=1), sums[:, own]])
    return nodes_of(grown, sums, criterion)

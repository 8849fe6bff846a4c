"""Trees of a forest that counting cannot grow: nominal columns, missing values, several outputs, absolute errors."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from assay.params import refuse
from assay.tree._nodes import Nodes, joined
from assay.tree._reading import Read, nominal_levels
from assay.tree.growth._general import encode_gaps, grow_general
from assay.tree.growth._nominal_missing import Method, code_table, grow_nominal_missing
from assay.tree.growth._parallel_trees import grown_trees, tree_seed
from assay.tree.growth._records import Limits


def is_mixed(forest: Any, data: Read) -> bool:
    """Tell whether a column is nominal, a value is missing, there are several outputs, or the criterion is the absolute
    error."""
    several = data.y.ndim == 2
    return bool(nominal_levels(forest)) or several or forest.criterion == "absolute_error" or data.has_gaps


def grow_mixed(
    forest: Any,
    data: Read,
    seeds: list[int],
    times_of: Callable[[int], np.ndarray],
    n_classes: np.ndarray,
    limits: Limits,
    monotone: np.ndarray | None,
) -> Nodes:
    """Return a tree for each seed; missing values go to the branch where they fit best, levels to one of two."""
    levels = nominal_levels(forest)
    if levels:
        tree = _with_levels(forest, data, levels, n_classes, limits, monotone)
    elif data.y.ndim == 2 or data.has_gaps:
        tree = _general(forest, data, n_classes, limits, monotone)
    else:
        tree = partial(_medians, data, limits, monotone)

    def grown(seed: int) -> Nodes:
        return tree(times_of(seed) * (1.0 if data.weight is None else data.weight), seed)

    return joined(grown_trees(grown, seeds, forest.n_jobs))


def _medians(data: Read, limits: Limits, monotone: Any, weight: np.ndarray, seed: int) -> Nodes:
    from assay.tree.growth._absolute import grow_absolute

    counts, X = np.flatnonzero(weight), data.dense("criterion='absolute_error'")
    rng = np.random.RandomState(seed)
    return grow_absolute(X[counts], data.y[counts], weight[counts], limits, rng, 1, monotone)


def _general(forest: Any, data: Read, n_classes: np.ndarray, limits: Limits, monotone: Any) -> Callable:
    coded = encode_gaps(data.dense(f"criterion={forest.criterion!r}"), forest.n_jobs)
    kind = n_classes, forest.criterion, limits

    def tree(weight: np.ndarray, seed: int) -> Nodes:
        rows = np.flatnonzero(weight)
        return grow_general(coded, data.y, weight, rows, *kind, int(tree_seed(seed)), monotone)

    return tree


def _with_levels(
    forest: Any, data: Read, levels: dict[int, int], n_classes: np.ndarray, limits: Limits, monotone: Any
) -> Callable:
    if (
        forest.criterion not in ("gini", "entropy", "log_loss", "squared_error")
        or data.y.ndim == 2
        or monotone is not None
        or limits.max_leaves
        or limits.min_weight_leaf > 0
    ):
        raise refuse(
            forest,
            f'nominal columns go with "gini", "entropy", "log_loss" or "squared_error", one output, and without '
            f"max_leaf_nodes, min_weight_fraction_leaf and monotonic_cst; got criterion={forest.criterion!r}. Encode "
            "the columns, or use max_depth or min_samples_leaf.",
        )
    method = Method(
        forest.criterion, "binary", "direction", levels, int(n_classes.sum()), limits.min_samples_leaf,
        limits.min_samples_split, limits.max_depth, limits.min_decrease, limits.max_features, limits.random,
    )  # fmt: skip
    coded = code_table(data.X, levels)
    return lambda weight, seed: grow_nominal_missing(coded, data.y, weight, method, int(tree_seed(seed)))

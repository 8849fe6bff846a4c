"""Trees of a forest that counting cannot grow: nominal columns, missing values, absolute errors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.params import refuse
from assay.scan import thread_map
from assay.tree._nodes import Nodes, joined
from assay.tree._reading import Read, nominal_levels
from assay.tree.growth._nominal_missing import Method
from assay.tree.growth._random_features import grow_random_features
from assay.tree.growth._records import Limits


def is_mixed(forest: Any, data: Read) -> bool:
    """Tell whether a column is nominal, a value is missing, or the criterion is the absolute error."""
    return bool(nominal_levels(forest)) or forest.criterion == "absolute_error" or data.has_gaps


def grow_mixed(
    forest: Any, data: Read, seeds: list[int], times_of: Callable[[int], np.ndarray], n_classes: int, limits: Limits
) -> Nodes:
    """Return a tree for each seed; missing values go to the branch where they fit best, levels to one of two."""
    levels = nominal_levels(forest)
    medians = forest.criterion == "absolute_error"
    _refuse_what_is_not_known(forest, data, limits, bool(levels), medians)
    method = Method(
        forest.criterion, "binary", "direction", levels, n_classes, limits.min_samples_leaf, limits.min_samples_split,
        limits.max_depth, limits.min_decrease,
    )  # fmt: skip

    def tree(seed: int) -> Nodes:
        weight = times_of(seed) * (1.0 if data.weight is None else data.weight)
        if medians:
            from assay.tree.growth._absolute import grow_absolute

            return grow_absolute(data.X, data.y, weight, limits, np.random.default_rng(seed), 1)
        return grow_random_features(data.X, data.y, weight, method, limits, seed)

    return joined(thread_map(tree, seeds, n_jobs=forest.n_jobs))


def _refuse_what_is_not_known(forest: Any, data: Read, limits: Limits, nominal: bool, medians: bool) -> None:
    incomplete = nominal or data.has_gaps
    if incomplete and forest.criterion not in ("gini", "entropy", "log_loss", "squared_error"):
        raise refuse(
            forest,
            f'nominal columns and missing values go with "gini", "entropy", "log_loss" or "squared_error"; got '
            f"criterion={forest.criterion!r}. Encode and fill the columns for it.",
        )
    if incomplete and not medians and (limits.max_leaves or limits.min_weight_leaf > 0):
        raise refuse(
            forest,
            "nominal columns and missing values do not go with max_leaf_nodes or min_weight_fraction_leaf; use "
            "max_depth or min_samples_leaf.",
        )

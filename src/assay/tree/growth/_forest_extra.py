"""Extremely randomised trees on all values of numeric columns: one copy of the rows for all trees, trees on threads."""

from collections.abc import Callable, Sequence

import numpy as np

from assay.tree._nodes import Nodes, joined
from assay.tree._reading import Read
from assay.tree.growth._crew import grown_trees, tree_seed
from assay.tree.growth._records import CRITERIA, Limits, Target, as_nodes


def grow_extra_trees(
    data: Read,
    seeds: Sequence[int],
    times_of: Callable[[int], np.ndarray],
    n_classes: int,
    criterion: str,
    limits: Limits,
    n_jobs: int | None,
) -> Nodes:
    """Return a tree for each seed; `times_of(seed)` says how often each row counts in it."""
    X, y = np.ascontiguousarray(data.X, dtype=np.float64), np.asarray(data.y, dtype=np.float64)

    def tree(seed: int) -> Nodes:
        from assay.tree.growth._extra_loops import grow_extra

        weight = times_of(seed) * (1.0 if data.weight is None else data.weight)
        rows = np.flatnonzero(weight > 0).astype(np.uint64)
        target = Target(y, weight, n_classes, CRITERIA[criterion])
        grown, sums = grow_extra(X, target, rows, limits.record(X.shape[1]), tree_seed(seed))
        return as_nodes(grown, sums, n_classes, criterion)

    return joined(grown_trees(tree, seeds, n_jobs))

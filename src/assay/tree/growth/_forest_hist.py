"""The trees of a forest on bins: bags as counted rows, trees on threads, all in one set of arrays.

Trees that share their bins share the error that bins make, which their mean does not remove; so groups of trees have
bins of their own.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from assay.scan import Rows, thread_map
from assay.tree._nodes import Nodes, joined
from assay.tree.growth._bins import Binner
from assay.tree.growth._growers import grown_trees, tree_seed
from assay.tree.growth._records import CRITERIA, Limits, as_nodes


def grow_forest(
    rows: Rows,
    y: np.ndarray,
    binners: Sequence[Binner],
    seeds: Sequence[int],
    times_of: Callable[[int], np.ndarray],
    n_classes: int,
    criterion: str,
    limits: Limits,
    n_jobs: int | None,
) -> Nodes:
    """Return a tree for each seed; `times_of(seed)` says how often each row counts in it.

    The first trees are grown on the bins of the first binner, and so on, equally many on each.
    """
    labels = y.astype(np.uint64) << np.uint64(16)

    def tree(seed: int, binner: Binner, bins: np.ndarray) -> tuple:
        from assay.tree.growth._hist_classifier import grow_hist_classifier

        times = times_of(seed)
        of = np.flatnonzero(times)
        entries = (of.astype(np.uint64) << np.uint64(32)) | labels[of] | times[of].astype(np.uint64)
        kind, asked = CRITERIA[criterion], limits.record(rows.n_features)
        return grow_hist_classifier(bins, binner.edges, entries, n_classes, kind, asked, tree_seed(seed))

    made = _by_groups(tree, rows, binners, seeds, n_jobs)
    return _assembled(made, n_classes, 1.0 if criterion == "gini" else 0.0, n_jobs)


def grow_regression_forest(
    rows: Rows,
    y: np.ndarray,
    weight: np.ndarray | None,
    binners: Sequence[Binner],
    seeds: Sequence[int],
    times_of: Callable[[int], np.ndarray],
    limits: Limits,
    n_jobs: int | None,
) -> Nodes:
    """The same for numbers y, squared errors and rows with weights."""
    middle = float(np.mean(y))  # squares lose fewer digits around it
    centred = y - middle

    def tree(seed: int, binner: Binner, bins: np.ndarray) -> Nodes:
        from assay.tree.growth._hist_regressor import grow_hist_regressor

        times = times_of(seed) * (1.0 if weight is None else weight)
        entries = np.flatnonzero(times).astype(np.uint64) << np.uint64(32)
        asked = limits.record(rows.n_features)
        grown, sums = grow_hist_regressor(bins, binner.edges, entries, centred, times, asked, tree_seed(seed))
        return as_nodes(grown, sums, 0, "squared_error")

    nodes = joined(_by_groups(tree, rows, binners, seeds, n_jobs))
    nodes.value[:] += middle
    return nodes


def _by_groups(tree: Callable, rows: Rows, binners: Sequence[Binner], seeds: Sequence[int], n_jobs) -> list:
    made: list = []
    for group, binner in zip(np.array_split(seeds, len(binners)), binners):
        work = partial(tree, binner=binner, bins=binner.transform(rows, by_column=False).rows)
        grown = grown_trees(work, group.tolist(), n_jobs)
        made += grown
        if len(grown) < len(group):
            break
    return made


def _assembled(made: list[tuple], n_classes: int, highest: float, n_jobs: int | None) -> Nodes:
    """Return grown trees as one set of nodes; the impurity is `highest` minus purity over weight."""
    starts = np.cumsum([0, *(len(tree[0]) for tree in made)])
    n = int(starts[-1])
    parts: dict[str, Any] = {name: np.empty(n, dtype=np.int32) for name in ("column", "child", "n_children", "missing")}
    parts |= {name: np.empty(n) for name in ("threshold", "weight", "impurity")}
    parts |= {"value": np.empty((n, n_classes)), "table": np.full(n, -1, dtype=np.int32)}

    def write(t: int) -> None:
        grown, times = made[t]
        at, inner = slice(starts[t], starts[t + 1]), grown["child"] >= 0
        weight = times.sum(axis=1)
        parts["column"][at], parts["threshold"][at], parts["weight"][at] = grown["column"], grown["threshold"], weight
        parts["child"][at] = np.where(inner, grown["child"] + starts[t], -1)
        parts["n_children"][at], parts["missing"][at] = 2 * inner, np.where(inner, 1, -1)
        parts["value"][at] = times / weight[:, None]
        parts["impurity"][at] = np.maximum(0.0, highest - grown["purity"] / weight)

    thread_map(write, range(len(made)), n_jobs=n_jobs)
    return Nodes(root=starts[:-1].astype(np.int32), tables=np.empty((0, 0), dtype=np.int32), **parts)

"""The trees of a forest: what is asked of them (`growth._growers` says who grows them), their samples, pruning.

On bins, bags are counted rows, and all trees lie in one set of arrays. Trees that share their bins share the error that
bins make, which their mean does not remove; so groups of trees have bins of their own.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from assay.ensemble._bootstrap import Draw, bag
from assay.params import refuse
from assay.scan import Rows, thread_map
from assay.tree import _pruning
from assay.tree._decision_tree import counts_of
from assay.tree._nodes import Nodes, joined, nodes_of, tree_at
from assay.tree._reading import Read, nominal_levels
from assay.tree.growth._bins import Binner, find_bins
from assay.tree.growth._growers import GrowTree, Request, grower_of, grown_trees, limits_of, monotone_signs, tree_seed
from assay.tree.growth._records import CRITERIA, Limits

_EXACT = 5_000  # rows up to which every threshold is tried, without bins
_SAMPLE = 10_000  # rows, and at most a fifth of all, whose quantiles are the edges of the bins: in no tree's out-of-bag
_GRIDS = 4  # groups of trees, each with bins whose quantiles lie between those of the others
_MOST_TIMES = 1000  # mean times a row may be drawn; how often it is drawn must fit into 16 bits


def grow(forest: Any, data: Read, draw: Draw, seeds: list[int]) -> Nodes:
    """Return a tree for each seed; after an interrupt fewer."""
    n = data.rows.n_rows
    request = _request(forest, data, draw)
    forest.binned_rows_ = 0 if request.bins is None else n
    forest.bin_seed_ = int(np.random.default_rng([int(seeds[0]), 4]).integers(2**31 - 1))
    times_of = _announced(forest, lambda seed: forest._times(draw, seed, data.y), len(seeds))
    grower = grower_of(request)
    if grower.prepare is None:
        nodes = _binned_trees(forest, request, seeds, times_of)
    else:
        nodes = joined(grown_trees(_sampled(forest, grower.prepare(request), data, times_of), seeds, forest.n_jobs))
    if forest.ccp_alpha > 0:
        nodes = _pruned(nodes, float(forest.ccp_alpha), forest.n_jobs)
    if forest.verbose == 1:
        print(f"{type(forest).__name__}: {len(nodes.root)} trees grown")
    return nodes


def _request(forest: Any, data: Read, draw: Draw) -> Request:
    """Return what the parameters ask for on these rows; refuse what no grower serves."""
    n, n_classes = data.rows.n_rows, counts_of(getattr(forest, "classes_", None))
    levels, gaps = nominal_levels(forest), data.has_gaps
    total = float(draw.size if forest.bootstrap else n if data.weight is None else data.weight.sum())
    limits = limits_of(forest, data, forest.extra)._replace(
        min_weight_leaf=forest.min_weight_fraction_leaf * total, min_decrease=forest.min_impurity_decrease * total
    )
    monotone = _signs(forest, data, n_classes)
    every_value = levels or gaps or data.y.ndim == 2 or forest.criterion == "absolute_error"
    bins = None if n <= _EXACT or every_value else forest.max_bins
    if monotone is not None:
        why = "monotonic_cst"
    else:
        why = f"criterion={forest.criterion!r}" if bins is None else f"a forest of more than {_EXACT} rows"
    counted = data.weight is None and not getattr(forest, "_by_bag", False)
    whole = counted and n_classes.sum() < 2**16 and draw.size <= _MOST_TIMES * n
    request = Request(
        data, n_classes, forest.criterion, limits, levels, gaps, monotone, forest.n_jobs, why, bins=bins,
        whole_times=bool(whole),
    )  # fmt: skip
    if levels and (
        forest.criterion not in ("gini", "entropy", "log_loss", "squared_error")
        or request.outputs > 1
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
    return request


def _sampled(forest: Any, tree: GrowTree, data: Read, times_of: Callable[[int], np.ndarray]) -> Callable[[int], Nodes]:
    """Return the function that grows the tree of a seed on its sample."""

    def grown(seed: int) -> Nodes:
        times = times_of(seed)
        if not forest.bootstrap:
            return tree(data.weight, seed)
        return tree(times * (1.0 if data.weight is None else data.weight), seed)

    return grown


def _announced(forest: Any, times_of: Callable[[int], np.ndarray], trees: int) -> Callable[[int], np.ndarray]:
    """Return the same function, which with verbose >= 2 prints that a tree begins."""
    if forest.verbose < 2:
        return times_of
    begun = iter(range(1, trees + 1))

    def announced(seed: int) -> np.ndarray:
        print(f"building tree {next(begun)} of {trees}")
        return times_of(seed)

    return announced


def _signs(forest: Any, data: Read, classes: np.ndarray) -> np.ndarray | None:
    """Return the signs of columns with which values must rise or fall, None if there are none."""
    if forest.monotonic_cst is not None and data.y.ndim == 2:
        raise refuse(forest, "Monotonicity constraints are not supported with multiple outputs.")
    signs = monotone_signs(forest, data.rows.n_features)
    if signs is not None and np.any(classes > 2):
        raise refuse(
            forest,
            "Monotonicity constraints are not supported with multiclass classification: monotonic_cst orders the share "
            f"of the second of two classes; y has {int(classes.max())}.",
        )
    return signs


def _binned_trees(forest: Any, request: Request, seeds: list[int], times_of: Callable[[int], np.ndarray]) -> Nodes:
    """Return a tree for each seed on rows in bins, whose edges are quantiles of a sample of the rows."""
    data, limits, n = request.data, request.limits, request.data.rows.n_rows
    forest.binned_rows_ = min(n // 5, _SAMPLE)
    sample = data.rows.take(np.sort(bag(forest.bin_seed_, n, forest.binned_rows_, replace=False)))
    shifts: Any = np.arange(_GRIDS) / _GRIDS - 0.5
    grids = [find_bins(sample, request.bins or 0, {}, forest.n_jobs, shift) for shift in shifts]
    if K := int(request.n_classes.sum()):
        kind = K, forest.criterion
        return grow_forest(data.rows, data.y, grids, seeds, times_of, *kind, limits, forest.n_jobs)
    return grow_regression_forest(data.rows, data.y, data.weight, grids, seeds, times_of, limits, forest.n_jobs)


def _pruned(nodes: Nodes, alpha: float, n_jobs: int | None) -> Nodes:
    """Return the trees, each pruned by minimal cost-complexity."""

    def cut(t: int) -> Nodes:
        tree = tree_at(nodes, t)
        return _pruning.cost_complexity(tree, tree.impurity * tree.weight / tree.weight[0], alpha)

    return joined(thread_map(cut, range(len(nodes.root)), n_jobs=n_jobs))


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
        return nodes_of(grown, sums, "squared_error")

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
        at, inner, weight = slice(starts[t], starts[t + 1]), grown["child"] >= 0, times[:, 0]
        parts["column"][at], parts["threshold"][at], parts["weight"][at] = grown["column"], grown["threshold"], weight
        parts["child"][at] = np.where(inner, grown["child"] + starts[t], -1)
        parts["n_children"][at], parts["missing"][at] = 2 * inner, np.where(inner, 1, -1)
        parts["value"][at] = times[:, 1:] / weight[:, None]
        parts["impurity"][at] = np.maximum(0.0, highest - grown["purity"] / weight)

    thread_map(write, range(len(made)), n_jobs=n_jobs)
    return Nodes(root=starts[:-1].astype(np.int32), tables=np.empty((0, 0), dtype=np.int32), **parts)

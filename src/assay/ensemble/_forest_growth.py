"""How the trees of a forest are grown: on bins, on every value, or the general way; then pruned."""

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.ensemble._bootstrap import Draw, bag
from assay.params import refuse
from assay.scan import thread_map
from assay.tree import _pruning
from assay.tree._decision_tree import counts_of
from assay.tree._limits import limits_of, monotone_signs
from assay.tree._nodes import Nodes, joined, tree_at
from assay.tree._reading import Read, nominal_levels
from assay.tree.growth._bins import find_bins
from assay.tree.growth._exact import Columns, encode, grow_exact
from assay.tree.growth._forest_extra import draws, grow_extra_trees
from assay.tree.growth._forest_hist import grow_forest, grow_regression_forest
from assay.tree.growth._forest_nominal_missing import grow_mixed, is_mixed
from assay.tree.growth._parallel_trees import grown_trees, tree_seed
from assay.tree.growth._records import Limits
from assay.tree.growth._sorted import as_entries, counted_instead, grow_sorted, is_whole, sort_columns, sorts

_EXACT = 5_000  # rows up to which every threshold is tried, without bins
_SAMPLE = 10_000  # rows, and at most a fifth of all, whose quantiles are the edges of the bins: in no tree's out-of-bag
_GRIDS = 4  # groups of trees, each with bins whose quantiles lie between those of the others
_MOST_TIMES = 1000  # mean times a row may be drawn; how often it is drawn must fit into 16 bits


def grow(forest: Any, data: Read, draw: Draw, seeds: list[int]) -> Nodes:
    """Return a tree for each seed; after an interrupt fewer."""
    n, classes = data.rows.n_rows, counts_of(getattr(forest, "classes_", None))
    mixed = is_mixed(forest, data)
    bins = None if n <= _EXACT or mixed else forest.max_bins
    forest.binned_rows_ = 0 if bins is None else n
    forest.bin_seed_ = int(np.random.default_rng([int(seeds[0]), 4]).integers(2**31 - 1))
    total = float(draw.size if forest.bootstrap else n if data.weight is None else data.weight.sum())
    limits = limits_of(forest, data, forest.extra)._replace(
        min_weight_leaf=forest.min_weight_fraction_leaf * total, min_decrease=forest.min_impurity_decrease * total
    )
    signs = _signs(forest, data, classes)
    times_of = _told(forest, lambda seed: forest._times(draw, seed, data.y), len(seeds))
    K = int(classes.sum())
    if _sorts(forest, data, limits, bins, signs):
        nodes = _sorted_trees(forest, data, seeds, times_of, classes, limits)
    elif bins is None and signs is None and _draws(forest, data):
        nodes = grow_extra_trees(data, seeds, times_of, classes, forest.criterion, limits, forest.n_jobs)
    elif mixed:
        nodes = grow_mixed(forest, data, seeds, times_of, classes, limits, signs)
    elif bins is not None and not forest.extra and signs is None and _sums(forest, K, bins, data, draw):
        nodes = _binned_trees(forest, data, seeds, times_of, K, bins, limits)
    else:
        why = f"a forest of more than {_EXACT} rows" if signs is None else "monotonic_cst"
        codes = encode(data.dense(why), forest.n_jobs, bins)
        nodes = _weighted_trees(forest, data, seeds, times_of, K, codes, bins is None, limits, signs)
    if forest.ccp_alpha > 0:
        nodes = _pruned(nodes, float(forest.ccp_alpha), forest.n_jobs)
    if forest.verbose == 1:
        print(f"{type(forest).__name__}: {len(nodes.root)} trees grown")
    return nodes


def _told(forest: Any, times_of: Callable[[int], np.ndarray], trees: int) -> Callable[[int], np.ndarray]:
    """Return the same function, which with verbose >= 2 says that a tree begins."""
    if forest.verbose < 2:
        return times_of
    begun = iter(range(1, trees + 1))

    def told(seed: int) -> np.ndarray:
        print(f"building tree {next(begun)} of {trees}")
        return times_of(seed)

    return told


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


def _sums(forest: Any, n_classes: int, bins: int, data: Read, draw: Draw) -> bool:
    """Tell whether trees can be grown on sums per bin: bins of one byte; numbers with squared errors, or classes of
    rows that count alike, not too often."""
    if n_classes:
        whole = data.weight is None and not forest._by_bag
        return bins <= 255 and n_classes < 2**16 and whole and draw.size <= _MOST_TIMES * len(data.y)
    return bins <= 255 and forest.criterion == "squared_error"


def _sorts(forest: Any, data: Read, limits: Limits, bins: int | None, signs: np.ndarray | None) -> bool:
    """Tell whether trees are grown on columns that are sorted once for all of them."""
    plain = bins is None and signs is None and not nominal_levels(forest) and not data.has_gaps
    return plain and sorts(data, limits, forest.criterion)


def _draws(forest: Any, data: Read) -> bool:
    """Tell whether every column offers one threshold that is drawn, on complete numeric columns."""
    plain = forest.extra and not nominal_levels(forest) and not data.has_gaps
    return bool(plain and draws(forest.criterion, data.y))


def _sorted_trees(
    forest: Any, data: Read, seeds: list[int], times_of: Callable, classes: np.ndarray, limits: Limits
) -> Nodes:
    """Return a tree for each seed on every value of complete columns."""
    columns, K = sort_columns(data, forest.n_jobs), int(classes.sum())
    codes = counted_instead(columns, len(data.y), 1 if data.y.ndim == 1 else 2, K)
    if codes is not None:
        return _weighted_trees(forest, data, seeds, times_of, K, codes, True, limits, None)
    entries = as_entries(columns, len(classes) > 0 and is_whole(data.weight))

    def tree(seed: int) -> Nodes:
        weight = times_of(seed) * (1.0 if data.weight is None else data.weight)
        return grow_sorted(entries, data.y, weight, classes, forest.criterion, limits, int(tree_seed(seed)))

    return joined(grown_trees(tree, seeds, forest.n_jobs))


def _binned_trees(
    forest: Any, data: Read, seeds: list[int], times_of: Callable, n_classes: int, bins: int, limits: Limits
) -> Nodes:
    """Return a tree for each seed on rows in bins, whose edges are quantiles of a sample of the rows."""
    n = data.rows.n_rows
    forest.binned_rows_ = min(n // 5, _SAMPLE)
    sample = data.rows.take(np.sort(bag(forest.bin_seed_, n, forest.binned_rows_, replace=False)))
    grids = [find_bins(sample, bins, {}, forest.n_jobs, shift) for shift in np.arange(_GRIDS) / _GRIDS - 0.5]
    if n_classes:
        kind = n_classes, forest.criterion
        return grow_forest(data.rows, data.y, grids, seeds, times_of, *kind, limits, forest.n_jobs)
    return grow_regression_forest(data.rows, data.y, data.weight, grids, seeds, times_of, limits, forest.n_jobs)


def _weighted_trees(
    forest: Any, data: Read, seeds: list[int], times_of: Callable, n_classes: int, codes: Columns, between: bool,
    limits: Limits, signs: np.ndarray | None,
) -> Nodes:  # fmt: skip
    """Return a tree for each seed, where rows have weights, or targets are numbers, or random splits are between
    bins; `between`: thresholds lie between values, not at the edges of bins."""

    def tree(seed: int) -> Nodes:
        weight = data.weight
        if forest.bootstrap or weight is None:
            weight = times_of(seed) * (1.0 if weight is None else weight)
        of = np.flatnonzero(weight > 0)
        if not forest.bootstrap and data.weight is None:
            weight = None
        drawn = int(tree_seed(seed))
        target = data.y, weight, of, n_classes, forest.criterion, limits, drawn
        return grow_exact(codes, *target, 1, between, signs)

    return joined(grown_trees(tree, seeds, forest.n_jobs))


def _pruned(nodes: Nodes, alpha: float, n_jobs: int | None) -> Nodes:
    """Return the trees, each pruned by minimal cost-complexity."""

    def cut(t: int) -> Nodes:
        tree = tree_at(nodes, t)
        return _pruning.cost_complexity(tree, tree.impurity * tree.weight / tree.weight[0], alpha)

    return joined(thread_map(cut, range(len(nodes.root)), n_jobs=n_jobs))

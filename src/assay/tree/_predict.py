"""Where rows end in fitted trees, and what is predicted there.

Sums of trees (`SumOfTrees`) are read on bins: a row is binned once by the thresholds of all trees, then every step
compares two bytes. The bins are derived from the thresholds of the nodes: x <= t exactly where no more thresholds of
the column lie below x than below t. So a prediction depends on the nodes alone.
"""

from typing import Any

import numpy as np

from assay.scan import Block, Rows, rows_per_block, thread_map
from assay.tree._nodes import Nodes
from assay.tree.growth._bins import Binned, Binner, bins_of
from assay.tree.growth._nominal import branches

_ROWS = 65_536
_MOST = 254  # thresholds of a column that bins of one byte distinguish, beside missing values


def leaves(nodes: Nodes, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return the leaf that each row reaches in each tree (rows, trees); every split must decide for every
    row."""
    from assay.tree._walk_loops import walk

    out = np.empty((len(X), len(nodes.root)), dtype=np.int32)
    step = rows_per_block(X.shape[1])
    words, threshold = _words(nodes)

    def work(i: int) -> None:
        walk(X[i : i + step], words, threshold, nodes.root, out[i : i + step])

    thread_map(work, range(0, len(X), step), n_jobs=n_jobs)
    return out


def mean_values(nodes: Nodes, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return the mean over trees of the leaf values (rows, outputs)."""
    if not np.any(nodes.table >= 0) and not np.isnan(X).any():
        out = _sums(nodes, X, n_jobs)
    elif goes_one_way(nodes):
        ends = mixed_leaves(nodes, X, n_jobs)
        out = np.sum([nodes.value[ends[:, t]] for t in range(ends.shape[1])], axis=0)
    else:
        out = np.sum([weighted_values(nodes, root, X) for root in nodes.root], axis=0)
    return out / len(nodes.root)


def split_outputs(shares: np.ndarray, classes: Any) -> Any:
    """Return shares of classes as they are, or, if `classes` is a list (one entry for each output), as a list too."""
    if not isinstance(classes, list):
        return shares
    return np.split(shares, np.cumsum([len(own) for own in classes])[:-1], axis=1)


def most_frequent(shares: np.ndarray, classes: Any) -> np.ndarray:
    """Return the class of the largest share, the first of equals; (rows, outputs) if `classes` is a list."""
    if not isinstance(classes, list):
        return classes[shares.argmax(axis=1)]
    parts = zip(classes, split_outputs(shares, classes))
    return np.stack([own[part.argmax(axis=1)] for own, part in parts], axis=1)


def goes_one_way(nodes: Nodes) -> bool:
    """Tell whether every split sends rows without the value tested down one branch."""
    return bool(np.all(nodes.missing[nodes.child >= 0] >= 0))


def mixed_leaves(nodes: Nodes, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return where each row ends in each tree (rows, trees), for trees that go one way; a level that was not seen at a
    node ends there."""
    from assay.tree._walk_loops import walk_mixed

    out = np.empty((len(X), len(nodes.root)), dtype=np.int32)
    step = rows_per_block(X.shape[1])
    parts = (nodes.column, nodes.threshold, nodes.table, nodes.tables, nodes.child, nodes.missing, nodes.root)

    def work(i: int) -> None:
        walk_mixed(X[i : i + step], *parts, out[i : i + step])

    thread_map(work, range(0, len(X), step), n_jobs=n_jobs)
    return out


def _sums(nodes: Nodes, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    from assay.tree._walk_loops import add_values

    out = np.zeros((len(X), nodes.value.shape[1]))
    step = min(rows_per_block(X.shape[1]), 4096)
    words, threshold = _words(nodes)

    def work(i: int) -> None:
        add_values(X[i : i + step], words, threshold, nodes.root, nodes.value, out[i : i + step])

    thread_map(work, range(0, len(X), step), n_jobs=n_jobs)
    return out


def _words(nodes: Nodes) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes as integers and thresholds; see `_walk_loops`."""
    leaf = nodes.child < 0
    column = np.where(leaf, 0, nodes.column).astype(np.uint64)
    child = np.where(leaf, np.arange(len(leaf)), nodes.child).astype(np.uint64)
    return (column << np.uint64(32)) | child, np.where(leaf, np.inf, nodes.threshold)


def weighted_values(nodes: Nodes, root: int, X: np.ndarray) -> np.ndarray:
    """Return the leaf values of one tree; a row without the value tested goes down all branches with their
    weights.

    A level that was not seen at a node is predicted by that node (its majority).
    """
    out = np.zeros((len(X), nodes.value.shape[1]))
    for leaf, rows, share in visits(nodes, root, X):
        out[rows] += share[:, None] * nodes.value[leaf]
    return out


def visits(nodes: Nodes, root: int, X: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return (node, rows, shares): where rows end, and with which share of their weight; shares of a row sum
    to 1."""
    results = []
    stack = [(int(root), np.arange(len(X)), np.ones(len(X)))]
    while stack:
        at, rows, share = stack.pop()
        if nodes.child[at] < 0 or not len(rows):
            if len(rows):
                results.append((at, rows, share))
            continue
        table = nodes.tables[nodes.table[at]] if nodes.table[at] >= 0 else None
        x = X[rows, nodes.column[at]]
        branch, known = branches(x, nodes.threshold[at], table)
        first, k = int(nodes.child[at]), int(nodes.n_children[at])
        unseen = ~known & ~np.isnan(x)
        if unseen.any():
            results.append((at, rows[unseen], share[unseen]))
        lost = ~known & ~unseen
        weight = nodes.weight[first : first + k]
        for v in range(k):
            mine = known & (branch == v)
            if nodes.missing[at] == v:
                mine = mine | lost
            stack.append((first + v, rows[mine], share[mine]))
            if nodes.missing[at] < 0 and lost.any() and weight[v] > 0:
                stack.append((first + v, rows[lost], share[lost] * weight[v] / weight.sum()))
    return results


# Sums of trees on bins
# ----------------------------------------------------------------------------------------------------------------------


def threshold_bins(nodes: Nodes, n_columns: int) -> Binner | None:
    """Return bins whose edges are the thresholds of the nodes; None if a column has too many of them."""
    inner = np.flatnonzero(nodes.child >= 0)
    named = inner[nodes.table[inner] >= 0]
    plain = inner[nodes.table[inner] < 0]
    nominal, edges = np.zeros(n_columns, dtype=np.uint8), np.full((n_columns, 255), np.inf)
    nominal[nodes.column[named]] = 1
    pairs = np.unique(np.column_stack([nodes.column[plain], nodes.threshold[plain]]), axis=0)
    column = pairs[:, 0].astype(np.int64)
    n_edges = np.bincount(column, minlength=n_columns)
    levels = nodes.tables.shape[1]
    if n_edges.max(initial=0) > _MOST or levels > 255 or np.any(nominal & (n_edges > 0)):
        return None
    first = np.append(0, np.cumsum(n_edges))[:-1]
    edges[column, np.arange(len(column)) - first[column]] = pairs[:, 1]
    return Binner(edges, np.where(nominal == 1, levels, n_edges), nominal)


class BinWalk:
    """Trees in the form that the compiled walk reads, for rows that `binner` has cut into bins; every threshold must be
    an edge."""

    def __init__(self, nodes: Nodes, binner: Binner):
        self.nodes, self.binner = nodes, binner
        self.depths = _tree_depths(nodes)
        self.values = np.ascontiguousarray(nodes.value[:, 0])
        last = _last_bins(nodes, binner)
        self.named = bool(np.any(nodes.table >= 0))
        self.steps = _left_tables(nodes, last) if self.named else _bin_words(nodes, last)

    def add(self, bins: np.ndarray, trees: slice, out: np.ndarray) -> None:
        """Add to `out` (rows,) the values of the leaves that rows of bins reach in some of the trees."""
        from assay.tree import _walk_loops as loops

        nodes, roots = self.nodes, self.nodes.root[trees]
        if self.named:
            loops.predict_nominal_block(bins, nodes.column, nodes.child, self.steps, self.values, roots, out)
        else:
            loops.predict_block(bins, self.steps, self.values, roots, self.depths[trees], out)


class SumOfTrees:
    """Trees whose values add up, for rows of X: `n_outputs` sums, to which the trees belong in turn."""

    def __init__(self, nodes: Nodes, n_columns: int, n_outputs: int):
        self.nodes, self.n_outputs = nodes, n_outputs
        binner = threshold_bins(nodes, n_columns)
        self.walk = None if binner is None else BinWalk(nodes, binner)

    def add(self, X: np.ndarray, scores: np.ndarray, first: int = 0, end: int | None = None) -> None:
        """Add the values of trees first .. end - 1 to the scores (rows, outputs), one tree after the other: the sums
        are those of a fit to the last bit."""
        walk = self.walk
        bins: Any = None if walk is None else bins_of(Block(X, None, None, 0), *walk.binner)
        for k in range(self.n_outputs):
            trees, out = slice(first + k, end, self.n_outputs), scores[:, k].copy()
            if walk is not None:
                walk.add(bins, trees, out)
            else:
                _add_leaves(self.nodes._replace(root=self.nodes.root[trees]), X, out)
            scores[:, k] = out

    def sums(self, rows: Rows, base: np.ndarray) -> np.ndarray:
        """Return the scores of all rows (rows, outputs): `base` (outputs,) and the values of all trees."""
        result = np.empty((rows.n_rows, self.n_outputs))

        def place(start: int, scores: np.ndarray) -> None:
            result[start : start + len(scores)] = scores

        rows.collect(place, _sums_of, self, base)
        return result


def _sums_of(block: Block, trees: SumOfTrees, base: np.ndarray) -> np.ndarray:
    scores = np.tile(base, (len(block.X), 1))
    trees.add(block.X, scores)
    return scores


def _add_leaves(nodes: Nodes, X: np.ndarray, out: np.ndarray) -> None:
    for leaf in mixed_leaves(nodes, X, 1).T:
        out += nodes.value[leaf, 0]


def _bin_words(nodes: Nodes, last: np.ndarray) -> np.ndarray:
    """Return each node as one integer; see `_walk_loops._bin_step`."""
    leaf = nodes.child < 0
    column = np.where(leaf, 0, nodes.column).astype(np.uint64)
    shift = (~leaf & (nodes.missing == 0)).astype(np.uint64)
    last = np.where(leaf, 255, last + shift).astype(np.uint64)
    child = np.where(leaf, np.arange(len(leaf)), nodes.child).astype(np.uint64)
    return (column << np.uint64(48)) | (shift << np.uint64(40)) | (last << np.uint64(32)) | child


def _last_bins(nodes: Nodes, binner: Binner) -> np.ndarray:
    """Return the bin whose upper edge is the threshold of each node; the last one for a split on missing
    values alone."""
    last = np.zeros(len(nodes.child), dtype=np.uint64)
    plain = (nodes.child >= 0) & (nodes.table < 0)
    for f in np.unique(nodes.column[plain]):
        at = np.flatnonzero(plain & (nodes.column == f))
        last[at] = np.searchsorted(binner.edges[f, : binner.n_edges[f]], nodes.threshold[at])
    return last


def _left_tables(nodes: Nodes, last: np.ndarray) -> np.ndarray:
    """Return (nodes, 256): 1 for the bins that go left."""
    tables = (np.arange(256) <= last[:, None].astype(np.int64)).astype(np.uint8)
    nominal = np.flatnonzero(nodes.table >= 0)
    known = nodes.tables[nodes.table[nominal]]
    tables[nominal] = 0
    tables[nominal, : known.shape[1]] = known == 0
    tables[:, 255] = nodes.missing == 0
    return tables


def _tree_depths(nodes: Nodes) -> np.ndarray:
    return np.maximum.reduceat(nodes.depths(), nodes.root)


def add_trees(nodes: Nodes, binner: Binner, binned: Binned, scores: np.ndarray, spread: Any) -> None:
    """Add to the scores (rows,) the values of all trees, on rows that are binned already."""
    walk = BinWalk(nodes, binner)

    def work(i: int) -> None:
        walk.add(binned.rows[i : i + _ROWS], slice(None), scores[i : i + _ROWS])

    spread(work, range(0, len(scores), _ROWS))

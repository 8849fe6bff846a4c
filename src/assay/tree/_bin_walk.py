"""Sums of trees on bins: a row is binned once by the thresholds of all trees, then every step compares two bytes.

The bins are derived from the thresholds of the nodes: x <= t exactly where no more thresholds of the column lie below
x than below t. So a prediction depends on the nodes alone.
"""

from typing import Any

import numpy as np

from assay.scan import Block, Rows
from assay.tree._nodes import Nodes
from assay.tree._predict import mixed_leaves
from assay.tree.growth._bins import Binned, Binner, bins_of

_ROWS = 65_536
_MOST = 254  # thresholds of a column that bins of one byte tell apart, beside missing values


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
        self.steps = _left_tables(nodes, last) if self.named else _words(nodes, last)

    def add(self, bins: np.ndarray, trees: slice, out: np.ndarray) -> None:
        """Add to `out` (rows,) the values of the leaves that rows of bins reach in some of the trees."""
        from assay.tree import _bin_walk_loops as loops

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
        found = np.empty((rows.n_rows, self.n_outputs))

        def place(start: int, scores: np.ndarray) -> None:
            found[start : start + len(scores)] = scores

        rows.collect(place, _sums_of, self, base)
        return found


def _sums_of(block: Block, trees: SumOfTrees, base: np.ndarray) -> np.ndarray:
    scores = np.tile(base, (len(block.X), 1))
    trees.add(block.X, scores)
    return scores


def _add_leaves(nodes: Nodes, X: np.ndarray, out: np.ndarray) -> None:
    for leaf in mixed_leaves(nodes, X, 1).T:
        out += nodes.value[leaf, 0]


def _words(nodes: Nodes, last: np.ndarray) -> np.ndarray:
    """Return each node as one integer; see `_bin_walk_loops._step`."""
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

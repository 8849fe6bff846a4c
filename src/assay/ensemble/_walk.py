"""Prediction of boosted trees on bins: the compiled walk reads a node as one integer."""

from typing import Any

import numpy as np

from assay.tree._nodes import Nodes
from assay.tree.growth._hist_grower import Binned, Binner

_ROWS = 65_536


class Walk:
    """Boosted trees in the form that the compiled prediction reads."""

    def __init__(self, nodes: Nodes, n_outputs: int):
        self.nodes, self.n_outputs = nodes, n_outputs
        self.depths = _tree_depths(nodes)

    def add(self, binner: Binner, X: np.ndarray, scores: np.ndarray) -> None:
        """Add the trees' values to the scores (rows, outputs) of some rows."""
        bins = np.zeros((len(X), -(-X.shape[1] // 8) * 8), dtype=np.uint8)
        binner.write(X, 0, bins)
        for k in range(self.n_outputs):
            out = np.zeros(len(X))
            walk_bins(
                self.nodes,
                self.nodes.root[k :: self.n_outputs],
                self.depths[k :: self.n_outputs],
                binner,
                bins,
                out,
            )
            scores[:, k] += out


def walk_bins(
    nodes: Nodes, roots: np.ndarray, depths: np.ndarray, binner: Binner, bins: np.ndarray, out: np.ndarray
) -> None:
    """Add to `out` the values of the leaves that rows of bins reach in the trees that begin at `roots`."""
    from assay.tree.growth import _hist_loops as loops

    values = np.ascontiguousarray(nodes.value[:, 0])
    if np.any(nodes.table >= 0):
        tables = _left_tables(nodes, binner)
        loops.predict_nominal_block(bins, nodes.column, nodes.child, tables, values, roots, out)
    else:
        loops.predict_block(bins, _words(nodes, binner), values, roots, depths, out)


def _words(nodes: Nodes, binner: Binner) -> np.ndarray:
    """Return each node as one integer; see `_hist_loops._step`."""
    leaf = nodes.child < 0
    column = np.where(leaf, 0, nodes.column).astype(np.uint64)
    last = _last_bins(nodes, binner)
    shift = (~leaf & (nodes.missing == 0)).astype(np.uint64)
    last = np.where(leaf, 255, last + shift).astype(np.uint64)
    child = np.where(leaf, np.arange(len(leaf)), nodes.child).astype(np.uint64)
    return (column << np.uint64(48)) | (shift << np.uint64(40)) | (last << np.uint64(32)) | child


def _last_bins(nodes: Nodes, binner: Binner) -> np.ndarray:
    """Return the bin whose upper edge is the threshold of each node; the last one for a split on missing
    values alone."""
    last = np.zeros(len(nodes.child), dtype=np.uint64)
    for at in np.flatnonzero((nodes.child >= 0) & (nodes.table < 0)):
        f = nodes.column[at]
        last[at] = np.searchsorted(binner.edges[f, : binner.n_edges[f]], nodes.threshold[at])
    return last


def _left_tables(nodes: Nodes, binner: Binner) -> np.ndarray:
    """Return (nodes, 256): 1 for the bins that go left."""
    last = _last_bins(nodes, binner)
    tables = (np.arange(256) <= last[:, None].astype(np.int64)).astype(np.uint8)
    nominal = np.flatnonzero(nodes.table >= 0)
    known = nodes.tables[nodes.table[nominal]]
    tables[nominal] = 0
    tables[nominal, : known.shape[1]] = known == 0
    tables[:, 255] = nodes.missing == 0
    return tables


def _tree_depths(nodes: Nodes) -> np.ndarray:
    depth = nodes.depths()
    return np.array([depth[a:b].max() for a, b in zip(nodes.root, [*nodes.root[1:], len(depth)])], dtype=np.int64)


def add_trees(nodes: Nodes, binner: Binner, binned: Binned, scores: np.ndarray, spread: Any) -> None:
    """Add to the scores (rows,) the values of all trees, on rows that are binned already."""
    depths = _tree_depths(nodes)

    def work(i: int) -> None:
        walk_bins(nodes, nodes.root, depths, binner, binned.rows[i : i + _ROWS], scores[i : i + _ROWS])

    spread(work, range(0, len(scores), _ROWS))

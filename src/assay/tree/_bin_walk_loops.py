"""Compiled walks of binned rows down trees: a node is one integer, eight rows walk side by side."""

import numpy as np

from assay.jit import compiled


@compiled
def _step(nodes, bins, i, at):
    """Return the child that row i goes to: the left one, or the one after it.

    A node is one integer: column (16 bits), shift (8), last bin on the left (8), left child (32). Adding the
    shift modulo 256
    turns `MISSING` into the smallest bin when missing values go left. A leaf has last bin 255 and itself as
    its child, so
    that all rows can take as many steps as the tree is deep.
    """
    node = nodes[at]
    b = (np.uint64(bins[i, node >> np.uint64(48)]) + (node >> np.uint64(40))) & np.uint64(255)
    return (node & np.uint64(0xFFFFFFFF)) + np.uint64(b > ((node >> np.uint64(32)) & np.uint64(255)))


@compiled
def predict_block(bins, nodes, values, roots, depths, out):
    """Add to `out` (rows,) the values of the leaves that each row reaches in all trees; eight rows walk side
    by side."""
    n = bins.shape[0]
    whole = n - n % 8
    for t in range(roots.shape[0]):
        root = np.uint64(roots[t])
        for i in range(0, whole, 8):
            a, b, c, d, e, f, g, h = root, root, root, root, root, root, root, root
            for _ in range(depths[t]):
                a, b = _step(nodes, bins, i, a), _step(nodes, bins, i + 1, b)
                c, d = _step(nodes, bins, i + 2, c), _step(nodes, bins, i + 3, d)
                e, f = _step(nodes, bins, i + 4, e), _step(nodes, bins, i + 5, f)
                g, h = _step(nodes, bins, i + 6, g), _step(nodes, bins, i + 7, h)
            out[i] += values[a]
            out[i + 1] += values[b]
            out[i + 2] += values[c]
            out[i + 3] += values[d]
            out[i + 4] += values[e]
            out[i + 5] += values[f]
            out[i + 6] += values[g]
            out[i + 7] += values[h]
        for i in range(whole, n):
            a = root
            for _ in range(depths[t]):
                a = _step(nodes, bins, i, a)
            out[i] += values[a]


@compiled
def predict_nominal_block(bins, columns, children, tables, values, roots, out):
    """The same for trees with nominal splits: `tables` (nodes, 256) tells which bins go left; a leaf has no
    child (-1)."""
    for t in range(roots.shape[0]):
        for i in range(bins.shape[0]):
            at = roots[t]
            while children[at] >= 0:
                at = children[at] + 1 - tables[at, bins[i, columns[at]]]
            out[i] += values[at]

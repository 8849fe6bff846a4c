"""Compiled walks of rows down trees: of numbers, of numbers with levels and missing values, and of bins.

Where every split decides for every row, a node is a threshold and one integer: column (upper 32 bits), first child
(lower 32). A leaf is its own child and has the threshold infinity, so that a row that has arrived stays where it is:
four rows walk side by side without a branch to mispredict, until none of them moves.
"""

import numpy as np

from assay.jit import compiled

_LOWER = np.uint64(0xFFFFFFFF)
_SIDE_BY_SIDE = 4


@compiled
def _step(X, i, words, threshold, at):
    word = words[at]
    return (word & _LOWER) + np.uint64(X[i, word >> np.uint64(32)] > threshold[at])


@compiled
def _four(X, i, words, threshold, root):
    """Return the leaves of rows i .. i + 3."""
    a, b, c, d = root, root, root, root
    while True:
        e, f = _step(X, i, words, threshold, a), _step(X, i + 1, words, threshold, b)
        g, h = _step(X, i + 2, words, threshold, c), _step(X, i + 3, words, threshold, d)
        if e == a and f == b and g == c and h == d:
            return a, b, c, d
        a, b, c, d = e, f, g, h


@compiled
def _one(X, i, words, threshold, root):
    """Return the leaf of row i."""
    at = root
    while True:
        to = _step(X, i, words, threshold, at)
        if to == at:
            return at
        at = to


@compiled
def walk(X, words, threshold, roots, out):
    """Write the leaf that each row of X reaches in each tree, (rows, trees)."""
    n = X.shape[0]
    whole = n - n % _SIDE_BY_SIDE
    for t in range(roots.shape[0]):
        root = np.uint64(roots[t])
        for i in range(0, whole, _SIDE_BY_SIDE):
            out[i, t], out[i + 1, t], out[i + 2, t], out[i + 3, t] = _four(X, i, words, threshold, root)
        for i in range(whole, n):
            out[i, t] = _one(X, i, words, threshold, root)


@compiled
def add_values(X, words, threshold, roots, value, out):
    """Add to `out` (rows, outputs) the values of the leaves that each row reaches in all trees."""
    n, width = X.shape[0], value.shape[1]
    whole = n - n % _SIDE_BY_SIDE
    for t in range(roots.shape[0]):
        root = np.uint64(roots[t])
        for i in range(0, whole, _SIDE_BY_SIDE):
            a, b, c, d = _four(X, i, words, threshold, root)
            for k in range(width):
                out[i, k] += value[a, k]
                out[i + 1, k] += value[b, k]
                out[i + 2, k] += value[c, k]
                out[i + 3, k] += value[d, k]
        for i in range(whole, n):
            a = _one(X, i, words, threshold, root)
            for k in range(width):
                out[i, k] += value[a, k]


@compiled
def walk_mixed(X, column, threshold, table, tables, child, missing, roots, out):
    """Write where each row of X ends in each tree, (rows, trees): a leaf, or the node that does not know its level."""
    for t in range(roots.shape[0]):
        for i in range(X.shape[0]):
            at = roots[t]
            while child[at] >= 0:
                x = X[i, column[at]]
                if np.isnan(x):
                    branch = missing[at]
                elif table[at] < 0:
                    branch = 0 if x <= threshold[at] else 1
                elif x < 0 or x >= tables.shape[1]:
                    break
                else:
                    branch = tables[table[at], np.int64(x)]
                    if branch < 0:
                        break
                at = child[at] + branch
            out[i, t] = at


# Bins: a node is one integer, eight rows walk side by side
# ----------------------------------------------------------------------------------------------------------------------


@compiled
def _bin_step(nodes, bins, i, at):
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
                a, b = _bin_step(nodes, bins, i, a), _bin_step(nodes, bins, i + 1, b)
                c, d = _bin_step(nodes, bins, i + 2, c), _bin_step(nodes, bins, i + 3, d)
                e, f = _bin_step(nodes, bins, i + 4, e), _bin_step(nodes, bins, i + 5, f)
                g, h = _bin_step(nodes, bins, i + 6, g), _bin_step(nodes, bins, i + 7, h)
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
                a = _bin_step(nodes, bins, i, a)
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

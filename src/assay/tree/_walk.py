"""Compiled walks of rows down trees whose every split decides for every row.

A node is a threshold and one integer: column (upper 32 bits), first child (lower 32). A leaf is its own child and has
the threshold infinity, so that a row that has arrived stays where it is: four rows walk side by side without a branch
to mispredict, until none of them moves.
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

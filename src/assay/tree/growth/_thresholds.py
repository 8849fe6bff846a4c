"""Compiled search for the best split threshold of numeric columns, missing values included (`_nominal_missing`)."""

from math import log2

import numpy as np

from assay.jit import compiled
from assay.tree.growth._order import sort_column

SQUARED, GINI, ENTROPY = 0, 1, 2


@compiled
def _weight(totals, kind):
    if kind == SQUARED:
        return totals[0]
    weight = 0.0
    for k in range(totals.shape[0]):
        weight += totals[k]
    return weight


@compiled
def _impurity(totals, kind):
    """Return the impurity of class weights, or of (weight, sum, sum of squares); see `_nominal_missing.impurity`."""
    weight = max(_weight(totals, kind), 1e-300)
    if kind == SQUARED:
        mean = totals[1] / weight
        return max(totals[2] / weight - mean * mean, 0.0)
    out = 0.0
    for k in range(totals.shape[0]):
        p = totals[k] / weight
        if kind == GINI:
            out += p * p
        elif p > 0:
            out -= p * log2(p)
    return 1.0 - out if kind == GINI else out


@compiled
def _mixed(left, right, lost, filled, first, kind, whole):
    """Return the impurity after the split when the missing rows go to the left (or, unless `first`, right) branch."""
    out = 0.0
    for side in range(2):
        own = left if side == 0 else right
        for k in range(lost.shape[0]):
            filled[k] = own[k] + (lost[k] if (side == 0) == first else 0.0)
        out += _weight(filled, kind) / whole * _impurity(filled, kind)
    return out


@compiled
def _judge(left, right, before, lost, filled, kind, whole, known, directed):
    """Return the gain of a threshold, given the impurity before the split, and the branch that takes missing values (-1
    for both)."""
    if directed and lost.shape[0]:
        first = before - _mixed(left, right, lost, filled, True, kind, whole)
        second = before - _mixed(left, right, lost, filled, False, kind, whole)
        return max(first, second), 0 if first >= second else 1
    a, b = _weight(left, kind) / known, _weight(right, kind) / known
    gain = known / whole * (before - (a * _impurity(left, kind) + b * _impurity(right, kind)))
    return gain, (0 if a >= b else 1) if directed else -1


@compiled
def _information(share):
    """Return -share log2 share - (1 - share) log2(1 - share)."""
    rest = 1 - share
    return -(share * log2(share) if share > 0 else 0.0) - (rest * log2(rest) if rest > 0 else 0.0)


@compiled
def best_thresholds(X, stats, weight, lost, kind, directed, whole, least, found):
    """Find the threshold with the largest gain in each column of X (rows, columns), all values known.

    Of thresholds whose gains differ by no more than rounding, the first is taken.

    stats (rows, statistics): weighted class indicators, or weight times (1, y, y^2); lost (statistics,): the same
    summed over rows without the value, or empty; whole: weight of all rows; least: weight that each side must have.
    Writes gain, gain ratio, threshold, share of the left branch, branch of missing values to `found` (columns, 5);
    a column without a threshold keeps its gain of minus infinity.
    """
    m, d = X.shape
    order, x = np.empty(m, dtype=np.int32), np.empty(m)
    sums = np.zeros((4, stats.shape[1]))
    total, left, right, filled = sums[0], sums[1], sums[2], sums[3]
    known = 0.0
    for i in range(m):
        known += weight[i]
        for k in range(stats.shape[1]):
            total[k] += stats[i, k]
    for k in range(stats.shape[1]):
        filled[k] = total[k] + (lost[k] if directed and lost.shape[0] else 0.0)
    before = _impurity(filled, kind)
    slack = 1e-13 * before
    for f in range(d):
        best = found[f]
        best[0] = -np.inf
        x[:] = X[:, f]
        sort_column(x, order)
        left[:] = 0.0
        heavy = 0.0
        for i in range(m - 1):
            row = order[i]
            heavy += weight[row]
            for k in range(stats.shape[1]):
                left[k] += stats[row, k]
                right[k] = total[k] - left[k]
            low, high = x[row], x[order[i + 1]]
            if high == low or heavy < least or known - heavy < least:
                continue
            gain, branch = _judge(left, right, before, lost, filled, kind, whole, known, directed)
            if gain > best[0] + slack:
                middle, share = low / 2 + high / 2, _weight(left, kind) / known
                value = _information(share)
                best[0], best[1] = gain, gain / value if value > 1e-12 else -np.inf
                best[2], best[3], best[4] = middle if low <= middle < high else low, heavy / known, branch

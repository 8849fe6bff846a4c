"""Compiled search for the threshold with the smallest absolute errors; see `_absolute`."""

import numpy as np

from assay.jit import compiled
from assay.tree.growth._builder import allowed


@compiled
def best_threshold(x, order, rank, levels, w, least_rows, least_weight, sign, low, high, values):
    """Return the smallest sum of deviations of two children, the rows on both sides of that threshold (-1: none), and,
    if the sign is not 0, the middle of the children's medians, which are `allowed`.

    x, w (m,) values and weights of the rows; order (m,) rows by ascending x; rank (m,) of each row's y;
    levels (m,) the y, less some number, in ascending order; values (m,) the y themselves.
    """
    m = x.shape[0]
    after, weights, sums = np.zeros(m), np.zeros(m + 1), np.zeros(m + 1)
    medians = np.zeros((2, m if sign != 0 else 0))
    running_losses(order, rank, levels, w, weights, sums, after, values, medians[1], True)
    total = 0.0
    for i in range(m):
        total += w[i]
    before = np.zeros(m)
    weights[:] = 0.0
    sums[:] = 0.0
    running_losses(order, rank, levels, w, weights, sums, before, values, medians[0], False)
    best, a, b, heavy, middle = np.inf, -1, -1, 0.0, 0.0
    for i in range(m - 1):
        heavy += w[order[i]]
        if x[order[i]] == x[order[i + 1]] or i + 1 < least_rows or m - 1 - i < least_rows:
            continue
        if heavy < least_weight or total - heavy < least_weight:
            continue
        loss = before[i] + after[i + 1]
        if loss < best * (1 - 1e-12) or best == np.inf:  # a smaller difference is rounding: the first of equals
            if sign != 0:
                if not allowed(medians[0, i], medians[1, i + 1], sign, low, high):
                    continue
                middle = medians[0, i] / 2 + medians[1, i + 1] / 2
            best, a, b = loss, order[i], order[i + 1]
    return best, a, b, middle


@compiled
def running_losses(order, rank, levels, w, weights, sums, out, values, medians, backwards):
    """Write out[i]: the sum of deviations from their median of the rows up to the i-th (or from it on); and those
    medians of `values`, if there is room for them.

    `weights` and `sums` (m + 1,) are Fenwick trees over ranks, zero on entry.
    """
    m = order.shape[0]
    top = 1
    while 2 * top <= m:
        top *= 2
    whole, whole_sum = 0.0, 0.0
    for step in range(m):
        i = m - 1 - step if backwards else step
        r = order[i]
        value = levels[rank[r]]
        whole += w[r]
        whole_sum += w[r] * value
        k = rank[r] + 1
        while k <= m:
            weights[k] += w[r]
            sums[k] += w[r] * value
            k += k & -k
        at, below, below_sum, jump = 0, 0.0, 0.0, top
        while jump > 0:
            if at + jump <= m and below + weights[at + jump] < 0.5 * whole:
                at += jump
                below += weights[at]
                below_sum += sums[at]
            jump //= 2
        middle = levels[min(at, m - 1)]
        if medians.size:
            medians[i] = values[min(at, m - 1)] / 2 + values[_first_above(weights, 0.5 * whole, top)] / 2
        out[i] = max(0.0, middle * below - below_sum + (whole_sum - below_sum) - middle * (whole - below))


@compiled
def _first_above(weights, share, top):
    """Return the first rank up to which the weights of a Fenwick tree (m + 1,) sum to more than `share`."""
    m = weights.shape[0] - 1
    at, below, jump = 0, 0.0, top
    while jump > 0:
        if at + jump <= m and below + weights[at + jump] <= share:
            at += jump
            below += weights[at]
        jump //= 2
    return min(at, m - 1)

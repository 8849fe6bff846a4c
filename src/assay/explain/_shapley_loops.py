"""Compiled sums over the leaves of trees: Shapley values of the product of what each column lets through.

The value of a leaf counts for a set S of columns by the product over the columns of its path: of a column in S,
whether the row passes its splits, o; of another, the share of the reference that does, z. The Shapley value of such a
product is

    (o_i - z_i) times the integral from 0 to 1 of product over the other columns of (z_j + (o_j - z_j) t) dt,

since the integral of t^k (1 - t)^(m - 1 - k) is the weight k! (m - 1 - k)! / m! of a set of k columns. The integrand is
a polynomial of degree m - 1, on which Gauss and Legendre's rule with m / 2 points, rounded up, is exact.
"""

import numpy as np

from assay.jit import compiled


@compiled
def _share(x, node, branch, column, threshold, table, tables, child, missing, weight):
    """Return which share of a row goes down a branch; branch -1 is the node itself, for a level that it has not met."""
    value = x[column[node]]
    lost = np.isnan(value)
    taken = -1
    if not lost:
        if table[node] < 0:
            taken = 1 if value > threshold[node] else 0
        elif 0 <= value < tables.shape[1]:
            taken = tables[table[node], np.int64(value)]
        return 1.0 if taken == branch else 0.0
    if branch < 0:
        return 0.0
    if missing[node] >= 0:
        return 1.0 if missing[node] == branch else 0.0
    total = 0.0
    last = 2 if table[node] < 0 else tables[table[node]].max() + 1
    for k in range(last):
        total += weight[child[node] + k]
    return weight[child[node] + branch] / total if total > 0 else 0.0


@compiled
def passes(x, starts, steps, place, column, threshold, table, tables, child, missing, weight, out):
    """Write for each column of each path which share of a row passes all its splits.

    Path e has the steps starts[e] to starts[e + 1], (node, branch), of which each belongs to the entry place of `out`.
    """
    out[:] = 1.0
    for s in range(starts[-1]):
        node, branch = steps[s, 0], steps[s, 1]
        out[place[s]] *= _share(x, node, branch, column, threshold, table, tables, child, missing, weight)


@compiled
def attribute(o, z, entries, columns, values, nodes, weights, first, scale, out, base):
    """Add to `out` (columns, outputs) the Shapley values of a row, and to `base` (outputs,) what the reference gives.

    The columns of path e are the entries entries[e] to entries[e + 1] of o, z and `columns`; `values` (paths, outputs).
    The rule with k points is first[k] to first[k + 1] of `nodes` and `weights`, on the interval from 0 to 1.
    """
    for e in range(values.shape[0]):
        start, stop = entries[e], entries[e + 1]
        m = stop - start
        whole, blocked, moved = 1.0, False, False
        for k in range(start, stop):
            whole *= z[k]
            blocked |= o[k] == 0.0 and z[k] == 0.0
            moved |= o[k] != z[k]
        for c in range(values.shape[1]):
            base[c] += scale * whole * values[e, c]
        if blocked or not moved:
            continue
        points = (m + 1) // 2
        for q in range(first[points], first[points + 1]):
            t, weight = nodes[q], weights[q]
            product, zeros, at = 1.0, 0, -1
            for k in range(start, stop):
                factor = z[k] + (o[k] - z[k]) * t
                if factor == 0.0:
                    zeros, at = zeros + 1, k
                else:
                    product *= factor
            if zeros > 1:
                continue
            for k in range(start, stop):
                if o[k] == z[k] or (zeros == 1 and k != at):
                    continue
                rest = product if zeros == 1 else product / (z[k] + (o[k] - z[k]) * t)
                share = scale * weight * (o[k] - z[k]) * rest
                for c in range(values.shape[1]):
                    out[columns[k], c] += share * values[e, c]

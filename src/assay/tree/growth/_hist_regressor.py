"""Compiled growth of a regression tree on binned rows with weights: the trees of forests.

As in `_hist_classifier`, the columns drawn at a node are summed together, row by row, and in a small node a bit for each bin
that occurs leads the scan. A cell holds the weight, the weighted sum of the targets and the number of its rows; the
best border has the largest  S_l^2 / W_l + S_r^2 / W_r,  which is the largest decrease of squared error.
"""

import numpy as np

from assay.jit import compiled, prefetch, trailing_zeros
from assay.tree.growth._exact_loops import below
from assay.tree.growth._hist_classifier import BINS, part

_CELL = 3
_SMALL = 256  # rows up to which marking the occupied bins one by one pays
_AHEAD = np.uint64(12)  # rows between asking for a row's bins and using them


@compiled
def _sum(bins, entries, start, stop, columns, weight, pull, cells, occupied):
    """Add entries[start:stop] to `cells` (columns * 256 * 3); mark bins that occur in `occupied` (columns * 4)."""
    k, one, cell = np.uint64(columns.shape[0]), np.uint64(1), np.uint64(_CELL)
    last, width, mark = np.uint64(stop - 1), np.uint64(bins.shape[1]), stop - start <= _SMALL
    for i in range(np.uint64(start), np.uint64(stop)):
        row = entries[i] >> np.uint64(32)
        w, s = weight[row], pull[row]
        prefetch(bins, (entries[min(i + _AHEAD, last)] >> np.uint64(32)) * width)
        for j in range(k):
            b = np.uint64(bins[row, columns[j]])
            at = ((j << np.uint64(8)) + b) * cell
            cells[at] += w
            cells[at + one] += s
            cells[at + one + one] += 1.0
            if mark:
                occupied[(j << np.uint64(2)) + (b >> np.uint64(6))] |= one << (b & np.uint64(63))
    if not mark:
        for place in range(columns.shape[0] * BINS):
            occupied[place >> 6] |= np.uint64(cells[place * _CELL + 2] > 0) << np.uint64(place & 63)


@compiled
def _scan(cells, occupied, j, column, total, rows, rule, found):
    """Find the best border of the column summed j-th, and clear its cells; tell whether it has two bins.

    `total`: weight and weighted sum of the node. `found`: merit, column, the bins beside the border.
    """
    weight, pull, taken, first, previous = 0.0, 0.0, 0.0, np.int64(-1), np.int64(-1)
    for w in range(4):
        bits = occupied[4 * j + w]
        occupied[4 * j + w] = np.uint64(0)
        while bits != np.uint64(0):
            b = np.int64(trailing_zeros(bits)) + 64 * w
            bits &= bits - np.uint64(1)
            others = total[0] - weight
            allowed = min(taken, rows - taken) >= rule[0] and min(weight, others) >= rule[1]
            if previous >= 0 and allowed and weight > 0 and others > 0:
                rest = total[1] - pull
                merit = (pull * pull * others + rest * rest * weight) / (weight * others)
                if merit > found[0]:
                    found[0], found[1], found[2], found[3] = merit, column, previous, b
            at = (j * BINS + b) * _CELL
            weight += cells[at]
            pull += cells[at + 1]
            taken += cells[at + 2]
            cells[at : at + _CELL] = 0.0
            first = b if first < 0 else first
            previous = b
    return first < previous


@compiled
def _best(bins, entries, start, stop, weight, pull, total, rule, order, most, state, cells, occupied, found):
    """Draw columns until `most` of them with two values were tried and a border was found; write the best one."""
    d, drawn, tried = order.shape[0], 0, 0
    found[0], found[1] = -np.inf, -1.0
    while drawn < d and (tried < most or found[1] < 0):
        end = min(drawn + max(most - tried, 1), d)
        if most < d:
            for i in range(drawn, end):
                j = i + below(state, d - i)
                order[i], order[j] = order[j], order[i]
        columns = order[drawn:end]
        _sum(bins, entries, start, stop, columns, weight, pull, cells, occupied)
        for j in range(end - drawn):
            tried += _scan(cells, occupied, j, np.int64(columns[j]), total, stop - start, rule, found)
        drawn = end


@compiled
def _totals(entries, start, stop, y, weight, total):
    """Write weight, weighted sum and weighted squares of a node to `total` (3,); tell whether its targets differ."""
    total[:] = 0.0
    low, high = np.inf, -np.inf
    for i in range(start, stop):
        row = entries[i] >> np.uint64(32)
        w, t = weight[row], y[row]
        total[0] += w
        total[1] += w * t
        total[2] += w * t * t
        low, high = min(low, t), max(high, t)
    return low < high


@compiled
def grow_hist_regressor(bins, n_columns, edges, entries, y, weight, rule, max_features, seed):
    """Grow a tree; return column, threshold, child, (weight, weighted sum), merit and weighted squares of its nodes.

    bins, edges, rule: see `_hist_classifier.grow_hist_classifier`; entries (m,): row numbers times 2^32, reordered in place; y and
    weight (n,): targets, best centred, and weights of all rows.
    """
    m = entries.shape[0]
    most = 2 * m + 1 if rule[4] <= 0 else min(2 * m + 1, 2 * int(rule[4]) + 1)
    column, child, threshold = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32), np.empty(most)
    total, merit, gain = np.empty((most, 3)), np.empty(most), np.empty(most)
    start, stop, depth = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int32)
    split, frontier = np.empty((most, 4)), np.empty(most, dtype=np.int64)
    state, spare, order = (
        np.empty(1, dtype=np.uint64),
        np.empty(m, dtype=np.uint64),
        np.arange(n_columns).astype(np.uint64),
    )
    cells, occupied = np.zeros(max_features * BINS * _CELL), np.zeros(max_features * 4, dtype=np.uint64)
    pull = weight * y
    state[0] = seed
    start[0], stop[0], depth[0] = 0, m, 0
    fresh, end, waiting = 0, 1, 0
    while True:
        for node in range(fresh, end):
            column[node], child[node], threshold[node], gain[node] = -1, -1, 0.0, 0.0
            a, b = start[node], stop[node]
            differ = _totals(entries, a, b, y, weight, total[node])
            merit[node] = total[node, 1] * total[node, 1] / total[node, 0]
            if not differ or b - a < max(rule[2], 2 * rule[0]) or depth[node] >= rule[3]:
                continue
            found = split[node]
            _best(
                bins, entries, a, b, weight, pull, total[node], rule, order, max_features, state, cells, occupied, found
            )
            gain[node] = found[0] - merit[node]
            if found[1] < 0 or gain[node] < rule[5] * (1 - 1e-12) - 1e-9 * total[node, 2]:
                continue
            frontier[waiting] = node
            waiting += 1
        if waiting == 0 or (rule[4] > 0 and end >= 2 * rule[4] - 1):
            break
        pick = waiting - 1
        if rule[4] > 0:
            for i in range(waiting):
                if gain[frontier[i]] > gain[frontier[pick]]:
                    pick = i
        node = frontier[pick]
        waiting -= 1
        frontier[pick] = frontier[waiting]
        f, low, high = np.int64(split[node, 1]), np.int64(split[node, 2]), np.int64(split[node, 3])
        column[node], child[node] = f, end
        middle = edges[f, low] / 2 + edges[f, high - 1] / 2
        threshold[node] = middle if edges[f, low] < middle < edges[f, high - 1] else edges[f, low]
        border = part(bins, f, low, entries, spare, start[node], stop[node])
        start[end], stop[end], start[end + 1], stop[end + 1] = start[node], border, border, stop[node]
        depth[end] = depth[end + 1] = depth[node] + 1
        fresh, end = end, end + 2
    sums, squares = total[:end, :2].copy(), total[:end, 2].copy()
    return column[:end].copy(), threshold[:end].copy(), child[:end].copy(), sums, merit[:end].copy(), squares

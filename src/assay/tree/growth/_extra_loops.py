"""Compiled growth of an extremely randomised tree on numeric columns: a whole tree in one call, on one thread.

At a node, each of the columns drawn offers one border, drawn evenly between its smallest and its largest value there;
the border with the largest decrease of impurity is taken, and of several equally good ones each is as likely. One pass
over the rows of a node finds the ranges of all its columns, a second the sums below all their borders; nothing is
sorted. Rows lie one after the other, so that both passes read what they need of a row at once. Geurts, Ernst and
Wehenkel, Machine Learning 63, 2006.
"""

import numpy as np

from assay.jit import compiled, prefetch
from assay.tree.growth._exact_loops import FRIEDMAN, GINI, SQUARED, below, merit_of, random_bits

_BLOCK = 512  # rows whose columns are copied side by side, to be read twice
_AHEAD = np.uint64(8)  # rows between asking for a row and using it


@compiled
def _copy(X, rows, start, stop, columns, block):
    """Write the columns of rows[start:stop] to `block`, one row after the other."""
    k, last, size = columns.shape[0], np.uint64(stop - 1), np.uint64(X.shape[1] * X.itemsize)
    for i in range(np.uint64(start), np.uint64(stop)):
        r, at = rows[i], i - np.uint64(start)
        if k == X.shape[1]:
            prefetch(X, rows[min(i + _AHEAD, last)] * size)
            for j in range(k):
                block[at, j] = X[r, j]
        else:
            for j in range(k):
                block[at, j] = X[r, columns[j]]


@compiled
def _widen(block, n, low, high):
    """Widen the range of each column by the first n rows of `block`; rows go in pairs, to wait less for the last."""
    last = np.uint64(n - 1)
    for i in range(np.uint64(0), np.uint64(n), np.uint64(2)):
        other = min(i + np.uint64(1), last)
        for j in range(low.shape[0]):
            a, b = block[i, j], block[other, j]
            least, most = (a if a < b else b), (b if a < b else a)
            low[j] = least if least < low[j] else low[j]
            high[j] = most if most > high[j] else high[j]


@compiled
def _add_below(block, n, rows, y, weight, classes, border, sums, taken):
    """Add rows at or below the border of each column: weights of each class, or weight and weighted sum; number."""
    for i in range(np.uint64(n)):
        r = rows[i]
        w = weight[r]
        c = np.uint64(np.int64(y[r])) if classes > 0 else np.uint64(0)
        for j in range(border.shape[0]):
            sums[c, j] += w if block[i, j] <= border[j] else 0.0
        if classes == 0:
            w *= y[r]
            for j in range(border.shape[0]):
                sums[1, j] += w if block[i, j] <= border[j] else 0.0
        if taken.shape[0] > 0:
            for j in range(border.shape[0]):
                taken[j] += 1.0 if block[i, j] <= border[j] else 0.0


@compiled
def _offer(X, rows, start, stop, y, weight, classes, columns, state, block, low, high, border, sums, taken):
    """Draw a border for each column that is not constant at the node, and sum the rows below."""
    low[:], high[:] = np.inf, -np.inf
    sums[:], taken[:] = 0.0, 0.0
    for a in range(start, stop, _BLOCK):
        b = min(a + _BLOCK, stop)
        _copy(X, rows, a, b, columns, block)
        _widen(block, b - a, low, high)
    for j in range(columns.shape[0]):
        border[j] = low[j]
        if low[j] < high[j]:
            u = np.float64(random_bits(state) >> np.uint64(11)) * 2.0**-53
            t = low[j] * (1 - u) + high[j] * u
            border[j] = t if low[j] <= t < high[j] else low[j]
    for a in range(start, stop, _BLOCK):
        b = min(a + _BLOCK, stop)
        if stop - start > _BLOCK:
            _copy(X, rows, a, b, columns, block)
        _add_below(block, b - a, rows[a:b], y, weight, classes, border, sums, taken)


@compiled
def _merits(sums, total, criterion, classes, weights, merits, sides):
    """Write the weight below the border of each column, and the merit of both sides (see `merit_of`)."""
    k, whole = weights.shape[0], 0.0
    weights[:] = 0.0
    for c in range(max(classes, 1)):
        whole += total[c]
        for j in range(k):
            weights[j] += sums[c, j]
    if criterion == GINI:
        merits[:] = 0.0
        for c in range(classes):
            for j in range(k):
                here, there = sums[c, j], total[c] - sums[c, j]
                merits[j] += here * here / weights[j] + there * there / (whole - weights[j])
    elif criterion == SQUARED:
        for j in range(k):
            here, there = sums[1, j], total[1] - sums[1, j]
            merits[j] = here * here / weights[j] + there * there / (whole - weights[j])
    elif criterion == FRIEDMAN:
        for j in range(k):
            rest = whole - weights[j]
            gap = sums[1, j] / weights[j] - (total[1] - sums[1, j]) / rest
            merits[j] = weights[j] * rest / whole * gap * gap
    else:
        for j in range(k):
            for c in range(total.shape[0]):
                sides[0, c], sides[1, c] = sums[c, j], total[c] - sums[c, j]
            merits[j] = merit_of(sides[0], criterion, classes) + merit_of(sides[1], criterion, classes)
    return whole


@compiled
def _best(
    X, rows, a, b, y, weight, classes, criterion, rule, total, order, most, state, room, sums, taken, sides, found
):
    """Draw columns until `most` of them with two values were tried and a border was found; write the best one."""
    d, drawn, tried, ties = order.shape[0], 0, 0, 0
    found[0], found[1], found[2] = -np.inf, -1.0, 0.0
    while drawn < d and (tried < most or found[1] < 0):
        end = min(drawn + max(most - tried, 1), d)
        k = end - drawn
        if most < d:
            for i in range(drawn, end):
                j = i + below(state, d - i)
                order[i], order[j] = order[j], order[i]
        columns, counts = order[drawn:end], taken[: min(k, taken.shape[0])]
        low, high, border = room[_BLOCK, :k], room[_BLOCK + 1, :k], room[_BLOCK + 2, :k]
        weights, merits = room[_BLOCK + 3, :k], room[_BLOCK + 4, :k]
        _offer(X, rows, a, b, y, weight, classes, columns, state, room, low, high, border, sums[:, :k], counts)
        whole = _merits(sums, total, criterion, classes, weights, merits, sides)
        for j in range(k):
            tried += low[j] < high[j]
            light = min(weights[j], whole - weights[j])
            few = taken.shape[0] > 0 and min(taken[j], b - a - taken[j]) < rule[0]
            if low[j] == high[j] or light <= 0 or light < rule[1] or few or not merits[j] >= found[0]:
                continue
            ties = ties + 1 if merits[j] == found[0] else 1
            if merits[j] > -np.inf and (ties == 1 or below(state, ties) == 0):
                found[0], found[1], found[2] = merits[j], columns[j], border[j]
        drawn = end


@compiled
def _totals(rows, start, stop, y, weight, classes, total):
    """Write the sums of a node to `total`; return its weighted squares, and whether its targets differ."""
    total[:] = 0.0
    squares, first, differ = 0.0, y[rows[start]], False
    for i in range(np.uint64(start), np.uint64(stop)):
        w, t = weight[rows[i]], y[rows[i]]
        differ |= t != first
        if classes > 0:
            total[np.int64(t)] += w
        else:
            total[0] += w
            total[1] += w * t
            squares += w * t * t
    return squares, differ


@compiled
def _part(X, column, threshold, rows, spare, start, stop):
    """Reorder rows[start:stop], values up to the threshold first; return the border."""
    left, right, f = np.uint64(start), np.uint64(0), np.uint64(column)
    for i in range(np.uint64(start), np.uint64(stop)):
        r = rows[i]
        go = np.uint64(X[r, f] <= threshold)
        rows[left] = r
        spare[right] = r
        left += go
        right += np.uint64(1) - go
    border = np.int64(left)
    rows[border:stop] = spare[: stop - border]
    return border


@compiled
def grow_extra(X, y, weight, rows, classes, criterion, rule, max_features, seed):
    """Grow a tree; return column, threshold, child, sums, merit and weighted squares of its nodes.

    X (n, columns); y (n,) class numbers or targets; weight (n,); rows: row numbers (uint64) of the sample, each once,
    reordered in place; classes: 0 for regression; rule: see `_grow.grow`. Sums of a node are the weights of its
    classes, or its weight and weighted sum.
    """
    m, d, width = rows.shape[0], X.shape[1], classes if classes > 0 else 2
    most = 2 * m + 1 if rule[4] <= 0 else min(2 * m + 1, 2 * int(rule[4]) + 1)
    column, child, threshold = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32), np.empty(most)
    total, merit, gain, squares = np.empty((most, width)), np.empty(most), np.empty(most), np.empty(most)
    start, stop, depth = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int32)
    split, frontier = np.empty((most, 3)), np.empty(most, dtype=np.int64)
    state, spare, order = np.empty(1, dtype=np.uint64), np.empty(m, dtype=np.uint64), np.arange(d).astype(np.uint64)
    room, sums, sides = np.empty((_BLOCK + 5, max_features)), np.empty((width, max_features)), np.empty((2, width))
    taken = np.empty(max_features if rule[0] > 1 else 0)  # rows need counting only where one on each side is too few
    state[0] = seed
    start[0], stop[0], depth[0] = 0, m, 0
    fresh, end, waiting = 0, 1, 0
    while True:
        for node in range(fresh, end):
            column[node], child[node], threshold[node], gain[node] = -1, -1, 0.0, 0.0
            a, b, found = start[node], stop[node], split[node]
            squares[node], differ = _totals(rows, a, b, y, weight, classes, total[node])
            merit[node] = merit_of(total[node], SQUARED if criterion == FRIEDMAN else criterion, classes)
            if not differ or b - a < max(rule[2], 2 * rule[0]) or depth[node] >= rule[3]:
                continue
            _best(
                X,
                rows,
                a,
                b,
                y,
                weight,
                classes,
                criterion,
                rule,
                total[node],
                order,
                max_features,
                state,
                room,
                sums,
                taken,
                sides,
                found,
            )
            gain[node] = found[0] - (0.0 if criterion == FRIEDMAN else merit[node])
            if found[1] < 0 or gain[node] < rule[5] * (1 - 1e-12) - 1e-12 * abs(merit[node]):
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
        column[node], threshold[node], child[node] = np.int32(split[node, 1]), split[node, 2], end
        border = _part(X, column[node], threshold[node], rows, spare, start[node], stop[node])
        start[end], stop[end], start[end + 1], stop[end + 1] = start[node], border, border, stop[node]
        depth[end] = depth[end + 1] = depth[node] + 1
        fresh, end = end, end + 2
    nodes = column[:end].copy(), threshold[:end].copy(), child[:end].copy()
    return (*nodes, total[:end].copy(), merit[:end].copy(), squares[:end].copy())

"""Compiled passes over one level of a regression tree (`_levels`): all thresholds of a column, all nodes at once."""

import numpy as np

from assay.jit import compiled

WEIGHT, SUM, ROWS, SQUARES, LOW, HIGH = range(6)  # of a node


@compiled
def _purity(weight, total, left_weight, left_sum):
    """Return s_l^2 / W_l + s_r^2 / W_r."""
    rest, right = total - left_sum, weight - left_weight
    return (left_sum * left_sum * right + rest * rest * left_weight) / (left_weight * right)


@compiled
def _rounded(x):
    """Return x to 41 bits: equal splits are equal in whatever order their rows were summed, and the first is taken."""
    wide = 4097.0 * x
    return wide - (wide - x)


@compiled
def _try(sums, left, least, light, low, high, column, best):
    """Keep the threshold between codes `low` and `high` if it is the best of the node so far."""
    rows, weight = left[ROWS], left[WEIGHT]
    if rows < least or sums[ROWS] - rows < least:
        return
    others = sums[WEIGHT] - weight
    if weight <= 0 or others <= 0 or weight < light or others < light:
        return
    purity = _rounded(_purity(sums[WEIGHT], sums[SUM], weight, left[SUM]))
    if purity > best[0]:
        best[0], best[1], best[2], best[3] = purity, column, low, high


@compiled
def _in_order(order, codes, slot, y, weight, sums, least, light, column, left, last, best):
    """Try the thresholds of a column by looking at its rows in order."""
    left[:] = 0.0
    last[:] = -1
    for i in range(order.shape[0]):
        r = order[i]
        s = slot[r]
        if s < 0:
            continue
        c = np.int64(codes[r])
        own = left[s]
        if c != last[s]:
            if last[s] >= 0:
                _try(sums[s], own, least, light, last[s], c, column, best[s])
            last[s] = c
        w = weight[r] if weight.size else 1.0
        own[WEIGHT] += w
        own[SUM] += w * y[r]
        own[ROWS] += 1.0


@compiled
def _by_counting(codes, n_codes, slot, y, weight, sums, least, light, column, cells, left, best):
    """Try the thresholds of a column of few values: its rows are summed by value first."""
    nodes = sums.shape[0]
    for s in range(nodes):
        for c in range(n_codes):
            cells[s, c, WEIGHT], cells[s, c, SUM], cells[s, c, ROWS] = 0.0, 0.0, 0.0
    for r in range(slot.shape[0]):
        s = slot[r]
        if s >= 0:
            cell = cells[s, codes[r]]
            w = weight[r] if weight.size else 1.0
            cell[WEIGHT] += w
            cell[SUM] += w * y[r]
            cell[ROWS] += 1.0
    for s in range(nodes):
        own, last = left[s], -1
        own[:] = 0.0
        for c in range(n_codes):
            if cells[s, c, ROWS] == 0:
                continue
            if last >= 0:
                _try(sums[s], own, least, light, last, c, column, best[s])
            last = c
            for k in range(3):
                own[k] += cells[s, c, k]


@compiled
def scan_level(codes, n_codes, orders, first, end, slot, y, weight, sums, least, light):
    """Return the best split of each node of a level over columns first .. end - 1: purity, column, the codes on both
    sides of the threshold (nodes, 4); column -1 if there is none.

    codes, orders : (columns, rows);  slot : (rows,) number of the row's node in the level, -1 for none
    sums : (nodes, 6) of each node;  least, light : rows and weight that a child must have
    """
    nodes, n = sums.shape[0], slot.shape[0]
    best = np.full((nodes, 4), -1.0)
    best[:, 0] = -np.inf
    left, last = np.zeros((nodes, 3)), np.zeros(nodes, dtype=np.int64)
    most = 0
    for f in range(first, end):
        if nodes * n_codes[f] <= n:
            most = max(most, n_codes[f])
    cells = np.empty((nodes, most, 3))
    for f in range(first, end):
        if n_codes[f] < 2:
            continue
        if nodes * n_codes[f] <= n:
            _by_counting(codes[f], n_codes[f], slot, y, weight, sums, least, light, f, cells, left, best)
        else:
            _in_order(orders[f], codes[f], slot, y, weight, sums, least, light, f, left, last, best)
    return best


@compiled
def add_up(slot, y, weight, nodes):
    """Return the sums of each node of a level (nodes, 6): weight, weighted target, rows, weighted squares, least and
    largest target."""
    sums = np.zeros((nodes, 6))
    sums[:, LOW], sums[:, HIGH] = np.inf, -np.inf
    for r in range(slot.shape[0]):
        s = slot[r]
        if s < 0:
            continue
        own, t = sums[s], y[r]
        w = weight[r] if weight.size else 1.0
        own[WEIGHT] += w
        own[SUM] += w * t
        own[ROWS] += 1.0
        own[SQUARES] += w * t * t
        own[LOW], own[HIGH] = min(own[LOW], t), max(own[HIGH], t)
    return sums


@compiled
def go_down(codes, slot, column, low, child):
    """Move each row to the next level: `child` (nodes,) is the number there of the first child of its node, -1 of a
    leaf; `column`, `low`: the split of the node."""
    for r in range(slot.shape[0]):
        s = slot[r]
        if s < 0:
            continue
        c = child[s]
        slot[r] = -1 if c < 0 else c + (1 if codes[column[s], r] > low[s] else 0)


@compiled
def keep_open(slot, place):
    """Renumber the nodes of a level: `place` (nodes,) is the new number, -1 of a leaf."""
    for r in range(slot.shape[0]):
        if slot[r] >= 0:
            slot[r] = place[slot[r]]

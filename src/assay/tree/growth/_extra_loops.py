"""Compiled growth of an extremely randomised tree on numeric columns: a whole tree in one call, on one thread.

At a node, each of the columns drawn offers one threshold, drawn evenly between its smallest and its largest value
there; the one with the largest decrease of impurity is taken, and of several equally good ones each is as likely. One
pass over the rows of a node finds the ranges of all its columns, a second the sums below all their thresholds; nothing
is sorted. Rows lie one after the other, so that both passes read what they need of a row at once. Geurts, Ernst and
Wehenkel, Machine Learning 63, 2006.

y is (rows,), or (rows, outputs), and then impurities are means over the outputs. Sums of some rows are the weights of
the classes, of each output in turn, or the weight and the weighted sum of each output.
"""

from typing import NamedTuple

import numpy as np

from assay.jit import compiled, prefetch
from assay.tree.growth._criteria import children_purity, decrease, node_purity, spread_of
from assay.tree.growth._frontier import add_children, is_enough, may_split, new_tree, next_node
from assay.tree.growth._random import below, draw_columns, share
from assay.tree.growth._records import FRIEDMAN, GINI, SQUARED

_BLOCK = 512  # rows whose columns are copied side by side, to be read twice
_AHEAD = np.uint64(8)  # rows between asking for a row and using it
_LOW, _HIGH, _THRESHOLD, _WEIGHT, _PURITY = 0, 1, 2, 3, 4  # rows of `Workspace.offers`


class Workspace(NamedTuple):
    """What the search of a node needs; arrays are as long as the columns drawn at a time."""

    order: np.ndarray  # of all columns
    state: np.ndarray
    block: np.ndarray  # (_BLOCK, columns)
    offers: np.ndarray  # (5, columns) range of the column, threshold, weight up to it, purity of both sides
    sums: np.ndarray  # (statistics, columns)
    taken: np.ndarray  # rows at or below; empty where one row on each side is enough
    sides: np.ndarray  # (4, statistics): both sides, and both of one output


@compiled
def _new_room(columns, most, width, counted, seed):
    order, state = np.arange(columns).astype(np.uint64), np.array([seed], dtype=np.uint64)
    sums, taken = np.empty((width, most)), np.empty(most if counted else 0)
    block, sides = np.empty((_BLOCK, most)), np.empty((4, width))
    return Workspace(order, state, block, np.empty((5, most)), sums, taken, sides)


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
def _add_below(block, rows, y, weight, classes, threshold, sums, taken):
    """Add rows at or below the threshold of each column: their sums; their number."""
    for i in range(np.uint64(rows.shape[0])):
        r = rows[i]
        w = weight[r]
        if y.ndim == 1:
            c = np.uint64(np.int64(y[r])) if classes > 0 else np.uint64(0)
            for j in range(threshold.shape[0]):
                sums[c, j] += w if block[i, j] <= threshold[j] else 0.0
            if classes == 0:
                w *= y[r]
                for j in range(threshold.shape[0]):
                    sums[1, j] += w if block[i, j] <= threshold[j] else 0.0
        else:
            if classes == 0:
                for j in range(threshold.shape[0]):
                    sums[0, j] += w if block[i, j] <= threshold[j] else 0.0
            for o in range(y.shape[1]):
                c = np.uint64(o * classes + np.int64(y[r, o]) if classes > 0 else 1 + o)
                v = w if classes > 0 else w * y[r, o]
                for j in range(threshold.shape[0]):
                    sums[c, j] += v if block[i, j] <= threshold[j] else 0.0
        if taken.shape[0] > 0:
            for j in range(threshold.shape[0]):
                taken[j] += 1.0 if block[i, j] <= threshold[j] else 0.0


@compiled
def _offer(X, rows, columns, target, workspace):
    """Draw a threshold for each column that is not constant at the node, and sum the rows below."""
    k, n, state, block = columns.shape[0], rows.shape[0], workspace.state, workspace.block
    low, high, threshold = workspace.offers[_LOW, :k], workspace.offers[_HIGH, :k], workspace.offers[_THRESHOLD, :k]
    sums, taken = workspace.sums[:, :k], workspace.taken[:k]
    low[:], high[:] = np.inf, -np.inf
    sums[:], taken[:] = 0.0, 0.0
    for a in range(0, n, _BLOCK):
        b = min(a + _BLOCK, n)
        _copy(X, rows, a, b, columns, block)
        _widen(block, b - a, low, high)
    for j in range(k):
        threshold[j] = low[j]
        if low[j] < high[j]:
            u = share(state)
            t = low[j] * (1 - u) + high[j] * u
            threshold[j] = t if low[j] <= t < high[j] else low[j]
    for a in range(0, n, _BLOCK):
        b = min(a + _BLOCK, n)
        if n > _BLOCK:
            _copy(X, rows, a, b, columns, block)
        _add_below(block, rows[a:b], target.y, target.weight, target.classes, threshold, sums, taken)


@compiled
def _mean_purity(sides, single, outputs, criterion, classes):
    """Return the purity of the two sides together, or of the first as a node; mean over the outputs."""
    found, step = 0.0, classes if classes > 0 else 1
    for o in range(outputs):
        for c in range(classes if classes > 0 else 2):
            at = o * step + c if c > 0 or classes > 0 else 0
            sides[2, c], sides[3, c] = sides[0, at], sides[1, at]
        if single:
            found += node_purity(sides[2], criterion, classes)
        else:
            found += children_purity(sides[2], sides[3], criterion, classes)
    return found / outputs


@compiled
def _purity(total, y, criterion, classes, sides):
    """Return the purity of a node."""
    if y.ndim == 1:
        return node_purity(total, criterion, classes)
    sides[0] = total
    return _mean_purity(sides, True, y.shape[1], criterion, classes)


@compiled
def _purities(y, classes, criterion, total, k, workspace):
    """Write the weight below the threshold of each column, and the purity of both sides (see `_criteria`); return the
    weight of the node."""
    sums, weights, purity, sides = (
        workspace.sums,
        workspace.offers[_WEIGHT, :k],
        workspace.offers[_PURITY, :k],
        workspace.sides,
    )
    whole, outputs = 0.0, y.size // y.shape[0]
    weights[:] = 0.0
    for c in range(max(classes, 1)):
        whole += total[c]
        for j in range(k):
            weights[j] += sums[c, j]
    if criterion in (GINI, SQUARED):
        purity[:] = 0.0
        for c in range(0 if classes > 0 else 1, total.shape[0]):
            for j in range(k):
                here, there = sums[c, j], total[c] - sums[c, j]
                purity[j] += here * here / weights[j] + there * there / (whole - weights[j])
        if outputs > 1:
            purity /= outputs
    elif criterion == FRIEDMAN:
        for j in range(k):
            rest = whole - weights[j]
            gap = sums[1, j] / weights[j] - (total[1] - sums[1, j]) / rest
            purity[j] = weights[j] * rest / whole * gap * gap
    else:
        for j in range(k):
            for c in range(total.shape[0]):
                sides[0, c], sides[1, c] = sums[c, j], total[c] - sums[c, j]
            purity[j] = _mean_purity(sides, False, outputs, criterion, classes)
    return whole


@compiled
def _find_split(X, rows, target, total, limits, workspace, best):
    """Draw columns until `max_features` of them with two values were tried and a threshold was found; write the best
    one. `rows` are those of the node."""
    order, state, taken = workspace.order, workspace.state, workspace.taken
    low, high, threshold = workspace.offers[_LOW], workspace.offers[_HIGH], workspace.offers[_THRESHOLD]
    weight, purity = workspace.offers[_WEIGHT], workspace.offers[_PURITY]
    d, most, drawn, tried, ties, n = order.shape[0], limits.max_features, 0, 0, 0, rows.shape[0]
    best.purity, best.column = -np.inf, -1
    while drawn < d and (tried < most or best.column < 0):
        end = min(drawn + max(most - tried, 1), d)
        if most < d:
            draw_columns(order, drawn, end, state)
        columns = order[drawn:end]
        _offer(X, rows, columns, target, workspace)
        whole = _purities(target.y, target.classes, target.criterion, total, end - drawn, workspace)
        for j in range(end - drawn):
            tried += low[j] < high[j]
            light = min(weight[j], whole - weight[j])
            few = taken.shape[0] > 0 and min(taken[j], n - taken[j]) < limits.min_samples_leaf
            if low[j] == high[j] or light <= 0 or light < limits.min_weight_leaf or few or not purity[j] >= best.purity:
                continue
            ties = ties + 1 if purity[j] == best.purity else 1
            if purity[j] > -np.inf and (ties == 1 or below(state, ties) == 0):
                best.purity, best.column, best.threshold = purity[j], np.int64(columns[j]), threshold[j]
        drawn = end


@compiled
def _add_up(rows, y, weight, classes, criterion, node, total):
    """Write the sums of a node's rows to `total`, their weighted squares to the node; tell whether the targets
    differ."""
    total[:] = 0.0
    squares, differ = 0.0, False
    if y.ndim == 1:
        first = y[rows[0]]
        for i in range(np.uint64(rows.shape[0])):
            w, t = weight[rows[i]], y[rows[i]]
            differ |= t != first
            if classes > 0:
                total[np.int64(t)] += w
            else:
                total[0] += w
                total[1] += w * t
                squares += spread_of(t, w, criterion)
    else:
        for o in range(y.shape[1]):
            first = y[rows[0], o]
            for i in range(np.uint64(rows.shape[0])):
                w, t = weight[rows[i]], y[rows[i], o]
                differ |= t != first
                if classes > 0:
                    total[o * classes + np.int64(t)] += w
                else:
                    total[0] += w if o == 0 else 0.0
                    total[1 + o] += w * t
                    squares += spread_of(t, w, criterion) / y.shape[1]
    node.squares = squares
    return differ


@compiled
def _partition(X, column, threshold, rows, spare, start, stop):
    """Reorder rows[start:stop], values up to the threshold first; return where the others begin."""
    left, right, f = np.uint64(start), np.uint64(0), np.uint64(column)
    for i in range(np.uint64(start), np.uint64(stop)):
        r = rows[i]
        go = np.uint64(X[r, f] <= threshold)
        rows[left] = r
        spare[right] = r
        left += go
        right += np.uint64(1) - go
    boundary = np.int64(left)
    rows[boundary:stop] = spare[: stop - boundary]
    return boundary


@compiled
def _open(X, rows, target, node, total, limits, workspace, split):
    """Write sums, purity, best split and gain of a node; tell whether it is worth splitting."""
    own = rows[node.start : node.stop]
    differ = _add_up(own, target.y, target.weight, target.classes, target.criterion, node, total)
    node.purity = _purity(total, target.y, target.criterion, target.classes, workspace.sides)
    if not differ or not may_split(node, limits):
        return False
    _find_split(X, own, target, total, limits, workspace, split)
    node.gain = decrease(split.purity, node.purity, target.criterion)
    return split.column >= 0 and is_enough(node.gain, limits, 1e-12 * abs(node.purity))


@compiled
def grow_extra(X, target, rows, limits, seed):
    """Grow a tree; return its nodes (see `_records.NODE`) and their sums.

    X (n, columns); target: see `_records.Target`, with the most classes of any output; rows: row numbers (uint64) of
    the sample, each once, reordered in place; limits: a record of `_records.LIMITS`.
    """
    outputs = target.y.size // target.y.shape[0]
    width = outputs * target.classes if target.classes > 0 else 1 + outputs
    tree = new_tree(rows.shape[0], limits)
    nodes, splits = tree.nodes, tree.splits
    total, spare = np.empty((nodes.size, width)), np.empty_like(rows)
    workspace = _new_room(X.shape[1], limits.max_features, width, limits.min_samples_leaf > 1, seed)
    fresh, end, waiting = 0, 1, 0
    while True:
        for at in range(fresh, end):
            if _open(X, rows, target, nodes[at], total[at], limits, workspace, splits[at]):
                tree.frontier[waiting] = at
                waiting += 1
        at = next_node(tree, waiting, end, limits)
        if at < 0:
            break
        waiting -= 1
        node, split = nodes[at], splits[at]
        boundary = _partition(X, split.column, split.threshold, rows, spare, node.start, node.stop)
        add_children(nodes, at, split.threshold, split.column, boundary, end)
        fresh, end = end, end + 2
    return nodes[:end].copy(), total[:end].copy()

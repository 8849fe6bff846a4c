"""Compiled growth of an extremely randomised tree on numeric columns: a whole tree in one call, on one thread.

At a node, each of the columns drawn offers one threshold, drawn evenly between its smallest and its largest value
there; the one with the largest decrease of impurity is taken, and of several equally good ones each is as likely. One
pass over the rows of a node finds the ranges of all its columns, a second the sums below all their thresholds; nothing
is sorted. Rows lie one after the other, so that both passes read what they need of a row at once. Geurts, Ernst and
Wehenkel, Machine Learning 63, 2006.

Sums are those of `_criteria`; of classes, the weight of some rows is that of the classes of the first output.
"""

from typing import Any, NamedTuple

import numpy as np

from assay.jit import compiled, prefetch
from assay.tree.growth._builder import (
    below,
    builder,
    draw_columns,
    grown,
    new_tree,
    partitioner,
    share,
    weigh_rows,
    worth,
)
from assay.tree.growth._criteria import children_purity, mean_purity
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
    sides: np.ndarray  # (5, statistics) both sides; both, and the node, of one output
    spare: np.ndarray


class Growth(NamedTuple):
    """A tree that is being grown."""

    X: np.ndarray
    target: Any  # see `_records.Target`
    rows: np.ndarray  # row numbers (uint64) of the sample, each once, reordered in place
    workspace: Any


@compiled
def _new_workspace(columns, most, width, counted, seed, spare):
    order, state = np.arange(columns).astype(np.uint64), np.array([seed], dtype=np.uint64)
    sums, taken = np.empty((width, most)), np.empty(most if counted else 0)
    block, sides = np.empty((_BLOCK, most)), np.empty((5, width))
    return Workspace(order, state, block, np.empty((5, most)), sums, taken, sides, spare)


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
def _add_below(block, rows, target, threshold, sums, taken):
    """Add rows at or below the threshold of each column: their sums, of classes without the weight; their number."""
    y, weight, first, classes = target.y, target.weight, target.first, target.classes
    for i in range(np.uint64(rows.shape[0])):
        r = rows[i]
        w = weight[r]
        if not classes:
            for j in range(threshold.shape[0]):
                sums[0, j] += w if block[i, j] <= threshold[j] else 0.0
        for o in range(y.shape[1]):
            c = np.uint64(first[o] + (np.int64(y[r, o]) if classes else 0))
            v = w if classes else w * y[r, o]
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
        _add_below(block, rows[a:b], target, threshold, sums, taken)


@compiled
def _of_output(sums, target, o, out):
    """Write the sums of one output to `out`; return what they take of it."""
    begin, size = target.first[o], target.first[o + 1] - target.first[o]
    out[0] = 0.0 if target.classes else sums[0]
    for k in range(size):
        out[1 + k] = sums[begin + k]
        out[0] += sums[begin + k] if target.classes else 0.0
    return out[: 1 + size]


@compiled
def _purities(target, total, k, workspace):
    """Write the weight below the threshold of each column, and the purity of both sides (see `_criteria`)."""
    sums, weights, purity = workspace.sums, workspace.offers[_WEIGHT, :k], workspace.offers[_PURITY, :k]
    criterion, outputs, whole, sides = target.criterion, target.y.shape[1], total[0], workspace.sides
    weights[:] = 0.0
    for c in range(target.classes, target.first[1] if target.classes else 1):
        for j in range(k):
            weights[j] += sums[c, j]
    if criterion in (GINI, SQUARED):
        purity[:] = 0.0
        for c in range(1, total.shape[0]):
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
            purity[j] = 0.0
            for o in range(outputs):
                left, right = _of_output(sides[0], target, o, sides[2]), _of_output(sides[1], target, o, sides[3])
                node = _of_output(total, target, o, sides[4])
                purity[j] += children_purity(left, right, node, 1, criterion)
            purity[j] /= outputs


@compiled
def _find_split(growth, tree, at, limits):
    """Draw columns until `max_features` of them with two values were tried and a threshold was found; write the best
    one."""
    X, target, workspace, total, best = growth.X, growth.target, growth.workspace, tree.sums[at], tree.splits[at]
    order, state, taken, node = workspace.order, workspace.state, workspace.taken, tree.nodes[at]
    low, high, threshold = workspace.offers[_LOW], workspace.offers[_HIGH], workspace.offers[_THRESHOLD]
    weight, purity, rows = workspace.offers[_WEIGHT], workspace.offers[_PURITY], growth.rows[node.start : node.stop]
    d, most, drawn, tried, ties, n = order.shape[0], limits.max_features, 0, 0, 0, rows.shape[0]
    best.purity, best.column = -np.inf, -1
    while drawn < d and (tried < most or best.column < 0):
        end = min(drawn + max(most - tried, 1), d)
        if most < d:
            draw_columns(order, drawn, end, state)
        columns = order[drawn:end]
        _offer(X, rows, columns, target, workspace)
        _purities(target, total, end - drawn, workspace)
        for j in range(end - drawn):
            tried += low[j] < high[j]
            light = min(weight[j], total[0] - weight[j])
            few = taken.shape[0] > 0 and min(taken[j], n - taken[j]) < limits.min_samples_leaf
            if low[j] == high[j] or light <= 0 or light < limits.min_weight_leaf or few or not purity[j] >= best.purity:
                continue
            ties = ties + 1 if purity[j] == best.purity else 1
            if purity[j] > -np.inf and (ties == 1 or below(state, ties) == 0):
                best.purity, best.column, best.threshold = purity[j], np.int64(columns[j]), threshold[j]
        drawn = end
    return worth(node, best, target.criterion, limits, 1e-12 * abs(node.purity))


@compiled
def _weigh(growth, node, total):
    """Write sums and purity of a node; tell whether its targets differ."""
    target, own, outputs = growth.target, growth.workspace.sides[2], growth.target.y.shape[1]
    differ = weigh_rows(growth.rows[node.start : node.stop], target, node, total)
    total[0] = _of_output(total, target, 0, own)[0]
    for o in range(outputs):
        node.purity += mean_purity(_of_output(total, target, o, own), 1, target.criterion)
    node.purity /= outputs
    return differ


@compiled
def _goes_left(X, row, split):
    return X[row, split[0]] <= split[1]


_partition = partitioner(_goes_left)


@compiled
def _part_rows(growth, tree, at, end):
    """Divide the rows of a node; return where the others begin, and the threshold."""
    split = tree.splits[at]
    own = np.uint64(split.column), split.threshold
    return _partition(growth.rows, growth.workspace.spare, tree.nodes[at], growth.X, own), split.threshold


_build = builder(_weigh, _find_split, _part_rows)


@compiled
def grow_extra(X, target, rows, limits, seed):
    """Grow a tree; return its nodes and sums (see `_builder.grown`).

    limits: a record of `_records.LIMITS`; the others: see `Growth`.
    """
    width, counted, spare = target.first[-1], limits.min_samples_leaf > 1, np.empty_like(rows)
    workspace = _new_workspace(X.shape[1], limits.max_features, width, counted, seed, spare)
    tree = new_tree(rows.shape[0], limits, width)
    tree, end, _ = _build(Growth(X, target, rows, workspace), tree, limits)
    return grown(tree, end)

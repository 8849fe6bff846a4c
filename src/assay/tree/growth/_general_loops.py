"""Compiled growth of one binary tree on numeric columns for what `_exact_loops` does not know: several outputs, rows
without a value, absolute errors.

Columns come as codes in the order of their values, the code of rows without a value last. At a node the rows of a
column are sorted by code; a scan tries every threshold, once with the rows without a value behind all others (they go
to the right, also all alone) and once before them (to the left). Impurities are means over the outputs.
"""

from math import log
from typing import NamedTuple

import numpy as np

from assay.jit import compiled
from assay.tree.growth._absolute_loops import running_losses
from assay.tree.growth._criteria import POSITIVE, spread_of
from assay.tree.growth._exact_loops import sort_keys
from assay.tree.growth._frontier import add_children, is_enough, may_split, middle_of, new_tree, next_node, with_room
from assay.tree.growth._monotone import allowed, narrow
from assay.tree.growth._random import below, share
from assay.tree.growth._records import ABSOLUTE, ENTROPY, FRIEDMAN, POISSON

_EVERYTHING = 1e150  # at least: parts the rows with a value from those without; the largest number of certificates


class Task(NamedTuple):
    """What a tree learns.

    y : (rows, outputs) class numbers, or numbers
    weight : (rows,)
    first : (outputs + 1,) where the sums of each output begin; sums are the weight, then the weights of the classes of
        each output, or its weighted sum
    classes : 1 for classes, 0 for numbers
    """

    y: np.ndarray
    weight: np.ndarray
    first: np.ndarray
    classes: int
    criterion: int


class Workspace(NamedTuple):
    """What the search of a node needs; arrays of rows hold those of the node, by their places in it."""

    order: np.ndarray  # of the columns
    state: np.ndarray
    keys: np.ndarray
    spare: np.ndarray
    digits: np.ndarray
    code: np.ndarray
    places: np.ndarray  # in the order of a scan
    sides: np.ndarray  # (2, sums)
    rank: np.ndarray  # (outputs, rows) of y
    levels: np.ndarray  # (outputs, rows) y less its median, ascending
    values: np.ndarray  # (outputs, rows) y, ascending
    weights: np.ndarray
    deviations: np.ndarray  # (2, rows) before and after
    medians: np.ndarray  # (2, rows), of the first output
    fenwick: np.ndarray  # (2, rows + 1)


@compiled
def _new_room(rows, columns, outputs, width, seed, criterion):
    m = rows if criterion == ABSOLUTE else 0
    return Workspace(
        np.arange(columns),
        np.array([seed], dtype=np.uint64),
        np.empty(rows, dtype=np.uint64),
        np.empty(rows, dtype=np.uint64),
        np.zeros(1 << 11, dtype=np.int64),
        np.empty(rows, dtype=np.int64),
        np.empty(rows, dtype=np.int64),
        np.empty((2, width)),
        np.empty((outputs, m), dtype=np.int64),
        np.empty((outputs, m)),
        np.empty((outputs, m)),
        np.empty(m),
        np.empty((2, m)),
        np.empty((2, m)),
        np.empty((2, m + 1)),
    )


@compiled
def _add_row(sums, r, y, weight, first, classes):
    w = weight[r]
    sums[0] += w
    for o in range(y.shape[1]):
        if classes:
            sums[first[o] + np.int64(y[r, o])] += w
        else:
            sums[first[o]] += w * y[r, o]


@compiled
def mean_purity(sums, outputs, criterion):
    """Return the purity (`_criteria`) of the sums of some rows, mean over outputs."""
    weight, out = sums[0], 0.0
    if criterion == ENTROPY:
        for k in range(1, sums.shape[0]):
            if sums[k] > 0:
                out += sums[k] * log(sums[k])
        return (out - outputs * weight * log(weight)) / log(2.0) / outputs
    if criterion == POISSON:
        for k in range(1, sums.shape[0]):
            out += sums[k] * log(sums[k] / weight) if sums[k] > 0 else 0.0
        return out / outputs
    for k in range(1, sums.shape[0]):
        out += sums[k] * sums[k]
    return out / weight / outputs


@compiled
def mean_children_purity(left, right, total, outputs, criterion):
    """Return the purity of two children of a node with these sums together."""
    if criterion == FRIEDMAN:
        gap = 0.0
        for k in range(1, left.shape[0]):
            gap += left[k] / left[0] - right[k] / right[0]
        gap /= left.shape[0] - 1
        return left[0] * right[0] / (left[0] + right[0]) * gap * gap
    if criterion == POISSON:
        for k in range(1, left.shape[0]):
            if total[k] > 0 and min(left[k], right[k]) <= POSITIVE * total[k]:
                return -np.inf
    return mean_purity(left, outputs, criterion) + mean_purity(right, outputs, criterion)


@compiled
def _deviations(places, workspace):
    """Write the sums of absolute deviations from their medians of the first rows in this order, and of the others."""
    m, outputs = places.shape[0], workspace.rank.shape[0]
    out, rank, levels, values = np.empty(m), workspace.rank, workspace.levels, workspace.values
    weights, sums = workspace.fenwick[0, : m + 1], workspace.fenwick[1, : m + 1]
    for side in range(2):
        total = workspace.deviations[side, :m]
        total[:] = 0.0
        for o in range(outputs):
            weights[:] = 0.0
            sums[:] = 0.0
            medians = workspace.medians[side, : m if o == 0 else 0]
            running_losses(
                places,
                rank[o, :m],
                levels[o, :m],
                workspace.weights,
                weights,
                sums,
                out,
                values[o, :m],
                medians,
                side == 1,
            )
            for i in range(m):
                total[i] += out[i] / outputs


@compiled
def _keeps_order(i, task, sign, low, high, workspace, best):
    """Tell whether the values of both sides go the way they must; if so, write the middle of them."""
    if sign == 0:
        return True
    left, right = workspace.sides[0], workspace.sides[1]
    if task.criterion == ABSOLUTE:
        a, b = workspace.medians[0, i], workspace.medians[1, i + 1]
    else:
        at = 2 if task.classes else 1
        a, b = left[at] / left[0], right[at] / right[0]
    if not allowed(a, b, sign, low, high):
        return False
    best.middle = a / 2 + b / 2
    return True


@compiled
def _scan(places, rows, task, total, limits, sign, within, begin, cut, workspace, column, best):
    """Try the thresholds between neighbours in this order from place `begin` on, or, if `cut` is not 0, only that with
    so many rows on the left; tell whether one is better."""
    m, code, left, right = places.shape[0], workspace.code, workspace.sides[0], workspace.sides[1]
    y, weight, first, classes, outputs = task.y, task.weight, task.first, task.classes, task.y.shape[1]
    least, light, absolute, better = limits.min_samples_leaf, limits.min_weight_leaf, task.criterion == ABSOLUTE, False
    left[:] = 0.0
    if absolute:
        _deviations(places, workspace)
    for i in range(m - least):
        _add_row(left, rows[places[i]], y, weight, first, classes)
        if i + 1 < max(begin, least) or (cut > 0 and i + 1 != cut):
            continue
        if cut == 0 and code[places[i]] == code[places[i + 1]]:
            continue
        for k in range(total.shape[0]):
            right[k] = total[k] - left[k]
        if not (left[0] > 0 and right[0] > 0 and left[0] >= light and right[0] >= light):
            continue
        loss = workspace.deviations[0, i] + workspace.deviations[1, i + 1] if absolute else 0.0
        purity = -loss if absolute else mean_children_purity(left, right, total, outputs, task.criterion)
        if purity > best.purity and _keeps_order(i, task, sign, within[0], within[1], workspace, best):
            best.purity, best.column, better = purity, column, True
            best.low, best.high = code[places[i]], code[places[i + 1]]
    return better


@compiled
def _sort_places(codes, rows, gap, workspace):
    """Write the places of a node's rows by ascending code; return how many have a value."""
    n, known = rows.shape[0], 0
    low, high = np.int64(codes[rows[0]]), np.int64(codes[rows[0]])
    for i in range(n):
        c = np.int64(codes[rows[i]])
        low, high = min(low, c), max(high, c)
        workspace.code[i] = c
        workspace.keys[i] = (np.uint64(c) << np.uint64(32)) | np.uint64(i)
        known += c != gap
    sort_keys(workspace.keys[:n], workspace.spare[:n], workspace.digits, low, high)
    for i in range(n):
        workspace.places[i] = np.int64(workspace.keys[i] & np.uint64(0xFFFFFFFF))
    return known


@compiled
def _turned(workspace, n, known):
    """Put the rows without a value, which are last, before the others."""
    lost = n - known
    for i in range(lost):
        workspace.spare[i] = np.uint64(workspace.places[known + i])
    for i in range(known - 1, -1, -1):
        workspace.places[lost + i] = workspace.places[i]
    for i in range(lost):
        workspace.places[i] = np.int64(workspace.spare[i])


@compiled
def _best_of_column(rows, known, task, total, limits, sign, within, workspace, column, best):
    """Try every threshold of a column; return the side of rows without a value if one is better, else -2."""
    n = rows.shape[0]
    places, side = workspace.places[:n], -2
    if _scan(places, rows, task, total, limits, sign, within, 1, 0, workspace, column, best):
        side = 1 if known < n else -1
        alone = best.low != best.high and best.high == workspace.code[places[n - 1]] and known < n
        best.threshold = np.inf if alone else 0.0
    if known < n:
        _turned(workspace, n, known)
        if _scan(places, rows, task, total, limits, sign, within, n - known + 1, 0, workspace, column, best):
            side, best.threshold = 0, 0.0
    return side


@compiled
def _draw_of_column(rows, known, levels, task, total, limits, sign, within, workspace, column, best):
    """Try one threshold drawn evenly between the smallest and the largest value, rows without one on either side."""
    n = rows.shape[0]
    places, code, side = workspace.places[:n], workspace.code, 1 if known < n else -1
    first, last = levels[code[places[0]]], levels[code[places[known - 1]]]
    t = first + (last - first) * share(workspace.state)
    cut = 0
    while cut < known and levels[code[places[cut]]] <= t:
        cut += 1
    if cut == known and first < last:  # rounding
        t, cut = first, 0
        while levels[code[places[cut]]] <= t:
            cut += 1
    low, high = code[places[cut - 1]], code[places[min(cut, known - 1)]]
    if known < n and first < last and below(workspace.state, 2) == 0:
        _turned(workspace, n, known)
        side, cut = 0, cut + n - known
    if not _scan(places, rows, task, total, limits, sign, within, 1, cut, workspace, column, best):
        return -2
    best.low, best.high, best.threshold = low, high, t
    return side


@compiled
def _read_codes(codes, rows, code):
    """Write the codes of a node's rows; return the smallest and the largest."""
    low, high = np.int64(codes[rows[0]]), np.int64(codes[rows[0]])
    for i in range(rows.shape[0]):
        c = np.int64(codes[rows[i]])
        low, high = min(low, c), max(high, c)
        code[i] = c
    return low, high


@compiled
def _draw_unsorted(rows, first, last, levels, task, total, limits, workspace, column, best):
    """Try one threshold drawn evenly between levels first and last, of complete rows in any order."""
    code, left, right, n = workspace.code, workspace.sides[0], workspace.sides[1], rows.shape[0]
    y, weight, begins, classes, outputs = task.y, task.weight, task.first, task.classes, task.y.shape[1]
    t = levels[first] + (levels[last] - levels[first]) * share(workspace.state)
    t = t if t < levels[last] else levels[first]  # rounding
    low, high, taken, light = first, last, 0, limits.min_weight_leaf
    cut = first + np.searchsorted(levels[first : last + 1], t, side="right") - 1  # last code on the left
    left[:] = 0.0
    for i in range(n):  # a factor instead of a branch, which would be wrong half of the time
        c, r = code[i], rows[i]
        here = c <= cut
        low, high = max(low, c if here else first), min(high, last if here else c)
        taken += here
        w = weight[r] * here
        left[0] += w
        for o in range(outputs):
            if classes:
                left[begins[o] + np.int64(y[r, o])] += w
            else:
                left[begins[o]] += w * y[r, o]
    for k in range(total.shape[0]):
        right[k] = total[k] - left[k]
    if min(taken, n - taken) < limits.min_samples_leaf or not (left[0] > 0 and right[0] > 0):
        return
    if left[0] < light or right[0] < light:
        return
    purity = mean_children_purity(left, right, total, outputs, task.criterion)
    if purity > best.purity:
        best.purity, best.column, best.low, best.high, best.threshold = purity, column, low, high, t


@compiled
def _find_split(columns, gaps, task, rows, total, limits, monotone, within, workspace, best):
    """Write the best split over `max_features` columns that are not constant; return the side of rows without a
    value, -1 if there are none."""
    d, tried, drawn, n, side = columns.n_codes.shape[0], 0, 0, rows.shape[0], -1
    drawing = limits.max_features < d or limits.random
    best.purity, best.column = -np.inf, -1
    while drawn < d and (tried < limits.max_features or best.column < 0):
        j = drawn + (below(workspace.state, d - drawn) if drawing else 0)
        f = workspace.order[j]
        workspace.order[j], workspace.order[drawn] = workspace.order[drawn], f
        drawn += 1
        if limits.random and task.criterion != ABSOLUTE and gaps[f] < 0 and monotone.size == 0:
            first, last = _read_codes(columns.codes[f], rows, workspace.code)
            if first < last:
                tried += 1
                levels = columns.levels[columns.starts[f] :]
                _draw_unsorted(rows, first, last, levels, task, total, limits, workspace, f, best)
                side = -1 if best.column == f else side
            continue
        known = _sort_places(columns.codes[f], rows, gaps[f], workspace)
        if known == 0 or workspace.code[workspace.places[0]] == workspace.code[workspace.places[n - 1]]:
            continue
        tried += 1
        sign = monotone[f] if monotone.size else 0
        if limits.random:
            levels = columns.levels[columns.starts[f] :]
            found = _draw_of_column(rows, known, levels, task, total, limits, sign, within, workspace, f, best)
        else:
            found = _best_of_column(rows, known, task, total, limits, sign, within, workspace, f, best)
        side = found if found > -2 else side
    return side


@compiled
def _add_up(rows, task, node, total):
    """Write the sums of a node's rows; to the node what its impurity adds to minus its purity; tell whether the
    targets differ."""
    y, weight, first, classes, differ, spread = task.y, task.weight, task.first, task.classes, False, 0.0
    total[:] = 0.0
    all_rows = 0.0
    for i in range(rows.shape[0]):
        all_rows += weight[rows[i]]
    total[0] = all_rows
    for o in range(y.shape[1]):
        begin, one, sum_of = first[o], y[rows[0], o], 0.0
        for i in range(rows.shape[0]):
            r = rows[i]
            t, w = y[r, o], weight[r]
            differ |= t != one
            if classes:
                total[begin + np.int64(t)] += w
            else:
                sum_of += w * t
                spread += spread_of(t, w, task.criterion)
        if not classes:
            total[begin] = sum_of
    node.squares = spread / (task.first.shape[0] - 1)
    return differ


@compiled
def _rank_targets(rows, task, workspace):
    """Rank the targets of a node; write their medians (outputs,) to `middle` and return the mean sum of deviations."""
    n, outputs, loss = rows.shape[0], task.first.shape[0] - 1, 0.0
    middle, y = np.empty(outputs), np.empty(n)
    for i in range(n):
        workspace.weights[i] = task.weight[rows[i]]
    half = workspace.weights[:n].sum() / 2
    for o in range(outputs):
        for i in range(n):
            y[i] = task.y[rows[i], o]
        order = np.argsort(y, kind="mergesort")
        at, heavy = 0, workspace.weights[order[0]]
        while heavy < half and at + 1 < n:
            at += 1
            heavy += workspace.weights[order[at]]
        middle[o] = y[order[at]]
        if heavy == half and at + 1 < n:
            middle[o] = middle[o] / 2 + y[order[at + 1]] / 2
        for i in range(n):
            workspace.rank[o, order[i]] = i
            workspace.values[o, i] = y[order[i]]
            workspace.levels[o, i] = y[order[i]] - middle[o]
            loss += workspace.weights[order[i]] * abs(workspace.levels[o, i])
    return middle, loss / outputs


@compiled
def _open(columns, gaps, task, rows, node, total, value, limits, monotone, within, workspace, split):
    """Write sums, values, purity, best split and gain of a node; return the side of rows without a value (-1: there
    are none), or -2 if it is not worth splitting."""
    own = rows[node.start : node.stop]
    differ = _add_up(own, task, node, total)
    if task.criterion == ABSOLUTE:
        middle, loss = _rank_targets(own, task, workspace)
        value[:] = middle
        node.purity, node.squares = -loss, 0.0
    else:
        node.purity = mean_purity(total, task.first.shape[0] - 1, task.criterion)
        if not differ and not task.classes:
            node.squares = node.purity
    if not differ or not may_split(node, limits):
        return -2
    side = _find_split(columns, gaps, task, own, total, limits, monotone, within, workspace, split)
    if split.column < 0:
        return -2
    node.gain = split.purity - (0.0 if task.criterion == FRIEDMAN else node.purity)
    return side if is_enough(node.gain, limits, 1e-300) else -2


@compiled
def _partition(codes, last, gap, side, rows, spare, start, stop):
    """Reorder rows[start:stop]: codes up to `last`, and rows without a value if their side is 0, first; return where
    the others begin."""
    left, right = start, 0
    for i in range(start, stop):
        r = rows[i]
        if (side == 0) if codes[r] == gap else codes[r] <= last:
            rows[left] = r
            left += 1
        else:
            spare[right] = np.uint64(r)
            right += 1
    for i in range(right):
        rows[left + i] = np.int64(spare[i])
    return left


@compiled
def _threshold(columns, split, limits):
    if limits.random:
        return split.threshold
    start = columns.starts[split.column]
    low = columns.levels[start + split.low]
    if split.threshold == np.inf:
        return max(low, _EVERYTHING)
    return middle_of(low, columns.levels[start + split.high])


@compiled
def grow(columns, gaps, task, rows, limits, seed, monotone):
    """Grow a tree; return its nodes (`_records.NODE`), their sums, their medians (absolute errors), the side of rows
    without a value (-1: there were none), and the bounds of their values.

    columns: see `_exact.Columns`; gaps (columns,): the code of rows without a value, -1 if there are none; rows: row
    numbers, reordered in place; limits: a record of `_records.LIMITS`; monotone (columns,): signs, or empty.
    """
    m, outputs, width = rows.shape[0], task.first.shape[0] - 1, task.first[-1]
    tree = new_tree(m, limits)
    nodes, splits, sums = tree.nodes, tree.splits, np.empty((min(tree.nodes.size, 1024), width))
    value = np.empty((nodes.size if task.criterion == ABSOLUTE else 1, outputs))
    sides, bounds = np.full(nodes.size, -1, dtype=np.int64), np.empty((nodes.size, 2))
    bounds[0] = -np.inf, np.inf
    workspace = _new_room(m, columns.n_codes.shape[0], outputs, width, seed, task.criterion)
    fresh, end, waiting = 0, 1, 0
    while True:
        sums = with_room(sums, fresh, end)
        for at in range(fresh, end):
            own = value[at if task.criterion == ABSOLUTE else 0]
            side = _open(
                columns, gaps, task, rows, nodes[at], sums[at], own, limits, monotone, bounds[at], workspace, splits[at]
            )
            if side > -2:
                sides[at] = side
                tree.frontier[waiting] = at
                waiting += 1
        at = next_node(tree, waiting, end, limits)
        if at < 0:
            break
        waiting -= 1
        node, split = nodes[at], splits[at]
        codes, gap = columns.codes[split.column], gaps[split.column]
        boundary = _partition(codes, split.low, gap, sides[at], rows, workspace.spare, node.start, node.stop)
        add_children(nodes, at, _threshold(columns, split, limits), split.column, boundary, end)
        narrow(bounds, at, end, monotone[split.column] if monotone.size else 0, split.middle)
        fresh, end = end, end + 2
    return nodes[:end].copy(), sums[:end].copy(), value[:end].copy(), sides[:end].copy(), bounds[:end].copy()

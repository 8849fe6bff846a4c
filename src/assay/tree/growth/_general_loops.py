"""Compiled growth of one binary tree on numeric columns for what `_exact_loops` does not know: several outputs, rows
without a value, absolute errors.

Columns come as codes in the order of their values, the code of rows without a value last. At a node the rows of a
column are sorted by code; a scan tries every threshold, once with the rows without a value behind all others (they go
to the right, also all alone) and once before them (to the left). Impurities are means over the outputs.
"""

from typing import NamedTuple

import numpy as np

from assay.jit import compiled
from assay.tree.growth._absolute_loops import running_losses
from assay.tree.growth._builder import (
    below,
    builder,
    draw_columns,
    grown,
    new_tree,
    share,
    weigh_rows,
    worth,
    write_purity,
)
from assay.tree.growth._criteria import children_purity
from assay.tree.growth._exact_loops import DRAWN, HALFWAY, Growth, keeps_order, part_codes, sort_keys
from assay.tree.growth._records import ABSOLUTE


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
    begin: np.ndarray  # (1,) where the node begins in the next four, which hold all nodes
    rank: np.ndarray  # (outputs, rows) of y
    levels: np.ndarray  # (outputs, rows) y less its median, ascending
    values: np.ndarray  # (outputs, rows) y, ascending
    weights: np.ndarray
    deviations: np.ndarray  # (2, rows) before and after
    medians: np.ndarray  # (2, rows), of the first output
    fenwick: np.ndarray  # (2, rows + 1)


@compiled
def _new_workspace(rows, columns, outputs, width, seed, criterion):
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
        np.zeros(1, dtype=np.int64),
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
def _deviations(places, workspace):
    """Write the sums of absolute deviations from their medians of the first rows in this order, and of the others."""
    m, outputs, begin = places.shape[0], workspace.rank.shape[0], workspace.begin[0]
    out, rank, levels, values, end = np.empty(m), workspace.rank, workspace.levels, workspace.values, begin + m
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
                rank[o, begin:end],
                levels[o, begin:end],
                workspace.weights[begin:end],
                weights,
                sums,
                out,
                values[o, begin:end],
                medians,
                side == 1,
            )
            for i in range(m):
                total[i] += out[i] / outputs


@compiled
def _are_allowed(i, task, sign, within, workspace, best):
    """Tell whether the values of both sides go the way they must; if so, write the middle of them."""
    left, right, at = workspace.sides[0], workspace.sides[1], 1 + task.classes
    if task.criterion == ABSOLUTE:
        return keeps_order(workspace.medians[0, i], workspace.medians[1, i + 1], sign, within, best)
    return keeps_order(left[at] / left[0], right[at] / right[0], sign, within, best)


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
        purity = -loss if absolute else children_purity(left, right, total, outputs, task.criterion)
        if purity > best.purity and (sign == 0 or _are_allowed(i, task, sign, within, workspace, best)):
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
    purity = children_purity(left, right, total, outputs, task.criterion)
    if purity > best.purity:
        best.purity, best.column, best.low, best.high, best.threshold = purity, column, low, high, t


@compiled
def _find_split(growth, tree, at, limits):
    """Write the best split over `max_features` columns that are not constant, and the side of rows without a value."""
    columns, task, signs, workspace = growth.columns, growth.target, growth.signs, growth.workspace
    node, best, total, within = tree.nodes[at], tree.splits[at], tree.sums[at], growth.bounds[at if signs.size else 0]
    rows, d, tried, drawn, side = growth.rows[node.start : node.stop], columns.n_codes.shape[0], 0, 0, -1
    drawing = limits.max_features < d or limits.random
    best.purity, best.column, workspace.begin[0] = -np.inf, -1, node.start
    while drawn < d and (tried < limits.max_features or best.column < 0):
        if drawing:
            draw_columns(workspace.order, drawn, drawn + 1, workspace.state)
        f = workspace.order[drawn]
        drawn += 1
        levels, gap = columns.levels[columns.starts[f] :], columns.gaps[f]
        if limits.random and task.criterion != ABSOLUTE and gap < 0 and signs.size == 0:
            first, last = _read_codes(columns.codes[f], rows, workspace.code)
            if first < last:
                tried += 1
                _draw_unsorted(rows, first, last, levels, task, total, limits, workspace, f, best)
                side = -1 if best.column == f else side
            continue
        known = _sort_places(columns.codes[f], rows, gap, workspace)
        if known == 0 or workspace.code[workspace.places[0]] == workspace.code[workspace.places[rows.shape[0] - 1]]:
            continue
        tried += 1
        sign = signs[f] if signs.size else 0
        if limits.random:
            result = _draw_of_column(rows, known, levels, task, total, limits, sign, within, workspace, f, best)
        else:
            result = _best_of_column(rows, known, task, total, limits, sign, within, workspace, f, best)
        side = result if result > -2 else side
    growth.sides[at] = side
    return worth(node, best, task.criterion, limits, 1e-300)


@compiled
def _rank_targets(rows, task, workspace, begin, middle):
    """Rank the targets of a node; write their medians to `middle` (outputs,) and return the mean sum of deviations."""
    n, outputs, loss = rows.shape[0], task.first.shape[0] - 1, 0.0
    y, weights = np.empty(n), workspace.weights[begin : begin + n]
    for i in range(n):
        weights[i] = task.weight[rows[i]]
    half = weights.sum() / 2
    for o in range(outputs):
        for i in range(n):
            y[i] = task.y[rows[i], o]
        order = np.argsort(y, kind="mergesort")
        at, heavy = 0, weights[order[0]]
        while heavy < half and at + 1 < n:
            at += 1
            heavy += weights[order[at]]
        middle[o] = y[order[at]]
        if heavy == half and at + 1 < n:
            middle[o] = middle[o] / 2 + y[order[at + 1]] / 2
        for i in range(n):
            workspace.rank[o, begin + order[i]] = i
            workspace.values[o, begin + i] = y[order[i]]
            workspace.levels[o, begin + i] = y[order[i]] - middle[o]
            loss += weights[order[i]] * abs(y[order[i]] - middle[o])
    return loss / outputs


@compiled
def _weigh(growth, node, total):
    """Write sums and purity of a node; under absolute errors its medians instead of the weighted sums."""
    rows, task = growth.rows[node.start : node.stop], growth.target
    differ = weigh_rows(rows, task, node, total)
    if task.criterion != ABSOLUTE:
        return write_purity(node, total, task.y.shape[1], task.criterion, differ)
    node.purity, node.squares = -_rank_targets(rows, task, growth.workspace, node.start, total[1:]), 0.0
    return differ


_build = builder(_weigh, _find_split, part_codes)


@compiled
def grow(columns, target, rows, limits, seed, signs):
    """Grow a tree; return its nodes and sums (under absolute errors weights and medians), the side of rows without a
    value (-1: there were none), and the bounds of the values of its nodes.

    rows: row numbers, reordered in place; limits: a record of `_records.LIMITS`; signs (columns,): see `Growth`.
    """
    m, outputs, width = rows.shape[0], target.first.shape[0] - 1, target.first[-1]
    tree = new_tree(m, limits, width)
    sides, bounds = np.full(tree.nodes.size, -1, dtype=np.int64), np.empty((tree.nodes.size if signs.size else 1, 2))
    bounds[0] = -np.inf, np.inf
    workspace = _new_workspace(m, columns.n_codes.shape[0], outputs, width, seed, target.criterion)
    place = DRAWN if limits.random else HALFWAY
    growth = Growth(columns, target, rows, place, signs, bounds, sides, workspace)
    tree, end, _ = _build(growth, tree, limits)
    nodes, sums = grown(tree, end)
    return nodes, sums, sides[:end].copy(), bounds[:end].copy()

"""Compiled growth of one binary tree on numeric columns: a whole tree in one call, on one thread.

Columns come as codes: position of a value among the distinct values of its column, so that comparing codes is
comparing values. At a node, the rows' codes of a column are counted (if there are few codes) or sorted (by digits),
and a scan from small to large finds the best threshold. Nothing is approximated: every threshold between two different
values is tried.
"""

from typing import Any, NamedTuple

import numpy as np

from assay.jit import compiled
from assay.tree.growth._builder import (
    allowed,
    builder,
    draw_columns,
    grown,
    middle_of,
    narrow,
    new_tree,
    partitioner,
    share,
    weigh_rows,
    worth,
    write_purity,
)
from assay.tree.growth._criteria import children_purity
from assay.tree.growth._records import ENTROPY, GINI, SQUARED

_DIGIT = 11
_SMALL = 40  # rows up to which insertion is the fastest sort
_FEW = 256  # codes of a column that are counted rather than sorted
LOWER, HALFWAY, DRAWN = 0, 1, 2  # a threshold at the lower one of two levels, between them, or where it was drawn
_EVERYTHING = 1e150  # at least: parts the rows with a value from those without; the largest number of certificates


class Growth(NamedTuple):
    """A tree on codes that is being grown, here and in `_general_loops`."""

    columns: Any  # see `_exact.Columns`
    target: Any  # see `_records.Target`
    rows: np.ndarray  # row numbers of the sample, reordered in place
    place: int  # where a threshold lies: LOWER, HALFWAY or DRAWN
    signs: np.ndarray  # (columns,) of those with which values rise or fall (`_builder`), or empty
    bounds: np.ndarray  # (nodes, 2) of the values of the nodes then; one row otherwise
    sides: np.ndarray  # (nodes,) where rows without a value go: 0 left, 1 right, -1 there are none; or empty
    workspace: Any


class Workspace(NamedTuple):
    """What the search of a node needs; functions called for each column get what they use of it, because a call costs
    by the number of arrays."""

    order: np.ndarray  # of the columns
    state: np.ndarray
    keys: np.ndarray
    spare: np.ndarray
    digits: np.ndarray
    cells: np.ndarray  # (codes, statistics) sums of codes that are counted
    cell_rows: np.ndarray
    sides: np.ndarray  # (2, statistics) sums of the rows on both sides
    found: Any


class Codes(NamedTuple):
    """The codes of one column at a node, ascending, one entry per code or per row: their rows and sums, of classes
    without the weight."""

    code: np.ndarray
    rows: np.ndarray  # how many have it
    sums: np.ndarray  # (entries, statistics)


@compiled
def _new_workspace(rows, n_codes, width, seed):
    few = min(n_codes.max(), _FEW)
    size = max(rows, few)
    return Workspace(
        np.arange(n_codes.shape[0]),
        np.array([seed], dtype=np.uint64),
        np.empty(rows, dtype=np.uint64),
        np.empty(rows, dtype=np.uint64),
        np.zeros(1 << _DIGIT, dtype=np.int64),
        np.zeros((few, width)),
        np.zeros(few, dtype=np.int64),
        np.empty((2, width)),
        Codes(np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty((size, width))),
    )


@compiled
def sort_keys(keys, spare, counts, low, high):
    """Sort keys by their upper 32 bits, which lie between low and high."""
    n = keys.shape[0]
    if n <= _SMALL:
        for i in range(1, n):
            key = keys[i]
            j = i
            while j > 0 and keys[j - 1] > key:
                keys[j] = keys[j - 1]
                j -= 1
            keys[j] = key
        return
    base, span, shift = np.uint64(low), high - low, np.uint64(32)
    source, target, flips = keys, spare, 0
    while True:
        size = min(span + 1, 1 << _DIGIT)
        mask = np.uint64((1 << _DIGIT) - 1)
        counts[:size] = 0
        for i in range(n):
            counts[np.int64((((source[i] >> np.uint64(32)) - base) >> (shift - np.uint64(32))) & mask)] += 1
        total = 0
        for k in range(size):
            here = counts[k]
            counts[k] = total
            total += here
        for i in range(n):
            digit = np.int64((((source[i] >> np.uint64(32)) - base) >> (shift - np.uint64(32))) & mask)
            target[counts[digit]] = source[i]
            counts[digit] += 1
        source, target, flips = target, source, flips + 1
        span >>= _DIGIT
        shift += np.uint64(_DIGIT)
        if span == 0:
            break
    if flips % 2:
        for i in range(n):
            keys[i] = spare[i]


@compiled
def _sum_of(sums, criterion):
    """Return the weight of some rows, from the weights of their classes; entropies leave out what is rounding alone."""
    whole = 0.0
    for k in range(1, sums.shape[0]):
        whole += sums[k] if sums[k] > 0 or criterion != ENTROPY else 0.0
    return whole


@compiled
def keeps_order(left, right, sign, within, best):
    """Tell whether the values of two children are allowed; if so, write the middle of them."""
    if not allowed(left, right, sign, within[0], within[1]):
        return False
    best.middle = left / 2 + right / 2
    return True


@compiled
def _value_of(sums, classes):
    """Return the share of class 1 of 2, or the mean."""
    return sums[2] / (sums[1] + sums[2]) if classes else sums[1] / sums[0]


@compiled
def _scan(found, m, column, total, target, limits, sign, within, sides, best):
    """Try every threshold between neighbours of the m codes found."""
    code, count, sums, left, right = found.code, found.rows, found.sums, sides[0], sides[1]
    width, classes, criterion = total.shape[0], target.classes, target.criterion
    least, light = limits.min_samples_leaf, limits.min_weight_leaf
    left[:] = 0.0
    right[:] = total
    rows, taken = 0, 0
    for i in range(m):
        rows += count[i]
    for i in range(m - 1):
        for k in range(classes, width):
            left[k] += sums[i, k]
            right[k] -= sums[i, k]
        taken += count[i]
        if taken < least or code[i] == code[i + 1]:
            continue
        if rows - taken < least:
            break
        a, b = left[1] * left[1], right[1] * right[1]
        if criterion == GINI:
            here, there, a, b = 0.0, 0.0, 0.0, 0.0
            for k in range(1, width):
                here += left[k]
                there += right[k]
                a += left[k] * left[k]
                b += right[k] * right[k]
            left[0], right[0] = here, there
        elif classes:
            left[0], right[0] = _sum_of(left, criterion), _sum_of(right, criterion)
        if left[0] <= 0 or right[0] <= 0 or left[0] < light or right[0] < light:
            continue
        if criterion in (GINI, SQUARED):  # `children_purity` without a call
            purity = a / left[0] + b / right[0]
        else:
            purity = children_purity(left, right, total, 1, criterion)
        if not purity > best.purity:
            continue
        if sign == 0 or keeps_order(_value_of(left, classes), _value_of(right, classes), sign, within, best):
            best.purity, best.column, best.low, best.high = purity, column, code[i], code[i + 1]


@compiled
def _draw(found, m, column, total, target, limits, sign, within, sides, levels, state, best):
    """Try one threshold, drawn evenly between the smallest and the largest value of the column at this node."""
    code, count, sums, left, right = found.code, found.rows, found.sums, sides[0], sides[1]
    classes, criterion = target.classes, target.criterion
    first, last = levels[code[0]], levels[code[m - 1]]
    t = first + (last - first) * share(state)
    left[:] = 0.0
    right[:] = total
    taken, rows = 0, 0
    for i in range(m):
        rows += count[i]
    i = 0
    while i < m - 1 and levels[code[i]] <= t:
        for k in range(classes, total.shape[0]):
            left[k] += sums[i, k]
            right[k] -= sums[i, k]
        taken += count[i]
        i += 1
    if classes:
        left[0], right[0] = _sum_of(left, criterion), _sum_of(right, criterion)
    if min(taken, rows - taken) < limits.min_samples_leaf or left[0] <= 0 or right[0] <= 0:
        return
    if left[0] < limits.min_weight_leaf or right[0] < limits.min_weight_leaf:
        return
    purity = children_purity(left, right, total, 1, criterion)
    if not purity > best.purity:
        return
    if sign == 0 or keeps_order(_value_of(left, classes), _value_of(right, classes), sign, within, best):
        best.purity, best.column, best.low, best.high, best.threshold = purity, column, code[i - 1], code[i], t


@compiled
def _weigh(growth, node, total):
    """Write sums and purity of a node; the weight of classes is that of all of them, as on both sides of a split."""
    target = growth.target
    differ = weigh_rows(growth.rows[node.start : node.stop], target, node, total)
    if target.classes:
        total[0] = _sum_of(total, target.criterion)
    return write_purity(node, total, 1, target.criterion, differ)


@compiled
def _find_split(growth, tree, at, limits):
    """Write the best split of a node over `max_features` columns that are not constant there, drawn in turn."""
    columns, target, signs, workspace = growth.columns, growth.target, growth.signs, growth.workspace
    node, best, total, within = tree.nodes[at], tree.splits[at], tree.sums[at], growth.bounds[at if signs.size else 0]
    rows, result, few = growth.rows[node.start : node.stop], workspace.found, workspace.cells.shape[0]
    d, tried, drawn, drawing = columns.n_codes.shape[0], 0, 0, limits.max_features < columns.n_codes.shape[0]
    best.purity, best.column, best.threshold = -np.inf, -1, 0.0
    while drawn < d and (tried < limits.max_features or best.column < 0):
        if drawing or limits.random:
            draw_columns(workspace.order, drawn, drawn + 1, workspace.state)
        f = workspace.order[drawn]
        drawn += 1
        codes, n_codes = columns.codes[f], columns.n_codes[f]
        if n_codes <= few and rows.shape[0] > n_codes // 8:
            m = _count_codes(codes, n_codes, target, rows, workspace.cells, workspace.cell_rows, result)
        else:
            m = _sort_codes(codes, target, rows, workspace.keys, workspace.spare, workspace.digits, result)
        if m < 2 or result.code[0] == result.code[m - 1]:
            continue
        tried += 1
        sign = signs[f] if signs.size else 0
        if limits.random:
            levels = columns.levels[columns.starts[f] :]
            _draw(result, m, f, total, target, limits, sign, within, workspace.sides, levels, workspace.state, best)
        else:
            _scan(result, m, f, total, target, limits, sign, within, workspace.sides, best)
    return worth(node, best, target.criterion, limits, 1e-300)


@compiled
def _goes_left(codes, row, split):
    """Tell whether a row has a code up to the last on the left, or none, and goes there."""
    return (codes[row] <= split[0]) | (codes[row] == split[1])


_partition = partitioner(_goes_left)


@compiled
def part_codes(growth, tree, at, end):
    """Divide the rows of a node, and the bounds of its values; return where the others begin, and the threshold."""
    columns, node, split = growth.columns, tree.nodes[at], tree.splits[at]
    f, start, gap = split.column, columns.starts[split.column], np.int64(-1)
    if growth.sides.size and growth.sides[at] == 0:
        gap = columns.gaps[f]
    codes, spare = columns.codes[f], growth.workspace.spare
    boundary = _partition(growth.rows, spare, node, codes, (split.low, gap))
    if growth.signs.size:
        narrow(growth.bounds, at, end, growth.signs[f], split.middle)
    low, high = columns.levels[start + split.low], columns.levels[start + split.high]
    if growth.place == DRAWN:
        return boundary, split.threshold if low == high or split.threshold < high else low
    if growth.place == HALFWAY and split.threshold == np.inf:
        return boundary, max(low, _EVERYTHING)
    return boundary, middle_of(low, high) if growth.place == HALFWAY else low


_build = builder(_weigh, _find_split, part_codes)


@compiled
def grow(columns, target, rows, limits, seed, between, signs, within):
    """Grow a tree; return its nodes and sums (see `_builder.grown`), the nodes that could still be split, and the
    bounds of the values of all nodes.

    limits: a record of `_records.LIMITS`; between: whether a threshold lies between two levels, or at the lower one;
    within (2,): bounds of all values; the others: see `Growth`.
    """
    place = LOWER if not between else DRAWN if limits.random else HALFWAY
    tree = new_tree(rows.shape[0], limits, target.first[-1])
    bounds = np.empty((tree.nodes.size if signs.size else 1, 2))
    bounds[0] = within
    workspace, sides = _new_workspace(rows.shape[0], columns.n_codes, target.first[-1], seed), np.empty(0, np.int64)
    growth = Growth(columns, target, rows, place, signs, bounds, sides, workspace)
    tree, end, waiting = _build(growth, tree, limits)
    nodes, sums = grown(tree, end)
    return nodes, sums, tree.frontier[:waiting].copy(), bounds[:end].copy()


@compiled
def _count_codes(codes, n_codes, target, rows, cells, cell_rows, found):
    """Write the codes of some rows in ascending order, each once, with their rows and sums; return how many."""
    y, weight, classes = target.y, target.weight, target.classes
    code, count, sums, width = found.code, found.rows, found.sums, cells.shape[1]
    for i in range(rows.shape[0]):
        r = rows[i]
        c = codes[r]
        w = weight[r] if weight.size else 1.0
        cell_rows[c] += 1
        if classes > 0:
            cells[c, 1 + np.int64(y[r, 0])] += w
        else:
            cells[c, 0] += w
            cells[c, 1] += w * y[r, 0]
    n = 0
    for c in range(n_codes):
        if cell_rows[c] > 0:
            code[n], count[n] = c, cell_rows[c]
            for k in range(width):
                sums[n, k] = cells[c, k]
                cells[c, k] = 0.0
            cell_rows[c] = 0
            n += 1
    return n


@compiled
def _sort_codes(codes, target, rows, keys, spare, digits, found):
    """The same with one entry per row; 1 if all have the same code."""
    y, weight, classes, n = target.y, target.weight, target.classes, rows.shape[0]
    code, count, sums = found.code, found.rows, found.sums
    low, high = np.int64(codes[rows[0]]), np.int64(codes[rows[0]])
    for i in range(n):
        r = rows[i]
        c = np.int64(codes[r])
        low, high = min(low, c), max(high, c)
        keys[i] = (np.uint64(c) << np.uint64(32)) | np.uint64(r)
    if low == high:
        return 1
    sort_keys(keys[:n], spare[:n], digits, low, high)
    for i in range(n):
        r = np.int64(keys[i] & np.uint64(0xFFFFFFFF))
        code[i], count[i] = np.int64(keys[i] >> np.uint64(32)), 1
        w = weight[r] if weight.size else 1.0
        if classes > 0:
            for k in range(sums.shape[1]):
                sums[i, k] = 0.0
            sums[i, 1 + np.int64(y[r, 0])] = w
        else:
            sums[i, 0], sums[i, 1] = w, w * y[r, 0]
    return n

"""Compiled growth of one binary tree on numeric columns: a whole tree in one call, on one thread.

Columns come as codes: position of a value among the distinct values of its column, so that comparing codes is
comparing values. At a node, the rows' codes of a column are counted (if there are few codes) or sorted (by digits),
and a scan from small to large finds the best threshold. Nothing is approximated: every threshold between two different
values is tried.
"""

from typing import NamedTuple

import numpy as np

from assay.jit import compiled
from assay.tree.growth._criteria import children_purity, decrease, node_purity, spread_of
from assay.tree.growth._frontier import add_children, is_enough, may_split, middle_of, new_tree, next_node, with_room
from assay.tree.growth._monotone import allowed, narrow, value_of
from assay.tree.growth._random import below, share

_DIGIT = 11
_SMALL = 40  # rows up to which insertion is the fastest sort
_FIRST = 1024  # nodes that are allocated before the tree has as many
_FEW = 256  # codes of a column that are counted rather than sorted


class Codes(NamedTuple):
    """The codes of one column at a node, ascending, one entry per code or per row: their rows and sums."""

    code: np.ndarray
    rows: np.ndarray  # how many have it
    sums: np.ndarray  # (entries, statistics)


class Workspace(NamedTuple):
    """What the search of a node needs beside its codes; functions called for each column get what they use of it,
    because a call costs by the number of arrays."""

    order: np.ndarray  # of the columns
    state: np.ndarray
    keys: np.ndarray
    spare: np.ndarray
    digits: np.ndarray
    cells: np.ndarray  # (codes, statistics) sums of codes that are counted
    cell_rows: np.ndarray
    sides: np.ndarray  # (2, statistics) sums of the rows on both sides


class Bounds(NamedTuple):
    """Which way the values of a node go with a column (0: any), and between which numbers they lie (`_monotone`)."""

    sign: int
    low: float
    high: float


@compiled
def _new_codes(rows, n_codes, width):
    size = max(rows, min(n_codes.max(), _FEW))
    return Codes(np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty((size, width)))


@compiled
def _new_room(rows, n_codes, width, seed):
    few, order, state = min(n_codes.max(), _FEW), np.arange(n_codes.shape[0]), np.array([seed], dtype=np.uint64)
    keys, spare = np.empty(rows, dtype=np.uint64), np.empty(rows, dtype=np.uint64)
    digits = np.zeros(1 << _DIGIT, dtype=np.int64)
    cells, cell_rows = np.zeros((few, width)), np.zeros(few, dtype=np.int64)
    return Workspace(order, state, keys, spare, digits, cells, cell_rows, np.empty((2, width)))


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
def _keeps_order(left, right, classes, bounds, best):
    """Tell whether the values of two sides go the way they must; if so, write the middle of them."""
    if bounds.sign == 0:
        return True
    a, b = value_of(left, classes), value_of(right, classes)
    if not allowed(a, b, bounds.sign, bounds.low, bounds.high):
        return False
    best.middle = a / 2 + b / 2
    return True


@compiled
def _scan(found, m, column, total, criterion, classes, limits, bounds, sides, best):
    """Try every threshold between neighbours of the m codes found."""
    code, count, sums, left, right = found.code, found.rows, found.sums, sides[0], sides[1]
    width = total.shape[0]
    least, light, weighed = limits.min_samples_leaf, limits.min_weight_leaf, classes if classes > 0 else 1
    left[:] = 0.0
    right[:] = total
    rows, taken = 0, 0
    for i in range(m):
        rows += count[i]
    for i in range(m - 1):
        for k in range(width):
            left[k] += sums[i, k]
            right[k] -= sums[i, k]
        taken += count[i]
        if taken < least or code[i] == code[i + 1]:
            continue
        if rows - taken < least:
            break
        here, there = 0.0, 0.0
        for k in range(weighed):
            here += left[k]
            there += right[k]
        if here <= 0 or there <= 0 or here < light or there < light:
            continue
        purity = children_purity(left, right, criterion, classes)
        if purity > best.purity and _keeps_order(left, right, classes, bounds, best):
            best.purity, best.column, best.low, best.high = purity, column, code[i], code[i + 1]


@compiled
def _draw(found, m, column, total, criterion, classes, limits, bounds, sides, levels, state, best):
    """Try one threshold, drawn evenly between the smallest and the largest value of the column at this node."""
    code, count, sums, left, right = found.code, found.rows, found.sums, sides[0], sides[1]
    first, last = levels[code[0]], levels[code[m - 1]]
    t = first + (last - first) * share(state)
    left[:] = 0.0
    right[:] = total
    taken, rows = 0, 0
    for i in range(m):
        rows += count[i]
    i = 0
    while i < m - 1 and levels[code[i]] <= t:
        for k in range(total.shape[0]):
            left[k] += sums[i, k]
            right[k] -= sums[i, k]
        taken += count[i]
        i += 1
    weighed = classes if classes > 0 else 1
    here, there = left[:weighed].sum(), right[:weighed].sum()
    if min(taken, rows - taken) < limits.min_samples_leaf or here <= 0 or there <= 0:
        return
    if here < limits.min_weight_leaf or there < limits.min_weight_leaf:
        return
    purity = children_purity(left, right, criterion, classes)
    if purity > best.purity and _keeps_order(left, right, classes, bounds, best):
        best.purity, best.column, best.low, best.high, best.threshold = purity, column, code[i - 1], code[i], t


@compiled
def _find_split(columns, target, rows, total, limits, monotone, within, workspace, found, best):
    """Write the best split of a node over `max_features` columns that are not constant there, drawn in turn; `rows`
    are those of the node, `within` (2,) the bounds of its values."""
    d, tried, drawn = columns.n_codes.shape[0], 0, 0
    order, state, sides, few, n = (
        workspace.order,
        workspace.state,
        workspace.sides,
        workspace.cells.shape[0],
        rows.shape[0],
    )
    criterion, classes = target.criterion, target.classes
    drawing = limits.max_features < d or limits.random
    best.purity, best.column = -np.inf, -1
    while drawn < d and (tried < limits.max_features or best.column < 0):
        j = drawn + (below(state, d - drawn) if drawing else 0)
        f = order[j]
        order[j], order[drawn] = order[drawn], f
        drawn += 1
        codes, n_codes = columns.codes[f], columns.n_codes[f]
        if n_codes <= few and n > n_codes // 8:
            m = _count_codes(codes, n_codes, target, rows, workspace.cells, workspace.cell_rows, found)
        else:
            m = _sort_codes(codes, target, rows, workspace.keys, workspace.spare, workspace.digits, found)
        if m < 2 or found.code[0] == found.code[m - 1]:
            continue
        tried += 1
        bounds = Bounds(monotone[f] if monotone.size else 0, within[0], within[1])
        if limits.random:
            levels = columns.levels[columns.starts[f] :]
            _draw(found, m, f, total, criterion, classes, limits, bounds, sides, levels, state, best)
        else:
            _scan(found, m, f, total, criterion, classes, limits, bounds, sides, best)


@compiled
def _add_up(rows, target, node, total):
    """Write the sums of a node's rows to `total`, their weighted squares to the node; tell whether the targets
    differ."""
    y, weight, classes = target.y, target.weight, target.classes
    first, differ, squares = y[rows[0]], False, 0.0
    total[:] = 0.0
    for i in range(rows.shape[0]):
        r = rows[i]
        w = weight[r] if weight.size else 1.0
        differ |= y[r] != first
        if classes > 0:
            total[np.int64(y[r])] += w
        else:
            total[0] += w
            total[1] += w * y[r]
            squares += spread_of(y[r], w, target.criterion)
    node.squares = squares
    return differ


@compiled
def _open(columns, target, rows, node, total, limits, monotone, within, workspace, found, split):
    """Write sums, purity, best split and gain of a node; tell whether it is worth splitting."""
    own = rows[node.start : node.stop]
    differ = _add_up(own, target, node, total)
    node.purity = node_purity(total, target.criterion, target.classes)
    if not differ:
        node.squares = node.purity  # an impurity of exactly 0
    if not differ or not may_split(node, limits):
        return False
    _find_split(columns, target, own, total, limits, monotone, within, workspace, found, split)
    if split.column < 0:
        return False
    node.gain = decrease(split.purity, node.purity, target.criterion)
    return is_enough(node.gain, limits, 1e-300)


@compiled
def _threshold(columns, split, limits, between):
    """Return the threshold of a split: half-way between two levels, where it was drawn, or, unless `between`, at the
    lower level."""
    start = columns.starts[split.column]
    low, high = columns.levels[start + split.low], columns.levels[start + split.high]
    if not between:
        return low
    if limits.random:
        return split.threshold if low <= split.threshold < high else low
    return middle_of(low, high)


@compiled
def grow(columns, target, rows, limits, seed, between, monotone, within):
    """Grow a tree; return its nodes (see `_records.NODE`), their sums (weights of the classes, or weight and weighted
    sum), and the bounds of their values.

    columns: see `_exact.Columns`; target: see `_records.Target`; rows: row numbers of the sample, reordered in place;
    limits: a record of `_records.LIMITS`; between: whether a threshold lies between two levels (see `_threshold`);
    monotone (columns,): signs of the columns with which values rise or fall, or empty; within (2,): bounds of all
    values then.
    """
    m, width = rows.shape[0], target.classes if target.classes > 0 else 2
    tree = new_tree(m, limits)
    nodes, splits, value = tree.nodes, tree.splits, np.empty((min(tree.nodes.size, _FIRST), width))
    bounds = np.empty((nodes.size if monotone.size else 1, 2))
    bounds[0] = within
    workspace, found = _new_room(m, columns.n_codes, width, seed), _new_codes(m, columns.n_codes, width)
    fresh, end, waiting = 0, 1, 0
    while True:
        value = with_room(value, fresh, end)
        for at in range(fresh, end):
            within = bounds[at if monotone.size else 0]
            if _open(
                columns, target, rows, nodes[at], value[at], limits, monotone, within, workspace, found, splits[at]
            ):
                tree.frontier[waiting] = at
                waiting += 1
        at = next_node(tree, waiting, end, limits)
        if at < 0:
            break
        waiting -= 1
        node, split = nodes[at], splits[at]
        boundary = _partition(columns.codes[split.column], split.low, rows, workspace.keys, node.start, node.stop)
        add_children(nodes, at, _threshold(columns, split, limits, between), split.column, boundary, end)
        if monotone.size:
            narrow(bounds, at, end, monotone[split.column], split.middle)
        fresh, end = end, end + 2
    return nodes[:end].copy(), value[:end].copy(), bounds[:end].copy()


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
            cells[c, np.int64(y[r])] += w
        else:
            cells[c, 0] += w
            cells[c, 1] += w * y[r]
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
            sums[i, np.int64(y[r])] = w
        else:
            sums[i, 0], sums[i, 1] = w, w * y[r]
    return n


@compiled
def _partition(codes, last, rows, spare, start, stop):
    """Reorder rows[start:stop], codes up to `last` first; return where the others begin."""
    left, right = start, 0
    for i in range(start, stop):
        r = rows[i]
        if codes[r] <= last:
            rows[left] = r
            left += 1
        else:
            spare[right] = np.uint64(r)
            right += 1
    for i in range(right):
        rows[left + i] = np.int64(spare[i])
    return left

"""Compiled growth of one binary tree on columns that are sorted once: classes or numbers, one output or several.

An entry is a value of a row, written as one integer: the level of the value (levels count the distinct values of all
columns, one column after the other, ascending) times 2^32, plus the row. The entries of a node are a stretch of one
array, ascending, and splitting a node parts its stretch in two without changing the order of either side. So nothing
is sorted again, and a node costs two passes over its entries. A column may leave out the rows of its commonest value
(of sparse rows, zero): they are one block, whose sums are those of the node less those of the entries.
"""

from typing import Any, NamedTuple

import numpy as np

from assay.jit import compiled
from assay.tree.growth._builder import (
    builder,
    draw_columns,
    grown,
    middle_of,
    new_tree,
    partitioner,
    worth,
    write_purity,
)
from assay.tree.growth._criteria import children_purity, spread_of

SQUARES, COUNTS, OTHER = 0, 1, 2  # squared errors of numbers; Gini of whole weights; everything else
_ROW = np.uint64(0xFFFFFFFF)
_LEVEL = np.uint64(32)
_NO_LEVEL = np.int64(2**40)


class Entries(NamedTuple):
    """Columns of values."""

    keys: np.ndarray  # (entries,) uint64, ascending
    values: np.ndarray  # (levels,)
    column: np.ndarray  # (levels,) int32, the column of each level
    first: np.ndarray  # (columns + 1,) int64, where the levels of each column begin
    block: np.ndarray  # (columns,) int64, level of the rows without an entry; -1 if every row has one


class Learned(NamedTuple):
    """What each row adds to the sums of a node, which are the weight, then the weights of the classes of each output,
    or its weighted sum."""

    added: np.ndarray  # (rows, sums) of numbers; of classes (0, sums)
    place: np.ndarray  # (rows, outputs) int32, the sum of each output that grows by the weight; of numbers (0, outputs)
    weight: np.ndarray  # (rows,)
    kind: int


class Workspace(NamedTuple):
    """What the search of a node needs."""

    order: np.ndarray  # of the columns
    state: np.ndarray
    begin: np.ndarray  # (columns + 1,) where the entries of each column with entries begin
    which: np.ndarray  # (columns + 1,) which column that is
    listed: np.ndarray  # (columns,) where it stands in that list
    sides: np.ndarray  # (3, sums): left, right, block
    side: np.ndarray  # (rows,) of the last split: 0 left, 1 right
    spare: np.ndarray


class Growth(NamedTuple):
    """A tree that is being grown."""

    entries: Any
    keys: np.ndarray  # the entries of the rows, reordered in place
    learned: Any
    target: Any  # see `_records.Target`
    rows: np.ndarray  # row numbers, each once, reordered in place
    reach: np.ndarray  # (nodes, 2) the stretch of keys of each node
    workspace: Any


@compiled
def _scan(keys, begin, end, n, block, learned, total, outputs, limits, sides, column, criterion, best):
    """Try every threshold of a column, whose entries in a node of n rows are keys[begin:end]; tell whether the column
    has two values."""
    added, place, weight, kind = learned.added, learned.place, learned.weight, learned.kind
    left, right, hidden = sides[0], sides[1], sides[2]
    width, numbers, least, light = total.shape[0], added.shape[0] > 0, limits.min_samples_leaf, limits.min_weight_leaf
    pending, taken, previous, a, b = n > end - begin, 0, np.int64(-1), 0.0, 0.0
    if pending:
        _hide(keys, begin, end, added, place, weight, total, hidden)
    for k in range(width):
        left[k], right[k] = 0.0, total[k]
        b += total[k] * total[k] if kind == COUNTS and k > 0 else 0.0
    i, two = begin, False
    while i < end or pending:
        here = np.int64(keys[i] >> _LEVEL) if i < end else _NO_LEVEL
        whole = pending and here > block
        level = block if whole else here
        if previous >= 0 and level != previous:
            two = True
            if n - taken < least:
                break
            here_weight, there = left[0], right[0]
            if taken >= least and here_weight > 0 and there > 0 and here_weight >= light and there >= light:
                if kind == SQUARES:
                    a, b = 0.0, 0.0
                    for k in range(1, width):
                        a += left[k] * left[k]
                        b += right[k] * right[k]
                if kind == OTHER:
                    result = children_purity(left, right, total, outputs, criterion)
                else:
                    result = (a / here_weight + b / there) / outputs
                if result > best.purity:
                    best.purity, best.column, best.low, best.high = result, column, previous, level
        if whole:
            a, b = 0.0, 0.0
            for k in range(width):
                left[k] += hidden[k]
                right[k] -= hidden[k]
                if k > 0:
                    a += left[k] * left[k]
                    b += right[k] * right[k]
            taken += n - (end - begin)
            pending = False
        else:
            r = np.int64(keys[i] & _ROW)
            if numbers:
                for k in range(width):
                    left[k] += added[r, k]
                    right[k] -= added[r, k]
            else:
                w = weight[r]
                left[0] += w
                right[0] -= w
                for o in range(outputs):
                    p = place[r, o]
                    a += w * (2 * left[p] + w)
                    b += w * (w - 2 * right[p])
                    left[p] += w
                    right[p] -= w
            taken += 1
            i += 1
        previous = level
    return two


@compiled
def _hide(keys, begin, end, added, place, weight, total, hidden):
    """Write the sums of the rows of a node that have no entry among keys[begin:end]."""
    for k in range(total.shape[0]):
        hidden[k] = 0.0
    for i in range(begin, end):
        r = np.int64(keys[i] & _ROW)
        if added.shape[0] > 0:
            for k in range(total.shape[0]):
                hidden[k] += added[r, k]
        else:
            hidden[0] += weight[r]
            for o in range(place.shape[1]):
                hidden[place[r, o]] += weight[r]
    for k in range(total.shape[0]):
        hidden[k] = total[k] - hidden[k]


@compiled
def _place_of(keys, begin, end, level):
    """Return where the first entry of this level or a higher one lies in keys[begin:end]."""
    while begin < end:
        middle = (begin + end) // 2
        if np.int64(keys[middle] >> _LEVEL) < level:
            begin = middle + 1
        else:
            end = middle
    return begin


@compiled
def _list_columns(keys, start, stop, n, column, first, block, begin, which):
    """Write the columns that have entries among keys[start:stop], of a node of n rows, and where theirs begin; return
    how many. All rows of a node may be in the block of the others."""
    count, i = 0, start
    while i < stop:
        f = column[np.int64(keys[i] >> _LEVEL)]
        begin[count], which[count] = i, f
        count += 1
        i = i + n if block[f] < 0 else _place_of(keys, i + 1, min(i + n, stop), first[f + 1])
    return count


@compiled
def _find_split(growth, tree, at, limits):
    """Write the best split of a node over `max_features` columns that are not constant there, drawn in turn if that is
    not all of them."""
    keys, entries, learned, workspace = growth.keys, growth.entries, growth.learned, growth.workspace
    begin, which, listed, block, sides = (
        workspace.begin,
        workspace.which,
        workspace.listed,
        entries.block,
        workspace.sides,
    )
    node, best, total = tree.nodes[at], tree.splits[at], tree.sums[at]
    start, stop = growth.reach[at, 0], growth.reach[at, 1]
    n, d, criterion = node.stop - node.start, block.shape[0], growth.target.criterion
    result = _list_columns(keys, start, stop, n, entries.column, entries.first, block, begin, which)
    begin[result] = stop
    tried, drawn, outputs, drawing = 0, 0, growth.target.y.shape[1], limits.max_features < d
    best.purity, best.column = -np.inf, -1
    for j in range(result):
        listed[which[j]] = j
    while drawn < (d if drawing else result) and (tried < limits.max_features or best.column < 0):
        if drawing:
            draw_columns(workspace.order, drawn, drawn + 1, workspace.state)
        f = workspace.order[drawn] if drawing else which[drawn]
        j = listed[f]
        drawn += 1
        if j < result and which[j] == f:
            here, there = begin[j], begin[j + 1]
            tried += _scan(keys, here, there, n, block[f], learned, total, outputs, limits, sides, f, criterion, best)
    return worth(node, best, criterion, limits, 1e-300)


@compiled
def _weigh(growth, node, total):
    """Write sums, purity and spread of a node; tell whether its targets differ."""
    target, added, place, rows = growth.target, growth.learned.added, growth.learned.place, growth.rows
    y, weight, outputs, differ, spread = target.y, target.weight, target.y.shape[1], False, 0.0
    total[:] = 0.0
    for i in range(node.start, node.stop):
        r = rows[i]
        if added.shape[0] > 0:
            for k in range(total.shape[0]):
                total[k] += added[r, k]
        else:
            total[0] += weight[r]
            for o in range(outputs):
                total[place[r, o]] += weight[r]
        for o in range(outputs):
            differ |= y[r, o] != y[rows[node.start], o]
            spread += spread_of(y[r, o], weight[r], target.criterion) if target.classes == 0 else 0.0
    node.squares = spread / outputs
    return write_purity(node, total, outputs, target.criterion, differ)


@compiled
def _goes_left(side, row, split):
    return 1 - side[row]


_partition = partitioner(_goes_left)


@compiled
def _part_rows(growth, tree, at, end):
    """Mark the side of the rows of a node, and reorder them; return where the right ones begin, and the threshold."""
    keys, entries, rows, side = growth.keys, growth.entries, growth.rows, growth.workspace.side
    node, split, start, stop = tree.nodes[at], tree.splits[at], growth.reach[at, 0], growth.reach[at, 1]
    f, block = split.column, entries.block[split.column]
    if block >= 0:
        for i in range(node.start, node.stop):
            side[rows[i]] = block > split.low
    i = _place_of(keys, start, stop, entries.first[f])
    beyond = entries.first[f + 1]
    while i < stop and np.int64(keys[i] >> _LEVEL) < beyond:
        side[np.int64(keys[i] & _ROW)] = np.int64(keys[i] >> _LEVEL) > split.low
        i += 1
    boundary = _partition(rows, growth.workspace.spare, node, side, split.low)
    return boundary, middle_of(entries.values[split.low], entries.values[split.high])


@compiled
def _arrange(growth, at, child, left, right):
    """Divide the keys of a node, for those children that can be split."""
    reach, workspace = growth.reach, growth.workspace
    start, stop = reach[at, 0], reach[at, 1]
    middle, stop = _part_keys(growth.keys, start, stop, workspace.side, left, right, workspace.spare)
    reach[child, 0], reach[child, 1], reach[child + 1, 0], reach[child + 1, 1] = start, middle, middle, stop


@compiled
def _part_keys(keys, start, stop, side, keep_left, keep_right, spare):
    """Reorder keys[start:stop], the left ones first; return where the others begin and end. Sides that are not kept
    are dropped."""
    left, right = start, np.int64(0)
    if keep_left and keep_right:
        for i in range(start, stop):
            key = keys[i]
            s = np.int64(side[np.int64(key & _ROW)])
            keys[left] = key
            spare[right] = key
            left += 1 - s
            right += s
        for i in range(right):
            keys[left + i] = spare[i]
        return left, left + right
    kept = np.int64(keep_right)
    for i in range(start, stop):
        key = keys[i]
        keys[left] = key
        left += np.int64(side[np.int64(key & _ROW)] == kept)
    return (start, left) if keep_right else (left, left)


_build = builder(_weigh, _find_split, _part_rows, _arrange)


@compiled
def grow(entries, keys, learned, target, rows, limits, seed):
    """Grow a tree; return its nodes and sums (see `_builder.grown`), the nodes that could still be split, and the
    stretches of keys of all nodes.

    limits: a record of `_records.LIMITS`; the others: see `Growth`.
    """
    m, d, width = rows.shape[0], entries.block.shape[0], target.first[-1]
    tree = new_tree(m, limits, width)
    reach, most = np.empty((tree.nodes.size, 2), dtype=np.int64), max(keys.shape[0], m)
    reach[0, 0], reach[0, 1] = 0, keys.shape[0]
    begin, which, listed = np.empty(d + 1, np.int64), np.empty(d + 1, np.int64), np.zeros(d, np.int64)
    side, spare = np.empty(target.y.shape[0], dtype=np.uint8), np.empty(most, dtype=np.uint64)
    order, state = np.arange(d), np.array([seed], dtype=np.uint64)
    workspace = Workspace(order, state, begin, which, listed, np.empty((3, width)), side, spare)
    growth = Growth(entries, keys, learned, target, rows, reach, workspace)
    tree, end, waiting = _build(growth, tree, limits)
    nodes, sums = grown(tree, end)
    return nodes, sums, tree.frontier[:waiting].copy(), reach[:end].copy()


@compiled
def entries_of(keys, weight, kept):
    """Write the entries of the rows of positive weight, in order, to `kept`; return how many."""
    count = np.int64(0)
    for i in range(keys.shape[0]):
        kept[count] = keys[i]
        count += np.int64(weight[np.int64(keys[i] & _ROW)] > 0)
    return count


@compiled
def write_keys(order, x, keys, values):
    """Write the distinct values of x[order], ascending, and each row with the place of its value among them; return
    how many."""
    place = 0
    values[0] = x[order[0]]
    for i in range(order.shape[0]):
        if x[order[i]] > values[place]:
            place += 1
            values[place] = x[order[i]]
        keys[i] = (np.uint64(place) << _LEVEL) | np.uint64(order[i])
    return place + 1

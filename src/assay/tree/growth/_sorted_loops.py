"""Compiled growth of one binary tree on columns that are sorted once: classes or numbers, one output or several.

An entry is a value of a row, written as one integer: the level of the value (levels count the distinct values of all
columns, one column after the other, ascending) times 2^32, plus the row. The entries of a node are a stretch of one
array, ascending, and splitting a node parts its stretch in two without changing the order of either side. So nothing
is sorted again, and a node costs two passes over its entries. A column may leave out the rows of its commonest value
(of sparse rows, zero): they are one block, whose sums are those of the node less those of the entries.
"""

from typing import NamedTuple

import numpy as np

from assay.jit import compiled
from assay.tree.growth._criteria import spread_of
from assay.tree.growth._frontier import add_children, is_enough, may_split, middle_of, new_tree, next_node, with_room
from assay.tree.growth._general_loops import mean_children_purity, mean_purity
from assay.tree.growth._random import below
from assay.tree.growth._records import FRIEDMAN

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
                    found = mean_children_purity(left, right, total, outputs, criterion)
                else:
                    found = (a / here_weight + b / there) / outputs
                if found > best.purity:
                    best.purity, best.column, best.low, best.high = found, column, previous, level
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
def _find_split(keys, start, stop, n, entries, learned, task, total, limits, workspace, best):
    """Write the best split of a node of n rows over `max_features` columns that are not constant there, drawn in turn
    if that is not all of them."""
    begin, which, block = workspace.begin, workspace.which, entries.block
    found = _list_columns(keys, start, stop, n, entries.column, entries.first, block, begin, which)
    begin[found] = stop
    d, tried, drawn, outputs, kind = block.shape[0], 0, 0, task.first.shape[0] - 1, task.criterion
    best.purity, best.column = -np.inf, -1
    if limits.max_features >= d:
        for j in range(found):
            f = which[j]
            _scan(
                keys,
                begin[j],
                begin[j + 1],
                n,
                block[f],
                learned,
                total,
                outputs,
                limits,
                workspace.sides,
                f,
                kind,
                best,
            )
        return
    order, listed = workspace.order, workspace.listed
    for j in range(found):
        listed[which[j]] = j
    while drawn < d and (tried < limits.max_features or best.column < 0):
        at = drawn + below(workspace.state, d - drawn)
        f = order[at]
        order[at], order[drawn] = order[drawn], f
        drawn += 1
        j = listed[f]
        if (
            j < found
            and which[j] == f
            and _scan(
                keys,
                begin[j],
                begin[j + 1],
                n,
                block[f],
                learned,
                total,
                outputs,
                limits,
                workspace.sides,
                f,
                kind,
                best,
            )
        ):
            tried += 1


@compiled
def _weigh(rows, task, learned, node, total, limits):
    """Write sums, purity and spread of a node; tell whether it can be split."""
    y, weight, added, place = task.y, task.weight, learned.added, learned.place
    outputs, width, differ, spread = y.shape[1], total.shape[0], False, 0.0
    total[:] = 0.0
    for i in range(node.start, node.stop):
        r = rows[i]
        if added.shape[0] > 0:
            for k in range(width):
                total[k] += added[r, k]
        else:
            total[0] += weight[r]
            for o in range(outputs):
                total[place[r, o]] += weight[r]
        for o in range(outputs):
            differ |= y[r, o] != y[rows[node.start], o]
            spread += spread_of(y[r, o], weight[r], task.criterion) if task.classes == 0 else 0.0
    node.squares, node.purity = spread / outputs, mean_purity(total, outputs, task.criterion)
    if not differ and task.classes == 0:
        node.squares = node.purity  # an impurity of exactly 0
    return differ and may_split(node, limits)


@compiled
def _part_rows(keys, reach, entries, split, rows, node, side, spare):
    """Mark the side of the rows of a node, and reorder them, the left ones first; return where the others begin."""
    f, block = split.column, entries.block[split.column]
    start, stop = reach[0], reach[1]
    if block >= 0:
        for i in range(node.start, node.stop):
            side[rows[i]] = block > split.low
    at = _place_of(keys, start, stop, entries.first[f])
    beyond = entries.first[f + 1]
    while at < stop and np.int64(keys[at] >> _LEVEL) < beyond:
        side[np.int64(keys[at] & _ROW)] = np.int64(keys[at] >> _LEVEL) > split.low
        at += 1
    left, right = node.start, 0
    for i in range(node.start, node.stop):
        r = rows[i]
        rows[left] = r
        spare[right] = np.uint64(r)
        left += 1 - side[r]
        right += side[r]
    for i in range(right):
        rows[left + i] = np.int64(spare[i])
    return left


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


@compiled
def grow(entries, keys, learned, task, rows, limits, seed):
    """Grow a tree; return its nodes (`_records.NODE`), their sums, the nodes that could still be split, and the
    stretches of keys of all nodes.

    keys: the entries of the rows, reordered in place; task: see `_general_loops.Task`; rows: row numbers, each once,
    reordered in place; limits: a record of `_records.LIMITS`.
    """
    m, width = rows.shape[0], task.first[-1]
    tree = new_tree(m, limits)
    nodes, splits, sums = tree.nodes, tree.splits, np.empty((min(tree.nodes.size, 1024), width))
    reach, d = np.empty((nodes.size, 2), dtype=np.int64), entries.block.shape[0]
    begin, which = np.empty(d + 1, dtype=np.int64), np.empty(d + 1, dtype=np.int64)
    order, listed = np.arange(d), np.zeros(d, dtype=np.int64)
    workspace = Workspace(order, np.array([seed], dtype=np.uint64), begin, which, listed, np.empty((3, width)))
    spare, side = np.empty(max(keys.shape[0], m), dtype=np.uint64), np.empty(task.y.shape[0], dtype=np.uint8)
    splittable = np.zeros(2, dtype=np.bool_)
    reach[0, 0], reach[0, 1] = 0, keys.shape[0]
    at, fresh, end, waiting = np.int64(-1), 0, 1, 0
    while True:
        sums = with_room(sums, fresh, end)
        for new in range(fresh, end):
            splittable[new - fresh] = _weigh(rows, task, learned, nodes[new], sums[new], limits)
        if at >= 0 and (splittable[0] or splittable[1]):
            start = reach[at, 0]
            middle, stop = _part_keys(keys, start, reach[at, 1], side, splittable[0], splittable[1], spare)
            reach[fresh, 0], reach[fresh, 1], reach[fresh + 1, 0], reach[fresh + 1, 1] = start, middle, middle, stop
        for new in range(fresh, end):
            if not splittable[new - fresh]:
                continue
            node, split = nodes[new], splits[new]
            _find_split(
                keys, reach[new, 0], reach[new, 1], node.stop - node.start, entries, learned, task, sums[new], limits,
                workspace, split,
            )  # fmt: skip
            if split.column < 0:
                continue
            node.gain = split.purity - (0.0 if task.criterion == FRIEDMAN else node.purity)
            if is_enough(node.gain, limits, 1e-300):
                tree.frontier[waiting] = new
                waiting += 1
        at = next_node(tree, waiting, end, limits)
        if at < 0:
            break
        waiting -= 1
        node, split = nodes[at], splits[at]
        boundary = _part_rows(keys, reach[at], entries, split, rows, node, side, spare)
        threshold = middle_of(entries.values[split.low], entries.values[split.high])
        add_children(nodes, at, threshold, split.column, boundary, end)
        fresh, end = end, end + 2
    return nodes[:end].copy(), sums[:end].copy(), tree.frontier[:waiting].copy(), reach[:end].copy()


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

"""Compiled growth of a classification tree on binned rows that count a whole number of times: the trees of forests.

A row is one 64-bit entry: row number (32 bits), class (16), times it counts (16). The columns drawn at a node are
counted together, row by row: one addition per row and column adds both the times (lower 32 bits) and the row (upper 32)
to the cell of its bin and class. In a small node a bit for each bin that occurs leads the scan from one occupied bin
to the next, so that a node costs what its rows cost and not what 256 bins cost. Children's counts come from the scan.
"""

from typing import NamedTuple

import numpy as np

from assay.jit import compiled, prefetch, trailing_zeros
from assay.tree.growth._criteria import purity_of
from assay.tree.growth._frontier import add_children, is_enough, may_split, new_tree, next_node
from assay.tree.growth._random import draw_columns
from assay.tree.growth._records import GINI

BINS = 256
_TIMES = (1 << 32) - 1
_ROW = 1 << 32
_SMALL = 256  # rows up to which marking the occupied bins one by one pays
_AHEAD = np.uint64(12)  # rows between asking for a row's bins and using them


class Workspace(NamedTuple):
    """What the search of a node needs: the order of the columns, the state of the draws, and cells to count in."""

    order: np.ndarray
    state: np.ndarray
    cells: np.ndarray  # (columns drawn * 256 * classes,)
    occupied: np.ndarray  # (columns drawn * 4,) a bit for each bin
    sides: np.ndarray  # (2, classes)


@compiled
def _count(bins, entries, columns, classes, cells, occupied):
    """Add entries to `cells` (columns * 256 * classes); mark bins that occur in `occupied` (columns * 4 words)."""
    K, k, one = np.uint64(classes), np.uint64(columns.shape[0]), np.uint64(1)
    size, stop = np.uint64(BINS) * K, np.uint64(entries.shape[0])
    width, last = np.uint64(bins.shape[1]), stop - one
    if stop <= np.uint64(_SMALL):
        for i in range(stop):
            entry = entries[i]
            row, of = entry >> np.uint64(32), (entry >> np.uint64(16)) & np.uint64(0xFFFF)
            value = np.int64(entry & np.uint64(0xFFFF)) + _ROW
            for j in range(k):
                b = np.uint64(bins[row, columns[j]])
                cells[j * size + b * K + of] += value
                occupied[(j << np.uint64(2)) + (b >> np.uint64(6))] |= one << (b & np.uint64(63))
        return
    for i in range(stop):
        entry = entries[i]
        row, of = entry >> np.uint64(32), (entry >> np.uint64(16)) & np.uint64(0xFFFF)
        value = np.int64(entry & np.uint64(0xFFFF)) + _ROW
        prefetch(bins, (entries[min(i + _AHEAD, last)] >> np.uint64(32)) * width)
        for j in range(k):
            cells[j * size + np.uint64(bins[row, columns[j]]) * K + of] += value
    for at in range(columns.shape[0] * BINS):
        total = np.int64(0)
        for c in range(classes):
            total |= cells[at * classes + c]
        occupied[at >> 6] |= np.uint64(total != 0) << np.uint64(at & 63)


@compiled
def _scan_two(cells, occupied, j, column, total, rows, limits, best, left):
    """Find the best threshold of the column counted j-th by Gini's impurity of two classes; tell whether it has two
    bins.

    With l of W rows on the left and l1, W1 of them in class 1, the impurity falls by 2 (l1 W - l W1)^2 / (W l (W - l)).
    `best`: purity and scale are numerator and denominator of the largest (l1 W - l W1)^2 / (l (W - l)); `left`: times
    of the classes and rows to the left of it. Fractions are compared without dividing.
    """
    whole, ones = np.int64(total[0] + total[1]), np.int64(total[1])
    least, light = limits.min_samples_leaf, limits.min_weight_leaf
    top, under, at = best.purity, best.scale, j * 2 * BINS
    n0, n1, taken, first, previous = np.int64(0), np.int64(0), np.int64(0), np.int64(-1), np.int64(-1)
    for w in range(4):
        bits = occupied[4 * j + w]
        occupied[4 * j + w] = np.uint64(0)
        while bits != np.uint64(0):
            b = np.int64(trailing_zeros(bits)) + 64 * w
            bits &= bits - np.uint64(1)
            n = n0 + n1
            gap, scale = np.float64(n1 * whole - n * ones), np.float64(n) * np.float64(whole - n)
            allowed = min(taken, rows - taken) >= least and min(n, whole - n) >= light
            if gap * gap * under > top * scale and allowed and n > 0:
                top, under = gap * gap, scale
                best.column, best.low, best.high = column, previous, b
                left[0], left[1], left[2] = n0, n1, taken
            zero, one = cells[at + 2 * b], cells[at + 2 * b + 1]
            cells[at + 2 * b] = 0
            cells[at + 2 * b + 1] = 0
            n0 += zero & _TIMES
            n1 += one & _TIMES
            taken += (zero >> 32) + (one >> 32)
            first = b if first < 0 else first
            previous = b
    best.purity, best.scale = top, under
    return first < previous


@compiled
def _scan_many(cells, occupied, j, column, total, rows, limits, criterion, best, left, sides):
    """The same for any number of classes and any criterion: the purity is that of both sides (see `_criteria`)."""
    classes = total.shape[0]
    here, there = sides[0], sides[1]
    here[:] = 0.0
    there[:] = total
    taken, first, previous = np.int64(0), np.int64(-1), np.int64(-1)
    weight, whole = 0.0, total.sum()
    least, light = limits.min_samples_leaf, limits.min_weight_leaf
    for w in range(4):
        bits = occupied[4 * j + w]
        occupied[4 * j + w] = np.uint64(0)
        while bits != np.uint64(0):
            b = np.int64(trailing_zeros(bits)) + 64 * w
            bits &= bits - np.uint64(1)
            if previous >= 0 and min(taken, rows - taken) >= least and min(weight, whole - weight) >= light:
                purity = purity_of(here, criterion, classes) + purity_of(there, criterion, classes)
                if purity > best.purity:
                    best.purity, best.column, best.low, best.high = purity, column, previous, b
                    left[:classes] = here
                    left[classes] = taken
            for k in range(classes):
                cell = cells[(j * BINS + b) * classes + k]
                cells[(j * BINS + b) * classes + k] = 0
                here[k] += cell & _TIMES
                there[k] -= cell & _TIMES
                weight += cell & _TIMES
                taken += cell >> 32
            first = b if first < 0 else first
            previous = b
    return first < previous


@compiled
def _find_split(bins, entries, total, criterion, limits, workspace, best, left):
    """Draw columns until `max_features` of them with two values were tried and a threshold was found; write the best
    one. `entries` are those of the node."""
    order, cells, occupied, sides = workspace.order, workspace.cells, workspace.occupied, workspace.sides
    classes, d, most, drawn, tried = total.shape[0], order.shape[0], limits.max_features, 0, 0
    two, rows = classes == 2 and criterion == GINI, entries.shape[0]
    best.purity, best.scale, best.column = -1.0 if two else -np.inf, 1.0, -1
    while drawn < d and (tried < most or best.column < 0):
        end = min(drawn + max(most - tried, 1), d)
        if most < d:
            draw_columns(order, drawn, end, workspace.state)
        columns = order[drawn:end]
        _count(bins, entries, columns, classes, cells, occupied)
        for j in range(end - drawn):
            f = np.int64(columns[j])
            if two:
                tried += _scan_two(cells, occupied, j, f, total, rows, limits, best, left)
            else:
                tried += _scan_many(cells, occupied, j, f, total, rows, limits, criterion, best, left, sides)
        drawn = end


@compiled
def partition_entries(bins, column, last, entries, spare, start, stop):
    """Reorder entries[start:stop], bins up to `last` of the column first; return where the others begin."""
    left, right, f = np.uint64(start), np.uint64(0), np.uint64(column)
    for i in range(np.uint64(start), np.uint64(stop)):
        entry = entries[i]
        go = np.uint64(np.int64(bins[entry >> np.uint64(32), f]) <= last)
        entries[left] = entry
        spare[right] = entry
        left += go
        right += np.uint64(1) - go
    boundary = np.int64(left)
    entries[boundary:stop] = spare[: stop - boundary]
    return boundary


@compiled
def bin_threshold(edges, split):
    """Return a threshold half-way between the edges beside two neighbouring bins that occur."""
    low, high = edges[split.column, split.low], edges[split.column, split.high - 1]
    middle = low / 2 + high / 2
    return middle if low < middle < high else low


@compiled
def _count_classes(entries, total):
    total[:] = 0.0
    for entry in entries:
        total[np.int64((entry >> np.uint64(16)) & np.uint64(0xFFFF))] += np.int64(entry & np.uint64(0xFFFF))


@compiled
def _open(bins, entries, node, total, criterion, limits, workspace, split, left):
    """Write purity, best split and gain of a node; tell whether it is worth splitting."""
    classes = total.shape[0]
    node.purity = purity_of(total, criterion, classes)
    if total.max() == total.sum() or not may_split(node, limits):
        return False
    _find_split(bins, entries[node.start : node.stop], total, criterion, limits, workspace, split, left)
    if split.column < 0:
        return False
    two = classes == 2 and criterion == GINI
    node.gain = 2 * split.purity / split.scale / total.sum() if two else split.purity - node.purity
    return is_enough(node.gain, limits, 1e-300)


@compiled
def grow_hist_classifier(bins, edges, entries, classes, criterion, limits, seed):
    """Grow a tree; return its nodes (see `_records.NODE`) and the times of each class in them (nodes, classes).

    bins (n, columns or more) bytes; edges (columns, 255): values in bin b are at most edges[b] and more than
    edges[b - 1]; entries (m,): see above, reordered in place; limits: a record of `_records.LIMITS`.
    """
    m, k = entries.shape[0], limits.max_features
    tree = new_tree(m, limits)
    nodes, splits = tree.nodes, tree.splits
    value, lefts, spare = np.empty((nodes.size, classes)), np.empty((nodes.size, classes + 1)), np.empty_like(entries)
    cells, occupied = np.zeros(k * BINS * classes, dtype=np.int64), np.zeros(k * 4, dtype=np.uint64)
    order, state = np.arange(edges.shape[0]).astype(np.uint64), np.array([seed], dtype=np.uint64)
    workspace = Workspace(order, state, cells, occupied, np.empty((2, classes)))
    _count_classes(entries, value[0])
    fresh, end, waiting = 0, 1, 0
    while True:
        for at in range(fresh, end):
            if _open(bins, entries, nodes[at], value[at], criterion, limits, workspace, splits[at], lefts[at]):
                tree.frontier[waiting] = at
                waiting += 1
        at = next_node(tree, waiting, end, limits)
        if at < 0:
            break
        waiting -= 1
        node, split = nodes[at], splits[at]
        boundary = partition_entries(bins, split.column, split.low, entries, spare, node.start, node.stop)
        add_children(nodes, at, bin_threshold(edges, split), split.column, boundary, end)
        value[end] = lefts[at, :classes]
        value[end + 1] = value[at] - value[end]
        fresh, end = end, end + 2
    return nodes[:end].copy(), value[:end].copy()

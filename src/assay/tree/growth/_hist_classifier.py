"""Compiled growth of a classification tree on binned rows that count a whole number of times: the trees of forests.

A row is one 64-bit entry: row number (32 bits), class (16), times it counts (16). The columns drawn at a node are
counted together, row by row: one addition per row and column adds both the times (lower 32 bits) and the row (upper 32)
to the cell of its bin and class. In a small node a bit for each bin that occurs leads the scan from one occupied bin
to the next, so that a node costs what its rows cost and not what 256 bins cost. Children's counts come from the scan.
"""

from typing import Any, NamedTuple

import numpy as np

from assay.jit import compiled, prefetch, trailing_zeros
from assay.tree.growth._builder import builder, draw_columns, grown, is_enough, new_tree, partitioner
from assay.tree.growth._criteria import mean_purity
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
    sides: np.ndarray  # (2, 1 + classes)


class Growth(NamedTuple):
    """A tree on binned rows that is being grown, here and in `_hist_regressor`."""

    bins: np.ndarray  # (rows, columns or more) bytes
    edges: np.ndarray  # (columns, 255): values in bin b are at most edges[b] and more than edges[b - 1]
    entries: np.ndarray  # the rows of the sample (see above), reordered in place
    spare: np.ndarray
    lefts: np.ndarray  # (nodes, 2 + classes) rows, then weight and weights of the classes on the left of the best split
    target: Any
    workspace: Any


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
    `best`: purity and scale are numerator and denominator of the largest (l1 W - l W1)^2 / (l (W - l)); `left`: see
    `Growth.lefts`. Fractions are compared without dividing.
    """
    whole, ones = np.int64(total[0]), np.int64(total[2])
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
                left[0], left[1], left[2], left[3] = taken, n, n0, n1
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
    here, there, classes = sides[0], sides[1], total.shape[0] - 1
    here[:] = 0.0
    there[:] = total
    taken, first, previous = np.int64(0), np.int64(-1), np.int64(-1)
    least, light = limits.min_samples_leaf, limits.min_weight_leaf
    for w in range(4):
        bits = occupied[4 * j + w]
        occupied[4 * j + w] = np.uint64(0)
        while bits != np.uint64(0):
            b = np.int64(trailing_zeros(bits)) + 64 * w
            bits &= bits - np.uint64(1)
            if previous >= 0 and min(taken, rows - taken) >= least and min(here[0], there[0]) >= light:
                purity = mean_purity(here, 1, criterion) + mean_purity(there, 1, criterion)
                if purity > best.purity:
                    best.purity, best.column, best.low, best.high = purity, column, previous, b
                    left[0] = taken
                    left[1:] = here
            for k in range(classes):
                cell = cells[(j * BINS + b) * classes + k]
                cells[(j * BINS + b) * classes + k] = 0
                times = cell & _TIMES
                here[0] += times
                there[0] -= times
                here[1 + k] += times
                there[1 + k] -= times
                taken += cell >> 32
            first = b if first < 0 else first
            previous = b
    return first < previous


@compiled
def _find_split(growth, tree, at, limits):
    """Draw columns until `max_features` of them with two values were tried and a threshold was found; write the best
    one."""
    workspace, node, total, best, left = (
        growth.workspace,
        tree.nodes[at],
        tree.sums[at],
        tree.splits[at],
        growth.lefts[at],
    )
    order, cells, occupied, criterion = workspace.order, workspace.cells, workspace.occupied, growth.target
    d, most, drawn, tried, classes = order.shape[0], limits.max_features, 0, 0, total.shape[0] - 1
    entries, two, rows = (
        growth.entries[node.start : node.stop],
        classes == 2 and criterion == GINI,
        node.stop - node.start,
    )
    best.purity, best.scale, best.column = -1.0 if two else -np.inf, 1.0, -1
    while drawn < d and (tried < most or best.column < 0):
        end = min(drawn + max(most - tried, 1), d)
        if most < d:
            draw_columns(order, drawn, end, workspace.state)
        columns = order[drawn:end]
        _count(growth.bins, entries, columns, classes, cells, occupied)
        for j in range(end - drawn):
            f = np.int64(columns[j])
            if two:
                tried += _scan_two(cells, occupied, j, f, total, rows, limits, best, left)
            else:
                tried += _scan_many(cells, occupied, j, f, total, rows, limits, criterion, best, left, workspace.sides)
        drawn = end
    if best.column < 0:
        return False
    node.gain = 2 * best.purity / best.scale / total[0] if two else best.purity - node.purity
    return is_enough(node.gain, limits, 1e-300)


@compiled
def _weigh(growth, node, total):
    """Write the purity of a node; its sums are known, but those of the root. Tell whether its classes differ."""
    if node.depth == 0:
        total[:] = 0.0
        for entry in growth.entries:
            times = np.int64(entry & np.uint64(0xFFFF))
            total[0] += times
            total[1 + np.int64((entry >> np.uint64(16)) & np.uint64(0xFFFF))] += times
    node.purity = mean_purity(total, 1, growth.target)
    return total[1:].max() < total[0]


@compiled
def _goes_left(bins, entry, split):
    return np.int64(bins[entry >> np.uint64(32), split[0]]) <= split[1]


_partition = partitioner(_goes_left)


@compiled
def part_entries(growth, tree, at, end):
    """Divide the entries of a node, and the sums of classes; return where the others begin, and a threshold half-way
    between the edges beside two neighbouring bins that occur."""
    edges, split, sums = growth.edges, tree.splits[at], tree.sums
    if growth.lefts.size:
        sums[end] = growth.lefts[at, 1:]
        sums[end + 1] = sums[at] - sums[end]
    low, high = edges[split.column, split.low], edges[split.column, split.high - 1]
    middle, own = low / 2 + high / 2, (np.uint64(split.column), split.low)
    boundary = _partition(growth.entries, growth.spare, tree.nodes[at], growth.bins, own)
    return boundary, middle if low < middle < high else low


_build = builder(_weigh, _find_split, part_entries)


@compiled
def grow_hist_classifier(bins, edges, entries, classes, criterion, limits, seed):
    """Grow a tree; return its nodes and sums (see `_builder.grown`), the times of the classes.

    limits: a record of `_records.LIMITS`; the others: see `Growth`.
    """
    k, tree = limits.max_features, new_tree(entries.shape[0], limits, 1 + classes)
    cells, occupied = np.zeros(k * BINS * classes, dtype=np.int64), np.zeros(k * 4, dtype=np.uint64)
    order, state = np.arange(edges.shape[0]).astype(np.uint64), np.array([seed], dtype=np.uint64)
    workspace = Workspace(order, state, cells, occupied, np.empty((2, 1 + classes)))
    lefts = np.empty((tree.nodes.size, 2 + classes))
    growth = Growth(bins, edges, entries, np.empty_like(entries), lefts, criterion, workspace)
    tree, end, _ = _build(growth, tree, limits)
    return grown(tree, end)

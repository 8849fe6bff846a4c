"""Compiled growth of a classification tree on binned rows that count a whole number of times: the trees of forests.

A row is one 64-bit entry: row number (32 bits), class (16), times it counts (16). The columns drawn at a node are
counted together, row by row: one addition per row and column adds both the times (lower 32 bits) and the row (upper 32)
to the cell of its bin and class. In a small node a bit for each bin that occurs leads the scan from one occupied bin
to the next, so that a node costs what its rows cost and not what 256 bins cost. Children's counts come from the scan.
"""

import numpy as np

from assay.jit import compiled, prefetch, trailing_zeros
from assay.tree.growth._exact_loops import GINI, below, merit_of

BINS = 256
_TIMES = (1 << 32) - 1
_ROW = 1 << 32
_SMALL = 256  # rows up to which marking the occupied bins one by one pays
_AHEAD = np.uint64(12)  # rows between asking for a row's bins and using them


@compiled
def _count(bins, entries, start, stop, columns, classes, cells, occupied):
    """Add entries[start:stop] to `cells` (columns * 256 * classes); mark bins that occur in `occupied` (columns * 4
    words)."""
    K, k, one = np.uint64(classes), np.uint64(columns.shape[0]), np.uint64(1)
    size, last = np.uint64(BINS) * K, np.uint64(stop - 1)
    width = np.uint64(bins.shape[1])
    if stop - start <= _SMALL:
        for i in range(np.uint64(start), np.uint64(stop)):
            entry = entries[i]
            row, of = entry >> np.uint64(32), (entry >> np.uint64(16)) & np.uint64(0xFFFF)
            value = np.int64(entry & np.uint64(0xFFFF)) + _ROW
            for j in range(k):
                b = np.uint64(bins[row, columns[j]])
                cells[j * size + b * K + of] += value
                occupied[(j << np.uint64(2)) + (b >> np.uint64(6))] |= one << (b & np.uint64(63))
        return
    for i in range(np.uint64(start), np.uint64(stop)):
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
def _scan_two(cells, occupied, j, column, total, rows, rule, found, left):
    """Find the best border of the column counted j-th by Gini's impurity of two classes; tell whether it has two bins.

    With l of W rows on the left and l1, W1 of them in class 1, the impurity falls by 2 (l1 W - l W1)^2 / (W l (W - l)).
    `found`: numerator and denominator of the best (l1 W - l W1)^2 / (l (W - l)), column, the bins beside the border;
    `left`: times of the classes and rows to the left of it. Fractions are compared without dividing.
    """
    whole, ones = np.int64(total[0] + total[1]), np.int64(total[1])
    top, under, at = found[0], found[1], j * 2 * BINS
    n0, n1, taken, first, previous = np.int64(0), np.int64(0), np.int64(0), np.int64(-1), np.int64(-1)
    for w in range(4):
        bits = occupied[4 * j + w]
        occupied[4 * j + w] = np.uint64(0)
        while bits != np.uint64(0):
            b = np.int64(trailing_zeros(bits)) + 64 * w
            bits &= bits - np.uint64(1)
            n = n0 + n1
            gap, scale = np.float64(n1 * whole - n * ones), np.float64(n) * np.float64(whole - n)
            allowed = min(taken, rows - taken) >= rule[0] and min(n, whole - n) >= rule[1]
            if gap * gap * under > top * scale and allowed and n > 0:
                top, under = gap * gap, scale
                found[2], found[3], found[4] = column, previous, b
                left[0], left[1], left[2] = n0, n1, taken
            zero, one = cells[at + 2 * b], cells[at + 2 * b + 1]
            cells[at + 2 * b] = 0
            cells[at + 2 * b + 1] = 0
            n0 += zero & _TIMES
            n1 += one & _TIMES
            taken += (zero >> 32) + (one >> 32)
            first = b if first < 0 else first
            previous = b
    found[0], found[1] = top, under
    return first < previous


@compiled
def _scan_many(cells, occupied, j, column, total, rows, rule, criterion, found, left, sides):
    """The same for any number of classes and any criterion: found[0] is the merit of both sides (see `merit_of`)."""
    classes = total.shape[0]
    here, there = sides[0], sides[1]
    here[:] = 0.0
    there[:] = total
    taken, first, previous = np.int64(0), np.int64(-1), np.int64(-1)
    weight, whole = 0.0, total.sum()
    for w in range(4):
        bits = occupied[4 * j + w]
        occupied[4 * j + w] = np.uint64(0)
        while bits != np.uint64(0):
            b = np.int64(trailing_zeros(bits)) + 64 * w
            bits &= bits - np.uint64(1)
            if previous >= 0 and min(taken, rows - taken) >= rule[0] and min(weight, whole - weight) >= rule[1]:
                merit = merit_of(here, criterion, classes) + merit_of(there, criterion, classes)
                if merit > found[0]:
                    found[0], found[1], found[2], found[3], found[4] = merit, 1.0, column, previous, b
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
def _best(bins, entries, start, stop, total, criterion, rule, order, most, state, cells, occupied, found, left, sides):
    """Draw columns until `most` of them with two values were tried and a border was found; write the best one."""
    classes, d, drawn, tried = total.shape[0], order.shape[0], 0, 0
    two = classes == 2 and criterion == GINI
    found[0], found[1], found[2] = -1.0 if two else -np.inf, 1.0, -1.0
    while drawn < d and (tried < most or found[2] < 0):
        end = min(drawn + max(most - tried, 1), d)
        if most < d:
            for i in range(drawn, end):
                j = i + below(state, d - i)
                order[i], order[j] = order[j], order[i]
        columns = order[drawn:end]
        _count(bins, entries, start, stop, columns, classes, cells, occupied)
        for j in range(end - drawn):
            f = np.int64(columns[j])
            if two:
                tried += _scan_two(cells, occupied, j, f, total, stop - start, rule, found, left)
            else:
                tried += _scan_many(cells, occupied, j, f, total, stop - start, rule, criterion, found, left, sides)
        drawn = end


@compiled
def part(bins, column, last, entries, spare, start, stop):
    """Reorder entries[start:stop], bins up to `last` of the column first; return the border."""
    left, right, f = np.uint64(start), np.uint64(0), np.uint64(column)
    for i in range(np.uint64(start), np.uint64(stop)):
        entry = entries[i]
        go = np.uint64(np.int64(bins[entry >> np.uint64(32), f]) <= last)
        entries[left] = entry
        spare[right] = entry
        left += go
        right += np.uint64(1) - go
    border = np.int64(left)
    entries[border:stop] = spare[: stop - border]
    return border


@compiled
def grow_hist_classifier(bins, n_columns, edges, entries, classes, criterion, rule, max_features, seed):
    """Grow a tree; return column, threshold, child, times of each class (nodes, classes) and merit of its nodes.

    bins (n, columns or more) bytes; edges (columns, 255): values in bin b are at most edges[b] and more than
    edges[b - 1]; entries (m,): see above, reordered in place; rule: see `_grow.grow`. A threshold lies half-way
    between the edges beside two neighbouring bins that occur.
    """
    m = entries.shape[0]
    most = 2 * m + 1 if rule[4] <= 0 else min(2 * m + 1, 2 * int(rule[4]) + 1)
    column, child, threshold = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32), np.empty(most)
    value, merit, gain = np.empty((most, classes)), np.empty(most), np.empty(most)
    start, stop, depth = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int32)
    split, lefts, frontier = np.empty((most, 5)), np.empty((most, classes + 1)), np.empty(most, dtype=np.int64)
    state, spare, order = (
        np.empty(1, dtype=np.uint64),
        np.empty(m, dtype=np.uint64),
        np.arange(n_columns).astype(np.uint64),
    )
    cells = np.zeros(max_features * BINS * classes, dtype=np.int64)
    occupied, sides = np.zeros(max_features * 4, dtype=np.uint64), np.empty((2, classes))
    state[0] = seed
    value[0] = 0.0
    for i in range(m):
        value[0, np.int64((entries[i] >> np.uint64(16)) & np.uint64(0xFFFF))] += np.int64(
            entries[i] & np.uint64(0xFFFF)
        )
    start[0], stop[0], depth[0] = 0, m, 0
    fresh, end, waiting = 0, 1, 0
    while True:
        for node in range(fresh, end):
            column[node], child[node], threshold[node], gain[node] = -1, -1, 0.0, 0.0
            a, b, total = start[node], stop[node], value[node]
            merit[node] = merit_of(total, criterion, classes)
            if total.max() == total.sum() or b - a < max(rule[2], 2 * rule[0]) or depth[node] >= rule[3]:
                continue
            found, left = split[node], lefts[node]
            _best(
                bins,
                entries,
                a,
                b,
                total,
                criterion,
                rule,
                order,
                max_features,
                state,
                cells,
                occupied,
                found,
                left,
                sides,
            )
            if found[2] < 0:
                continue
            two = classes == 2 and criterion == GINI
            gain[node] = 2 * found[0] / found[1] / total.sum() if two else found[0] - merit[node]
            if gain[node] < rule[5] * (1 - 1e-12) - 1e-300:
                continue
            frontier[waiting] = node
            waiting += 1
        if waiting == 0 or (rule[4] > 0 and end >= 2 * rule[4] - 1):
            break
        pick = waiting - 1
        if rule[4] > 0:
            for i in range(waiting):
                if gain[frontier[i]] > gain[frontier[pick]]:
                    pick = i
        node = frontier[pick]
        waiting -= 1
        frontier[pick] = frontier[waiting]
        f, low, high = np.int64(split[node, 2]), np.int64(split[node, 3]), np.int64(split[node, 4])
        column[node], child[node] = f, end
        middle = edges[f, low] / 2 + edges[f, high - 1] / 2
        threshold[node] = middle if edges[f, low] < middle < edges[f, high - 1] else edges[f, low]
        border = part(bins, f, low, entries, spare, start[node], stop[node])
        value[end] = lefts[node, :classes]
        value[end + 1] = value[node] - value[end]
        start[end], stop[end], start[end + 1], stop[end + 1] = start[node], border, border, stop[node]
        depth[end] = depth[end + 1] = depth[node] + 1
        fresh, end = end, end + 2
    return column[:end].copy(), threshold[:end].copy(), child[:end].copy(), value[:end].copy(), merit[:end].copy()

"""Compiled growth of a regression tree on binned rows with weights: the trees of forests.

As in `_hist_classifier`, the columns drawn at a node are summed together, row by row, and in a small node a bit for
each bin that occurs leads the scan. A cell holds the weight, the weighted sum of the targets and the number of its
rows; the best threshold has the largest  S_l^2 / W_l + S_r^2 / W_r,  which is the largest decrease of squared error.
"""

from typing import NamedTuple

import numpy as np

from assay.jit import compiled, prefetch, trailing_zeros
from assay.tree.growth._frontier import add_children, is_enough, may_split, new_tree, next_node
from assay.tree.growth._hist_classifier import BINS, bin_threshold, partition_entries
from assay.tree.growth._random import draw_columns

_CELL = 3
_SMALL = 256  # rows up to which marking the occupied bins one by one pays
_AHEAD = np.uint64(12)  # rows between asking for a row's bins and using them


class Target(NamedTuple):
    """Targets, best centred, weights, and their products, of all rows."""

    y: np.ndarray
    weight: np.ndarray
    weighted: np.ndarray


class Workspace(NamedTuple):
    """What the search of a node needs: the order of the columns, the state of the draws, and cells to sum in."""

    order: np.ndarray
    state: np.ndarray
    cells: np.ndarray  # (columns drawn * 256 * 3,)
    occupied: np.ndarray  # (columns drawn * 4,) a bit for each bin


@compiled
def _sum(bins, entries, columns, target, workspace):
    """Add entries to the cells (columns * 256 * 3); mark bins that occur (columns * 4)."""
    weight, weighted, cells, occupied = target.weight, target.weighted, workspace.cells, workspace.occupied
    k, one, cell = np.uint64(columns.shape[0]), np.uint64(1), np.uint64(_CELL)
    stop, width, mark = np.uint64(entries.shape[0]), np.uint64(bins.shape[1]), entries.shape[0] <= _SMALL
    last = stop - one
    for i in range(stop):
        row = entries[i] >> np.uint64(32)
        w, s = weight[row], weighted[row]
        prefetch(bins, (entries[min(i + _AHEAD, last)] >> np.uint64(32)) * width)
        for j in range(k):
            b = np.uint64(bins[row, columns[j]])
            at = ((j << np.uint64(8)) + b) * cell
            cells[at] += w
            cells[at + one] += s
            cells[at + one + one] += 1.0
            if mark:
                occupied[(j << np.uint64(2)) + (b >> np.uint64(6))] |= one << (b & np.uint64(63))
    if not mark:
        for place in range(columns.shape[0] * BINS):
            occupied[place >> 6] |= np.uint64(cells[place * _CELL + 2] > 0) << np.uint64(place & 63)


@compiled
def _scan(columns, total, rows, limits, workspace, best):
    """Find the best threshold of the columns that were summed, and clear their cells; return how many have two bins.

    `total`: weight and weighted sum of the node.
    """
    cells, occupied = workspace.cells, workspace.occupied
    least, light = np.float64(limits.min_samples_leaf), limits.min_weight_leaf
    tried = 0
    for j in range(columns.shape[0]):
        weight, weighted, taken, first, previous = 0.0, 0.0, 0.0, np.int64(-1), np.int64(-1)
        for w in range(4 * j, 4 * j + 4):
            bits = occupied[w]
            occupied[w] = np.uint64(0)
            while bits != np.uint64(0):
                b = np.int64(trailing_zeros(bits)) + 64 * (w & 3)
                bits &= bits - np.uint64(1)
                others = total[0] - weight
                allowed = min(taken, rows - taken) >= least and min(weight, others) >= light
                if previous >= 0 and allowed and weight > 0 and others > 0:
                    rest = total[1] - weighted
                    purity = (weighted * weighted * others + rest * rest * weight) / (weight * others)
                    if purity > best.purity:
                        best.purity, best.column, best.low, best.high = purity, np.int64(columns[j]), previous, b
                at = (j * BINS + b) * _CELL
                weight += cells[at]
                weighted += cells[at + 1]
                taken += cells[at + 2]
                cells[at : at + _CELL] = 0.0
                first = b if first < 0 else first
                previous = b
        tried += 1 if first < previous else 0
    return tried


@compiled
def _find_split(bins, entries, target, total, limits, workspace, best):
    """Draw columns until `max_features` of them with two values were tried and a threshold was found; write the best
    one. `entries` are those of the node."""
    order = workspace.order
    d, most, drawn, tried = order.shape[0], limits.max_features, 0, 0
    best.purity, best.column = -np.inf, -1
    while drawn < d and (tried < most or best.column < 0):
        end = min(drawn + max(most - tried, 1), d)
        if most < d:
            draw_columns(order, drawn, end, workspace.state)
        columns = order[drawn:end]
        _sum(bins, entries, columns, target, workspace)
        tried += _scan(columns, total, entries.shape[0], limits, workspace, best)
        drawn = end


@compiled
def _add_up(entries, target, node, total):
    """Write weight and weighted sum of a node's entries to `total` (2,), their weighted squares to the node; tell
    whether the targets differ."""
    y, weights = target.y, target.weight
    weight, weighted, squares, low, high = 0.0, 0.0, 0.0, np.inf, -np.inf
    for i in range(entries.shape[0]):
        row = entries[i] >> np.uint64(32)
        w, t = weights[row], y[row]
        weight += w
        weighted += w * t
        squares += w * t * t
        low, high = min(low, t), max(high, t)
    total[0], total[1], node.squares = weight, weighted, squares
    return low < high


@compiled
def _open(bins, entries, target, node, total, limits, workspace, split):
    """Write sums, purity, best split and gain of a node; tell whether it is worth splitting."""
    own = entries[node.start : node.stop]
    differ = _add_up(own, target, node, total)
    node.purity = total[1] * total[1] / total[0]
    if not differ or not may_split(node, limits):
        return False
    _find_split(bins, own, target, total, limits, workspace, split)
    node.gain = split.purity - node.purity
    return split.column >= 0 and is_enough(node.gain, limits, 1e-9 * node.squares)


@compiled
def grow_hist_regressor(bins, edges, entries, y, weight, limits, seed):
    """Grow a tree; return its nodes (see `_records.NODE`) and their weights and weighted sums (nodes, 2).

    bins, edges, limits: see `grow_hist_classifier`; entries (m,): row numbers times 2^32, reordered in place; y and
    weight (n,): targets, best centred, and weights of all rows.
    """
    m, k = entries.shape[0], limits.max_features
    tree, target = new_tree(m, limits), Target(y, weight, weight * y)
    nodes, splits = tree.nodes, tree.splits
    total, spare = np.empty((nodes.size, 2)), np.empty_like(entries)
    order, state = np.arange(edges.shape[0]).astype(np.uint64), np.array([seed], dtype=np.uint64)
    workspace = Workspace(order, state, np.zeros(k * BINS * _CELL), np.zeros(k * 4, dtype=np.uint64))
    fresh, end, waiting = 0, 1, 0
    while True:
        for at in range(fresh, end):
            if _open(bins, entries, target, nodes[at], total[at], limits, workspace, splits[at]):
                tree.frontier[waiting] = at
                waiting += 1
        at = next_node(tree, waiting, end, limits)
        if at < 0:
            break
        waiting -= 1
        node, split = nodes[at], splits[at]
        boundary = partition_entries(bins, split.column, split.low, entries, spare, node.start, node.stop)
        add_children(nodes, at, bin_threshold(edges, split), split.column, boundary, end)
        fresh, end = end, end + 2
    return nodes[:end].copy(), total[:end].copy()

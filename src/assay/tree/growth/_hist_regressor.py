"""Compiled growth of a regression tree on binned rows with weights: the trees of forests.

As in `_hist_classifier`, the columns drawn at a node are summed together, row by row, and in a small node a bit for
each bin that occurs leads the scan. A cell holds the weight, the weighted sum of the targets and the number of its
rows; the best threshold has the largest  S_l^2 / W_l + S_r^2 / W_r,  which is the largest decrease of squared error.
"""

from typing import NamedTuple

import numpy as np

from assay.jit import compiled, prefetch, trailing_zeros
from assay.tree.growth._builder import builder, draw_columns, grown, new_tree, worth
from assay.tree.growth._hist_classifier import BINS, Growth, part_entries
from assay.tree.growth._records import SQUARED

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
def _find_split(growth, tree, at, limits):
    """Draw columns until `max_features` of them with two values were tried and a threshold was found; write the best
    one."""
    workspace, node, total, best = growth.workspace, tree.nodes[at], tree.sums[at], tree.splits[at]
    order, entries = workspace.order, growth.entries[node.start : node.stop]
    d, most, drawn, tried = order.shape[0], limits.max_features, 0, 0
    best.purity, best.column = -np.inf, -1
    while drawn < d and (tried < most or best.column < 0):
        end = min(drawn + max(most - tried, 1), d)
        if most < d:
            draw_columns(order, drawn, end, workspace.state)
        columns = order[drawn:end]
        _sum(growth.bins, entries, columns, growth.target, workspace)
        tried += _scan(columns, total, entries.shape[0], limits, workspace, best)
        drawn = end
    return worth(node, best, SQUARED, limits, 1e-9 * node.squares)


@compiled
def _weigh(growth, node, total):
    """Write weight and weighted sum of a node's entries, their weighted squares and purity; tell whether the targets
    differ."""
    y, weights, entries = growth.target.y, growth.target.weight, growth.entries
    weight, weighted, squares, low, high = 0.0, 0.0, 0.0, np.inf, -np.inf
    for i in range(node.start, node.stop):
        row = entries[i] >> np.uint64(32)
        w, t = weights[row], y[row]
        weight += w
        weighted += w * t
        squares += w * t * t
        low, high = min(low, t), max(high, t)
    total[0], total[1], node.squares = weight, weighted, squares
    node.purity = weighted * weighted / weight
    return low < high


_build = builder(_weigh, _find_split, part_entries)


@compiled
def grow_hist_regressor(bins, edges, entries, y, weight, limits, seed):
    """Grow a tree; return its nodes and sums (see `_builder.grown`).

    entries (m,): row numbers times 2^32, reordered in place; y and weight (n,): targets, best centred, and weights of
    all rows; the others: see `grow_hist_classifier`.
    """
    k, tree = limits.max_features, new_tree(entries.shape[0], limits, 2)
    order, state = np.arange(edges.shape[0]).astype(np.uint64), np.array([seed], dtype=np.uint64)
    workspace = Workspace(order, state, np.zeros(k * BINS * _CELL), np.zeros(k * 4, dtype=np.uint64))
    target, lefts = Target(y, weight, weight * y), np.empty((0, 0))
    growth = Growth(bins, edges, entries, np.empty_like(entries), lefts, target, workspace)
    tree, end, _ = _build(growth, tree, limits)
    return grown(tree, end)

"""The builder of compiled growers: nodes, limits and splits as records, and the frontier of nodes that can be split.

A grower opens the nodes that were just made (their sums, their best split) and puts those worth splitting on the
frontier; `next_node` takes one off it, and `add_children` lays its two children side by side after all other nodes.
The rows of a node are a stretch, start .. stop - 1, of the grower's row numbers, which it reorders in place.
"""

from typing import NamedTuple

import numpy as np

from assay.jit import compiled
from assay.tree.growth._records import NODE, SPLIT


class Tree(NamedTuple):
    """A tree under construction: room for its nodes, their best splits, and the numbers of those on the frontier."""

    nodes: np.ndarray
    splits: np.ndarray
    frontier: np.ndarray


@compiled
def new_tree(rows, limits):
    """Return a tree whose root holds that many rows."""
    most = 2 * rows + 1
    if limits.max_leaves > 0:
        most = min(most, 2 * limits.max_leaves + 1)
    tree = Tree(np.empty(most, dtype=NODE), np.empty(most, dtype=SPLIT), np.empty(most, dtype=np.int64))
    _place(tree.nodes[0], 0, rows, 0)
    return tree


@compiled
def _place(node, start, stop, depth):
    node.column, node.child, node.threshold = -1, -1, 0.0
    node.purity, node.gain, node.squares = 0.0, 0.0, 0.0
    node.start, node.stop, node.depth = start, stop, depth


@compiled
def may_split(node, limits):
    """Tell whether a node has the rows and the depth to be split."""
    rows = node.stop - node.start
    return rows >= limits.min_samples_split and rows >= 2 * limits.min_samples_leaf and node.depth < limits.max_depth


@compiled
def is_enough(gain, limits, slack):
    """Tell whether a decrease of impurity times weight suffices, up to rounding by `slack`."""
    return not gain < limits.min_decrease * (1 - 1e-12) - slack


@compiled
def next_node(tree, waiting, end, limits):
    """Take a node off the `waiting` ones: the last, or with max_leaves that of the largest gain; -1 if the tree is
    complete. `end` nodes exist."""
    if waiting == 0 or (limits.max_leaves > 0 and end >= 2 * limits.max_leaves - 1):
        return np.int64(-1)
    nodes, frontier, pick = tree.nodes, tree.frontier, waiting - 1
    if limits.max_leaves > 0:
        for i in range(waiting):
            if nodes[frontier[i]].gain > nodes[frontier[pick]].gain:
                pick = i
    at = frontier[pick]
    frontier[pick] = frontier[waiting - 1]
    return at


@compiled
def add_children(nodes, at, threshold, column, boundary, end):
    """Split node `at`: its rows up to `boundary` go to node `end`, the others to the next."""
    node = nodes[at]
    node.column, node.threshold, node.child = column, threshold, end
    _place(nodes[end], node.start, boundary, node.depth + 1)
    _place(nodes[end + 1], boundary, node.stop, node.depth + 1)


@compiled
def with_room(sums, kept, wanted):
    """Return an array (nodes, statistics) with room for the `wanted` nodes and the first `kept` ones of `sums`: with
    many classes, room for every node that there might be is more than memory holds."""
    if wanted <= sums.shape[0]:
        return sums
    larger = np.empty((2 * wanted, sums.shape[1]))
    for i in range(kept):  # a loop compiles faster than slices
        for k in range(sums.shape[1]):
            larger[i, k] = sums[i, k]
    return larger


@compiled
def middle_of(low, high):
    """Return a threshold t with low <= t < high, half-way between them unless rounding forbids."""
    middle = low / 2 + high / 2
    return middle if low <= middle < high else low

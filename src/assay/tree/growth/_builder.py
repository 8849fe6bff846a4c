"""The builder of compiled growers: which node comes next, where its children lie, and the parts that splitters share.

A splitter hands `builder` its compiled parts: one sums a node's rows, one writes its best split, one divides its rows.
The rows of a node are a stretch, start .. stop - 1, of the grower's row numbers, which it reorders in place.

Columns with which values must rise (sign 1) or fall (sign -1): a split on such a column is allowed if its children's
values (means, or shares of class 1) lie within the node's bounds, in the order of the sign; the middle of the two
values parts the bounds of everything below them, and other splits hand the bounds on. A value outside the bounds of its
node is moved to the nearer one. Since the middle lies between the bounds of its node, any two leaves that a split on
such a column parts have values on the right sides of it.
"""

from typing import Any, NamedTuple

import numpy as np

from assay.jit import compiled
from assay.tree.growth._criteria import mean_purity, spread_of
from assay.tree.growth._records import FRIEDMAN, NODE, SPLIT

_FIRST = 1024  # nodes whose sums have room before the tree has as many


class Tree(NamedTuple):
    """A tree under construction: room for its nodes, their best splits, the numbers of those on the frontier, and the
    sums of the nodes (nodes, statistics), which grow with the tree."""

    nodes: np.ndarray
    splits: np.ndarray
    frontier: np.ndarray
    sums: np.ndarray


@compiled
def new_tree(rows, limits, width):
    """Return a tree whose root holds that many rows, with so many sums for each node."""
    most = 2 * rows + 1
    if limits.max_leaves > 0:
        most = min(most, 2 * limits.max_leaves + 1)
    nodes, splits, frontier = np.empty(most, dtype=NODE), np.empty(most, dtype=SPLIT), np.empty(most, dtype=np.int64)
    _place(nodes[0], 0, rows, 0)
    return Tree(nodes, splits, frontier, np.empty((min(most, _FIRST), width)))


@compiled
def _place(node, start, stop, depth):
    node.column, node.child, node.threshold = -1, -1, 0.0
    node.purity, node.gain, node.squares = 0.0, 0.0, 0.0
    node.start, node.stop, node.depth = start, stop, depth


@compiled
def _nothing(growth, at, child, left, right):
    """Arrange nothing."""


def builder(weigh: Any, find: Any, part: Any, arrange: Any = _nothing) -> Any:
    """Return the compiled loop build(growth, tree, limits) of a splitter with these parts; it returns the tree,
    the number of its nodes, and how many on its frontier could still be split.

    weigh(growth, node, sums) writes the sums of a node and tells whether its targets differ; find(growth, tree, at,
    limits) writes split and gain of node `at` and tells whether it is worth splitting; part(growth, tree, at, end)
    reorders its rows and returns where those of its second child begin, and the threshold; its children will be nodes
    `end` and `end + 1`. arrange(growth, at, child, left, right) is told which children may be split, if any.
    """

    @compiled(kept=False)
    def build(growth, tree, limits):
        at, fresh, end, waiting, splittable = np.int64(-1), 0, 1, 0, np.zeros(2, dtype=np.bool_)
        while True:
            tree = Tree(tree.nodes, tree.splits, tree.frontier, with_room(tree.sums, end, end + 2))
            for new in range(fresh, end):
                node = tree.nodes[new]
                splittable[new - fresh] = weigh(growth, node, tree.sums[new]) and may_split(node, limits)
            if at >= 0 and (splittable[0] or splittable[1]):
                arrange(growth, at, fresh, splittable[0], splittable[1])
            for new in range(fresh, end):
                if splittable[new - fresh] and find(growth, tree, new, limits):
                    tree.frontier[waiting] = new
                    waiting += 1
            at = next_node(tree, waiting, end, limits)
            if at < 0:
                return tree, end, waiting
            waiting -= 1
            boundary, threshold = part(growth, tree, at, end)
            add_children(tree, at, threshold, boundary, end)
            fresh, end = end, end + 2

    return build


@compiled
def grown(tree, end):
    """Return the nodes of a tree (`_records.NODE`) and their sums."""
    return tree.nodes[:end].copy(), tree.sums[:end].copy()


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
def worth(node, split, criterion, limits, slack):
    """Write the gain of a node's best split, if it has one; tell whether it suffices."""
    if split.column < 0:
        return False
    node.gain = split.purity - (0.0 if criterion == FRIEDMAN else node.purity)
    return is_enough(node.gain, limits, slack)


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
def add_children(tree, at, threshold, boundary, end):
    """Split node `at`: its rows up to `boundary` go to node `end`, the others to the next."""
    nodes, node = tree.nodes, tree.nodes[at]
    node.column, node.threshold, node.child = tree.splits[at].column, threshold, end
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
def weigh_rows(rows, target, node, total):
    """Write the sums of a node's rows, and to the node what its impurity adds to minus its purity; tell whether the
    targets differ."""
    y, weight, first, classes, differ, spread = target.y, target.weight, target.first, target.classes, False, 0.0
    total[:] = 0.0
    for o in range(y.shape[1]):
        begin, t0, heavy, sum_of = first[o], y[rows[0], o], 0.0, 0.0
        for i in range(rows.shape[0]):
            r = rows[i]
            t, w = y[r, o], weight[r] if weight.size else 1.0
            differ |= t != t0
            heavy += w
            if classes:
                total[begin + np.int64(t)] += w
            else:
                sum_of += w * t
                spread += spread_of(t, w, target.criterion)
        total[0] = heavy
        if not classes:
            total[begin] = sum_of
    node.squares = spread / y.shape[1]
    return differ


@compiled
def write_purity(node, total, outputs, criterion, differ):
    """Write the purity of a node from its sums; tell whether its targets differ."""
    node.purity = mean_purity(total, outputs, criterion)
    if not differ:
        node.squares = node.purity  # an impurity of exactly 0
    return differ


def partitioner(goes_left: Any) -> Any:
    """Return the compiled loop partition(rows, spare, node, data, split), which reorders a node's rows, those of which
    goes_left(data, row, split) is 1, not 0, first, and returns where the others begin."""

    @compiled(kept=False)
    def partition(rows, spare, node, data, split):
        left, right, start, stop = np.uint64(node.start), np.uint64(0), np.uint64(node.start), np.uint64(node.stop)
        for i in range(start, stop):
            r = rows[i]
            go = np.uint64(goes_left(data, r, split))
            rows[left] = r
            spare[right] = r
            left += go
            right += np.uint64(1) - go
        for i in range(right):
            rows[left + i] = spare[i]
        return np.int64(left)

    return partition


@compiled
def middle_of(low, high):
    """Return a threshold t with low <= t < high, half-way between them unless rounding forbids."""
    middle = low / 2 + high / 2
    return middle if low <= middle < high else low


@compiled
def allowed(left, right, sign, low, high):
    """Tell whether two children's values lie between low and high, in the order of the sign."""
    return min(left, right) >= low and max(left, right) <= high and (left - right) * sign <= 0


@compiled
def narrow(bounds, node, child, sign, middle):
    """Write the bounds (nodes, 2) of the two children of a node."""
    bounds[child] = bounds[node]
    bounds[child + 1] = bounds[node]
    if sign > 0:
        bounds[child, 1] = middle
        bounds[child + 1, 0] = middle
    elif sign < 0:
        bounds[child, 0] = middle
        bounds[child + 1, 1] = middle


# Pseudo-random numbers: the same bits on every machine, from a state of one word
# ----------------------------------------------------------------------------------------------------------------------


@compiled
def random_bits(state):
    """Return 64 pseudo-random bits and step `state` (1,) (SplitMix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def below(state, n):
    """Return a pseudo-random number from 0 .. n - 1, for n up to 2^32."""
    return np.int64(((random_bits(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@compiled
def share(state):
    """Return a pseudo-random number from [0, 1), a multiple of 2^-53."""
    return np.float64(random_bits(state) >> np.uint64(11)) * 2.0**-53


@compiled
def draw_columns(order, begin, end, state):
    """Put columns drawn evenly from order[begin:] at places begin .. end - 1."""
    d = order.shape[0]
    for i in range(begin, end):
        j = i + below(state, d - i)
        order[i], order[j] = order[j], order[i]

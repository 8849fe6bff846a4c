"""Leaf-wise growth of one tree on binned rows.

Nodes are split in the order of their gain until the tree has `max_leaves`. Four nodes are worked on at a time, the
best and the three next ones: a node that turns out not to be needed keeps its rows in one stretch all the same, so
nothing has to be undone.
"""

import heapq
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from assay.scan import thread_map
from assay.tree._nodes import Nodes
from assay.tree.growth._bins import Allowed, Binner, stretches
from assay.tree.growth._hist_rows import SIDE_BY_SIDE, Division, GrowingRows

ABOVE_ALL = 1e150
_SEARCHED = 16  # columns of the root searched together


class Numbers(NamedTuple):
    """What a split must satisfy, as the compiled search reads it."""

    g_unit: float  # what one unit of the quantised gradients and hessians stands for
    h_unit: float
    l2: float
    min_samples: float
    min_hessian: float
    min_gain: float


class Split(NamedTuple):
    """A split as the compiled search returns it."""

    gain: float  # 0: none was found
    column: int
    last: int  # bin on the left
    missing_left: int
    gradient: int  # quantised sums of the left child
    hessian: int
    rows: int


_NONE = Split(0.0, -1, 0, 0, 0, 0, 0)


class Rule(NamedTuple):
    """What a split must satisfy."""

    l2: float
    min_samples: int
    min_hessian: float
    min_gain: float
    max_leaves: int
    max_depth: int
    monotone: np.ndarray  # (columns,) -1, 0, 1


@dataclass
class Node:
    """Rows of entries[start:stop], their quantised sums, the values it may take, and its best split."""

    start: int
    stop: int
    depth: int
    total: np.ndarray
    low: float = -np.inf
    high: float = np.inf
    histogram: Any = None
    split: Split = _NONE
    goes_left: Any = None
    children: Any = None  # two nodes
    accepted: bool = False
    place: int = 0
    saw_missing: bool = False
    value: float = 0.0
    groups: Any = None  # of columns that may interact, open to it
    allowed: Any = None  # (columns,) 1 for those it may be split on

    def by_size(self) -> tuple["Node", "Node"]:
        """Return the children, the one with fewer rows first."""
        left, right = self.children
        return (left, right) if left.stop - left.start <= right.stop - right.start else (right, left)

    @property
    def gain(self) -> float:
        return self.split.gain


class Grower:
    """Grows trees on one set of binned rows; buffers are kept from tree to tree."""

    def __init__(self, rows: GrowingRows, rule: Rule, allowed: Allowed, n_jobs: int | None):
        self.rows, self.rule, self.allowed, self.n_jobs = rows, rule, allowed, n_jobs
        self._stretches = stretches(len(rows.n_bins), _SEARCHED)
        self._free: list[np.ndarray] = []

    def grow(self, n: int, units: tuple[float, float], turn: int) -> list[Node]:
        """Return the nodes of one tree, the `turn`-th, on n rows, siblings side by side; leaves are those not
        accepted."""
        rule, self.turn = self.rule, turn
        self.numbers = Numbers(*units, rule.l2, float(rule.min_samples), rule.min_hessian, rule.min_gain)
        root = Node(0, n, 0, np.zeros(3, dtype=np.int64), allowed=self.allowed.columns(None, turn, 0, n))
        self._open_root(root)
        heap: list[tuple[float, int, Node]] = []
        nodes, leaves = [root], 1
        self._push(heap, root, 0)
        while heap and leaves < self.rule.max_leaves:
            node = heap[0][2]
            if node.children is None:
                likely = heapq.nsmallest(self.rule.max_leaves - leaves, heap)
                fresh = [item[2] for item in likely if item[2].children is None]
                self._expand(fresh[:SIDE_BY_SIDE])
            heapq.heappop(heap)
            node.accepted, leaves = True, leaves + 1
            for child in node.children or ():
                child.place = len(nodes)
                nodes.append(child)
                self._push(heap, child, child.place)
        self._free_all(nodes)
        return nodes

    def _push(self, heap: list, node: Node, place: int) -> None:
        if node.gain > 0:
            heapq.heappush(heap, (-node.gain, place, node))

    def _open_root(self, root: Node) -> None:
        root.histogram = self._take()
        self.rows.open(root.stop, root.histogram)
        root.total = root.histogram[:, :256].sum(axis=1)
        if self._splittable(root):
            _settle(root, thread_map(lambda columns: self._find(root, columns), self._stretches, n_jobs=self.n_jobs))

    def _expand(self, nodes: list[Node]) -> None:
        """Give each node its children: divide its rows, sum the smaller child, subtract for the other, find their
        splits."""
        divisions = [self._division(node) for node in nodes]
        result = self.rows.divide(divisions, lambda i, columns: self._subtract(nodes[i], columns))
        for node, results in zip(nodes, result):
            self._close(node, results)

    def _division(self, node: Node) -> Division:
        """Return how the rows of a node are divided; make its children."""
        split = node.split
        left_total = np.array(split[4:])
        boundary, column = node.start + split.rows, split.column
        left = Node(node.start, boundary, node.depth + 1, left_total, node.low, node.high)
        right = Node(boundary, node.stop, node.depth + 1, node.total - left_total, node.low, node.high)
        self._narrow(node, left, right)
        groups = self.allowed.open_groups(node.groups, column)
        for child in (left, right):
            child.groups, child.allowed = groups, self.allowed.columns(groups, self.turn, child.start, child.stop)
        node.children = (left, right)
        node.saw_missing = bool(node.histogram[2, 256 * column + 255])
        small, large = node.by_size()
        if self._splittable(small) or self._splittable(large):
            small.histogram, large.histogram = self._take(), node.histogram
            node.histogram = None
        return Division(node.start, node.stop, boundary, column, node.goes_left, small is left, small.histogram)

    def _subtract(self, node: Node, columns: tuple[int, int]) -> tuple[Any, Any]:
        """Return the best splits of both children among some columns, the smaller child, which is summed, first."""
        small, large = node.by_size()
        part = slice(256 * columns[0], 256 * columns[1])
        large.histogram[:, part] -= small.histogram[:, part]
        return self._find(small, columns), self._find(large, columns)

    def _close(self, node: Node, result: list[tuple[Any, Any]]) -> None:
        for child, results in zip(node.by_size(), zip(*result)):
            if self._splittable(child):
                _settle(child, results)

    def _narrow(self, node: Node, left: Node, right: Node) -> None:
        """Keep the values of later descendants on the right side of the middle, where a column must be
        monotone."""
        sign = self.rule.monotone[node.split.column]
        if sign:
            a, b = self._value(left), self._value(right)
            if sign > 0:
                left.high = right.low = (a + b) / 2
            else:
                left.low = right.high = (a + b) / 2

    def _value(self, node: Node) -> float:
        g, h = node.total[0] * self.numbers.g_unit, node.total[1] * self.numbers.h_unit
        return min(max(-g / (h + self.rule.l2), node.low), node.high)

    def _splittable(self, node: Node) -> bool:
        return node.depth < self.rule.max_depth and node.stop - node.start >= 2 * self.rule.min_samples

    def _find(self, node: Node, columns: tuple[int, int]) -> tuple[Split, np.ndarray] | None:
        from assay.tree.growth._hist_loops import best_split

        if not self._splittable(node):
            return None
        rows, goes_left = self.rows, np.empty(256, dtype=np.uint8)
        result = best_split(
            node.histogram, *columns, rows.n_bins, rows.nominal, self.rule.monotone, node.allowed, node.total,
            self.numbers, node.low, node.high, goes_left,
        )  # fmt: skip
        return Split(*result), goes_left

    def _take(self) -> np.ndarray:
        return self._free.pop() if self._free else np.empty((3, len(self.rows.n_bins) * 256), dtype=self.rows.integer)

    def _free_all(self, nodes: list[Node]) -> None:
        """Take back the sums of the leaves and of nodes that were looked at ahead and not needed."""
        for node in nodes:
            for held in (node, *(node.children or ())):
                if held.histogram is not None:
                    self._free.append(held.histogram)
                    held.histogram = None


def _settle(node: Node, result: Any) -> None:
    """Keep the best split over all groups of columns; of equals the first."""
    split, goes_left = max(result, key=lambda item: item[0].gain)
    if split.gain > 0:
        node.split, node.goes_left = split, goes_left


def grown_nodes(grown: list[Node], binner: Binner) -> Nodes:
    """Return a grown tree as arrays; `impurity` holds the loss that a split removed."""
    inner = np.array([node.accepted for node in grown])
    splits = [node.split if node.accepted else _NONE for node in grown]
    column = np.array([split.column for split in splits], dtype=np.int32)
    nominal = inner & (binner.nominal[np.maximum(column, 0)] == 1)
    tables = [_table(node.goes_left, int(binner.n_edges[column[i]])) for i, node in enumerate(grown) if nominal[i]]
    width = max((len(table) for table in tables), default=0)
    return Nodes(
        root=np.zeros(1, dtype=np.int32),
        column=column,
        threshold=np.array([_threshold(binner, split.column, split.last) for split in splits]),
        table=np.where(nominal, np.cumsum(nominal) - 1, -1).astype(np.int32),
        child=np.array([node.children[0].place if node.accepted else -1 for node in grown], dtype=np.int32),
        n_children=np.where(inner, 2, 0).astype(np.int32),
        missing=np.array([_missing(node) if node.accepted else -1 for node in grown], dtype=np.int32),
        value=np.array([[0.0 if node.accepted else node.value] for node in grown]),
        weight=np.array([float(node.stop - node.start) for node in grown]),
        impurity=np.array([split.gain for split in splits]),
        tables=np.array([np.pad(t, (0, width - len(t)), constant_values=-1) for t in tables], dtype=np.int32).reshape(
            len(tables), width
        ),
    )


def _threshold(binner: Binner, f: int, last: int) -> float:
    """Return the upper edge of the last bin on the left; a number above all others if only missing values go
    right; 0 at leaves and at nominal splits, which have none."""
    if f < 0 or binner.nominal[f]:
        return 0.0
    return float(binner.edges[f, last]) if last < binner.n_edges[f] else ABOVE_ALL


def _missing(node: Node) -> int:
    """Return the child that takes missing values: where they went, or where most rows went if there were
    none."""
    left, right = node.children
    if node.saw_missing:
        return 0 if node.goes_left[255] else 1
    return 0 if left.stop - left.start >= right.stop - right.start else 1


def _table(goes_left: np.ndarray, levels: int) -> np.ndarray:
    return 1 - goes_left[:levels].astype(np.int32)

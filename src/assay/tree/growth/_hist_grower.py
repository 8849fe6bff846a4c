"""Leaf-wise growth of one tree on binned rows.

Nodes are split in the order of their gain until the tree has `max_leaves`. Four nodes are worked on at a time, the
best and the three next ones: a node that turns out not to be needed keeps its rows in one stretch all the same, so
nothing has to be undone.
"""

import heapq
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from assay.scan import rows_per_block, thread_map

_SIDE_BY_SIDE = 4
_LARGE = 200_000  # rows beyond which threads share the columns of one node
_LINE, _CACHED = 64, 16  # columns summed together: of one cache line; those whose sums fit in the first cache
_SAMPLED = 4  # columns whose sample is held at a time


class Binner(NamedTuple):
    """Edges between bins: column f has n_edges[f] of them, a nominal column as many levels."""

    edges: np.ndarray  # (columns, 255), infinity beyond the last
    n_edges: np.ndarray
    nominal: np.ndarray  # (columns,) 0 or 1

    @property
    def n_bins(self) -> np.ndarray:
        return np.where(self.nominal, self.n_edges, self.n_edges + 1)

    def transform(self, X: np.ndarray, n_jobs: int | None) -> "Binned":
        """Return the bins of all rows."""
        n, d = X.shape
        rows, columns = np.zeros((n, -(-d // 8) * 8), dtype=np.uint8), np.empty((d, n), dtype=np.uint8)
        step = rows_per_block(d)
        thread_map(lambda i: self.write(X[i : i + step], i, rows, columns), range(0, n, step), n_jobs=n_jobs)
        return Binned(rows, columns, self.n_bins, self.nominal)

    def write(self, X: np.ndarray, start: int, rows: np.ndarray, columns: np.ndarray | None = None) -> None:
        """Write the bins of some rows, row by row and, if asked for, column by column."""
        from assay.tree.growth._hist_loops import bin_block

        none = np.empty((0, 0), dtype=np.uint8)
        bin_block(X, self.edges, self.n_edges, self.nominal, start, rows, none if columns is None else columns)


class Binned(NamedTuple):
    """Bins twice over: rows (rows, columns padded to a multiple of 8) for sums, columns (columns, rows) for partitions,
    which would take a tenth longer on rows."""

    rows: np.ndarray
    columns: np.ndarray
    n_bins: np.ndarray
    nominal: np.ndarray


def find_bins(
    X: np.ndarray,
    max_bins: int,
    levels: dict[int, int],
    sample: int,
    rng: Any,
    n_jobs: int | None,
    shift: float = 0.0,
) -> Binner:
    """Return edges half-way between neighbouring values, or between quantiles of a sample if there are too
    many values; `shift`, between -1/2 and 1/2, moves all quantiles by so many bins."""
    n, d = X.shape
    chosen = np.sort(rng.choice(n, sample, replace=False)) if n > sample else np.arange(n)
    edges, n_edges = np.full((d, 255), np.inf), np.zeros(d, dtype=np.int64)
    nominal = np.zeros(d, dtype=np.uint8)

    def work(columns: tuple[int, int]) -> None:
        part = X[chosen, columns[0] : columns[1]].T.copy()
        for f, values in enumerate(part, columns[0]):
            if f in levels:
                nominal[f], n_edges[f] = 1, levels[f]
                continue
            values.sort()  # NaN come last
            found = _edges(values[: len(values) - np.count_nonzero(np.isnan(values))], max_bins, shift)
            n_edges[f] = len(found)
            edges[f, : len(found)] = found

    thread_map(work, _ranges(d, _SAMPLED), n_jobs=n_jobs)
    return Binner(edges, n_edges, nominal)


def _edges(ordered: np.ndarray, max_bins: int, shift: float) -> np.ndarray:
    values = ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
    if len(values) <= max_bins:
        return _middle(values[:-1], values[1:])
    places = (np.arange(1, max_bins) + shift) * (len(ordered) - 1) / max_bins
    low = np.floor(places).astype(np.intp)
    return np.unique(_middle(ordered[low], ordered[low + 1]))


def _middle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return numbers m with a <= m < b wherever a < b."""
    m = a / 2 + b / 2
    return np.where((m >= a) & (m < b), m, a)


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
    split: Any = None  # gain, column, last bin left, missing left, sums of the left child
    goes_left: Any = None
    children: Any = None  # two nodes
    accepted: bool = False
    place: int = 0
    base: int = 0  # where its smaller side waits while it is divided
    saw_missing: bool = False
    value: float = 0.0

    def by_size(self) -> tuple["Node", "Node"]:
        """Return the children, the one with fewer rows first."""
        left, right = self.children
        return (left, right) if left.stop - left.start <= right.stop - right.start else (right, left)

    @property
    def gain(self) -> float:
        return 0.0 if self.split is None else float(self.split[0])


class Grower:
    """Grows trees on one set of binned rows; buffers are kept from tree to tree.

    entries : (rows,) int64
        Row number and quantised gradient and hessian (see `_hist_loops`), in the order of the leaves of the
        last tree.
    """

    def __init__(self, binned: Binned, rule: Rule, n_jobs: int | None):
        self.binned, self.rule, self.n_jobs = binned, rule, n_jobs
        n, d = len(binned.rows), len(binned.n_bins)
        self.entries, self._scratch = np.empty(n, dtype=np.int64), np.empty(n // 2 + _SIDE_BY_SIDE, dtype=np.int64)
        self._together, self._apart = _ranges(d, _LINE), _ranges(d, _CACHED)
        self._free: list[np.ndarray] = []
        # sums of at most n hessians, each at most 4095
        self._integer = np.int32 if n < 2**31 // 4096 else np.int64

    def grow(self, n: int, units: tuple[float, float], allowed: np.ndarray) -> list[Node]:
        """Return the nodes of one tree on the first n entries, siblings side by side; leaves are those not
        accepted."""
        self.units, self.allowed = units, allowed
        root = Node(0, n, 0, np.zeros(3, dtype=np.int64))
        self._open_root(root)
        heap: list[tuple[float, int, Node]] = []
        nodes, leaves = [root], 1
        self._push(heap, root, 0)
        while heap and leaves < self.rule.max_leaves:
            node = heap[0][2]
            if node.children is None:
                likely = heapq.nsmallest(self.rule.max_leaves - leaves, heap)
                fresh = [item[2] for item in likely if item[2].children is None]
                self._expand(fresh[:_SIDE_BY_SIDE])
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
        thread_map(lambda columns: self._sum(root, columns), self._apart, n_jobs=self.n_jobs)
        root.total = root.histogram[:, :256].sum(axis=1)
        if self._splittable(root):
            _settle(root, thread_map(lambda columns: self._find(root, columns), self._apart, n_jobs=self.n_jobs))

    def _expand(self, nodes: list[Node]) -> None:
        """Give each node its children: reorder its rows, sum the smaller child, subtract for the other, find
        their splits.

        One thread does all of that for a small node; the columns of a large one are shared out.
        """
        large = [node for node in nodes if node.stop - node.start > _LARGE]
        for spare, node in enumerate(sorted(nodes, key=lambda node: node.start)):
            node.base = node.start // 2 + spare  # smaller sides need half the places, and one more each
        ordered = sorted(nodes, key=lambda node: node.start - node.stop)
        thread_map(lambda node: self._divide(node, whole=node not in large), ordered, n_jobs=self.n_jobs)
        tasks = [(node, columns) for node in large if node.children[0].histogram is not None for columns in self._apart]
        found = thread_map(lambda task: self._open(*task), tasks, n_jobs=self.n_jobs)
        for node in large:
            self._close(node, [one for (owner, _), one in zip(tasks, found) if owner is node])

    def _divide(self, node: Node, whole: bool) -> None:
        from assay.tree.growth._hist_loops import partition

        split = node.split
        left_total = split[4:7].astype(np.int64)
        border = node.start + int(left_total[2])
        left = Node(node.start, border, node.depth + 1, left_total, node.low, node.high)
        right = Node(border, node.stop, node.depth + 1, node.total - left_total, node.low, node.high)
        self._narrow(node, left, right)
        node.children = (left, right)
        node.saw_missing = bool(node.histogram[2, 256 * int(split[1]) + 255])
        small, large = node.by_size()
        going_on = self._splittable(small) or self._splittable(large)
        if going_on:
            small.histogram, large.histogram = self._take(), node.histogram
            node.histogram = None
        at_once = going_on and whole and len(self._together) == 1
        sums = small.histogram if at_once else np.empty((3, 0), dtype=self._integer)
        partition(
            self.binned.rows, self.binned.columns[int(split[1])], node.goes_left, small is left, self.entries,
            self._scratch, node.base, node.start, node.stop, sums,
        )  # fmt: skip
        if going_on and whole:
            find = self._subtract if at_once else self._open
            self._close(node, [find(node, columns) for columns in self._together])

    def _open(self, node: Node, columns: tuple[int, int]) -> tuple[Any, Any]:
        """Return the best splits of both children among some columns, the smaller child first."""
        self._sum(node.by_size()[0], columns)
        return self._subtract(node, columns)

    def _subtract(self, node: Node, columns: tuple[int, int]) -> tuple[Any, Any]:
        small, large = node.by_size()
        part = slice(256 * columns[0], 256 * columns[1])
        large.histogram[:, part] -= small.histogram[:, part]
        return self._find(small, columns), self._find(large, columns)

    def _close(self, node: Node, found: list[tuple[Any, Any]]) -> None:
        for child, results in zip(node.by_size(), zip(*found)):
            if self._splittable(child):
                _settle(child, results)

    def _sum(self, node: Node, columns: tuple[int, int]) -> None:
        from assay.tree.growth._hist_loops import histogram_rows

        histogram_rows(self.binned.rows, *columns, self.entries, node.start, node.stop, node.histogram)

    def _narrow(self, node: Node, left: Node, right: Node) -> None:
        """Keep the values of later descendants on the right side of the middle, where a column must be
        monotone."""
        sign = self.rule.monotone[int(node.split[1])]
        if sign:
            a, b = self._value(left), self._value(right)
            if sign > 0:
                left.high = right.low = (a + b) / 2
            else:
                left.low = right.high = (a + b) / 2

    def _value(self, node: Node) -> float:
        g, h = node.total[0] * self.units[0], node.total[1] * self.units[1]
        return min(max(-g / (h + self.rule.l2), node.low), node.high)

    def _splittable(self, node: Node) -> bool:
        return node.depth < self.rule.max_depth and node.stop - node.start >= 2 * self.rule.min_samples

    def _find(self, node: Node, columns: tuple[int, int]) -> tuple[np.ndarray, np.ndarray] | None:
        from assay.tree.growth._hist_loops import best_split

        if not self._splittable(node):
            return None
        rule, found, goes_left = self.rule, np.zeros(7), np.zeros(256, dtype=np.uint8)
        numbers = np.array(
            [*self.units, rule.l2, rule.min_samples, rule.min_hessian, node.low, node.high, rule.min_gain],
            dtype=np.float64,
        )
        best_split(
            node.histogram,
            *columns,
            self.binned.n_bins,
            self.binned.nominal,
            rule.monotone,
            self.allowed,
            node.total,
            numbers,
            found,
            goes_left,
        )
        if not self.binned.nominal[int(found[1])]:
            goes_left[: int(found[2]) + 1] = 1
            goes_left[255] = found[3]
        return found, goes_left

    def _take(self) -> np.ndarray:
        return self._free.pop() if self._free else np.empty((3, len(self.binned.n_bins) * 256), dtype=self._integer)

    def _free_all(self, nodes: list[Node]) -> None:
        """Take back the sums of the leaves and of nodes that were looked at ahead and not needed."""
        for node in nodes:
            for held in (node, *(node.children or ())):
                if held.histogram is not None:
                    self._free.append(held.histogram)
                    held.histogram = None


def _ranges(d: int, width: int) -> list[tuple[int, int]]:
    """Return 0 .. d in equal stretches of at most `width`."""
    borders = np.linspace(0, d, -(-d // width) + 1).astype(int).tolist()
    return list(pairwise(borders))


def _settle(node: Node, found: Any) -> None:
    """Keep the best split over all groups of columns; of equals the first."""
    split, goes_left = max(found, key=lambda one: one[0][0])
    if split[0] > 0:
        node.split, node.goes_left = split, goes_left

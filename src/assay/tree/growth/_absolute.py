"""Regression trees for absolute errors.

    impurity of a node   sum_i w_i |y_i - m| / sum_i w_i,   m a weighted median of its rows
    split                the threshold between two values of a column with the smallest sum over both children

Every threshold is tried with its exact medians: rows enter a Fenwick tree over the ranks of y in the order of the
column, so that the median and the sum of deviations after each row cost log n; one pass from each end.
"""

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from assay.scan import thread_map
from assay.tree._nodes import Nodes, binary_nodes
from assay.tree.growth._builder import allowed
from assay.tree.growth._records import Limits

_WORTH = 4_000  # rows of a node from which columns go to threads


class Split(NamedTuple):
    """A split, and the sum of absolute deviations that it leaves."""

    loss: float
    column: int
    threshold: float
    middle: float  # of the medians on both sides, where the column is monotone


def median(y: np.ndarray, w: np.ndarray) -> float:
    """Return the weighted median: half-way between the two middle values when half the weight lies on each side.

    >>> median(np.array([1.0, 2.0, 10.0, 3.0]), np.ones(4)), median(np.array([1.0, 9.0]), np.array([1.0, 3.0]))
    (2.5, 9.0)
    """
    order = np.argsort(y, kind="stable")
    below = np.cumsum(w[order])
    at = int(np.searchsorted(below, below[-1] / 2))
    low = float(y[order[at]])
    if below[at] == below[-1] / 2 and at + 1 < len(y):
        return low / 2 + float(y[order[at + 1]]) / 2
    return low


def grow_absolute(
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray | None,
    limits: Limits,
    rng: Any,
    n_jobs: int | None,
    monotone: np.ndarray | None = None,
) -> Nodes:
    """Return the tree on rows X with numbers y; `monotone` (columns,) as in `grow_exact`."""
    signs = np.zeros(X.shape[1], dtype=np.int64) if monotone is None else monotone
    return _Growth(X, y, np.ones(len(y)) if weight is None else weight, limits, rng, n_jobs, signs).nodes()


class _Growth:
    def __init__(self, X, y, w, limits: Limits, rng: Any, n_jobs: int | None, signs: np.ndarray):
        self.X, self.y, self.w, self.limits, self.rng, self.n_jobs = X, y, w, limits, rng, n_jobs
        self.signs = signs
        self.rows: list[np.ndarray] = []
        self.depth: list[int] = []
        self.value: list[float] = []
        self.loss: list[float] = []
        self.splits: dict[int, tuple[Split, int]] = {}  # node -> split and first child
        waiting: list[tuple[float, int, Split]] = []
        self.bounds: list[tuple[float, float]] = []
        self._add(np.flatnonzero(w > 0), 0, (-np.inf, np.inf), waiting)
        leaves = 1
        while waiting and (not limits.max_leaves or leaves < limits.max_leaves):
            _, at, split = heappop(waiting)
            self.splits[at] = split, len(self.value)
            left = X[self.rows[at], split.column] <= split.threshold
            for side, bounds in zip((left, ~left), self._narrowed(self.bounds[at], split)):
                self._add(self.rows[at][side], self.depth[at] + 1, bounds, waiting)
            self.rows[at] = np.empty(0, dtype=np.int64)
            leaves += 1

    def _narrowed(self, bounds: tuple[float, float], split: Split) -> tuple[tuple[float, float], ...]:
        """Return the bounds of both children."""
        sign, (low, high) = self.signs[split.column], bounds
        if not sign:
            return bounds, bounds
        children = (low, split.middle), (split.middle, high)
        return children if sign > 0 else children[::-1]

    def _add(self, rows: np.ndarray, depth: int, bounds: tuple[float, float], waiting: list) -> None:
        """Make a node of these rows; if it can be split, let its best split wait with the largest gain first."""
        middle = median(self.y[rows], self.w[rows])
        loss = float((self.w[rows] * np.abs(self.y[rows] - middle)).sum())
        at = len(self.value)
        self.rows.append(rows)
        self.depth.append(depth)
        self.value.append(min(max(middle, bounds[0]), bounds[1]))
        self.bounds.append(bounds)
        self.loss.append(loss)
        limits = self.limits
        small = len(rows) < max(limits.min_samples_split, 2 * limits.min_samples_leaf)
        if small or depth >= limits.max_depth or loss <= 0:
            return
        split = self._best(rows, middle, bounds)
        if split is not None and loss - split.loss >= limits.min_decrease - 1e-10 * loss:
            heappush(waiting, (split.loss - loss, at, split))

    def _best(self, rows: np.ndarray, middle: float, bounds: tuple[float, float]) -> Split | None:
        d, most = self.X.shape[1], self.limits.max_features
        drawn = self.rng.permutation(d) if most < d or self.limits.random else np.arange(d)
        part, y, w = self.X[rows], self.y[rows] - middle, self.w[rows]
        changing = [int(f) for f in drawn if part[:, f].min() < part[:, f].max()][:most]
        if self.limits.random:
            results = [self._drawn_split(f, part[:, f], self.y[rows], w, bounds) for f in changing]
        else:
            order = np.argsort(y, kind="stable")
            rank = np.empty(len(y), dtype=np.int64)
            rank[order] = np.arange(len(y))
            from assay.tree.growth._absolute_loops import best_threshold

            limits = (self.limits.min_samples_leaf, self.limits.min_weight_leaf)

            def search(f: int) -> Split | None:
                x = np.ascontiguousarray(part[:, f])
                by_x, ordered = np.argsort(x, kind="stable"), (self.signs[f], *bounds, self.y[rows[order]])
                loss, i, j, parting = best_threshold(x, by_x, rank, y[order], w, *limits, *ordered)
                return None if i < 0 else Split(loss, f, _between(x[i], x[j]), parting)

            results = thread_map(search, changing, n_jobs=self.n_jobs if len(rows) >= _WORTH else 1)
        usable = [split for split in results if split is not None]
        return min(usable, key=lambda split: split.loss, default=None)

    def _drawn_split(
        self, f: int, x: np.ndarray, y: np.ndarray, w: np.ndarray, bounds: tuple[float, float]
    ) -> Split | None:
        t = float(self.rng.uniform(x.min(), x.max()))
        left = x <= (t if t < x.max() else x.min())
        total, values = 0.0, []
        for side in (left, ~left):
            if side.sum() < self.limits.min_samples_leaf or w[side].sum() < self.limits.min_weight_leaf:
                return None
            values.append(median(y[side], w[side]))
            total += float((w[side] * np.abs(y[side] - values[-1])).sum())
        if self.signs[f] and not allowed(values[0], values[1], self.signs[f], *bounds):
            return None
        return Split(total, f, t if t < x.max() else float(x.min()), values[0] / 2 + values[1] / 2)

    def nodes(self) -> Nodes:
        n = len(self.value)
        column, child, threshold = np.full(n, -1), np.full(n, -1), np.zeros(n)
        for at, (split, first) in self.splits.items():
            column[at], threshold[at], child[at] = split.column, split.threshold, first
        weight = self._weights(child)
        impurity = np.array(self.loss) / weight
        return binary_nodes(column, threshold, child, np.array(self.value)[:, None], weight, impurity)

    def _weights(self, child: np.ndarray) -> np.ndarray:
        weight = np.array([self.w[rows].sum() for rows in self.rows])
        for at in np.flatnonzero(child >= 0)[::-1]:
            weight[at] = weight[child[at]] + weight[child[at] + 1]
        return weight


def _between(low: float, high: float) -> float:
    middle = low / 2 + high / 2
    return float(middle if low <= middle < high else low)

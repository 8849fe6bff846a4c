"""Regression trees for absolute errors.

    impurity of a node   sum_i w_i |y_i - m| / sum_i w_i,   m a weighted median of its rows
    split                the border between two values of a column with the smallest sum over both children

Every border is tried with its exact medians: rows enter a Fenwick tree over the ranks of y in the order of the
column, so that the median and the sum of deviations after each row cost log n; one pass from each end.
"""

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from assay.jit import compiled
from assay.scan import thread_map
from assay.tree._exact import Limits
from assay.tree._nodes import Nodes

_WORTH = 4_000  # rows of a node from which columns go to threads


class Border(NamedTuple):
    """A split, and the sum of absolute deviations that it leaves."""

    loss: float
    column: int
    threshold: float


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
    X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, limits: Limits, rng: Any, n_jobs: int | None
) -> Nodes:
    """Return the tree on rows X with numbers y."""
    return _Growth(X, y, np.ones(len(y)) if weight is None else weight, limits, rng, n_jobs).nodes()


class _Growth:
    def __init__(self, X, y, w, limits: Limits, rng: Any, n_jobs: int | None):
        self.X, self.y, self.w, self.limits, self.rng, self.n_jobs = X, y, w, limits, rng, n_jobs
        self.rows: list[np.ndarray] = []
        self.depth: list[int] = []
        self.value: list[float] = []
        self.loss: list[float] = []
        self.splits: dict[int, tuple[Border, int]] = {}  # node -> split and first child
        waiting: list[tuple[float, int, Border]] = []
        self._add(np.flatnonzero(w > 0), 0, waiting)
        leaves = 1
        while waiting and (not limits.max_leaves or leaves < limits.max_leaves):
            _, at, border = heappop(waiting)
            self.splits[at] = border, len(self.value)
            left = X[self.rows[at], border.column] <= border.threshold
            for side in (left, ~left):
                self._add(self.rows[at][side], self.depth[at] + 1, waiting)
            self.rows[at] = np.empty(0, dtype=np.int64)
            leaves += 1

    def _add(self, rows: np.ndarray, depth: int, waiting: list) -> None:
        """Make a node of these rows; if it can be split, let its best split wait with the largest gain first."""
        middle = median(self.y[rows], self.w[rows])
        loss = float((self.w[rows] * np.abs(self.y[rows] - middle)).sum())
        at = len(self.value)
        self.rows.append(rows)
        self.depth.append(depth)
        self.value.append(middle)
        self.loss.append(loss)
        limits = self.limits
        small = len(rows) < max(limits.min_samples_split, 2 * limits.min_samples_leaf)
        if small or depth >= limits.max_depth or loss <= 0:
            return
        border = self._best(rows, middle)
        if border is not None and loss - border.loss >= limits.min_decrease - 1e-10 * loss:
            heappush(waiting, (border.loss - loss, at, border))

    def _best(self, rows: np.ndarray, middle: float) -> Border | None:
        d, most = self.X.shape[1], self.limits.max_features
        drawn = self.rng.permutation(d) if most < d or self.limits.random else np.arange(d)
        part, y, w = self.X[rows], self.y[rows] - middle, self.w[rows]
        changing = [int(f) for f in drawn if part[:, f].min() < part[:, f].max()][:most]
        if self.limits.random:
            found = [self._drawn_border(f, part[:, f], y, w) for f in changing]
        else:
            order = np.argsort(y, kind="stable")
            rank = np.empty(len(y), dtype=np.int64)
            rank[order] = np.arange(len(y))
            limits = (self.limits.min_samples_leaf, self.limits.min_weight_leaf)

            def search(f: int) -> Border | None:
                x = np.ascontiguousarray(part[:, f])
                loss, i, j = best_border(x, np.argsort(x, kind="stable"), rank, y[order], w, *limits)
                return None if i < 0 else Border(loss, f, _between(x[i], x[j]))

            found = thread_map(search, changing, n_jobs=self.n_jobs if len(rows) >= _WORTH else 1)
        usable = [border for border in found if border is not None]
        return min(usable, key=lambda border: border.loss, default=None)

    def _drawn_border(self, f: int, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> Border | None:
        t = float(self.rng.uniform(x.min(), x.max()))
        left = x <= (t if t < x.max() else x.min())
        total = 0.0
        for side in (left, ~left):
            if side.sum() < self.limits.min_samples_leaf or w[side].sum() < self.limits.min_weight_leaf:
                return None
            total += float((w[side] * np.abs(y[side] - median(y[side], w[side]))).sum())
        return Border(total, f, t if t < x.max() else float(x.min()))

    def nodes(self) -> Nodes:
        n = len(self.value)
        column, child, threshold = np.full(n, -1), np.full(n, -1), np.zeros(n)
        for at, (border, first) in self.splits.items():
            column[at], threshold[at], child[at] = border.column, border.threshold, first
        weight = self._weights(child)
        return Nodes(
            root=np.zeros(1, dtype=np.int32),
            column=column.astype(np.int32),
            threshold=threshold,
            table=np.full(n, -1, dtype=np.int32),
            child=child.astype(np.int32),
            n_children=np.where(child >= 0, 2, 0).astype(np.int32),
            missing=np.where(child >= 0, 1, -1).astype(np.int32),
            value=np.array(self.value)[:, None],
            weight=weight,
            impurity=np.array(self.loss) / weight,
            tables=np.empty((0, 0), dtype=np.int32),
        )

    def _weights(self, child: np.ndarray) -> np.ndarray:
        weight = np.array([self.w[rows].sum() for rows in self.rows])
        for at in np.flatnonzero(child >= 0)[::-1]:
            weight[at] = weight[child[at]] + weight[child[at] + 1]
        return weight


def _between(low: float, high: float) -> float:
    middle = low / 2 + high / 2
    return float(middle if low <= middle < high else low)


@compiled
def best_border(x, order, rank, levels, w, least_rows, least_weight):
    """Return the smallest sum of deviations of two children, and the rows on both sides of that border (-1: none).

    x, w (m,) values and weights of the rows; order (m,) rows by ascending x; rank (m,) of each row's y;
    levels (m,) the y in ascending order.
    """
    m = x.shape[0]
    after, weights, sums = np.zeros(m), np.zeros(m + 1), np.zeros(m + 1)
    _running_losses(order, rank, levels, w, weights, sums, after, True)
    total = 0.0
    for i in range(m):
        total += w[i]
    before = np.zeros(m)
    weights[:] = 0.0
    sums[:] = 0.0
    _running_losses(order, rank, levels, w, weights, sums, before, False)
    best, a, b, heavy = np.inf, -1, -1, 0.0
    for i in range(m - 1):
        heavy += w[order[i]]
        if x[order[i]] == x[order[i + 1]] or i + 1 < least_rows or m - 1 - i < least_rows:
            continue
        if heavy < least_weight or total - heavy < least_weight:
            continue
        loss = before[i] + after[i + 1]
        if loss < best:
            best, a, b = loss, order[i], order[i + 1]
    return best, a, b


@compiled
def _running_losses(order, rank, levels, w, weights, sums, out, backwards):
    """Write out[i]: the sum of deviations from their median of the rows up to the i-th (or from it on).

    `weights` and `sums` (m + 1,) are Fenwick trees over ranks, zero on entry.
    """
    m = order.shape[0]
    top = 1
    while 2 * top <= m:
        top *= 2
    whole, whole_sum = 0.0, 0.0
    for step in range(m):
        i = m - 1 - step if backwards else step
        r = order[i]
        value = levels[rank[r]]
        whole += w[r]
        whole_sum += w[r] * value
        k = rank[r] + 1
        while k <= m:
            weights[k] += w[r]
            sums[k] += w[r] * value
            k += k & -k
        at, below, below_sum, jump = 0, 0.0, 0.0, top
        while jump > 0:
            if at + jump <= m and below + weights[at + jump] < 0.5 * whole:
                at += jump
                below += weights[at]
                below_sum += sums[at]
            jump //= 2
        middle = levels[min(at, m - 1)]
        out[i] = max(0.0, middle * below - below_sum + (whole_sum - below_sum) - middle * (whole - below))

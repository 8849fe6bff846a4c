"""Exact regression trees grown level by level on columns that were sorted once: the trees of gradient boosting.

A pass over a column in the order of its values tries all thresholds of all nodes of a level at once: the sums to the
left of each node's next threshold are kept side by side. A column of few values is summed by value instead. Nothing is
sorted again, whatever the target. Trees that are not grown by levels, from the best of all columns, come from `_exact`.
"""

from typing import Any

import numpy as np

from assay.scan import thread_map
from assay.scan.memory import thread_count
from assay.tree._nodes import Nodes, binary_nodes
from assay.tree.growth._bins import stretches
from assay.tree.growth._exact import Columns, grow_exact
from assay.tree.growth._records import Limits

_DEPTH = 12  # levels up to which a level's sums stay in the cache
_WORTH = 20_000  # entries of the table from which threads pay
_PURE = float(np.finfo(np.float64).eps)  # variance of a node that counts as none


class Presorted:
    """Columns as codes, and the rows in the order of each."""

    def __init__(self, columns: Columns, n_jobs: int | None):
        self.columns, self.orders = columns, np.empty(columns.codes.shape, dtype=np.int32)
        d, n = columns.codes.shape
        threads = min(d, thread_count(n_jobs)) if d * n >= _WORTH else 1
        self.parts, self.n_jobs = stretches(d, -(-d // threads)), n_jobs if threads > 1 else 1

        def work(f: int) -> None:
            self.orders[f] = np.argsort(columns.codes[f], kind="stable")

        thread_map(work, range(d), n_jobs=n_jobs)


def grow_levels(
    presorted: Presorted, y: np.ndarray, weight: np.ndarray | None, rows: np.ndarray, limits: Limits, seed: int
) -> Nodes:
    """Return one tree of least squares on the given rows, none of them twice."""
    columns = presorted.columns
    if limits.max_leaves or limits.max_features < len(columns.codes) or limits.max_depth > _DEPTH:
        return grow_exact(columns, y, weight, rows, np.empty(0), "squared_error", limits, seed, presorted.n_jobs)
    return _Growth(presorted, y, weight, rows, limits).tree()


class _Growth:
    """A tree that is being grown: the nodes of the levels so far, and the node of each row in the last one."""

    def __init__(self, presorted: Presorted, y: np.ndarray, weight: Any, rows: np.ndarray, limits: Limits):
        from assay.tree.growth import _level_loops as loops

        self.loops, self.presorted, self.columns, self.limits = loops, presorted, presorted.columns, limits
        self.y, self.weight = y, np.empty(0) if weight is None else weight
        self.slot = np.zeros(len(y), dtype=np.int32)
        if len(rows) < len(y):
            self.slot[:] = -1
            self.slot[rows] = 0
        self.levels: list[tuple[np.ndarray, ...]] = []  # column, threshold, child and sums of the nodes of each level
        self.count = 0

    def tree(self) -> Nodes:
        """Grow the levels one after the other."""
        sums, depth = self.loops.add_up(self.slot, self.y, self.weight, 1), 0
        total = sums[0, 0]
        while len(sums):
            sums = self._level(sums, depth, total)
            depth += 1
        column, threshold, child, sums = (np.concatenate(part) for part in zip(*self.levels))
        mass = sums[:, 0]
        mean = sums[:, 1] / mass
        impurity = np.maximum(0.0, sums[:, 3] / mass - mean**2)
        return binary_nodes(column, threshold, child, mean[:, None], mass, impurity)

    def _level(self, sums: np.ndarray, depth: int, total: float) -> np.ndarray:
        """Split the nodes of a level where that pays; return the sums of the nodes of the next."""
        n, limits = len(sums), self.limits
        column, threshold, child = np.full(n, -1), np.zeros(n), np.full(n, -1)
        variance = sums[:, 3] / sums[:, 0] - (sums[:, 1] / sums[:, 0]) ** 2
        least = max(limits.min_samples_split, 2 * limits.min_samples_leaf)
        unlike = (sums[:, 4] < sums[:, 5]) & (variance > _PURE)
        open_ = np.flatnonzero(unlike & (sums[:, 2] >= least)) if depth < limits.max_depth else np.empty(0, np.int64)
        made = 0
        if len(open_):
            self._renumber(n, open_)
            best = self._best(sums[open_])
            gain = best[:, 0] - sums[open_, 1] ** 2 / sums[open_, 0]
            taken = (best[:, 1] >= 0) & (gain + _PURE * total >= limits.min_decrease)
            split = open_[taken]
            column[split] = best[taken, 1]
            threshold[split] = self._thresholds(best[taken])
            first = np.where(taken, 2 * (np.cumsum(taken) - 1), -1)
            child[split] = self.count + n + first[taken]
            made = 2 * len(split)
            at, low = np.maximum(best[:, 1], 0).astype(np.int64), best[:, 2].astype(np.int64)
            self.loops.go_down(self.columns.codes, self.slot, at, low, first)
        self.levels.append((column, threshold, child, sums))
        self.count += n
        return self.loops.add_up(self.slot, self.y, self.weight, made) if made else np.empty((0, 6))

    def _renumber(self, n: int, open_: np.ndarray) -> None:
        """Count the nodes that may be split among themselves; their rows alone are looked at."""
        if len(open_) < n:
            place = np.full(n, -1, dtype=np.int64)
            place[open_] = np.arange(len(open_))
            self.loops.keep_open(self.slot, place)

    def _best(self, sums: np.ndarray) -> np.ndarray:
        """Return the best split of each node over all columns, of equals the first."""
        columns, limits = self.columns, self.limits
        own = np.ascontiguousarray(sums)

        def work(part: tuple[int, int]) -> np.ndarray:
            return self.loops.scan_level(
                columns.codes, columns.n_codes, self.presorted.orders, *part, self.slot, self.y, self.weight, own,
                limits.min_samples_leaf, float(limits.min_weight_leaf),
            )  # fmt: skip

        result = np.array(thread_map(work, self.presorted.parts, n_jobs=self.presorted.n_jobs))
        return result[result[:, :, 0].argmax(axis=0), np.arange(len(own))]

    def _thresholds(self, best: np.ndarray) -> np.ndarray:
        """Return numbers half-way between the values on both sides."""
        at, levels = self.columns.starts[best[:, 1].astype(np.int64)], self.columns.levels
        low, high = (levels[at + best[:, k].astype(np.int64)] for k in (2, 3))
        middle = low / 2 + high / 2
        return np.where((middle >= low) & (middle < high), middle, low)

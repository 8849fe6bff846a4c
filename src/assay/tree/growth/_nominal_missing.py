"""Growth of trees with nominal columns, missing values and the criteria of ID3 and C4.5.

    gain(D, a)  = rho * (imp(D~) - sum_v r_v imp(D~_v)),     D~ the rows whose value of a is known,
    rho         = weight of D~ / weight of D,                r_v share of D~ that takes branch v
    ratio(D, a) = gain / IV,  IV = -sum_v r_v log2 r_v,      among columns with at least the average gain
    (C4.5)

A nominal column has a branch for each level, or two: then the best subset of levels is found, exactly for two
classes and for numbers (levels ordered by their mean, Breiman et al. 1984, 9.4), by trying all subsets of up to ten
levels otherwise, one level against the rest beyond that. A row without the value goes to all branches with weight w
r_v, or to the branch that is best.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from assay.tree._nodes import Nodes

_ALL_SUBSETS = 10
_KINDS = ("squared_error", "gini", "entropy")  # by their numbers in `_thresholds`


class Method(NamedTuple):
    """How splits are judged."""

    criterion: str
    split: str  # "multiway" or "binary"
    missing: str  # "fractional" or "direction"
    levels: dict[int, int]  # levels of each nominal column
    n_classes: int  # 0 for numbers
    min_samples_leaf: int
    min_samples_split: int
    max_depth: int
    min_decrease: float


@dataclass
class Split:
    """A candidate: the branch of each known row, and how good it is."""

    column: int
    gain: float
    ratio: float
    threshold: float
    table: np.ndarray | None  # branch of each level
    n_branches: int
    shares: np.ndarray  # of the known weight, by branch
    default: int  # branch of missing values, -1 for all


class Sides(NamedTuple):
    """Two-way splits of levels: statistics of both sides (candidates, statistics), weight of the first, its levels."""

    left: np.ndarray
    right: np.ndarray
    weight: np.ndarray
    subset: Callable[[int], np.ndarray]


def impurity(totals: np.ndarray, criterion: str) -> np.ndarray:
    """Return the impurity of class weights (..., classes), or of (weight, sum, sum of squares) for numbers.

    Entropy in bits, -sum p log2 p with 0 log 0 = 0; Gini 1 - sum p^2; variance for numbers.

    >>> float(impurity(np.array([5.0, 5.0]), "entropy")), float(impurity(np.array([5.0, 5.0]), "gini"))
    (1.0, 0.5)
    """
    totals = np.asarray(totals, dtype=np.float64)
    if criterion == "squared_error":
        weight = np.maximum(totals[..., 0], 1e-300)
        return np.maximum(totals[..., 2] / weight - (totals[..., 1] / weight) ** 2, 0.0)
    p = totals / np.maximum(totals.sum(axis=-1, keepdims=True), 1e-300)
    if criterion == "gini":
        return 1.0 - (p * p).sum(axis=-1)
    return -(p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=-1)


def grow_nominal_missing(X: np.ndarray, y: np.ndarray, weight: np.ndarray, method: Method) -> Nodes:
    """Return a tree on rows X, with codes in nominal columns and NaN for missing values."""
    return _Growth(X, y, weight, method).nodes()


class _Growth:
    def __init__(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray, method: Method):
        self.X, self.method = X, method
        self.kind = "squared_error" if not method.n_classes else ("gini" if method.criterion == "gini" else "entropy")
        self.rows = (
            np.column_stack([np.ones_like(y), y, y * y]) if not method.n_classes else np.eye(method.n_classes)[y]
        )
        self.node_weights: list[float] = []
        queue: list[tuple] = [(np.flatnonzero(weight > 0), weight[weight > 0], 0, frozenset(), None)]
        self.splits: list[Any] = []  # a Split, or None in a leaf
        self.children: list[int] = []
        self.totals: list[np.ndarray] = []
        at = 0
        while at < len(queue):
            rows, w, depth, used, parent = queue[at]
            total = (self.rows[rows] * w[:, None]).sum(axis=0) if len(rows) else np.zeros(self.rows.shape[1])
            self.totals.append(total if len(rows) else self.totals[parent])
            split = self._best(rows, w, depth, used, total) if len(rows) else None
            self.splits.append(split)
            self.children.append(len(queue) if split else -1)
            if split:
                exhausted = used | {split.column} if split.table is not None and method.split == "multiway" else used
                for child_rows, child_w in self._divide(split, rows, w):
                    queue.append((child_rows, child_w, depth + 1, exhausted, at))
            self.node_weights.append(w.sum())
            at += 1

    def _best(self, rows: np.ndarray, w: np.ndarray, depth: int, used: frozenset, total: np.ndarray) -> Split | None:
        method = self.method
        here = float(impurity(total, self.kind))
        if here <= 1e-12 or depth >= method.max_depth or w.sum() < method.min_samples_split - 1e-9:
            return None
        tried = self._candidates(rows, w, used)
        if not tried:
            return None
        if method.criterion == "gain_ratio":
            mean = np.mean([split.gain for split in tried])
            tried = [split for split in tried if split.gain >= mean - 1e-12 and np.isfinite(split.ratio)]
            best = _first_largest(tried, [split.ratio for split in tried])
        else:
            best = _first_largest(tried, [split.gain for split in tried])
        if best is None or best.gain * w.sum() < method.min_decrease - 1e-12 or best.gain < -1e-12:
            return None
        return best

    def _candidates(self, rows: np.ndarray, w: np.ndarray, used: frozenset) -> list[Split]:
        """Return the best split of each column that has one."""
        part = self.X[rows]
        complete = ~np.isnan(part).any(axis=0)
        plain = [f for f in range(part.shape[1]) if f not in self.method.levels and complete[f]]
        found = dict(zip(plain, self._numeric_columns(plain, part[:, plain], self.rows[rows] * w[:, None], w)))
        for f in range(part.shape[1]):
            if f not in found and f not in used:
                found[f] = self._column(f, rows, w)
        best = [found[f] for f in sorted(found)]
        return [split for split in best if split is not None]

    def _column(self, f: int, rows: np.ndarray, w: np.ndarray) -> Split | None:
        x = self.X[rows, f]
        known = ~np.isnan(x)
        if not known.any():
            return None
        stats, x = self.rows[rows[known]] * w[known, None], x[known]
        lost = (self.rows[rows[~known]] * w[~known, None]).sum(axis=0) if not known.all() else None
        if f in self.method.levels:
            return self._nominal(f, x.astype(np.int64), stats, w, w[known], lost)
        return self._numeric(f, x, stats, w, w[known], lost)

    def _numeric_columns(
        self, columns: list[int], X: np.ndarray, stats: np.ndarray, w: np.ndarray
    ) -> list[Split | None]:
        """Return the best threshold of each of several columns without missing values."""
        return self._best_thresholds(columns, X, stats, w, w.sum(), None)

    def _numeric(self, f, x, stats, w, known_w, lost) -> Split | None:
        return self._best_thresholds([f], x[:, None], stats, known_w, w.sum(), lost)[0]

    def _best_thresholds(self, columns, X, stats, known_w, total, lost) -> list[Split | None]:
        from assay.tree.growth._thresholds import best_thresholds

        found, least = np.empty((len(columns), 5)), self.method.min_samples_leaf - 1e-9
        lost = np.empty(0) if lost is None else lost
        kind, directed = _KINDS.index(self.kind), self.method.missing == "direction"
        best_thresholds(np.ascontiguousarray(X), stats, known_w, lost, kind, directed, total, least, found)
        return [
            Split(f, gain, ratio, threshold, None, 2, np.array([share, 1 - share]), int(branch))
            if gain > -np.inf
            else None
            for f, (gain, ratio, threshold, share, branch) in zip(columns, found.tolist())
        ]

    def _nominal(self, f, codes, stats, w, known_w, lost) -> Split | None:
        levels = self.method.levels[f]
        sums, weights = np.zeros((levels, stats.shape[1])), np.bincount(codes, known_w, levels)
        np.add.at(sums, codes, stats)
        present = np.flatnonzero(weights > 0)
        if len(present) < 2:
            return None
        sides = None if self.method.split == "multiway" else self._subsets(sums, weights, present)
        parts = sums[None] if sides is None else np.stack([sides.left, sides.right], axis=1)
        heavy = weights[None] if sides is None else np.stack([sides.weight, weights.sum() - sides.weight], axis=1)
        enough = np.count_nonzero(heavy >= self.method.min_samples_leaf - 1e-9, axis=1) >= 2
        if not enough.any():
            return None
        gain, ratio, default = self._judge(parts, w.sum(), known_w.sum(), lost)
        best = int(np.where(enough, gain, -np.inf).argmax())
        table = np.arange(levels) if sides is None else np.ones(levels, dtype=np.int64)
        if sides is not None:
            table[sides.subset(best)] = 0
        judged = float(gain[best]), float(ratio[best]), 0.0
        return Split(f, *judged, table, parts.shape[1], heavy[best] / heavy[best].sum(), int(default[best]))

    def _subsets(self, sums: np.ndarray, weights: np.ndarray, present: np.ndarray) -> Sides:
        """Return the subsets of levels worth trying against the rest. Of many levels the first so many in their order,
        or single ones: no table of subsets and levels is made."""
        K, whole = self.method.n_classes, sums.sum(axis=0)
        if K in (0, 2):
            ordered = present[np.argsort(sums[present, 1] / weights[present], kind="stable")]
            left, weight = np.cumsum(sums[ordered], axis=0)[:-1], np.cumsum(weights[ordered])[:-1]
            return Sides(left, whole - left, weight, lambda i: ordered[: i + 1])
        if len(present) > _ALL_SUBSETS:
            left, weight = sums[present], weights[present]
            return Sides(left, whole - left, weight, lambda i: present[i : i + 1])
        rest = present[1:]
        chosen = [np.append(present[0], c).astype(int) for r in range(len(rest)) for c in combinations(rest, r)]
        left = np.array([sums[subset].sum(axis=0) for subset in chosen])
        weight = np.array([weights[subset].sum() for subset in chosen])
        return Sides(left, np.maximum(whole - left, 0.0), weight, lambda i: chosen[i])

    def _judge(self, parts: np.ndarray, total: float, known: float, lost: np.ndarray | None) -> tuple:
        """Return gain, gain ratio and branch of missing values of candidates (candidates, branches,
        statistics)."""
        weight = parts[..., 0] if not self.method.n_classes else parts.sum(axis=-1)
        share = weight / known
        with np.errstate(invalid="ignore", divide="ignore"):
            iv = -(share * np.log2(np.where(share > 0, share, 1.0))).sum(axis=1)
        default = np.full(len(parts), -1)
        if lost is not None and self.method.missing == "direction":
            whole = impurity(parts.sum(axis=1) + lost, self.kind)
            gains = np.stack([whole - self._mixed(parts, j, lost, total) for j in range(parts.shape[1])])
            default, gain = gains.argmax(axis=0), gains.max(axis=0)
        else:
            gain = (
                known
                / total
                * (impurity(parts.sum(axis=1), self.kind) - (share * impurity(parts, self.kind)).sum(axis=1))
            )
            if self.method.missing == "direction":
                default = weight.argmax(axis=1)
        ratio = np.where(iv > 1e-12, gain / np.where(iv > 1e-12, iv, 1.0), -np.inf)
        return gain, ratio, default

    def _mixed(self, parts: np.ndarray, j: int, lost: np.ndarray, total: float) -> np.ndarray:
        """Return the impurity after the split when missing values go to branch j."""
        filled = parts.copy()
        filled[:, j] += lost
        weight = filled[..., 0] if not self.method.n_classes else filled.sum(axis=-1)
        return (weight / total * impurity(filled, self.kind)).sum(axis=1)

    def _divide(self, split: Split, rows: np.ndarray, w: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        branch, known = branches(self.X[rows, split.column], split.threshold, split.table)
        out = []
        for v in range(split.n_branches):
            mine = known & (branch == v)
            if split.default == v:
                mine = mine | ~known
            chosen, weight = rows[mine], w[mine]
            if split.default < 0 and not known.all() and split.shares[v] > 0:
                chosen = np.append(chosen, rows[~known])
                weight = np.append(weight, w[~known] * split.shares[v])
            out.append((chosen, weight))
        return out

    def nodes(self) -> Nodes:
        """Return the arrays of the tree."""
        n = len(self.splits)
        inner = [split is not None for split in self.splits]
        totals = np.array(self.totals)
        tabled = [split.table for split in self.splits if split is not None and split.table is not None]
        width = max((len(table) for table in tabled), default=0)
        place = np.cumsum([split is not None and split.table is not None for split in self.splits]) - 1
        shares = self.method.n_classes > 0
        value = totals / totals.sum(axis=1, keepdims=True) if shares else totals[:, 1:2] / totals[:, :1]
        return Nodes(
            root=np.zeros(1, dtype=np.int32),
            column=np.array([split.column if split else -1 for split in self.splits], dtype=np.int32),
            threshold=np.array([split.threshold if split else 0.0 for split in self.splits]),
            table=np.array(
                [place[i] if inner[i] and self.splits[i].table is not None else -1 for i in range(n)],
                dtype=np.int32,
            ),
            child=np.array(self.children, dtype=np.int32),
            n_children=np.array([split.n_branches if split else 0 for split in self.splits], dtype=np.int32),
            missing=np.array([split.default if split else -1 for split in self.splits], dtype=np.int32),
            value=value,
            weight=np.array(self.node_weights),
            impurity=impurity(totals, self.kind),
            tables=np.array(
                [np.pad(t, (0, width - len(t)), constant_values=-1) for t in tabled], dtype=np.int32
            ).reshape(len(tabled), width),
        )


def _first_largest(splits: list[Split], values: list[float]) -> Split | None:
    """Return the split with the largest value; of values that differ by no more than rounding, the first."""
    top = max(values, default=0.0)
    return next((split for split, value in zip(splits, values) if value >= top - 1e-12 * abs(top)), None)


def branches(x: np.ndarray, threshold: float, table: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the branch of each value, and whether it is known."""
    known = ~np.isnan(x)
    if table is None:
        return (x > threshold).astype(np.int64), known
    inside = known & (x >= 0) & (x < len(table))
    code = np.where(inside, x, 0).astype(np.int64)
    branch = np.where(inside, table[code], -1)
    return branch, known & (branch >= 0)

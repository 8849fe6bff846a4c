"""Exact trees on numeric columns: codes for the compiled growth, subtrees on threads.

`grow_exact` (`_exact_loops`) serves complete columns and one output; `grow_general` (`_general_loops`) missing values,
several outputs and absolute errors too.

Trees on columns that are sorted once, dense or sparse; the compiled part is `_sorted_loops`.

Regression trees for absolute errors.

    impurity of a node   sum_i w_i |y_i - m| / sum_i w_i,   m a weighted median of its rows
    split                the threshold between two values of a column with the smallest sum over both children

Every threshold is tried with its exact medians: rows enter a Fenwick tree over the ranks of y in the order of the
column, so that the median and the sum of deviations after each row cost log n; one pass from each end.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from assay.scan import thread_map
from assay.tree._nodes import Nodes, binary_nodes, joined, nodes_of
from assay.tree.growth._builder import allowed
from assay.tree.growth._records import GINI, SQUARED, Limits, target_of

if TYPE_CHECKING:
    from assay.tree.growth._sorted_loops import Entries


_TOP = 16  # leaves of the top part, whose subtrees are grown on threads
_WORTH = 4_000  # rows from which that pays
WIDE = 2**27  # rows times classes from which the sums of rows are not laid out side by side
_ANY_VALUE = np.array([-np.inf, np.inf])
_NO_SIGNS = np.empty(0, dtype=np.int64)


class Columns(NamedTuple):
    """Columns as positions among their distinct values, and those values."""

    codes: np.ndarray  # (columns, rows) uint8 or int32
    n_codes: np.ndarray
    levels: np.ndarray  # distinct values (or upper edges of bins) of all columns, one column after the other
    starts: np.ndarray
    gaps: np.ndarray  # the code of rows without a value in each, which is its last; -1 if there are none


def encode(X: np.ndarray, n_jobs: int | None, max_bins: int | None = None, order: np.ndarray | None = None) -> Columns:
    """Return the codes of all columns, NaN for missing values, in this order if one is given; with `max_bins`, columns
    of more values are cut into so many quantile bins."""
    n, d = X.shape
    codes, values, gaps = np.empty((d, n), dtype=np.int32), np.empty((d, n)), np.full(d, -1)

    def column(f: int) -> np.ndarray:
        from assay.tree.growth._order import code_column

        own = np.ascontiguousarray(X[:, f if order is None else order[f]])
        lacking = np.isnan(own)
        result = values[f, : code_column(np.where(lacking, np.inf, own), codes[f], values[f])]
        if lacking.any():
            gaps[f] = len(result) - 1
        if max_bins is None:
            return result
        upper = _upper_values(result, codes[f], max_bins)
        codes[f] = np.searchsorted(upper, np.arange(len(result)))[codes[f]]
        return _edges(result, upper)

    levels = thread_map(column, range(d), n_jobs=n_jobs)
    n_codes = np.array([len(level) for level in levels])
    starts = np.append(0, np.cumsum(n_codes))[:-1]
    short = codes.astype(np.uint8) if n_codes.max() <= 256 else codes
    return Columns(short, n_codes, np.concatenate(levels), starts, gaps)


def _upper_values(values: np.ndarray, code: np.ndarray, max_bins: int) -> np.ndarray:
    """Return the position of the largest value of each bin; bins hold about equally many rows."""
    if len(values) <= max_bins:
        return np.arange(len(values))
    below = np.cumsum(np.bincount(code))
    targets = below[-1] * np.arange(1, max_bins + 1) / max_bins
    return np.unique(np.minimum(np.searchsorted(below, targets), len(values) - 1))


def _edges(values: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return a number half-way between the largest value of each bin and the smallest of the next; the
    largest value last."""
    a, b = values[upper], values[np.minimum(upper + 1, len(values) - 1)]
    middle = a / 2 + b / 2
    return np.where((middle >= a) & (middle < b), middle, a)


def grow_exact(
    columns: Columns,
    y: np.ndarray,
    weight: np.ndarray | None,
    rows: np.ndarray,
    n_classes: np.ndarray,
    criterion: str,
    limits: Limits,
    seed: int,
    n_jobs: int | None = 1,
    between: bool = True,
    monotone: np.ndarray | None = None,
) -> Nodes:
    """Return one tree on the given rows (row numbers may repeat); `n_classes` is empty for numbers.

    `monotone` (columns,) holds 1, -1 or 0 where the value (the share of class 1 of 2) must rise, fall or neither.
    """
    target, d = target_of(y, weight, n_classes, criterion), len(columns.codes)
    target = target if weight is not None else target._replace(weight=np.empty(0))
    signs = _NO_SIGNS if monotone is None else monotone

    def call(part: tuple[np.ndarray, np.ndarray], limits: Limits) -> tuple:
        from assay.tree.growth._exact_loops import grow

        return grow(columns, target, part[0], limits.record(d), np.uint64(seed), between, signs, part[1])

    def tree(grown: tuple) -> Nodes:
        nodes = nodes_of(grown[0], grown[1], criterion, classes=int(n_classes.sum()))
        if criterion == "gini":
            nodes = nodes._replace(impurity=np.maximum(0.0, 1.0 - grown[0]["purity"] / nodes.weight))
        return nodes if monotone is None else bounded(nodes, grown[3])

    def part(top: tuple, i: int) -> tuple[np.ndarray, np.ndarray]:
        node, within = top[0][i], _ANY_VALUE if monotone is None else top[3][i]
        return rows[node["start"] : node["stop"]].copy(), within

    if limits.max_leaves or limits.max_features < d or limits.random or len(rows) < _WORTH:
        return tree(call((rows, _ANY_VALUE), limits))
    return grown_in_parts(call, tree, part, (rows, _ANY_VALUE), limits, n_jobs)


def grown_in_parts(
    call: Callable[[Any, Limits], tuple],
    tree: Callable[[tuple], Nodes],
    part: Callable[[tuple, int], Any],
    whole: Any,
    limits: Limits,
    n_jobs: int | None,
) -> Nodes:
    """Return a tree whose top is grown first, its subtrees on threads, the same ones for any number of them.

    call(rows, limits) grows a tree and returns its nodes, its sums and those that could still be split; part(top, i)
    are the rows of such a node.
    """
    top = call(whole, limits._replace(max_leaves=_TOP))
    nodes = top[0]
    waiting = sorted(top[2].tolist(), key=lambda i: nodes["start"][i] - nodes["stop"][i])

    def below(i: int) -> Nodes:
        return tree(call(part(top, i), limits._replace(max_depth=limits.max_depth - int(nodes["depth"][i]))))

    subtrees = thread_map(below, waiting, n_jobs=n_jobs)
    return grafted(tree(top), dict(zip(waiting, subtrees)))


def bounded(nodes: Nodes, bounds: np.ndarray) -> Nodes:
    """Return the tree with each value (or share of class 1 of 2) within the bounds (nodes, 2) of its node."""
    inside = np.clip(nodes.value[:, -1], bounds[:, 0], bounds[:, 1])
    moved, value = inside != nodes.value[:, -1], nodes.value.copy()
    value[moved, 0] = 1 - inside[moved]
    value[moved, -1] = inside[moved]
    return nodes._replace(value=value)


def grafted(top: Nodes, subtrees: dict[Any, Nodes]) -> Nodes:
    """Return the tree in which some leaves of `top` are replaced by whole trees."""
    if not subtrees:
        return top
    whole = joined([top, *subtrees.values()])._asdict()
    start = len(top.child)
    for leaf, tree in subtrees.items():
        for name in ("column", "threshold", "child", "n_children", "missing"):
            whole[name][leaf] = whole[name][start]
        start += len(tree.child)
    return compact(Nodes(**whole))


def compact(nodes: Nodes) -> Nodes:
    """Return one tree with only the nodes that can be reached from its root, numbered level by level."""
    order, level = [np.zeros(1, dtype=np.int64)], np.zeros(1, dtype=np.int64)
    while len(level := nodes.children_of(level)):
        order.append(level)
    kept = np.concatenate(order)
    place = np.full(len(nodes.child), -1, dtype=np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    parts = {name: getattr(nodes, name)[kept] for name in Nodes._fields[1:10]}
    parts["child"] = np.where(parts["child"] >= 0, place[np.maximum(parts["child"], 0)], -1).astype(np.int32)
    return Nodes(root=np.zeros(1, dtype=np.int32), tables=nodes.tables, **parts)


def grow_general(
    columns: Columns,
    y: np.ndarray,
    weight: np.ndarray | None,
    rows: np.ndarray,
    n_classes: np.ndarray,
    criterion: str,
    limits: Limits,
    seed: int,
    monotone: np.ndarray | None = None,
) -> Nodes:
    """Return one tree on the given rows (row numbers may repeat).

    y : (rows,) or (rows, outputs) numbers of classes, or numbers
    n_classes : (outputs,) classes of each output; empty for numbers
    monotone : (columns,) as in `grow_exact`, for one output
    """
    from assay.tree.growth._general_loops import grow

    target, own = target_of(y, weight, n_classes, criterion), np.array(rows, dtype=np.int64)
    signs = _NO_SIGNS if monotone is None else monotone
    grown, sums, sides, bounds = grow(columns, target, own, limits.record(len(columns.gaps)), np.uint64(seed), signs)
    nodes = nodes_of(grown, sums, criterion, sides=sides)
    return nodes if monotone is None else bounded(nodes, bounds)


_MOST = 2**25  # entries of dense rows that are kept sorted, at 16 bytes for each tree that is being grown
_SHARE = 4  # part of the columns from which it pays that all of them are kept sorted
_FEW = 256  # values of a column that are counted rather than sorted
_LEVEL, _ROW = np.uint64(32), np.uint64(0xFFFFFFFF)  # of a key
_SORTED_WORTH = 40_000  # entries from which that pays
_EXACT = 2**26  # sums of whole numbers up to here have exact squares


class Column(NamedTuple):
    """A column of complete values, sorted."""

    keys: np.ndarray  # (entries,) uint64, ascending: place of the value among `values` times 2^32, plus the row
    values: np.ndarray  # distinct, ascending
    block: int  # place of the value of the rows that have no entry; -1 if every row has one


def sorts(data: Any, limits: Limits, criterion: str) -> bool:
    """Tell whether the columns are sorted once for a tree on complete numeric columns, without monotone ones: if
    entries are not too many and it pays, because the rows are sparse or a node tries all columns, or, of several
    outputs, many. Thresholds that are drawn need no order."""
    n, d = data.rows.n_rows, data.rows.n_features
    if limits.random or criterion == "absolute_error":
        return False
    drawn = d if data.y.ndim == 1 else d // _SHARE
    return data.sparse is not None or (limits.max_features >= drawn and n * d <= _MOST)


def sort_columns(data: Any, n_jobs: int | None, order: np.ndarray | None = None) -> list[Column]:
    """Return the sorted columns, in this order if one is given; of sparse rows, zeros have no entries."""
    from assay.tree.growth._order import sort_column
    from assay.tree.growth._sorted_loops import write_keys

    n, d = data.rows.n_rows, data.rows.n_features
    sparse = data.sparse is not None
    X = data.by_column if sparse else data.X

    def column(f: int) -> Column:
        at = f if order is None else int(order[f])
        own = slice(X.indptr[at], X.indptr[at + 1]) if sparse else slice(0, n)
        x = np.ascontiguousarray(X.data[own] if sparse else X[:, at], dtype=np.float64)
        if not len(x):
            return Column(np.empty(0, dtype=np.uint64), np.zeros(1), 0)
        places, keys, values = np.empty(len(x), np.int32), np.empty(len(x), np.uint64), np.empty(len(x))
        sort_column(x, places)
        values = values[: write_keys(places, x, keys, values)].copy()
        return _of_rows(keys, values, X.indices[own], n) if sparse else Column(keys, values, -1)

    return thread_map(column, range(d), n_jobs=n_jobs)


def _of_rows(keys: np.ndarray, values: np.ndarray, rows: np.ndarray, n: int) -> Column:
    """Return a sparse column, from entries numbered by their places in it, rows of these, and the other values."""
    level, own = keys >> _LEVEL, rows[(keys & _ROW).astype(np.intp)].astype(np.uint64)
    if len(keys) == n:
        return Column((level << _LEVEL) | own, values, -1)
    zero = int(np.searchsorted(values, 0.0))
    level += level >= zero
    return Column((level << _LEVEL) | own, np.insert(values, zero, 0.0), zero)


def _without_block(column: Column) -> Column:
    """Return the column without the entries of a value that more than half of the rows have: that of the middle."""
    if column.block >= 0:
        return column
    level = column.keys >> _LEVEL
    common = level[len(level) // 2]
    first, last = np.searchsorted(level, [common, common + np.uint64(1)])
    if 2 * (last - first) <= len(level):
        return column
    return Column(np.delete(column.keys, np.s_[first:last]), column.values, int(common))


def counted_instead(columns: list[Column], n: int, outputs: int, n_classes: int) -> Columns | None:
    """Return the codes of the columns where counting them is faster, None where scanning what is sorted is: if most
    columns have many values, rows are sparse, outputs several, or classes too many to lay out their sums."""
    few = sum(len(column.values) <= _FEW for column in columns)
    sparse = any(column.block >= 0 for column in columns)
    if sparse or outputs > 1 or 2 * few <= len(columns) or n * n_classes > WIDE:
        return None
    sizes = np.array([len(column.values) for column in columns])
    codes = np.empty((len(columns), n), dtype=np.uint8 if sizes.max() <= _FEW else np.int32)
    for own, column in zip(codes, columns):
        own[(column.keys & _ROW).astype(np.intp)] = (column.keys >> _LEVEL).astype(codes.dtype)
    starts = np.append(0, np.cumsum(sizes))[:-1]
    return Columns(
        codes, sizes, np.concatenate([column.values for column in columns]), starts, np.full(len(columns), -1)
    )


def as_entries(columns: list[Column], whole: bool) -> "Entries":
    """Return the columns as one; if sums are `whole` numbers, and so exact, without values that most rows have."""
    from assay.tree.growth._sorted_loops import Entries

    columns = [_without_block(column) for column in columns] if whole else columns
    first = np.append(0, np.cumsum([len(column.values) for column in columns])).astype(np.int64)
    block = np.array([-1 if own.block < 0 else first[f] + own.block for f, own in enumerate(columns)], dtype=np.int64)
    keys = [column.keys + (np.uint64(first[f]) << _LEVEL) for f, column in enumerate(columns)]
    column_of = np.repeat(np.arange(len(columns), dtype=np.int32), np.diff(first))
    return Entries(np.concatenate(keys), np.concatenate([own.values for own in columns]), column_of, first, block)


def grow_sorted(
    entries: "Entries",
    y: np.ndarray,
    weight: np.ndarray | None,
    n_classes: np.ndarray,
    criterion: str,
    limits: Limits,
    seed: int = 0,
    in_parts: bool = False,
    n_jobs: int | None = None,
) -> Nodes:
    """Return one tree on the rows of positive weight; `in_parts` has the subtrees of a large one grown on threads, the
    same ones for any number of them.

    y : (rows,) or (rows, outputs) numbers of classes, or numbers
    n_classes : (outputs,) classes of each output; empty for numbers
    """
    from assay.tree.growth import _sorted_loops as loops

    task = target_of(y, weight, n_classes, criterion)
    learned, d = _learned(task, loops), len(entries.block)
    keys, rows = entries.keys.copy(), np.flatnonzero(task.weight)
    if len(rows) < len(y):
        keys = keys[: loops.entries_of(entries.keys, task.weight, keys)]

    def call(part: tuple[np.ndarray, np.ndarray], limits: Limits) -> tuple:
        return loops.grow(entries, part[0], learned, task, part[1], limits.record(d), np.uint64(seed))

    def tree(grown: tuple) -> Nodes:
        return nodes_of(grown[0], grown[1], criterion)

    def part(top: tuple, i: int) -> tuple[np.ndarray, np.ndarray]:
        nodes, reach = top[0], top[3]
        return keys[reach[i, 0] : reach[i, 1]], rows[nodes["start"][i] : nodes["stop"][i]]

    if not in_parts or limits.max_leaves or limits.max_features < d or len(keys) < _SORTED_WORTH:
        return tree(call((keys, rows), limits))
    return grown_in_parts(call, tree, part, (keys, rows), limits, n_jobs)


def _learned(task: Any, loops: Any) -> Any:
    """Return what each row adds to the sums of its node."""
    outputs, width = task.y.shape[1], int(task.first[-1])
    if not task.classes:
        added = np.column_stack([task.weight, task.y * task.weight[:, None]])
        kind = loops.SQUARES if task.criterion == SQUARED else loops.OTHER
        return loops.Learned(added, np.empty((0, outputs), dtype=np.int32), task.weight, kind)
    place = (task.y + task.first[:-1]).astype(np.int32)
    kind = loops.COUNTS if is_whole(task.weight) and task.criterion == GINI else loops.OTHER
    return loops.Learned(np.empty((0, width)), place, task.weight, kind)


def is_whole(weight: np.ndarray | None) -> bool:
    """Tell whether weights are whole numbers, whose sums and their squares are exact."""
    return weight is None or (weight.sum() <= _EXACT and bool(np.all(weight == np.floor(weight))))


_ABSOLUTE_WORTH = 4_000  # rows of a node from which columns go to threads


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

            results = thread_map(search, changing, n_jobs=self.n_jobs if len(rows) >= _ABSOLUTE_WORTH else 1)
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

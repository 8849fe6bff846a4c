"""Exact trees on numeric columns: codes for the compiled growth, subtrees on threads.

`grow_exact` (`_exact_loops`) serves complete columns and one output; `grow_general` (`_general_loops`) missing values,
several outputs and absolute errors too.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from assay.scan import thread_map
from assay.tree._nodes import Nodes, joined
from assay.tree.growth._records import CRITERIA, Limits, Target, as_nodes, binary_nodes

if TYPE_CHECKING:
    from assay.tree.growth._general_loops import Task

_TOP = 16  # leaves of the top part, whose subtrees are grown on threads
_WORTH = 4_000  # rows from which that pays
WIDE = 2**27  # rows times classes from which the sums of rows are not laid out side by side
_ANY_VALUE = np.array([-np.inf, np.inf])


class Columns(NamedTuple):
    """Columns as positions among their distinct values, and those values."""

    codes: np.ndarray  # (columns, rows) uint8 or int32
    n_codes: np.ndarray
    levels: np.ndarray  # distinct values (or upper edges of bins) of all columns, one column after the other
    starts: np.ndarray

    def take(self, columns: np.ndarray) -> "Columns":
        """Return some of the columns."""
        return Columns(self.codes[columns], self.n_codes[columns], self.levels, self.starts[columns])


def encode(X: np.ndarray, n_jobs: int | None, max_bins: int | None = None, order: np.ndarray | None = None) -> Columns:
    """Return the codes of all columns, in this order if one is given; with `max_bins`, columns of more values are cut
    into so many quantile bins."""
    n, d = X.shape
    codes, values = np.empty((d, n), dtype=np.int32), np.empty((d, n))

    def column(f: int) -> np.ndarray:
        from assay.tree.growth._order import code_column

        own = np.ascontiguousarray(X[:, f if order is None else order[f]])
        found = values[f, : code_column(own, codes[f], values[f])]
        if max_bins is None:
            return found
        upper = _upper_values(found, codes[f], max_bins)
        codes[f] = np.searchsorted(upper, np.arange(len(found)))[codes[f]]
        return _edges(found, upper)

    levels = thread_map(column, range(d), n_jobs=n_jobs)
    n_codes = np.array([len(found) for found in levels])
    starts = np.append(0, np.cumsum(n_codes))[:-1]
    short = codes.astype(np.uint8) if n_codes.max() <= 256 else codes
    return Columns(short, n_codes, np.concatenate(levels), starts)


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
    n_classes: int,
    criterion: str,
    limits: Limits,
    seed: int,
    n_jobs: int | None = 1,
    between: bool = True,
    monotone: np.ndarray | None = None,
) -> Nodes:
    """Return one tree on the given rows (row numbers may repeat); `n_classes` is 0 for regression.

    `monotone` (columns,) holds 1, -1 or 0 where the value (the share of class 1 of 2) must rise, fall or neither.
    """
    target = Target(y, np.empty(0) if weight is None else weight, n_classes, CRITERIA[criterion])
    signs, d = np.empty(0, dtype=np.int64) if monotone is None else monotone, len(columns.codes)

    def call(sample: np.ndarray, bounds: Limits, within: np.ndarray) -> tuple:
        from assay.tree.growth._exact_loops import grow

        return grow(columns, target, sample, bounds.record(d), np.uint64(seed), between, signs, within)

    def tree(grown: tuple) -> Nodes:
        nodes = as_nodes(grown[0], grown[1], n_classes, criterion)
        return nodes if monotone is None else bounded(nodes, grown[2])

    if limits.max_leaves or limits.max_features < d or limits.random or len(rows) < _WORTH:
        return tree(call(rows, limits, _ANY_VALUE))
    top = call(rows, limits._replace(max_leaves=_TOP), _ANY_VALUE)
    nodes, bounds = top[0], top[2]
    again = (nodes["child"] < 0) & (nodes["gain"] > 0) & (nodes["depth"] < limits.max_depth)
    open_leaves = sorted(np.flatnonzero(again).tolist(), key=lambda i: nodes["start"][i] - nodes["stop"][i])

    def below(i: int) -> Nodes:
        deeper = limits._replace(max_depth=limits.max_depth - int(nodes["depth"][i]))
        within = _ANY_VALUE if monotone is None else bounds[i]
        return tree(call(rows[nodes["start"][i] : nodes["stop"][i]].copy(), deeper, within))

    subtrees = thread_map(below, open_leaves, n_jobs=n_jobs)
    return grafted(tree(top), dict(zip(open_leaves, subtrees)))


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


class Coded(NamedTuple):
    """Columns as codes, and the code of rows without a value in each, which is its last; -1 if there are none."""

    columns: Columns
    gaps: np.ndarray


def encode_gaps(X: np.ndarray, n_jobs: int | None, order: np.ndarray | None = None) -> Coded:
    """Return the codes of numeric columns with NaN for missing values, in this order if one is given."""
    gaps = np.isnan(X)
    columns = encode(np.where(gaps, np.inf, X) if gaps.any() else X, n_jobs, order=order)
    lacking = gaps.any(axis=0) if order is None else gaps.any(axis=0)[order]
    return Coded(columns, np.where(lacking, columns.n_codes - 1, -1))


def grow_general(
    coded: Coded,
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

    task = task_of(y, weight, n_classes, criterion)
    signs = np.empty(0, dtype=np.int64) if monotone is None else monotone
    own = np.array(rows, dtype=np.int64)
    made = grow(*coded, task, own, limits.record(len(coded.gaps)), np.uint64(seed), signs)
    grown, sums, medians, sides, bounds = made
    nodes = nodes_of(grown, sums, criterion, medians, sides)
    return nodes if monotone is None else bounded(nodes, bounds)


def task_of(y: np.ndarray, weight: np.ndarray | None, n_classes: np.ndarray, criterion: str) -> "Task":
    """Return what a tree learns, as the compiled code reads it."""
    from assay.tree.growth._general_loops import Task

    target = np.ascontiguousarray(y.reshape(len(y), -1), dtype=np.float64)
    sizes = n_classes if len(n_classes) else np.ones(target.shape[1])
    first = 1 + np.append(0, np.cumsum(sizes)).astype(np.int64)
    every = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    return Task(target, every, first, int(len(n_classes) > 0), CRITERIA[criterion])


def nodes_of(
    grown: np.ndarray, sums: np.ndarray, criterion: str, medians: Any = None, sides: np.ndarray | None = None
) -> Nodes:
    """Return a tree from the records and sums of its nodes; `medians` are their values under absolute errors."""
    weight = sums[:, 0]
    value = medians if criterion == "absolute_error" else sums[:, 1:] / sums[:, :1]
    base = {"gini": weight, **dict.fromkeys(("entropy", "log_loss", "gain"), 0.0)}.get(criterion, grown["squares"])
    impurity = np.maximum(0.0, (base - grown["purity"]) / weight)
    column, threshold, child = (grown[name].copy() for name in ("column", "threshold", "child"))
    return binary_nodes(column, threshold, child, value, weight, impurity, sides)

"""Exact trees on numeric columns: codes for the compiled growth, subtrees on threads.

`grow_exact` (`_exact_loops`) serves complete columns and one output; `grow_general` (`_general_loops`) missing values,
several outputs and absolute errors too.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from assay.scan import thread_map
from assay.tree._nodes import Nodes, joined, nodes_of
from assay.tree.growth._records import Limits, target_of

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

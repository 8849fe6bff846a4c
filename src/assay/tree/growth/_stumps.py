"""The best decision stump under weights: columns sorted once, then one compiled scan per column and round."""

from typing import NamedTuple

import numpy as np

from assay.scan import thread_map
from assay.tree._nodes import Nodes, binary_nodes

_COLUMNS = 4  # columns that a thread scans at a time


class Sorted(NamedTuple):
    """Columns sorted once: rows by ascending value, and where the value changes."""

    order: np.ndarray  # (columns, rows) int32
    last: np.ndarray  # (columns, rows) uint8


def sort_columns(X: np.ndarray, n_jobs: int | None) -> Sorted:
    n, d = X.shape
    order, last = np.empty((d, n), dtype=np.int32), np.zeros((d, n), dtype=np.uint8)

    def work(f: int) -> None:
        from assay.tree.growth._order import sort_column

        column = np.ascontiguousarray(X[:, f])
        sort_column(column, order[f])
        ordered = column[order[f]]
        last[f, :-1] = ordered[1:] > ordered[:-1]

    thread_map(work, range(d), n_jobs=n_jobs)
    return Sorted(order, last)


class Stump(NamedTuple):
    """A stump, and the rows to the left of its threshold (none if it has no threshold)."""

    nodes: Nodes
    left: np.ndarray


def best_stump(
    X: np.ndarray,
    columns: Sorted,
    y: np.ndarray,
    weight: np.ndarray,
    K: int,
    criterion: str,
    n_jobs: int | None,
) -> Stump:
    """Return the stump with the largest decrease of Gini impurity, or the smallest weighted error; of equals
    the first."""
    from assay.tree.growth import _stump_loops as loops

    code = loops.GINI if criterion == "gini" else loops.ERROR
    total, signed = np.empty(K), np.empty(len(y))
    if K == 2:
        loops.sign_weights(y, weight, signed, total)
    else:
        total[:] = np.bincount(y, weight, K)

    none = np.array((-1.0, 1.0, -1, 0.0, 0.0), dtype=loops.STUMP)

    def work(begin: int) -> np.ndarray:
        result = np.repeat(none, min(_COLUMNS, X.shape[1] - begin))
        for f, best in enumerate(result, begin):
            if K == 2:
                loops.scan_two_classes(columns.order[f], columns.last[f], signed, total, code, best)
            else:
                loops.scan_column(columns.order[f], columns.last[f], y, weight, total, code, best)
        return result

    results = np.concatenate(thread_map(work, range(0, X.shape[1], _COLUMNS), n_jobs=n_jobs))
    f = int((results["purity"] / results["scale"]).argmax())
    position = int(results["position"][f])
    if position < 0:
        return Stump(stump_nodes(-1, 0.0, total[None]), np.empty(0, dtype=np.int32))
    a, b = X[columns.order[f, position], f], X[columns.order[f, position + 1], f]
    middle = a / 2 + b / 2
    left = columns.order[f, : position + 1]
    below = (
        np.array([results["negative"][f], results["positive"][f]]) if K == 2 else np.bincount(y[left], weight[left], K)
    )
    sums = np.stack([total, below, np.maximum(total - below, 0.0)])
    return Stump(stump_nodes(f, middle if a <= middle < b else a, sums), left)


def stump_nodes(column: int, threshold: float, sums: np.ndarray) -> Nodes:
    """Return a stump from the weights of the classes in its root and, if it has a threshold, to both sides of it."""
    n = len(sums)
    inner = np.arange(n) == 0 if n > 1 else np.zeros(n, dtype=bool)
    weight = sums.sum(axis=1)
    splits = np.where(inner, column, -1), np.where(inner, threshold, 0.0), np.where(inner, 1, -1)
    return binary_nodes(*splits, sums / np.maximum(weight, 1e-300)[:, None], weight, np.zeros(n))

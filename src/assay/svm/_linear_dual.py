"""Dual coordinate descent for linear support vector machines, for many columns or sparse rows.

Sweeps over the rows in random order move one dual variable at a time to its best value and keep u = sum theta_i
(x_i, s), so that the gap is a sum of brackets (Hsieh et al. 2008). Rows that are held at an end of their range are
left out until the others have settled. The brackets met during a sweep estimate the gap for nothing; when their sum is
small enough a pass over all rows settles it.
"""

from typing import Any

import numpy as np

from assay.scan import thread_map
from assay.scan.memory import MemoryRows
from assay.svm._linear_problem import Losses, Optimum, Watch

_PART = 4096  # rows in one task of a pass for the gap


def by_coordinates(
    rows: MemoryRows, losses: Losses, target: float, max_iter: int, random: Any, watch: Watch
) -> Optimum:
    """Maximise the dual, at most `max_iter` sweeps, until the gap is at most `target`."""
    from assay.linear_model._row_loops import shuffle
    from assay.svm._linear_loops import row_squares, sweep

    table = packed(rows.X)
    squares = row_squares(table[0], table[2]) + losses.column**2
    kind = (losses.epsilon, losses.labels, losses.linear, losses.column)
    theta, u = np.zeros(rows.n_rows), np.zeros(rows.n_features + 1)
    if not np.isfinite(squares).all():
        return Optimum(u, theta, np.inf, np.inf, 0, "overflow")
    order = np.flatnonzero(losses.c > 0)
    active, far, n_iter, status = len(order), np.inf, 0, "max_iter"
    objective, gap = losses.at_zero, losses.at_zero
    try:
        while n_iter < max_iter and status == "max_iter":
            shuffle(order[:active], int(random.randint(1, 2**62)))
            active, worst, met = sweep(*table, losses.t, losses.c, squares, *kind, order, active, far, theta, u)
            n_iter += 1
            far = worst if worst > 0 else np.inf
            if met <= target or n_iter == max_iter or watch.log.watched:
                objective, gap = measured(rows, table, losses, theta, u)
                status = "converged" if gap <= target else status
                if met <= target:
                    active, far = len(order), np.inf
            if watch.step(objective, gap if met <= target else met, u):
                status = "stopped"
    except KeyboardInterrupt:
        objective, gap = measured(rows, table, losses, theta, u)
        status = "interrupted"
    return Optimum(u, theta, objective, gap, n_iter, status)


def packed(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return starts, columns (none if every entry is stored) and values of the rows, without a copy.

    Column numbers are read as unsigned: an index that cannot be negative is one comparison cheaper.
    """
    if hasattr(X, "indptr"):
        return X.indptr, X.indices.view(f"u{X.indices.itemsize}"), X.data
    return np.arange(len(X) + 1) * X.shape[1], np.empty(0, np.uint32), np.ascontiguousarray(X).reshape(-1)


def measured(rows: MemoryRows, table: tuple, losses: Losses, theta: np.ndarray, u: np.ndarray) -> tuple[float, float]:
    """Return P(u) and the gap at theta, where u = sum theta_i (x_i, s)."""
    from assay.svm._linear_loops import measure

    kind = (losses.epsilon, losses.labels, losses.linear, losses.column)

    def part(first: int) -> tuple[float, float]:
        last = min(first + _PART, rows.n_rows)
        return measure(*table, losses.t, losses.c, *kind, theta, u, first, last)

    loss, brackets = np.sum(thread_map(part, range(0, rows.n_rows, _PART), n_jobs=rows.n_jobs), axis=0)
    return 0.5 * float(u @ u) + float(loss), float(brackets)

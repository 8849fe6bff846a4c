"""Sparse coefficients: the squared hinge loss with the penalty |u|_1, by coordinate descent over the columns.

    minimise over u = (w, b / s)    P(u) = |u|_1 + sum_i c_i max(0, 1 - t_i f_i)^2

Each column moves to the optimum of a quadratic model of the losses plus |u_j| (Fan et al. 2008), and half-way back
while the objective has not fallen. Columns at zero, whose slope is well inside [-1, 1], are left out until the others
have settled. Columns that are nearly multiples of each other make it slow. The dual variables are the slopes of the
losses, shortened until |v_j| <= 1; then

    P(u) - min P  <=  |u|_1 - <u, v> + sum of brackets.
"""

from typing import Any

import numpy as np

from assay.scan.memory import MemoryRows
from assay.svm._linear_problem import Losses, Optimum, Watch

_FIRST = 0.1  # slope beyond [-1, 1], at most, when the gap is first looked at
_TIGHTER = 0.1


def by_columns(rows: MemoryRows, losses: Losses, target: float, max_iter: int, random: Any, watch: Watch) -> Optimum:
    """Minimise over the columns in random order, at most `max_iter` sweeps, until the gap is at most `target`."""
    from assay.linear_model._row_loops import shuffle
    from assay.svm._linear_loops import sweep_columns

    table = _by_column(rows.X)
    u, slack = np.zeros(rows.n_features + 1), np.ones(rows.n_rows)
    order = np.arange(rows.n_features + (losses.column > 0))
    active, far, look, n_iter, status = len(order), np.inf, _FIRST, 0, "max_iter"
    theta, objective, gap = np.zeros(rows.n_rows), losses.at_zero, losses.at_zero
    try:
        while n_iter < max_iter and status == "max_iter":
            shuffle(order[:active], int(random.randint(1, 2**62)))
            active, worst = sweep_columns(*table, losses.t, losses.c, losses.column, order, active, far, slack, u)
            n_iter, far = n_iter + 1, worst
            objective = float(np.abs(u).sum()) + losses.total(losses.t * slack, losses.t, losses.c)
            if worst <= look or n_iter == max_iter or watch.log.watched:
                slack = 1 - losses.t * _scores(rows, losses, u)  # afresh, so that rounding does not pile up
                theta, objective, gap = _measured(rows, losses, u, slack)
                status = "converged" if gap <= target else status
            if worst <= look:
                look, active, far = _TIGHTER * worst, len(order), np.inf
            if not np.isfinite(objective):
                status = "overflow"
            elif watch.step(objective, gap, u):
                status = "stopped"
    except KeyboardInterrupt:
        theta, objective, gap = _measured(rows, losses, u, 1 - losses.t * _scores(rows, losses, u))
        status = "interrupted"
    return Optimum(u, theta, objective, gap, n_iter, status)


def _by_column(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return starts, rows (none if every entry is stored) and values of the columns."""
    if hasattr(X, "indptr"):
        columns = X.tocsc()
        return columns.indptr, columns.indices.view(f"u{columns.indices.itemsize}"), columns.data
    n, d = X.shape
    return np.arange(d + 1) * n, np.empty(0, np.uint32), np.ascontiguousarray(X.T).reshape(-1)


def _scores(rows: MemoryRows, losses: Losses, u: np.ndarray) -> np.ndarray:
    return rows.X @ u[:-1] + losses.column * u[-1]


def _measured(rows: MemoryRows, losses: Losses, u: np.ndarray, slack: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return feasible dual variables, P(u) and the gap there."""
    beyond = np.maximum(slack, 0.0)
    theta = 2 * losses.c * losses.t * beyond
    v = np.append(rows.X.T @ theta, losses.column * theta.sum())
    shorten = 1 / max(1.0, float(np.abs(v).max()))
    size, theta = float(np.abs(u).sum()), shorten * theta
    gap = size - shorten * float(u @ v) + float(losses.brackets(losses.t * slack, theta).sum())
    return theta, size + float(losses.c @ beyond**2), gap

"""All classes of a linear support vector machine in one problem (Crammer and Singer 2001).

    minimise over u_1 .. u_K    P(U) = 1/2 sum_k |u_k|^2 + sum_i c_i max over k of (e_ik + <u_k - u_{y_i}, (x_i, s)>)

e_ik is 0 for the class of the row and 1 for the others. For any theta with sum_k theta_ik = 0 and theta_ik <= c_i for
the class of the row, <= 0 for the others, the u_k = sum_i theta_ik (x_i, s) have

    P(U) - min P  <=  P(U) + 1/2 sum_k |u_k|^2 + sum_ik e_ik theta_ik

Method: sweeps over the rows in random order, each of which sets the theta of a row to their best values, by sorting
(Keerthi et al. 2008).
"""

from typing import Any

import numpy as np

from assay.fitlog import FitLog
from assay.linear_model._packed_rows import packed
from assay.scan.memory import MemoryRows
from assay.svm._linear_problem import Optimum

_LOOKS = 8  # sweeps between looks at the gap, at most


def by_rows(
    rows: MemoryRows,
    codes: np.ndarray,
    cost: np.ndarray,
    column: float,
    target: float,
    max_iter: int,
    random: Any,
    log: FitLog,
) -> Optimum:
    """Return tables U (classes, columns + 1) and theta (classes, rows) once the gap is at most `target` times P(0)."""
    from assay.linear_model._row_loops import shuffle
    from assay.svm._crammer_singer_loop import gap_of, row_squares, sweep

    table, n_classes = packed(rows.X), int(codes.max()) + 1
    W, theta = np.zeros((n_classes, rows.n_features + 1)), np.zeros((rows.n_rows, n_classes))
    squares = row_squares(*table, rows.n_rows) + column**2
    at_zero = float(cost.sum())
    objective, gap, status, n_iter = at_zero, at_zero, "max_iter", 0
    if not np.isfinite(squares).all() or not np.isfinite(at_zero):
        return Optimum(W, theta.T, objective, gap, 0, "overflow")
    order = np.flatnonzero(cost > 0)
    codes = codes.astype(np.int64)
    try:
        while n_iter < max_iter and status == "max_iter":
            shuffle(order, int(random.randint(1, 2**62)))
            sweep(*table, codes, cost, column, squares, order, theta, W)
            n_iter += 1
            if n_iter % _LOOKS == 0 or n_iter & (n_iter - 1) == 0 or n_iter == max_iter or log.watched:
                objective, gap = gap_of(*table, codes, cost, column, theta, W)
                status = "converged" if gap <= target * at_zero else status
            fitted = {"coef_": W[:, :-1].copy(), "intercept_": column * W[:, -1]} if log.watched else {}
            if log.step(objective, gap, **fitted):
                status = "stopped"
    except KeyboardInterrupt:
        objective, gap = gap_of(*table, codes, cost, column, theta, W)
        status = "interrupted"
    return Optimum(W, theta.T, objective, gap, n_iter, status)

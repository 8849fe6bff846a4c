"""Logistic regression of sparse rows by stochastic average gradients (Schmidt, Le Roux and Bach 2017), as
scikit-learn's solver "sag" does it: the intercept moves at a hundredth of the rate.

    minimise over w, b    1/n sum_i s_i c(y_i) ln(1 + exp(-y_i (<w, x_i> + b))) + 1/(2 C n) |w|^2

Each update draws a row and moves along the mean of the gradients that the rows had when they were last drawn. The slow
intercept is far from its best value for many epochs; the certificate says how far the objective is from its minimum.
"""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from assay.base import streams
from assay.linear_model._logistic_problem import Problem
from assay.linear_model._packed_rows import packed
from assay.linear_model._sgd_descent import SPARSE_INTERCEPT
from assay.optim.newton import Found

_MOST = 2**31 - 1  # of seeds


def refuse_zero_rows(model: Any, X: Any) -> None:
    """Refuse, as scikit-learn does, rows without any entry: the first step would set the coefficients to zero for
    good."""
    if model.solver != "sag" or model.fit_intercept or streams(X, None):
        return
    if not (X.data if issparse(X) else np.asarray(X)).any():
        raise ZeroDivisionError(
            f"{type(model).__name__}: every entry of X is zero and there is no intercept, so nothing can be learnt. "
            "Current sag implementation does not handle the case step_size * alpha_scaled == 1"
        )


def average_gradients(problem: Problem, model: Any, begin: np.ndarray | None, told: Any) -> Found:
    """Descend from `begin`, or from zero, until no coefficient changes in an epoch by more than tol of the largest."""
    from assay.linear_model._sag_loop import Steps, average_gradient_epoch
    from assay.linear_model._sgd_loop import row_squares

    rows: Any = problem.rows
    n, table = rows.n_rows, packed(rows.X)
    codes = np.asarray(rows.y)
    costs = problem.class_weight[codes] * (1.0 if rows.weight is None else rows.weight)
    alpha = 1.0 / (problem.C * n)
    steep = 0.25 * (float(row_squares(table.starts, table.values).max()) + 1.0) + alpha
    steps = Steps(1.0 / steep, alpha, SPARSE_INTERCEPT)
    start = np.zeros(rows.n_features + 1) if begin is None else np.array(begin, dtype=np.float64)
    w, total, memory = start[:-1].copy(), np.zeros(rows.n_features), np.full(n, np.nan)
    state, status, epochs = np.array([start[-1], 0.0, 0.0]), "max_iter", 0
    drawn = np.uint32(check_random_state(model.random_state).randint(1, _MOST))
    signs = np.where(codes == 1, 1.0, -1.0)
    try:
        while epochs < model.max_iter:
            epochs += 1
            before = w.copy()
            drawn = np.uint32(
                average_gradient_epoch(*table, signs, costs.astype(np.float64), steps, w, total, memory, state, drawn)
            )
            x = np.append(w, state[0])
            stopped = told(x, *problem.value_gradient(x))
            if stopped or np.abs(w - before).max() <= model.tol * np.abs(w).max():
                status = "stopped" if stopped else "converged"
                break
    except KeyboardInterrupt:
        status = "interrupted"
    x = np.append(w, state[0])
    value, gradient = problem.value_gradient(x)
    if not np.isfinite(value):
        return Found(x, value, gradient, np.inf, epochs, "overflow")
    return Found(x, value, gradient, 0.5 * float(gradient @ gradient), epochs, status)

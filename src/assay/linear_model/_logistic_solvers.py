"""Logistic regression with an L1 penalty, alone or beside an L2 penalty, by proximal Newton steps.

    minimise   F(W, b) = sum_i C_i loss_i(W x_i + b) + l1 |W|_1 + l2/2 |W|^2

Each step replaces the losses by their second-order model at the current point; for several classes with many
coefficients by that of one class after the other. Its intercept has a closed form, which leaves a quadratic function of
the coefficients whose minimum with the penalties coordinate descent finds. The step is shortened until F falls enough.
Beyond `_WIDE` columns no Hessian is formed: accelerated proximal gradient steps with restarts. Lee, Sun and Saunders
2014; Friedman, Hastie and Tibshirani 2010; O'Donoghue and Candes 2015.

Logistic regression of sparse rows by stochastic average gradients (Schmidt, Le Roux and Bach 2017), as
scikit-learn's solver "sag" does it: the intercept moves at a hundredth of the rate.

    minimise over w, b    1/n sum_i s_i c(y_i) ln(1 + exp(-y_i (<w, x_i> + b))) + 1/(2 C n) |w|^2

Each update draws a row and moves along the mean of the gradients that the rows had when they were last drawn. The slow
intercept is far from its best value for many epochs; the certificate says how far the objective is from its minimum.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from assay import scan
from assay.base import streams
from assay.data.blocks import Block
from assay.linear_model import _logistic_problem
from assay.linear_model._base import packed
from assay.linear_model._logistic_problem import Problem
from assay.linear_model._sgd_base import SPARSE_INTERCEPT
from assay.optim.newton import Found
from assay.scan.memory import MemoryRows

_WIDE = 1_500
_SWEEPS = 50  # of coordinate descent inside a step
_JOINT_SWEEPS = 1_000  # the same for several classes at once, whose columns depend on each other
_ARMIJO = 1e-4
_HALVINGS = 30
_NOISE = 1e-14  # relative rounding of the objective
_CHECKS = 25  # proximal gradient steps between looks at the stopping rule
_LP_ROWS = 50_000  # rows up to which a linear programme decides whether an unpenalised optimum exists
_MOST = 2**31 - 1  # of seeds


class Penalties(NamedTuple):
    """Weights of |W|_1 and of 1/2 |W|^2."""

    l1: float
    l2: float


class Composite(NamedTuple):
    """The losses, as a problem without penalty, and the penalties."""

    problem: Problem
    penalties: Penalties

    def smooth(self, table: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the losses and the L2 penalties, and their gradient, at a table (outputs, d + 1), intercepts
        last."""
        problem, l2 = self.problem, self.penalties.l2
        statistic = _logistic_problem.binary if problem.n_classes == 2 else _logistic_problem.multinomial
        value, slope, gradient_b = problem.rows.sum(statistic, table[:, :-1], table[:, -1], problem.cost)
        weights = np.append(np.full(table.shape[1] - 1, l2), 0.0)
        gradient = np.column_stack([slope, gradient_b]) + weights * table
        if not problem.intercept:
            gradient[:, -1] = 0.0
        return float(value) + 0.5 * float(np.sum(weights * table**2)), gradient

    def value(self, table: np.ndarray) -> float:
        return self.smooth(table)[0] + self.lasso(table)

    def lasso(self, table: np.ndarray) -> float:
        return self.penalties.l1 * float(np.abs(table[:, :-1]).sum())

    def violation(self, table: np.ndarray, gradient: np.ndarray) -> float:
        """Return how far the optimality conditions are from holding: the largest least subgradient."""
        w, g, l1 = table[:, :-1], gradient[:, :-1], self.penalties.l1
        inside = np.maximum(np.abs(g) - l1, 0.0)
        least = np.where(w != 0, np.abs(g + l1 * np.sign(w)), inside)
        return float(max(least.max(initial=0.0), np.abs(gradient[:, -1]).max()))


def minimise_composite(
    problem: Problem, penalties: Penalties, tol: float, max_iter: int, start: Any, callback: Any
) -> Found:
    """Minimise F from `start` (a table, or None for zero) until the violation is at most tol / 100 times that at
    zero."""
    composite = Composite(problem, penalties)
    zero = np.zeros((problem.n_outputs, problem.rows.n_features + 1))
    value, gradient = composite.smooth(zero)
    if not np.isfinite(value + np.sum(gradient)):
        return Found(zero.ravel(), value, gradient.ravel(), np.inf, 0, "overflow")
    target = 0.01 * tol * max(float(np.abs(gradient).max()), 1e-300)
    run = _proximal_newton if problem.rows.n_features <= _WIDE else _accelerated
    return run(composite, zero if start is None else start, target, max_iter, callback)


def minimise_with_column(problem: Problem, penalties: Penalties, tol: float, max_iter: int, callback: Any) -> Found:
    """Minimise F where the intercept is a penalised coefficient, that of a constant column beside the others."""
    rows, s = problem.rows, problem.column
    if not isinstance(rows, MemoryRows):
        raise ValueError("a penalised intercept with an L1 penalty needs rows in memory: arrays or a frame.")
    ones = np.full((rows.n_rows, 1), s)
    X = sp.hstack([rows.X, ones], format="csr") if sp.issparse(rows.X) else np.hstack([rows.X, ones])
    wider = problem._replace(rows=scan.rows(X, rows.y, rows.weight, n_jobs=rows.n_jobs), intercept=False, column=0.0)

    def narrowed(table: np.ndarray, value: float, gradient: np.ndarray) -> bool:
        return bool(callback(np.column_stack([table[:, :-2], s * table[:, -2]]), value, gradient))

    solution = minimise_composite(wider, penalties, tol, max_iter, None, narrowed)
    table = solution.x.reshape(problem.n_outputs, -1)
    return solution._replace(x=problem.pack(table[:, :-2], s * table[:, -2]))


def _proximal_newton(composite: Composite, table: np.ndarray, target: float, max_iter: int, callback: Any) -> Found:
    n_outputs, status = len(table), "max_iter"
    smooth, gradient = composite.smooth(table)
    value, steps = smooth + composite.lasso(table), 0
    joint = n_outputs > 1 and not composite.problem.by_products
    for steps in range(max_iter + 1):
        violation = composite.violation(table, gradient)
        if violation <= target:
            status = "converged"
            break
        if steps == max_iter:
            break
        before = value
        for k in range(1 if joint else n_outputs):
            step = _joint_step(composite, table, gradient) if joint else _class_step(composite, table, gradient, k)
            moved = _line_search(composite, table, value, gradient, step)
            table, value, gradient = (table, value, gradient) if moved is None else moved
        if callback(table, value, gradient):
            status = "stopped"
            break
        if before - value <= _NOISE * abs(before):
            violation = composite.violation(table, gradient)
            status = "converged" if violation <= 1e3 * target + 1e-9 else "stalled"
            break
    return Found(table.ravel(), value, gradient.ravel(), composite.violation(table, gradient), steps, status)


def _joint_step(composite: Composite, table: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return where the model of all outputs, about the table, has its minimum with the penalties, less the table."""
    from assay.linear_model._row_loops import descend

    problem, (l1, l2) = composite.problem, composite.penalties
    K, d = len(table), table.shape[1] - 1
    H = problem.rows.sum(_logistic_problem.multinomial_hessian, table[:, :-1], table[:, -1], problem.cost)
    H[np.diag_indices(len(H))] += 1e-12 * np.trace(H) / len(H)
    H = H.reshape(K, d + 1, K, d + 1)
    inner, across = H[:, :d, :, :d].reshape(K * d, -1), H[:, :d, :, d].reshape(K * d, K)
    inner[np.diag_indices(K * d)] += l2
    pull = gradient[:, :-1].ravel()
    if problem.intercept:
        back = np.linalg.solve(H[:, d, :, d], np.column_stack([across.T, gradient[:, -1]]))
        inner, pull = inner - across @ back[:, :-1], pull - across @ back[:, -1]
    w = table[:, :-1].ravel()
    G, c, new = np.ascontiguousarray(inner), inner @ w - pull, w.copy()
    descend(G, c, c - G @ new, new, float(c @ c), l1, 0.0, False, 1e-12, _JOINT_SWEEPS)
    step = np.zeros_like(table)
    step[:, :-1] = (new - w).reshape(K, d)
    if problem.intercept:
        step[:, -1] = -(back[:, -1] + back[:, :-1] @ (new - w))
    return step


def _class_step(composite: Composite, table: np.ndarray, gradient: np.ndarray, k: int) -> np.ndarray:
    """Return where the model of one output, about the table, has its minimum with the penalties, less the table."""
    from assay.linear_model._row_loops import descend

    problem, (l1, l2) = composite.problem, composite.penalties
    H = problem.rows.sum(_class_hessian, table[:, :-1], table[:, -1], problem.cost, k)
    d = H.shape[0] - 1
    H[np.arange(d), np.arange(d)] += l2 + 1e-12 * np.trace(H) / (d + 1)
    w, g = table[k, :-1], gradient[k, :-1]
    across = H[:d, d] / H[d, d] if problem.intercept else np.zeros(d)
    G = np.ascontiguousarray(H[:d, :d] - np.outer(across, H[d, :d]))
    c = G @ w - (g - across * gradient[k, -1])
    new = w.copy()
    descend(G, c, c - G @ new, new, float(c @ c), l1, 0.0, False, 0.0, _SWEEPS)
    step = np.zeros_like(table)
    step[k, :d] = new - w
    step[k, d] = -(gradient[k, -1] / H[d, d] + across @ step[k, :d]) if problem.intercept else 0.0
    return step


def _class_hessian(block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray, k: int) -> np.ndarray:
    """Return sum_i c_i p_ik (1 - p_ik) a_i a_i^T, a = (x, 1), of one output."""
    if len(coef) == 1:
        return _logistic_problem.binary_hessian(block, coef, intercept, cost)
    p = _logistic_problem.probabilities(block, coef, intercept)[0][:, k]
    a = np.column_stack([block.X, np.ones(len(p))])
    return a.T @ (a * (_logistic_problem.costs(block, cost) * p * (1 - p))[:, None])


def _line_search(
    composite: Composite, table: np.ndarray, value: float, gradient: np.ndarray, step: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Return the first of x + step, x + step / 2, ... that lowers F enough, with F and the gradient there."""
    penalty = composite.lasso(table + step) - composite.lasso(table)
    fall, length = float(np.sum(gradient * step)) + penalty, 1.0
    if not fall < 0:
        return None
    for _ in range(_HALVINGS):
        there = table + length * step
        smooth, slope = composite.smooth(there)
        new = smooth + composite.lasso(there)
        if new <= value + _ARMIJO * length * fall or (length == 1.0 and abs(new - value) <= _NOISE * abs(value)):
            return there, new, slope
        length *= 0.5
    return None


def _accelerated(composite: Composite, table: np.ndarray, target: float, max_iter: int, callback: Any) -> Found:
    """Proximal gradient steps with momentum, which is dropped whenever it points uphill."""
    step, ahead, momentum, steps, status = 1.0, table, 1.0, 0, "max_iter"
    smooth, gradient = composite.smooth(table)
    for steps in range(1, _CHECKS * max_iter + 1):
        value, slope = composite.smooth(ahead)
        new, step = _shortened(composite, ahead, value, slope, 1.5 * step)
        if np.sum((ahead - new) * (new - table)) > 0:
            momentum = 1.0
        grown = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        ahead, table, momentum = new + (momentum - 1) / grown * (new - table), new, grown
        if steps % _CHECKS == 0:
            smooth, gradient = composite.smooth(table)
            if composite.violation(table, gradient) <= target:
                status = "converged"
                break
            if callback(table, smooth + composite.lasso(table), gradient):
                status = "stopped"
                break
    smooth, gradient = composite.smooth(table)
    value = smooth + composite.lasso(table)
    return Found(table.ravel(), value, gradient.ravel(), composite.violation(table, gradient), steps // _CHECKS, status)


def _shortened(
    composite: Composite, table: np.ndarray, value: float, gradient: np.ndarray, step: float
) -> tuple[np.ndarray, float]:
    """Return the proximal gradient step whose quadratic model lies above the losses, and its length."""
    for _ in range(60):
        new = table - step * gradient
        w = new[:, :-1]
        new[:, :-1] = np.sign(w) * np.maximum(np.abs(w) - step * composite.penalties.l1, 0.0)
        move = new - table
        bound = value + float(np.sum(gradient * move)) + float(np.sum(move**2)) / (2 * step)
        if composite.smooth(new)[0] <= bound + _NOISE * abs(value):
            return new, step
        step *= 0.5
    return new, step


def quasi_separated(problem: Problem, x: np.ndarray) -> bool:
    """Decide by a linear programme whether some hyperplane has every row on its right side or on it, not all
    on it."""
    if problem.n_classes != 2 or problem.rows.n_rows > _LP_ROWS:
        return False
    coef, intercept = problem.unpack(x)
    if max(problem.rows.map(_logistic_problem.largest_score, coef, intercept)) < 15.0:
        return False
    from assay.optim.constrained import weak_separator

    parts = list(problem.rows.blocks())
    signed = np.vstack(
        [np.column_stack([part.X, np.ones(len(part.X))]) * (2.0 * part.y - 1.0)[:, None] for part in parts]
    )
    if problem.rows.has_weight:
        signed = signed[np.concatenate([part.weight for part in parts]) > 0]
    return weak_separator(signed if problem.intercept else signed[:, :-1]) is not None


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


def average_gradients(problem: Problem, model: Any, begin: np.ndarray | None, callback: Any) -> Found:
    """Descend from `begin`, or from zero, until no coefficient changes in an epoch by more than tol of the largest."""
    from assay.linear_model._sgd_loops import Steps, average_gradient_epoch, row_squares

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
            stopped = callback(x, *problem.value_gradient(x))
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

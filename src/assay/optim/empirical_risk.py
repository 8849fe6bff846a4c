"""Regularised empirical risk: any penalty, any loss, one solver.

    minimise over w, b   Omega(w) + C sum_i loss(y_i, f_i),    f = X w + b

Method: alternating directions (ADMM) on the copies f and u = w. Each of Omega and loss is asked only for its proximal
        operator, prox(v, t) = argmin_u t g(u) + 1/2 (u - v)^2; what is left is one least-squares problem whose matrix
        is factorised once. Boyd et al. 2011, 3.3 and 3.4.1. For a kernel, pass its embedding of the rows as X: then
        |w| is the norm of the kernel's space.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from assay.losses import Loss

_RELAXATION = 1.6
_BALANCE = 10.0  # ratio of the two residuals beyond which the step is changed


class Penalty(NamedTuple):
    """value(w), and prox(v, t) = argmin_w t value(w) + 1/2 |w - v|^2."""

    value: Callable[[np.ndarray], float]
    prox: Callable[[np.ndarray, float], np.ndarray]


L2 = Penalty(lambda w: 0.5 * float(w @ w), lambda v, t: v / (1 + t))
L1 = Penalty(lambda w: float(np.abs(w).sum()), lambda v, t: np.sign(v) * np.maximum(np.abs(v) - t, 0.0))


def elastic_net(l1: float, l2: float) -> Penalty:
    """Return the penalty l1 |w|_1 + l2/2 |w|^2."""
    if not (np.isfinite([l1, l2]).all() and min(l1, l2) >= 0):
        raise ValueError(f"elastic_net: l1 and l2 must be finite numbers >= 0; got {l1!r} and {l2!r}.")
    return Penalty(lambda w: l1 * L1.value(w) + l2 * L2.value(w), lambda v, t: L1.prox(v, t * l1) / (1 + t * l2))


class Minimum(NamedTuple):
    """w, b, the objective there, the steps taken, and whether both residuals met the tolerance."""

    w: np.ndarray
    b: float
    objective: float
    n_iter: int
    converged: bool


def minimise_risk(
    X: np.ndarray,
    y: np.ndarray,
    loss: Loss,
    penalty: Penalty = L2,
    *,
    C: float = 1.0,
    intercept: bool = True,
    tol: float = 1e-9,
    max_iter: int = 50_000,
) -> Minimum:
    """Return the minimum of penalty(w) + C sum loss(y_i, <w, x_i> + b); labels are y = -1, +1.

    tol : stop when the copies agree with w and f, and stand still, to tol relative to their length.

    >>> from assay.losses import hinge
    >>> X, y = np.array([[3.0, 3.0], [4.0, 3.0], [1.0, 1.0]]), np.array([1.0, 1.0, -1.0])
    >>> found = minimise_risk(X, y, hinge, C=10.0)
    >>> [round(float(w), 6) for w in found.w], round(found.b, 6)
    ([0.5, 0.5], -2.0)
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if not (np.isfinite(C) and C > 0):
        raise ValueError(f"minimise_risk: C must be a finite number > 0; got {C!r}.")
    if loss.prox is None:
        raise ValueError(f"minimise_risk: the loss {loss.name} has no proximal operator here.")
    A = np.column_stack([X, np.ones(len(X))]) if intercept else X
    d = X.shape[1]
    normal = A.T @ A
    normal[np.arange(d), np.arange(d)] += 1.0
    factor = cho_factor(normal)
    copies, dual, rho = np.zeros(len(X) + d), np.zeros(len(X) + d), 1.0
    w, step, converged = np.zeros(A.shape[1]), 0, False
    while step < max_iter and not converged:
        step += 1
        target = copies - dual
        w = cho_solve(factor, A.T @ target[: len(X)] + np.pad(target[len(X) :], (0, A.shape[1] - d)))
        exact = np.concatenate([A @ w, w[:d]])
        mixed = _RELAXATION * exact + (1 - _RELAXATION) * copies + dual
        before = copies
        copies = np.concatenate([loss.prox(y, mixed[: len(X)], C / rho), penalty.prox(mixed[len(X) :], 1 / rho)])
        dual = mixed - copies
        apart, moved = float(np.linalg.norm(exact - copies)), float(np.linalg.norm(copies - before))
        converged = bool(max(apart, moved) <= tol * (1e-3 + max(np.linalg.norm(exact), np.linalg.norm(copies))))
        if step % 50 == 0 and not 1 / _BALANCE < apart / max(moved, 1e-300) < _BALANCE:
            factor_of_rho = 2.0 if apart > moved else 0.5
            rho, dual = rho * factor_of_rho, dual / factor_of_rho
    b = float(w[d]) if intercept else 0.0
    value = penalty.value(w[:d]) + C * float(loss.value(y, X @ w[:d] + b).sum())
    return Minimum(w[:d], b, value, step, converged)

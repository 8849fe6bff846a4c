"""The Lagrangian of the support vector machine's problem, its value and its partial derivatives.

    hard   L(w, b, alpha)          = 1/2 |w|^2 + sum alpha_i (1 - y_i (<w, x_i> + b))
    soft   L(w, b, xi, alpha, mu)  = 1/2 |w|^2 + C sum xi_i + sum alpha_i (1 - xi_i - y_i (<w, x_i> + b)) - <mu, xi>

At the optimum all derivatives vanish: w = sum alpha_i y_i x_i, sum alpha_i y_i = 0, and C = alpha_i + mu_i.
"""

from typing import Any, NamedTuple

import numpy as np


class Lagrangian(NamedTuple):
    """Value, and derivatives by w (d,), by b, and by the slacks (n,); the last is empty for the hard margin."""

    value: float
    by_w: np.ndarray
    by_b: float
    by_slack: np.ndarray


def lagrangian(
    X: Any, y: Any, w: Any, b: float, alpha: Any, *, C: float = np.inf, slack: Any = None, mu: Any = None
) -> Lagrangian:
    """Return the Lagrangian at w, b and the multipliers alpha; with a finite C also of `slack` with multipliers `mu`.

    >>> found = lagrangian([[1.0], [-1.0]], [1, -1], [1.0], 0.0, [0.5, 0.5])
    >>> found.value, found.by_w.tolist(), found.by_b
    (0.5, [0.0], 0.0)
    """
    X, y, w, alpha = (np.asarray(part, dtype=np.float64) for part in (X, y, w, alpha))
    if X.ndim != 2 or w.shape != X.shape[1:] or y.shape != (len(X),) or alpha.shape != y.shape:
        raise ValueError(
            f"lagrangian: X {X.shape}, y {y.shape}, w {w.shape} and alpha {alpha.shape} do not go together."
        )
    if np.isfinite(C) != (slack is not None and mu is not None):
        raise ValueError("lagrangian: a finite C comes with slack and mu, the hard margin with neither.")
    short = 1.0 - y * (X @ w + b)
    value = 0.5 * float(w @ w) + float(alpha @ short)
    by_w, by_b = w - (alpha * y) @ X, 0.0 - float(alpha @ y)
    if not np.isfinite(C):
        return Lagrangian(value, by_w, by_b, np.empty(0))
    slack, mu = np.asarray(slack, dtype=np.float64), np.asarray(mu, dtype=np.float64)
    if slack.shape != y.shape or mu.shape != y.shape:
        raise ValueError(f"lagrangian: slack {slack.shape} and mu {mu.shape} must have a number for each row.")
    value += C * float(slack.sum()) - float((alpha + mu) @ slack)
    return Lagrangian(value, by_w, by_b, C - alpha - mu)

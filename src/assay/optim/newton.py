"""Newton's method with a lazily renewed Hessian.

Each step solves H d = -g and backtracks until the objective falls (Armijo). H is kept while it still
contracts the Newton decrement g^T H^-1 g well, because near the optimum a gradient costs far less than a
Hessian. Boyd & Vandenberghe, Convex Optimization, 9.5; for the chord variant Kelley, Iterative Methods for
Linear and Nonlinear Equations, 5.4.1.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

_KEEP = 1e-2  # the Hessian is renewed once a step lowers the decrement by less than this factor
_ARMIJO = 1e-4
_HALVINGS = 40
_FLAT = 1e-13  # curvature, relative to the preconditioner's, that is rounding
_NOISE = 1e-13  # relative rounding of the objective; a step that changes less is judged by its gradient

Solve = Callable[[np.ndarray], np.ndarray]


class Found(NamedTuple):
    """Where a solver stopped: the point, its value and gradient, half the last decrement, steps, and why it
    stopped.

    Parameters
    ----------
    x : ndarray
        The point.
    value : float
        Its value.
    gradient : ndarray
        Its gradient.
    decrement : float
        Half the last Newton decrement.
    n_iter : int
        Number of steps.
    status : str
        Why the solver stopped.
    """

    x: np.ndarray
    value: float
    gradient: np.ndarray
    decrement: float
    n_iter: int
    status: str  # "converged", "max_iter", "stalled", "interrupted", "stopped", "overflow"


def newton(
    value_gradient: Callable[[np.ndarray], tuple[float, np.ndarray]],
    curvature: Callable[[np.ndarray], Solve],
    x: np.ndarray,
    *,
    done: Callable[[np.ndarray, np.ndarray, float], bool],
    max_iter: int,
    on_step: Callable[[np.ndarray, float, np.ndarray], bool] = lambda x, value, gradient: False,
) -> Found:
    """Minimise a smooth convex function from x.

    `curvature(x)` returns a function that solves with the Hessian at x. `done(x, gradient, half_decrement)`
    decides when to stop; `on_step` is told each accepted point and may ask to stop. An interrupt from the
    keyboard returns the best point.

    Parameters
    ----------
    value_gradient : callable
        Value and gradient at a point.
    curvature : callable
        Returns a function that solves with the Hessian at a point.
    x : ndarray
        Where the search begins.
    done : callable
        Decides from point, gradient and half the decrement whether to stop.
    max_iter : int
        Largest number of steps.
    on_step : callable
        Called with point, value and gradient: True ends the search.

    Returns
    -------
    Found
        The point and why the solver stopped.
    """
    value, gradient = value_gradient(x)
    if not np.isfinite(value + gradient @ gradient):
        return Found(x, value, gradient, np.inf, 0, "overflow")
    solve: Solve | None = None
    step = np.zeros_like(x)
    half_decrement = np.inf
    n_iter = 0
    try:
        while True:
            renewed = solve is None
            if solve is None:
                solve = curvature(x)
            step = -solve(gradient)
            if not np.isfinite(step).all():
                return Found(x, value, gradient, np.inf, n_iter, "overflow")
            half_decrement, before = max(0.0, -0.5 * float(gradient @ step)), half_decrement
            if done(x, gradient, half_decrement):
                return Found(x, value, gradient, half_decrement, n_iter, "converged")
            if n_iter == max_iter:
                return Found(x, value, gradient, half_decrement, n_iter, "max_iter")
            if not renewed and half_decrement > _KEEP * before:
                solve = None
                continue
            trial = _backtrack(value_gradient, x, value, gradient, step)
            if trial is None:
                if renewed:
                    return Found(x, value, gradient, half_decrement, n_iter, "stalled")
                solve = None
                continue
            x, value, gradient = trial
            n_iter += 1
            if on_step(x, value, gradient):
                return Found(x, value, gradient, half_decrement, n_iter, "stopped")
    except KeyboardInterrupt:
        return Found(x, value, gradient, half_decrement, n_iter, "interrupted")


def _backtrack(
    value_gradient: Callable[[np.ndarray], tuple[float, np.ndarray]],
    x: np.ndarray,
    value: float,
    gradient: np.ndarray,
    step: np.ndarray,
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Return the first point of x + step, x + step / 2, ... that lowers the objective enough, None if there
    is none."""
    slope, length = float(gradient @ step), 1.0
    noise = _NOISE * abs(value)
    for _ in range(_HALVINGS):
        there = x + length * step
        new_value, new_gradient = value_gradient(there)
        if new_value <= value + _ARMIJO * length * slope and new_value < value:
            return there, new_value, new_gradient
        small = abs(new_value - value) <= noise and abs(float(new_gradient @ step)) < abs(slope)
        if small:
            return there, new_value, new_gradient
        length *= 0.5
    return None


def conjugate_gradients(
    multiply: Solve, precondition: Solve, b: np.ndarray, *, rtol: float, max_iter: int
) -> np.ndarray:
    """Return x with multiply(x) = b up to |residual| <= rtol |b| in the preconditioner's norm.

    The matrix may be singular: a direction along which it is zero up to rounding ends the search.

    Parameters
    ----------
    multiply : callable
        Product of the matrix with a vector.
    precondition : callable
        Product of the preconditioner with a vector.
    b : ndarray
        Right-hand side.
    rtol : float
        Relative residual that ends the search.
    max_iter : int
        Largest number of steps.

    Returns
    -------
    ndarray
        The solution.
    """
    scale = float(np.abs(b).max())  # products of very small or large numbers would leave the range of doubles
    x, r = np.zeros_like(b), b / scale if scale > 0 else b
    z = precondition(r)
    p, rho = z, float(r @ z)
    target, length = rtol**2 * rho, rho  # length: of p, squared, in the preconditioner's norm
    for _ in range(max_iter):
        if rho <= target:
            break
        q = multiply(p)
        curvature = float(p @ q)
        if not curvature > _FLAT * length:
            break
        x = x + rho / curvature * p
        r = r - rho / curvature * q
        z = precondition(r)
        rho, last = float(r @ z), rho
        p, length = z + rho / last * p, rho + (rho / last) ** 2 * length
    return x * scale

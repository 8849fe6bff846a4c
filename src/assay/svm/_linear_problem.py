"""The problem of a linear support vector machine, and Newton's method for its smooth losses.

    minimise over u = (w, b / s)    P(u) = 1/2 |u|^2 + sum_i c_i loss(t_i, f_i),    f_i = <w, x_i> + b

The intercept is the coefficient of a constant column s and is penalised like the others. With r = t - f every loss here
has the dual form

    loss(f) = max over theta in [low, high] of  theta r - epsilon |theta| - kappa theta^2 / 2

so that for any such theta, with v = sum theta_i (x_i, s), P(u) - min P <= 1/2 |u - v|^2 + sum of brackets, the bracket
being the loss minus what is maximised. Labels are t = -1, +1 and theta has their sign; losses that grow linearly have
|theta| <= c and kappa = 0, squared ones kappa = 1 / (2 c).

Squared losses are piecewise quadratic: Newton's method ends at the optimum itself once the right pieces are found.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.optim.newton import Solve, newton
from assay.scan import Rows
from assay.scan.memory import MemoryRows

SMALL = 1e-14  # gap, relative to the objective at zero, that rounding hides
_SAMPLE = 20_000  # rows on whose optimum Newton starts, when there are at least five times as many
_ENOUGH = 1e-4  # gap of that optimum, relative to the objective at zero


class Losses(NamedTuple):
    """Targets t, weights c >= 0, whether t are labels, whether the loss grows linearly, epsilon, the column s (0: no
    intercept), and whether the penalty is |u|_1."""

    t: np.ndarray
    c: np.ndarray
    labels: bool
    linear: bool
    epsilon: float
    column: float
    l1: bool = False

    def beyond(self, r: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return how far each residual is on the side that costs."""
        return np.maximum(t * r if self.labels else np.abs(r) - self.epsilon, 0.0)

    def total(self, r: np.ndarray, t: np.ndarray, c: np.ndarray) -> float:
        beyond = self.beyond(r, t)
        return float(c @ (beyond if self.linear else beyond**2))

    @property
    def at_zero(self) -> float:
        """The objective at u = 0."""
        return self.total(self.t, self.t, self.c)

    def slopes(self, r: np.ndarray, t: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the theta that attains a squared loss."""
        return 2 * c * self.beyond(r, t) * (t if self.labels else np.sign(r))

    def brackets(self, r: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return loss minus dual form at theta, in terms that are not negative."""
        a = np.abs(theta)
        toward = self.t * r if self.labels else np.where((theta < 0) | ((theta == 0) & (r < 0)), -r, r)
        inside = np.maximum(self.epsilon - toward, 0.0)
        beyond = np.maximum(toward - self.epsilon, 0.0)
        wrong = np.zeros_like(r) if self.labels else np.maximum(-toward - self.epsilon, 0.0)
        if self.linear:
            return (self.c - a) * beyond + a * inside + self.c * wrong
        half = np.divide(a, 2 * self.c, out=np.zeros_like(a), where=self.c > 0)
        return self.c * np.where(beyond > 0, (beyond - half) ** 2, half**2 + wrong**2) + a * inside


class Optimum(NamedTuple):
    """The coefficients u, dual variables theta, P(u), the duality gap, iterations, and why it ended."""

    u: np.ndarray
    theta: np.ndarray
    objective: float
    gap: float
    n_iter: int
    status: str  # "converged", "max_iter", "stopped", "interrupted", "overflow"


class Watch(NamedTuple):
    """The log of a fit, and what a callback needs to see the model u as it stands."""

    log: FitLog
    fitted: Callable[[np.ndarray], dict[str, Any]]

    def step(self, objective: float, gap: float, u: np.ndarray) -> bool:
        return self.log.step(objective, gap, **(self.fitted(u) if self.log.watched else {}))


def residuals(rows: Rows, losses: Losses, u: np.ndarray) -> np.ndarray:
    """Return t - f of every row."""
    if is_sparse(rows):
        return losses.t - (rows.X @ u[:-1] + losses.column * u[-1])
    return losses.t - np.concatenate(rows.map(_scores, u, losses.column))


def transposed_product(rows: Rows, losses: Losses, theta: np.ndarray) -> np.ndarray:
    """Return v = sum theta_i (x_i, s)."""
    product = rows.X.T @ theta if is_sparse(rows) else rows.sum(_weighted_sum, theta)
    return np.append(product, losses.column * theta.sum())


def is_sparse(rows: Rows) -> TypeGuard[MemoryRows]:
    """Tell whether the rows are a SciPy matrix, of which only blocks could be made dense."""
    return isinstance(rows, MemoryRows) and not isinstance(rows.X, np.ndarray)


def _scores(block: Block, u: np.ndarray, column: float) -> np.ndarray:
    return block.X @ u[:-1] + column * u[-1]


def _weighted_sum(block: Block, theta: np.ndarray) -> np.ndarray:
    return theta[block.start : block.start + len(block.X)] @ block.X


# Newton -------------------------------------------------------------------------------------------


def by_newton(rows: Rows, losses: Losses, target: float, max_iter: int, watch: Watch | None) -> Optimum:
    """Minimise squared losses; with many rows started at the optimum of a sample."""
    objective = _Objective(rows, losses)

    def callback(u: np.ndarray, value: float, gradient: np.ndarray) -> bool:
        return watch is not None and watch.step(value, 0.5 * float(gradient @ gradient), u)

    solution = newton(
        objective.value_gradient,
        objective.curvature,
        sampled_start(by_newton, rows, losses, target, max_iter),
        done=lambda u, gradient, half_decrement: 0.5 * float(gradient @ gradient) <= target,
        max_iter=max_iter,
        on_step=callback,
    )
    gap = 0.5 * float(solution.gradient @ solution.gradient)
    theta = losses.slopes(residuals(rows, losses, solution.x), losses.t, losses.c)
    return Optimum(solution.x, theta, solution.value, gap, solution.n_iter, solution.status)


def sampled_start(
    solver: Callable[..., Optimum], rows: Rows, losses: Losses, target: float, max_iter: int
) -> np.ndarray:
    """Return the optimum on rows at even distances, their losses weighted up to all rows; zero for few rows."""
    step = rows.n_rows // _SAMPLE
    if step < 5 or not isinstance(rows, MemoryRows):
        return np.zeros(rows.n_features + 1)
    sample = MemoryRows(rows.X[::step].copy(), n_jobs=rows.n_jobs)
    some = losses._replace(t=losses.t[::step].copy(), c=step * losses.c[::step])
    return solver(sample, some, max(target, _ENOUGH * losses.at_zero), max_iter, None).u


class _Objective:
    """P with squared losses, its gradient, and solves with its Hessian."""

    def __init__(self, rows: Rows, losses: Losses):
        self.rows, self.losses = rows, losses

    def value_gradient(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        loss, v = self.rows.sum(_slopes, self.losses, u)
        return 0.5 * float(u @ u) + loss, u - v

    def curvature(self, u: np.ndarray) -> Solve:
        H = self.rows.sum(_hessian, self.losses, u)
        H[-1] *= self.losses.column
        H[:, -1] *= self.losses.column
        H[np.diag_indices(len(H))] += 1.0
        if not np.isfinite(H).all():
            return lambda g: np.full_like(g, np.nan)
        factor = cho_factor(H)
        return lambda g: cho_solve(factor, g)


def _here(block: Block, losses: Losses, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return residuals, targets and weights of the rows of a block."""
    own = slice(block.start, block.start + len(block.X))
    return losses.t[own] - _scores(block, u, losses.column), losses.t[own], losses.c[own]


def _slopes(block: Block, losses: Losses, u: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the sum of losses, and of theta_i (x_i, s)."""
    r, t, c = _here(block, losses, u)
    theta = losses.slopes(r, t, c)
    return losses.total(r, t, c), np.append(theta @ block.X, losses.column * theta.sum())


def _hessian(block: Block, losses: Losses, u: np.ndarray) -> np.ndarray:
    """Return sum of 2 c_i (x_i, 1)(x_i, 1)^T over the rows with a loss."""
    from assay.loops.moments import moments

    r, t, c = _here(block, losses, u)
    lossy = losses.beyond(r, t) > 0
    X = block.X[lossy]
    return moments(X, np.empty((len(X), 0)), 2 * c[lossy], np.zeros(X.shape[1]))

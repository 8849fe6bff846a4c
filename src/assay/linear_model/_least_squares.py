"""Least squares and ridge regression.

    minimise over W, b    P(W, b) = 1/2 sum_i s_i |y_i - W x_i - b|^2 + (alpha / 2) |W|^2      (alpha = 0: least squares)

Claims: least squares   P - min P <= |g|^2 / (2 mu), g the gradient and mu <= the least eigenvalue of the Gram matrix of
                        the centred, scaled columns; where no such mu can be proved, a bound on nearby improvements.
        ridge           the duality gap at theta = r - mean(r); then |W - W*| <= sqrt(2 gap / alpha).
Method: one pass sums the second moments of the rows, centred near their mean; a Cholesky factor gives W. The Gram matrix squares
        the condition number, so the factor tells what was lost: up to 1e2 nothing is done, up to 1e8 one step of iterative
        refinement repairs it, beyond that the moments are summed again in twice the precision. Dependent columns get the
        solution of least norm from a blockwise QR and a singular value decomposition. Bjorck 1996, ch. 2.
"""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks

from assay.base import read_rows, require_finite
from assay.card import Card
from assay.certificate.claim import Claim, NotApplicable
from assay.fitlog import FitLog
from assay.linear_model._base import LinearRegressor
from assay.optim.duality import (
    enclosure,
    gamma,
    outward,
    residual_sums,
    ridge_gap,
    score_rounding,
)
from assay.params import count, flag, number
from assay.scan import Rows
from assay.scan.blocks import Block
from assay.theory.spaces import LinearFunctions

_EASY = 1e2  # condition number of the Gram matrix up to which the factor is used as it is
_REFINABLE = 1e8  # ... up to which one refinement step in double precision restores what was lost
_PROVABLE = 1e-6  # least eigenvalue of the scaled Gram matrix that the checker can prove in double precision
_DEPENDENT = 1e-26  # a squared distance to the span of the other columns, relative, below which a column depends on them


class RankWarning(UserWarning):
    """Columns depend on each other: many coefficient vectors fit equally well."""


class _LeastSquares(RegressorMixin, LinearRegressor):
    """What LinearRegression (alpha = 0) and Ridge share."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _fit(self, X: Any, y: Any, sample_weight: Any, alpha: float) -> "_LeastSquares":
        intercept = flag(self, "fit_intercept")
        if self.n_jobs is not None:
            count(self, "n_jobs", low=-64)
        rows = read_rows(self, X, y, sample_weight, multi_output=True)
        with FitLog(self, 1, X, y) as log:
            found = solve(rows, alpha, intercept)
            if found is None:
                require_finite(rows, self)
                raise ValueError(f"{type(self).__name__}: the entries are too large; their squares overflow.")
            coef = found.coef.T
            one = next(iter(rows.blocks())).y.ndim == 1
            self.coef_ = coef.ravel() if one else coef
            self.intercept_ = (float(found.intercept[0]) if one else found.intercept) if intercept else 0.0
            self.rank_ = found.rank
            log.step(found.objective, found.condition, coef_=self.coef_, intercept_=self.intercept_)
        if found.rank < rows.n_features and alpha == 0:
            warnings.warn(
                f"{type(self).__name__}: the columns depend on each other (rank {found.rank} of {rows.n_features}); "
                "the solution of least norm is returned, and its coefficients cannot be interpreted one by one. "
                "Drop dependent columns, or use Ridge.",
                RankWarning,
                stacklevel=3,
            )
        return self


class LinearRegression(_LeastSquares):
    """Ordinary least squares, accurate on ill-conditioned columns.

    Minimises the sum of squared residuals sum_i s_i (y_i - <w, x_i> - b)^2. Nearly dependent columns (polynomials, trends)
    are recognised and handled in higher precision; dependent ones get the solution of least norm and a warning.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit b; without it the fit goes through the origin.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    rank_ : int
        Number of independent columns found (after centring, with an intercept).

    Examples
    --------
    >>> from assay.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[1.0], [2.0], [3.0]], [3.0, 5.0, 7.0])
    >>> model.predict([[4.0]]).round(9).tolist()
    [9.0]
    """

    card = Card(
        name="Linear regression",
        zh="线性回归",
        mission=("LIN-01", "LIN-02", "LIN-04", "LIN-05", "LIN-06"),
        task="regress",
        model=LinearFunctions(),
        strategy="squared loss",
        algorithm="normal equations with refinement, twofold precision or QR where the condition asks for it",
        guarantee=("opt.suboptimality",),
    )

    def __init__(self, *, fit_intercept: bool = True, n_jobs: int | None = None) -> None:
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LinearRegression":
        """Fit to rows X and targets y; X may be arrays, a frame, Parquet files or a Dask collection."""
        return self._fit(X, y, sample_weight, 0.0)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the bound on the objective's distance from its minimum."""
        yield suboptimality(self, rows)


class Ridge(_LeastSquares):
    """Least squares with an L2 penalty on the coefficients; the intercept is not penalised.

    Minimises sum_i s_i (y_i - <w, x_i> - b)^2 + alpha |w|^2.

    Parameters
    ----------
    alpha : float >= 0
        Weight of the penalty.
    fit_intercept : bool
        Whether to fit b.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)

    Examples
    --------
    >>> from assay.linear_model import Ridge
    >>> model = Ridge(alpha=2.0).fit([[-1.0], [1.0]], [-1.0, 1.0])
    >>> model.coef_.tolist()
    [0.5]
    """

    card = Card(
        name="Ridge regression",
        zh="岭回归",
        mission=("LIN-08",),
        task="regress",
        model=LinearFunctions(),
        strategy="squared loss + L2",
        algorithm="normal equations, with refinement where the condition asks for it",
        guarantee=("ridge.gap", "solution.enclosure"),
    )

    def __init__(self, alpha: float = 1.0, *, fit_intercept: bool = True, n_jobs: int | None = None) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "Ridge":
        """Fit to rows X and targets y; X may be arrays, a frame, Parquet files or a Dask collection."""
        alpha = number(self, "alpha", low=0.0, why="a negative penalty has no minimum")
        return self._fit(X, y, sample_weight, alpha)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and the distance to the exact optimum that it implies."""
        if self.alpha == 0:
            yield suboptimality(self, rows)
            return
        gap = outward(ridge_gap(rows, self.coef_, self.intercept_, self.alpha, self.fit_intercept))
        yield Claim("D06/1", gap, params={"alpha": float(self.alpha), "intercept": bool(self.fit_intercept)})
        yield enclosure("D06/1", gap, float(self.alpha))


# The solution -------------------------------------------------------------------------------------------------------


class Solution(NamedTuple):
    """Coefficients (d, k), intercepts (k,), the rank found, P, and the condition number of the scaled Gram matrix."""

    coef: np.ndarray
    intercept: np.ndarray
    rank: int
    objective: float
    condition: float


class _Problem(NamedTuple):
    """Centred second moments, and the centres: P depends on the rows through these alone."""

    gram: np.ndarray
    cross: np.ndarray
    total: float
    mean: np.ndarray
    mean_y: np.ndarray


def solve(rows: Rows, alpha: float, intercept: bool) -> Solution | None:
    """Minimise P over the rows; None if an entry or a square is not finite."""
    pilot = _pilot(rows, intercept)
    moments = rows.sum(_moments, pilot)
    if not np.isfinite(moments).all():
        return None
    problem = _centred(moments, pilot, intercept)
    scale = _powers_of_two(np.sqrt(np.diag(problem.gram)))
    matrix = problem.gram * np.outer(scale, scale) + np.diag(alpha * scale**2)
    condition, factor = _factor(matrix)
    if factor is not None and condition <= _REFINABLE:
        coef = scale[:, None] * cho_solve(factor, scale[:, None] * problem.cross)
        if condition > _EASY:
            correction = rows.sum(_gradient, coef, problem.mean, problem.mean_y) - alpha * coef
            coef = coef + scale[:, None] * cho_solve(factor, scale[:, None] * correction)
        return _solution(problem, coef, alpha, rows.n_features, condition)
    accurate = _twofold(rows, problem, scale, alpha, intercept)
    if accurate is not None:
        return _solution(problem, accurate, alpha, rows.n_features, condition)
    coef, rank = _least_norm(rows, problem, alpha)
    return _solution(problem, coef, alpha, rank, condition)


def _pilot(rows: Rows, intercept: bool) -> np.ndarray:
    """Return a point near the mean of the rows to centre on, taken from the first block; zero without intercept."""
    if not intercept:
        return np.zeros(rows.n_features)
    with np.errstate(invalid="ignore", over="ignore"):
        return next(iter(rows.blocks())).X.mean(axis=0)


def _targets(block: Block) -> np.ndarray:
    return np.ascontiguousarray(block.y.reshape(len(block.X), -1), dtype=np.float64)


def _moments(block: Block, pilot: np.ndarray) -> np.ndarray:
    from assay.loops.moments import moments

    with np.errstate(invalid="ignore", over="ignore"):
        return moments(block.X, _targets(block), block.weight, pilot)


def _centred(moments: np.ndarray, pilot: np.ndarray, intercept: bool) -> _Problem:
    """Move the moments from the pilot to the weighted mean."""
    d = len(pilot)
    weight = moments[d, d]
    shift = moments[d] / weight if intercept and weight > 0 else np.zeros(len(moments))
    central = moments - weight * np.outer(shift, shift)
    total = float(np.trace(central[d + 1 :, d + 1 :]))
    return _Problem(central[:d, :d], central[:d, d + 1 :], total, pilot + shift[:d], shift[d + 1 :])


def _powers_of_two(norms: np.ndarray) -> np.ndarray:
    """Return for each column the power of two that brings its norm into [1/2, 1); scaling by it is exact."""
    exponents = np.frexp(norms)[1]
    return np.ldexp(1.0, np.where(norms > 0, -exponents, 0))


def _factor(matrix: np.ndarray) -> tuple[float, tuple[np.ndarray, bool] | None]:
    """Return the condition number and a Cholesky factor, None if the matrix is not safely positive definite."""
    values = eigvalsh(matrix)
    condition = float(values[-1] / values[0]) if values[0] > 0 else np.inf
    if condition > _REFINABLE:
        return condition, None
    try:
        return condition, cho_factor(matrix)
    except LinAlgError:
        return np.inf, None


def _gradient(block: Block, coef: np.ndarray, mean: np.ndarray, mean_y: np.ndarray) -> np.ndarray:
    """Return sum_i s_i (x_i - mean) r_i of one block: what the normal equations leave over at `coef`."""
    centred = block.X - mean
    residual = (_targets(block) - mean_y) - centred @ coef
    if block.weight is not None:
        residual *= block.weight[:, None]
    return centred.T @ residual


def _twofold(
    rows: Rows, problem: _Problem, scale: np.ndarray, alpha: float, intercept: bool
) -> np.ndarray | None:
    """Solve with moments in twice the precision and two refinement steps; None if columns are dependent."""
    from assay.loops import twofold

    center = problem.mean if intercept else np.zeros(rows.n_features)
    high, low = _twofold_sum(rows.map(_twofold_moments, center, scale))
    d = rows.n_features
    size = d + 1 if intercept else d
    for j in range(d):
        high[j, j], low[j, j] = twofold.add(high[j, j], low[j, j], alpha * scale[j] ** 2, 0.0)
    R, r = high[:size, :size].copy(), low[:size, :size].copy()
    if twofold.cholesky(R, r, _DEPENDENT) < size:
        return None
    beta_high, beta_low = high[:size, d + 1 :].copy(), low[:size, d + 1 :].copy()
    twofold.solve(R, r, beta_high, beta_low)
    penalty = np.append(alpha * scale**2, 0.0)[:size, None]
    for _ in range(2):
        padded = [np.zeros((d + 1, beta_high.shape[1])) for _ in range(2)]
        padded[0][:size], padded[1][:size] = beta_high, beta_low
        step, rest = _twofold_sum(rows.map(_twofold_gradient, center, scale, *padded))
        step, rest = step[:size].copy(), rest[:size].copy()
        twofold.accumulate(step, rest, -penalty * beta_high, -penalty * beta_low)
        twofold.solve(R, r, step, rest)
        twofold.accumulate(beta_high, beta_low, step, rest)
    return scale[:, None] * beta_high[:d]


def _twofold_moments(block: Block, center: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from assay.loops.twofold import twofold_moments_block

    weight = np.empty(0) if block.weight is None else block.weight
    return twofold_moments_block(block.X, _targets(block), weight, center, scale)


def _twofold_gradient(block: Block, center: Any, scale: Any, high: Any, low: Any) -> tuple[np.ndarray, np.ndarray]:
    from assay.loops.twofold import twofold_gradient_block

    weight = np.empty(0) if block.weight is None else block.weight
    return twofold_gradient_block(block.X, _targets(block), weight, center, scale, high, low)


def _twofold_sum(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    from assay.loops.twofold import accumulate

    high, low = parts[0][0].copy(), parts[0][1].copy()
    for more_high, more_low in parts[1:]:
        accumulate(high, low, more_high, more_low)
    return high, low


def _least_norm(rows: Rows, problem: _Problem, alpha: float) -> tuple[np.ndarray, int]:
    """Return the minimiser of least norm and the rank, by QR of the blocks and an SVD of the small factor."""
    d = rows.n_features
    triangles = rows.map(_triangle, problem.mean, problem.mean_y)
    if alpha > 0:
        k = problem.cross.shape[1]
        triangles.append(np.hstack([np.sqrt(alpha) * np.eye(d), np.zeros((d, k))]))
    R = triangles[0]
    for more in triangles[1:]:
        R = np.linalg.qr(np.vstack([R, more]), mode="r")
    U, values, Vt = np.linalg.svd(R[:, :d], full_matrices=False)
    keep = values > values[0] * np.finfo(float).eps * max(rows.n_rows, d) if values[0] > 0 else values > 0
    return Vt[keep].T @ ((U[:, keep].T @ R[:, d:]) / values[keep, None]), int(keep.sum())


def _triangle(block: Block, mean: np.ndarray, mean_y: np.ndarray) -> np.ndarray:
    A = np.hstack([block.X - mean, _targets(block) - mean_y])
    if block.weight is not None:
        A *= np.sqrt(block.weight)[:, None]
    return np.linalg.qr(A, mode="r")


def _solution(problem: _Problem, coef: np.ndarray, alpha: float, rank: int, condition: float) -> Solution:
    """Return `coef` with its intercept and the objective it reaches."""
    quadratic = problem.total - 2 * np.sum(coef * problem.cross) + np.sum(coef * (problem.gram @ coef))
    objective = 0.5 * max(quadratic, 0.0) + 0.5 * alpha * float(np.sum(coef**2))
    return Solution(coef, problem.mean_y - problem.mean @ coef, rank, objective, condition)


# The certificate ----------------------------------------------------------------------------------------------------


def suboptimality(model: LinearRegressor, rows: Rows) -> Claim:
    """Return claim D05: form (a) where the least eigenvalue of the Gram matrix is safely positive, else form (b)."""
    intercept = bool(model.fit_intercept)
    size = rows.n_features + intercept
    pilot = _pilot(rows, intercept)
    moments = rows.sum(_moments, pilot)[:size, :size]
    scale = _powers_of_two(np.sqrt(np.diag(moments)))
    least = float(eigvalsh(moments * np.outer(scale, scale))[0])
    params = {"objective": "squared", "intercept": intercept}
    if least >= _PROVABLE:
        gradient, slack = _gradient_at(model, rows, pilot)
        mu = 0.5 * least
        excess = scale[:, None] * (np.abs(gradient[:size]) + slack[:size])
        witness = {"center": pilot, "exponents": np.frexp(scale)[1].astype(np.int64) - 1}
        value = outward(float(np.sum(excess**2)) / (2 * mu))
        return Claim("D05/1", value, params={**params, "form": "a", "mu": mu}, witness=witness)
    gradient, slack = _gradient_at(model, rows, np.zeros_like(pilot))
    radius = 1.0 + float(np.linalg.norm(model.coef_))
    norm = float(np.linalg.norm(np.abs(gradient[:size]) + slack[:size]))
    return Claim("D05/1", outward(norm * radius), params={**params, "form": "b", "radius": radius})


def _gradient_at(model: LinearRegressor, rows: Rows, center: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sum_i s_i (x_i - center, 1) r_i, (d + 1, k), and a bound on what rounding can hide of it."""
    sums = residual_sums(rows, model.coef_, model.intercept_)
    largest = np.append(rows.largest_entries + np.abs(center), 1.0)
    rounding = score_rounding(rows, model.coef_, model.intercept_)
    gradient = np.vstack([sums.cross - np.outer(center, sums.plain), sums.plain])
    slack = gamma(rows) * np.outer(largest, sums.size) + np.outer(largest, rounding + 4 * _target_rounding(rows)) * sums.weight
    return gradient, slack


def _target_rounding(rows: Rows) -> float:
    """Return the unit of rounding of the largest target."""
    return 2.0**-53 * float(max(rows.map(lambda block: np.abs(block.y).max())))

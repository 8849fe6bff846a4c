"""Least squares and ridge regression.

    minimise over W, b    P(W, b) = 1/2 sum_i s_i |y_i - W x_i - b|^2 + (alpha / 2) |W|^2

alpha = 0 is least squares.

Claims: least squares   P - min P <= |g|^2 / (2 mu), g the gradient and mu <= the least eigenvalue of the Gram
                        matrix of the centred, scaled columns; where no such mu can be proved, a bound on
                        nearby improvements.
        ridge           the duality gap at theta = r - mean(r); then |W - W*| <= sqrt(2 gap / alpha).
Method: normal equations about the mean, refined, in twice the precision or by QR where the condition asks for
        it; see `_least_squares_solver`.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigvalsh
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks

from assay.base import fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.linear_model._base import LinearRegressor
from assay.linear_model._least_squares_solver import pilot, powers_of_two, second_moments, solve
from assay.linear_model._objective import SquaredObjective
from assay.optim.duality import gamma, outward, residual_sums, score_rounding
from assay.optim.gap import PenalisedProblem, gap_claims
from assay.params import Constraint, Flag, Number, check, refuse
from assay.scan import Rows
from assay.theory.spaces import LinearFunctions

_PROVABLE = 1e-6  # least eigenvalue of the scaled Gram matrix that the checker can prove in double precision


class RankWarning(UserWarning):
    """Columns depend on each other: many coefficient vectors fit equally well."""


class _LeastSquares(SquaredObjective, RegressorMixin, LinearRegressor):
    """What LinearRegression (alpha = 0) and Ridge share."""

    constraints: ClassVar[dict[str, Constraint]] = {"fit_intercept": Flag}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> "_LeastSquares":
        check(self)
        intercept = self.fit_intercept
        rows = read_rows(self, X, y, sample_weight, multi_output=True)
        with fit_log(self, 1, X, y, sample_weight) as log:
            alpha = float(getattr(self, "alpha", 0.0))
            found = solve(rows, alpha, intercept)
            if found is None:
                require_finite(rows, self)
                raise refuse(
                    self,
                    "the entries are too large: their squares overflow. Divide them by a constant.",
                )
            coef = found.coef.T
            one = next(iter(rows.blocks())).y.ndim == 1
            self.coef_ = coef.ravel() if one else coef
            self.intercept_ = (float(found.intercept[0]) if one else found.intercept) if intercept else 0.0
            self.rank_ = found.rank
            log.step(found.objective, found.violation, coef_=self.coef_, intercept_=self.intercept_)
        if found.rank < rows.n_features and alpha == 0:
            warnings.warn(
                f"{type(self).__name__}: the columns depend on each other (rank {found.rank} of "
                f"{rows.n_features}); the solution of least norm is returned, and its coefficients cannot be "
                "interpreted one by one. "
                "Drop dependent columns, or use Ridge.",
                RankWarning,
                stacklevel=4,
            )
        return self


@dataclass(eq=False, repr=False)
class LinearRegression(_LeastSquares):
    """Ordinary least squares, accurate on ill-conditioned columns.

    Minimises the sum of squared residuals sum_i s_i (y_i - <w, x_i> - b)^2. Nearly dependent columns
    (polynomials, trends) are recognised and handled in higher precision; dependent ones get the solution of
    least norm and a warning.

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

    _: KW_ONLY
    fit_intercept: bool = True
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LinearRegression":
        """Fit to rows X and targets y; X may be arrays, a frame, Parquet files or a Dask collection."""
        return self._fit(X, y, sample_weight)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the bound on the objective's distance from its minimum."""
        yield suboptimality(self, rows)


@dataclass(eq=False, repr=False)
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
        guarantee=("ridge.gap", "solution.enclosure", "opt.suboptimality"),
    )

    constraints: ClassVar = {"alpha": Number(low=0.0, why="a negative penalty has no minimum")}

    alpha: float = 1.0
    _: KW_ONLY
    fit_intercept: bool = True
    n_jobs: int | None = None

    def _penalty(self, W: np.ndarray, n: int) -> float:
        return 0.5 * float(self.alpha) * float((W * W).sum())

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "Ridge":
        """Fit to rows X and targets y; X may be arrays, a frame, Parquet files or a Dask collection."""
        return self._fit(X, y, sample_weight)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and the distance to the exact optimum that it implies."""
        if self.alpha == 0:
            yield suboptimality(self, rows)
            return
        problem = PenalisedProblem("squared_error", float(self.alpha), 1.0, bool(self.fit_intercept))
        yield from gap_claims(rows, self.coef_, self.intercept_, problem)


# The certificate ----------------------------------------------------------------------------------


def suboptimality(model: LinearRegressor, rows: Rows) -> Claim:
    """Return claim D05: form (a) where the least eigenvalue of the Gram matrix is safely positive, else form
    (b)."""
    intercept = bool(model.fit_intercept)
    size = rows.n_features + intercept
    start = pilot(rows, intercept)
    center = start[: rows.n_features]
    moments = rows.sum(second_moments, start)[:size, :size]
    scale = powers_of_two(np.sqrt(np.diag(moments)))
    least = float(eigvalsh(moments * np.outer(scale, scale))[0])
    params = {"objective": "squared", "intercept": intercept}
    if least >= _PROVABLE:
        gradient, slack = _gradient_at(model, rows, center)
        mu = 0.5 * least
        excess = scale[:, None] * (np.abs(gradient[:size]) + slack[:size])
        witness = {"center": center, "exponents": np.frexp(scale)[1].astype(np.int64) - 1}
        value = outward(float(np.sum(excess**2)) / (2 * mu))
        return Claim("D05/1", value, params={**params, "form": "a", "mu": mu}, witness=witness)
    gradient, slack = _gradient_at(model, rows, np.zeros_like(center))
    radius = 1.0 + float(np.linalg.norm(model.coef_))
    norm = float(np.linalg.norm(np.abs(gradient[:size]) + slack[:size]))
    return Claim("D05/1", outward(norm * radius), params={**params, "form": "b", "radius": radius})


def _gradient_at(model: LinearRegressor, rows: Rows, center: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sum_i s_i (x_i - center, 1) r_i, (d + 1, k), and a bound on what rounding can hide of it."""
    sums = residual_sums(rows, model.coef_, model.intercept_)
    largest = np.append(rows.largest_entries + np.abs(center), 1.0)
    rounding = score_rounding(rows, model.coef_, model.intercept_)
    gradient = np.vstack([sums.cross - np.outer(center, sums.plain), sums.plain])
    slack = (
        gamma(rows) * np.outer(largest, sums.size)
        + np.outer(largest, rounding + 4 * _target_rounding(rows)) * sums.weight
    )
    return gradient, slack


def _target_rounding(rows: Rows) -> float:
    """Return the unit of rounding of the largest target."""
    return 2.0**-53 * float(max(rows.map(lambda block: np.abs(block.y).max())))

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
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse import issparse
from sklearn import linear_model as scikit
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks

from assay.base import fit_log, read_rows, require_finite
from assay.card import Card, log
from assay.claims.claim import Claim, NotApplicable
from assay.linear_model._base import LinearRegressor, SquaredObjective
from assay.linear_model._least_squares_solver import (
    Options,
    Solution,
    pilot,
    powers_of_two,
    second_moments,
    solve,
    solve_each,
)
from assay.linear_model._logistic_solvers import refuse_zero_rows
from assay.messages import Message
from assay.optim.duality import PenalisedProblem, gamma, gap_claims, outward, residual_sums, score_rounding
from assay.params import Choice, Constraint, Count, Flag, Maybe, Number, check, refuse
from assay.scan import Rows
from assay.theory.spaces import LinearFunctions

_PROVABLE = 1e-6  # least eigenvalue of the scaled Gram matrix that the checker can prove in double precision


CONSTRAINED = Message("why.positive")
_PENALTIES = Message("why.target-penalties")


class Penalties:
    """A number >= 0, or one for each target."""

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        if isinstance(value, Real):
            return Number(low=0.0, why="a negative penalty has no minimum").check(owner, name)
        each = np.asarray(value)
        if each.ndim != 1 or each.dtype.kind not in "iuf" or not np.all(np.isfinite(each) & (each >= 0)):
            raise refuse(owner, f"{name} must be a finite number >= 0, or one for each target; got {value!r}.")
        return each


class RankWarning(UserWarning):
    """Columns depend on each other: many coefficient vectors fit equally well."""


class LeastSquares(SquaredObjective, RegressorMixin, LinearRegressor):
    """What LinearRegression (alpha = 0), Ridge and RidgeCV share."""

    constraints: ClassVar[dict[str, Constraint]] = {"fit_intercept": Flag}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags

    def _keep(self, solution: Solution, dimensions: int) -> None:
        """Keep coefficients and intercepts in the shapes that the targets ask for."""
        coef = solution.coef.T
        self.coef_ = coef.ravel() if dimensions == 1 else coef
        intercept = np.float64(solution.intercept[0]) if dimensions == 1 else solution.intercept
        self.intercept_ = intercept if self.fit_intercept else 0.0

    def _overflow(self, rows: Rows) -> ValueError:
        """Return the error to raise where a sum over the rows is not finite."""
        require_finite(rows, self)
        return refuse(self, "the entries are too large: their squares overflow. Divide them by a constant.")


class _OnePenalty(LeastSquares):
    """What LinearRegression (alpha = 0) and Ridge share: the penalty is given."""

    constraints: ClassVar[dict[str, Constraint]] = {"copy_X": Flag, "tol": Number(low=0.0), "positive": Flag}
    tol: float
    positive: bool

    def _solve(self, X: Any, y: Any, sample_weight: Any, alpha: Any) -> Solution:
        """Keep the minimiser for the penalty alpha, one number or one of each target, and return it."""
        rows = read_rows(self, X, y, sample_weight, multi_output=True)
        with fit_log(self, 1, X, y, sample_weight) as log:
            options = Options(bool(self.fit_intercept), bool(self.positive), float(self.tol), self._steps)
            result = solve_each(rows, alpha, options) if np.ndim(alpha) else solve(rows, float(alpha), options)
            if result is None:
                raise self._overflow(rows)
            self._keep(result, next(iter(rows.blocks())).y.ndim)
            self._keep_type(X)
            log.step(result.objective, result.violation, coef_=self.coef_, intercept_=self.intercept_)
        self.rank_ = result.rank
        return result

    @property
    def _steps(self) -> int | None:
        """The limit of steps where the minimum is found step by step."""
        return None

    def _warn_if_dependent(self, solution: Solution) -> None:
        if solution.rank < self.n_features_in_ and not self.positive:
            warnings.warn(
                f"{type(self).__name__}: the columns depend on each other (rank {solution.rank} of "
                f"{self.n_features_in_}); the solution of least norm is returned, and its coefficients cannot be "
                "interpreted one by one. "
                "Drop dependent columns, or use Ridge.",
                RankWarning,
                stacklevel=4,
            )


@dataclass(eq=False, repr=False)
class LinearRegression(_OnePenalty):
    """Ordinary least squares, accurate on ill-conditioned columns.

    Minimises the sum of squared residuals sum_i s_i (y_i - <w, x_i> - b)^2. Nearly dependent columns
    (polynomials, trends) are recognised and handled in higher precision; dependent ones get the solution of
    least norm and a warning.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit b; without it the fit goes through the origin.
    copy_X : bool
        Accepted; X is never written to.
    tol : float >= 0
        Precision of the steps on sparse rows of many columns; elsewhere the minimum is computed directly.
    positive : bool
        Whether coefficients must be >= 0 (non-negative least squares).
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    rank_ : int
        Number of independent columns found (after centring, with an intercept).
    singular_ : (min(n_rows, n_features),)
        Singular values of the centred rows; not of sparse rows, and not with positive=True.

    Examples
    --------
    >>> from assay.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[1.0], [2.0], [3.0]], [3.0, 5.0, 7.0])
    >>> model.predict([[4.0]]).round(9).tolist()
    [9.0]
    """

    card = Card(
        name="Linear regression",
        task="regress",
        model=LinearFunctions(),
        strategy="squared loss",
        algorithm="normal equations with refinement, twofold precision or QR where the condition asks for it",
        guarantee=("suboptimality",),
    )

    _: KW_ONLY
    fit_intercept: bool = True
    copy_X: bool = True
    tol: float = 1e-6
    n_jobs: int | None = None
    positive: bool = False

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LinearRegression":
        """Fit to rows X and targets y; X may be arrays, sparse, a frame, Parquet files or a Dask collection."""
        check(self)
        self.__dict__.pop("singular_", None)
        solution = self._solve(X, y, sample_weight, 0.0)
        if solution.singular is not None:
            self.singular_ = solution.singular
        self._warn_if_dependent(solution)
        return self

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the bound on the objective's distance from its minimum."""
        yield NotApplicable("suboptimality", CONSTRAINED) if self.positive else suboptimality(self, rows)


scikit.LinearRegression.register(LinearRegression)  # RANSAC asks for it


@dataclass(eq=False, repr=False)
class Ridge(_OnePenalty):
    """Least squares with an L2 penalty on the coefficients; the intercept is not penalised.

    Minimises sum_i s_i (y_i - <w, x_i> - b)^2 + alpha |w|^2.

    Parameters
    ----------
    alpha : float >= 0, or (n_targets,)
        Weight of the penalty, of all targets or of each.
    fit_intercept : bool
        Whether to fit b.
    copy_X : bool
        Accepted; X is never written to.
    max_iter, tol : int or None, float >= 0
        Limit and precision of the steps on sparse rows of many columns; elsewhere the minimum is computed directly.
    solver : "auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga" or "lbfgs"
        scikit-learn's names. There is one minimum, and it is found by the same way whatever the name; as there,
        "lbfgs" asks for `positive`, and `positive` for "auto" or "lbfgs".
    positive : bool
        Whether coefficients must be >= 0.
    random_state : any
        Accepted; nothing is drawn.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    n_iter_ : None, or steps of each target, one, with "sag", "saga" and "lsqr"
    solver_ : str
        The name that was given, or what "auto" stands for.

    Examples
    --------
    >>> from assay.linear_model import Ridge
    >>> model = Ridge(alpha=2.0).fit([[-1.0], [1.0]], [-1.0, 1.0])
    >>> model.coef_.tolist()
    [0.5]
    """

    card = Card(
        name="Ridge regression",
        task="regress",
        model=LinearFunctions(),
        strategy="squared loss + L2",
        algorithm="normal equations, with refinement where the condition asks for it",
        guarantee=("ridge.gap", "solution.enclosure", "suboptimality"),
        search={"alpha": log(1e-3, 1e4)},
        first=1,
        light=True,
        quick=True,
    )

    constraints: ClassVar = {
        "alpha": Penalties(),
        "max_iter": Maybe(Count()),
        "solver": Choice("auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"),
    }

    alpha: Any = 1.0
    _: KW_ONLY
    fit_intercept: bool = True
    copy_X: bool = True
    max_iter: int | None = None
    tol: float = 1e-4
    solver: str = "auto"
    positive: bool = False
    random_state: Any = None
    n_jobs: int | None = None

    def _penalty(self, W: np.ndarray, b: np.ndarray, n: int) -> float:
        return 0.5 * float(np.sum(np.ravel(self.alpha)[:, None] * np.atleast_2d(W) ** 2))

    @property
    def _steps(self) -> int | None:
        return None if self.max_iter is None else int(self.max_iter)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "Ridge":
        """Fit to rows X and targets y; X may be arrays, sparse, a frame, Parquet files or a Dask collection."""
        check(self)
        self._check_solver(X)
        refuse_zero_rows(self, X)
        solution = self._solve(X, y, sample_weight, self.alpha)
        if not np.any(self.alpha):
            self._warn_if_dependent(solution)
        plain = "sparse_cg" if issparse(X) else "cholesky"
        self.solver_ = self.solver if self.solver != "auto" else "lbfgs" if self.positive else plain
        counted = self.solver in ("sag", "saga", "lsqr")
        self.n_iter_ = np.ones(solution.coef.shape[1], dtype=np.int32) if counted else None
        return self

    def _check_solver(self, X: Any) -> None:
        """Refuse what scikit-learn's solvers cannot do, in its words."""
        if self.positive and self.solver not in ("auto", "lbfgs"):
            raise refuse(
                self, f"solver='{self.solver}' does not support positive fitting. Please set the solver to 'auto' or "
                f"'lbfgs', or set `positive=False`",
            )  # fmt: skip
        if self.solver == "lbfgs" and not self.positive:
            raise refuse(self, "'lbfgs' solver can be used only when positive=True. Please use another solver.")
        dense_alone = self.solver in ("svd", "cholesky", "saga")
        if self.fit_intercept and issparse(X) and dense_alone:
            raise refuse(
                self, f"solver='{self.solver}' does not support fitting the intercept on sparse data. Please set the "
                "solver to 'auto' or 'lsqr', 'sparse_cg', 'sag', 'lbfgs' or set `fit_intercept=False`",
            )  # fmt: skip

    def _keep(self, solution: Solution, dimensions: int) -> None:
        super()._keep(solution, dimensions)
        if len(np.atleast_2d(self.coef_)) == 1:
            self.coef_ = np.ravel(self.coef_)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and the distance to the exact optimum that it implies."""
        if self.positive:
            yield NotApplicable("duality-gap", CONSTRAINED)
        else:
            yield from ridge_facts(self, rows, self.alpha)


# The certificate ----------------------------------------------------------------------------------


def ridge_facts(model: LinearRegressor, rows: Rows, alpha: Any) -> Iterator[Claim | NotApplicable]:
    """Yield the duality gap of a ridge regression, and the distance to the exact optimum that it implies."""
    if np.ndim(alpha):
        yield NotApplicable("duality-gap", _PENALTIES)
    elif alpha == 0:
        yield suboptimality(model, rows)
    else:
        problem = PenalisedProblem("squared_error", float(alpha), 1.0, bool(model.fit_intercept))
        yield from gap_claims(rows, model.coef_, model.intercept_, problem)


def suboptimality(model: LinearRegressor, rows: Rows) -> Claim:
    """Return claim suboptimality: form (a) where the least eigenvalue of the Gram matrix is safely positive, else form
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
        return Claim("suboptimality", value, params={**params, "form": "a", "mu": mu}, witness=witness)
    gradient, slack = _gradient_at(model, rows, np.zeros_like(center))
    radius = 1.0 + float(np.linalg.norm(model.coef_))
    norm = float(np.linalg.norm(np.abs(gradient[:size]) + slack[:size]))
    return Claim("suboptimality", outward(norm * radius), params={**params, "form": "b", "radius": radius})


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

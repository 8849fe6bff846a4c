"""Generalised linear models.

    minimise over w, b    P(w, b) = 1 / S sum_i s_i d(y_i, mu_i) / 2 + alpha / 2 |w|^2,   mu_i = g^-1(<w, x_i> + b)

with S = sum s_i, d the unit deviance of the distribution and g the link. The log-linear regression of ln y, by least
squares, is the distribution "lognormal": its errors are multiplicative, and it is not the same as least squares on y.

Claims: where P is convex, no coefficients within the stated distance lower P by more than the value (the gradient
        times that distance), and the curvature at the model is at least the stated number in scaled columns.
Method: Fisher scoring (Newton's method with the expected Hessian) with step halving, started on a sample when rows
        are many.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import column_or_1d

from assay.base import fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Evidence, Norm, Predictions
from assay.linear_model._base import LinearRegressor, Objective, elastic
from assay.linear_model._least_squares_solver import Options, solve
from assay.losses.deviance import (
    FAMILIES,
    LINKS,
    first_derivative,
    inverse_link,
    link_function,
    second_derivative,
    unit_deviance,
)
from assay.messages import Message
from assay.optim.duality import gamma, outward, score_rounding
from assay.optim.newton import Found, Solve, newton
from assay.params import Choice, Count, Flag, Maybe, Number, Positive, check, refuse
from assay.scan import Rows
from assay.theory.spaces import LinearFunctions

CANONICAL = {
    "gaussian": "identity",
    "poisson": "log",
    "gamma": "log",
    "binomial": "logit",
    "lognormal": "log",
}
"""The link that link=None stands for: the canonical one, except "log" for gamma, which keeps every mean
positive."""
CONVEX = {
    ("gaussian", "identity"),
    ("poisson", "log"),
    ("poisson", "identity"),
    ("gamma", "log"),
    ("gamma", "inverse"),
    ("binomial", "logit"),
    ("binomial", "probit"),
    ("binomial", "log"),
    ("binomial", "identity"),
}
_RANGES = {
    "gaussian": (-np.inf, False, np.inf),
    "poisson": (0.0, False, np.inf),
    "gamma": (0.0, True, np.inf),
    "binomial": (0.0, False, 1.0),
    "lognormal": (0.0, True, np.inf),
}
_SAMPLE = 20_000  # rows on whose optimum the fit starts, when there are at least ten times as many
_PROVABLE = 1e-7
_EXPONENTS = 400  # the largest powers of two that the checker scales columns by
_UNIT = 2.0**-53
_ELEMENTARY = 1e-13  # relative error of a few elementary functions in a row, as the checker takes it


@dataclass(eq=False, repr=False)
class GeneralizedLinearRegressor(Objective, RegressorMixin, LinearRegressor):
    """Linear model of a function of the mean: counts, durations, shares, or ln y.

    Parameters
    ----------
    distribution : "gaussian", "poisson", "gamma", "binomial" or "lognormal"
        Distribution of y given x. "binomial" takes shares in [0, 1] (weights are the numbers of trials).
        "lognormal" is
        log-linear regression: least squares of ln y, predicting exp(<w, x> + b).
    link : "identity", "log", "logit", "probit", "inverse" or None
        g with g(mean) = <w, x> + b; None takes identity, log, log, logit, log for these in order.
    alpha : float >= 0
        Weight of the L2 penalty on w; b is not penalised.
    fit_intercept : bool
    tol : float > 0
        Stop once the estimated distance of P to its minimum is at most tol.
    max_iter : int
        Steps allowed.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    coef_, intercept_, n_iter_
    link_ : str
        The link used.
    deviance_ : float
        sum_i s_i d(y_i, mu_i); for "lognormal" the squared error of ln y.

    Examples
    --------
    >>> from assay.linear_model import GeneralizedLinearRegressor
    >>> model = GeneralizedLinearRegressor("poisson").fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.predict([[3.0]]).round(6).tolist()
    [8.0]
    """

    card = Card(
        name="Generalised linear model",
        task="regress",
        model=LinearFunctions(),
        strategy="deviance of the distribution + L2",
        algorithm="Fisher scoring with a sampled start and a lazily renewed Hessian",
        guarantee=("glm.stationarity",),
    )

    constraints: ClassVar = {
        "distribution": Choice(*CANONICAL),
        "link": Maybe(Choice(*LINKS)),
        "alpha": Number(low=0.0, why="a negative penalty has no minimum"),
        "fit_intercept": Flag,
        "tol": Positive(),
        "max_iter": Count(),
    }

    distribution: str = "gaussian"
    _: KW_ONLY
    link: str | None = None
    alpha: float = 0.0
    fit_intercept: bool = True
    tol: float = 1e-14
    max_iter: int = 200
    n_jobs: int | None = None

    @property
    def family(self) -> str:  # type: ignore[override]
        """Which of the checker's predictors reads the coefficients: it depends on the link."""
        return f"glm.{self.link_}"

    @property
    def link_(self) -> str:
        """The link: the parameter, or the one that None stands for."""
        return CANONICAL[self.distribution] if self.link is None else self.link

    def _row_losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        y = np.log(y) if self.distribution == "lognormal" else y.astype(np.float64)
        return _unit_deviance(self.distribution, self.link_, y, scores[:, 0]) / (2 * len(y))

    def _penalty(self, W: np.ndarray, b: np.ndarray, n: int) -> float:
        return elastic(W, 0.0, float(self.alpha))

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "GeneralizedLinearRegressor":
        """Fit to rows X and targets y; X may be arrays, a frame, Parquet files or a Dask collection."""
        check(self)
        name, link = self.distribution, self.link_
        if name == "lognormal" and link != "log":
            raise refuse(self, f'the lognormal distribution has the link "log"; got {link!r}.')
        if link == "inverse" and not self.fit_intercept:
            raise refuse(
                self,
                'the link "inverse" needs an intercept: without one the fit would start at an infinite mean.',
            )
        rows = read_rows(self, X, column_or_1d(y, warn=True) if isinstance(y, np.ndarray) else y, sample_weight)
        require_finite(rows, self)
        self._require_range(min(rows.map(_least_target)), max(rows.map(_largest_target)))
        problem = self._problem(rows)
        with fit_log(self, self.max_iter, X, y) as log:

            def callback(x: np.ndarray, value: float, gradient: np.ndarray) -> bool:
                w, b = problem.unpack(x)
                return log.step(value, float(np.linalg.norm(gradient)), coef_=w, intercept_=b)

            result = _closed_form(problem) if (name, link) == ("gaussian", "identity") else None
            if result is None:
                result = _minimise(problem, self._precision, self.max_iter, callback, self._begin(problem))
            else:
                callback(result.x, result.value, result.gradient)
        self.coef_, self.intercept_ = problem.unpack(result.x)
        self.n_iter_ = result.n_iter
        self.deviance_ = problem.deviance(result.x)
        if result.status != "converged":
            warnings.warn(
                f"{type(self).__name__}: not converged after {result.n_iter} steps ({result.status}); "
                "estimated excess of "
                f"the objective {result.decrement:.2e}. Raise max_iter or tol, scale the columns, or set "
                "alpha.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _problem(self, rows: Rows) -> "Problem":
        """Return the objective on these rows."""
        sums = rows.sum(totals)
        return Problem(rows, self.distribution, self.link_, float(self.alpha), bool(self.fit_intercept), *sums)

    @property
    def _precision(self) -> float:
        """The estimated distance to the minimum at which the fit stops."""
        return self.tol

    def _begin(self, problem: "Problem") -> np.ndarray | None:
        """Return coefficients to start from, if there are better ones than none."""
        return None

    def _require_range(self, least: float, most: float) -> None:
        low, strict, high = _RANGES[self.distribution]
        if least < low or (strict and least <= low) or most > high:
            bounds = f"y {'>' if strict else '>='} 0" + (" and y <= 1" if high == 1.0 else "")
            needs = f"the {self.distribution} distribution needs {bounds}"
            raise refuse(self, f"{needs}; got values from {least:g} to {most:g}.")

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of each row, g^-1(<w, x> + b)."""
        scores = self._scores(X)
        with np.errstate(over="ignore", divide="ignore"):
            return inverse_link(self.link_, scores)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the means."""
        rounding = float(score_rounding(rows, self.coef_, self.intercept_)[0])
        yield Predictions(_bounded_means, (self.coef_, self.intercept_, self.link_, rounding))
        if self.link_ == "identity":
            yield self._norm(rows)
        else:
            yield Norm(why_not=Message("why.one-score"))

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the bound on nearby improvements and the curvature, where the objective is convex."""
        if self.distribution != "lognormal" and (self.distribution, self.link_) not in CONVEX:
            yield NotApplicable(
                "glm.stationarity",
                Message("why.link-convexity"),
            )
            return
        problem = self._problem(rows)
        rounding = float(score_rounding(rows, self.coef_, self.intercept_)[0])
        with np.errstate(all="ignore"):
            sums = rows.sum(_stationarity, self.coef_, self.intercept_, self.distribution, self.link_, rounding)
        if not np.isfinite(sums.off):
            yield NotApplicable("glm.stationarity", Message("why.link-domain"))
            return
        gradient, slack = self._bounded_gradient(problem, sums, rows)
        radius = 1.0 + float(np.linalg.norm(self.coef_))
        exponents, least = problem.least_curvature(sums.curvature)
        params = {
            "distribution": self.distribution,
            "link": self.link_,
            "alpha": float(self.alpha),
            "intercept": problem.intercept,
            "radius": radius,
            "mu": 0.5 * least if least > _PROVABLE else 0.0,
        }
        value = outward(float(np.linalg.norm(np.abs(gradient) + slack)) * radius)
        yield Claim("glm.stationarity", value, params=params, witness={"exponents": exponents})

    def _bounded_gradient(self, problem: "Problem", sums: "_Stationarity", rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient, and a bound of how far the gradient that the checker computes and the bound of its own
        rounding, which it adds, can be from it together: `off` of the slopes of rows, four sums over all rows, and the
        rounding of alpha w."""
        penalty = self.alpha * self.coef_
        largest = rows.largest_entries
        slack = largest * (sums.off + 4 * gamma(rows) * sums.size) / problem.weight + 32 * _UNIT * np.abs(penalty)
        offset = (sums.off + 4 * gamma(rows) * sums.size) / problem.weight
        gradient = problem.pack(sums.slope / problem.weight + penalty, sums.offset / problem.weight)
        return gradient, np.append(slack, offset)[: len(gradient)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.distribution in ("poisson", "gamma", "lognormal", "binomial")
        return tags


# The problem --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Problem:
    """The objective as a function of x = (w, b), and the sum and mean of weights and targets."""

    rows: Rows
    distribution: str
    link: str
    alpha: float
    intercept: bool
    weight: float
    total: float

    @property
    def codes(self) -> tuple[int, int]:
        """Family and link as compiled loops know them; ln y is a gaussian with identity."""
        if self.distribution == "lognormal":
            return 0, 0
        return FAMILIES.index(self.distribution), LINKS.index(self.link)

    def pack(self, w: np.ndarray, b: float) -> np.ndarray:
        return np.append(w, b) if self.intercept else np.array(w)

    def unpack(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        return (x[:-1].copy(), float(x[-1])) if self.intercept else (x.copy(), 0.0)

    def start(self) -> np.ndarray:
        """Return w = 0 and the b that gives the mean of y."""
        mean = self.total / self.weight
        if self.distribution == "lognormal":
            return self.pack(np.zeros(self.rows.n_features), 0.0)
        inside = {
            "binomial": np.clip(mean, 1e-3, 1 - 1e-3),
            "gaussian": mean if self.link == "identity" else max(mean, 1e-3),
        }
        level = inside.get(self.distribution, max(mean, 1e-8))
        return self.pack(np.zeros(self.rows.n_features), float(link_function(self.link, np.array(level))))

    def value_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        w, b = self.unpack(x)
        value, slope, offset = self.rows.sum(_loss, w, b, self.distribution, *self.codes)
        gradient = self.pack(slope / self.weight + self.alpha * w, offset / self.weight)
        return float(value) / self.weight + 0.5 * self.alpha * float(w @ w), gradient

    def hessian(self, x: np.ndarray) -> np.ndarray:
        return self._penalised(self.rows.sum(_curvature, *self.unpack(x), self.distribution, *self.codes))

    def _penalised(self, total: np.ndarray) -> np.ndarray:
        d = self.rows.n_features
        matrix = total / self.weight
        matrix[np.arange(d), np.arange(d)] += self.alpha
        return matrix if self.intercept else matrix[:d, :d]

    def least_curvature(self, total: np.ndarray) -> tuple[np.ndarray, float]:
        """Return powers of two that scale columns to about the same curvature, and the least eigenvalue then; zero if
        sums overflow."""
        hessian = self._penalised(total)
        if not np.isfinite(hessian).all():
            return np.zeros(len(hessian), dtype=np.int64), 0.0
        exponents = np.clip(-np.frexp(np.sqrt(np.maximum(np.diag(hessian), 1e-300)))[1], -_EXPONENTS, _EXPONENTS)
        scale = np.ldexp(1.0, exponents)
        return exponents.astype(np.int64), float(eigvalsh(hessian * np.outer(scale, scale))[0])

    def deviance(self, x: np.ndarray) -> float:
        """Return sum_i s_i d(y_i, mu_i)."""
        return float(self.rows.sum(_deviance, *self.unpack(x), self.distribution, self.link))

    def curvature(self, x: np.ndarray) -> Solve:
        matrix = self.hessian(x)
        ridge = 1e-13 * float(np.trace(matrix)) + 1e-300
        factor = cho_factor(matrix + ridge * np.eye(len(matrix)))
        return lambda g: cho_solve(factor, g)


def _closed_form(problem: Problem) -> Found | None:
    """Return the least-squares solution, to the accuracy of Ridge; None if it could not be had."""
    solution = solve(problem.rows, problem.alpha * problem.weight, Options(problem.intercept))
    if solution is None:
        return None
    x = problem.pack(solution.coef[:, 0], float(solution.intercept[0]))
    return Found(x, *problem.value_gradient(x), 0.0, 1, "converged")


def _minimise(problem: Problem, tol: float, max_iter: int, callback: Any, begin: np.ndarray | None) -> Found:
    """Minimise P; the last factor gives one more step for nothing."""
    last: list[Solve] = []

    def curvature(x: np.ndarray) -> Solve:
        last[:] = [problem.curvature(x)]
        return last[0]

    def done(x: np.ndarray, gradient: np.ndarray, half_decrement: float) -> bool:
        return half_decrement <= tol

    start = _sampled_start(problem, max_iter) if begin is None else begin
    result = newton(problem.value_gradient, curvature, start, done=done, max_iter=max_iter, on_step=callback)
    if result.status == "converged":
        result = result._replace(x=result.x - last[0](result.gradient))
    return result


def _sampled_start(problem: Problem, max_iter: int) -> np.ndarray:
    """Return the optimum on a sample of the rows; the plain start for few rows."""
    n = problem.rows.n_rows
    if n < 10 * _SAMPLE:
        return problem.start()
    sample = problem.rows.sample(_SAMPLE)
    weight, total = sample.sum(totals)
    small = replace(problem, rows=sample, weight=weight, total=total)
    try:
        solution = newton(
            small.value_gradient,
            small.curvature,
            small.start(),
            done=lambda x, g, half: half <= 1e-3 / n,
            max_iter=max_iter,
        )
    except (LinAlgError, ValueError):
        return problem.start()
    sound = np.isfinite(solution.value) and np.isfinite(problem.value_gradient(solution.x)[0])
    return solution.x if sound else problem.start()


def _target(block: Block, distribution: str) -> np.ndarray:
    y = np.ascontiguousarray(block.y.reshape(len(block.X)), dtype=np.float64)
    return np.log(y) if distribution == "lognormal" else y


def _family(distribution: str) -> str:
    return "gaussian" if distribution == "lognormal" else distribution


def row_weights(block: Block) -> np.ndarray:
    return np.empty(0) if block.weight is None else block.weight


def _least_target(block: Block) -> float:
    return float(np.min(block.y))


def _largest_target(block: Block) -> float:
    return float(np.max(block.y))


def totals(block: Block) -> tuple[float, float]:
    """Return the sum of weights, and of weighted targets."""
    y = block.y.reshape(len(block.X))
    return (
        (float(len(y)), float(y.sum()))
        if block.weight is None
        else (float(block.weight.sum()), float(block.weight @ y))
    )


def _loss(
    block: Block, w: np.ndarray, b: float, distribution: str, family: int, link: int
) -> tuple[float, np.ndarray, float]:
    from assay.loops.glm import loss_block

    return loss_block(block.X, _target(block, distribution), row_weights(block), family, link, w, b)


def _curvature(block: Block, w: np.ndarray, b: float, distribution: str, family: int, link: int) -> np.ndarray:
    """Return sum h_i (x, 1)(x, 1)^T, h the expected second derivative of each loss."""
    from assay.loops.glm import curvatures
    from assay.loops.moments import moments

    y = _target(block, distribution)
    h = curvatures(block.X, y, row_weights(block), family, link, w, b)
    return moments(block.X, np.empty((len(y), 0)), h, np.zeros(block.X.shape[1]))


class _Stationarity(NamedTuple):
    """Sums over rows: of slopes times rows, of slopes, of their sizes, of how far they can be off, and of the least
    curvature times (x, 1)(x, 1)^T."""

    slope: np.ndarray
    offset: float
    size: float
    off: float
    curvature: np.ndarray


def _stationarity(
    block: Block, w: np.ndarray, b: float, distribution: str, link: str, rounding: float
) -> _Stationarity:
    """Return what the claim of stationarity needs; `rounding` is at least the checker's bound of the error of a score.

    The checker's score of a row is within `rounding` of ours, so that its interval of scores lies within twice that.
    The slope rises with the score, so the slopes at the ends bound both its slope and the spread that it adds; the
    curvature is least at an end. Elementary functions are taken to be as inaccurate as the checker takes them to be,
    once for each of us and once for the bound that it adds.
    """
    from assay.loops.moments import moments

    y, family = _target(block, distribution), _family(distribution)
    link = "identity" if distribution == "lognormal" else link
    f = block.X @ w + b
    reach = 2 * (rounding + (8 * _UNIT * np.abs(y).max(initial=0.0) if distribution == "lognormal" else 0.0))
    middle, low, high = (first_derivative(family, link, y, f + side * reach) for side in (0.0, -1.0, 1.0))
    zeros, ones = np.zeros_like(y), np.ones_like(y)
    ends = [np.abs(first_derivative(family, link, at, f + side * reach)) for at in (zeros, ones) for side in (-1, 1)]
    size = np.abs(y) + np.maximum(*ends[:2]) + np.maximum(*ends[2:]) + np.abs(f) + reach
    largest = np.maximum(np.abs(low), np.abs(high))
    off = 2 * np.abs(high - low) + 3 * _ELEMENTARY * (size + largest)
    s = np.ones_like(y) if block.weight is None else block.weight
    h = np.minimum(*(second_derivative(family, link, y, f + side * reach) for side in (-1.0, 1.0)))
    total_off = float(s @ off) if np.isfinite(off).all() else np.inf
    curvature = moments(block.X, np.empty((len(y), 0)), s * h, np.zeros(block.X.shape[1]))
    return _Stationarity(block.X.T @ (s * middle), float(s @ middle), float(s @ largest), total_off, curvature)


def _deviance(block: Block, w: np.ndarray, b: float, distribution: str, link: str) -> float:
    unit = _unit_deviance(distribution, link, _target(block, distribution), block.X @ w + b)
    return float(unit.sum() if block.weight is None else block.weight @ unit)


def _unit_deviance(distribution: str, link: str, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    mean = f if distribution == "lognormal" else inverse_link(link, f)
    return unit_deviance(_family(distribution), y, mean)


def _bounded_means(block: Block, w: np.ndarray, b: float, link: str, rounding: float) -> tuple[np.ndarray, float]:
    """Return the means g^-1(<w, x> + b), and how far rounding can move them, doubled."""
    f = block.X @ w + b
    with np.errstate(over="ignore", divide="ignore"):
        mean = inverse_link(link, f)
        ends = [inverse_link(link, f + side * rounding) for side in (1, -1)]
    slack = 2 * np.maximum(np.abs(ends[0] - mean), np.abs(ends[1] - mean)).max() + 4e-13 * np.abs(mean).max()
    return mean[:, None], float(slack)

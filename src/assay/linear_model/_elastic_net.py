"""Lasso and elastic net.

    minimise over w, b    P(w, b) = 1/2 sum_i s_i (y_i - <w, x_i> - b)^2 + l1 |w|_1 + l2/2 |w|^2

with l1 = S alpha l1_ratio, l2 = S alpha (1 - l1_ratio), S = sum s_i: S times scikit-learn's objective.

Claims: the duality gap at theta = r - mean(r), shortened to |X^T theta| <= l1 when l2 = 0; with l2 > 0 also the
        distance of w to the exact optimum.
Method: one pass sums the second moments of columns and target about their means; coordinate descent then needs no
        rows, only d numbers per update. Columns out of use are left out until their correlation with the residual
        exceeds l1. Friedman, Hastie and Tibshirani 2010.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning

from assay import scan
from assay.base import fit_log, read_rows, require_finite
from assay.card import Card, Range, log
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.linear_model._base import LinearRegressor, SquaredObjective, elastic
from assay.linear_model._least_squares import CONSTRAINED, suboptimality
from assay.linear_model._least_squares_solver import Options, solve
from assay.messages import Message
from assay.optim.duality import PenalisedProblem, gap_claims
from assay.params import Choice, Count, Flag, Number, check, refuse
from assay.scan import Rows
from assay.scan.memory import MemoryRows
from assay.theory.spaces import LinearFunctions

_MOST_COLUMNS = 20_000  # their second moments take 3.2 GB
_NOTHING = 1e-15  # of the squares of y: a gap that rounding alone makes
_PATIENCE = 100  # sweeps after which the optimum for the signs found so far is tried


class Moments(NamedTuple):
    """Centred second moments: X'X (d, d), X'y (d,), y'y; the means that were taken out; the sum of
    weights."""

    gram: np.ndarray
    cross: np.ndarray
    total: float
    mean: np.ndarray
    mean_y: float
    weight: float


class Limits(NamedTuple):
    """When to stop: at a gap of tol times 1/2 y'y or after so many sweeps; and whether w must be >= 0."""

    tol: float
    sweeps: int
    positive: bool = False


class _Fit(NamedTuple):
    """One target's minimiser, the sweeps made, the gap reached per unit of weight, and whether it is small enough."""

    w: np.ndarray
    b: float
    sweeps: int
    gap: float
    converged: bool


class ElasticNetPath(NamedTuple):
    """Coefficients (d, n_alphas) and intercepts for each alpha, largest first, with the duality gap of each,
    in units of P.

    Parameters
    ----------
    alphas : ndarray
        The alphas, falling.
    coefs : ndarray
        Coefficients, a column for each alpha.
    intercepts : ndarray
        Intercept for each alpha.
    gaps : ndarray
        Duality gap for each alpha.
    """

    alphas: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray
    gaps: np.ndarray


@dataclass(eq=False, repr=False)
class ElasticNet(SquaredObjective, RegressorMixin, LinearRegressor):
    """Least squares with an L1 and an L2 penalty; the L1 part sets coefficients to zero.

    Minimises 1/(2 S) sum_i s_i (y_i - <w, x_i> - b)^2 + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio) / 2
    |w|^2.

    Parameters
    ----------
    alpha : float >= 0
        Weight of the penalties; 0 is least squares, which LinearRegression says better.
    l1_ratio : float in [0, 1]
        Share of the L1 penalty; 1 is the lasso, 0 ridge regression.
    fit_intercept : bool
        Whether to fit b, which is not penalised.
    tol : float >= 0
        Stop once the duality gap is at most tol times 1/2 sum_i s_i (y_i - mean)^2.
    max_iter : int
        Sweeps over the columns allowed.
    warm_start : bool
        Whether to start from the coefficients of the last fit.
    positive : bool
        Whether coefficients must be >= 0.
    precompute, copy_X, random_state, selection : as in scikit-learn
        Accepted. Second moments are always computed, X is never written to, and there is one minimum, whichever column
        is taken next.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_, n_iter_ : one, or one of each target
    dual_gap_ : float or (n_targets,)
        Gap reached, in units of the objective above.

    Examples
    --------
    >>> from assay.linear_model import ElasticNet
    >>> model = ElasticNet(alpha=0.1).fit([[-1.0, 0.1], [0.0, -0.2], [1.0, 0.1]], [-2.0, 0.0, 2.0])
    >>> model.coef_.round(4).tolist()
    [1.7907, 0.0]
    """

    card = Card(
        name="Elastic net",
        task="regress",
        model=LinearFunctions(),
        strategy="squared loss + L1 + L2",
        algorithm="coordinate descent on second moments, with active columns",
        guarantee=("elastic-net.gap", "solution.enclosure"),
        search={"alpha": log(1e-4, 10), "l1_ratio": Range(0.05, 0.95)},
        first=2,
    )

    constraints: ClassVar = {
        "alpha": Number(low=0.0, why="a negative penalty has no minimum"),
        "l1_ratio": Number(low=0.0, high=1.0, why="it is the share of the L1 penalty"),
        "tol": Number(low=0.0),
        "max_iter": Count(),
        "fit_intercept": Flag,
        "copy_X": Flag,
        "warm_start": Flag,
        "positive": Flag,
        "selection": Choice("cyclic", "random"),
    }

    alpha: float = 1.0
    _: KW_ONLY
    l1_ratio: float = 0.5
    fit_intercept: bool = True
    precompute: Any = False
    max_iter: int = 10_000
    copy_X: bool = True
    tol: float = 1e-8
    warm_start: bool = False
    positive: bool = False
    random_state: Any = None
    selection: str = "cyclic"
    n_jobs: int | None = None

    @property
    def _fitted_alpha(self) -> float:
        """The weight of the penalties of the fitted model."""
        return float(self.alpha)

    @property
    def _fitted_ratio(self) -> float:
        """The share of the L1 penalty of the fitted model."""
        return float(self.l1_ratio)

    @property
    def _limits(self) -> Limits:
        return Limits(float(self.tol), int(self.max_iter), bool(self.positive))

    def _penalty(self, W: np.ndarray, b: np.ndarray, n: int) -> float:
        ratio = self._fitted_ratio
        return n * self._fitted_alpha * elastic(W, ratio, 1.0 - ratio)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, check_input: bool = True) -> "ElasticNet":
        """Fit to rows X and targets y; X may be arrays, sparse, a frame, Parquet files or a Dask collection. Rows are
        checked in any case, since that costs no pass over them."""
        check(self)
        rows = read_rows(self, X, y, sample_weight, multi_output=True)
        if self.alpha == 0:
            return self._fit_without_penalty(rows, X, y)
        start = self._start(rows.n_features)
        with fit_log(self, 1, X, y) as log:
            results = [
                self._fit_target(item, start[k] if start is not None else None) for k, item in _each_target(rows)
            ]
            self._keep([fit.w for fit in results], [fit.b for fit in results], next(iter(rows.blocks())).y.ndim)
            self._keep_type(X)
            sweeps, gaps = [fit.sweeps for fit in results], [fit.gap for fit in results]
            log.step(max(gaps), max(gaps), coef_=self.coef_, intercept_=self.intercept_)
        if any(not fit.converged for fit in results):
            self._warn_of_gap(max(sweeps), max(gaps))
        one = len(results) == 1
        self.n_iter_: Any = sweeps[0] if one else sweeps
        self.dual_gap_: Any = gaps[0] if one else np.array(gaps)
        return self

    def _fit_target(self, rows: Rows, start: np.ndarray | None) -> "_Fit":
        """Return the minimiser for one target."""
        moments = self._moments(rows)
        self._check_precomputed(moments, rows.n_rows)
        return minimise(moments, float(self.alpha), float(self.l1_ratio), self._limits, start)

    def _warn_of_gap(self, sweeps: int, gap: float) -> None:
        warnings.warn(
            f"{type(self).__name__}: {sweeps} sweeps left a duality gap of {gap:.2e}. "
            "Objective did not converge. You might want to increase the number of iterations (max_iter), or "
            "tol, or scale the columns.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _moments(self, rows: Rows) -> Moments:
        """Return the second moments of the rows: those of the last fit if it is started from and had the same rows."""
        seen = None
        if self.warm_start and isinstance(rows, MemoryRows):
            from assay.linear_model._row_loops import mark

            seen = mark(rows.X, rows.y, rows.weight)
        if seen is None:
            return centred_moments(self, rows, self.fit_intercept)
        key = (self.fit_intercept, *seen)
        if self.__dict__.get("_last", (None,))[0] != key:
            self._last = (key, centred_moments(self, rows, self.fit_intercept))
        return self._last[1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_last"}

    def _keep(self, coef: list[np.ndarray], intercept: list[float], dimensions: int) -> None:
        one = len(coef) == 1
        self.coef_ = coef[0] if one else np.array(coef)
        shown = np.float64(intercept[0]) if one and dimensions == 1 else np.array(intercept)
        self.intercept_ = shown if self.fit_intercept else 0.0

    def _fit_without_penalty(self, rows: Rows, X: Any, y: Any) -> "ElasticNet":
        """Find the minimum of the plain squares directly; scikit-learn's coordinate descent crawls here."""
        warnings.warn(
            f"{type(self).__name__}: with alpha=0 this is least squares. With alpha=0, this algorithm does not "
            "converge well. You are advised to use the LinearRegression estimator.",
            stacklevel=3,
        )
        with fit_log(self, 1, X, y) as log:
            solution = solve(rows, 0.0, Options(bool(self.fit_intercept), bool(self.positive)))
            if solution is None:
                require_finite(rows, self)
                raise refuse(self, "the entries are too large; their squares overflow.")
            self._keep(list(solution.coef.T), list(solution.intercept), next(iter(rows.blocks())).y.ndim)
            self._keep_type(X)
            self.n_iter_, self.dual_gap_ = 1, 0.0
            log.step(solution.objective, solution.violation, coef_=self.coef_, intercept_=self.intercept_)
        return self

    def _start(self, columns: int) -> np.ndarray | None:
        """Return the coefficients of the last fit, (n_targets, d), if they are to be started from."""
        last = np.atleast_2d(self.coef_).astype(np.float64) if self.warm_start and hasattr(self, "coef_") else None
        return None if last is None or last.shape[1] != columns else last

    def _check_precomputed(self, moments: Moments, n_rows: int) -> None:
        """Compare a Gram matrix that is given with the rows' own, which is computed in any case."""
        if isinstance(self.precompute, str):
            raise refuse(self, f"precompute must be True, False or a Gram matrix; got {self.precompute!r}.")
        if not np.ndim(self.precompute):
            return
        given = np.asarray(self.precompute, dtype=np.float64)
        if given.shape != moments.gram.shape:
            raise refuse(self, f"a precomputed Gram matrix must be {moments.gram.shape}; got shape {given.shape}.")
        mean_one = n_rows / moments.weight  # scikit-learn's weights of rows have the mean 1
        for own in (moments.gram, mean_one * moments.gram):
            if np.allclose(given, own, rtol=1e-4, atol=1e-4 * np.abs(own).max()):
                return
        whole = moments.gram + moments.weight * np.outer(moments.mean, moments.mean)
        if not np.allclose(given, whole, rtol=1e-4, atol=1e-4 * np.abs(whole).max()):
            raise refuse(
                self, "Gram matrix passed in via 'precompute' parameter did not pass validation when it was checked "
                "against the rows.",
            )  # fmt: skip
        warnings.warn(
            f"{type(self).__name__}: Gram matrix was provided but X was centered to fit intercept: recomputing Gram "
            "matrix.",
            stacklevel=2,
        )

    @property
    def sparse_coef_(self) -> csr_matrix:
        """The coefficients as a sparse matrix, a row for each target."""
        return csr_matrix(np.atleast_2d(self.coef_))

    @staticmethod
    def path(X: Any, y: Any, *, l1_ratio: float = 0.5, **settings: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return alphas, coefficients (d, n_alphas) and gaps of `elastic_net_path` without an intercept, as
        scikit-learn's `path` does."""
        solution = elastic_net_path(X, y, l1_ratio=l1_ratio, fit_intercept=False, **settings)
        return solution.alphas, solution.coefs, solution.gaps

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and, with an L2 penalty, the distance to the exact optimum."""
        if self.positive or np.ndim(self.coef_) > 1:
            yield NotApplicable("duality-gap", CONSTRAINED if self.positive else Message("why.one-target"))
            return
        alpha, ratio = self._fitted_alpha, self._fitted_ratio
        if alpha == 0:
            yield suboptimality(self, rows)
            return
        weight = float(rows.sum(_weight))
        l1, l2 = (weight * alpha * share for share in (ratio, 1 - ratio))
        problem = PenalisedProblem("squared_error", l2, 1.0, bool(self.fit_intercept), l1)
        yield from gap_claims(rows, self.coef_, self.intercept_, problem)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


@dataclass(eq=False, repr=False)
class Lasso(ElasticNet):
    """Least squares with an L1 penalty: structural risk that prefers few columns.

    Minimises 1/(2 S) sum_i s_i (y_i - <w, x_i> - b)^2 + alpha |w|_1.

    Parameters
    ----------
    alpha : float > 0
        Weight of the penalty.
    fit_intercept, precompute, max_iter, copy_X, tol, warm_start, positive, random_state, selection, n_jobs
        As of `ElasticNet`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, dual_gap_

    Examples
    --------
    >>> from assay.linear_model import Lasso
    >>> model = Lasso(alpha=0.1).fit([[-1.0, 0.1], [0.0, -0.2], [1.0, 0.1]], [-2.0, 0.0, 2.0])
    >>> model.coef_.round(4).tolist()
    [1.85, 0.0]
    """

    card = Card(
        name="Lasso",
        task="regress",
        model=LinearFunctions(),
        strategy="squared loss + L1",
        algorithm="coordinate descent on second moments, with active columns",
        guarantee=("elastic-net.gap",),
        search={"alpha": log(1e-4, 10)},
    )
    l1_ratio: float = field(default=1.0, init=False)


def elastic_net_path(
    X: Any,
    y: Any = None,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    n_alphas: int = 100,
    alphas: Any = None,
    fit_intercept: bool = True,
    tol: float = 1e-8,
    max_iter: int = 10_000,
    n_jobs: int | None = None,
) -> ElasticNetPath:
    """Return the elastic net for a falling sequence of alphas, in one pass over the rows.

    Without `alphas`, n_alphas of them fall geometrically from the least one that makes every coefficient
    zero to eps times it.
    X and y may be whatever `ElasticNet.fit` takes.

    Parameters
    ----------
    X : array-like
        Rows.
    y : array-like or None
        Targets; None: they are part of X.
    l1_ratio : float, default=0.5
        Share of the absolute values in the penalty.
    eps : float, default=0.001
        Smallest alpha over the largest.
    n_alphas : int, default=100
        Number of alphas.
    alphas : array-like or None
        The alphas; None: they are chosen.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    tol : float, default=1e-08
        Duality gap that ends the iterations.
    max_iter : int, default=10000
        Largest number of iterations for each alpha.
    n_jobs : int or None
        Number of threads. The result does not depend on it.

    Returns
    -------
    ElasticNetPath
        Coefficients and gaps for each alpha.

    Examples
    --------
    >>> path = elastic_net_path([[-1.0], [0.0], [1.0]], [-2.0, 0.0, 2.0], l1_ratio=1.0, alphas=[1.0, 0.1])
    >>> path.coefs.round(4).tolist()
    [[0.5, 1.85]]
    """
    model = ElasticNet(l1_ratio=l1_ratio, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter, n_jobs=n_jobs)
    check(model)
    ratio = float(model.l1_ratio)
    moments = centred_moments(model, _target_rows(model, X, y, None), fit_intercept)
    if alphas is None:
        if ratio == 0:
            raise refuse(model, "without an L1 penalty no alpha makes every coefficient zero; pass alphas.")
        top = float(np.abs(moments.cross).max()) / (moments.weight * ratio)
        alphas = top * np.geomspace(1.0, eps, n_alphas)
    alphas = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    w, coefs, gaps = np.zeros(len(moments.cross)), [], []
    for alpha in alphas:
        l1, l2 = (moments.weight * alpha * share for share in (ratio, 1 - ratio))
        w, _, gap = _solve(moments, l1, l2, Limits(tol, max_iter), w)
        coefs.append(w)
        gaps.append(gap)
    table = np.array(coefs).T
    return ElasticNetPath(alphas, table, moments.mean_y - moments.mean @ table, np.array(gaps))


def minimise(moments: Moments, alpha: float, ratio: float, limits: Limits, start: np.ndarray | None = None) -> _Fit:
    """Return the minimiser for one target, from `start` or from zero."""
    l1, l2 = (moments.weight * alpha * share for share in (ratio, 1 - ratio))
    direct = l1 == 0 and l2 > 0 and not limits.positive
    w, sweeps, gap = _ridge(moments, l2) if direct else _solve(moments, l1, l2, limits, start)
    converged = gap <= limits.tol * 0.5 * moments.total or gap <= _NOTHING * moments.total
    return _Fit(w, float(moments.mean_y - moments.mean @ w), sweeps, gap / moments.weight, converged)


def _solve(
    moments: Moments, l1: float, l2: float, limits: Limits, start: np.ndarray | None = None
) -> tuple[np.ndarray, int, float]:
    """Return w, the sweeps made and the gap reached, from `start` or from zero."""
    from assay.linear_model._row_loops import descend, gap_of

    w = np.zeros(len(moments.cross)) if start is None else np.maximum(start, 0.0 if limits.positive else -np.inf)
    q = moments.cross - moments.gram @ w
    target = limits.tol * 0.5 * moments.total
    problem = (moments.total, l1, l2, limits.positive)
    sweeps, gap = 0, np.inf if start is None else gap_of(q, moments.cross, w, moments.total, l1, l2, limits.positive)
    while gap > target and sweeps < limits.sweeps:
        at_most = min(_PATIENCE, limits.sweeps - sweeps)
        made, gap = descend(moments.gram, moments.cross, q, w, *problem, target, at_most)
        sweeps += max(made, 1)
        if gap > target:
            better = _on_support(moments, w, l1, l2)
            if better is not None:
                rest = moments.cross - moments.gram @ better
                reached = gap_of(rest, moments.cross, better, *problem)
                if reached < gap:
                    w, q, gap = better, rest, reached
    return w, sweeps, float(gap)


def _ridge(moments: Moments, l2: float) -> tuple[np.ndarray, int, float]:
    """Return w, one step and its gap where there is no L1 penalty: the minimum has a closed form."""
    from assay.linear_model._row_loops import gap_of

    w = np.linalg.solve(moments.gram + l2 * np.eye(len(moments.cross)), moments.cross)
    return w, 1, gap_of(moments.cross - moments.gram @ w, moments.cross, w, moments.total, 0.0, l2, False)


def _on_support(moments: Moments, w: np.ndarray, l1: float, l2: float) -> np.ndarray | None:
    """Return the minimiser among vectors with the zeros and signs of w, None if it does not have those signs.

    Where sweeps crawl (columns that are nearly dependent) but have found the right signs, this is the
    optimum.
    """
    at = np.flatnonzero(w)
    signs = np.sign(w[at])
    try:
        solution = np.linalg.solve(moments.gram[np.ix_(at, at)] + l2 * np.eye(len(at)), moments.cross[at] - l1 * signs)
    except np.linalg.LinAlgError:
        return None
    if not np.array_equal(np.sign(solution), signs):
        return None
    better = np.zeros_like(w)
    better[at] = solution
    return better


def _weight(block: Block) -> float:
    return float(len(block.X)) if block.weight is None else float(block.weight.sum())


def _each_target(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Yield the number of each target, and the rows with that target alone."""
    if next(iter(rows.blocks())).y.ndim == 1:
        yield 0, rows
        return
    if not isinstance(rows, MemoryRows):
        raise ValueError("several targets need rows in memory: arrays or a frame.")
    for k, target in enumerate(np.asarray(rows.y).T):
        yield k, scan.rows(rows.X, target, rows.weight, n_jobs=rows.n_jobs)


def _target_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    rows = read_rows(model, X, y, sample_weight)
    (_, one), *more = _each_target(rows)
    if more:
        raise refuse(model, f"y must have one column; got {len(more) + 1}.")
    return one


def centred_moments(model: Any, rows: Rows, intercept: bool) -> Moments:
    """Return the second moments of the rows about their means; about zero without intercept. Two passes at
    most."""
    d = rows.n_features
    if d > _MOST_COLUMNS:
        raise refuse(
            model,
            f"second moments of {d} columns take {8 * d * d / 2**30:.0f} GiB; at most {_MOST_COLUMNS} "
            "columns are fitted.",
        )
    first = next(iter(rows.blocks()))
    with np.errstate(invalid="ignore", over="ignore"):
        pilot = np.append(first.X.mean(axis=0), first.y.mean()) if intercept else np.zeros(d + 1)
    return centre(finite(model, rows, rows.sum(_second_moments, pilot)), pilot, intercept)


def finite(model: Any, rows: Rows, sums: np.ndarray) -> np.ndarray:
    """Return sums over rows if they are finite."""
    if not np.isfinite(sums).all():
        require_finite(rows, model)
        raise refuse(
            model,
            "the entries are too large; their squares overflow. Coordinate descent iterations resulted in non-finite "
            "parameter values.",
        )
    return sums


def centre(sums: np.ndarray, pilot: np.ndarray, intercept: bool) -> Moments:
    """Move second moments about a pilot to the means; without intercept about zero."""
    d = len(pilot) - 1
    weight = float(sums[d, d])
    shift = sums[d] / weight if intercept else np.zeros(d + 2)
    central = sums - weight * np.outer(shift, shift)
    means = pilot + np.append(shift[:d], shift[d + 1])
    gram = np.ascontiguousarray(central[:d, :d])
    return Moments(
        gram,
        central[:d, d + 1].copy(),
        max(float(central[d + 1, d + 1]), 0.0),
        means[:d],
        float(means[d]),
        weight,
    )


def _second_moments(block: Block, pilot: np.ndarray) -> np.ndarray:
    """Return sum s_i a_i a_i^T, a = (x - pilot, 1, y - pilot)."""
    from assay.loops.moments import moments

    with np.errstate(invalid="ignore", over="ignore"):
        y = (block.y.reshape(-1, 1) - pilot[-1]).astype(np.float64)
        return moments(block.X, y, block.weight, pilot[:-1])

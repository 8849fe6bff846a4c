"""Lasso and elastic net whose penalty is chosen by cross-validation.

Claims: those of `ElasticNet` for the penalty chosen.
Method: one pass sums the second moments of each fold's hold-out rows; all rows less these are its training rows. A path
        of falling penalties then needs no rows, each fit starts at the one before, and the mean squared error on the
        hold-out rows is a quadratic form of their moments. Friedman, Hastie and Tibshirani 2010.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.exceptions import DataConversionWarning

from assay.base import fit_log, read_rows
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.guarantees.ledger import FIT_NOT_KEPT
from assay.linear_model._elastic_net import ElasticNet, Limits, centre, elastic_net_path, finite, minimise
from assay.linear_model._folds import Fold, check_weights, folded, in_memory, part, splits, splitter_routing
from assay.linear_model._least_squares_solver import pilot, second_moments
from assay.params import Positive, check, refuse
from assay.scan import Rows, thread_map
from assay.scan.memory import MemoryRows
from assay.theory.spaces import LinearFunctions

_SMALL = 1e-8  # of the targets' mean square: a smaller error is summed row by row, since its quadratic form cancels
_RESOLUTION = float(np.finfo(np.float64).resolution)


class _Alphas:
    """How many penalties to try, or which."""

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        if isinstance(value, Integral) and not isinstance(value, bool):
            if value < 1:
                raise refuse(owner, f"{name} must be an integer >= 1 or numbers >= 0; got {value!r}.")
            return value
        if value is None or isinstance(value, (str, bytes, Real)) or not len(value):
            raise refuse(owner, f"{name} must be an integer >= 1 or numbers >= 0; got {value!r}.")
        alpha: Any
        for place, alpha in enumerate(value):
            if not isinstance(alpha, Real):
                kind = type(alpha).__name__
                raise TypeError(f"{type(owner).__name__}: {name}[{place}] must be an instance of float, not {kind}.")
            if not float(alpha) >= 0:
                raise refuse(owner, f"{name}[{place}] == {alpha}, must be >= 0.0.")
        return value


class _Ratios:
    """A share of the L1 penalty, or several."""

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        shares: Any = np.atleast_1d(np.asarray(value, dtype=object))
        if not len(shares) or not all(isinstance(share, Real) and 0 <= float(share) <= 1 for share in shares):
            raise refuse(owner, f"{name} must be numbers in [0, 1], the shares of the L1 penalty; got {value!r}.")
        return value


class _Path(NamedTuple):
    """Mean squared error on a fold's hold-out rows for each penalty, and the sweeps and gap of a fit not converged."""

    errors: np.ndarray
    sweeps: int
    gap: float


@dataclass(eq=False, repr=False)
class ElasticNetCV(ElasticNet):
    """Elastic net with the penalty, and share of the L1 penalty, whose mean squared error on hold-out folds is least.

    Parameters
    ----------
    l1_ratio : float in [0, 1], or several
        Shares of the L1 penalty to try.
    eps : float > 0
        The least penalty of a path over its largest.
    alphas : int, or numbers >= 0
        How many penalties to try, falling geometrically from the least that makes every coefficient zero; or which.
    cv : None, int, splitter or folds
        None is 5 folds of consecutive rows.
    fit_intercept, precompute, max_iter, tol, copy_X, n_jobs, positive, random_state, selection : as of `ElasticNet`
    verbose : any
        Accepted.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
        The penalty chosen, and its share.
    mse_path_ : (n_alphas, n_folds) or (n_ratios, n_alphas, n_folds)
    alphas_ : (n_alphas,) or (n_ratios, n_alphas)
    coef_, intercept_, n_iter_, dual_gap_ : as of `ElasticNet`

    Examples
    --------
    >>> import numpy as np
    >>> from assay.linear_model import ElasticNetCV
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> model = ElasticNetCV(alphas=[0.01, 1.0]).fit(X, X[:, 0])
    >>> float(model.alpha_)
    0.01
    """

    card = Card(
        name="Elastic net, penalty chosen by cross-validation",
        task="regress",
        model=LinearFunctions(),
        strategy="squared loss + L1 + L2, chosen by hold-out folds",
        algorithm="coordinate descent on the second moments of each fold, along falling penalties",
        guarantee=("elastic-net.gap", "solution.enclosure"),
        role="named",
    )

    constraints: ClassVar = {"l1_ratio": _Ratios(), "eps": Positive(), "alphas": _Alphas()}

    alpha: float = field(default=1.0, init=False)
    _: KW_ONLY
    l1_ratio: Any = 0.5
    eps: float = 1e-3
    alphas: Any = 100
    precompute: Any = "auto"
    cv: Any = None
    verbose: Any = 0
    warm_start: bool = field(default=False, init=False)

    @with_callbacks
    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any
    ) -> "ElasticNetCV":
        """Fit to rows X and targets y: arrays, sparse, or a frame. With scikit-learn's routing `params` go to the
        splitter."""
        check(self)
        weights = None if isinstance(sample_weight, Real) else sample_weight
        rows = in_memory(self, read_rows(self, X, self._one_target(y), weights))
        folds = splits(self, X, y, weights, params)
        check_weights(self, rows.weight, folds)
        start = pilot(rows, bool(self.fit_intercept))
        whole = finite(self, rows, rows.sum(second_moments, start))
        moments = centre(whole, start, bool(self.fit_intercept))
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64))
        grids = [self._grid(moments, ratio) for ratio in ratios]
        with fit_log(self, 1, X, y) as log:
            self._check_precomputed(moments, rows.n_rows)
            ready = list(folded(rows, folds, whole, start))
            self._choose(rows, ready, start, ratios, grids)
            solution = minimise(moments, float(self.alpha_), float(self.l1_ratio_), self._limits)
            self._keep([solution.w], [solution.b], 1)
            self._keep_type(X)
            log.step(solution.gap, solution.gap, coef_=self.coef_, intercept_=self.intercept_)
        self.n_iter_, self.dual_gap_ = solution.sweeps, solution.gap
        if not solution.converged:
            self._warn_of_gap(solution.sweeps, solution.gap)
        several = len(ratios) > 1 and isinstance(self.alphas, Integral)
        self.alphas_ = np.asarray(grids) if several else grids[0]
        return self

    def _one_target(self, y: Any) -> Any:
        """Return the targets as one column."""
        shape = np.asarray(y).shape  # objects that are no arrays may refuse np.shape
        if len(shape) < 2:
            return y
        if shape[1] > 1:
            raise refuse(self, f"For multi-task outputs, use MultiTask{type(self).__name__}")
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. It is flattened; pass y.ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        return np.ravel(y)

    def _check_precomputed(self, moments: Any, n_rows: int) -> None:
        if not isinstance(self.precompute, str) or self.precompute != "auto":
            super()._check_precomputed(moments, n_rows)

    def _grid(self, moments: Any, ratio: float) -> np.ndarray:
        """Return the penalties to try, largest first."""
        if not isinstance(self.alphas, Integral):
            return np.sort(np.asarray(self.alphas, dtype=np.float64))[::-1]
        if ratio == 0:
            raise refuse(
                self, "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid by "
                "providing your estimator with the appropriate `alphas=` argument.",
            )  # fmt: skip
        pulls = moments.cross if self.positive else np.abs(moments.cross)
        top = max(float(pulls.max()), 0.0) / (moments.weight * ratio)
        if top <= _RESOLUTION:
            return np.full(self.alphas, _RESOLUTION)
        return np.geomspace(top, top * self.eps, num=self.alphas)

    def _choose(
        self, rows: MemoryRows, folds: list[Fold], start: np.ndarray, ratios: np.ndarray, grids: list[np.ndarray]
    ) -> None:
        """Keep the errors of all paths, and the penalty and share of the least mean."""
        jobs = [(fold, ratio, grid) for ratio, grid in zip(ratios, grids, strict=True) for fold in folds]

        def work(job: tuple[Fold, float, np.ndarray]) -> _Path:
            fold, ratio, grid = job
            return _errors(rows, fold, start, grid, float(ratio), self._limits, bool(self.fit_intercept))

        paths = thread_map(work, jobs, n_jobs=rows.n_jobs)
        errors = np.array([path.errors for path in paths]).reshape(len(ratios), len(folds), -1)
        self.mse_path_ = np.squeeze(np.moveaxis(errors, 2, 1))
        means = errors.mean(axis=1)
        which = int(means.min(axis=1).argmin())
        self.l1_ratio_, self.alpha_ = ratios[which], grids[which][means[which].argmin()]
        short = max(paths, key=lambda path: path.gap)
        if short.gap:
            self._warn_of_gap(short.sweeps, short.gap)

    @property
    def _fitted_alpha(self) -> float:
        return float(self.alpha_)

    @property
    def _fitted_ratio(self) -> float:
        return float(self.l1_ratio_)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and, with an L2 penalty, the distance to the exact optimum."""
        if hasattr(self, "alpha_"):
            yield from super().facts(rows)
        else:  # a file has what the model predicts with, not what was chosen
            yield NotApplicable("duality-gap", FIT_NOT_KEPT)

    def get_metadata_routing(self) -> Any:
        """Return which metadata `fit` hands to the splitter."""
        return splitter_routing(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


@dataclass(eq=False, repr=False)
class LassoCV(ElasticNetCV):
    """Lasso with the penalty whose mean squared error on hold-out folds is least.

    Parameters and attributes are those of `ElasticNetCV` without the share of the L1 penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.linear_model import LassoCV
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> model = LassoCV().fit(X, X[:, 0])
    >>> model.coef_.round(2).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """

    card = Card(
        name="Lasso, penalty chosen by cross-validation",
        task="regress",
        model=LinearFunctions(),
        strategy="squared loss + L1, chosen by hold-out folds",
        algorithm="coordinate descent on the second moments of each fold, along falling penalties",
        guarantee=("elastic-net.gap",),
        role="named",
    )
    l1_ratio: Any = field(default=1.0, init=False)
    verbose: Any = False

    @staticmethod
    def path(X: Any, y: Any, **settings: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[override]
        """Return alphas, coefficients (d, n_alphas) and gaps of the lasso without an intercept."""
        solution = elastic_net_path(X, y, l1_ratio=1.0, fit_intercept=False, **settings)
        return solution.alphas, solution.coefs, solution.gaps


def _errors(
    rows: MemoryRows, fold: Fold, start: np.ndarray, grid: np.ndarray, ratio: float, limits: Limits, intercept: bool
) -> _Path:
    """Return the errors of a path of fits to a fold's training rows."""
    moments = centre(fold.train_moments, start, intercept)
    d, w, sweeps, gap = len(start) - 1, None, 0, 0.0
    table = np.empty((d + 2, len(grid)))
    for a, alpha in enumerate(grid):
        solution = minimise(moments, float(alpha), ratio, limits, w)
        w = solution.w
        table[:d, a], table[d, a], table[d + 1, a] = -w, start[d] - solution.b - w @ start[:d], 1.0
        if not solution.converged and solution.gap > gap:
            sweeps, gap = solution.sweeps, solution.gap
    held = fold.test_moments
    errors = np.einsum("ja,ja->a", table, held @ table) / held[d, d]
    doubtful = np.flatnonzero(~(errors > _SMALL * held[d + 1, d + 1] / held[d, d]))
    if len(doubtful):
        errors[doubtful] = _by_rows(part(rows, fold.test), start, table[:, doubtful])
    return _Path(errors, sweeps, gap)


def _by_rows(rows: MemoryRows, start: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the weighted mean of the squared errors of coefficients (-w, -b, 1) about the pilot, from the rows."""
    total = np.zeros(table.shape[1])
    weights = 0.0
    for block in rows.blocks():
        residual = (block.X - start[:-1]) @ table[:-2] + table[-2] + (np.reshape(block.y, (-1, 1)) - start[-1])
        weight = np.ones(len(residual)) if block.weight is None else block.weight
        total += weight @ residual**2
        weights += float(weight.sum())
    return total / weights

"""Gaussian mixtures, fitted by EM, and one Gaussian, by maximum likelihood.

    maximise over w, m, S    sum_i s_i ln sum_k w_k N(x_i; m_k, S_k)

Claims: the log-likelihood of the parameters returned; that no M step gains more than a stated amount, and no other
        weights of these components; and for small problems that no step from the start lowered the likelihood.
Method: EM, each step one pass over the rows. A row costs O(k d^2) ("full"), O(d^2 + k d) ("tied") or O(k d).

One Gaussian, whose rows may have missing entries:

    p(x) = (2 pi)^(-d/2) |S|^(-1/2) exp(-(x - m)' S^-1 (x - m) / 2)

With complete rows the mean and covariance of the rows are the maximum. Where entries are missing (NaN), at random given
the others, the E step puts in their place what the others predict, E[x_u | x_o] = m_u + S_uo S_oo^-1 (x_o - m_o), and
adds the covariance of that guess, S_uu - S_uo S_oo^-1 S_ou, to the second moments; the likelihood that never falls is
that of the observed entries (Little and Rubin, Statistical Analysis with Missing Data, section 8.2).

Claims: as for mixtures, of one component. With missing entries there is no certificate: its rows must be complete.
"""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.special import softmax
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from assay.base import fit_log, read_rows, require_finite
from assay.card import Card
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.mixture._components import (
    _SINGULAR,
    CONSTRAINTS,
    LOG_2PI,
    Components,
    GaussianProblem,
    components,
    single,
)
from assay.mixture._density import GaussianEstimator, attributes
from assay.optim.em import Expected, Found, em
from assay.params import Choice, Count, Flag, Maybe, Number, check, refuse
from assay.prototypes import PrototypeMixin
from assay.scan import Rows, one_blas_thread

_KINDS = {"full": "tied", "diag": "diag", "spherical": "spherical"}  # one component: a matrix is shared by all


@dataclass(eq=False, repr=False)
class GaussianMixture(PrototypeMixin, GaussianEstimator):
    """A mixture of Gaussians: a density, and a clustering of rows by their most probable component.

    Parameters
    ----------
    n_components : int >= 1
    covariance_type : "full", "tied", "diag" or "spherical"
        A covariance for each component; one for all; variances of the columns; one variance.
    tol : float >= 0
        In nats per row. After a step that gains less, one more is made and EM ends.
    reg_covar : float >= 0
        Added to the diagonal of every covariance. Above 0 the M step is not exact, and the likelihood may fall.
    max_iter : int >= 0
        Steps of EM allowed; 0 keeps the start.
    n_init : int >= 1
        Starts; the largest likelihood is kept.
    init_params : "kmeans", "k-means++", "random" or "random_from_data"
        Start from centres (rows go to the nearest), or from random shares of the components in each row.
    weights_init (k,), means_init (k, d), precisions_init
        The start, or a part of it; inverse covariances in the shape of `covariances_`.
    assignment : "soft" or "hard"
        "hard" gives each row to its most probable component alone: hard EM, which maximises the likelihood of rows and
        components together.
    random_state : int, RandomState or None
    warm_start : bool
        Begin where the last fit ended.
    verbose, verbose_interval : int
        Print a line for each start (1), and one for every `verbose_interval` steps (2).
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    weights_ (k,), means_ (k, d), covariances_, precisions_, precisions_cholesky_
    converged_ : bool
        Whether a step gained less than `tol`.
    n_iter_ : int
        Steps of the start that was kept.
    lower_bound_ : float
        Mean log-likelihood per row of the parameters returned.
    lower_bounds_ : list of float
        The same at the start and after each step.
    restarts_ : int
        How often a component had shrunk to a point, or lost all rows, and began afresh.
    reg_covar_ : float
        What was added to the variances: `reg_covar`, or more if components kept shrinking to points.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.mixture import GaussianMixture
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> np.sort(model.means_[:, 0]).round(6).tolist()
    [1.0, 10.0]
    >>> bool(model.predict([[0.0, 0.0]])[0] != model.predict([[12.0, 3.0]])[0])
    True
    """

    further_loops = tuple(
        {"n_components": 2, "covariance_type": kind} for kind in ("full", "tied", "diag", "spherical")
    )
    card = Card(
        name="Gaussian mixture",
        task="density",
        model="densities sum_k w_k N(x; m_k, S_k)",
        strategy="log-likelihood of the rows",
        algorithm="EM, one pass over the rows for each step",
        guarantee=("density.log-likelihood", "em.stationary", "em.weights", "em.monotone"),
    )

    constraints: ClassVar = {
        **CONSTRAINTS,
        "max_iter": Count(low=0),
        "assignment": Choice("soft", "hard"),
        "warm_start": Flag,
        "verbose": Maybe(Count(low=0), True, False),
        "verbose_interval": Count(),
    }

    n_components: int = 1
    _: KW_ONLY
    covariance_type: str = "full"
    tol: float = 1e-3
    reg_covar: float = 1e-6
    max_iter: int = 100
    n_init: int = 1
    init_params: str = "kmeans"
    weights_init: Any = None
    means_init: Any = None
    precisions_init: Any = None
    assignment: str = "soft"
    random_state: Any = None
    warm_start: bool = False
    verbose: int = 0
    verbose_interval: int = 10
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "GaussianMixture":
        """Fit to rows X; they may be arrays, a frame, Parquet files or a Dask collection. y is not used."""
        check(self)
        rows = read_rows(self, X, y, sample_weight).kept()
        require_finite(rows, self)
        enough(self, rows, self.n_components)
        again = self.warm_start and hasattr(self, "weights_")
        random = check_random_state(self.random_state)
        best: tuple[Found, Components, int, float] | None = None
        with fit_log(self, self.max_iter * self.n_init, X, None, sample_weight) as log, one_blas_thread():
            problem = GaussianProblem(
                rows, self.covariance_type, self.reg_covar, hard=self.assignment == "hard", name=type(self).__name__
            )
            with log.keeping():
                for turn in range(1 if again else self.n_init):
                    problem.restarts, problem.reg_covar = 0, float(self.reg_covar)
                    start = self.components_ if again else components(self, problem, self.n_components, random)
                    result = self._run(problem, start, log, turn)
                    if best is None or result.log_likelihood > best[0].log_likelihood:
                        best = result, start, problem.restarts, problem.reg_covar
                    if log.stopped:
                        break
            if best is None:
                raise KeyboardInterrupt
            self._finish(*best, log)
        return self

    def _run(self, problem: GaussianProblem, start: Components, log: FitLog, turn: int) -> Found:
        """Run EM from one start, log its steps, and say what came of it."""
        steps = 0

        def watch(parameters: Components, value: float, gain: float) -> bool:
            nonlocal steps
            steps += 1
            if self.verbose >= 2 and steps % self.verbose_interval == 0:
                print(
                    f"{type(self).__name__}: start {turn + 1}, step {steps}: {value:.10g} nats per row, gain {gain:.3g}"
                )
            return log.step(-value, abs(gain), **attributes(parameters))

        solution = em(problem, start, tol=self.tol, max_iter=self.max_iter, watch=watch, keeping=log.keeping())
        if self.verbose:
            end = "converged" if solution.converged else "not converged"
            print(
                f"{type(self).__name__}: start {turn + 1} of {self.n_init}: {solution.log_likelihood:.10g} nats per "
                f"row after {solution.n_iter} steps, {end}"
            )
        return solution

    def _finish(self, result: Found, start: Components, restarts: int, reg_covar: float, log: FitLog) -> None:
        if not np.isfinite(result.log_likelihood):
            raise refuse(self, "the entries are too large or too far apart; their squares overflow. Scale the columns.")
        if not log.history:
            log.step(-result.log_likelihood, 0.0, **attributes(result.parameters))
        self._keep(result.parameters)
        self.converged_, self.n_iter_ = result.converged, result.n_iter
        self.lower_bound_, self.lower_bounds_ = result.log_likelihood, result.history
        self.restarts_, self.reg_covar_ = restarts, reg_covar
        self.start_ = {"weights": start.weights, "means": start.means, "factors": start.factors}
        if not result.converged and self.max_iter and not log.stopped:
            gain = result.history[-1] - result.history[-2]
            warnings.warn(
                f"{type(self).__name__}: stopped after max_iter={self.max_iter} steps, the last of which still gained "
                f"{gain:.3g} nats per row (tol={self.tol:g}). Best performing initialization did not converge. Try "
                "different init parameters, or increase max_iter, tol, or check for degenerate data.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the most probable component of each row."""
        return self.fit(X, y, sample_weight).predict(X)

    @property
    def prototypes_(self) -> np.ndarray:
        """The means. `cells` gives the nearest of them, `predict` the most probable component."""
        return self.means_

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable component of each row."""
        return np.concatenate(self._source(X).map(_best, self.components_))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each component given the row: w_k N(x; m_k, S_k) over their sum."""
        return np.concatenate(self._source(X).map(_posterior, self.components_))


def enough(owner: Any, rows: Rows, n_components: int) -> None:
    """Refuse fewer rows than components, or a single row, which has no spread."""
    needed = max(2, n_components)
    if rows.n_rows < needed:
        raise refuse(
            owner,
            f"Expected n_samples >= n_components, and at least {needed} rows; got n_components = {n_components} and "
            f"n_samples = {rows.n_rows}.",
        )


def _best(block: Block, at: Components) -> np.ndarray:
    return at.log_joint(block.X).argmax(axis=1)


def _posterior(block: Block, at: Components) -> np.ndarray:
    return softmax(at.log_joint(block.X), axis=1)


@dataclass(eq=False, repr=False)
class GaussianDensity(GaussianEstimator):
    """A Gaussian fitted to rows, some of whose entries may be missing.

    Parameters
    ----------
    covariance_type : "full", "diag" or "spherical"
        A covariance; variances of the columns; one variance.
    reg_covar : float >= 0
        Added to the variances; 0 is maximum likelihood.
    tol : float >= 0
        Only with missing entries, in nats per row: after a step of EM that gains less, one more is made and EM ends.
    max_iter : int >= 1
        Only with missing entries: steps of EM allowed.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    mean_ : (n_features,)
    covariance_ : (n_features, n_features)
    n_iter_ : int
        Steps of EM; 1 if no entry is missing.
    lower_bound_ : float
        Mean log-likelihood per row, of the observed entries.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.mixture import GaussianDensity
    >>> model = GaussianDensity(reg_covar=0.0).fit([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> model.mean_.tolist(), model.covariance_.tolist()
    ([1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> bool(np.isclose(np.exp(model.score_samples([[1.0, 1.0]])[0]), 1 / (2 * np.pi)))
    True
    """

    card = Card(
        name="Gaussian density",
        task="density",
        model="Gaussian densities N(x; m, S)",
        strategy="log-likelihood of the observed entries",
        algorithm="mean and covariance; with missing entries EM",
        guarantee=("density.log-likelihood", "em.stationary", "em.weights"),
    )

    constraints: ClassVar = {
        "covariance_type": Choice(*_KINDS),
        "reg_covar": Number(low=0.0, why="it is added to variances"),
        "tol": Number(low=0.0),
        "max_iter": Count(),
    }

    _: KW_ONLY
    covariance_type: str = "full"
    reg_covar: float = 1e-6
    tol: float = 1e-8
    max_iter: int = 1000
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "GaussianDensity":
        """Fit to rows X, in which NaN stands for a missing entry; y is not used."""
        check(self)
        kind, reg = self.covariance_kind_, float(self.reg_covar)
        rows = read_rows(self, X, y, sample_weight)
        enough(self, rows, 1)
        missing = int(rows.sum(_missing))
        with fit_log(self, self.max_iter if missing else 1, X, None, sample_weight) as log:
            if missing:
                self._fit_gaps(rows, kind, log)
            else:
                require_finite(rows, self)
                problem = GaussianProblem(rows, kind, reg, name=type(self).__name__)
                result = single(kind, problem.center, problem.scatter / problem.total, reg)
                self._usable(result)
                self.n_iter_, self.lower_bound_ = 1, problem.log_likelihood(result)
                log.step(-self.lower_bound_, 0.0, **attributes(result))
                self._keep(result)
            self.reg_covar_ = reg
        if not np.isfinite(self.lower_bound_):
            raise refuse(self, "the entries are too large; their squares overflow. Scale the columns.")
        return self

    def _usable(self, result: Components) -> None:
        if np.isnan(result.factors).any():
            raise refuse(self, _SINGULAR)

    def _fit_gaps(self, rows: Rows, kind: str, log: FitLog) -> None:
        problem = GapProblem(rows, kind, self.reg_covar, self)

        def watch(parameters: Components, value: float, gain: float) -> bool:
            return log.step(-value, abs(gain), **attributes(parameters))

        start, keeping = problem.start(), log.keeping()
        solution = em(problem, start, tol=self.tol, max_iter=self.max_iter, watch=watch, keeping=keeping)
        self._keep(solution.parameters)
        self.n_iter_, self.lower_bound_ = solution.n_iter, solution.log_likelihood
        if not solution.converged and not log.stopped:
            gain = solution.history[-1] - solution.history[-2]
            warnings.warn(
                f"{type(self).__name__}: stopped after max_iter={self.max_iter} steps, the last of which still gained "
                f"{gain:.3g} nats per row (tol={self.tol:g}); raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )

    @property
    def covariance_kind_(self) -> str:
        """The kind of the covariance: that of a mixture of one component."""
        return _KINDS[self.covariance_type]

    @property
    def mean_(self) -> np.ndarray:
        """The mean, (n_features,)."""
        return self.means_[0]

    @property
    def covariance_(self) -> np.ndarray:
        """The covariance, (n_features, n_features), whatever its kind."""
        return np.array(self.components_.each(self.covariances_)[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


# Missing entries ----------------------------------------------------------------------------------------------
class GapSums(NamedTuple):
    """Weight of the rows, and expected sums of x - center and of (x - center)(x - center)'."""

    weight: float
    linear: np.ndarray
    square: np.ndarray


class GapProblem:
    """Rows with missing entries, as EM sees them (`optim.em.LatentModel`); log-likelihoods are per row."""

    def __init__(self, rows: Rows, kind: str, reg_covar: float, owner: Any):
        self.rows, self.kind, self.reg_covar, self.owner = rows, kind, reg_covar, owner
        self.exact = reg_covar == 0
        seen, linear, square, self.total = rows.sum(_observed, np.zeros(rows.n_features))
        if not np.isfinite(linear).all():
            raise refuse(owner, "Input X contains infinity or a value too large.")
        if seen.min() <= 0:
            raise refuse(owner, f"column {int(np.argmin(seen))} (counted from 0) has no entry at all.")
        mean = linear / seen
        seen, linear, square, _ = rows.sum(_observed, mean)
        self.center, self.variances = mean + linear / seen, square / seen - (linear / seen) ** 2

    def start(self) -> Components:
        """Return the means and variances of the entries that are there."""
        return self._made(self.center, np.diag(self.variances))

    def e_step(self, parameters: Components) -> Expected:
        S = parameters.each(parameters.covariances)[0]
        value, *sums = self.rows.sum(_fill_gaps, parameters.means[0], S)
        return Expected(float(value) / self.total, (parameters.means[0], GapSums(*sums)))

    def log_likelihood(self, parameters: Components) -> float:
        return self.e_step(parameters).log_likelihood

    def m_step(self, statistics: tuple[np.ndarray, GapSums]) -> Components:
        center, sums = statistics
        shift = sums.linear / sums.weight
        return self._made(center + shift, sums.square / sums.weight - np.outer(shift, shift))

    def _made(self, mean: np.ndarray, covariance: np.ndarray) -> Components:
        result = single(self.kind, mean, covariance, self.reg_covar)
        if np.isnan(result.factors).any():
            raise refuse(self.owner, _SINGULAR)
        return result


def _missing(block: Block) -> int:
    return int(np.isnan(block.X).sum())


def _observed(block: Block, center: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return for each column the weight, sum and sum of squares of the entries that are there."""
    weight = np.ones(len(block.X)) if block.weight is None else block.weight
    there = ~np.isnan(block.X)
    apart = np.where(there, block.X - center, 0.0)
    return weight @ there, weight @ apart, weight @ apart**2, float(weight.sum())


def _fill_gaps(block: Block, mean: np.ndarray, S: np.ndarray) -> tuple[float, float, np.ndarray, np.ndarray]:
    """Return the log-likelihood of the observed entries, and the expected sums of the complete rows about the mean.

    Rows with the same entries missing are taken together.
    """
    d = len(mean)
    weight = np.ones(len(block.X)) if block.weight is None else block.weight
    patterns, which = np.unique(np.isnan(block.X), axis=0, return_inverse=True)
    value, linear, square = 0.0, np.zeros(d), np.zeros((d, d))
    for number_of, gone in enumerate(patterns):
        own = which.ravel() == number_of
        s, seen = weight[own], ~gone
        full = np.zeros((int(own.sum()), d))
        if seen.any():
            apart = block.X[np.ix_(own, seen)] - mean[seen]
            lower = cholesky(S[np.ix_(seen, seen)], lower=True)
            z = solve_triangular(lower, apart.T, lower=True)
            logs = -0.5 * (z**2).sum(axis=0) - np.log(np.diag(lower)).sum() - 0.5 * int(seen.sum()) * LOG_2PI
            value += float(s @ logs)
            full[:, seen] = apart
            if gone.any():
                full[:, gone] = apart @ cho_solve((lower, True), S[np.ix_(seen, gone)])
        linear += s @ full
        square += (full * s[:, None]).T @ full
        if gone.any():
            guess = S[np.ix_(gone, gone)]
            if seen.any():
                cross = S[np.ix_(seen, gone)]
                guess = guess - cross.T @ cho_solve(cho_factor(S[np.ix_(seen, seen)], lower=True), cross)
            square[np.ix_(gone, gone)] += float(s.sum()) * guess
    return value, float(weight.sum()), linear, square

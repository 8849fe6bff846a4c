"""A generative classifier: a Gaussian mixture for each class.

    P(c | x) = P(c) p(x | c) / sum_l P(l) p(x | l),   p(x | c) a mixture of Gaussians

With one component per class it is quadratic discriminant analysis.

Claims: for each class, that its mixture is near a fixed point of EM and its weights are near the best.
Method: EM for each class on its own rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from assay import scan
from assay.base import Learner, fit_log, label_classes, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Scores
from assay.guarantees.ledger import FIT_NOT_KEPT
from assay.mixture._components import CONSTRAINTS, Components, GaussianProblem, components, covariances_of
from assay.mixture._density import bounded, stationary
from assay.optim.em import Found, em
from assay.params import check, refuse
from assay.scan import Rows
from assay.theory.spaces import Space, Unbounded


class MixtureBoundaries:
    """The family of classifiers that compare mixtures of Gaussians."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        return Unbounded(
            "classifiers by mixtures with any number of components, which can separate any distinct points"
        )

    def __str__(self) -> str:
        return "argmax_c P(c) sum_k w_ck N(x; m_ck, S_ck)"


@dataclass(eq=False, repr=False)
class GaussianMixtureClassifier(ClassifierMixin, Learner):
    """The Bayes rule of classes that are mixtures of Gaussians.

    Parameters
    ----------
    n_components : int >= 1
        Components of each class.
    covariance_type, tol, reg_covar, max_iter, n_init, init_params, random_state
        Of the mixture of each class; see `GaussianMixture`.
    priors : (n_classes,) or None
        Class probabilities; None takes the shares of the rows.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, priors_ : (n_classes,)
    component_class_ : (n_classes * n_components,)
        Position in `classes_` of the class that a component belongs to.
    reg_covar_ : (n_classes,)
        What was added to the variances of each class.
    weights_ (n_classes * n_components,), means_, covariances_, precisions_cholesky_
        The components of all classes, one after the other; weights sum to 1 in each class, covariances are matrices.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.mixture import GaussianMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> GaussianMixtureClassifier(n_components=1).fit(X, y).score(X, y)
    0.98
    """

    family = "mixture.classifier"
    figure = "components"
    constraints: ClassVar = CONSTRAINTS

    further_loops = ({"n_components": 2, "covariance_type": "full"},)
    card = Card(
        name="Classifier by Gaussian mixtures",
        task="classify",
        model=MixtureBoundaries(),
        strategy="log-likelihood of the rows of each class",
        algorithm="EM for each class",
        guarantee=("em.stationary", "em.weights"),
    )

    n_components: int = 1
    _: KW_ONLY
    covariance_type: str = "full"
    tol: float = 1e-3
    reg_covar: float = 1e-6
    max_iter: int = 100
    n_init: int = 1
    init_params: str = "kmeans"
    priors: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    weights_init = means_init = precisions_init = None  # the start of every class is found in its rows

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "GaussianMixtureClassifier":
        """Fit to rows X and labels y; X may be arrays, a frame, Parquet files or a Dask collection."""
        check(self)
        rows = read_rows(self, X, y, sample_weight)
        require_finite(rows, self)
        self.classes_ = label_classes(self, rows)
        rows = rows.encoded(self.classes_)
        K = len(self.classes_)
        starts, masses, counts = (np.array(part) for part in zip(*rows.map(_class_sizes, K)))
        before = (np.cumsum(counts, axis=0) - counts).T.tolist()
        masses, counts = masses.sum(axis=0), counts.sum(axis=0)
        if counts.min() < max(2, self.n_components):
            few = self.classes_[int(np.argmin(counts))]
            raise refuse(self, f"each class needs 2 rows, and one for each component; class {few} has {counts.min()}.")
        self.priors_ = self._priors(masses)
        random = check_random_state(self.random_state)
        with fit_log(self, self.max_iter * self.n_init, X, y, sample_weight) as log, scan.one_blas_thread():
            own = [ClassRows(rows, k, int(counts[k]), dict(zip(starts.tolist(), before[k]))) for k in range(K)]
            result, added = zip(*(self._mixture(part, random, log) for part in own))
            self.reg_covar_ = np.array(added)
            self._keep(
                [item.parameters for item in result],
                log,
                float(self.priors_ @ [item.log_likelihood for item in result]),
            )
        self.n_iter_, self.converged_ = max(item.n_iter for item in result), all(item.converged for item in result)
        return self

    def _priors(self, masses: np.ndarray) -> np.ndarray:
        if self.priors is None:
            if masses.min() <= 0:
                raise refuse(self, f"class {self.classes_[int(np.argmin(masses))]} has no row of a weight above 0.")
            return masses / masses.sum()
        priors = np.asarray(self.priors, dtype=np.float64)
        if priors.shape != masses.shape or not (priors > 0).all() or abs(priors.sum() - 1) > 1e-6:
            raise refuse(self, f"priors must be {len(masses)} numbers > 0 that sum to 1; got {self.priors!r}.")
        return priors / priors.sum()

    def _mixture(self, rows: Rows, random: np.random.RandomState, log: FitLog) -> tuple[Found, float]:
        """Return the best mixture of one class, and what was added to its variances.

        Ctrl-C ends the run at its last whole step; classes that are left get one step from their start.
        """
        problem = GaussianProblem(rows, self.covariance_type, self.reg_covar, name=type(self).__name__)
        runs = []
        for _ in range(self.n_init):
            problem.restarts, problem.reg_covar = 0, float(self.reg_covar)
            start = components(self, problem, self.n_components, random)
            steps = 1 if log.stopped else self.max_iter
            solution = em(problem, start, tol=self.tol, max_iter=steps, keeping=log.keeping())
            runs.append((solution, problem.reg_covar))
            if log.stopped:
                break
        return max(runs, key=lambda run: run[0].log_likelihood)

    def _keep(self, parts: list[Components], log: FitLog, value: float) -> None:
        k = self.n_components
        fitted = {
            "component_class_": np.repeat(np.arange(len(parts)), k),
            "weights_": np.concatenate([part.weights for part in parts]),
            "means_": np.concatenate([part.means for part in parts]),
            "precisions_cholesky_": np.concatenate([part.each(part.factors) for part in parts]),
        }
        log.step(-value, 0.0, **fitted)
        for name, model in fitted.items():
            setattr(self, name, model)

    def _part(self, code: int) -> Components:
        """Return the mixture of one class, with matrices."""
        own = self.component_class_ == code
        return Components("full", self.weights_[own], self.means_[own], np.empty(0), self.precisions_cholesky_[own])

    @property
    def covariances_(self) -> np.ndarray:
        """The covariance matrix of each component, (n_classes * n_components, d, d)."""
        return covariances_of("full", self.precisions_cholesky_)

    def _restricted(self, code: int) -> Components:
        """Return the mixture of one class in the shapes of its covariance type."""
        whole, kind = self._part(code), self.covariance_type
        if kind == "full":
            return whole
        if kind == "tied":
            return whole._replace(kind=kind, factors=whole.factors[0])
        scales = np.diagonal(whole.factors, axis1=1, axis2=2)
        return whole._replace(kind=kind, factors=scales[:, 0] if kind == "spherical" else scales)

    @property
    def _parts(self) -> list[Components]:
        return [self._part(code) for code in range(len(self.classes_))]

    def log_joint(self, X: Any) -> np.ndarray:
        """Return ln P(c) + ln p(x | c) for each class, (n, n_classes)."""
        check_is_fitted(self)
        source = scan.rows(validate_data(self, X, reset=False, dtype=np.float64), n_jobs=self.n_jobs)
        return np.concatenate(source.map(_scores, self._parts, np.log(self.priors_)))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return log posterior odds of the second class (n,), or `log_joint` (n, n_classes)."""
        scores = self.log_joint(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable label of each row."""
        best = self.log_joint(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, n_classes)."""
        return softmax(self.log_joint(X), axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        scores = self.log_joint(X)
        return scores - logsumexp(scores, axis=1, keepdims=True)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return rows drawn from the fitted classes, (n_samples, n_features), and their labels."""
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise refuse(self, f"n_samples must be an integer >= 1; got {n_samples!r}.")
        random = check_random_state(random_state)
        chances = self.weights_ * self.priors_[self.component_class_]
        drawn = random.choice(len(chances), size=int(n_samples), p=chances / chances.sum())
        X = np.empty((int(n_samples), self.means_.shape[1]))
        for k, (mean, covariance) in enumerate(zip(self.means_, self.covariances_)):
            X[drawn == k] = random.multivariate_normal(mean, covariance, size=int(np.sum(drawn == k)))
        return X, self.classes_[self.component_class_[drawn]]

    # What a certificate asks ------------------------------------------------------------------------------------

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield for each class how little a step of EM, or other weights, would gain."""
        if self._from_file:
            yield NotApplicable("em.stationary", FIT_NOT_KEPT)
            return
        for code in range(len(self.classes_)):
            yield from stationary(self._restricted(code), rows, float(self.reg_covar_[code]), code)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores."""
        yield Scores(_bounded_scores, (self._parts, np.log(self.priors_), rows.largest_entries), logistic=True)


def _scores(block: Block, parts: list[Components], priors: np.ndarray) -> np.ndarray:
    return np.stack([logsumexp(part.log_joint(block.X), axis=1) for part in parts], axis=1) + priors


def _bounded_scores(
    block: Block, parts: list[Components], priors: np.ndarray, largest: Any
) -> tuple[np.ndarray, float]:
    results = [bounded(block, part, largest) for part in parts]
    scores = np.stack([values for values, _ in results], axis=1) + priors
    errors = max(float(errors.max()) for _, errors in results) + 64 * 2.0**-53 * float(np.abs(scores).max() + 16)
    return scores, 2 * errors


def _class_sizes(block: Block, n_classes: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the number of the block's first row, and weight and number of its rows of each class."""
    counts = np.bincount(block.y, minlength=n_classes)
    masses = np.bincount(block.y, weights=block.weight, minlength=n_classes).astype(np.float64)
    return block.start, masses, counts


class ClassRows(Rows):
    """The rows of one class, picked block by block on the way to the statistic.

    `before` holds, for the first row of each block, how many rows of the class come before it: rows of the class are
    numbered among themselves, so that which of them a sample takes does not depend on the borders of blocks.
    """

    def __init__(self, rows: Rows, code: int, n_rows: int, before: dict[int, int]):
        self.rows, self.code, self.n_rows, self.before = rows, code, n_rows, before
        self.n_features, self.feature_names = rows.n_features, rows.feature_names
        self.n_jobs, self.has_y, self.has_weight = rows.n_jobs, rows.has_y, rows.has_weight

    def sum(self, statistic: Callable[..., Any], *parameters: Any) -> Any:
        return self.rows.sum(_on_class, self.code, self.before, statistic, *parameters)

    def map(self, function: Callable[..., Any], *parameters: Any) -> list[Any]:
        result = self.rows.map(_on_rows_of_class, self.code, self.before, function, *parameters)
        return [item for item in result if item is not None]

    def collect(self, consume: Callable[[int, Any], None], function: Callable[..., Any], *parameters: Any) -> None:
        def take(start: int, result: Any) -> None:
            if result is not None:
                consume(self.before[start], result)

        self.rows.collect(take, _on_rows_of_class, self.code, self.before, function, *parameters)

    def blocks(self) -> Iterator[Block]:
        for block in self.rows.blocks():
            part = _picked(block, self.code, self.before)
            if len(part.X):
                yield part


def _picked(block: Block, code: int, before: dict[int, int]) -> Block:
    own = block.y == code
    weight = None if block.weight is None else block.weight[own]
    return Block(np.ascontiguousarray(block.X[own]), block.y[own], weight, before[block.start])


def _on_class(block: Block, code: int, before: dict[int, int], statistic: Callable[..., Any], *parameters: Any) -> Any:
    return statistic(_picked(block, code, before), *parameters)


def _on_rows_of_class(
    block: Block, code: int, before: dict[int, int], function: Callable[..., Any], *parameters: Any
) -> Any:
    part = _picked(block, code, before)
    return function(part, *parameters) if len(part.X) else None

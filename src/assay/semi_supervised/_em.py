"""Expectation and maximisation with rows of which some have labels (Nigam, McCallum, Thrun and Mitchell 2000).

    maximise   sum over labelled rows of ln p(x, y)  +  weight * sum over the others of ln p(x),   p(x) = sum_c p(x, c)

A row with a label belongs to its class; one without is shared among the classes as they are estimated so far.

Claims: what hold-out rows say; of `MultinomialEM`, which is linear, also what the size of that class says from the
        labelled rows. EM itself reaches a stationary point, which unlabelled rows choose: no claim is made about it.
Method: EM (`optim.em`) from the estimates of the labelled rows; the objective never falls.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state

from assay import scan
from assay.base import fit_log
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import part_of_a_fit
from assay.linear_model import LogisticRegression
from assay.linear_model._base import LinearClassifier
from assay.messages import Message
from assay.mixture import GaussianMixtureClassifier
from assay.mixture._components import Components, GaussianProblem, weighted_sums
from assay.optim.em import Expected, em
from assay.params import Count, Number, Positive, check, refuse
from assay.scan import Rows
from assay.semi_supervised._labels import Given, SemiSupervised
from assay.theory.spaces import Linear


def _weights(given: Given, weight: float) -> np.ndarray:
    """Return the weight of each row: its own, times `weight` if it has no label."""
    own = np.ones(len(given.codes)) if given.weight is None else given.weight
    return own * np.where(given.known, 1.0, weight)


class Counts(NamedTuple):
    """ln P(c) (classes,) and ln P(word | c) (classes, d)."""

    priors: np.ndarray
    words: np.ndarray


class MultinomialProblem:
    """Rows of counts, as EM sees them; the objective includes the prior that `alpha` stands for."""

    exact = True

    def __init__(self, rows: Rows, alpha: float, n_classes: int):
        self.rows, self.alpha, self.n_classes = rows, alpha, n_classes

    def e_step(self, parameters: Counts) -> Expected:
        value, masses, sums = self.rows.sum(_shared_counts, parameters.priors, parameters.words)
        return Expected(float(value) + self.alpha * float(parameters.words.sum()), (masses, sums))

    def m_step(self, statistics: tuple[np.ndarray, np.ndarray]) -> Counts:
        masses, sums = statistics
        sums = sums + self.alpha
        return Counts(np.log(masses / masses.sum()), np.log(sums) - np.log(sums.sum(axis=1, keepdims=True)))

    def log_likelihood(self, parameters: Counts) -> float:
        return self.e_step(parameters).log_likelihood


def _shared_counts(block: Block, priors: np.ndarray, words: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the log-likelihood of a block, and the mass and the counts of each class."""
    joint = _held(priors + block.X @ words.T, block.y, np.arange(len(priors)))
    values = logsumexp(joint, axis=1)
    weight = np.asarray(block.weight)
    shares = np.exp(joint - values[:, None]) * weight[:, None]
    return float(weight @ values), shares.sum(axis=0), shares.T @ block.X


def _held(joint: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the log joint densities, minus infinity outside the class of a labelled row."""
    return np.where((codes[:, None] >= 0) & (codes[:, None] != classes), -np.inf, joint)


@dataclass(eq=False, repr=False)
class MultinomialEM(ClassifierMixin, SemiSupervised, LinearClassifier):
    """Multinomial naive Bayes whose unlabelled rows are shared among the classes by EM; for counts of words.

    Parameters
    ----------
    alpha : float > 0
        Added to every count.
    weight : float >= 0
        What a row without a label counts; 0 is naive Bayes on the labelled rows. Many unlabelled rows of a model that
        is wrong outvote the labels: choose it by cross-validation.
    tol : float > 0
        EM ends when a step gains less than this for each row.
    max_iter : int
        Steps of EM.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_
        Scores are linear: ln P(c) + sum_j x_j ln P(j | c), for two classes the difference.

    Examples
    --------
    >>> from assay.semi_supervised import MultinomialEM
    >>> X = [[3, 0, 1], [0, 3, 1], [4, 0, 0], [0, 4, 0]]
    >>> MultinomialEM().fit(X, [0, 1, -1, -1]).predict([[2, 0, 0]]).tolist()
    [0]
    """

    card = Card(
        name="Multinomial naive Bayes with unlabelled rows",
        task="classify",
        model=Linear(),
        strategy="log-likelihood of labelled rows + weight times that of the others",
        algorithm="EM from the labelled rows",
        guarantee=("vc", "margin.kernel", "margin.multiclass", "pac-bayes.linear"),
    )
    constraints: ClassVar = {
        "alpha": Positive(),
        "weight": Number(low=0.0),
        "tol": Positive(),
        "max_iter": Count(),
    }

    alpha: float = 1.0
    _: KW_ONLY
    weight: float = 1.0
    tol: float = 1e-6
    max_iter: int = 200
    n_jobs: int | None = None

    predict_proba = LogisticRegression.predict_proba
    predict_log_proba = LogisticRegression.predict_log_proba

    @property
    def _has_intercept(self) -> bool:
        return True

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MultinomialEM":
        """Fit to rows of counts X and labels y, of which -1 stands for none."""
        check(self)
        given = self._read(X, y, sample_weight)
        if given.X.min() < 0:
            raise refuse(self, "Negative values in data passed to MultinomialEM: counts of words are wanted.")
        problem = MultinomialProblem(
            scan.rows(given.X, given.codes, _weights(given, self.weight), n_jobs=self.n_jobs),
            self.alpha,
            len(self.classes_),
        )
        start = self._start(given)
        with fit_log(self, self.max_iter, X, y, sample_weight) as log, scan.one_blas_thread():
            best = start

            def watch(counts: Counts, value: float, gain: float) -> bool:
                nonlocal best
                best = counts
                return log.step(-value, max(gain, 0.0), **self._fitted(counts))

            try:
                most = 1 if given.known.all() or self.weight == 0 else self.max_iter
                tol = self.tol * len(given.codes)
                self.n_iter_ = em(problem, start, tol=tol, max_iter=most, watch=watch).n_iter
            except KeyboardInterrupt:
                self.n_iter_ = len(log.history)
        self._take_arrays(self._fitted(best))
        return self

    def _start(self, given: Given) -> Counts:
        """Return naive Bayes on the labelled rows."""
        own = Given(given.X[given.known], given.codes[given.known], _weights(given, 0.0)[given.known])
        K, d = len(self.classes_), given.X.shape[1]
        problem = MultinomialProblem(own.rows(self.n_jobs), self.alpha, K)
        blank = Counts(np.full(K, -np.log(K)), np.full((K, d), -np.log(d)))
        masses, sums = problem.e_step(blank).statistics
        if masses.min() <= 0:
            raise refuse(self, f"class {self.classes_[int(masses.argmin())]} has no row of a weight above 0.")
        return problem.m_step((masses, sums))

    @staticmethod
    def _fitted(counts: Counts) -> dict[str, np.ndarray]:
        if len(counts.priors) == 2:
            return {"coef_": np.diff(counts.words, axis=0), "intercept_": np.diff(counts.priors)}
        return {"coef_": counts.words, "intercept_": counts.priors}

    @property
    def fit_intercept(self) -> bool:  # type: ignore[override]
        """True: the classes' probabilities are the intercept."""
        return True

    @property
    def logistic_scores(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # on rows that are no counts
        return tags


class LabelledGaussians(GaussianProblem):
    """Gaussian components of which each belongs to a class; labelled rows are shared within their class alone."""

    def __init__(self, rows: Rows, kind: str, reg_covar: float, component_class: np.ndarray, name: str):
        super().__init__(rows, kind, reg_covar, name=name)
        self.component_class, self.direct = component_class, True

    def _pass(self, at: Components, wanted: bool) -> tuple[float, Any]:
        value, result = self.rows.sum(_labelled_step, at, self.component_class, wanted)
        return float(value), self._sums(at, result) if wanted else None

    def _sums(self, at: Components, result: np.ndarray) -> Any:
        return super()._sums(at._replace(kind="full" if self.kind == "tied" else at.kind), result)


def _labelled_step(block: Block, at: Components, classes: np.ndarray, wanted: bool) -> tuple[float, np.ndarray]:
    joint = _held(at.log_joint(block.X), block.y, classes)
    values = logsumexp(joint, axis=1)
    if not wanted:
        return float(block.weight @ values), np.empty(0)
    shares = np.exp(joint - values[:, None]) * np.asarray(block.weight)[:, None]
    layout = "full" if at.kind in ("full", "tied") else "diag"
    return float(block.weight @ values), weighted_sums(block.X, shares, at.means, layout)


@dataclass(eq=False, repr=False)
class GaussianEM(SemiSupervised, GaussianMixtureClassifier):
    """Classes that are Gaussians, or mixtures of them, fitted by EM to labelled and unlabelled rows together.

    With covariance_type="diag" and one component it is Gaussian naive Bayes with unlabelled rows.

    Parameters
    ----------
    n_components, covariance_type, tol, reg_covar, max_iter, n_init, init_params, random_state, n_jobs
        As in `GaussianMixtureClassifier`, which finds the start from the labelled rows.
    priors : None
        Class probabilities are estimated.
    weight : float >= 0
        What a row without a label counts.

    Attributes
    ----------
    classes_, priors_, component_class_, weights_, means_, covariances_, precisions_cholesky_
        As in `GaussianMixtureClassifier`.

    Examples
    --------
    >>> from assay.semi_supervised import GaussianEM
    >>> X = [[0.0], [0.3], [0.5], [5.0], [5.2], [5.6], [0.2], [5.4]]
    >>> GaussianEM().fit(X, [0, 0, -1, 1, 1, -1, -1, -1]).predict([[1.0], [4.0]]).tolist()
    [0, 1]
    """

    card = Card(
        name="Gaussian classes with unlabelled rows",
        task="classify",
        model=GaussianMixtureClassifier.card.model,
        strategy="log-likelihood of labelled rows + weight times that of the others",
        algorithm="EM from the mixtures of the labelled rows",
        guarantee=(),
    )
    constraints: ClassVar = {"weight": Number(low=0.0)}

    covariance_type: str = "diag"
    weight: float = 1.0

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "GaussianEM":
        """Fit to rows X and labels y, of which -1 stands for none."""
        check(self)
        if self.priors is not None:
            raise refuse(self, f"priors are estimated together with the rest; got {self.priors!r}.")
        given = self._read(X, y, sample_weight)
        start = self._start(given)
        rows = scan.rows(given.X, given.codes, _weights(given, self.weight), n_jobs=self.n_jobs)
        with fit_log(self, self.max_iter, X, y, sample_weight) as log, scan.one_blas_thread():
            problem = LabelledGaussians(rows, self.covariance_type, self.reg_covar, self._owners(), type(self).__name__)
            self._take(start)

            def watch(components: Components, value: float, gain: float) -> bool:
                self._take(components)
                return log.step(-value, max(gain, 0.0), **self._fitted(components))

            try:
                solution = em(problem, start, tol=self.tol, max_iter=self.max_iter, watch=watch)
                self.n_iter_, self.converged_ = solution.n_iter, solution.converged
            except KeyboardInterrupt:
                self.n_iter_, self.converged_ = len(log.history), False
        return self

    def _owners(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.classes_)), self.n_components)

    def _start(self, given: Given) -> Components:
        """Return the mixtures of the classes on the labelled rows, weights times class shares."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        model = GaussianMixtureClassifier(
            self.n_components,
            covariance_type=self.covariance_type,
            tol=self.tol,
            reg_covar=self.reg_covar,
            max_iter=self.max_iter,
            n_init=self.n_init,
            init_params=self.init_params,
            random_state=seed,
            n_jobs=self.n_jobs,
        )
        weight = None if given.weight is None else given.weight[given.known]
        with part_of_a_fit():
            model.fit(given.X[given.known], self.classes_[given.codes[given.known]], weight)
        parts = [model._restricted(code) for code in range(len(self.classes_))]
        weights = model.weights_ * model.priors_[model.component_class_]
        if self.covariance_type == "tied":  # one covariance for all classes: the mean of theirs
            within = np.einsum("k,kij->ij", weights, model.covariances_)
            factors = np.linalg.inv(np.linalg.cholesky(within)).T
            return Components("tied", weights, model.means_, within, factors)
        factors = np.concatenate([part.factors for part in parts])
        return Components(self.covariance_type, weights, model.means_, np.empty(0), factors)

    def _fitted(self, components: Components) -> dict[str, np.ndarray]:
        owner = self._owners()
        priors = np.bincount(owner, weights=components.weights)
        return {
            "priors_": priors / priors.sum(),
            "component_class_": owner,
            "weights_": components.weights / priors[owner],
            "means_": components.means,
            "precisions_cholesky_": np.ascontiguousarray(components.each(components.factors)),
        }

    def _take(self, components: Components) -> None:
        for name, value in self._fitted(components).items():
            setattr(self, name, value)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield nothing: the fixed point is that of labelled and unlabelled rows together."""
        yield NotApplicable("em.stationary", Message("why.em-unlabelled"))

"""Naive Bayes for counts: multinomial, complement, Poisson and Bernoulli. Scores are linear in the counts.

    multinomial    ln P(c) + sum_j x_j ln ((N_cj + alpha_j) / (N_c + sum alpha))          x_j how often word j occurs
    complement     sum_j x_j w_cj, w_cj = -ln of the share of word j in the other classes
    Poisson        ln P(c) + sum_j [x_j ln r_cj - r_cj],  r = (N_cj + alpha_j) / (N_c + beta)
    Bernoulli      ln P(c) + sum_j [x_j ln p_cj + (1 - x_j) ln (1 - p_cj)],  p = (N_cj + alpha_j) / (N_c + 2 alpha_j)

Claim:  the counts are those of the rows.
Method: one pass, a product of two matrices; sparse rows stay sparse.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import fit_log, label_classes, read_rows, require_finite, streams
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.naive_bayes._base import BayesClassifier, log_of
from assay.naive_bayes._columns import counts_claim
from assay.naive_bayes._gaussian import LEAST_ALPHA
from assay.params import Flag, Maybe, Number, check, refuse
from assay.scan import Rows
from assay.scan.memory import MemoryRows
from assay.theory.spaces import FunctionSpace, Space, Unbounded


class LinearScores:
    """The family of classifiers by scores that are linear in the columns."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        return FunctionSpace(n_features + 1, n_classes)

    def __str__(self) -> str:
        return "half-spaces of the counts: the largest of K scores w.x + b"


class CountScorer(NamedTuple):
    """ln P(c) + <w_c, x> + <o_c, 1 - x>; an infinite weight counts where its factor is not 0."""

    weights: np.ndarray  # (K, d)
    offsets: np.ndarray | None  # (K, d)
    log_prior: np.ndarray
    used: np.ndarray  # (K,) logarithms of class probabilities that take part
    threshold: float | None

    @property
    def logs(self) -> np.ndarray:
        return self.weights if self.offsets is None else np.concatenate([self.weights, self.offsets])

    def joint(self, X: Any) -> np.ndarray:
        X = self.seen(X)
        total = _product(X, self.weights) + self.used
        if self.offsets is not None:
            finite = np.where(np.isfinite(self.offsets), self.offsets, 0.0)
            total = total + finite.sum(axis=1) - _product(X, finite)
            zero = np.isinf(self.offsets)
            if zero.any():  # a word that is always there, and is absent
                total[_product(X, zero.astype(np.float64)) < zero.sum(axis=1)] = -np.inf
        return total

    def seen(self, X: Any) -> Any:
        if self.threshold is None:
            return X
        if issparse(X):
            return _above(X, self.threshold)
        return (self.threshold < X).astype(np.float64)

    def sizes(self, X: np.ndarray, joint: np.ndarray) -> tuple[np.ndarray, int]:
        X = np.abs(self.seen(X))
        total = X @ _magnitudes(self.weights).T
        if self.offsets is not None:
            total += np.abs(1 - X) @ _magnitudes(self.offsets).T
        return total.max(axis=1, initial=0.0), 4 * X.shape[1] + 16


def _magnitudes(weights: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(weights), np.abs(weights), 0.0) + 8


def _product(X: Any, weights: np.ndarray) -> np.ndarray:
    """Return X W', 0 where a count of 0 meets a weight of -infinity, and -infinity where another count does."""
    zero = np.isinf(weights)
    if not zero.any():
        return np.asarray(X @ weights.T)
    total = np.asarray(X @ np.where(zero, 0.0, weights).T)
    total[np.asarray((X != 0).astype(np.float64) @ zero.T.astype(np.float64)) > 0] = -np.inf
    return total


def _above(X: Any, threshold: float) -> Any:
    """Return sparse rows of ones where an entry is above the threshold."""
    if threshold < 0:
        raise ValueError("binarize must be >= 0 for sparse rows: their zeros would become ones.")
    result = X.copy()
    result.data = (result.data > threshold).astype(np.float64)
    result.eliminate_zeros()
    return result


@dataclass(eq=False, repr=False)
class CountsNB(BayesClassifier):
    """Base of the classifiers by counts of words."""

    constraints: ClassVar[dict[str, Any]] = {"force_alpha": Flag, "fit_prior": Flag}

    _: KW_ONLY
    alpha: Any = 1.0
    force_alpha: bool = True
    fit_prior: bool = True
    class_prior: Any = None
    n_jobs: int | None = None

    _threshold: ClassVar[Any] = None
    _positive: ClassVar[bool] = True

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to counts X, dense or sparse, and labels y; X may be Parquet files or a Dask collection."""
        check(self)
        rows = read_rows(self, X, y, sample_weight)
        self.classes_ = label_classes(self, rows, least=1)
        told = (None, None, None) if streams(X, y) else (X, y, sample_weight)
        self._count(rows, told, None)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Any:
        """Take in more rows; after all of them the model is that of one `fit` to all rows.

        `classes` lists all labels that will ever come; the first call needs it.
        """
        check(self)
        first = self._take_classes(y, classes)
        rows = read_rows(self, X, y, sample_weight, reset=first)
        self._count(rows, (None,) * 3, None if first else (self.class_count_, self.feature_count_))
        return self

    def _count(self, rows: Rows, told: tuple, before: Any) -> None:
        require_finite(rows, self) if not _is_sparse(rows) or rows.has_weight else _check_entries(rows, self)
        self._check_alpha(rows.n_features)
        with fit_log(self, 1, *told) as log:
            sizes, counts, low, high = self._sums(rows.encoded(self.classes_))
            if self._positive and low < 0:
                raise refuse(self, f"Negative values in data passed to {type(self).__name__} (input X).")
            self._check_range(low, high)
            if before is not None:
                sizes, counts = before[0] + sizes, before[1] + counts
            fitted = {"class_count_": sizes, "feature_count_": counts, "class_prior_": self._prior(sizes)}
            for name, value in fitted.items():
                setattr(self, name, value)
            self._tell_zeros(self._scorer().logs)
            log.step(0.0, 0.0, **fitted)

    def _sums(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Return weights of the classes, their counts, and the least and largest entry."""
        K = len(self.classes_)
        if isinstance(rows, MemoryRows) and issparse(rows.X):
            X: Any = rows.X if self.binarize_at is None else _above(rows.X, self.binarize_at)
            weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
            member = csr_array((weight, (rows.y, np.arange(rows.n_rows))), shape=(K, rows.n_rows))
            low, high = (float(end(X.data, initial=0.0)) for end in (np.min, np.max))
            return np.asarray(member.sum(axis=1)).ravel(), (member @ X).toarray().astype(np.float64), low, high
        ends = rows.map(_ends, self.binarize_at)
        sizes, counts = rows.sum(_class_counts, K, self.binarize_at)
        return sizes, counts, min(low for low, _ in ends), max(high for _, high in ends)

    @property
    def binarize_at(self) -> float | None:
        """The value above which an entry counts as 1; None: entries are counts."""
        return None

    def _check_range(self, low: float, high: float) -> None:
        """Refuse entries that the model is not about."""

    def _check_alpha(self, n_features: int) -> None:
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.ndim and alpha.shape != (n_features,):
            raise refuse(
                self,
                f"When alpha is an array, it should contains `n_features`. Got {alpha.size} elements instead of "
                f"{n_features}.",
            )
        if not (alpha >= 0).all() or not np.isfinite(alpha).all():
            raise refuse(self, f"alpha must be a number >= 0, or one for each column; got {self.alpha!r}.")
        if alpha.min() < LEAST_ALPHA and not self.force_alpha:
            warnings.warn(
                f"{type(self).__name__}: alpha too small will result in numeric errors, setting alpha = "
                f"{LEAST_ALPHA:.1e}. Use `force_alpha=True` to keep alpha unchanged.",
                stacklevel=4,
            )

    @property
    def alpha_(self) -> np.ndarray:
        """The count that is added to each column, (n_features,)."""
        alpha = np.broadcast_to(np.asarray(self.alpha, dtype=np.float64), self.feature_count_.shape[1:])
        return np.array(alpha if self.force_alpha else np.maximum(alpha, LEAST_ALPHA))

    def _prior(self, sizes: np.ndarray) -> np.ndarray:
        if self.class_prior is not None:
            return self._check_prior(self.class_prior, "class_prior")
        return sizes / sizes.sum() if self.fit_prior else np.full(len(sizes), 1 / len(sizes))

    def _prior_source(self) -> str:
        return "given" if self.class_prior is not None else "rows" if self.fit_prior else "uniform"

    @property
    def class_log_prior_(self) -> np.ndarray:
        """ln P(class)."""
        return log_of(self.class_prior_)

    @property
    def tables_(self) -> np.ndarray:
        """The weights of the columns, (n_classes, n_features); the same as `feature_log_prob_`."""
        return self.feature_log_prob_

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """ln P(word | class), (n_classes, n_features)."""
        return _log_shares(self.feature_count_ + self.alpha_)

    def _scorer(self) -> CountScorer:
        return CountScorer(self.feature_log_prob_, None, self._log_prior, self._log_prior, self.binarize_at)

    def _read(self, X: Any) -> Any:
        return validate_data(self, X, reset=False, dtype=np.float64, accept_sparse="csr")

    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        """Return the score of each row and class, (n, K); -inf for a class that cannot have produced the row."""
        check_is_fitted(self)
        X = self._read(X)
        if issparse(X):
            return self._scorer().joint(X)
        rows = MemoryRows(X, n_jobs=self.n_jobs)
        return np.concatenate(rows.map(_joint, self._scorer()))

    def linear_form(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (w, b), (n_classes, n_features) and (n_classes,), such that the scores <w_k, x> + b_k decide as
        `predict` does; Bernoulli: of rows of zeros and ones."""
        scorer = self._scorer()
        offsets = np.zeros_like(scorer.weights) if scorer.offsets is None else scorer.offsets
        if not all(np.isfinite(part).all() for part in (scorer.weights, offsets, scorer.used)):
            raise refuse(self, "a probability is 0, so that its weight is infinite; use alpha > 0.")
        return scorer.weights - offsets, scorer.used + offsets.sum(axis=1)

    def space(self, rows: Rows) -> Space:
        """The scores are linear in the counts."""
        scorer = self._scorer()
        parts = (scorer.weights, scorer.used, *(() if scorer.offsets is None else (scorer.offsets,)))
        if not all(np.isfinite(part).all() for part in parts):
            return Unbounded("scores with probabilities of 0 are not of one linear space")
        return super().space(rows)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield that the counts are those of the rows."""
        whole = self.binarize_at is not None or rows.sum(_uneven_entries) == 0
        yield counts_claim(rows, self._prior_source(), whole)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self._positive
        tags.classifier_tags.poor_score = True
        return tags


def _card(name: str, strategy: str) -> Card:
    return Card(
        name=name,
        task="classify",
        model=LinearScores(),
        strategy=strategy,
        algorithm="counting, in one pass",
        guarantee=("counts.mle",),
    )


@dataclass(eq=False, repr=False)
class MultinomialNB(CountsNB):
    """Naive Bayes for counts, such as words of texts: each class draws words from a table of its own.

    Parameters
    ----------
    alpha : float >= 0 or (n_features,)
        Count added to each word; 1 is Laplace's rule, 0 plain counting.
    force_alpha : bool
        Whether an alpha below 1e-10 is taken as it is; otherwise 1e-10 is.
    fit_prior : bool
        Whether class probabilities are the shares of the rows; otherwise they are equal.
    class_prior : (n_classes,) or None
        Class probabilities, if given.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : (n_classes,)
    feature_count_, feature_log_prob_ : (n_classes, n_features)

    Examples
    --------
    >>> from assay.naive_bayes import MultinomialNB
    >>> model = MultinomialNB().fit([[2, 0, 1], [1, 0, 0], [0, 3, 1]], ["ham", "ham", "spam"])
    >>> model.predict([[1, 0, 1], [0, 1, 0]]).tolist()
    ['ham', 'spam']
    """

    family = "naive_bayes.multinomial"
    card = _card("Multinomial naive Bayes", "log-likelihood of words")

    def sample(
        self, n_samples: int = 1, random_state: Any = None, *, n_words: int = 100
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return counts of texts of so many words drawn from the fitted classes, (n_samples, n_features), and their
        labels."""
        random, drawn = self._drawn_classes(n_samples, random_state)
        shares = np.exp(self.feature_log_prob_)
        shares /= shares.sum(axis=1, keepdims=True)
        X = np.array([random.multinomial(n_words, shares[k]) for k in drawn], dtype=np.float64)
        return X, self.classes_[drawn]


@dataclass(eq=False, repr=False)
class ComplementNB(CountsNB):
    """Naive Bayes by the words of the other classes, which is steadier if classes differ in size (Rennie et al. 2003).

    Parameters
    ----------
    alpha, force_alpha, fit_prior, class_prior, n_jobs
        As of `MultinomialNB`; the class probabilities take no part in the scores.
    norm : bool
        Whether the weights of each class are divided by their sum.

    Examples
    --------
    >>> from assay.naive_bayes import ComplementNB
    >>> model = ComplementNB().fit([[2, 0, 1], [1, 0, 0], [0, 3, 1]], ["ham", "ham", "spam"])
    >>> model.predict([[1, 0, 1], [0, 1, 0]]).tolist()
    ['ham', 'spam']
    """

    family = "naive_bayes.complement"
    card = _card("Complement naive Bayes", "log-likelihood of the others' words")
    constraints: ClassVar = {**CountsNB.constraints, "norm": Flag}

    norm: bool = False

    @property
    def feature_all_(self) -> np.ndarray:
        """Count of each column in all classes."""
        return self.feature_count_.sum(axis=0)

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """The weights of the columns, (n_classes, n_features)."""
        logged = _log_shares(np.maximum(self.feature_all_ - self.feature_count_, 0.0) + self.alpha_)
        if not np.isfinite(logged).all():
            raise refuse(self, "a column occurs in one class alone, and alpha = 0 makes its weight infinite.")
        if not self.norm:
            return -logged
        total = logged.sum(axis=1, keepdims=True)
        if np.any(total == 0):
            raise refuse(self, "norm needs weights that are not all zero; there is one column only.")
        return logged / total

    @property
    def norm_(self) -> np.ndarray:
        """1 if the weights are normed, as the checker reads it."""
        return np.array([int(self.norm)])

    def _scorer(self) -> CountScorer:
        return CountScorer(self.feature_log_prob_, None, self._log_prior, np.zeros(len(self.classes_)), None)


@dataclass(eq=False, repr=False)
class PoissonNB(CountsNB):
    """Naive Bayes for counts per row, such as calls in an hour: each column is Poisson with a rate of its own in each
    class.

    Rates are the means of their posterior, (sum of the counts + alpha) / (number of rows + beta), for a Gamma prior of
    shape alpha and rate beta. Unlike `MultinomialNB` the total count of a row speaks too.

    Parameters
    ----------
    alpha, force_alpha, fit_prior, class_prior, n_jobs
        As of `MultinomialNB`.
    beta : float > 0
        Rows added to each class.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : (n_classes,)
    feature_count_, rate_ : (n_classes, n_features)

    Examples
    --------
    >>> from assay.naive_bayes import PoissonNB
    >>> model = PoissonNB().fit([[0, 1], [1, 0], [7, 9], [9, 6]], ["quiet", "quiet", "busy", "busy"])
    >>> model.predict([[1, 1], [8, 8]]).tolist()
    ['quiet', 'busy']
    >>> model.rate_.round(2).tolist()
    [[5.67, 5.33], [0.67, 0.67]]
    """

    family = "naive_bayes.poisson"
    card = _card("Poisson naive Bayes", "log-likelihood of counts")
    constraints: ClassVar = {**CountsNB.constraints, "beta": Number(low=0.0, open_low=True)}

    beta: float = 1.0

    @property
    def beta_(self) -> np.ndarray:
        """The rows that are added, as the checker reads them."""
        return np.array([float(self.beta)])

    @property
    def rate_(self) -> np.ndarray:
        """The mean of each column in each class."""
        return (self.feature_count_ + self.alpha_) / (self.class_count_[:, None] + float(self.beta))

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """ln of the rates, the weights of the columns, (n_classes, n_features)."""
        return log_of(self.rate_)

    def _scorer(self) -> CountScorer:
        """x ln r - r is x (ln r - r) - (1 - x) r."""
        weights = self.feature_log_prob_ - self.rate_
        return CountScorer(weights, -self.rate_, self._log_prior, self._log_prior, None)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return counts drawn from the fitted classes, (n_samples, n_features), and their labels."""
        random, drawn = self._drawn_classes(n_samples, random_state)
        return random.poisson(self.rate_[drawn]).astype(np.float64), self.classes_[drawn]


@dataclass(eq=False, repr=False)
class BernoulliNB(CountsNB):
    """Naive Bayes for columns that are there or not, such as words; absence speaks too.

    Parameters
    ----------
    alpha, force_alpha, fit_prior, class_prior, n_jobs
        As of `MultinomialNB`.
    binarize : float or None
        Columns become 1 above it and 0 otherwise; None if they are zeros and ones.

    Examples
    --------
    >>> from assay.naive_bayes import BernoulliNB
    >>> model = BernoulliNB().fit([[1, 0, 1], [1, 0, 0], [0, 1, 1]], ["ham", "ham", "spam"])
    >>> model.predict([[1, 0, 1], [0, 1, 0]]).tolist()
    ['ham', 'spam']
    """

    family = "naive_bayes.bernoulli"
    card = _card("Bernoulli naive Bayes", "log-likelihood of presence")
    constraints: ClassVar = {**CountsNB.constraints, "binarize": Maybe(Number())}
    _positive: ClassVar[bool] = False

    binarize: float | None = 0.0

    @property
    def binarize_at(self) -> float | None:
        """The value above which an entry counts as 1; None: entries are counts."""
        return None if self.binarize is None else float(self.binarize)

    @property
    def binarize_(self) -> np.ndarray:
        """The threshold, as the checker reads it; empty for none."""
        return np.array([] if self.binarize is None else [float(self.binarize)])

    def _check_range(self, low: float, high: float) -> None:
        if low < 0 or high > 1:
            raise refuse(self, "with binarize=None columns must lie between 0 and 1; got others.")

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """ln P(column is 1 | class), (n_classes, n_features)."""
        return self._logs(self.feature_count_)

    def _logs(self, counts: np.ndarray) -> np.ndarray:
        below = self.class_count_[:, None] + 2 * self.alpha_
        return np.where(below > 0, log_of(counts + self.alpha_) - np.log(np.where(below > 0, below, 1.0)), -np.log(2))

    def _scorer(self) -> CountScorer:
        absent = self._logs(np.maximum(self.class_count_[:, None] - self.feature_count_, 0.0))
        return CountScorer(self.feature_log_prob_, absent, self._log_prior, self._log_prior, self.binarize_at)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of zeros and ones drawn from the fitted classes, (n_samples, n_features), and their labels."""
        random, drawn = self._drawn_classes(n_samples, random_state)
        chance = np.exp(self.feature_log_prob_)[drawn]
        return (random.uniform(size=chance.shape) < chance).astype(np.float64), self.classes_[drawn]


def _log_shares(counts: np.ndarray) -> np.ndarray:
    """Return ln of the share of each column in its row; equal shares in a row of zeros."""
    total = counts.sum(axis=1, keepdims=True)
    shares = log_of(counts) - np.log(np.where(total > 0, total, 1.0))
    return np.where(total > 0, shares, -np.log(counts.shape[1]))


def _is_sparse(rows: Rows) -> bool:
    return isinstance(rows, MemoryRows) and issparse(rows.X)


def _check_entries(rows: Any, learner: Any) -> None:
    """Refuse sparse rows with entries that are not finite."""
    if not np.isfinite(rows.X.data).all():
        require_finite(rows, learner)


def _ends(block: Block, threshold: float | None) -> tuple[float, float]:
    return (0.0, 1.0) if threshold is not None else (float(block.X.min()), float(block.X.max()))


def _class_counts(block: Block, K: int, threshold: float | None) -> tuple[np.ndarray, np.ndarray]:
    member = np.zeros((len(block.X), K))
    member[np.arange(len(block.X)), block.y] = 1.0 if block.weight is None else block.weight
    X = block.X if threshold is None else (threshold < block.X).astype(np.float64)
    return member.sum(axis=0), member.T @ X


def _uneven_entries(block: Block) -> int:
    return int(np.count_nonzero(block.X % 1))


def _joint(block: Block, scorer: CountScorer) -> np.ndarray:
    return scorer.joint(block.X)

"""Resampled rows: fewer of the frequent classes, or more of the rare ones; `fit_resample` as imbalanced-learn has it.

Whoever fits a classifier to such rows gets the probabilities of classes of other sizes: predictions of the rare class
become more frequent, and no probability is calibrated any more. `prior_correction` undoes that exactly where rows of a
class keep their distribution (rows drawn or repeated) and nearly so for interpolated ones.

EasyEnsemble: many classifiers, each on all rows of the rarest class and as many of every other.

Every member sees balanced classes and the members together most of the frequent rows, which a single under-sampling
throws away. Liu, Wu and Zhou 2009.
"""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_array, check_consistent_length, check_is_fitted

from assay.card import Card
from assay.data.blocks import Block
from assay.ensemble._combined import CombinedLearner, Output, Task, fit_some, probability_link, vote_link, votes_of
from assay.ensemble._members import one_hot
from assay.fitlog import FitLog
from assay.neighbors import NearestNeighbors
from assay.params import Choice, Count, Flag, check, refuse
from assay.scan import thread_map
from assay.theory.spaces import Unbounded
from assay.tree import DecisionTreeClassifier


class ResampledWarning(UserWarning):
    """Probabilities of what is fitted to these rows are not those of the data."""


@dataclass(eq=False, repr=False)
class Sampler(BaseEstimator):
    """What samplers share: reading, the numbers of rows, the warning, and the correction of probabilities."""

    _auto: ClassVar[str]
    _fewer: ClassVar[bool]

    constraints: ClassVar = {"warn": Flag}

    _: KW_ONLY
    sampling_strategy: Any = "auto"
    random_state: Any = None
    warn: bool = True

    def fit(self, X: Any, y: Any) -> Any:
        """Count the classes of y; rows are resampled by `fit_resample`."""
        self._counted(X, y)
        return self

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return resampled rows and labels; frames and series of labels stay such."""
        codes = self._counted(X, y)
        rng = check_random_state(self.random_state)
        X_new, at = self._resampled(X, codes, self._wanted(codes, y), rng)
        self.shares_after_ = np.bincount(codes[at], minlength=len(self.classes_)) / len(at)
        if self.warn:
            warnings.warn(
                f"{type(self).__name__}: a classifier fitted to these rows believes in classes of other sizes, and its "
                "probabilities are not calibrated; correct them by `correct` of this sampler or "
                "imbalance.prior_correction, or move the threshold instead (ThresholdClassifier).",
                ResampledWarning,
                stacklevel=2,
            )
        labels = self.classes_[codes[at]]
        if not hasattr(y, "to_frame"):
            return X_new, labels
        if self._repeats:
            return X_new, _safe_indexing(y, at)
        return X_new, type(y)(labels, name=y.name) if hasattr(y, "iloc") else type(y)(y.name, labels)

    _repeats = True  # every new row is one of the old

    def _counted(self, X: Any, y: Any) -> np.ndarray:
        check(self)
        if y is None:
            raise refuse(self, "it needs the labels y.")
        y = _check_y(y, estimator=self)
        check_classification_targets(y)
        check_consistent_length(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise refuse(self, f"there is one class, {self.classes_[0]!r}; two or more are needed.")
        self.shares_before_ = np.bincount(codes) / len(codes)
        return codes

    def _wanted(self, codes: np.ndarray, y: Any) -> np.ndarray:
        """Return how many rows of each class `sampling_strategy` asks for."""
        counts, asked = np.bincount(codes), self.sampling_strategy
        asked = asked(y) if callable(asked) else asked
        if isinstance(asked, dict):
            return self._listed(counts, asked)
        if isinstance(asked, Real) and not isinstance(asked, bool):
            return self._by_ratio(counts, float(asked))
        known = ("auto", "all", "majority", "minority", "not majority", "not minority")
        if not isinstance(asked, str) or asked not in known:
            raise refuse(
                self, f"sampling_strategy must be {', '.join(known)}, a ratio, a dict or a function; got {asked!r}."
            )
        rare, frequent = np.arange(len(counts)) == counts.argmin(), np.arange(len(counts)) == counts.argmax()
        asked = self._auto if asked == "auto" else asked
        changed = {"all": rare | ~rare, "majority": frequent, "minority": rare}.get(asked)
        if changed is None:
            changed = ~frequent if asked == "not majority" else ~rare
        return np.where(changed, counts.min() if self._fewer else counts.max(), counts)

    def _listed(self, counts: np.ndarray, asked: dict[Any, Any]) -> np.ndarray:
        wanted = counts.copy()
        for label, number in asked.items():
            at = np.flatnonzero(self.classes_ == label)
            if not len(at):
                raise refuse(self, f"sampling_strategy names {label!r}, which is no class of y.")
            wanted[at[0]] = number
        self._check_direction(counts, wanted)
        return wanted

    def _by_ratio(self, counts: np.ndarray, ratio: float) -> np.ndarray:
        """Return the numbers of two classes whose ratio, the rarer over the other, is `ratio`."""
        if len(counts) > 2 or not 0 < ratio <= 1:
            raise refuse(self, f"sampling_strategy may be a number in (0, 1] for two classes; got {ratio!r}.")
        wanted, rare = counts.copy(), int(counts.argmin())
        if self._fewer:
            wanted[1 - rare] = int(counts[rare] / ratio)
        else:
            wanted[rare] = int(counts[1 - rare] * ratio)
        self._check_direction(counts, wanted)
        return wanted

    def _check_direction(self, counts: np.ndarray, wanted: np.ndarray) -> None:
        wrong = np.flatnonzero(wanted > counts if self._fewer else wanted < counts)
        if len(wrong):
            k, kind = wrong[0], "more" if self._fewer else "fewer"
            raise refuse(
                self,
                f"sampling_strategy asks for {wanted[k]} rows of the class {self.classes_[k]!s}, {kind} than the "
                f"{counts[k]} there are.",
            )

    def _resampled(self, X: Any, codes: np.ndarray, wanted: np.ndarray, rng: Any) -> tuple[Any, np.ndarray]:
        """Return new rows, so many of each class, and for each the number of a row of its class."""
        raise NotImplementedError

    def correct(self, p: Any) -> np.ndarray:
        """Return probabilities (rows, classes), of a classifier fitted to the resampled rows, as those of the data.

        Parameters
        ----------
        p : array-like
            Probabilities.
        """
        if not hasattr(self, "shares_after_"):
            raise refuse(self, "nothing was resampled yet; call fit_resample first.")
        return prior_correction(p, self.shares_after_, self.shares_before_)


class UnderSampler(Sampler):
    """As many rows of every class as the rarest has, drawn without replacement.

    Attributes: sample_indices_ (row numbers kept, in order), classes_, shares_before_, shares_after_.

    Parameters
    ----------
    sampling_strategy : str, float, dict or callable, default="auto"
        imbalanced-learn's: "auto" ("not minority"), "majority", "not majority", "all", for two classes the ratio of the
        rarer to the other, a dict of numbers by class, or a function of y that returns one.
    random_state : int, RandomState or None
        Seed of the choice of rows.
    warn : bool, default=True
        Whether a warning says that probabilities change with the shares of the classes.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 0, 1]
    >>> rows, labels = UnderSampler(random_state=0, warn=False).fit_resample(np.array(X), y)
    >>> np.bincount(labels).tolist()
    [1, 1]
    """

    _auto, _fewer = "not minority", True

    def _resampled(self, X: Any, codes: np.ndarray, wanted: np.ndarray, rng: Any) -> tuple[Any, np.ndarray]:
        kept = [rng.permutation(np.flatnonzero(codes == k))[:number] for k, number in enumerate(wanted)]
        self.sample_indices_ = np.sort(np.concatenate(kept))
        return _safe_indexing(X, self.sample_indices_), self.sample_indices_


@dataclass(eq=False, repr=False)
class OverSampler(Sampler):
    """As many rows of every class as the most frequent has: all originals, and new ones of the rarer classes.

    Attributes: classes_, shares_before_, shares_after_; interpolated: parents_ (new rows, 2), row numbers of the ends.

    Parameters
    ----------
    how : "repeat" or "interpolate"
        New rows are drawn again, or lie on the segment between a row and one of its k nearest of its class (SMOTE:
        Chawla, Bowyer, Hall and Kegelmeyer 2002).
    sampling_strategy : str, float, dict or callable
        imbalanced-learn's: "auto" ("not majority"), "minority", "not minority", "all", for two classes the ratio of the
        rarer to the other, a dict of numbers by class, or a function of y that returns one.
    k : int
        Neighbours that a row is interpolated with; a class needs more rows than that, else fewer are used.
    random_state : int, RandomState or None
        Seed of what is drawn.
    warn : bool, default=True
        Whether a warning says that probabilities change with the shares of the classes.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [9.0]]), [0, 0, 0, 1]
    >>> rows, labels = OverSampler(random_state=0, warn=False).fit_resample(X, y)
    >>> rows[4:].tolist(), np.bincount(labels).tolist()
    ([[9.0], [9.0]], [3, 3])
    """

    constraints: ClassVar[dict[str, Any]] = {"how": Choice("repeat", "interpolate"), "k": Count()}

    how: str = "repeat"
    _: KW_ONLY
    k: int = 5

    _auto, _fewer = "not majority", False

    @property
    def _repeats(self) -> bool:  # type: ignore[override]
        return self.how == "repeat"

    def _resampled(self, X: Any, codes: np.ndarray, wanted: np.ndarray, rng: Any) -> tuple[Any, np.ndarray]:
        counts = np.bincount(codes)
        drawn = [rng.choice(np.flatnonzero(codes == c), wanted[c] - counts[c]) for c in range(len(counts))]
        new = np.concatenate(drawn)
        at = np.concatenate([np.arange(len(codes)), new])
        if self.how == "repeat":
            return _safe_indexing(X, at), at
        table = check_array(X, dtype=np.float64, estimator=self)
        other = np.concatenate([self._partners(table, codes, c, drawn[c], rng) for c in range(len(counts))])
        self.parents_ = np.column_stack([new, other])
        between = table[new] + rng.random_sample((len(new), 1)) * (table[other] - table[new])
        rows: Any = np.concatenate([table, between])
        return _like(X, rows), at

    def _partners(self, X: np.ndarray, codes: np.ndarray, c: int, drawn: np.ndarray, rng: Any) -> np.ndarray:
        """Return for each drawn row of a class one of its nearest other rows of that class."""
        own = np.flatnonzero(codes == c)
        if not len(drawn):
            return drawn
        if len(own) < 2:
            raise refuse(self, f"the class {self.classes_[c]!s} has one row, and nothing to interpolate it with.")
        near = NearestNeighbors(n_neighbors=min(self.k, len(own) - 1)).fit(X[own])
        result = near.kneighbors(return_distance=False)  # without the row itself
        at = np.searchsorted(own, drawn)
        return own[result[at, rng.randint(result.shape[1], size=len(at))]]


def _like(X: Any, rows: np.ndarray) -> Any:
    """Return rows as a frame of the kind of X, single precision where X has it; as they are if X is none."""
    if hasattr(X, "iloc"):
        frame = type(X)(rows, columns=X.columns)
        return frame.astype({name: kind for name, kind in X.dtypes.items() if kind.kind == "f"})
    if hasattr(X, "columns"):
        return type(X)(rows, schema=list(X.columns))
    return rows


def rescale(p: Any, ratio: Any) -> np.ndarray:
    """Return probabilities as if all classes were equally frequent.

    Of two classes, p the probability of the second and ratio = m+ / m-, the rows of the second over those of the first:

        p' / (1 - p') = p / (1 - p) * m- / m+

    so that p' > 1/2 exactly if p / (1 - p) > m+ / m-, that is p > m+ / (m+ + m-). Of more classes, p is (rows, classes)
    and ratio the shares (or numbers) of the classes: divide by them and by the sum.

    Parameters
    ----------
    p : array-like
        Predicted probabilities.
    ratio : float or array-like
        Rows of the second class over those of the first; of more classes their shares.

    Returns
    -------
    ndarray
        The rescaled probabilities.

    Examples
    --------
    >>> round(float(rescale(0.1, 1 / 9)), 12)
    0.5
    >>> rescale([[0.6, 0.3, 0.1]], [6, 3, 1]).round(6).tolist()
    [[0.333333, 0.333333, 0.333333]]
    """
    p, ratio = np.asarray(p, dtype=np.float64), np.asarray(ratio, dtype=np.float64)
    if np.any(p < 0) or np.any(p > 1 + 1e-12) or not np.isfinite(ratio).all() or np.any(ratio <= 0):
        raise ValueError("rescale: p must hold probabilities, and ratio numbers > 0.")
    if ratio.ndim == 0:
        odds = p / float(ratio)
        return odds / (odds + (1 - p))
    if p.ndim != 2 or p.shape[1] != len(ratio):
        raise ValueError(f"rescale: p must be (rows, {len(ratio)}); got shape {p.shape}.")
    weighed = p / ratio
    return weighed / weighed.sum(axis=1, keepdims=True)


def prior_correction(p: Any, trained: Any, true: Any) -> np.ndarray:
    """Return the probabilities of a classifier that was fitted to rows with class shares `trained`, for data with
    shares `true`: p_k true_k / trained_k, divided by the sum. Exact if the rows of each class keep their
    distribution, as they do after a random choice of rows.

    Parameters
    ----------
    p : array-like
        Predicted probabilities.
    trained : array-like
        Share of each class in the training rows.
    true : array-like
        Share of each class in the new data.

    Returns
    -------
    ndarray
        The corrected probabilities.

    Examples
    --------
    >>> prior_correction([[0.5, 0.5]], [0.5, 0.5], [0.9, 0.1]).round(6).tolist()
    [[0.9, 0.1]]
    """
    trained, true = (np.asarray(part, dtype=np.float64) for part in (trained, true))
    if trained.shape != true.shape or np.any(true <= 0):
        raise ValueError("prior_correction: trained and true must hold a share > 0 for each class.")
    return rescale(p, trained / trained.sum() / (true / true.sum()))


@dataclass(eq=False, repr=False)
class EasyEnsembleClassifier(ClassifierMixin, CombinedLearner):
    """Vote of classifiers, each fitted to classes made equal by under-sampling.

    Parameters
    ----------
    estimator : classifier or None
        Base learner; None is a `DecisionTreeClassifier`; `AdaBoostClassifier` is the choice of Liu, Wu and Zhou.
    n_estimators : int
    voting : "soft" or "hard"
        Mean of probabilities, or shares of votes.
    random_state : seed of the samples
    n_jobs : int or None
        Threads; changes the time, never a bit.

    Attributes
    ----------
    classes_, estimators_ (fitted to positions in `classes_`), shares_ : shares of the classes in the rows of fit

    Examples
    --------
    >>> import numpy as np
    >>> from assay.imbalance import EasyEnsembleClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = (np.arange(300) % 15 == 0).astype(int)
    >>> X = rng.normal(size=(300, 2)) + 1.5 * y[:, None]
    >>> model = EasyEnsembleClassifier(random_state=0).fit(X, y)
    >>> bool(model.predict(X)[y == 1].mean() > 0.8)
    True
    """

    family = "votes.classifier"
    figure = "members"
    combines: ClassVar = "votes of learners fitted to balanced samples"
    constraints: ClassVar = {"n_estimators": Count(), "voting": Choice("soft", "hard")}
    card = Card(
        name="EasyEnsemble",
        task="classify",
        ensemble="parallel",
        model=Unbounded("votes of learners fitted to balanced samples"),
        strategy="that of the members; voting",
        algorithm="members on under-sampled rows, on threads",
        guarantee=(),
    )

    estimator: Any = None
    n_estimators: int = 11
    _: KW_ONLY
    voting: str = "soft"
    random_state: Any = None
    n_jobs: int | None = None

    def _base(self) -> Any:
        return DecisionTreeClassifier(random_state=0) if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "EasyEnsembleClassifier":
        """Fit members to balanced samples of rows X and labels y."""
        check(self)
        self._check_kinds(self._bases(), True)
        X = self._rows(X, reset=True)
        codes, weight = self._targets(X, y, sample_weight)
        self.shares_ = np.bincount(codes, weight) / (len(codes) if weight is None else weight.sum())
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_estimators).tolist()
        with FitLog(self, 1, X, y) as log:
            made = fit_some(
                self, [self._sampled(X, codes, weight, t, seed) for t, seed in enumerate(seeds)], self.n_jobs
            )
            fitted = [item for item in made if item is not None]
            if not fitted:
                raise KeyboardInterrupt
            self._keep(fitted)
            log.stopped |= len(fitted) < len(made)
            self.vote_weights_ = np.ones(len(self.members_))
            log.step(float(np.mean(self._mean(X).argmax(axis=1) != codes)), 0.0)
        return self

    def _sampled(self, X: Any, codes: np.ndarray, weight: Any, t: int, seed: int) -> Task:
        sampler = UnderSampler(random_state=seed, warn=False)
        kept = sampler.fit_resample(np.arange(len(codes))[:, None], codes)[0][:, 0]
        more = {} if weight is None else {"sample_weight": weight[kept]}
        return Task(f"sample {t}", self._base(), _safe_indexing(X, kept), codes[kept], more)

    @property
    def needed_(self) -> np.ndarray:
        """The share of the votes that a class must exceed: -1, the largest share wins."""
        return np.array(-1.0)

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members."""
        check_is_fitted(self, "members_")
        return self.members_

    def _link_of(self, t: int) -> int:
        return (probability_link if self.voting == "soft" else vote_link)(self.members_[t])

    def _combine(self, outputs: Sequence[Output], block: Block) -> Output:
        return votes_of(outputs, self.vote_weights_, self.links_, float(self.needed_))

    def _member_output(self, member: Any, X: Any) -> np.ndarray:
        if self.voting == "hard":
            return one_hot(np.asarray(member.predict(X), dtype=np.int64), len(self.classes_))
        if not hasattr(member, "predict_proba"):
            raise refuse(self, f'voting="soft" needs probabilities, which {type(member).__name__} does not have.')
        return np.asarray(member.predict_proba(X), dtype=np.float64)

    def _mean(self, X: Any) -> np.ndarray:
        outputs = thread_map(lambda item: self._member_output(item, X), self.members_, n_jobs=self.n_jobs)
        total = sum(weight * output for weight, output in zip(self.vote_weights_.tolist(), outputs))
        return np.asarray(total) / self.vote_weights_.sum()

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the mean of the members' probabilities or votes: those of classes of equal size."""
        check_is_fitted(self, "members_")
        return self._mean(self._rows(X, reset=False))

    def corrected_proba(self, X: Any) -> np.ndarray:
        """Return `predict_proba` for classes with the shares of the rows of fit (`prior_correction`)."""
        if not hasattr(self, "shares_"):
            raise refuse(self, "a model file does not keep the shares of the classes; use prior_correction.")
        return prior_correction(
            self.predict_proba(X), np.full(len(self.classes_), 1 / len(self.classes_)), self.shares_
        )

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest mean, the first of equals."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def member_votes(self, X: Any) -> np.ndarray:
        """Return the class position that each member votes for, (rows, members)."""
        check_is_fitted(self, "members_")
        X = self._rows(X, reset=False)
        return np.stack([np.asarray(member.predict(X)) for member in self.members_], axis=1)

"""EasyEnsemble: many classifiers, each on all rows of the rarest class and as many of every other.

Every member sees balanced classes and the members together most of the frequent rows, which a single under-sampling
throws away. Liu, Wu and Zhou 2009.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.card import Card
from assay.data.blocks import Block
from assay.ensemble._combined import CombinedLearner, Output, Task, fit_some, probability_link, vote_link, votes_of
from assay.ensemble._members import one_hot
from assay.fitlog import FitLog
from assay.imbalance._sampling import UnderSampler, prior_correction
from assay.params import Choice, Count, check, refuse
from assay.scan import thread_map
from assay.theory.spaces import Unbounded
from assay.tree import DecisionTreeClassifier


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

    def _bases(self) -> list[Any]:
        return [self._base()]

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

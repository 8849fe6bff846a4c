"""What all classifiers of this room share: from ln P(x, c) to posterior, decision and evidence.

A class that cannot have produced a row has ln P(x, c) = -infinity. Where no class can, nothing is known but the shares
of the classes, and the posterior is the prior. No answer is NaN.
"""

import warnings
from typing import Any, Protocol

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from assay import scan
from assay.base import Learner
from assay.data.blocks import Block
from assay.guarantees.evidence import Evidence, Scores
from assay.params import refuse
from assay.scan import Rows

IMPOSSIBLE = 1000.0
"""How far below the least score of a possible class a certificate puts the score of an impossible one."""
_UNIT = 2.0**-53


class ZeroProbabilityWarning(UserWarning):
    """A value that never occurred in a class has probability 0 there."""


class Scorer(Protocol):
    """A fitted model as a function of rows, which may be sent to other processes."""

    @property
    def log_prior(self) -> np.ndarray:
        """ln P(c), (K,)."""

    @property
    def logs(self) -> np.ndarray:
        """All logarithms of probabilities of values, in any order."""

    def joint(self, X: Any) -> np.ndarray:
        """Return ln P(x, c), (n, K)."""

    def sizes(self, X: Any, joint: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the sum of magnitudes of the terms of each row, at most, and a number of roundings of each."""


class BayesClassifier(ClassifierMixin, Learner):
    """The class of largest posterior, for a model of ln P(x, c)."""

    figure = "tables"
    n_jobs: int | None
    class_count_: np.ndarray
    class_prior_: np.ndarray
    feature_count_: np.ndarray

    def _scorer(self) -> Scorer:
        raise NotImplementedError

    def _read(self, X: Any) -> Any:
        """Return rows to predict for, checked."""
        return validate_data(self, X, reset=False, dtype=np.float64)

    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        """Return ln P(x, c) of each row and class, (n, K); -inf for a class that cannot have produced the row."""
        check_is_fitted(self)
        rows = scan.rows(self._read(X), n_jobs=self.n_jobs)
        return np.concatenate(rows.map(_joint, self._scorer()))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return ln P(c | x), (n, K)."""
        return log_posterior(self.predict_joint_log_proba(X), self._log_prior)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return P(c | x), (n, K)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        best = known(self.predict_joint_log_proba(X), self._log_prior).argmax(axis=1)
        return self.classes_[best]

    @property
    def _log_prior(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.class_prior_)

    def evidence(self, rows: Any) -> Any:
        """Yield the scores."""
        found: Evidence = Scores(_bounded, (self._scorer(),), logistic=True)
        yield found

    def _check_prior(self, given: Any, name: str) -> np.ndarray:
        """Return the class probabilities that the user gave."""
        prior = np.asarray(given, dtype=np.float64)
        if prior.shape != (len(self.classes_),):
            raise refuse(self, f"Number of priors must match number of classes: {name} has shape {prior.shape}.")
        if not (prior >= 0).all():
            raise refuse(self, f"Priors must be non-negative; {name} is {given!r}.")
        if not np.isclose(prior.sum(), 1.0):
            raise refuse(self, f"The sum of the priors should be 1; {name} sums to {prior.sum():g}.")
        return prior

    def _drawn_classes(self, n_samples: Any, random_state: Any) -> tuple[np.random.RandomState, np.ndarray]:
        """Return the source of random numbers, and the class of each row that is to be drawn."""
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise refuse(self, f"n_samples must be an integer >= 1; got {n_samples!r}.")
        random = check_random_state(random_state)
        chances = self.class_prior_ / self.class_prior_.sum()
        return random, random.choice(len(chances), size=int(n_samples), p=chances)

    def _tell_zeros(self, log_tables: np.ndarray) -> None:
        """Warn if a probability is 0, which is so only if nothing is added to the counts."""
        zeros = int(np.count_nonzero(np.isneginf(log_tables)))
        if zeros:
            warnings.warn(
                f"{type(self).__name__}: without smoothing {zeros} of {log_tables.size} probabilities are 0: a value "
                "that a class never had rules the class out. Use alpha > 0 if it should not.",
                ZeroProbabilityWarning,
                stacklevel=5,
            )

    def _take_classes(self, y: Any, classes: Any) -> bool:
        """Keep the classes of a first `partial_fit`; return whether it is the first."""
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise refuse(self, "classes must be passed on the first call to partial_fit.")
        if classes is not None:
            listed = np.unique(np.asarray(classes))
            if not first and not np.array_equal(self.classes_, listed):
                raise refuse(self, f"`classes={classes!r}` is not the same as on last call to partial_fit.")
            check_classification_targets(listed)
            self.classes_ = listed
        unknown = [] if y is None or isinstance(y, str) else np.setdiff1d(np.asarray(y), self.classes_).tolist()
        if unknown:
            listed = self.classes_.tolist()
            raise refuse(self, f"The target label(s) {unknown} in y do not exist in the initial classes {listed}.")
        return first

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if len(self.classes_) < 2:
            raise refuse(self, "a certificate needs two classes; all training rows have one label.")
        return super()._known_rows(X, y, sample_weight)


def log_posterior(joint: np.ndarray, log_prior: np.ndarray) -> np.ndarray:
    """Return ln P(c | x) from ln P(x, c)."""
    joint = known(joint, log_prior)
    joint = joint - joint.max(axis=1, keepdims=True)
    return joint - np.log(np.exp(joint).sum(axis=1, keepdims=True))


def known(joint: np.ndarray, log_prior: np.ndarray) -> np.ndarray:
    """Return the rows with the prior where no class can have produced them."""
    none = (joint == -np.inf).all(axis=1)
    return np.where(none[:, None], log_prior, joint) if none.any() else joint


def log_of(values: Any) -> np.ndarray:
    """Return logarithms, -inf of 0."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def _joint(block: Block, scorer: Scorer) -> np.ndarray:
    return scorer.joint(block.X)


def _bounded(block: Block, scorer: Scorer) -> tuple[np.ndarray, np.ndarray]:
    """Return scores that are all finite, and twice how far rounding can move them."""
    joint = scorer.joint(block.X)
    sizes, roundings = scorer.sizes(block.X, joint)
    values = known(joint, scorer.log_prior)
    possible = values > -np.inf
    if not possible.all():
        least = np.where(possible, values, np.inf).min(axis=1)
        values = np.where(possible, values, (least - IMPOSSIBLE)[:, None])
    return values, 8 * (roundings + 16) * _UNIT * (sizes + np.abs(values).max(axis=1) + 16)

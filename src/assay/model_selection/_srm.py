"""Structural risk minimisation: the candidate whose certified error rate is smallest.

Each candidate j has a prior weight p_j, fixed in advance, and states its bounds at delta p_j; the weights sum to
one, so all bounds of all candidates hold together with probability 1 - delta, and the smallest of them may be
chosen without paying again (Vapnik 1982; with weights, Blumer et al. 1987). The ledger of the certificate lists
what every candidate spent.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_array, check_is_fitted, validate_data

from assay.base import Learner
from assay.claims.claim import Certificate, Claim
from assay.guarantees.ledger import DOWN, CertifyOptions, Vacuous
from assay.guarantees.seal import Others, issue, risks
from assay.params import Number, check, refuse


@dataclass(frozen=True)
class Candidate:
    """One learner that was compared: its share of delta and its tightest bound (None: nothing below 1).

    Parameters
    ----------
    name : str
        Name of the learner.
    learner : Learner
        The fitted learner.
    delta : str
        Its share of delta.
    claim : Claim or None
        Its tightest bound; None: nothing below 1.
    ledger : tuple of tuple of str
        What delta was spent on.
    """

    name: str
    learner: Learner
    delta: str
    claim: Claim | None
    ledger: tuple[tuple[str, str], ...]

    @property
    def bound(self) -> float:
        """The certified error rate; 1 if nothing is certified."""
        return 1.0 if self.claim is None else self.claim.value


def _chosen_has(method: str) -> Any:
    """Tell whether the chosen learner, or before the fit every candidate, has a method."""

    def check(minimizer: Any) -> bool:
        fitted = getattr(minimizer, "best_estimator_", None)
        return all(hasattr(item, method) for item in ([fitted] if fitted is not None else minimizer._learners()))

    return check


@dataclass(eq=False, repr=False)
class StructuralRiskMinimizer(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Fits classifiers and keeps the one whose certified error rate on new data is smallest.

    Parameters
    ----------
    estimators : list of classifiers of Assay, or of pairs (name, classifier)
        Nested or different classes, all fixed in advance.
    weights : list of positive numbers, optional
        Prior weight of each candidate, up to a common factor; equal if not given. A larger weight makes a
        candidate's bounds tighter, at the expense of the others.
    holdout : float in [0, 1)
        Share of the rows kept out of every fit, on which the candidates are judged beside the bounds from their
        training rows; 0: training rows alone.
    delta : float in (0, 1)
        Probability, over the draw of the rows, that any statement of any candidate fails.
    random_state : seed of the split into training and hold-out rows

    Attributes
    ----------
    best_estimator_ : the chosen learner, fitted to the training rows
    best_index_ : its place among the candidates
    certificate_ : its certificate, in which the choice is paid for: `verify(certificate_, best_estimator_, X, y)`
    candidates_ : list of `Candidate`, with the bound of each
    classes_, n_features_in_

    Examples
    --------
    A plane against a quadric, with three quarters of delta for the plane:

    >>> import numpy as np
    >>> from assay.discriminant_analysis import QuadraticDiscriminantAnalysis
    >>> from assay.linear_model import LogisticRegression
    >>> from assay.model_selection import StructuralRiskMinimizer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=2000) > 0
    >>> model = StructuralRiskMinimizer(
    ...     [LogisticRegression(), QuadraticDiscriminantAnalysis()], weights=[3, 1], random_state=0
    ... ).fit(X, y)
    >>> print(type(model.best_estimator_).__name__, [round(one.bound, 3) for one in model.candidates_])
    LogisticRegression [0.127, 0.131]
    >>> import assay
    >>> assay.verify(model.certificate_, model.best_estimator_, X, y).holds
    True
    """

    best_estimator_: Learner = field(init=False)
    certificate_: Certificate = field(init=False)

    constraints: ClassVar = {
        "delta": Number(low=0.0, high=1.0, open_low=True),
        "holdout": Number(low=0.0, high=1.0),
    }

    estimators: Sequence[Any]
    weights: Sequence[float] | None = None
    _: KW_ONLY
    holdout: float = 0.25
    delta: float = 0.05
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> "StructuralRiskMinimizer":
        """Fit every candidate, bound its error rate at its share of delta, and keep the best."""
        shares = self._check()
        validate_data(self, X, skip_check_array=True)
        read = check_array(X, dtype=None, ensure_all_finite=False)
        X = X if hasattr(X, "columns") else read  # candidates read the columns of a frame by their types
        y = _check_y(y, estimator=self)
        check_classification_targets(y)
        held = self._held_out(np.asarray(y))
        kept = np.setdiff1d(np.arange(len(y)), held)
        fitted = [clone(learner).fit(_safe_indexing(X, kept), _safe_indexing(y, kept)) for learner in self._learners()]
        self.classes_ = fitted[0].classes_
        cuts = [model._cut(X, y, None, held if len(held) else None) for model in fitted]
        result = zip(self._names(), fitted, cuts, shares, strict=True)
        self.candidates_ = [_candidate(name, item, cut, share) for name, item, cut, share in result]
        self.best_index_ = min(range(len(fitted)), key=lambda j: self.candidates_[j].bound)
        best = self.candidates_[self.best_index_]
        entries = tuple(entry for candidate in self.candidates_ if candidate is not best for entry in candidate.ledger)
        others = Others(Decimal(repr(float(self.delta))), entries)
        self.best_estimator_ = best.learner
        self.certificate_ = issue(
            best.learner, cuts[self.best_index_], delta=Decimal(best.delta), asked=CertifyOptions(), others=others
        )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the labels that the chosen learner predicts."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)  # type: ignore[attr-defined]

    @available_if(_chosen_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of the chosen learner."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)  # type: ignore[attr-defined]

    @available_if(_chosen_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the chosen learner."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)  # type: ignore[attr-defined]

    def _learners(self) -> list[Learner]:
        return [estimator[1] if isinstance(estimator, tuple) else estimator for estimator in self.estimators]

    def _names(self) -> list[str]:
        return [
            estimator[0] if isinstance(estimator, tuple) else type(estimator).__name__ for estimator in self.estimators
        ]

    def _check(self) -> list[Decimal]:
        """Return each candidate's share of delta, rounded down so that they never exceed it together."""
        check(self)
        learners = self._learners()
        if not learners or not all(isinstance(learner, Learner) and is_classifier(learner) for learner in learners):
            raise refuse(self, f"estimators must be one or more classifiers of Assay; got {self.estimators!r}.")
        weights = [1.0] * len(learners) if self.weights is None else list(self.weights)
        if len(weights) != len(learners) or not all(isinstance(w, Real) and np.isfinite(w) and w > 0 for w in weights):
            raise refuse(self, f"weights must be {len(learners)} positive numbers, one for each; got {self.weights!r}.")
        exact = [Fraction(float(w)) for w in weights]
        delta, total = Fraction(repr(float(self.delta))), sum(exact, Fraction(0))
        parts = [delta * weight / total for weight in exact]
        return [DOWN.divide(Decimal(part.numerator), Decimal(part.denominator)) for part in parts]

    def _held_out(self, y: np.ndarray) -> np.ndarray:
        """Return the numbers of the hold-out rows: a plain random draw, without regard to the labels."""
        n = len(y)
        held = np.sort(check_random_state(self.random_state).permutation(n)[: round(n * float(self.holdout))])
        kept = np.delete(y, held)
        lost = np.setdiff1d(y[held], kept)
        if len(lost):
            raise refuse(self, f"class {lost[0]!s} is so rare that no training row has it; merge it, or lower holdout.")
        return held

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def _candidate(name: str, learner: Learner, cut: Any, share: Decimal) -> Candidate:
    stated = risks(learner, cut, delta=share, asked=CertifyOptions())
    rates = [
        statement
        for statement in stated
        if isinstance(statement, Claim) and statement.quantity and statement.direction == "upper"
    ]
    best = min(rates, key=lambda item: item.value, default=None)
    ledger = tuple((statement.name, statement.delta) for statement in stated if isinstance(statement, (Claim, Vacuous)))
    return Candidate(name, learner, str(share), best, ledger)

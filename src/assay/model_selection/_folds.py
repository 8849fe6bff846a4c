"""Cross-validation whose models are kept: what their own folds prove about them.

Model k is fitted to the rows outside fold k, so fold k is a hold-out set for it, and the mean of the K error rates is
at most the mean of K binomial limits, each at delta / K. Every row is fitted to and tested on, none is spent. The
statement is about the models that are kept, not about one refitted to all rows: nothing better than this is known to
be true of that (Bengio and Grandvalet 2004; Blum, Kalai and Langford 1999).
"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted, validate_data

from assay import scan
from assay.base import Learner
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.ensemble._members import one_hot
from assay.guarantees.evidence import NOBODY, OPEN, Decided, Evidence, Gathered, Votes
from assay.guarantees.ledger import FIT_NOT_KEPT, OUTWARD, Statement, Vacuous, claim
from assay.guarantees.order import FOLDS, permutation
from assay.messages import Message
from assay.params import Count, check, refuse
from assay.scan import Rows
from assay.theory.concentration import clopper_pearson_upper
from assay.theory.spaces import Unbounded


@dataclass(eq=False, repr=False)
class CrossValidated(ClassifierMixin, Learner):
    """K models of one classifier, each fitted without one fold of the rows; they vote.

    Parameters
    ----------
    estimator : a classifier of Assay
    folds : int >= 2
        More folds give models more rows to learn from, and bounds fewer rows to test each on.
    random_state : seed of the folds, which are drawn without regard to the rows

    Attributes
    ----------
    fold_models_ : the K fitted classifiers; one that has not seen a class is wrong on the rows of that class
    fold_ : (n,) which fold each row is in: model k was fitted to the rows outside fold k
    seed_ : the seed that the folds follow from
    fold_errors_ : (K,) share of errors of model k on fold k
    classes_, n_features_in_

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from assay.model_selection import CrossValidated
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrossValidated(LinearDiscriminantAnalysis(), folds=3, random_state=0).fit(X, y)
    >>> round(float(model.fold_errors_.mean()), 3), round(model.certify(X, y).find("cross-validation.mean").value, 3)
    (0.02, 0.113)
    """

    fold_models_: list[Any] = field(init=False)
    fold_: np.ndarray = field(init=False)
    seed_: int = field(init=False)

    constraints: ClassVar = {"folds": Count(low=2)}

    estimator: Any
    folds: int = 5
    _: KW_ONLY
    random_state: Any = None

    def members(self) -> list[Any]:
        return self.fold_models_

    def _take_members(self, members: Any) -> None:
        self.fold_models_ = list(members)

    @property
    def family(self) -> str:  # type: ignore[override]
        """The checker's predictor: a vote of models of one family."""
        return "folds"

    def fit(self, X: Any, y: Any) -> "CrossValidated":
        """Fit a model to the rows outside each fold."""
        check(self)
        K = self.folds
        if not (isinstance(self.estimator, Learner) and is_classifier(self.estimator)):
            raise refuse(self, f"estimator must be a classifier of Assay; got {self.estimator!r}.")
        X = validate_data(self, X, dtype=np.float64)
        y = _check_y(y, estimator=self)
        check_classification_targets(y)
        check_consistent_length(X, y)
        if len(y) < K:
            raise refuse(self, f"{K} folds need at least {K} rows; got n_samples = {len(y)}.")
        given = self.random_state
        drawn = isinstance(given, (int, np.integer)) and given >= 0
        self.seed_ = int(given) if drawn else int(check_random_state(given).randint(2**31))
        self.fold_ = np.empty(len(y), dtype=np.int32)
        self.fold_[permutation(len(y), self.seed_, FOLDS)] = np.arange(len(y)) % K
        self.classes_ = np.unique(y)
        self.fold_models_ = [self._fold_model(X, y, k) for k in range(K)]
        wrong = [np.mean(self.fold_models_[k].predict(X[self.fold_ == k]) != y[self.fold_ == k]) for k in range(K)]
        self.fold_errors_ = np.array(wrong)
        return self

    def _fold_model(self, X: np.ndarray, y: np.ndarray, k: int) -> Any:
        rest = self.fold_ != k
        seen = np.unique(y[rest])
        if len(seen) < 2:
            which = "there is" if len(self.classes_) < 2 else f"outside fold {k} there is"
            raise refuse(self, f"{which} only one class, {seen[0]!s}; a classifier needs rows of at least two.")
        return clone(self.estimator).fit(X[rest], y[rest])

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with most votes; the first of equals."""
        winner = self._votes(X).argmax(axis=1)
        return self.classes_[winner]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the share of the models that vote for each class."""
        return self._votes(X) / len(self.fold_models_)

    def mean_error(self, X: Any, y: Any) -> float:
        """Return the mean error rate of the models on these rows: that of one drawn at random for each row."""
        check_is_fitted(self)
        return float(np.mean([np.mean(one.predict(X) != np.asarray(y)) for one in self.fold_models_]))

    def _votes(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        codes = [np.searchsorted(self.classes_, one.predict(X)) for one in self.fold_models_]
        return np.sum([one_hot(code, len(self.classes_)) for code in codes], axis=0)

    # Certificate

    def space(self, rows: Rows) -> Any:
        """Return a class without a dimension: the vote of the folds is not one member of the learner's class."""
        return Unbounded("votes of models of several folds")

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the class with most votes of the models."""
        members = [Gathered(one.evidence(rows)).the(Decided) for one in self.fold_models_]
        yield Votes(_fold_votes, ([(one.decide, one.packed) for one in members], self._places(), len(self.classes_)))

    def _places(self) -> list[np.ndarray]:
        return [self._own_classes(one) for one in self.fold_models_]

    def _own_classes(self, model: Any) -> np.ndarray:
        """Return the place in `classes_` of each class that a model has seen, and last what stands for none."""
        return np.append(np.searchsorted(self.classes_, model.classes_), [NOBODY, OPEN, -1])

    def _errors(self, model: Any, X: np.ndarray, codes: np.ndarray) -> int:
        """Return the errors of one model; rows of a class that it has not seen are among them."""
        own = self._own_classes(model)[:-3]
        known = np.isin(codes, own)
        left = scan.rows(X[known], np.searchsorted(own, codes[known]))
        return int(np.sum(~known)) + (_most_errors(model, left) if known.any() else 0)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield the mean error rate of the models, each on the fold it was fitted without."""
        if not hasattr(self, "fold_"):
            yield NotApplicable("cross-validation.mean", FIT_NOT_KEPT)
        elif rows.n_rows != len(self.fold_):
            yield NotApplicable("cross-validation.mean", Message("why.other-folds"))
        else:
            yield partial(self._mean_of_folds, rows)

    def _mean_of_folds(self, rows: Rows, delta: str) -> Claim | NotApplicable:
        X = np.concatenate([block.X for block in rows.blocks()])
        codes = np.concatenate([np.asarray(block.y) for block in rows.blocks()])
        parts = [(one, self.fold_ == k) for k, one in enumerate(self.fold_models_)]
        errors = [self._errors(one, X[mine], codes[mine]) for one, mine in parts]
        return mean_of_folds(errors, self.fold_, self.seed_, delta)


def mean_of_folds(errors: Sequence[int], fold: np.ndarray, seed: int, delta: str) -> Claim | NotApplicable:
    """Return the claim about the mean error rate of models, of which model k makes errors[k] on the rows of fold k, as
    the seed draws them."""
    K, sizes = len(errors), np.bincount(fold).tolist()
    at = float(delta) / K
    limits = [min(1.0, clopper_pearson_upper(e, m, at) + OUTWARD) for e, m in zip(errors, sizes, strict=True)]
    value = float(np.mean(limits)) * (1 + 1e-12)
    if value >= 1:
        return Vacuous("cross-validation.mean", Message("why.small-folds", rows=len(fold) // K, folds=K), delta)
    params = {"folds": K, "rows": len(fold), "seed": seed}
    return claim("cross-validation.mean", value, params, "train", delta, witness={"limits": np.array(limits)})


def _most_errors(model: Any, rows: Rows) -> int:
    return Gathered(model.evidence(rows)).the(Decided).count_errors(rows)[1]


def _fold_votes(block: Block, members: list[Any], places: list[np.ndarray], n_classes: int) -> np.ndarray:
    """Return the class with most votes, the first of equals; OPEN or NOBODY where members that are so decide."""
    found = np.stack([place[decide(block, *packed)] for (decide, packed), place in zip(members, places)], axis=1)
    votes = np.stack([(found == k).sum(axis=1) for k in range(n_classes)], axis=1)
    unsure, ranked = (found < 0).sum(axis=1), np.sort(votes, axis=1)
    lead = ranked[:, -1] - ranked[:, -2]
    opened = np.where((found == OPEN).any(axis=1), OPEN, NOBODY)
    return np.where((lead > unsure) | (unsure == 0), votes.argmax(axis=1), opened)

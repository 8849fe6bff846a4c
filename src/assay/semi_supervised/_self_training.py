"""Self-training (Yarowsky 1995), and a student whose error rate is bounded through a certified teacher.

Self-training adds to the training set the rows that the classifier labels with high confidence, and fits again.

Claims: what the size of the class of its last classifier, and hold-out rows, say about new data.
Method: rounds of fit and predict; scikit-learn's rule and rounds, on anything that the classifier reads: rows of
        numbers, or texts for a pipeline.

Teacher and student:

    error(student)  <=  error(teacher) + P[student and teacher differ]

The teacher is fitted to some of the labelled rows; its errors on the others bound its error rate. The student may be
fitted to all labelled rows, those that certify the teacher included, and to unlabelled rows with the teacher's labels.
How often the two differ is counted on unlabelled rows that neither was fitted to.

Claims: the bound on the student's error rate (teacher.disagreement): one limit for each term, at half of delta each.
Method: one split of the labelled and one of the unlabelled rows, drawn before anything is looked at.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.callback import with_callbacks
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_method_params, check_is_fitted

from assay import scan
from assay.base import Learner, fit_log
from assay.card import Card
from assay.checker.record import Rejected
from assay.checker.rules.copies import check_drawn
from assay.claims.claim import Claim, NotApplicable
from assay.ensemble._members import routed_to
from assay.fitlog import part_of_a_fit
from assay.guarantees.evidence import Decided, Evidence, Gathered, labels
from assay.guarantees.fingerprint import keys, repeats
from assay.guarantees.ledger import OUTWARD, Statement, Vacuous, error_rate
from assay.linear_model import LogisticRegression
from assay.messages import Message, named
from assay.params import Choice, Count, Maybe, Number, check, refuse
from assay.scan import Rows
from assay.semi_supervised._labels import SemiSupervised, labelled, plain_labels
from assay.theory.concentration import clopper_pearson_upper
from assay.theory.spaces import Unbounded


class WhatItWraps:
    """The class of a learner that is given as a parameter."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Unbounded:
        return Unbounded("whatever the estimator is")

    def __str__(self) -> str:
        return "that of the estimator"


def _has(method: str) -> Any:
    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self._learner()), method)  # its error is the cause
        return True

    return check


class Wrapper(ClassifierMixin, SemiSupervised):
    """Mixin of classifiers that predict by a classifier of their own, `estimator_`."""

    figure = "wrapped"
    estimator: Any
    estimator_: Any

    def _learner(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _ask(self, method: str, X: Any, params: dict[str, Any]) -> np.ndarray:
        more = routed_to(self, method, params)
        check_is_fitted(self)
        return getattr(self.estimator_, method)(X, **more)

    @available_if(_has("predict"))
    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Return the predicted label of each row."""
        return self._ask("predict", X, params)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any, **params: Any) -> np.ndarray:
        """Return the probability of each class, (n, n_classes)."""
        return self._ask("predict_proba", X, params)

    @available_if(_has("predict_log_proba"))
    def predict_log_proba(self, X: Any, **params: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        return self._ask("predict_log_proba", X, params)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any, **params: Any) -> np.ndarray:
        """Return the scores of the estimator."""
        return self._ask("decision_function", X, params)

    def get_metadata_routing(self) -> Any:
        """Return which metadata goes to the estimator's methods of the same name."""
        mapping = MethodMapping()
        for method in ("fit", "predict", "predict_proba", "predict_log_proba", "decision_function"):
            mapping.add(caller=method, callee=method)
        return MetadataRouter(owner=self).add(estimator=self._learner(), method_mapping=mapping)

    def _adopt(self) -> None:
        """Take over what the estimator knows of the rows."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def members(self) -> list[Any]:
        return [self.estimator_]

    def _take_members(self, members: Any) -> None:
        (self.estimator_,) = members

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield what the estimator knows about the rows."""
        yield from self.estimator_.evidence(rows)

    def space(self, rows: Rows) -> Any:
        """Return the class of the estimator, from which its last fit chose."""
        return self.estimator_.space(rows)

    def certify(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Return a certificate about the labelled rows; see `Learner.certify`."""
        check_is_fitted(self)
        if not isinstance(self.estimator_, Learner):
            kind = type(self.estimator_).__name__
            raise refuse(
                self,
                f"its estimator is a {kind}, which the checker does not know. Of a pipeline, certify a classifier of "
                "Assay on the rows that the steps before it make.",
            )
        return super().certify(X, y, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._learner())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.classifier_tags.multi_class = inner.classifier_tags is None or inner.classifier_tags.multi_class
        return tags


@dataclass(eq=False, repr=False)
class SelfTrainingClassifier(Wrapper):
    """A classifier that learns from its own sure predictions.

    In each round the estimator is fitted to the rows that have a label by now; rows that it is sure of get the
    predicted one. It ends when no row is added, none is left, or after `max_iter` rounds.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, or a pipeline that ends in one; None is `LogisticRegression()`
    threshold : float in [0, 1)
        A row is added if the probability of its class is above it.
    criterion : "threshold" or "k_best"
        "k_best" adds the k_best surest rows of each round.
    k_best : int
    max_iter : int or None
        Rounds at most; None: as many as it takes.
    verbose : bool
        Whether the number of new labels is printed after each round.

    Attributes
    ----------
    estimator_ : the classifier of the last round
    classes_
    transduction_ : (n,)
        Labels that the last fit used; unlabelled marks where a row was never added.
    labeled_iter_ : (n,)
        The round that labelled a row; 0: it came with a label; -1: never.
    n_iter_, termination_condition_

    Examples
    --------
    >>> from assay.semi_supervised import SelfTrainingClassifier
    >>> X = [[0.0], [0.5], [1.0], [4.0], [4.5], [5.0]]
    >>> SelfTrainingClassifier(threshold=0.6).fit(X, [0, -1, -1, -1, -1, 1]).transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    family = "semi.wrapped"
    card = Card(
        name="Self-training",
        task="classify",
        model=WhatItWraps(),
        strategy="that of the estimator, on labels that it gave with certainty",
        algorithm="rounds of fit and predict",
        guarantee=("vc",),
    )
    constraints: ClassVar = {
        "threshold": Number(low=0.0, high=1.0, open_high=True),
        "criterion": Choice("threshold", "k_best"),
        "k_best": Count(),
        "max_iter": Maybe(Count(low=0)),
    }

    estimator: Any = None
    threshold: float = 0.75
    criterion: str = "threshold"
    k_best: int = 10
    max_iter: int | None = 10
    verbose: bool = False
    _: KW_ONLY
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, **params: Any) -> "SelfTrainingClassifier":
        """Fit to rows (or texts) X and labels y, of which -1 stands for none; with scikit-learn's routing the estimator
        gets what it asks for, of arrays with a value for each row the part that belongs to its rows."""
        more = routed_to(self, "fit", params)
        check(self)
        labels = self._labels(X, y)
        (X,) = indexable(X)
        known = labelled(labels)
        check_classification_targets(plain_labels(labels[known]))
        self._tell(known)
        self.estimator_ = self._fresh()
        self.transduction_ = labels.copy()
        self.labeled_iter_ = np.where(known, 0, -1)
        self.n_iter_ = 0
        most = len(labels) if self.max_iter is None else self.max_iter
        with fit_log(self, most, X, y) as log:
            while not known.all() and self.n_iter_ < most:
                try:
                    added = self._round(X, known, more)
                except KeyboardInterrupt:
                    added, log.stopped = 0, True
                if not added or log.step(float(np.mean(~known)), 0.0):
                    break
            ends = {"all_labeled": known.all(), "interrupted": log.stopped, "max_iter": self.n_iter_ == self.max_iter}
            self.termination_condition_ = next((end for end, reached in ends.items() if reached), "no_change")
            self._train(X, known, more)
            log.step(float(np.mean(~known)), 0.0, estimator_=self.estimator_, classes_=self.estimator_.classes_)
        self.classes_ = self.estimator_.classes_
        self._adopt()
        return self

    def _fresh(self) -> Any:
        learner = clone(self._learner())
        if self.n_jobs is not None and "n_jobs" in learner.get_params(deep=False):
            learner.set_params(n_jobs=self.n_jobs)
        return learner

    def _tell(self, known: np.ndarray) -> None:
        left = int(np.sum(~known))
        if not left:
            warnings.warn(named(self, "warn.labelled"), UserWarning, stacklevel=4)
        elif self.criterion == "k_best" and self.k_best > left:
            warnings.warn(
                f"SelfTrainingClassifier: k_best is larger than the number of unlabeled samples, {left}: all are "
                "labelled in the first round.",
                UserWarning,
                stacklevel=4,
            )

    def _train(self, X: Any, known: np.ndarray, more: dict[str, Any]) -> None:
        where = np.flatnonzero(known)
        part = _check_method_params(X, more, indices=where)
        self.estimator_.fit(_safe_indexing(X, where), plain_labels(self.transduction_[where]), **part)

    def _round(self, X: Any, known: np.ndarray, more: dict[str, Any]) -> int:
        """Fit, and give labels to the rows that are sure; return how many."""
        self._train(X, known, more)
        if not hasattr(self.estimator_, "predict_proba"):
            kind = type(self.estimator_).__name__
            raise AttributeError(f"SelfTrainingClassifier: its estimator, a {kind}, has no attribute 'predict_proba'.")
        self.n_iter_ += 1
        left = np.flatnonzero(~known)
        shares = self.estimator_.predict_proba(_safe_indexing(X, left))
        best, largest = shares.argmax(axis=1), shares.max(axis=1)
        if self.criterion == "threshold":
            chosen = np.flatnonzero(largest > self.threshold)
        elif self.k_best >= len(left):
            chosen = np.arange(len(left))
        else:
            chosen = np.argpartition(-largest, self.k_best)[: self.k_best]
        self.transduction_[left[chosen]] = self.estimator_.classes_[best[chosen]]
        known[left[chosen]] = True
        self.labeled_iter_[left[chosen]] = self.n_iter_
        if self.verbose and len(chosen):
            print(f"End of iteration {self.n_iter_}, added {len(chosen)} new labels.")
        return len(chosen)


VOUCHED = "teacher.disagreement"


def kept_rows(split: np.ndarray) -> np.ndarray:
    """Return which of the labelled rows, counted in their order, the teacher did not see: `split` holds the seed, the
    number of labelled rows and how many of them are kept.

    >>> kept_rows(np.array([0, 5, 2])).tolist()
    [0, 2]
    """
    seed, rows, kept = (int(value) for value in split)
    return np.sort(np.random.RandomState(seed).permutation(rows)[:kept])


@dataclass(eq=False, repr=False)
class VouchedClassifier(Wrapper):
    """A student with a bound on its error rate through its disagreement with a certified teacher.

    Parameters
    ----------
    estimator : Learner
        The student; None is `LogisticRegression()`. It is fitted to all labelled rows and to rows without labels,
        which have the teacher's.
    teacher : Learner
        None is the student's kind.
    keep : float in (0, 1)
        Share of the labelled rows that certify the teacher, and of the unlabelled ones on which both are compared.
    random_state : int, RandomState or None
        Of the splits.

    Attributes
    ----------
    estimator_, teacher_ : fitted learners
    classes_
    split_ : (3,)
        Seed of the split, number of labelled rows, number of those that the teacher did not see.
    unlabelled_ : (m, n_features)
        The rows without labels that neither saw; part of the model, since its certificate rests on them.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.semi_supervised import VouchedClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = rng.normal(size=(2000, 2)) + 3.0 * y[:, None]
    >>> seen = np.where(np.arange(2000) < 600, y, -1)
    >>> model = VouchedClassifier(random_state=0).fit(X, seen)
    >>> bool(model.certify(X, seen).find("teacher.disagreement").value < 0.1)
    True
    """

    family = "semi.vouched"
    card = Card(
        name="Classifier vouched for by a certified one",
        task="classify",
        model=WhatItWraps(),
        strategy="that of the student, on labels and on the teacher's predictions",
        algorithm="two fits and two splits",
        guarantee=("teacher.disagreement",),
    )
    constraints: ClassVar = {"keep": Number(low=0.0, high=1.0, open_low=True, open_high=True)}

    estimator: Any = None
    teacher: Any = None
    _: KW_ONLY
    keep: float = 0.5
    random_state: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "VouchedClassifier":
        """Fit teacher and student to rows X and labels y, of which -1 stands for none."""
        check(self)
        given = self._read(X, y, ensure_min_samples=2)
        random = check_random_state(self.random_state)
        own, others = np.flatnonzero(given.known), np.flatnonzero(~given.known)
        seed, most = int(random.randint(2**31 - 1)), len(own) - 1
        self.split_ = np.array([seed, len(own), min(most, round(self.keep * len(own)))])
        seen = np.delete(own, kept_rows(self.split_))
        others = random.permutation(others)
        kept = np.sort(others[: round(self.keep * len(others))])
        taught = np.sort(others[len(kept) :])
        with fit_log(self, 2, X, y) as log:
            self.teacher_ = self._fitted(self.teacher, given.X[seen], given.codes[seen])
            log.step(0.0, 0.0)
            codes = np.concatenate([given.codes[own], self._known(given.X[taught])])
            self.estimator_ = self._fitted(self.estimator, given.X[np.concatenate([own, taught])], codes)
            log.step(0.0, 0.0)
        self.unlabelled_ = given.X[kept]
        self._name_columns()
        return self

    def _fitted(self, learner: Any, X: np.ndarray, codes: np.ndarray) -> Learner:
        """Return the learner fitted to rows that must be of all classes."""
        learner = clone(self._learner() if learner is None else learner)
        if not isinstance(learner, Learner):
            raise refuse(self, f"student and teacher must be learners of Assay; got {type(learner).__name__}.")
        result = np.unique(codes)
        if len(result) < len(self.classes_):
            missing = self.classes_[np.setdiff1d(np.arange(len(self.classes_)), result)[0]]
            raise refuse(
                self,
                f"every class needs a row that the teacher sees, and the split left none of class {missing}, of which "
                "there is perhaps one sample; lower keep, or label more rows.",
            )
        if "random_state" in learner.get_params(deep=False) and learner.random_state is None:
            learner.set_params(random_state=int(self.split_[0]))
        if self.n_jobs is not None and "n_jobs" in learner.get_params(deep=False):
            learner.set_params(n_jobs=self.n_jobs)
        with part_of_a_fit():
            return learner.fit(X, self.classes_[codes])

    def _known(self, X: np.ndarray) -> np.ndarray:
        if not X.shape[0]:
            return np.empty(0, dtype=np.int64)
        return np.searchsorted(self.classes_, self.teacher_.predict(X))

    def _name_columns(self) -> None:
        """Give both models the names of the columns, so that either reads the same frames."""
        for model in (self.estimator_, self.teacher_):
            model.__dict__.pop("feature_names_in_", None)
            if hasattr(self, "feature_names_in_"):
                model.feature_names_in_ = self.feature_names_in_

    def members(self) -> list[Any]:
        return [self.estimator_, self.teacher_]

    def _take_members(self, members: Any) -> None:
        self.estimator_, self.teacher_ = members

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False  # the kept rows are part of the model
        return tags

    def space(self, rows: Rows) -> Any:
        """Return a class without a bound: the student is not judged by the size of its own."""
        return self.card.model.at(rows.n_features, len(self.classes_))

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield the bound through the teacher, if rows were kept for it."""
        if not len(self.unlabelled_):
            yield NotApplicable(VOUCHED, Message("why.no-unlabelled-kept"))
        elif not self.split_[2]:
            yield NotApplicable(VOUCHED, Message("why.no-labelled-kept"))
        elif rows.n_rows != self.split_[1]:
            yield NotApplicable(VOUCHED, Message("why.other-labelled"))
        else:
            yield partial(self._bound, rows)

    def _bound(self, rows: Rows, delta: str) -> Claim | NotApplicable:
        """Return teacher.disagreement: an upper limit of the teacher's error rate plus one of the share on which the
        two differ."""
        kept = kept_rows(self.split_)
        teacher = Gathered(self.teacher_.evidence(rows)).the(Decided).positions(rows)
        errors = int(np.sum(teacher[kept] != labels(rows)[kept]))
        labelled, unlabelled = keys(rows), keys(scan.rows(self.unlabelled_))
        try:
            check_drawn(labelled[kept], np.delete(labelled, kept), "the rows kept from the teacher")
            check_drawn(unlabelled, labelled, "the rows without labels")
        except Rejected as picked:
            return NotApplicable(VOUCHED, Message("why.copies", reason=str(picked)))
        apart = self._apart()
        half, m, u = float(delta) / 2, len(kept), len(self.unlabelled_)
        limits = [min(1.0, clopper_pearson_upper(k, of, half) + OUTWARD) for k, of in ((errors, m), (apart, u))]
        if sum(limits) >= 1:
            return Vacuous(VOUCHED, Message("why.few-vouched", labelled=m, unlabelled=u), delta)
        params = {
            "rows": rows.n_rows,
            "kept": m,
            "errors": errors,
            "unlabelled": u,
            "differ": apart,
            "repeated": repeats(unlabelled, labelled),
            "teacher": limits[0],
            "difference": limits[1],
        }
        return error_rate(VOUCHED, sum(limits), params, "train", delta)

    def _apart(self) -> int:
        """Return on how many of the kept rows the two may differ."""
        rows = scan.rows(self.unlabelled_, n_jobs=self.n_jobs)
        own, other = (
            Gathered(model.evidence(rows)).the(Decided).positions(rows) for model in (self.estimator_, self.teacher_)
        )
        return int(np.sum((own != other) | (own < 0)))

"""A classifier whose error is bounded without labels of its own, through one that was certified.

    error(student)  <=  error(teacher) + P[student and teacher differ]

The teacher learns from some of the labelled rows; its errors on the others, which it never saw, bound its error rate.
The student may learn from everything labelled, also from the rows that certify the teacher, and from rows without
labels, to which the teacher gives its own. How often the two differ is counted on rows without labels that neither saw.

Claims: the bound on the student's error rate (teacher.disagreement): one limit for each term, at half of delta each.
Method: one split of the labelled and one of the unlabelled rows, drawn before anything is looked at.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state

from assay import scan
from assay.base import Learner, fit_log
from assay.card import Card
from assay.checker.record import Rejected
from assay.checker.rules.copies import check_drawn
from assay.claims.claim import Claim, NotApplicable
from assay.fitlog import part_of_a_fit
from assay.guarantees.evidence import Decided, Gathered, labels
from assay.guarantees.fingerprint import keys, repeats
from assay.guarantees.ledger import OUTWARD, Statement, Vacuous, error_rate
from assay.messages import Message
from assay.params import Number, check, refuse
from assay.scan import Rows
from assay.semi_supervised._self_training import WhatItWraps, Wrapper
from assay.theory.concentration import clopper_pearson_upper

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
        found = np.unique(codes)
        if len(found) < len(self.classes_):
            missing = self.classes_[np.setdiff1d(np.arange(len(self.classes_)), found)[0]]
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

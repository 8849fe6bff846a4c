"""One against one, one against the rest, and output codes: N classes by classifiers of two.

    one against one    N (N - 1) / 2 members, each on the rows of two classes; most votes win, equals by summed scores
    one against rest   N members; the largest score wins
    output codes       a member for each bit of the code; the class whose word is nearest to what the members say

For every row exactly one class is returned. The certificate has the hold-out statements of every classifier and, where
bits are decoded, the error rate by the mean number of wrong bits over one more than the code corrects.

Where a row may have any number of labels, or only one class was seen, one against the rest has no certificate: claims
are about one class for each row.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csc_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call, type_of_target
from sklearn.utils.validation import _check_method_params, _check_y, check_consistent_length, check_is_fitted

from assay.card import Card
from assay.checker.families.codes import EUCLIDEAN, HAMMING, LARGEST, LOSS, PAIRS
from assay.checker.rules.members import VOTE
from assay.claims.claim import NotApplicable
from assay.data.blocks import Block
from assay.ensemble._combined import (
    UNIT,
    CombinedLearner,
    MemberOutput,
    Output,
    Task,
    fit_members,
    fit_some,
    outputs,
    probability_link,
    score,
    score_link,
    vote_link,
)
from assay.ensemble._members import routed_to
from assay.fitlog import FitLog
from assay.guarantees.ledger import OUTWARD, CertifyOptions, Statement, Vacuous, claim
from assay.linear_model import LogisticRegression
from assay.messages import Message
from assay.multiclass._codes import corrected_bits, pairs_code
from assay.params import check, refuse
from assay.scan import Rows, thread_map
from assay.stored import StoredModel
from assay.theory.concentration import kl_upper
from assay.theory.spaces import Unbounded


def _base_has(method: str) -> Any:
    def has(model: Any) -> bool:
        getattr(model._base(), method)  # its error is the cause
        return True

    return has


class Reduced(ClassifierMixin, CombinedLearner):
    """What the three have in common: a code, a member for each of its columns, and scores of the classes."""

    combines: ClassVar = "classifiers of many classes by classifiers of two"
    _subset: ClassVar = "it must be subset"
    family = "codes"
    figure = "code_matrix"
    sparse_too: ClassVar = True
    code_: np.ndarray
    estimator: Any
    n_jobs: int | None

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _code(self, classes: int) -> np.ndarray:
        """Return the code, (classes, bits)."""
        raise NotImplementedError

    @property
    def decoding_(self) -> np.ndarray:
        """How the members' answers are decoded (family `codes`)."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, **params: Any) -> Any:
        """Fit the members side by side to rows X and labels y; with scikit-learn's routing they get what they ask
        for."""
        more = routed_to(self, "fit", params)
        check(self)
        self._check_base()
        X = self._rows(X, reset=True)
        codes, _ = self._targets(X, y, None)
        self.code_ = self._code(len(self.classes_))
        parts = self._pairwise and not np.all(self.code_)
        self.pairwise_indices_ = [self._bit(t, codes)[0] for t in range(self.code_.shape[1])] if parts else None
        with FitLog(self, 1, X, y) as log:
            made = fit_some(self, [self._bit_task(t, X, codes, more) for t in range(self.code_.shape[1])], self.n_jobs)
            log.stopped |= self._cut_code(made)
            self._keep([item for item in made if item is not None])
            log.step(float(np.mean(self._scores(X).argmax(axis=1) != codes)), 0.0)
        return self

    def _cut_code(self, made: list[Any]) -> bool:
        """Keep the bits whose members are fitted, and tell whether an interrupt left others out; a code that does not
        tell the classes apart without them is none."""
        done = np.array([item is not None for item in made])
        if done.all():
            return False
        left = self.code_[:, done]
        if int(self.decoding_) in (PAIRS, LARGEST) or len(np.unique(left, axis=0)) < len(left):
            raise KeyboardInterrupt
        self.code_ = left
        if self.pairwise_indices_ is not None:
            self.pairwise_indices_ = [self.pairwise_indices_[t] for t in np.flatnonzero(done)]
        return True

    def _check_base(self) -> None:
        if not hasattr(self._base(), "fit"):
            raise refuse(self, f"its estimator must be a learner with fit; got {self._base()!r}.")

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, Any]:
        try:
            return super()._targets(X, y, sample_weight)
        except ValueError as error:
            if len(getattr(self, "classes_", "  ")) == 1:
                raise refuse(self, f"it cannot be fitted when only one class is present. ({error})") from error
            raise

    def _bit_task(self, t: int, X: Any, codes: np.ndarray, more: dict[str, Any]) -> Task:
        used, target = self._bit(t, codes)
        rows = X if len(used) == len(codes) else self._square(X, used)
        sides = ["+".join(map(str, self.classes_[self.code_[:, t] == side])) for side in (1, -1)]
        more = _check_method_params(X, more, indices=used)
        return Task(" against ".join(sides)[:80], self._base(), rows, target, more)

    def _bit(self, t: int, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that bit t is learnt from, and their sides as 0 and 1."""
        bits = self.code_[codes, t]
        used = np.flatnonzero(bits)
        return used, (bits[used] > 0).astype(np.int64)

    def _square(self, X: Any, used: np.ndarray) -> Any:
        return X[np.ix_(used, used)] if self._pairwise else _safe_indexing(X, used)

    @property
    def _pairwise(self) -> bool:
        base = self._base()
        return hasattr(base, "fit") and bool(get_tags(base).input_tags.pairwise)

    def _seen_by(self, t: int, X: Any) -> Any:
        """Return the rows as member t reads them: of kernel values those with the rows that it was fitted to."""
        at = vars(self).get("pairwise_indices_")
        return X if at is None else X[:, at[t]]

    @available_if(_base_has("partial_fit"))
    def partial_fit(self, X: Any, y: Any, classes: Any = None, **params: Any) -> Any:
        """Teach the members some more rows; the first call names all classes."""
        more = routed_to(self, "partial_fit", params)
        check(self)
        first = _check_partial_fit_first_call(self, classes)
        X = self._rows(X, reset=first)
        if first:
            self.code_ = self._code(len(self.classes_))
            self._keep([clone(self._base()) for _ in range(self.code_.shape[1])])
        y = _check_y(y, estimator=self)
        if len(np.setdiff1d(y, self.classes_)):
            raise ValueError(
                f"{type(self).__name__}: Mini-batch contains {np.unique(y)} while {self._subset} of {self.classes_}"
            )
        codes = np.searchsorted(self.classes_, y)

        def teach(t: int) -> None:
            used, target = self._bit(t, codes)
            if len(used):
                part = _check_method_params(X, more, indices=used)
                self.members_[t].partial_fit(_safe_indexing(X, used), target, classes=np.array([0, 1]), **part)

        thread_map(teach, range(self.code_.shape[1]), n_jobs=self.n_jobs)
        self._keep(self.members_)
        return self

    def get_metadata_routing(self) -> Any:
        """Return which metadata goes to the members."""
        mapping = MethodMapping().add(caller="fit", callee="fit").add(caller="partial_fit", callee="partial_fit")
        return MetadataRouter(owner=self).add(estimator=self._base(), method_mapping=mapping)

    def stored(self) -> StoredModel:
        """Return this fitted model as plain data."""
        self._require_plain()
        return super().stored()

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        self._require_plain()
        return super()._known_rows(X, y, sample_weight)

    def _require_plain(self) -> None:
        if vars(self).get("pairwise_indices_") is not None:
            raise refuse(self, "members of parts of a kernel's values have no certificate and no file; pickle works.")

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        check_is_fitted(self, "members_")
        return len(self.classes_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._pairwise
        return tags

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members; they know two classes, 0 and 1."""
        check_is_fitted(self, "members_")
        return self.members_

    def _link_of(self, t: int) -> int:
        return (vote_link if int(self.decoding_) == HAMMING else score_link)(self.members_[t])

    def _combine(self, said: Sequence[Output], block: Block) -> Output:
        kind, M = int(self.decoding_), self.code_.astype(float)
        if kind == HAMMING:
            bits = np.column_stack([votes[:, 1] - votes[:, 0] for votes, _ in said])
            return decode(bits, M, kind), np.column_stack([errors[:, 0] for _, errors in said]) @ np.abs(M).T
        h, error = (np.column_stack([part[:, -1] for part in side]) for side in zip(*said))
        if kind == LARGEST:
            return h, error
        rounding = 8 * (len(M.T) + 4) * UNIT
        slack = error @ np.abs(M).T * (1 + 1e-12) + rounding * (np.abs(h) @ np.abs(M).T + np.abs(M).sum(axis=1))
        if kind == PAIRS:
            unsure = ((np.abs(h) <= error) & (error > 0)).astype(float)
            return decode(h, M, kind), 2 * unsure @ np.abs(M).T + slack / 3 + rounding
        return decode(h, M, kind), 2 * slack + rounding * len(M.T)

    def member_scores(self, X: Any) -> np.ndarray:
        """Return the score of each member for each row, (rows, members), above 0 for its second class."""
        check_is_fitted(self, "members_")
        return self._member_scores(self._rows(X, reset=False))

    def _member_scores(self, X: Any) -> np.ndarray:
        asked = list(enumerate(self.members_))
        return np.stack(thread_map(lambda at: score(at[1], self._seen_by(at[0], X)), asked, n_jobs=self.n_jobs), axis=1)

    def _bits(self, X: Any) -> np.ndarray:
        def says(t: int) -> np.ndarray:
            one, rows = self.members_[t], self._seen_by(t, X)
            plain = is_classifier(one) and hasattr(one, "predict")
            return np.asarray(one.predict(rows), dtype=np.int64) if plain else (score(one, rows) > 0).astype(np.int64)

        return 2 * np.stack(thread_map(says, range(len(self.members_)), n_jobs=self.n_jobs), axis=1) - 1

    def member_bits(self, X: Any) -> np.ndarray:
        """Return the bit that each member says, -1 or +1, (rows, members)."""
        check_is_fitted(self, "members_")
        return self._bits(self._rows(X, reset=False))

    def _scores(self, X: Any) -> np.ndarray:
        """Return a score for each class; X is as the members take it."""
        kind, M = int(self.decoding_), self.code_.astype(float)
        return decode(self._bits(X) if kind == HAMMING else self._member_scores(X), M, kind)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return a score for each class, (rows, classes); of two classes one number, above 0 for the second."""
        check_is_fitted(self, "members_")
        scores = self._scores(self._rows(X, reset=False))
        if len(self.classes_) > 2:
            return scores
        return scores[:, 1] if int(self.decoding_) in (PAIRS, LARGEST) else scores[:, 1] - scores[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest score, the first of equals."""
        check_is_fitted(self, "members_")
        best = self._scores(self._rows(X, reset=False)).argmax(axis=1)
        return self.classes_[best]

    def holdout_statements(self, rows: Rows | None, asked: CertifyOptions) -> Iterator[Statement | NotApplicable]:
        """Yield the error rate by the number of wrong bits."""
        if rows is None:
            return
        if self._corrected() < 0:
            yield NotApplicable("output-code.bits", Message("why.scores-decoded"))
        else:
            yield partial(self._bit_errors, rows)

    def _corrected(self) -> int:
        """Return how many wrong bits lead to no wrong class; -1 if scores are decoded that may not go with the bits."""
        if int(self.decoding_) in (PAIRS, LARGEST):
            return 0 if np.all(self.links_ >= 0) else -1
        return corrected_bits(self.code_) if int(self.decoding_) == HAMMING else -1

    def _bit_errors(self, rows: Rows, delta: str) -> Any:
        votes = outputs(self.members_, np.full(len(self.members_), VOTE), rows)
        wrong, m, L, c = int(rows.sum(_wrong_bits, votes, self.code_)[0]), rows.n_rows, len(votes), self._corrected()
        bound = L / (c + 1) * kl_upper(wrong / (m * L), -np.log(float(delta)) / m) * (1 + 1e-9) + OUTWARD
        if bound >= 1:
            return Vacuous("output-code.bits", Message("why.bits-vacuous", bits=wrong, rows=m), delta)
        params = {"rows": m, "bits": L, "corrected": c, "wrong": wrong}
        return claim("output-code.bits", bound, params, "holdout", delta)


def _wrong_bits(block: Block, members: Sequence[MemberOutput], code: np.ndarray) -> np.ndarray:
    """Return how many bits of the rows' code words are not certainly right; of a row of another class all of them."""
    codes, wrong = np.asarray(block.y), 0
    for t, member in enumerate(members):
        votes, unsure = member.of(block)
        wanted = code[codes, t]
        right = (votes[:, 1] - votes[:, 0] == wanted) & (unsure[:, 0] == 0)
        wrong += int(np.sum((codes < 0) | ((wanted != 0) & ~right)))
    return np.array([wrong])


def decode(predicted: np.ndarray, M: np.ndarray, decoding: int) -> np.ndarray:
    """Return scores of the classes from what members say, (rows, bits); see `checker.families.codes`."""
    if decoding == HAMMING:
        return predicted @ M.T
    if decoding == EUCLIDEAN and M.all():
        return 2 * predicted @ M.T - np.square(M).sum(axis=1)
    if (
        decoding == EUCLIDEAN
    ):  # a class is judged by the members that it took part in, whose scores have no common scale
        held = np.clip(predicted, -1.0, 1.0)
        return -np.stack([np.square(held[:, row != 0] - row[row != 0]).mean(axis=1) for row in M], axis=1)
    if decoding == LOSS:
        return -np.stack([np.maximum(0.0, 1 - predicted * row).sum(axis=1) for row in M], axis=1)
    if decoding == LARGEST:
        return predicted if predicted.shape[1] > 1 else np.column_stack([-predicted[:, 0], predicted[:, 0]])
    confidence = predicted @ M.T
    won = np.stack([(np.where(predicted > 0, 1.0, -1.0) * row > 0).sum(axis=1) for row in M], axis=1)
    return won + confidence / (3 * (np.abs(confidence) + 1))


def reduction_card(name: str, algorithm: str) -> Card:
    return Card(
        name=name,
        task="classify",
        model=Unbounded("classifiers of many classes by classifiers of two"),
        strategy="that of the members",
        algorithm=algorithm,
        guarantee=("output-code.bits",),
        most_rows=20_000,
        role="reduction",
    )


@dataclass(eq=False, repr=False)
class OneVsOneClassifier(Reduced):
    """A classifier of two classes for every pair of them; most votes win, equals by the sum of scores.

    Parameters
    ----------
    estimator : classifier or None
        Any classifier of two classes, of Assay or in scikit-learn's style; None is `LogisticRegression`.
    n_jobs : int or None
        Threads; changes the time, never a bit.

    Attributes
    ----------
    classes_, estimators_ (N (N - 1) / 2, pairs (0, 1), (0, 2), ...), code_ (classes, pairs)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.multiclass import OneVsOneClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsOneClassifier().fit(X, y)
    >>> len(model.estimators_), model.score(X, y) > 0.95
    (3, True)
    """

    card = reduction_card("One against one", "a member for every pair, on threads")

    estimator: Any = None
    _: KW_ONLY
    n_jobs: int | None = None

    @property
    def decoding_(self) -> np.ndarray:
        return np.array(PAIRS)

    def _code(self, classes: int) -> np.ndarray:
        return pairs_code(classes)


def _with_probabilities(model: Any) -> bool:
    members = getattr(model, "members_", None) or model._bases()
    return all(hasattr(member, "predict_proba") for member in members)


@dataclass(eq=False, repr=False)
class OneVsRestClassifier(Reduced):
    """A classifier of each class against the rest; the largest score wins.

    Parameters
    ----------
    estimator, n_jobs : as `OneVsOneClassifier`
    verbose : int
        Accepted; nothing is printed.

    Attributes
    ----------
    classes_, estimators_ (N, or one for two classes), code_
    label_binarizer_ : LabelBinarizer
        scikit-learn's coding of the labels, a column for each member.
    conflicts_ : dict
        Training rows that no member takes for its class ("none") and that several do ("several"); scores decide these.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.multiclass import OneVsRestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsRestClassifier().fit(X, y)
    >>> len(model.estimators_), sum(model.conflicts_.values()) > 0
    (3, True)
    """

    card = reduction_card("One against the rest", "a member for each, on threads")

    estimator: Any = None
    _: KW_ONLY
    n_jobs: int | None = None
    verbose: int = 0

    @property
    def decoding_(self) -> np.ndarray:
        return np.array(LARGEST)

    _subset: ClassVar = "classes must be subset"

    def _code(self, classes: int) -> np.ndarray:
        return np.array([[-1], [1]]) if classes == 2 else 2 * np.eye(classes, dtype=np.int64) - 1

    def _link_of(self, t: int) -> int:
        by_score = len(self.members_) == 1 or hasattr(self.members_[t], "decision_function")
        return (score_link if by_score else probability_link)(self.members_[t])

    def _member_scores(self, X: Any) -> np.ndarray:
        """Return scores, or of members without, probabilities: small ones would be lost in 2 p - 1."""
        if len(self.members_) == 1 or any(hasattr(member, "decision_function") for member in self.members_):
            return super()._member_scores(X)
        if not hasattr(self.members_[0], "predict_proba"):
            return super()._member_scores(X)
        said = thread_map(lambda item: np.asarray(item.predict_proba(X))[:, 1], self.members_, n_jobs=self.n_jobs)
        return np.stack(said, axis=1)

    def fit(self, X: Any, y: Any, **params: Any) -> "OneVsRestClassifier":
        """Fit a member for each class to rows X and labels y; y may also be a matrix of 0 and 1, a column for each
        label, of which a row may have any number (`multilabel_`)."""
        self.__dict__.pop("_binarizer", None)
        self.__dict__.pop("conflicts_", None)
        if y is not None and by_columns(y):
            return self._fit_labels(X, y, routed_to(self, "fit", params))
        super().fit(X, y, **params)
        positive = (self._bits(self._rows(X, reset=False)) > 0).sum(axis=1)
        several = int(np.sum(positive > 1)) if len(self.classes_) > 2 else 0
        none = int(np.sum(positive == 0)) if len(self.classes_) > 2 else 0
        self.conflicts_ = {"none": none, "several": several}
        return self

    def _fit_labels(self, X: Any, y: Any, more: dict[str, Any]) -> "OneVsRestClassifier":
        check(self)
        self._check_base()
        X = self._rows(X, reset=True)
        check_consistent_length(X, y)
        with FitLog(self, 1, X, y) as log:
            self._keep(fit_labels(self, X, y, self._base(), more, self.n_jobs))
            log.step(0.0, 0.0)
        return self

    @property
    def multilabel_(self) -> bool:
        """Whether rows may have several labels."""
        check_is_fitted(self, "members_")
        return self._by_columns and self._binarizer.y_type_.startswith("multilabel")

    @property
    def _by_columns(self) -> bool:
        return "_binarizer" in vars(self)

    @property
    def label_binarizer_(self) -> LabelBinarizer:
        """scikit-learn's coding of the labels."""
        check_is_fitted(self, "members_")
        return self._binarizer if self._by_columns else LabelBinarizer(sparse_output=True).fit(self.classes_)

    def predict(self, X: Any) -> Any:
        """Return the class with the largest score, the first of equals; of several labels a matrix of 0 and 1."""
        check_is_fitted(self, "members_")
        if not self._by_columns:
            return super().predict(X)
        return labelled(self, label_scores(self.members_, self._rows(X, reset=False)))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return a score for each class or label, (rows, classes); of two classes one number for each row."""
        check_is_fitted(self, "members_")
        if not self._by_columns:
            return super().decision_function(X)
        return label_scores(self.members_, self._rows(X, reset=False))

    @available_if(_with_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the members' probabilities of their classes, divided by their sum; of several labels as they are."""
        check_is_fitted(self, "members_")
        X = self._rows(X, reset=False)
        shares = np.stack([np.asarray(member.predict_proba(X))[:, 1] for member in self.members_], axis=1)
        if self._by_columns and self.multilabel_:
            return shares
        if shares.shape[1] == 1:
            return np.column_stack([1 - shares[:, 0], shares[:, 0]])
        total = shares.sum(axis=1, keepdims=True)
        return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1 / shares.shape[1])

    def _require_plain(self) -> None:
        super()._require_plain()
        if self._by_columns:
            raise refuse(self, "several labels, or one class, have no certificate and no file; pickle works.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class Constant(BaseEstimator):
    """A member for a label that all rows have, or none; it says so of every row."""

    def fit(self, X: Any, y: np.ndarray) -> "Constant":
        self.value_ = int(y[0]) if len(y) else 0
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.full(X.shape[0], self.value_)

    def decision_function(self, X: Any) -> np.ndarray:
        return np.full(X.shape[0], float(self.value_))

    def predict_proba(self, X: Any) -> np.ndarray:
        share = self.decision_function(X)
        return np.column_stack([1 - share, share])


def by_columns(y: Any) -> bool:
    """Tell whether a target has several columns, or rows of one class alone."""
    kind = type_of_target(y)
    if kind.startswith("multilabel") or "multioutput" in kind:
        return True
    return kind in ("binary", "multiclass") and len(np.unique(np.asarray(y))) < 2


def fit_labels(owner: Any, X: Any, y: Any, base: Any, more: dict[str, Any], n_jobs: int | None) -> list[Any]:
    """Return a member for each label, and set `_binarizer` and `classes_` of the owner."""
    owner._binarizer = LabelBinarizer(sparse_output=True)
    Y = csc_matrix(owner._binarizer.fit_transform(y))  # refuses several targets
    owner.classes_ = owner._binarizer.classes_
    tasks = []
    for t in range(Y.shape[1]):
        label, column = owner.classes_[min(t, len(owner.classes_) - 1)], Y[:, t].toarray().ravel()
        if np.ptp(column):
            tasks.append(Task(f"{label} or not", base, X, column, more))
            continue
        said = f"{label}" if column[0] else f"not {label}"
        warnings.warn(f"Label {said} is present in all training examples.", UserWarning, stacklevel=4)
        tasks.append(Task(str(label), Constant(), X, column))
    return fit_members(owner, tasks, n_jobs)


def label_scores(members: list[Any], X: Any) -> np.ndarray:
    """Return a score for each label, above 0 if the row is taken to have it."""
    return np.column_stack([score(member, X) for member in members])


def labelled(owner: Any, scores: np.ndarray) -> Any:
    """Return the labels of rows: a matrix of 0 and 1, sparse if that of the fit was, or the one class there is."""
    said = scores > 0
    binarizer = owner._binarizer
    if binarizer.y_type_.startswith("multilabel"):
        return csc_matrix(said, dtype=np.int64) if binarizer.sparse_input_ else said.astype(np.int64)
    return np.repeat(owner.classes_[:1], len(said))

"""One against one, one against the rest, and output codes: N classes by classifiers of two.

    one against one    N (N - 1) / 2 members, each on the rows of two classes; most votes win, equals by summed scores
    one against rest   N members; the largest score wins
    output codes       a member for each bit of the code; the class whose word is nearest to what the members say

For every row exactly one class is returned. The certificate has the hold-out statements of every classifier and, where
bits are decoded, the error rate by the mean number of wrong bits over one more than the code corrects.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from assay.card import Card
from assay.checker.families.codes import EUCLIDEAN, HAMMING, LARGEST, LOSS, PAIRS, corrected_bits
from assay.checker.family import read_model
from assay.claims.claim import NotApplicable
from assay.data.blocks import Block
from assay.ensemble._combined import OfLearners, Task, fit_members, probability_link, score, score_link, vote_link
from assay.fitlog import FitLog
from assay.guarantees.ledger import OUTWARD, CertifyOptions, Statement, Vacuous, claim
from assay.linear_model import LogisticRegression
from assay.multiclass._codes import bch_code, code_distance, exhaustive_code, pairs_code, random_code, ternary_code
from assay.params import Choice, Positive, check, refuse
from assay.scan import Rows, thread_map
from assay.theory.concentration import kl_upper
from assay.theory.spaces import Unbounded

_DECODING = {"hamming": HAMMING, "euclidean": EUCLIDEAN, "loss": LOSS}


class Reduced(ClassifierMixin, OfLearners):
    """What the three have in common: a code, a member for each of its columns, and scores of the classes."""

    combines: ClassVar = "classifiers of many classes by classifiers of two"
    family = "codes"
    code_: np.ndarray
    estimator: Any
    n_jobs: int | None

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _bases(self) -> list[Any]:
        return [self._base()]

    def _code(self, classes: int) -> np.ndarray:
        """Return the code, (classes, bits)."""
        raise NotImplementedError

    @property
    def decoding_(self) -> np.ndarray:
        """How the members' answers are decoded (family `codes`)."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> Any:
        """Fit the members side by side to rows X and labels y."""
        check(self)
        self._check_kinds(self._bases(), True)
        X = self._rows(X, reset=True)
        codes, _ = self._targets(X, y, None)
        self.code_ = self._code(len(self.classes_))
        with FitLog(self, 1, X, y) as log:
            self._keep(
                fit_members(self, [self._bit_task(t, X, codes) for t in range(self.code_.shape[1])], self.n_jobs)
            )
            log.step(float(np.mean(self._scores(X).argmax(axis=1) != codes)), 0.0)
        return self

    def _bit_task(self, t: int, X: Any, codes: np.ndarray) -> Task:
        bits = self.code_[codes, t]
        used = np.flatnonzero(bits)
        rows = X if len(used) == len(codes) else _safe_indexing(X, used)
        sides = ["+".join(map(str, self.classes_[self.code_[:, t] == side])) for side in (1, -1)]
        return Task(" against ".join(sides)[:80], self._base(), rows, (bits[used] > 0).astype(np.int64))

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members; they know two classes, 0 and 1."""
        check_is_fitted(self, "members_")
        return self.members_

    def _link_of(self, t: int) -> int:
        return (vote_link if int(self.decoding_) == HAMMING else score_link)(self.members_[t])

    def member_scores(self, X: Any) -> np.ndarray:
        """Return the score of each member for each row, (rows, members), above 0 for its second class."""
        check_is_fitted(self, "members_")
        return self._member_scores(self._rows(X, reset=False))

    def _member_scores(self, X: Any) -> np.ndarray:
        return np.stack(thread_map(lambda one: score(one, X), self.members_, n_jobs=self.n_jobs), axis=1)

    def _bits(self, X: Any) -> np.ndarray:
        said = thread_map(lambda one: np.asarray(one.predict(X)), self.members_, n_jobs=self.n_jobs)
        return 2 * np.stack(said, axis=1).astype(np.int64) - 1

    def member_bits(self, X: Any) -> np.ndarray:
        """Return the bit that each member says, -1 or +1, (rows, members)."""
        check_is_fitted(self, "members_")
        return self._bits(self._rows(X, reset=False))

    def _scores(self, X: Any) -> np.ndarray:
        """Return a score for each class; X is as the members take it."""
        kind, M = int(self.decoding_), self.code_.astype(float)
        return decode(self._bits(X) if kind == HAMMING else self._member_scores(X), M, kind)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return a score for each class, (rows, classes); of two classes the second less the first."""
        check_is_fitted(self, "members_")
        scores = self._scores(self._rows(X, reset=False))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest score, the first of equals."""
        check_is_fitted(self, "members_")
        best = self._scores(self._rows(X, reset=False)).argmax(axis=1)
        return self.classes_[best]

    def holdout_statements(self, rows: Rows | None, asked: CertifyOptions) -> Iterator[Statement | NotApplicable]:
        """Yield the error rate by the number of wrong bits."""
        if rows is None:
            return
        predictor = read_model(self.stored(), any_size=True)
        if predictor.corrected < 0:
            yield NotApplicable(
                "P43/1", "Scores are decoded, not bits, or the code tells classes apart by scores alone."
            )
        else:
            yield partial(self._bit_errors, rows, predictor)

    def _bit_errors(self, rows: Rows, predictor: Any, delta: str) -> Any:
        wrong, (m, L, c) = (
            int(rows.sum(_wrong_bits, predictor)[0]),
            (rows.n_rows, len(self.members_), predictor.corrected),
        )
        bound = L / (c + 1) * kl_upper(wrong / (m * L), -np.log(float(delta)) / m) * (1 + 1e-9) + OUTWARD
        if bound >= 1:
            return Vacuous("P43/1", f"With {wrong} wrong bits in {m} rows the bound is 1.", delta)
        params = {"rows": m, "bits": L, "corrected": c, "wrong": wrong}
        return claim("P43/1", bound, params, "holdout", delta)


def _wrong_bits(block: Block, predictor: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array([int(predictor.wrong_bits(block.X, np.asarray(block.y)).sum())])


def decode(said: np.ndarray, M: np.ndarray, decoding: int) -> np.ndarray:
    """Return scores of the classes from what members say, (rows, bits); see `checker.families.codes`."""
    if decoding == HAMMING:
        return said @ M.T
    if decoding == EUCLIDEAN:
        return 2 * said @ M.T - np.square(M).sum(axis=1)
    if decoding == LOSS:
        return -np.stack([np.maximum(0.0, 1 - said * row).sum(axis=1) for row in M], axis=1)
    if decoding == LARGEST:
        return said if said.shape[1] > 1 else np.column_stack([-said[:, 0], said[:, 0]])
    confidence = said @ M.T
    won = np.stack([(np.where(said > 0, 1.0, -1.0) * row > 0).sum(axis=1) for row in M], axis=1)
    return won + confidence / (3 * (np.abs(confidence) + 1))


def _card(name: str, zh: str, mission: tuple[str, ...], algorithm: str) -> Card:
    return Card(
        name=name,
        zh=zh,
        mission=mission,
        task="classify",
        model=Unbounded("classifiers of many classes by classifiers of two"),
        strategy="that of the members",
        algorithm=algorithm,
        guarantee=("code.bits",),
        most_rows=20_000,
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

    card = _card("One against one", "一对一", ("MUL-01", "MUL-02"), "a member for every pair of classes, on threads")

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
    return all(hasattr(one, "predict_proba") for one in members)


@dataclass(eq=False, repr=False)
class OneVsRestClassifier(Reduced):
    """A classifier of each class against the rest; the largest score wins.

    Parameters
    ----------
    estimator, n_jobs : as `OneVsOneClassifier`

    Attributes
    ----------
    classes_, estimators_ (N, or one for two classes), code_
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

    card = _card("One against the rest", "一对其余", ("MUL-01", "MUL-03"), "a member for every class, on threads")

    estimator: Any = None
    _: KW_ONLY
    n_jobs: int | None = None

    @property
    def decoding_(self) -> np.ndarray:
        return np.array(LARGEST)

    def _code(self, classes: int) -> np.ndarray:
        return np.array([[-1], [1]]) if classes == 2 else 2 * np.eye(classes, dtype=np.int64) - 1

    def _link_of(self, t: int) -> int:
        by_score = len(self.members_) == 1 or hasattr(self.members_[t], "decision_function")
        return (score_link if by_score else probability_link)(self.members_[t])

    def _member_scores(self, X: Any) -> np.ndarray:
        """Return scores, or of members without, probabilities: small ones would be lost in 2 p - 1."""
        if len(self.members_) == 1 or any(hasattr(one, "decision_function") for one in self.members_):
            return super()._member_scores(X)
        if not hasattr(self.members_[0], "predict_proba"):
            return super()._member_scores(X)
        said = thread_map(lambda one: np.asarray(one.predict_proba(X))[:, 1], self.members_, n_jobs=self.n_jobs)
        return np.stack(said, axis=1)

    def fit(self, X: Any, y: Any) -> "OneVsRestClassifier":
        """Fit a member for each class to rows X and labels y."""
        super().fit(X, y)
        positive = (self.member_bits(X) > 0).sum(axis=1)
        several = int(np.sum(positive > 1)) if len(self.classes_) > 2 else 0
        none = int(np.sum(positive == 0)) if len(self.classes_) > 2 else 0
        self.conflicts_ = {"none": none, "several": several}
        return self

    @available_if(_with_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the members' probabilities of their classes, divided by their sum."""
        check_is_fitted(self, "members_")
        X = self._rows(X, reset=False)
        shares = np.stack([np.asarray(one.predict_proba(X))[:, 1] for one in self.members_], axis=1)
        if len(self.classes_) == 2:
            return np.column_stack([1 - shares[:, 0], shares[:, 0]])
        total = shares.sum(axis=1, keepdims=True)
        return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1 / shares.shape[1])


@dataclass(eq=False, repr=False)
class OutputCodeClassifier(Reduced):
    """Classes by code words that correct errors: a member for each bit, the nearest word wins.

    Parameters
    ----------
    estimator, n_jobs : as `OneVsOneClassifier`
    code : "random", "exhaustive", "bch", "ternary", "pairs", or array (classes, bits) of -1, 0, +1
        Words of the classes in sorted order; rows must differ. "random" and "ternary" are the best of many draws;
        "pairs" are the members of `OneVsOneClassifier`, decoded as asked.
    code_size : float > 0
        Bits for each class of drawn and BCH codes; at least so many as tell the classes apart.
    decoding : "hamming", "euclidean" or "loss"
        By the members' bits, by the distance of their scores to the word, or by the hinge loss of their scores.
    random_state : seed of drawn codes

    Attributes
    ----------
    classes_, estimators_, code_ (classes, bits)
    distance_ : int
        The least number of bits in which two words differ.
    corrected_ : int
        How many wrong bits never change the decision by Hamming distance: floor((distance - 1) / 2) without zeros.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.multiclass import OutputCodeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OutputCodeClassifier(code="exhaustive").fit(X, y)
    >>> model.code_.shape, model.distance_, model.corrected_
    ((3, 3), 2, 0)
    """

    constraints: ClassVar = {"decoding": Choice(*_DECODING), "code_size": Positive()}
    card = _card(
        "Output codes",
        "纠错输出码",
        ("ENS-69", "MUL-04", "MUL-05", "MUL-06"),
        "a member for each bit of a code, on threads",
    )

    estimator: Any = None
    _: KW_ONLY
    code: Any = "random"
    code_size: float = 3.0
    decoding: str = "hamming"
    random_state: Any = None
    n_jobs: int | None = None

    @property
    def decoding_(self) -> np.ndarray:
        return np.array(_DECODING[self.decoding])

    @property
    def distance_(self) -> int:
        check_is_fitted(self, "members_")
        return code_distance(self.code_)

    @property
    def corrected_(self) -> int:
        check_is_fitted(self, "members_")
        return max(0, corrected_bits(self.code_))

    def _code(self, classes: int) -> np.ndarray:
        bits = max(int(np.ceil(self.code_size * classes)), int(np.ceil(np.log2(classes))))
        if isinstance(self.code, str):
            random = check_random_state(self.random_state)
            made = {
                "random": lambda: random_code(classes, bits, random),
                "ternary": lambda: ternary_code(classes, bits, random),
                "exhaustive": lambda: exhaustive_code(classes),
                "pairs": lambda: pairs_code(classes),
                "bch": lambda: bch_code(classes, bits),
            }
            if self.code not in made:
                raise refuse(self, f"code must be one of {', '.join(made)}, or an array; got {self.code!r}.")
            try:
                return made[self.code]()
            except ValueError as error:
                raise refuse(self, str(error)) from error
        code = np.asarray(self.code)
        if code.ndim != 2 or len(code) != classes or not np.all(np.isin(code, (-1, 0, 1))):
            raise refuse(self, f"code must be ({classes}, bits) of -1, 0, +1; got shape {code.shape}.")
        if len(np.unique(code, axis=0)) < classes:
            raise refuse(self, "two classes have the same code word.")
        if not np.all((code == 1).any(axis=0) & (code == -1).any(axis=0)):
            raise refuse(self, "every bit needs classes on both sides; -1 and +1 must occur in each column.")
        return code.astype(np.int64)

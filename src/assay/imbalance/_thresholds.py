"""Moved thresholds and costs: what is decided from probabilities, for two classes and for many.

    threshold   the second class iff its probability is above t; of many classes the largest p_k w_k
    cost        the decision j of least expected cost sum_i p_i cost_ij; rejection is a decision too, if it has a cost

The ranking of rows by the probabilities does not change. Where the probabilities are wrong, so is the threshold that
follows from them; then it may be chosen on rows that the classifier was not fitted to, and the bound of the cost pays
for the choice among thresholds that were fixed in advance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.card import Card
from assay.claims.claim import NotApplicable
from assay.data.blocks import Block
from assay.ensemble._combined import (
    UNIT,
    CombinedLearner,
    Output,
    Task,
    fit_members,
    labelled,
    probability_link,
    reject_label,
)
from assay.fitlog import FitLog
from assay.guarantees.evidence import Decided, Gathered, labels
from assay.guarantees.ledger import FIT_NOT_KEPT, OUTWARD, CertifyOptions, Statement, Vacuous, claim
from assay.linear_model import LogisticRegression
from assay.messages import Message
from assay.params import Choice, Number, check, refuse
from assay.scan import Rows
from assay.theory.concentration import kl_upper
from assay.theory.spaces import Unbounded

_FOLDS = 3  # on which a threshold is chosen for a metric


GRID = 100
"""Thresholds fixed in advance are 1/100, ..., 99/100; strengths of the costs 0, 1/100, ..., 1."""


def matrices(cost: np.ndarray) -> list[np.ndarray]:
    """Return the matrices of the thresholds of two classes, or of the strengths of the costs, fixed in advance."""
    if len(cost) == 2:
        return [np.diag([t / GRID, 1 - t / GRID]) for t in range(1, GRID)]
    equal, scaled = 1 - np.eye(len(cost)), cost / cost.max()
    return [-((1 - s / GRID) * equal + s / GRID * scaled) for s in range(GRID + 1)]


class Weighing(ClassifierMixin, CombinedLearner):
    """What both share: one member with probabilities, a matrix that weighs them, and costs."""

    combines: ClassVar = "decisions from the probabilities of a learner of any class"
    family = "thresholds"
    figure = "wrapped"
    estimator: Any
    n_jobs: int | None
    matrix_: np.ndarray
    cost_: np.ndarray

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    @property
    def estimator_(self) -> Any:
        """The fitted classifier; it knows the classes as 0, 1, ..."""
        check_is_fitted(self, "members_")
        return self.members_[0]

    def _fit_member(self, X: Any, codes: np.ndarray, weight: Any) -> None:
        self._check_kinds(self._bases(), True)
        self._take_members(
            fit_members(self, [Task("estimator", self._base(), X, codes, _weights_of(weight))], self.n_jobs)
        )

    def _take_members(self, members: Sequence[Any]) -> None:
        if not hasattr(members[0], "predict_proba"):
            raise refuse(self, f"it needs probabilities, which {type(members[0]).__name__} does not have.")
        super()._take_members(members)

    def _link_of(self, t: int) -> int:
        return probability_link(self.members_[t])

    def _combine(self, outputs: Sequence[Output], block: Block) -> Output:
        shares, errors = outputs[0]
        size = np.abs(self.matrix_)
        return shares @ self.matrix_, (errors + 4 * (len(size) + 8) * UNIT * np.abs(shares)) @ size

    def _shares(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "members_")
        return np.asarray(self.members_[0].predict_proba(self._rows(X, reset=False)), dtype=np.float64)

    def _positions(self, X: Any) -> np.ndarray:
        """Return the position of each decision; the number of classes stands for rejection."""
        return (self._shares(X) @ self.matrix_).argmax(axis=1)

    def mean_cost(self, X: Any, y: Any) -> float:
        """Return the mean cost of the decisions on these rows."""
        return float(self.cost_[self._codes(y), self._positions(X)].mean())

    def _codes(self, y: Any) -> np.ndarray:
        codes = np.searchsorted(self.classes_, y)
        if np.any(self.classes_[np.minimum(codes, len(self.classes_) - 1)] != np.asarray(y)):
            raise refuse(self, "y has labels that are no classes of the model.")
        return codes

    def holdout_statements(self, rows: Rows | None, asked: CertifyOptions) -> Iterator[Statement | NotApplicable]:
        """Yield the mean cost on new data."""
        if rows is not None:
            yield partial(self._cost_claim, "cost.holdout", rows, None)

    def _cost_claim(self, name: str, rows: Rows, held: Any, delta: str) -> Any:
        decided, codes = Gathered(self.evidence(rows)).the(Decided).positions(rows), labels(rows)
        options = 1 if held is None else len(matrices(self.cost_))
        if held is not None:
            decided, codes = decided[held], codes[held]
        most = float(self.cost_.max())
        paid = np.where(decided < 0, self.cost_[codes].max(axis=1), self.cost_[codes, np.maximum(decided, 0)])
        paid = np.where(codes < 0, most, paid)
        bound = most * kl_upper(min(1.0, paid.mean() / most * (1 + 1e-9)), -np.log(float(delta) / options) / len(paid))
        if bound * (1 + OUTWARD) >= most:
            return Vacuous(name, Message("why.cost-vacuous", rows=len(paid), cost=most), delta)
        params: dict[str, Any] = {"rows": rows.n_rows}
        if held is not None:
            params |= {"options": options, "seed": self.seed_, "held": len(held)}
        return claim(name, bound * (1 + OUTWARD), params, "holdout" if held is None else "train", delta)


@dataclass(eq=False, repr=False)
class ThresholdClassifier(Weighing):
    """A classifier with another threshold: any classifier with probabilities, the ranking of rows unchanged.

    Parameters
    ----------
    estimator : classifier or None
        Any classifier with probabilities; None is `LogisticRegression`.
    threshold : "prior", "f1", "balanced", a number in (0, 1), or numbers > 0
        "prior": probabilities are rescaled as if classes were equally frequent, so that of two classes the second is
        decided iff p / (1 - p) > m+ / m-. "f1", "balanced", of two classes: the one among 1/100, ..., 99/100 that is
        best for F1 of the rarer class, or for the mean of the error rates of both, by the probabilities of rows in
        three folds that were not fitted to; the classifier is then fitted to all rows. With fewer than six rows of a
        class it is "prior". A number: the probability of the second class that must be exceeded. Numbers: a weight for
        each class, the largest p_k w_k decides.
    n_jobs : int or None
        Threads; changes the time, never a bit.

    Attributes
    ----------
    classes_, estimator_, class_weights_ (classes,) : the weights that probabilities are multiplied by

    Examples
    --------
    >>> import numpy as np
    >>> from assay.imbalance import ThresholdClassifier
    >>> X = np.r_[np.linspace(0, 2, 90), np.linspace(1.5, 3.5, 10)][:, None]
    >>> y = np.repeat([0, 1], [90, 10])
    >>> moved, plain = ThresholdClassifier().fit(X, y), ThresholdClassifier(threshold=0.5).fit(X, y)
    >>> int(moved.predict(X)[90:].sum()) > int(plain.predict(X)[90:].sum())
    True
    """

    card = Card(
        name="Moved threshold",
        task="classify",
        model=Unbounded("decisions from the probabilities of a learner of any class"),
        strategy="that of the learner",
        algorithm="probabilities times weights of the classes",
        guarantee=("cost.holdout",),
        role="threshold",
    )

    estimator: Any = None
    _: KW_ONLY
    threshold: Any = "prior"
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "ThresholdClassifier":
        """Fit the classifier to rows X and labels y, and find the weights of the classes."""
        check(self)
        X = self._rows(X, reset=True)
        codes, rows = self._targets(X, y, sample_weight)
        sizes = np.bincount(codes, rows)
        if not sizes.min() > 0:
            raise refuse(
                self, f"the class {self.classes_[sizes.argmin()]} has no row of positive weight; leave it out."
            )
        weights = None if self._by_folds(np.bincount(codes)) else self._weights(sizes)
        with FitLog(self, 1, X, y) as log:
            if weights is None:
                t = self._best_threshold(X, codes, rows)
                weights = np.array([t, 1 - t])
            self._fit_member(X, codes, rows)
            self.matrix_, self.cost_ = np.diag(weights), 1 - np.eye(len(weights))
            log.step(float(np.mean(self._positions(X) != codes)), 0.0)
        return self

    def _by_folds(self, counts: np.ndarray) -> bool:
        """Tell whether the threshold is chosen on folds."""
        if not isinstance(self.threshold, str) or self.threshold not in ("f1", "balanced"):
            return False
        if len(counts) != 2:
            raise refuse(self, f"threshold={self.threshold!r} is for two classes; there are {len(counts)}.")
        return bool(counts.min() >= 2 * _FOLDS)

    def _best_threshold(self, X: Any, codes: np.ndarray, weight: Any) -> float:
        """Return the threshold that is best on rows of folds which their member was not fitted to."""
        self._check_kinds(self._bases(), True)
        fold = np.empty(len(codes), dtype=np.int64)
        for k in range(2):
            own = np.flatnonzero(codes == k)
            fold[np.random.default_rng([k, len(codes)]).permutation(own)] = np.arange(len(own)) % _FOLDS
        outside = [np.flatnonzero(fold != k) for k in range(_FOLDS)]
        tasks = [
            Task("estimator", self._base(), _safe_indexing(X, rows), codes[rows], _weights_of(weight, rows))
            for rows in outside
        ]
        second = np.empty(len(codes))
        for k, fit_member in enumerate(fit_members(self, tasks, self.n_jobs)):
            if not hasattr(fit_member, "predict_proba"):
                raise refuse(self, f"it needs probabilities, which {type(fit_member).__name__} does not have.")
            mine = np.flatnonzero(fold == k)
            second[mine] = np.asarray(fit_member.predict_proba(_safe_indexing(X, mine)))[:, 1]
        paid = [_loss(self.threshold, codes, second > t / GRID, weight) for t in range(1, GRID)]
        return (_middle(np.array(paid)) + 1) / GRID

    def _weights(self, counts: np.ndarray) -> np.ndarray:
        if isinstance(self.threshold, str):
            if self.threshold not in ("prior", "f1", "balanced"):
                known = "'prior', 'f1', 'balanced', a number or numbers"
                raise refuse(self, f"threshold must be {known}; got {self.threshold!r}.")
            return 1 / counts / np.sum(1 / counts)
        given = np.asarray(self.threshold, dtype=np.float64)
        if given.ndim == 0 and len(counts) == 2 and 0 < given < 1:
            return np.array([float(given), 1 - float(given)])
        if given.shape != (len(counts),) or not np.isfinite(given).all() or np.any(given <= 0):
            kind = "a number between 0 and 1, or " if len(counts) == 2 else ""
            raise refuse(self, f"threshold must be {kind}{len(counts)} numbers > 0; got {self.threshold!r}.")
        return given / given.sum()

    @property
    def class_weights_(self) -> np.ndarray:
        """The weights by which the classes' probabilities are multiplied."""
        check_is_fitted(self, "members_")
        return np.diag(self.matrix_)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the rescaled probabilities, p_k w_k divided by the sum; the largest decides."""
        weighed = self._shares(X) @ self.matrix_
        return weighed / weighed.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest rescaled probability."""
        at = self._positions(X)
        return self.classes_[at]

    def _derive(self) -> None:
        if np.any(self.matrix_ != np.diag(np.diag(self.matrix_))) or np.any(self.cost_ != 1 - np.eye(len(self.cost_))):
            raise refuse(self, "matrix_ must be diagonal, and cost_ one for every error.")


class CostCurve(NamedTuple):
    """Mean cost of every threshold (two classes) or strength of the costs, and limits that hold for all at once."""

    threshold: np.ndarray
    cost: np.ndarray
    limit: np.ndarray


@dataclass(eq=False, repr=False)
class CostClassifier(Weighing):
    """The decision of least expected cost, for two classes and for many, with or without rejection.

    Parameters
    ----------
    estimator : classifier or None
        Any classifier with probabilities; None is `LogisticRegression`.
    cost : array (classes, classes) >= 0, or None
        cost[i][j] is paid for deciding j where i is true, classes in sorted order; None is 1 for every error.
    reject : number >= 0, or None
        What a rejected row costs; None: every row is decided.
    choose : "bayes" or "holdout"
        Trust the probabilities; or choose on a share `holdout` of the rows, which the classifier is not fitted to: of
        two classes the threshold among 1/100, ..., 99/100, of more how far the costs count, among 0, 1/100, ..., 1
        between 1 for every error and the costs. The certificate's bound pays for the choice.
    reject_label : label, or None
        What `predict` returns for a rejected row; None is "reject" for labels of text, and for numbers -1, or 0 if
        that is a class, or one less than the smallest.
    holdout : float in (0, 1)
    random_state : seed of the hold-out rows
    n_jobs : int or None

    Attributes
    ----------
    classes_, estimator_, cost_ (classes, decisions), matrix_ (classes, decisions)
    threshold_ : float
        Of two classes: what the probability of the second must exceed; of more classes the strength of the costs.
    held_, seed_ : row numbers that the choice was made on, and the seed that fixes them

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.imbalance import CostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> dear = [[0, 1, 1], [1, 0, 1], [1, 20, 0]]  # to take the third class for the second costs 20
    >>> plain, careful = CostClassifier().fit(X, y), CostClassifier(cost=dear).fit(X, y)
    >>> int((plain.predict(X)[y == 2] == 1).sum()), int((careful.predict(X)[y == 2] == 1).sum())
    (1, 0)
    """

    constraints: ClassVar = {
        "choose": Choice("bayes", "holdout"),
        "holdout": Number(0.0, 1.0, open_low=True, open_high=True),
    }
    card = Card(
        name="Least expected cost",
        task="classify",
        model=Unbounded("decisions from the probabilities of a learner of any class"),
        strategy="expected cost, by the learner's probabilities",
        algorithm="probabilities times costs; the threshold may be chosen on rows kept out",
        guarantee=("cost.chosen", "cost.holdout"),
        role="cost",
    )

    estimator: Any = None
    cost: Any = None
    _: KW_ONLY
    reject: float | None = None
    choose: str = "bayes"
    reject_label: Any = None
    holdout: float = 0.25
    random_state: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "CostClassifier":
        """Fit the classifier to rows X and labels y; with choose="holdout" to a part of them."""
        check(self)
        X = self._rows(X, reset=True)
        codes, weight = self._targets(X, y, sample_weight)
        self.cost_ = self._costs(len(self.classes_))
        self.held_: np.ndarray | None = None
        self._check_label()
        with FitLog(self, 1, X, y) as log:
            if self.choose == "bayes":
                self._fit_member(X, codes, weight)
                self.matrix_ = -self.cost_
            else:
                self._choose(X, codes, weight)
            log.step(self._cost_of(X, codes), 0.0)
        return self

    def _cost_of(self, X: Any, codes: np.ndarray) -> float:
        return float(self.cost_[codes, self._positions(X)].mean())

    def _costs(self, K: int) -> np.ndarray:
        cost = 1 - np.eye(K) if self.cost is None else np.asarray(self.cost, dtype=np.float64)
        if cost.shape != (K, K) or not np.isfinite(cost).all() or cost.min() < 0 or not cost.max() > 0:
            raise refuse(self, f"cost must be ({K}, {K}) numbers >= 0, not all zero; got {str(self.cost)[:80]}.")
        if self.reject is None:
            return cost
        if not isinstance(self.reject, (int, float)) or not 0 <= self.reject < np.inf:
            raise refuse(self, f"reject must be the cost of a rejected row, a number >= 0; got {self.reject!r}.")
        if self.choose == "holdout":
            raise refuse(self, 'reject goes with choose="bayes": a threshold alone cannot reject.')
        return np.column_stack([cost, np.full(K, float(self.reject))])

    def _choose(self, X: Any, codes: np.ndarray, weight: Any) -> None:
        n = len(codes)
        size = int(np.ceil(self.holdout * n))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        held = held_rows(seed, n, size)
        kept = np.setdiff1d(np.arange(n), held)
        if len(np.unique(codes[kept])) < len(self.classes_):
            raise refuse(self, "a class has no row outside the hold-out rows; lower holdout.")
        self._fit_member(_safe_indexing(X, kept), codes[kept], None if weight is None else weight[kept])
        shares = np.asarray(self.members_[0].predict_proba(_safe_indexing(X, held)))
        own = None if weight is None or not weight[held].any() else weight[held]
        paid = [
            np.average(self.cost_[codes[held], (shares @ matrix).argmax(axis=1)], weights=own)
            for matrix in matrices(self.cost_)
        ]
        self.matrix_, self.held_, self.seed_ = matrices(self.cost_)[_middle(np.array(paid))], held, seed

    @property
    def threshold_(self) -> float:
        """The probability from which on the second class is predicted; of two classes."""
        check_is_fitted(self, "members_")
        if self.choose == "bayes":
            if len(self.classes_) > 2 or self.reject is not None:
                return 1.0
            gain = self.cost_[0] - self.cost_[0, 0], self.cost_[1] - self.cost_[1, 1]
            return float(gain[0][1] / (gain[0][1] + gain[1][0]))
        if len(self.classes_) == 2:
            return float(self.matrix_[0, 0])
        at = next(g for g, matrix in enumerate(matrices(self.cost_)) if np.array_equal(matrix, self.matrix_))
        return at / GRID

    @property
    def rejected_as_(self) -> Any:
        """The label of rejected rows."""
        return reject_label(self.classes_, self.reject_label)

    def expected_costs(self, X: Any) -> np.ndarray:
        """Return the expected cost of each decision for each row, by the probabilities, (rows, decisions)."""
        return self._shares(X) @ self.cost_

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the classifier's probabilities; the decision need not be the most probable class."""
        return self._shares(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the decision of least expected cost, and `reject_label` for rejected rows."""
        at = self._positions(X)
        if self.reject is None:
            return self.classes_[at]
        return labelled(self.classes_, at, self.rejected_as_)

    def rejected(self, X: Any) -> np.ndarray:
        """Return which rows are rejected."""
        return self._positions(X) == len(self.classes_)

    def coverage(self, X: Any) -> float:
        """Return the share of the rows that are decided."""
        return float(1 - self.rejected(X).mean())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right rows; a rejected row is not right."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    def cost_curve(self, X: Any, y: Any, delta: float = 0.05) -> CostCurve:
        """Return the mean cost of every threshold on rows that the classifier was not fitted to, and limits of the cost
        on new data that hold for all of them at once."""
        codes, shares, options = self._codes(y), self._shares(X), matrices(self.cost_[:, : len(self.classes_)])
        cost = self.cost_[:, : len(self.classes_)]
        paid = np.array([cost[codes, (shares @ option).argmax(axis=1)].mean() for option in options])
        room, most = np.log(len(options) / delta) / len(codes), float(cost.max())
        limit = np.array([most * kl_upper(min(1.0, mean / most), room) for mean in paid])
        first = 1 if len(cost) == 2 else 0
        return CostCurve(np.arange(first, first + len(options)) / GRID, paid, limit)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield the mean cost on new data by the rows that the choice was made on."""
        if self.choose == "bayes":
            return
        if self._from_file or self.held_ is None:
            yield NotApplicable("cost.chosen", FIT_NOT_KEPT)
        elif not np.array_equal(held_rows(self.seed_, rows.n_rows, len(self.held_)), self.held_):
            yield NotApplicable("cost.chosen", Message("why.other-rows"))
        else:
            yield partial(self._cost_claim, "cost.chosen", rows, self.held_)

    def _check_label(self) -> None:
        if self.reject is not None and self.rejected_as_ in self.classes_.tolist():
            raise refuse(self, f"reject_label must be no class; got {self.rejected_as_!r}.")

    def _derive(self) -> None:
        self._check_label()
        if not np.array_equal(self.cost_, self._costs(len(self.classes_))):
            raise refuse(self, "cost_ is not that of the parameters.")
        options = [-self.cost_] if self.choose == "bayes" else matrices(self.cost_)
        if not any(np.array_equal(self.matrix_, option) for option in options):
            raise refuse(self, "matrix_ is not that of the costs.")


def held_rows(seed: int, rows: int, held: int) -> np.ndarray:
    """Return which rows the choice is made on: the first of a permutation that the seed fixes, in order."""
    return np.sort(np.random.RandomState(seed).permutation(rows)[:held])


def _weights_of(weight: Any, rows: Any = slice(None)) -> dict[str, Any]:
    return {} if weight is None else {"sample_weight": weight[rows]}


def _loss(name: str, codes: np.ndarray, called: np.ndarray, weight: Any) -> float:
    """Return 1 - F1 of the rarer of two classes, the second of equals; or the mean of the error rates of both."""
    counts = np.bincount(2 * codes + called, weight, minlength=4).reshape(2, 2)  # true class, decision
    if name == "balanced":
        return 0.5 * float(counts[0, 1] / counts[0].sum() + counts[1, 0] / counts[1].sum())
    rare = int(np.sum(codes == 1) <= np.sum(codes == 0))
    either = float(counts[rare].sum() + counts[:, rare].sum())
    return 1 - 2 * float(counts[rare, rare]) / either if either else 1.0


def _middle(paid: np.ndarray) -> int:
    """Return the middle of the first run of least entries: a threshold on a plateau is safest far from its ends."""
    least = np.flatnonzero(paid == paid.min())
    run = least[: np.argmax(np.append(np.diff(least), 2) > 1) + 1]
    return int(run[(len(run) - 1) // 2])

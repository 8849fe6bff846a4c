"""Learners made of other learners: outputs of fitted members, fitting them in parallel, storing them, evidence.

Members are fitted to positions of the classes, 0, 1, ..., so that no member depends on the labels themselves. A
combined model stores for each member a link, a number that says how its output is computed: its vote, its scores, or
probabilities that follow from the scores as the variant of its family says. Evidence is computed from the members' own
evidence, with a bound on its rounding. The checker has its own formulas for the same links (`checker.rules.members`);
nothing here calls the checker.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._user_interface import _print_elapsed_time
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    _check_y,
    _num_samples,
    check_consistent_length,
    has_fit_parameter,
    validate_data,
)

from assay.base import Learner
from assay.checker.family import find
from assay.checker.rules.members import BALANCE, BOOSTED, COUNTS, LEAVES, LOGISTIC, RAW, SCORE, SHARES, VOTE
from assay.data.blocks import Block
from assay.fitlog import Interrupts
from assay.guarantees.evidence import Decided, Evidence, Predictions, Scores, Tally
from assay.params import refuse
from assay.scan import Rows, thread_map
from assay.scan.memory import MemoryRows
from assay.theory.spaces import Unbounded

# Outputs of fitted members ----------------------------------------------------------------------------------------


Output = tuple[np.ndarray, np.ndarray]
"""Values (rows, outputs) and how far rounding can move each of them."""

PROBES = 24  # rows on which a member's probabilities or scores are compared with what its link makes of its evidence
UNIT = 2.0**-53
_OPEN = 1e200  # the error of a number about which nothing is known
LINKS = {"shares": SHARES, "logistic": LOGISTIC, "leaves": LEAVES, "counts": COUNTS, "boosted": BOOSTED}


def is_ours(learner: Any) -> bool:
    """Tell whether a learner is one of Assay's, with a stored form that the checker reads."""
    return isinstance(learner, Learner) and getattr(learner, "family", "") != ""


def coded(member: Any, classes: Any) -> Any:
    """Return a member that knows its classes by their positions; one that was fitted to labels ("prefit") is copied."""
    own = getattr(member, "classes_", None)
    if not (is_ours(member) and isinstance(own, np.ndarray) and isinstance(classes, np.ndarray)):
        return member
    codes = np.arange(len(own))
    if not np.array_equal(own, classes) or (own.dtype.kind in "iu" and np.array_equal(own, codes)):
        return member
    member = copy(member)
    member.classes_ = codes
    return member


@dataclass(frozen=True)
class MemberOutput:
    """A fitted member, the link that it is read by, and the evidence that this needs."""

    member: Any
    link: int
    evidence: Any

    def of(self, block: Block) -> Output:
        """Return what the member says of a block."""
        if self.link == VOTE:
            return _vote(self.evidence.decide(block, *self.evidence.packed), len(self.member.classes_))
        if self.evidence is None:
            return self._of_leaf(block)
        values, radius = self.evidence.of(block, *self.evidence.parameters)
        values = np.asarray(values, dtype=np.float64).reshape(len(block.X), -1)
        radius = np.asarray(radius, dtype=np.float64)
        radius = radius[:, None] if radius.ndim == 1 and len(radius) == len(values) else radius
        return _FORMULAS[self.link](values, np.broadcast_to(radius, values.shape))

    def _of_leaf(self, block: Block) -> Output:
        shares = np.asarray(self.member.predict_proba(block.X), dtype=np.float64)
        shares = shares[:, 1:] - shares[:, :1] if self.link == SCORE else shares
        return shares, 4 * UNIT * np.abs(shares)


def outputs(members: Sequence[Any], links: np.ndarray, rows: Rows) -> list[MemberOutput]:
    """Return the members with what their links need."""
    return [MemberOutput(member, link, _needed(member, link, rows)) for member, link in zip(members, links.tolist())]


def _needed(member: Any, link: int, rows: Rows) -> Any:
    """Return the evidence that a link reads; None for the shares of a single tree's leaves."""
    if _of_leaves(member) and link in (LEAVES, SCORE):
        return None
    kinds = (Decided,) if link == VOTE else (Scores, Tally) if is_classifier(member) else (Predictions,)
    result = next((item for item in member.evidence(rows) if isinstance(item, kinds)), None)
    if result is None:
        raise ValueError(f"a {type(member).__name__} has no scores.")
    return result


def _of_leaves(member: Any) -> bool:
    return "leaves" in _probabilities(member)


# How outputs follow from scores -----------------------------------------------------------------------------------


def _vote(positions: np.ndarray, classes: int) -> Output:
    decided = np.flatnonzero((positions >= 0) & (positions < classes))
    votes, errors = np.zeros((len(positions), classes)), np.ones((len(positions), classes))
    votes[decided, positions[decided]], errors[decided] = 1.0, 0.0
    return votes, errors


def _logistic(scores: np.ndarray, errors: np.ndarray) -> Output:
    """The derivative of a share by a score is at most 1/4, and two scores move it."""
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    slack = np.minimum(0.5 * errors.max(axis=1, keepdims=True) + 128 * scores.shape[1] * UNIT, 1.0)
    return softmax(scores, axis=1), np.repeat(slack, scores.shape[1], axis=1)


def _shares(scores: np.ndarray, errors: np.ndarray) -> Output:
    if scores.shape[1] > 1:
        return scores, errors
    return np.column_stack([1 - scores[:, 0], scores[:, 0]]), np.repeat(errors + 4 * UNIT, 2, axis=1)


def _divided(scores: np.ndarray, errors: np.ndarray) -> Output:
    """Numbers >= 0 divided by their sum S: s / S with s off by e moves by at most (1 + K) e / (S - K e)."""
    K, total, error = scores.shape[1], scores.sum(axis=1, keepdims=True), errors.max(axis=1, keepdims=True)
    rest = total - K * error
    slack = np.where(rest > 0, (1 + K) * error / np.where(rest > 0, rest, 1.0) + 32 * K * UNIT, 1.0)
    slack = np.where(scores.min(axis=1, keepdims=True) < 0, _OPEN, slack)
    return scores / np.where(total > 0, total, 1.0), np.repeat(slack, K, axis=1)


def _boosted(scores: np.ndarray, errors: np.ndarray) -> Output:
    """The softmax of K / (K - 1)^2 times the shares of the votes."""
    factor = scores.shape[1] / (scores.shape[1] - 1) ** 2
    shares, slack = _divided(scores, errors)
    return _logistic(factor * shares, factor * (slack + 16 * UNIT))


def _balance(scores: np.ndarray, errors: np.ndarray) -> Output:
    shares, slack = _divided(scores, errors)
    return 2 * (shares[:, 1:] - shares[:, :1]), 4 * slack[:, :1] + 32 * UNIT


def _difference(scores: np.ndarray, errors: np.ndarray) -> Output:
    if scores.shape[1] != 2:
        return scores, errors
    apart = (scores[:, 1] - scores[:, 0])[:, None]
    return apart, errors.sum(axis=1, keepdims=True) + 4 * UNIT * np.abs(apart)


def _as_they_are(scores: np.ndarray, errors: np.ndarray) -> Output:
    return scores, errors


_FORMULAS = {
    SHARES: _shares, LOGISTIC: _logistic, COUNTS: _divided, BOOSTED: _boosted,
    SCORE: _difference, BALANCE: _balance, RAW: _as_they_are,
}  # fmt: skip


# Which link a member has ------------------------------------------------------------------------------------------


def vote_link(member: Any) -> int:
    return VOTE if is_ours(member) else -1


def probability_link(member: Any) -> int:
    """Return the link by which the member's probabilities follow from its scores; -1 if there is none.

    The variant of its family says which; a learner whose probabilities have numbers of their own, a calibration for
    example, has none, however well they agree on a few rows.
    """
    if not is_ours(member) or not hasattr(member, "predict_proba"):
        return -1
    return _first(member, [LINKS[name] for name in _probabilities(member)], member.predict_proba)


def score_link(member: Any) -> int:
    """Return the link by which the member's one score, positive for its second class, is read; -1 if there is none."""
    if not is_ours(member) or (not hasattr(member, "decision_function") and not hasattr(member, "predict_proba")):
        return -1
    boosted = "boosted" in _probabilities(member)
    return _first(member, [*([BALANCE] if boosted else []), SCORE], lambda X: score(member, X))


def raw_link(member: Any) -> int:
    """Return the link by which a member's scores, or predicted numbers, are read as they are."""
    method = "decision_function" if is_classifier(member) else "predict"
    if not is_ours(member) or not hasattr(member, method) or "boosted" in _probabilities(member):
        return -1  # weighted votes have a score for each class, of which `decision_function` is another number
    return _first(member, [RAW], getattr(member, method))


def may_have_probability_link(learner: Any) -> bool:
    """Tell whether members of the class and settings of this learner, which need not be fitted, can have one."""
    return is_ours(learner) and bool(_probabilities(learner))


def _probabilities(learner: Any) -> tuple[str, ...]:
    return find(learner.family)[1].probabilities if learner.probabilities_of_family else ()


def _first(member: Any, links: Sequence[int], ask: Any) -> int:
    """Return the first link whose formula gives what the member says of some rows; -1 if none does."""
    X = np.random.default_rng(20_240_229).normal(size=(PROBES, member.n_features_in_)) * 3.0
    rows = MemoryRows(X, np.zeros(PROBES))
    try:
        said = np.asarray(ask(X), dtype=np.float64).reshape(PROBES, -1)
        result = (
            link for link in links if _agrees(MemberOutput(member, link, _needed(member, link, rows)), rows, said)
        )
        return next(result, -1)
    except (AttributeError, ValueError):  # a member of a member is from outside, or the member has no scores
        return -1


def _agrees(output: MemberOutput, rows: Rows, predicted: np.ndarray) -> bool:
    """Tell whether a link gives what the member said, on the rows that rounding does not leave open."""
    with np.errstate(all="ignore"):
        values, errors = output.of(next(iter(rows.blocks())))
    if values.shape != predicted.shape:
        return False
    size = 1 + np.abs(predicted)
    known = (errors <= 1e-3 * size).all(axis=1)
    return bool(np.all((np.abs(values - predicted) <= 4 * errors + 1e-12 * size)[known]))


def score(member: Any, X: Any) -> np.ndarray:
    """Return one number per row, positive for the second class: a decision value, else 2 p - 1, else the vote."""
    if hasattr(member, "decision_function"):
        return np.asarray(member.decision_function(X), dtype=np.float64).reshape(_num_samples(X), -1)[:, -1]
    if hasattr(member, "predict_proba"):
        shares = np.asarray(member.predict_proba(X))
        return shares[:, 1] - shares[:, 0]
    return 2.0 * np.asarray(member.predict(X), dtype=np.float64) - 1.0


# What is made of them ---------------------------------------------------------------------------------------------


def weighted_sum(said: Sequence[Output], weights: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the weighted sum of what members say, and a bound of its error beside the rounding of the sum."""
    yield sum(w * values for w, (values, _) in zip(weights.tolist(), said))  # type: ignore[misc]
    yield sum(w * errors for w, (_, errors) in zip(weights.tolist(), said)) * (1 + 1e-12)  # type: ignore[operator]


def votes_of(said: Sequence[Output], weights: np.ndarray, links: np.ndarray, needed: float) -> Output:
    """Return the weight of the votes for each class and, where a share is needed, the weight that must be exceeded."""
    (values, errors), total = weighted_sum(said, weights), float(weights.sum())
    if needed >= 0:
        values = np.column_stack([values, np.full(len(values), needed * total)])
        errors = np.column_stack([errors, np.zeros(len(errors))])
    whole = np.all(links == VOTE) and np.all(weights == np.floor(weights)) and total < 2**40
    if not (whole and needed * 2**10 == np.floor(needed * 2**10)):  # else votes are counted without rounding
        errors = errors + 4 * (len(said) + 8) * UNIT * np.maximum(np.abs(values), total)
    return values, errors


def mean_of(said: Sequence[Output], weights: np.ndarray) -> Output:
    """Return the weighted mean of predicted numbers."""
    shares = weights / weights.sum()
    values, errors = weighted_sum(said, shares)
    size = sum(w * np.abs(item) for w, (item, _) in zip(shares.tolist(), said))
    return values, errors + 8 * (len(said) + 4) * UNIT * size


# Fitting members, storing them, evidence --------------------------------------------------------------------------


class MemberError(ValueError):
    """A member could not be fitted; the message names it, the cause is its own error."""


class Task(NamedTuple):
    """A member to be fitted: its name, the learner, rows, target, and what else its `fit` is given; with a note the
    time is printed."""

    name: str
    learner: Any
    X: Any
    y: Any
    more: Mapping[str, Any] = {}
    note: str | None = None


def fit_members(owner: Any, tasks: Sequence[Task], n_jobs: int | None) -> list[Any]:
    """Return clones of the learners, each fitted to its rows, side by side; one that fails is named."""
    made = fit_some(owner, tasks, n_jobs)
    if any(item is None for item in made):
        raise KeyboardInterrupt
    return made


def fit_some(
    owner: Any, tasks: Sequence[Task], n_jobs: int | None, stop: Callable[[list[Any]], bool] | None = None
) -> list[Any]:
    """Return `fit_members`, with None for members that were not begun, or not fitted, when the keyboard interrupted.

    A member that is interrupted may keep its best so far; then it counts as fitted. `stop` is told what is fitted
    after each member, and may ask to begin no other. A second Ctrl-C quits.
    """
    if n_jobs is None and _routing_enabled() and any(task.more for task in tasks):
        n_jobs = 1  # metadata of a user's own, which may not be made for threads
    made: list[Any] = [None] * len(tasks)
    lock, asked = threading.Lock(), False

    def work(t: int) -> None:
        nonlocal asked
        if asked or heard.asked:
            return
        made[t] = _fitted(owner, tasks[t], len(tasks))
        if stop is not None:
            with lock:
                asked |= stop(made)

    with Interrupts() as heard:
        try:
            thread_map(work, range(len(tasks)), n_jobs=n_jobs)
        except KeyboardInterrupt:
            heard.asked += not heard.asked
        heard.check()
    return made


def _fitted(owner: Any, task: Task, tasks: int) -> Any:
    try:
        learner = _quiet(clone(task.learner), tasks)
        with _print_elapsed_time(type(owner).__name__.removesuffix("Classifier").removesuffix("Regressor"), task.note):
            learner.fit(task.X, task.y, **task.more)
        return learner
    except Exception as error:
        if isinstance(error, (TypeError, AttributeError)) and not isinstance(error, ValueError):
            error.add_note(f"in the member {task.name!r} of {type(owner).__name__}")
            raise
        raise MemberError(
            f"{type(owner).__name__}: the member {task.name!r} ({type(task.learner).__name__}) failed: {error}"
        ) from error


def _quiet(learner: Any, tasks: int) -> Any:
    """Return the learner on one thread, if it asks for no number and there are others to be fitted beside it."""
    names = learner.get_params(deep=False) if hasattr(learner, "get_params") else {}
    return learner.set_params(n_jobs=1) if tasks > 1 and names.get("n_jobs", 0) is None else learner


class CombinedLearner(Learner):
    """Mixin of learners made of any learners."""

    combines: ClassVar[str] = "combinations of learners"
    sparse_too: ClassVar[bool] = False
    """Whether rows may be sparse if all its learners read such rows."""
    members_: list[Any]

    @property
    def links_(self) -> np.ndarray:
        """How the checker reads each member; -1 where it does not know what the member returns."""
        if not hasattr(self, "_links"):
            self._links = np.array([self._link_of(t) for t in range(len(self.members_))], dtype=np.int64)
        return self._links

    def _link_of(self, t: int) -> int:
        """Return the link of member t."""
        raise NotImplementedError

    def _keep(self, members: Sequence[Any]) -> None:
        """Keep the fitted members."""
        self.members_ = list(members)
        self.__dict__.pop("_links", None)

    # Rows
    # ----------------------------------------------------------------------------------------

    def _base(self) -> Any:
        """Return the learner, not fitted, that `estimator` names."""
        raise NotImplementedError

    def _bases(self) -> list[Any]:
        """Return the learners, not fitted, that the parameters name."""
        return [self._base()]

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Return X as members take it: an array of numbers, or as it is if a learner from outside may read more."""
        if all(is_ours(base) for base in self._bases()):
            finite: Any = "allow-nan" if self._reads_gaps() else True
            sparse = "csr" if self._reads_sparse() else False
            return validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=finite, accept_sparse=sparse)
        _check_feature_names(self, X, reset=reset)
        if hasattr(X, "shape") and len(X.shape) == 2:
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _reads_gaps(self) -> bool:
        """Tell whether every learner reads rows that lack values."""
        return all(hasattr(base, "fit") and get_tags(base).input_tags.allow_nan for base in self._bases())

    def _reads_sparse(self) -> bool:
        """Tell whether every learner reads sparse rows."""
        bases = self._bases() if self.sparse_too else []
        return bool(bases) and all(hasattr(base, "fit") and get_tags(base).input_tags.sparse for base in bases)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan, tags.input_tags.sparse = self._reads_gaps(), self._reads_sparse()
        return tags

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, Any]:
        """Return the target, as positions among `classes_` for a classifier, and the row weights."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        classify = is_classifier(self)
        y = _check_y(y, y_numeric=not classify, estimator=self)
        check_consistent_length(X, y)
        if sample_weight is not None and not _routing_enabled():
            for base in self._bases():
                if not _takes_weights(base):
                    raise TypeError(f"Underlying estimator {type(base).__name__} does not support sample weights.")
            if hasattr(X, "shape"):
                sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not classify:
            return np.asarray(y, dtype=np.float64), sample_weight
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__}: needs rows of at least 2 classes to learn from; the data contain one class: "
                f"{self.classes_.tolist()[0]!r}."
            )
        return codes.astype(np.int64), sample_weight

    def _check_kinds(self, learners: Sequence[Any], classify: bool) -> None:
        for learner in learners:
            if not hasattr(learner, "fit") or not (is_classifier(learner) if classify else is_regressor(learner)):
                kind = "classifier" if classify else "regressor"
                raise refuse(
                    self, f"The estimator {type(learner).__name__} should be a {kind} with fit; got {learner!r}."
                )

    # The stored form
    # ----------------------------------------------------------------------------------------

    def members(self) -> list[Any]:
        """Return the members as the checker and a file want them: classifiers know the classes as 0, 1, ..."""
        return [coded(member, getattr(self, "classes_", None)) for member in self.members_]

    def _take_members(self, members: Sequence[Any]) -> None:
        self._keep(members)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        for member in self.members_:
            if not is_ours(member):
                raise refuse(
                    self,
                    f"a certificate is about members that the checker re-runs; {type(member).__name__} is not a "
                    "learner of Assay.",
                )
        return super()._known_rows(X, y, sample_weight)

    def space(self, rows: Rows) -> Any:
        """Return a class without a dimension: members are chosen from classes of their own."""
        return Unbounded(self.combines)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores, or numbers, that follow from what the members say."""
        if np.any(np.asarray(self.links_) < 0):
            at = int(np.argmin(self.links_))
            raise refuse(
                self,
                f"the checker does not know what {type(self.members_[at]).__name__} returns; ask for votes, not for "
                "probabilities.",
            )
        kind = Scores if is_classifier(self) else Predictions
        yield kind(self._bounded, (outputs(self.members_, self.links_, rows),))

    def _bounded(self, block: Block, members: Sequence[MemberOutput]) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores or numbers of a block, and how far rounding can move them."""
        with np.errstate(all="ignore"):
            values, errors = self._combine([member.of(block) for member in members], block)
        return values, errors.max(axis=1)

    def _combine(self, said: Sequence[Output], block: Block) -> Output:
        """Return what the model makes of what its members say."""
        raise NotImplementedError


def _takes_weights(learner: Any) -> bool:
    """Tell whether `fit` of a learner names sample_weight, or takes any keyword."""
    kinds = [parameter.kind for parameter in signature(learner.fit).parameters.values()]
    return has_fit_parameter(learner, "sample_weight") or Parameter.VAR_KEYWORD in kinds


def reject_label(classes: np.ndarray, given: Any) -> Any:
    """Return the label of rejected rows: that which is given, else "reject" for text, and for numbers -1, or 0 if that
    is a class, or one less than the smallest."""
    if given is not None:
        return given
    if classes.dtype.kind not in "iuf":
        return "reject"
    return next((value for value in (-1, 0) if value not in classes), classes.min() - 1)


def labelled(classes: np.ndarray, at: np.ndarray, rejected: Any) -> np.ndarray:
    """Return the labels of positions, and `rejected` for positions that are none; labels keep their types."""
    away = (at < 0) | (at >= len(classes))
    label = np.asarray([rejected])
    alike = all(part.dtype.kind in "iuf" for part in (classes, label)) or classes.dtype.kind == label.dtype.kind == "U"
    kind = np.result_type(classes, label) if alike else np.dtype(object)
    said = classes.astype(kind)[np.where(away, 0, at)]
    said[away] = rejected
    return said

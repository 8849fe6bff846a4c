"""What fitted members say of rows, with a bound of its rounding, from their own evidence.

A model made of other models stores for each member a link, a number that says how it is read: its vote, its scores, or
probabilities that follow from these as the variant of its family says. The checker has formulas of its own for the
same links (`checker.rules.members`); nothing here calls the checker.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples

from assay.base import Learner
from assay.checker.family import find
from assay.checker.rules.members import BALANCE, BOOSTED, COUNTS, LEAVES, LOGISTIC, RAW, SCORE, SHARES, VOTE
from assay.data.blocks import Block
from assay.guarantees.evidence import Decided, Predictions, Scores, Tally
from assay.scan import Rows
from assay.scan.memory import MemoryRows

Output = tuple[np.ndarray, np.ndarray]
"""Values (rows, outputs) and how far rounding can move each of them."""

PROBES = 24  # rows on which a member's probabilities or scores are compared with what its link makes of its evidence
UNIT = 2.0**-53
_OPEN = 1e200  # the error of a number about which nothing is known
_LINKS = {"shares": SHARES, "logistic": LOGISTIC, "leaves": LEAVES, "counts": COUNTS, "boosted": BOOSTED}


def is_ours(learner: Any) -> bool:
    """Tell whether a learner is one of Assay's, with a stored form that the checker reads."""
    return isinstance(learner, Learner) and hasattr(learner, "family")


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
    return [MemberOutput(one, link, _needed(one, link, rows)) for one, link in zip(members, links.tolist())]


def _needed(member: Any, link: int, rows: Rows) -> Any:
    """Return the evidence that a link reads; None for the shares of a single tree's leaves."""
    if _of_leaves(member) and link in (LEAVES, SCORE):
        return None
    kinds = (Decided,) if link == VOTE else (Scores, Tally) if is_classifier(member) else (Predictions,)
    found = next((one for one in member.evidence(rows) if isinstance(one, kinds)), None)
    if found is None:
        raise ValueError(f"a {type(member).__name__} has no scores.")
    return found


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
    return _first(member, [_LINKS[name] for name in _probabilities(member)], member.predict_proba)


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
        found = (link for link in links if _agrees(MemberOutput(member, link, _needed(member, link, rows)), rows, said))
        return next(found, -1)
    except (AttributeError, ValueError):  # a member of a member is from outside, or the member has no scores
        return -1


def _agrees(output: MemberOutput, rows: Rows, said: np.ndarray) -> bool:
    """Tell whether a link gives what the member said, on the rows that rounding does not leave open."""
    with np.errstate(all="ignore"):
        values, errors = output.of(next(iter(rows.blocks())))
    if values.shape != said.shape:
        return False
    size = 1 + np.abs(said)
    known = (errors <= 1e-3 * size).all(axis=1)
    return bool(np.all((np.abs(values - said) <= 4 * errors + 1e-12 * size)[known]))


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
    size = sum(w * np.abs(one) for w, (one, _) in zip(shares.tolist(), said))
    return values, errors + 8 * (len(said) + 4) * UNIT * size

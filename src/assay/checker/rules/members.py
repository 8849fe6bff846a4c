"""What the fitted members of a combined model say of rows, with a bound of its error: votes, shares, scores.

A member is read through a link, a number that the model stores for each member:

    0  vote      1 for the class that it decides for and 0 for the others; nothing where rounding leaves it open
    1  shares    its scores are class probabilities
    2  logistic  class probabilities are the logistic function of its score, or the softmax of its scores
    3  leaves    the class shares of the leaf of a single tree
    4  score     one number: its score, or of two scores (of a single tree: of the leaf's two shares) the second less
                 the first
    5  raw       its scores as they are
    6  counts    class probabilities are its scores, none of them negative, divided by their sum
    7  boosted   class probabilities are the softmax of K / (K - 1)^2 times the scores divided by their sum, K classes:
                 those of AdaBoost, whose scores are the weights of its votes
    8  balance   one number: of two scores, none of them negative, twice the second less the first divided by their sum
    -1           nothing is known of it: such a model is stored and loaded, and no claim is about its predictions
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from assay.checker.numerics import U, above
from assay.checker.predictors import Predictor, decided
from assay.checker.record import Refused, Rejected

UNKNOWN = -1
_OPEN = 1e200  # the error of a number about which nothing is known
VOTE, SHARES, LOGISTIC, LEAVES, SCORE, RAW, COUNTS, BOOSTED, BALANCE = range(9)


@dataclass(frozen=True)
class Reading:
    """A member and the link through which it is read; `classes` is how many it tells apart, 0 for a regression."""

    member: Predictor
    link: int
    classes: int

    def values(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what it says (rows, outputs), and a bound of its error for each row and output."""
        if self.link == UNKNOWN:
            raise Refused("it is not known what a member says")
        if self._of_leaves:
            shares = self.member.value[self.member.ends(X)[:, 0]]  # type: ignore[attr-defined]
            shares = shares[:, 1:] - shares[:, :1] if self.link == SCORE else shares
            return shares, U * np.abs(shares) if self.link == SCORE else np.zeros_like(shares)
        scores, _ = self.member.scores(X, np.abs(X).max(axis=0, initial=0.0))
        errors = np.broadcast_to(self.member.row_errors(X), scores.shape)
        if self.link == VOTE:
            return self._vote(X, scores, errors)
        if self.link == LOGISTIC:
            return _logistic(scores, errors)
        if self.link == COUNTS:
            return _divided(scores, errors)
        if self.link == BOOSTED:
            return _boosted(scores, errors)
        if self.link == BALANCE:
            shares, slack = _divided(scores, errors)
            return 2 * (shares[:, 1:] - shares[:, :1]), above(4 * slack[:, :1] + 8 * U, 4)
        if self.link == SHARES and scores.shape[1] == 1:
            return np.column_stack([1 - scores[:, 0], scores[:, 0]]), above(np.repeat(errors, 2, axis=1) + U, 2)
        if self.link == SCORE and scores.shape[1] == 2:
            difference = (scores[:, 1] - scores[:, 0])[:, None]
            return difference, above(errors.sum(axis=1, keepdims=True) + U * np.abs(difference), 2)
        return scores, errors

    @property
    def _of_leaves(self) -> bool:
        """Whether the shares of a single tree's leaves are read; its own scores are votes."""
        return self.link == LEAVES or (self.link == SCORE and getattr(self.member, "kind", "") == "classifier")

    def _vote(self, X: np.ndarray, scores: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        guess, sure = decided(self.member, X, (scores, errors))
        votes = np.zeros((len(scores), max(self.classes, scores.shape[1])))
        votes[np.flatnonzero(sure), guess[sure]] = 1.0
        return votes[:, : self.classes], np.repeat((~sure)[:, None].astype(float), self.classes, axis=1)


def _logistic(scores: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """No share moves by more than half of the largest error of a score; the rest is the rounding of the softmax."""
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    slack = np.minimum(0.5 * errors.max(axis=1, keepdims=True) + 64 * scores.shape[1] * U, 1.0)
    return softmax(scores, axis=1), np.repeat(slack, scores.shape[1], axis=1)


def _divided(scores: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """With 0 <= s off by e, s / S is off by at most (1 + K) e / (S - K e); of negative scores nothing is said."""
    K, total, error = scores.shape[1], scores.sum(axis=1, keepdims=True), errors.max(axis=1, keepdims=True)
    room = total - K * error
    slack = np.where(room > 0, above((1 + K) * error / np.where(room > 0, room, 1.0) + 8 * K * U, 4), 1.0)
    slack = np.where(scores.min(axis=1, keepdims=True) < 0, _OPEN, slack)
    return scores / np.where(total > 0, total, 1.0), np.repeat(slack, K, axis=1)


def _boosted(scores: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The softmax of c s / S: c times the error of s / S, and its rounding, are the error of what it is taken of."""
    K = scores.shape[1]
    factor = K / (K - 1) ** 2
    shares, slack = _divided(scores, errors)
    return _logistic(factor * shares, above(factor * (slack + 4 * U), 4))


def readings(members: Sequence[Predictor], links: np.ndarray, classes: int) -> tuple[Reading, ...]:
    """Return the members with their links, after checking that each goes with its member.

    A classifier of `classes` classes was fitted to the labels 0, 1, ...; with 0 classes members are regressions.
    """
    if links.shape != (len(members),) or np.any((links < UNKNOWN) | (links > BALANCE)):
        raise Rejected("links_ must say how each member is read")
    labels = tuple(map(str, range(classes))) if classes else None
    for member, link in zip(members, links.tolist()):
        if member.classes != labels or member.columns != members[0].columns:
            raise Rejected("the members must be about the same columns and the classes 0, 1, ...")
        if link in (BOOSTED, BALANCE) and (classes < 2 or member.binary or (link == BALANCE and classes > 2)):
            raise Rejected("votes that are divided by their sum have a score for each class")
        if link == LEAVES and getattr(member, "kind", "") != "classifier":
            raise Rejected("leaves are those of a single tree")
    return tuple(Reading(member, link, classes) for member, link in zip(members, links.tolist()))


def are_positions(array: np.ndarray, model: Any) -> bool:
    """Tell whether an array names, in order, which of the members asked for a model has; no claim reads it."""
    whole = array.dtype.kind == "i" and array.shape == (len(model.readings),)
    return whole and bool(np.all(np.diff(array, prepend=-1) > 0))


class Combined(Predictor):
    """A model whose scores are made of what its members say; `_combined` is the formula."""

    readings: tuple[Reading, ...]

    @property
    def columns(self) -> int:
        return self.readings[0].member.columns

    @property
    def width(self) -> int:  # type: ignore[override]
        return max(max(reading.member.width, len(reading.member.classes or ())) for reading in self.readings)

    @property
    def reads_gaps(self) -> bool:  # type: ignore[override]
        return all(reading.member.reads_gaps for reading in self.readings)

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, errors = self._combined([reading.values(X) for reading in self.readings])
        return values, by_block(values, errors, self.classes)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self._combined([reading.values(X) for reading in self.readings])[1]

    def _combined(self, outputs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """Return scores (rows, K) and a bound of their error for each row."""
        raise NotImplementedError


def by_block(values: np.ndarray, errors: np.ndarray, classes: Any) -> np.ndarray:
    """Return error bounds for a block: of several scores of classes those of each row, since a vote that is open in one
    row says nothing of the others; else the largest of each output."""
    return errors if classes is not None and values.shape[1] > 1 else errors.max(axis=0, initial=0.0)

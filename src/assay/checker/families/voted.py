"""Voted perceptrons: the vote, the pass that it came from, and what the pass says about new data (progressive.vote,
compression.voted-perceptron).

Hypothesis h_t is a function of the rows met before row t, so its loss there is an unbiased guess of its risk: the
losses are a martingale around the risks. The pass is repeated here, every decision in real numbers, and must meet the
very updates that the model is made of.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.bounds.margins import Rebuilt
from assay.checker.bounds.tails import ln
from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import UNDERFLOW, above, gamma
from assay.checker.predictors import Predictor, error_counts
from assay.checker.record import Refused, Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.tree_ensembles import drawn
from assay.claims.definitions import PRIOR, Definition
from assay.claims.sentences import error_rate

RATES = range(-8, 5)
"""Exponents of the rates t = 2^rate, fixed in advance."""
_SLIP = Decimal("1e-40")
_NUMBERS = 2**21  # of hyperplanes or scores held at once


@dataclass(frozen=True)
class Voted(Predictor):
    """Scores are votes: row j of `vectors`, with the constant appended, was added to the weights of class gained[j] and
    subtracted from those of class lost[j], from zero on; votes[j] is the vote of what was there before update j."""

    vectors: np.ndarray  # (M, d)
    gained: np.ndarray  # (M,)
    lost: np.ndarray  # (M,)
    votes: np.ndarray  # (M + 1,)
    constant: float
    classes: tuple[str, ...]

    @property
    def columns(self) -> int:
        return self.vectors.shape[1]

    def members(self, together: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield weights (members, K, d + 1) and votes of the hypotheses after each update, at most `together` at once.
        Hypothesis 0 decides for nobody."""
        K, d, at = len(self.classes), self.columns, 0
        current = np.zeros((K, d + 1))
        while at < len(self.vectors):
            some = range(at, min(at + together, len(self.vectors)))
            W = np.empty((len(some), K, d + 1))
            for place, j in enumerate(some):
                row = np.append(self.vectors[j], self.constant)
                current[self.gained[j]] += row
                current[self.lost[j]] -= row
                W[place] = current
            yield W, self.votes[at + 1 : at + 1 + len(some)].astype(np.float64)
            at += len(some)

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        votes, unsure = self._count(X)
        return votes, np.repeat(unsure[:, None] / 2, len(self.classes), axis=1)  # a lead moves by one vote, not by two

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self.scores(X, np.zeros(0))[1]

    def _count(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the votes (rows, K) that rounding leaves certain, and how many others there are for each row."""
        K, table = len(self.classes), _with(X, self.constant)
        votes, unsure = np.zeros((len(X), K)), np.zeros(len(X))
        for W, weight in self.members(max(1, _NUMBERS // (K * max(len(X), self.columns + 1)))):
            winner, sure = _decided(table, W)
            for k in range(K):
                votes[:, k] += (sure & (winner == k)) @ weight
            unsure += ~sure @ weight
        return votes, unsure


def _with(X: np.ndarray, constant: float) -> np.ndarray:
    return np.column_stack([X, np.full(len(X), constant)])


def _decided(table: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the class (rows, members) of the largest score, -1 where all are exactly zero, and whether that is
    certain: first with one bound of the rounding for all rows, then, where that leaves one open, with its own."""
    members, K, d = W.shape
    if K == 2:  # the weights of the first class are those of the second with the other sign
        score = table @ W[:, 1].T
        winner, lead = (score > 0).astype(np.int64), 2 * np.abs(score)
    else:
        scores = (table @ W.reshape(-1, d).T).reshape(len(table), members, K)
        ordered = np.partition(scores, K - 2, axis=2)
        winner, lead = scores.argmax(axis=2), ordered[:, :, -1] - ordered[:, :, -2]
    slip = above(2 * gamma(2 * d + 8))
    sure = lead > above(slip * (np.abs(W).max(axis=1) @ np.abs(table).max(axis=0)), d) + UNDERFLOW
    rows = np.flatnonzero(~sure.all(axis=1))
    if len(rows):
        left = table[rows]
        size = (np.abs(left) @ np.abs(W).max(axis=1).T) * (1 + gamma(2 * d + 8))
        zero = (left != 0).astype(np.float64) @ (W != 0).any(axis=1).T.astype(np.float64) == 0
        sure[rows] = zero | (lead[rows] > above(slip * size) + UNDERFLOW)
        winner[rows] = np.where(zero, -1, winner[rows])
    return winner, sure


def _exact(x: np.ndarray, W: np.ndarray) -> list[Fraction]:
    row = [Fraction(value) for value in x.tolist()]
    return [sum((Fraction(w) * v for w, v in zip(weights, row) if w and v), Fraction(0)) for weights in W.tolist()]


def _exact_winner(x: np.ndarray, W: np.ndarray) -> int:
    scores = _exact(x, W)
    best = max(scores)
    return scores.index(best) if scores.count(best) == 1 else -1


def read_voted(
    vectors: np.ndarray, gained: np.ndarray, lost: np.ndarray, votes: np.ndarray, constant: np.ndarray, classes: Any
) -> Voted:
    """Return the vote from its stored arrays."""
    M, K = len(vectors), len(classes)
    if vectors.ndim != 2 or not vectors.size or not gained.shape == lost.shape == (M,) or votes.shape != (M + 1,):
        raise Rejected(f"vectors_ {vectors.shape}, gained_ {gained.shape}, lost_ {lost.shape}, votes_ {votes.shape}")
    codes = np.concatenate([gained, lost])
    if np.any(codes != np.rint(codes)) or codes.min() < 0 or codes.max() >= K or np.any(gained == lost):
        raise Rejected("gained_ and lost_ must name two different classes for each update")
    if np.any(votes != np.rint(votes)) or votes.min() < 0 or not 0 < votes.sum() < 2.0**53:
        raise Rejected("votes_ must be counts")
    if constant.shape != (1,) or constant[0] not in (0.0, 1.0):
        raise Rejected("constant_ must be 0 or 1")
    gained, lost, votes = (part.astype(np.int64) for part in (gained, lost, votes))
    return Voted(vectors, gained, lost, votes, float(constant[0]), classes)


class OnePass(Rule):
    """Repeats the pass over the training rows, in their order or in the one of the seed, and compares each update."""

    def prepare(self) -> None:
        if not isinstance(self.model, Voted):
            raise Rejected("it is about the vote of the hypotheses of one pass")
        if not 0 <= self.claim.value <= 1:
            raise Rejected(f"an error rate lies between 0 and 1; the value is {self.claim.value!r}")
        self.check_rows()
        self.skipped = self.count("skipped")
        if self.skipped >= self.rows:
            raise Rejected(f"skipped is {self.skipped} of {self.rows} rows: no hypothesis is left to vote")
        self.seed = None if self.param("seed") is None else self.count("seed")
        self.delta = exact_decimal(self.claim.delta, "delta")
        self.table = np.empty((self.rows, self.model.columns + 1))
        self.codes = np.empty(self.rows, dtype=np.int64)

    def block(self, view: View) -> None:
        if np.any(view.weight != 1):
            raise Rejected("row weights are not part of it")
        here = slice(view.start, view.start + len(view.X))
        self.table[here], self.codes[here] = _with(view.X, self.model.constant), view.codes

    def next_pass(self) -> bool:
        self.updates = self._replayed()
        return False

    def _replayed(self) -> np.ndarray:
        """Return the places of the updates in the pass, after comparing the model with what the pass does."""
        n, model = self.rows, self.model
        self.order = np.arange(n) if self.seed is None else drawn(self.seed, n, n, False)
        W = np.zeros((len(model.classes), self.table.shape[1]))
        places: list[int] = []
        at, ahead = 0, 16
        while at < n:
            rows = self.order[at : at + ahead]
            right, taken = _judged(self.table[rows], self.codes[rows], W)
            stop = int(np.argmin(right)) if not right.all() else len(rows)
            if stop == len(rows):
                at, ahead = at + stop, min(2 * ahead, 4096)
                continue
            i, ahead = rows[stop], max(16, 2 * stop)
            k = int(taken[stop]) if taken[stop] >= 0 else _exactly_taken(self.table[i], W, int(self.codes[i]))
            at += stop + 1
            if k < 0:
                continue
            self._compare(len(places), i, k)
            W[self.codes[i]] += self.table[i]
            W[k] -= self.table[i]
            places.append(at - 1)
        result = np.array(places, dtype=np.int64)
        borders = np.maximum(np.concatenate([[0], result + 1, [n]]), self.skipped)
        if len(result) != len(model.vectors) or not np.array_equal(np.diff(borders), model.votes):
            raise Rejected("the pass over these rows meets other mistakes than those that the model is made of")
        return result

    def _compare(self, j: int, i: int, taken: int) -> None:
        model = self.model
        own = self.codes[i]
        if j >= len(model.vectors) or (model.gained[j], model.lost[j]) != (own, taken):
            raise Rejected(f"update {j} of the pass is not that of the model")
        if not np.array_equal(model.vectors[j], self.table[i, :-1]):
            raise Rejected(f"update {j} of the model was made on another row")


def _judged(table: np.ndarray, codes: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows are certainly right, and for the others the class that they are certainly taken for, or -1."""
    winner, sure = _decided(table, W[None])
    winner, sure = winner[:, 0], sure[:, 0]
    right = sure & (winner == codes)
    return right, np.where(sure & (winner >= 0), winner, -1)


def _exactly_taken(x: np.ndarray, W: np.ndarray, code: int) -> int:
    """Return the class, the first of equals, that x is taken for in exact arithmetic; -1 if it is right."""
    scores = _exact(x, W)
    best = max(score for k, score in enumerate(scores) if k != code)
    return next(k for k, s in enumerate(scores) if k != code and s == best) if best >= scores[code] else -1


class ProgressiveVote(OnePass):
    """progressive.vote: twice the mean risk of the hypotheses that vote, from p, their share of mistakes on the m rows
    they met.

    Either p + sqrt(ln(2 / delta) / (2 m)), or (1 - exp(-t p - ln(26 / delta) / m)) / (1 - exp(-t)) for one of 13 rates
    t = 2^-8 .. 2^4: each form has half of delta.
    """

    def prepare(self) -> None:
        super().prepare()
        self.rate = None if self.param("rate") is None else self.choice("rate", list(RATES))

    def measure(self) -> float:
        m, errors = self.rows - self.skipped, int(np.count_nonzero(self.updates >= self.skipped))
        if self.count("errors") != errors:
            raise Rejected(f"errors is {self.params['errors']}, the pass met {errors}")
        with localcontext(prec=60):
            p = Decimal(errors) / m
            if self.rate is None:
                mean = p + (ln(2 / self.delta) / (2 * m)).sqrt()
            else:
                t = Decimal(2) ** self.rate
                paid = t * p + ln(2 * len(RATES) / self.delta) / m
                mean = (1 - (-paid).exp()) / (1 - (-t).exp())
            return min(1.0, math.nextafter(float(2 * mean + _SLIP), 2.0))


class VotedCompression(OnePass):
    """compression.voted-perceptron: the vote is rebuilt from the rows of its updates, whose numbers tell in which order
    and for how long."""

    def prepare(self) -> None:
        super().prepare()
        self.shared = Rebuilt()
        self.shared.check_claim(self)

    def measure(self) -> float:
        outside = np.ones(self.rows, dtype=bool)
        outside[self.order[self.updates]] = False
        X, codes = self.table[outside, :-1], self.codes[outside]
        if not np.isfinite(X).all():
            raise Refused("a row is missing")
        for start in range(0, len(X), 4096):
            some, known = X[start : start + 4096], codes[start : start + 4096]
            scores, errors = self.model.scores(some, np.abs(some).max(axis=0))
            self.shared.lost += error_counts(self.model, some, known, scores, errors)[1]
        return self.shared.limit(self, len(self.updates), Decimal(0))


CLAIMS = {
    "P16/4": Definition(
        "compression.voted-perceptron",
        VotedCompression,
        error_rate("{errors} errors outside the {kept} of {rows} training rows that were learnt from"),
        (*PRIOR, "A-ORDER"),
        quantity="error rate",
    ),
    "P20/1": Definition(
        "progressive.vote",
        ProgressiveVote,
        error_rate(
            "{errors} mistakes on training rows that each hypothesis met before learning from them, a vote of all "
            "after the first {skipped} rows, a number fixed in advance"
        ),
        (*PRIOR, "A-ORDER"),
        quantity="error rate",
    ),
}
_ARRAYS = {"vectors_": NUMBERS, "gained_": WHOLE, "lost_": WHOLE, "votes_": WHOLE, "constant_": NUMBERS}
FAMILY = Family("voted", {"classifier": Variant(_ARRAYS, read_voted, classes=True)}, CLAIMS)

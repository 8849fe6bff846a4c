"""Votes and means of members of any family, with weights, and with the right to reject a row.

`vote_weights_` (members,) >= 0, not all zero; `links_` (members,) how each member is read (`rules.members`); of a
classifier also `needed_`, a number: the share of the total weight that a class must exceed, or -1 if the largest
share decides. Scores are sums of weights times votes or shares, one for each class; with `needed_` a last score,
needed_ times the total weight, is that of rejection: a rejected row is an error. A tie is one too. A regression
predicts the weighted mean.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.bounds.tails import binomial_at_least, binomial_at_most, ln
from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import Sums, above, gamma
from assay.checker.predictors import Predictor
from assay.checker.record import Refused, Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.members import (
    BALANCE,
    RAW,
    SCORE,
    UNKNOWN,
    Combined,
    Reading,
    are_positions,
    readings,
)
from assay.claims.definitions import HOLDOUT, Definition
from assay.claims.sentences import Sentence

GRID = 64
"""Thresholds of a share fixed in advance: 0, 1/64, ..., 63/64."""


@dataclass(frozen=True)
class Vote(Combined):
    """Scores of a vote; the last of them is that of rejection if a share is needed."""

    readings: tuple[Reading, ...]
    weights: np.ndarray
    needed: float
    classes: tuple[str, ...] | None

    def _combined(self, outputs: Any) -> tuple[np.ndarray, np.ndarray]:
        values = sum(w * item for w, (item, _) in zip(self.weights.tolist(), outputs))
        slack = sum(w * error for w, (_, error) in zip(self.weights.tolist(), outputs))
        if self.needed >= 0:
            last = np.full(len(values), self.needed * self.total)
            values, slack = np.column_stack([values, last]), np.column_stack([slack, np.zeros(len(last))])
        return values, above(slack, len(outputs) + 4) + self._rounding * np.maximum(np.abs(values), self.total)

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @property
    def _rounding(self) -> float:
        """Votes with whole weights are counted without rounding."""
        whole = all(reading.link == 0 for reading in self.readings) and np.all(self.weights == np.floor(self.weights))
        exact = whole and self.total < 2**40 and self.needed * 2**10 == math.floor(self.needed * 2**10)
        return 0.0 if exact else gamma(2 * len(self.weights) + 8)

    def leads(self, view: View) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the leading class of each row, its share of the weight, by how much it leads, and a bound of the
        error of both."""
        K = len(self.classes or ())
        values, errors = view.scores[0][:, :K] / self.total, self.row_errors(view.X)[:, :K].max(axis=1) / self.total
        ranked = np.partition(values, K - 2, axis=1)
        lead = ranked[:, K - 1] - ranked[:, K - 2]
        return values.argmax(axis=1), ranked[:, K - 1], lead, above(2 * errors + 2.0**-50, 4)


@dataclass(frozen=True)
class Mean(Combined):
    """The weighted mean of regressions."""

    readings: tuple[Reading, ...]
    weights: np.ndarray

    def _combined(self, said: Any) -> tuple[np.ndarray, np.ndarray]:
        shares = (self.weights / self.weights.sum()).tolist()
        values = sum(w * item for w, (item, _) in zip(shares, said))
        size = sum(w * np.abs(item) for w, (item, _) in zip(shares, said))
        slack = sum(w * error for w, (_, error) in zip(shares, said))
        return values, above(slack, len(said) + 4) + gamma(4 * len(said) + 8) * size


def _check_weights(weights: np.ndarray, members: list[Predictor]) -> None:
    if weights.shape != (len(members),) or weights.min(initial=0.0) < 0 or not weights.sum() > 0:
        raise Rejected("vote_weights_ must have a number >= 0 for each member, not all zero")


def read_vote(
    members: list[Predictor], weights: np.ndarray, links: np.ndarray, needed: np.ndarray, classes: Any
) -> Vote:
    """Return the vote after checking weights and links."""
    _check_weights(weights, members)
    if needed.shape != () or not (needed == -1 or 0 <= needed < 1):
        raise Rejected("needed_ must be a share below 1, or -1")
    result = readings(members, links, len(classes))
    if any(item.link in (SCORE, BALANCE, RAW) for item in result):
        raise Rejected("a vote reads votes or shares of its members")
    return Vote(result, weights, float(needed), classes)


def read_mean(members: list[Predictor], weights: np.ndarray, links: np.ndarray, classes: Any) -> Mean:
    """Return the mean after checking weights and links."""
    _check_weights(weights, members)
    if not np.isin(links, (RAW, UNKNOWN)).all():
        raise Rejected("a mean reads its members' numbers as they are")
    return Mean(readings(members, links, 0), weights)


class SimplexGap(Rule):
    """weights.simplex: on the rows of the witness `held`, no weights on the simplex have a mean squared error smaller
    by more than the value.

    F(w) = mean |sum_t w_t h_t(x) - y|^2, y a number or the one-hot label. F(w) - min F <= <grad F(w), w> - min_t of
    its entries.
    """

    def prepare(self) -> None:
        if not isinstance(self.model, (Vote, Mean)):
            raise Rejected("it is about weights of a vote or mean")
        self.check_rows()
        self.held = self.witness("held", None, integer=True)
        if len(self.held) < 1 or np.any(np.diff(self.held) <= 0) or self.held[0] < 0 or self.held[-1] >= self.rows:
            raise Rejected("held must name rows, in order")
        if self.count("learnt_from") != len(self.held):
            raise Rejected(f"learnt_from must be the number of rows held, {len(self.held)}")
        T = len(self.model.weights)
        self.weights = self.model.weights / self.model.weights.sum()
        self.products, self.extra = Sums(T), np.zeros(T)

    def block(self, view: View) -> None:
        _, at = view.pick(self.held)
        if not len(at):
            return
        X = view.X[at]
        outputs = [reading.values(X) for reading in self.model.readings]
        values = np.stack([item for item, _ in outputs], axis=1)  # (rows, members, outputs)
        errors = np.stack([error for _, error in outputs], axis=1)
        if np.any(errors >= 0.5):
            raise Refused("rounding leaves a vote of a member open")
        target = np.eye(values.shape[2])[view.known_codes[at]] if self.model.classes else view.targets[at]
        residual = np.einsum("t,itk->ik", self.weights, values) - target
        self.products.add(2 * np.einsum("ik,itk->it", residual, values))
        slip = errors.max(axis=1) + gamma(4 * len(self.weights) + 32) * (np.abs(values).max(axis=1) + np.abs(target))
        size = np.abs(values).max(axis=1) + np.abs(target) + slip
        self.extra += float(8 * (slip * size).sum())

    def measure(self) -> float:
        slope = self.products.value / len(self.held)
        error = float(np.max(self.products.error + self.extra)) / len(self.held)
        gap = float(slope @ self.weights - slope.min())
        return above(max(gap, 0.0) + 2 * error + gamma(4 * len(slope) + 8) * float(np.abs(slope).max()), 8)


class SelectiveAtShare(Rule):
    """selective.fixed: the share of errors among the new rows that the vote decides, its threshold fixed in advance.

    A row is decided if the share of its leading class is above t. The errors among the decided hold-out rows are
    binomial given which rows these are.
    """

    set = "holdout"

    def prepare(self) -> None:
        if not isinstance(self.model, Vote) or self.model.needed < 0:
            raise Rejected("it is about a vote that may reject rows")
        self.check_rows()
        self.delta = exact_decimal(self.claim.delta, "delta")
        self.low = self.high = self.model.needed
        self.stated = self.count("wrong"), self.count("decided", 1)
        self.wrong = self.decided = 0

    def block(self, view: View) -> None:
        guess, share, lead, error = self.model.leads(view)
        # A share within rounding of a threshold may lie on either side of it: it counts as wrong, and not as decided.
        self.decided += int(np.sum(share > self.high + error))
        right = (guess == view.codes) & (lead > error)
        self.wrong += int(np.sum((share > self.low - error) & ~right))

    def measure(self) -> float:
        wrong, decided = self.stated
        if wrong < self.wrong or decided > self.decided or wrong > self.rows:
            raise Rejected(f"recounted {self.wrong} wrong rows and {self.decided} decided ones")
        return self.claim.value if self.claim.value >= 1 else self.limit(*self.stated)

    def limit(self, wrong: int, decided: int) -> float:
        """Return the value, if it is a Clopper-Pearson limit of the errors among the decided rows."""
        value = Fraction(self.claim.value)
        if not (wrong <= decided and value > 0 and binomial_at_most(wrong, decided, value).high <= ln(self.delta)):
            raise Rejected(f"the limit for {wrong} errors in {decided} decided rows lies above {float(value):.10g}")
        return self.claim.value


class SelectiveRisk(SelectiveAtShare):
    """selective.risk: the same for all thresholds of the share at once.

    For t = g/64, fixed in advance, a Clopper-Pearson limit at delta / 128: "grid". For other t in (g/64, (g+1)/64):
    P[wrong and decided] is at most its limit at g/64, and P[decided] at least its limit at (g+1)/64, each at
    delta / 256: "between".
    """

    def prepare(self) -> None:
        super().prepare()
        at = self.low * GRID
        self.form = self.choice("form", ["grid" if at == math.floor(at) else "between"])
        self.low, self.high = math.floor(at) / GRID, math.ceil(at) / GRID
        self.delta /= 2 * GRID if self.form == "grid" else 4 * GRID

    def limit(self, wrong: int, decided: int) -> float:
        if self.form == "grid":
            return super().limit(wrong, decided)
        joint, coverage, share = self.number("joint"), self.number("coverage"), ln(self.delta)
        sound = joint >= 1 or binomial_at_most(wrong, self.rows, Fraction(joint)).high <= share
        if not (sound and 0 < coverage < 1 and binomial_at_least(decided, self.rows, Fraction(coverage)).high <= share):
            raise Rejected("the limits of the wrong and of the decided rows are too narrow")
        return math.nextafter(float(Fraction(joint) / Fraction(coverage)), math.inf)


_GAP = Sentence.plain(
    "On {learnt_from} of the {rows} training rows no other weights of the members have a mean squared error smaller by "
    "more than {value:up}."
)


_SELECTIVE = Sentence.plain(
    "Of the new rows that it does not reject, at most {value:percent} are wrong ({decided} of {rows} hold-out rows are "
    "decided); this holds for every share that may be asked for, so that the share may have been chosen on these rows."
)


_AT_SHARE = Sentence.plain(
    "Of the new rows that it does not reject, at most {value:percent} are wrong ({wrong} of {decided} decided hold-out "
    "rows, of {rows}); the share that it asks for was fixed before these rows were looked at."
)


CLAIMS = {
    "D41/1": Definition("weights.simplex", SimplexGap, _GAP),
    "P41/1": Definition("selective.risk", SelectiveRisk, _SELECTIVE, HOLDOUT, quantity="selective error rate"),
    "P41/2": Definition("selective.fixed", SelectiveAtShare, _AT_SHARE, HOLDOUT, quantity="selective error rate"),
}


def _seed(array: np.ndarray, model: Any) -> bool:
    """Tell whether an array is the seed by which ties are drawn, which no claim is about."""
    return array.dtype.kind == "i" and array.shape == () and 0 <= int(array) < 2**31


_VOTES = {"vote_weights_": NUMBERS, "links_": WHOLE}
FAMILY = Family(
    "votes",
    {
        "classifier": Variant(
            {**_VOTES, "needed_": NUMBERS},
            read_vote,
            classes=True,
            members=True,
            more={"tie_seed_": _seed, "kept_": are_positions},
        ),
        "regressor": Variant(_VOTES, read_mean, members=True, more={"kept_": are_positions}),
    },
    CLAIMS,
)

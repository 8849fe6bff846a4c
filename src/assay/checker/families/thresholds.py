"""A classifier whose probabilities are weighed before a class is decided: moved thresholds, costs, rejection.

One member; `links_` (1,) how its probabilities are read; `matrix_` (classes, decisions): with p the probabilities,
score of decision j is sum_i p_i matrix_ij, and the largest wins. Decisions are the classes and, if there is one
column more, rejection, which is an error. `cost_` (classes, decisions) >= 0: what decision j costs if class i is
true.

A threshold t of two classes is the matrix diag(t, 1 - t): the second class is decided iff its probability is above t.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.bounds.holdout import divergence
from assay.checker.bounds.tails import ln
from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import Sums, above, gamma
from assay.checker.predictors import Predictor, predicted
from assay.checker.record import Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.members import BALANCE, RAW, SCORE, VOTE, Combined, Reading, readings
from assay.claims.definitions import HOLDOUT, Definition
from assay.claims.sentences import Part, Sentence

GRID = 100
"""Thresholds fixed in advance are 1/100, ..., 99/100; strengths of the costs 0, 1/100, ..., 1."""


@dataclass(frozen=True)
class Weighed(Combined):
    """Scores of decisions from a member's probabilities."""

    readings: tuple[Reading, ...]
    matrix: np.ndarray
    cost: np.ndarray
    classes: tuple[str, ...] | None

    def _combined(self, outputs: Any) -> tuple[np.ndarray, np.ndarray]:
        shares, error = outputs[0]
        size = np.abs(self.matrix)
        return shares @ self.matrix, above((error + gamma(2 * len(size) + 8) * np.abs(shares)) @ size, 8)


def read_weighed(
    members: list[Predictor], links: np.ndarray, matrix: np.ndarray, cost: np.ndarray, classes: Any
) -> Weighed:
    """Return the predictor after checking that matrices and classes go together."""
    K = len(classes)
    if len(members) != 1 or np.isin(links, (VOTE, SCORE, BALANCE, RAW)).any():
        raise Rejected("there must be one member, of which the probabilities are read")
    if matrix.ndim != 2 or len(matrix) != K or matrix.shape[1] not in (K, K + 1) or cost.shape != matrix.shape:
        raise Rejected("matrix_ and cost_ must have a row for each class and a column for each decision")
    if cost.min() < 0 or not cost.max() > 0:
        raise Rejected("costs must be >= 0, and not all zero")
    return Weighed(readings(members, links, K), matrix, cost, classes)


def matrices(cost: np.ndarray) -> list[np.ndarray]:
    """Return the matrices of all thresholds (two classes) or strengths of the costs that are fixed in advance."""
    if len(cost) == 2:
        return [np.diag([g / GRID, 1 - g / GRID]) for g in range(1, GRID)]
    wrong, scaled = 1 - np.eye(len(cost)), cost / cost.max()
    return [-((1 - g / GRID) * wrong + g / GRID * scaled) for g in range(GRID + 1)]


class CostRisk(Rule):
    """cost.holdout: the mean cost on new data, by Chernoff's bound of the mean cost of the hold-out rows."""

    set = "holdout"

    def prepare(self) -> None:
        if not isinstance(self.model, Weighed):
            raise Rejected("it is about decisions with costs")
        self.check_rows()
        self.delta = exact_decimal(self.claim.delta, "delta")
        self.most, self.sums, self.seen = float(self.model.cost.max()), Sums(1), 0

    def block(self, view: View) -> None:
        guess, sure = predicted(view)
        self.take(guess, sure, view.codes)

    def take(self, guess: np.ndarray, sure: np.ndarray, codes: np.ndarray) -> None:
        """Add the costs of rows; where a decision is not certain, the largest of its class."""
        at = np.maximum(codes, 0)
        paid = np.where(sure, self.model.cost[at, guess], self.model.cost[at].max(axis=1))
        self.sums.add(np.where(codes < 0, self.most, paid)[:, None])
        self.seen += len(codes)

    def measure(self) -> float:
        if self.claim.value >= self.most:
            return self.claim.value
        mean = Fraction(float(self.sums.value[0] + self.sums.error[0])) / self.seen
        p, q = mean / Fraction(self.most) * Fraction(1 + 2.0**-50), Fraction(self.claim.value) / Fraction(self.most)
        with localcontext(prec=60):
            slip = Decimal("1e-40")
            enough = p < q and divergence(p, q) - slip >= ln(1 / self.delta) / self.seen + slip
        if not enough:
            raise Rejected(f"the mean cost of {self.seen} rows proves no bound as low as {self.claim.value:.10g}")
        return self.claim.value


class ChosenCost(CostRisk):
    """cost.chosen: the same on training rows that the member was not fitted to (`held` of them, the first of a
    permutation that `seed` fixes), on which the threshold, or the strength of the costs, was chosen among those fixed
    in advance:
    each of them has an equal share of delta."""

    set = "train"

    def prepare(self) -> None:
        super().prepare()
        options = matrices(self.model.cost)
        if self.count("options") != len(options):
            raise Rejected(f"there are {len(options)} options")
        if not any(np.array_equal(self.model.matrix, option) for option in options):
            raise Rejected("matrix_ is none of the options that are fixed in advance")
        self.delta = self.delta / len(options)
        seed, size = self.count("seed"), self.count("held", 1)
        if seed >= 2**31 or size > self.rows:
            raise Rejected("the seed has 31 bits, and no more rows are held than there are")
        self.held = np.sort(np.random.RandomState(seed).permutation(self.rows)[:size])

    def block(self, view: View) -> None:
        _, at = view.pick(self.held)
        if len(at):
            guess, sure = predicted(view)
            self.take(guess[at], sure[at], view.codes[at])


_COST = Sentence(
    {
        "": "The mean cost of a decision on new data is at most {value:up6} (Chernoff, {how}).",
        "held": "{rows} hold-out rows",
        "chosen": "{held} of {rows} rows, kept out of the fit, on which one of {options} options was chosen, which is "
        "paid for",
    },
    lambda value, direction, params: {"how": Part("chosen" if "options" in params else "held")},
)


CLAIMS = {
    "P42/1": Definition(
        "cost.chosen",
        ChosenCost,
        _COST,
        ("A-IID(train)", "A-HELD", "A-RANGE", "A-DELTA"),
        quantity="mean cost",
        own_assumptions={
            "A-HELD": "the rows that the decision was chosen on, their number and the seed that drew them were not "
            "chosen by looking at the rows, and the member was fitted without them"
        },
    ),
    "P42/2": Definition("cost.holdout", CostRisk, _COST, (*HOLDOUT, "A-RANGE"), quantity="mean cost"),
}
_ARRAYS = {"links_": WHOLE, "matrix_": NUMBERS, "cost_": NUMBERS}
FAMILY = Family("thresholds", {"": Variant(_ARRAYS, read_weighed, classes=True, members=True)}, CLAIMS)

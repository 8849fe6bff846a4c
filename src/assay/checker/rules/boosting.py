"""Margins of weighted votes of trees: the bound of the error that they give, and the largest margin there can be."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from assay.checker.bounds.tails import ln
from assay.checker.numerics import Sums, above, gamma
from assay.checker.predictors import margins
from assay.checker.record import Refused, Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.tree_classes import ln_member_growth, price, tree_sizes
from assay.checker.rules.trees import Trees

_EXPONENTS = range(0, -11, -1)
_MOST = 2**28  # entries of X that are kept to be sorted


class VoteMargins(Rule):
    """A rule about margins y f(x) of a vote f of two classes whose weights are scaled to sum 1 in magnitude."""

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, Trees) or model.kind != "weighted-vote" or len(model.classes or ()) != 2:
            raise Rejected("it is about a weighted vote of trees for two classes")
        self.check_rows()
        size = math.fsum(np.abs(model.extra).tolist())
        if not size > 0:
            raise Rejected("all weights of the vote are zero")
        self.size = size * (1 - 2.0**-52), size * (1 + 2.0**-52)

    def least(self, view: View) -> np.ndarray:
        """Return lower bounds of the margins."""
        scores, errors = view.scores
        margin, error = margins(view.model, scores, errors, view.codes)
        low = margin - error - 2.0**-51 * np.abs(margin)
        return np.maximum(low / np.where(low > 0, *self.size[::-1]) - 2.0**-51, -1.0)


class BoostingMargin(VoteMargins):
    """margin.boosting: mean of min(1, max(0, 1 - margin / rho)) + (2 / rho) sqrt(2 ln Pi(n) / n) + sqrt(ln(11 / delta)
    / (2n))."""

    def prepare(self) -> None:
        super().prepare()
        if not 0 <= self.claim.value <= 1:
            raise Rejected(f"an error rate lies between 0 and 1; the value is {self.claim.value!r}")
        self.rho = 2.0 ** self.choice("exponent", list(_EXPONENTS))
        base = self.param("class")
        self.ln_growth = ln_member_growth(base, self.rows, self.model)
        self.delta = exact_decimal(self.claim.delta, "delta") / (len(_EXPONENTS) * price(base))
        self.sums = Sums(1)

    def block(self, view: View) -> None:
        ramp = np.clip(1 - self.least(view) / self.rho, 0.0, 1.0)
        self.sums.add(np.minimum(above(ramp) + 2.0**-50, 1.0)[:, None])

    def measure(self) -> float:
        n = self.rows
        mean = above(float(self.sums.value[0] + self.sums.error[0]) / n)
        with localcontext(prec=60):
            complexity = 2 * (2 * self.ln_growth / n).sqrt() / Decimal(self.rho)
            deviation = (-ln(self.delta) / (2 * n)).sqrt()
            return min(1.0, math.nextafter(float(Decimal(mean) + complexity + deviation + Decimal("1e-40")), 2.0))


class MarginDuality(VoteMargins):
    """boosting.margin-duality: the largest soft margin max_rho rho - cap sum_i max(0, rho - m_i) of votes of stumps;
    cap 1: the smallest.

    Lower: the vote itself, at the stated rho. Upper: weights u of the rows; with v = u / sum u <= cap (1 + e), every
    vote's soft margin is at most the largest edge sum v_i y_i h(x_i) of a stump, plus 2 e.
    """

    def prepare(self) -> None:
        super().prepare()
        self.cap = self.number("cap")
        if not 1 / self.rows * (1 - 1e-9) <= self.cap <= 1:
            raise Rejected("cap must lie between one over the number of rows and 1")
        if max(tree_sizes(self.model)) > 2:
            raise Refused("the largest edge is searched among stumps; the vote has larger trees")
        self.lower = self.claim.direction == "lower"
        if self.lower:
            self.rho, self.sums = self.number("rho"), Sums(1)
            return
        self.u = self.witness("weights", self.rows)
        if np.any(self.u < 0) or not self.u.any():
            raise Rejected("weights of rows must not be negative, and not all zero")
        if self.rows * self.model.columns > _MOST:
            raise Refused("the table is too large to be sorted here")
        self.X: list[np.ndarray] = []
        self.sides: list[np.ndarray] = []

    def block(self, view: View) -> None:
        if self.lower:
            short = np.maximum(self.rho - self.least(view), 0.0)
            self.sums.add(above(short)[:, None])
        else:
            if np.any(view.codes < 0):
                raise Rejected("a row has a label that the model does not know")
            self.X.append(view.X)
            self.sides.append(np.where(view.codes == 1, 1.0, -1.0))

    def measure(self) -> float:
        if self.lower:
            short = above(self.cap * above(float(self.sums.value[0] + self.sums.error[0])))
            return self.rho - short - 2.0**-52 * (self.rho + short)
        signed, total = self.u * np.concatenate(self.sides), math.fsum(self.u.tolist())
        most = _largest_edge(np.concatenate(self.X), signed) + gamma(2 * self.rows + 8) * total
        over = max(0.0, float(Fraction(float(self.u.max())) / Fraction(total)) / self.cap - 1) + 2.0**-50
        return above(above(most / total) + 2 * (over if self.cap < 1 else 0.0))


def _largest_edge(X: np.ndarray, signed: np.ndarray) -> float:
    """Return the largest |sum over one side of a border minus sum over the other|, over columns and borders."""
    whole = float(signed.sum())
    largest = abs(whole)
    for column in X.T:
        order = np.argsort(column, kind="stable")
        border = column[order[1:]] > column[order[:-1]]
        below = np.cumsum(signed[order])[:-1][border]
        largest = max(largest, float(np.max(np.abs(whole - 2 * below), initial=0.0)))
    return largest

"""Sample compression: the model is close to one that can be rebuilt from a few of its rows and a short message.

Let g be the rebuilt score, and t(x) a tolerance that rows and message determine too, with |f(x) - g(x)| <= t(x) for
every x, f the score of the model. Where f errs, the margin of g is at most t(x). That is an event about (x, y)
which is fixed before the other rows are drawn, so the Clopper-Pearson limit holds for its count there; a row
whose margin of f is above 2 t(x) is certainly not counted.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.bounds.tails import binomial_at_most, ln, ln_binomial
from assay.checker.numerics import U, above, gamma, norm_above
from assay.checker.predictors import margins
from assay.checker.record import Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.expansions import Expansion
from assay.checker.rules.kernels import HingeGap, diagonal_above

_PI_SQUARE = Decimal("9.86960440108935861883449099987615113531369940724079062641335")
_SLIP = Decimal("1e-18")  # more than all logarithms here are off by
_NEAR = 2.0**-30  # relative distance of a perceptron from the exact sum of its updates
_GRID = tuple(2.0**exponent for exponent in range(-30, 11))
_WORD = 64  # bits of a number that is told


def ln_size(k: int) -> Decimal:
    """Return ln(6 / (pi^2 (k + 1)^2)), weights of 0, 1, 2, ... that add up to one."""
    with localcontext(prec=60):
        return ln(6) - _PI_SQUARE.ln() - 2 * ln(k + 1) - _SLIP


class Rebuilt:
    """What both kinds of compression share: counting on the other rows, and the limit."""

    def check_claim(self, rule: Rule) -> None:
        if rule.model.classes is None:
            raise Rejected("an error rate needs a classifier")
        if not 0 <= rule.claim.value <= 1:
            raise Rejected(f"an error rate lies between 0 and 1; the value is {rule.claim.value!r}")
        rule.check_rows()
        rule.count("errors")
        self.delta, self.lost = exact_decimal(rule.claim.delta, "delta"), 0

    def count_outside(self, view: View, kept: np.ndarray, tolerance: np.ndarray) -> None:
        """Count rows outside the sorted `kept` whose margin is not certainly above the tolerance."""
        margin, error = margins(view.model, *view.scores, view.codes)
        lost = ~(margin > (tolerance + error) * (1 + 8 * U))
        lost[view.pick(kept)[1]] = False
        self.lost += int(lost.sum())

    def limit(self, rule: Rule, kept: int, ln_message: Decimal) -> float:
        n, value = rule.rows, Fraction(rule.claim.value)
        if rule.count("kept") != kept or kept >= n:
            raise Rejected(f"kept is {rule.params['kept']}; the rows it is rebuilt from are {kept} of {n}")
        errors = rule.count("errors")
        if not self.lost <= errors <= n - kept:
            raise Rejected(f"errors is {errors}, recounted {self.lost} in the {n - kept} other rows")
        if value == 1:
            return 1.0
        with localcontext(prec=60):
            allowed = ln(self.delta) + ln_size(kept) - ln_binomial(n, kept) + ln_message - _SLIP
        if value <= 0 or binomial_at_most(errors, n - kept, value).high > allowed:
            raise Rejected(
                f"the limit for {errors} errors in {n - kept} rows, after paying for {kept} kept ones, "
                f"lies above {rule.claim.value:.10g}"
            )
        return rule.claim.value


class PerceptronCompression(Rule):
    """P16/1: w and b are the sum of rate y (x, 1) over updates, which row numbers and counts tell.

    Message: the number M of updates of each hyperplane, with weight 6 / (pi^2 (M + 1)^2), and how they spread over
    the k rows: C(M - 1, k - 1) ways if there is one hyperplane, C(M + k - 1, k - 1) each if there are more.
    """

    def prepare(self) -> None:
        self.shared = Rebuilt()
        self.shared.check_claim(self)
        self.rate, self.intercept = self.number("rate"), self.flag("intercept")
        outputs = len(self.linear.W)
        self.kept = self.witness("rows", None, integer=True)
        self.counts = self.witness("counts", len(self.kept), outputs, integer=True)
        if not len(self.kept) or self.kept[0] < 0 or np.any(self.kept[1:] <= self.kept[:-1]):
            raise Rejected("rows must list row numbers in increasing order")
        if self.counts.min() < 0 or (outputs == 1 and self.counts.min() < 1):
            raise Rejected("counts must be numbers of updates")
        if not self.intercept and np.any(self.linear.b):
            raise Rejected("the perceptron has no intercept, the model has one")
        self.X = np.empty((len(self.kept), self.linear.columns))
        self.signs = np.empty(self.counts.shape)
        self.found, self.tolerance = 0, -1.0

    def block(self, view: View) -> None:
        if self.tolerance < 0:
            where, inside = view.pick(self.kept)
            self.X[where] = view.X[inside]
            positive = np.arange(self.counts.shape[1]) if self.counts.shape[1] > 1 else np.array([1])
            self.signs[where] = np.where(view.codes[inside][:, None] == positive, 1.0, -1.0)
            self.found += len(inside)
            return
        length = above(np.sqrt(np.einsum("ij,ij->i", view.X, view.X) + self.intercept), view.X.shape[1] + 8)
        self.shared.count_outside(view, self.kept, above(self.tolerance * length))

    def next_pass(self) -> bool:
        if self.tolerance >= 0:
            return False
        if self.found != len(self.kept):
            raise Rejected("rows names a row that there is not")
        weights = self.rate * self.counts * self.signs
        ones = np.ones((len(self.X), 1))
        table = np.hstack([self.X, ones]) if self.intercept else self.X
        sums = weights.T @ table
        slip = gamma(len(table) + 8) * (np.abs(weights).T @ np.abs(table)) * (1 + 1e-12)
        model = np.hstack([self.linear.W, self.linear.b[:, None]]) if self.intercept else self.linear.W
        lengths = []
        for own, near, error in zip(model, sums, slip):
            size, apart = norm_above(near), norm_above(np.abs(own - near) + above(error) + 4 * U * np.abs(near))
            if not apart <= _NEAR * (size * (1 - gamma(8 * (len(own) + 16))) - norm_above(error)) * (1 - 4 * U):
                raise Rejected("the updates do not add up to the model")
            lengths.append(above(size + norm_above(error)))
        several = 1 if len(lengths) == 1 else 2
        self.tolerance = above(2 * several * _NEAR * max(lengths))
        return True

    def measure(self) -> float:
        return self.shared.limit(self, len(self.kept), ln_counts(self.counts))


def ln_counts(counts: np.ndarray) -> Decimal:
    """Return ln of the weight of the message that tells (k, hyperplanes) numbers of updates."""
    (k, outputs), message = counts.shape, Decimal(0)
    with localcontext(prec=60):
        for total in (sum(column) for column in counts.T.tolist()):  # sums of int64 could wrap around
            ways = ln_binomial(total - 1, k - 1) if outputs == 1 else ln_binomial(total + k - 1, k - 1)
            message += ln_size(total) - ways - _SLIP
    return message


class KernelPerceptronCompression(Rule):
    """P16/3: f = sum beta_j (kappa(v_j, x) + 1), the 1 with an intercept, is rebuilt from the v_j, which are training
    rows, and |beta_j|, numbers of updates told as in P16/1; 64 bits for each number of the kernel that is `told`."""

    def prepare(self) -> None:
        self.shared = Rebuilt()
        self.shared.check_claim(self)
        model: Any = self.model
        if not isinstance(model, Expansion) or model.kind == "precomputed":
            raise Rejected("it needs a classifier that is an expansion over rows")
        self.told, coef = self.count("told"), model.coef
        sums = [math.fsum(one) if self.flag("intercept") else 0.0 for one in coef]
        if np.any(coef != np.rint(coef)) or np.any(np.abs(coef) > 2.0**53) or list(model.b) != sums:
            raise Rejected("coefficients must be numbers of updates, and the offset their sum (0 without intercept)")
        self.order = np.argsort(model.support, kind="stable")
        self.kept, self.signed = model.support[self.order], coef[:, self.order]
        if not len(self.kept) or np.any(self.kept[1:] == self.kept[:-1]) or not self.signed.any(axis=0).all():
            raise Rejected("support_ is empty, names a row twice, or one without an update")
        self.positive = np.arange(len(coef)) if len(coef) > 1 else np.array([1])
        self.found = 0

    def block(self, view: View) -> None:
        where, inside = view.pick(self.kept)
        if not np.array_equal(view.X[inside], self.model.vectors[self.order[where]]):
            raise Rejected("a stored vector is not the row that support_ names")
        signs = np.where(view.codes[inside] == self.positive[:, None], 1.0, -1.0)
        if np.any(self.signed[:, where] * signs < 0):
            raise Rejected("an update has the sign of another class")
        self.found += len(inside)
        self.shared.count_outside(view, self.kept, np.zeros(len(view.X)))

    def measure(self) -> float:
        if self.found != len(self.kept):
            raise Rejected("not every stored vector is a training row")
        with localcontext(prec=60):
            message = ln_counts(np.abs(self.signed.T).astype(np.int64)) - self.told * _WORD * ln(2) - _SLIP
        return self.shared.limit(self, len(self.kept), message)


class SupportCompression(HingeGap):
    """P16/2: the machine that is optimal for the support vectors alone has |w - w*| <= sqrt(2 gap) on these rows.

    g(x) = <w*, phi(x)> + offset step; t(x) = slope sqrt(kappa(x, x)) + step / 2, with sqrt(2 gap) <= slope and
    |b - offset step| <= step / 2. Message: slope and step from 2^-30 .. 2^10 (1/41 each), offset m with weight
    2 / (3 (|m| + 1)(|m| + 2)), and 64 bits for each number that is `told` (gamma, class weights) because it was
    computed from all rows; C and the rest were fixed in advance.
    """

    def prepare(self) -> None:
        super().prepare()
        self.shared = Rebuilt()
        self.shared.check_claim(self)
        if not self.model.binary:
            raise Rejected("it needs two classes")
        self.slope, self.step = self.number("slope"), self.number("step")
        if self.slope not in _GRID or self.step not in _GRID:
            raise Rejected("slope and step must be powers of two from 2^-30 to 2^10")
        sign, size = self.choice("side", [1, -1]), self.count("offset")
        self.told = self.count("told")
        self.offset = size
        off = Fraction(float(self.model.b[0])) - sign * size * Fraction(self.step)
        if abs(off) > Fraction(self.step) / 2:
            raise Rejected("offset times step is not within half a step of the model's offset")

    def costs_and_targets(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """Rows that are not support vectors have no part in the problem."""
        if np.any(view.weight != 1):
            raise Rejected("row weights are not part of it")
        c, y = super().costs_and_targets(view)
        kept = np.zeros(len(c), dtype=bool)
        kept[view.pick(self.sorted)[1]] = True
        return np.where(kept, c, 0.0), y

    def block(self, view: View) -> None:
        super().block(view)
        reach = above(self.slope * np.sqrt(diagonal_above(self.model, view.X)))
        self.shared.count_outside(view, self.sorted, above(2 * reach + self.step))

    def measure(self) -> float:
        gap = super().measure()
        if not above(np.sqrt(2 * gap)) <= self.slope:
            raise Rejected(f"the gap on the support vectors is {gap:.6g}, too large for slope {self.slope:g}")
        with localcontext(prec=60):
            paid = ln(len(_GRID) ** 2) + ln(Fraction(3, 2) * (self.offset + 1) * (self.offset + 2))
            message = -paid - self.told * _WORD * ln(2) - _SLIP
        return self.shared.limit(self, len(self.sorted), message)

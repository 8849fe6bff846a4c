"""Bounds from margins: the space of a score, the length of its weights and of each row there, ramps.

A score <w, phi(x)> + b is one of the space with a constant column when the claim says `intercept`; without it the
model must have no offset.

For regression, the mean clipped error is bounded by the norm of the weights (regression.rademacher). By PAC-Bayes, the
risk of a classifier is at most twice that of weights drawn around its direction (pac-bayes.linear).

Sample compression: the model is close to one that can be rebuilt from a few of its rows and a short message.

Let g be the rebuilt score, and t(x) a tolerance that rows and message determine too, with |f(x) - g(x)| <= t(x) for
every x, f the score of the model. Where f errs, the margin of g is at most t(x). That is an event about (x, y)
which is fixed before the other rows are drawn, so the Clopper-Pearson limit holds for its count there; a row
whose margin of f is above 2 t(x) is certainly not counted.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.special import erfc

from assay.checker.bounds.error_rate import ClippedRisk, ln_above
from assay.checker.bounds.tails import binomial_at_most, ln, ln_binomial
from assay.checker.numerics import UNDERFLOW, Sums, U, above, gamma
from assay.checker.predictors import margins
from assay.checker.record import Rejected, exact_decimal
from assay.checker.rule import Rule, View

SCALES = tuple(2.0**exponent for exponent in range(-10, 31))


class MarginRule(Rule):
    """What the bounds from margins share: the value is an error rate, and the score lies in a space with a
    norm."""

    def prepare(self) -> None:
        model = self.model
        if model.classes is None:
            raise Rejected("an error rate needs a classifier")
        if not 0 <= self.claim.value <= 1:
            raise Rejected(f"an error rate lies between 0 and 1; the value is {self.claim.value!r}")
        self.check_rows()
        self.delta = exact_decimal(self.claim.delta, "delta")
        self.intercept = self.flag("intercept")
        self.norm = model.weight_norm()
        if not self.intercept and np.any(model.b):
            raise Rejected("the problem has no intercept, the model has one")
        if not self.norm[1] > 0:
            raise Rejected("the weights are zero")

    def margins(self, view: View) -> np.ndarray:
        """Return a lower bound of the margin of each row."""
        margin, error = margins(self.model, *view.scores, view.known_codes)
        return margin - error - 2.0**-50 * np.abs(margin)

    def squares(self, view: View) -> np.ndarray:
        """Return an upper bound of the squared length of each row; the exact one is at most `off` of it
        below."""
        own = self.model.squared_lengths(view.X)
        return above(own + 1.0) if self.intercept else own

    @property
    def off(self) -> float:
        """Relative distance of `squares` from the exact values, at most."""
        return 2 * (self.model.degree or 1) * gamma(8 * (self.model.columns + 32))


class Ramp(MarginRule):
    """margin.kernel and margin.multiclass: mean of ramp(s margin / |w|) + complexity at scale s + 3 sqrt(ln(41 / delta)
    / (2n)).

    margin.kernel (one score): 2 s sqrt(trace) / n; margin.multiclass (a score per class): 4 s sqrt(classes trace) / n.
    The trace is the sum of the squared lengths of the rows, ramp(t) = min(1, max(0, 1 - t)).
    """

    binary = True

    def prepare(self) -> None:
        super().prepare()
        if self.model.binary != self.binary:
            raise Rejected("it needs one score for two classes" if self.binary else "it needs a score per class")
        self.scale = self.number("scale")
        if self.scale not in SCALES:
            raise Rejected("scale must be a power of two from 2^-10 to 2^30")
        self.sums = Sums(2)

    def block(self, view: View) -> None:
        margin = self.margins(view)
        unit = np.where(margin > 0, self.scale / self.norm[1], math.inf) * (1 - 1e-15)
        ramp = np.where(margin > 0, np.maximum(0.0, 1.0 - np.where(margin > 0, unit, 0.0) * margin), 1.0)
        self.sums.add(np.stack([above(ramp) + 1e-15, self.squares(view)], axis=1))

    def measure(self) -> float:
        ramp, trace = self.sums.value + self.sums.error
        n = self.rows
        factor = 2.0 if self.binary else 4.0 * math.sqrt(len(self.model.classes))
        complexity = factor * self.scale * math.sqrt(above(float(trace)) + UNDERFLOW) / n
        deviation = 3.0 * math.sqrt(ln_above(len(SCALES) / self.delta) / (2 * n))
        return above(above(float(ramp) / n) + above(complexity) + above(deviation))


class MulticlassRamp(Ramp):
    binary = False


class L1Ramp(Ramp):
    """margin.l1: as margin.kernel with |w|_1 for |w| and the complexity 2 s max_j |X_j| sqrt(2 ln(2 d)) / n over the d
    columns, a constant one included if the claim says `intercept`."""

    def prepare(self) -> None:
        super().prepare()
        size = math.fsum(np.abs(self.linear.W[0])) + abs(float(self.linear.b[0]))
        self.norm = (size * (1 - 1e-14), above(size))
        self.columns = Sums(self.linear.columns)

    def block(self, view: View) -> None:
        super().block(view)
        self.columns.add(np.square(view.X))

    def measure(self) -> float:
        n, d = self.rows, self.linear.columns + self.intercept
        squares = self.columns.value + self.columns.error
        longest = max(float(above(squares.max())), float(n * self.intercept)) + UNDERFLOW
        complexity = 2.0 * self.scale * math.sqrt(longest * 2.0 * ln_above(Fraction(2 * d))) / n
        ramp, deviation = (
            (self.sums.value + self.sums.error)[0],
            math.sqrt(ln_above(len(SCALES) / self.delta) / (2 * n)),
        )
        return above(above(float(ramp) / n) + above(complexity) + above(3.0 * deviation))


class NormRisk(ClippedRisk):
    """Mean of min(|y - f|, clip) + 2 s sqrt(trace) / n + 3 clip sqrt(ln(41 / delta) / (2 n)).

    f = <w, phi(x)> + b with |(w, b)| <= s, a scale of the grid fixed in advance; the trace is the sum of the squared
    lengths of (phi(x), 1), or of phi(x) if the claim is about functions without an intercept.
    """

    set = "train"

    def prepare(self) -> None:
        super().prepare()
        norm = self.model.weight_norm()
        self.intercept, self.scale = self.flag("intercept"), self.number("scale")
        if not self.intercept and np.any(self.model.b):
            raise Rejected("the functions have no intercept, the model has one")
        if self.scale not in SCALES or not norm[1] <= self.scale:
            raise Rejected("scale must be a power of two from 2^-10 to 2^30, and at least the length of the weights")
        self.sums = Sums(3)

    def block(self, view: View) -> None:
        squares = self.model.squared_lengths(view.X)
        self.sums.add(np.stack([*self.losses(view), above(squares + float(self.intercept))], axis=1))

    def observed(self) -> float:
        return float(self.sums.value[0] - 2 * self.sums.error[0]) / self.rows * (1 - 1e-12)

    def measure(self) -> float:
        _, loss, trace = self.sums.value + self.sums.error
        n = self.rows
        complexity = 2.0 * self.scale * math.sqrt(above(float(trace)) + UNDERFLOW) / n
        deviation = 3.0 * self.clip * math.sqrt(ln_above(len(SCALES) / self.delta) / (2 * n))
        return above(above(float(loss) / n) + above(complexity) + above(deviation))


_SLIP = Decimal("1e-40")


class LinearPacBayes(MarginRule):
    """pac-bayes.linear: prior N(0, I), posterior N(mu w/|w|, I) in the space of the score.

    A row of length r and margin z is wrong with probability Q(mu z / (|w| r)), Q the upper tail of the normal
    distribution. With p their mean, kl(p, value / 2) must be at least (mu^2 / 2 + ln(2 sqrt(n) / delta)) / n.
    """

    def prepare(self) -> None:
        super().prepare()
        if not self.model.binary:
            raise Rejected("it needs two classes")
        self.mu, self.sums = self.number("mu"), Sums(1)

    def block(self, view: View) -> None:
        margin, square = self.margins(view), self.squares(view)
        least = self.norm[0] * np.sqrt(square * max(0.0, 1 - self.off))
        most = above(self.norm[1] * np.sqrt(square))
        room = np.where(margin > 0, most, least * (1 - 1e-14))
        angle = np.divide(self.mu * margin, room, out=np.full_like(margin, -np.inf), where=room > 0)
        wrong = 0.5 * erfc(angle * np.where(angle > 0, 1 - 1e-14, 1 + 1e-14) / math.sqrt(2.0))
        self.sums.add(np.where(square > 0, np.minimum(above(wrong, 64) + 1e-290, 1.0), 1.0)[:, None])

    def measure(self) -> float:
        if self.claim.value == 1:
            return 1.0
        n, half = self.rows, Fraction(self.claim.value) / 2
        p = Fraction(min(1.0, above(float(self.sums.value[0] + self.sums.error[0]) / n)))
        with localcontext(prec=60):
            paid = _decimal(Fraction(self.mu) ** 2 / 2) + ln(4 * n) / 2 - ln(self.delta) + _SLIP
            if half < p or n * divergence(p, half) < paid:
                at = f"mu = {self.mu:.6g} and a mean loss of {float(p):.6g}"
                raise Rejected(f"the bound for {at} lies above {self.claim.value:.10g}")
        return self.claim.value


def divergence(p: Fraction, q: Fraction) -> Decimal:
    """Return p ln(p/q) + (1-p) ln((1-p)/(1-q)), a little below, for 0 <= p <= q < 1, 0 < q."""
    with localcontext(prec=60):
        first = _decimal(p) * ln(p / q) if p else Decimal(0)
        second = _decimal(1 - p) * ln((1 - p) / (1 - q)) if p < 1 else Decimal(0)
        return first + second - _SLIP


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


_PI_SQUARE = Decimal("9.86960440108935861883449099987615113531369940724079062641335")
SLIP = Decimal("1e-18")  # more than all logarithms here are off by
NEAR = 2.0**-30  # relative distance of a perceptron from the exact sum of its updates
GRID = tuple(2.0**exponent for exponent in range(-30, 11))
WORD = 64  # bits of a number that is told


def ln_size(k: int) -> Decimal:
    """Return ln(6 / (pi^2 (k + 1)^2)), weights of 0, 1, 2, ... that add up to one."""
    with localcontext(prec=60):
        return ln(6) - _PI_SQUARE.ln() - 2 * ln(k + 1) - SLIP


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
            allowed = ln(self.delta) + ln_size(kept) - ln_binomial(n, kept) + ln_message - SLIP
        if value <= 0 or binomial_at_most(errors, n - kept, value).high > allowed:
            raise Rejected(
                f"the limit for {errors} errors in {n - kept} rows, after paying for {kept} kept ones, "
                f"lies above {rule.claim.value:.10g}"
            )
        return rule.claim.value


def ln_counts(counts: np.ndarray) -> Decimal:
    """Return ln of the weight of the message that tells (k, hyperplanes) numbers of updates."""
    (k, outputs), message = counts.shape, Decimal(0)
    with localcontext(prec=60):
        for total in (sum(column) for column in counts.T.tolist()):  # sums of int64 could wrap around
            ways = ln_binomial(total - 1, k - 1) if outputs == 1 else ln_binomial(total + k - 1, k - 1)
            message += ln_size(total) - ways - SLIP
    return message

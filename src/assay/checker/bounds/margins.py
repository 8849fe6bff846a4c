"""Bounds from margins: the space of a score, the length of its weights and of each row there, ramps.

A score <w, phi(x)> + b is one of the space with a constant column when the claim says `intercept`; without it the
model must have no offset.

For regression, the mean clipped error is bounded by the norm of the weights (regression.rademacher). By PAC-Bayes, the
risk of a classifier is at most twice that of weights drawn around its direction (pac-bayes.linear).
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.special import erfc

from assay.checker.bounds.error_rate import ClippedRisk, ln_above
from assay.checker.bounds.tails import ln
from assay.checker.numerics import UNDERFLOW, Sums, above, gamma
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

"""PAC-Bayes: twice the risk of weights drawn around the model's direction bounds the risk of the model."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.special import erfc

from assay.checker.bounds.margins import MarginRule
from assay.checker.bounds.tails import ln
from assay.checker.numerics import Sums, above
from assay.checker.record import Rejected
from assay.checker.rule import View

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

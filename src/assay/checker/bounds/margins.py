"""Bounds from margins: the space of a score, the length of its weights and of each row there, ramps.

A score <w, phi(x)> + b is one of the space with a constant column when the claim says `intercept`; without it the
model must have no offset.
"""

import math
from fractions import Fraction

import numpy as np

from assay.checker.bounds.error_rate import ln_above
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

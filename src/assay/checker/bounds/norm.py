"""A bound on the mean clipped error of a regression from its training rows and the length of its weights
(regression.rademacher)."""

import math

import numpy as np

from assay.checker.bounds.error_rate import ClippedRisk, ln_above
from assay.checker.bounds.margins import SCALES
from assay.checker.numerics import UNDERFLOW, Sums, above
from assay.checker.record import Rejected
from assay.checker.rule import View


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

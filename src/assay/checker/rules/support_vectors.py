"""Sample compression of a support vector machine: the optimum for the support vectors alone is near
(compression.support-vectors)."""

from decimal import localcontext
from fractions import Fraction

import numpy as np

from assay.checker.bounds.compression import GRID, SLIP, WORD, Rebuilt
from assay.checker.bounds.tails import ln
from assay.checker.numerics import above
from assay.checker.record import Rejected
from assay.checker.rule import View
from assay.checker.rules.kernel_gap import HingeMachine


class SupportCompression(HingeMachine):
    """compression.support-vectors: the machine that is optimal for the support vectors alone has |w - w*| <= sqrt(2
    gap) on these rows.

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
        if self.slope not in GRID or self.step not in GRID:
            raise Rejected("slope and step must be powers of two from 2^-30 to 2^10")
        sign, size = self.choice("side", [1, -1]), self.count("offset")
        self.told = self.count("told")
        self.offset = size
        off = Fraction(float(self.model.b[0])) - sign * size * Fraction(self.step)
        if abs(off) > Fraction(self.step) / 2:
            raise Rejected("offset times step is not within half a step of the model's offset")

    def costs(self, view: View) -> np.ndarray:
        """Rows that are not support vectors have no part in the problem."""
        if np.any(view.weight != 1):
            raise Rejected("row weights are not part of it")
        return np.where(self.of_model(view, np.ones(len(self.sorted))) > 0, super().costs(view), 0.0)

    def block(self, view: View) -> None:
        super().block(view)
        reach = above(self.slope * np.sqrt(self.model.squared_lengths(view.X)))
        self.shared.count_outside(view, self.sorted, above(2 * reach + self.step))

    def measure(self) -> float:
        gap = super().measure()
        if not above(np.sqrt(2 * gap)) <= self.slope:
            raise Rejected(f"the gap on the support vectors is {gap:.6g}, too large for slope {self.slope:g}")
        with localcontext(prec=60):
            paid = ln(len(GRID) ** 2) + ln(Fraction(3, 2) * (self.offset + 1) * (self.offset + 2))
            message = -paid - self.told * WORD * ln(2) - SLIP
        return self.shared.limit(self, len(self.sorted), message)

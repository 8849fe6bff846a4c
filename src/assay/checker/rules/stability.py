"""Uniform stability: a penalised optimum hardly moves when one row is replaced, so it does not overfit much."""

import math
from typing import Any

import numpy as np

from assay.checker.bounds.error_rate import ln_above
from assay.checker.bounds.margins import MarginRule
from assay.checker.numerics import Sums, above
from assay.checker.record import Rejected
from assay.checker.rule import View
from assay.checker.rules.duality import Penalised

WIDTHS = tuple(2.0**-exponent for exponent in range(21))
BALL_WIDTHS = tuple(2.0**exponent for exponent in range(-30, 11))


class UniformStability(MarginRule):
    """stability.uniform: the optimum of 1/2 |w|^2 + C sum c(y_i) loss(z_i), no intercept, kappa(x, x) = 1 for every x;
    the loss is the logistic or the hinge loss, whose slopes are at most 1.

    With b = 2 C max(c) / rho, how far replacing a row can move the ramp at rho anywhere, the error rate is at most
    mean of ramp(z_i / rho) + b + (2 n b + 1) sqrt(ln(21 / delta) / (2n)) + 2 sqrt(2 gap) / rho, the last because the
    model is sqrt(2 gap) from the optimum. rho is one of 21 powers of two.
    """

    gap: Any

    def build_on(self, name: str) -> float:
        """Find the gap; return the constant column of its problem, and refuse a problem that a row can move far."""
        self.position, self.gap = self.context.rule_for(self.choice("gap", [name]))
        gap, column = self.gap, getattr(self.gap, "column", 0.0)
        if not isinstance(gap, Penalised) or gap.loss_name not in ("logistic", "hinge") or gap.l1 or gap.l2 != 1:
            raise Rejected("the gap it builds on is that of another penalty or a steep loss")
        if gap.intercept and not column:
            raise Rejected("the gap it builds on is that of a problem with a free intercept")
        return column

    def prepare(self) -> None:
        super().prepare()
        if self.intercept or not self.model.binary or getattr(self.model, "kind", "") not in ("rbf", "laplacian"):
            raise Rejected("it needs two classes, no intercept and a kernel with kappa(x, x) = 1")
        self.build_on("kernel-duality-gap")
        self.rho, self.sums, self.length = self.number("rho"), Sums(1), 1.0
        if self.rho not in WIDTHS:
            raise Rejected("rho must be a power of two from 2^-20 to 1")
        self.paid = ln_above(len(WIDTHS) / self.delta)

    def block(self, view: View) -> None:
        if np.any(view.weight != 1):
            raise Rejected("row weights are not part of it")
        ramp = np.clip(1.0 - self.margins(view) / self.rho, 0.0, 1.0)
        self.sums.add((above(ramp) + 1e-15)[:, None])

    def measure(self) -> float:
        value = self.context.certificate.claims[self.position].value
        if self.position in self.context.failures or not self.gap.measure() <= value:
            raise Rejected("the gap it builds on fails")
        n, weights, r = self.rows, self.gap.class_weight, self.length
        change = 2.0 * self.gap.scale * (1.0 if weights is None else float(weights.max())) * r * r / self.rho
        width = math.sqrt(self.paid / (2 * n))
        mean = above(float(self.sums.value[0] + self.sums.error[0]) / n)
        return above(mean + change + (2 * n * change + 1) * width + 2 * r * math.sqrt(2 * value) / self.rho, 32)


class StabilityInBall(UniformStability):
    """stability.ball: the same for linear scores of rows no longer than R: the optimum of 1/2 |u|^2 + C sum c(y_i)
    loss(z_i), u = w without intercept, or u = (w, b / s), whose rows (x, s) are no longer than r = sqrt(R^2 + s^2).
    b = 2 C max(c) r^2 / rho, the last term has the factor r, rho is one of 41 powers of two.
    """

    def prepare(self) -> None:
        MarginRule.prepare(self)
        if not self.model.binary:
            raise Rejected("it needs two classes")
        column = self.build_on("duality-gap")
        if self.intercept != (column > 0):
            raise Rejected("intercept does not fit the problem of the gap")
        self.radius = self.number("radius")
        self.length = above(math.hypot(self.radius, column))
        self.rho, self.sums = self.number("rho"), Sums(1)
        if self.rho not in BALL_WIDTHS:
            raise Rejected("rho must be a power of two from 2^-30 to 2^10")
        self.paid = ln_above(len(BALL_WIDTHS) / self.delta)

    def block(self, view: View) -> None:
        lengths = np.einsum("ij,ij->i", view.X, view.X)
        if np.any(~(above(lengths, view.X.shape[1] + 4) <= self.radius * self.radius)):
            raise Rejected("a training row is longer than the radius")
        super().block(view)

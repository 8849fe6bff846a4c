"""Fisher's criterion: that no direction has a larger ratio of scatter between classes to scatter within (claim
lda.optimality)."""

import math

import numpy as np

from assay.checker.numerics import U, above, gamma, is_psd_after, norm_above
from assay.checker.record import Refused, Rejected, number
from assay.checker.rule import Rule, View
from assay.checker.rules.moments import ClassMoments


class FisherOptimality(Rule):
    """lda.optimality. The first pass gives the class means, the second W = sum_k omega_k S_k about them, shrunk as
    declared.

    Columns are scaled by powers of two, a change of coordinates that leaves every ratio as it is. Two
    classes: with
    u = t w, e = Delta - W u and W - mu I positive semidefinite, max J - J(w) <= |e|^2 / mu. More classes:
    tau W - B is
    positive semidefinite, so max J <= tau, and the distance from tau to J of the listed direction is
    measured.
    """

    def prepare(self) -> None:
        if self.model.classes is None:
            raise Rejected("it needs a classifier")
        self.form, self.kind = (
            self.choice("form", ["two-class", "direction"]),
            self.choice("covariance", ["pooled", "equal", "priors"]),
        )
        self.shrinkage, self.mu = self.number("shrinkage", zero=True), self.number("mu")
        if self.shrinkage > 1:
            raise Rejected("shrinkage is above 1")
        self.classes, self.d = len(self.model.classes), self.model.columns
        exponents = self.witness("exponents", self.d, integer=True)
        if np.any(np.abs(exponents) > 400):
            raise Refused("exponents beyond 400")
        self.scale = np.ldexp(1.0, exponents)
        if self.form == "direction" or self.kind == "priors":
            priors = self.param("priors")
            if not isinstance(priors, (list, tuple)) or len(priors) != self.classes:
                raise Rejected(f"priors must list {self.classes} numbers")
            self.priors = np.array([number(p, "priors") for p in priors])
        weights = self.priors / math.fsum(self.priors) if self.kind == "priors" else None
        self.moments = ClassMoments(self.classes, self.scale[None, :], self.kind, weights)
        if self.form == "two-class":
            if not self.model.binary:
                raise Rejected("it needs a model of two classes with one row of coefficients")
            self.w = self.model.W[0] / self.scale
        else:
            self.w, self.tau = self.witness("direction", self.d) / self.scale, self.number("tau")
        if not np.any(self.w):
            raise Rejected("the direction is zero")

    def block(self, view: View) -> None:
        self.moments.add(view)

    def next_pass(self) -> bool:
        return self.moments.next_pass()

    def measure(self) -> float:
        W, slack = self.moments.shrunk(self.shrinkage)
        self.means, self.mean_error = self.moments.means, self.moments.mean_error
        if not is_psd_after(W, above(self.mu + slack, 2)):
            raise Rejected(f"mu = {self.mu:g} is not shown to be below the least eigenvalue of the within-class matrix")
        return self._two_class(W, slack) if self.form == "two-class" else self._direction(W, slack)

    def _two_class(self, W: np.ndarray, slack: float) -> float:
        apart = (self.means[1] - self.means[0]) * self.scale
        apart_error = self.mean_error.sum(axis=0) + 4 * U * (np.abs(self.means) * self.scale).sum(axis=0)
        curve = float(self.w @ W @ self.w)
        t = float(self.w @ apart) / curve if curve > 0 else 0.0
        u = t * self.w
        roundings = gamma(2 * self.d + 16) * (np.abs(apart) + np.abs(W) @ np.abs(u))
        rest = norm_above(np.abs(apart - W @ u) + apart_error + roundings)
        excess = above(rest + slack * norm_above(u))
        return float(above(excess * excess / self.mu))

    def _direction(self, W: np.ndarray, slack: float) -> float:
        weight = self.priors / math.fsum(self.priors)
        centre = weight @ self.means
        apart = (self.means - centre) * self.scale * np.sqrt(weight)[:, None]
        error = (self.mean_error + self.mean_error.max(axis=0)) + 16 * U * self.classes * np.abs(self.means).max(
            axis=0
        ) * self.scale
        B = apart.T @ apart
        size, off = norm_above(apart), norm_above(error)
        rounding_error = above((2 * size + off) * off + gamma(self.classes + 16) * size * size)
        loose = above(self.tau * slack + rounding_error + gamma(8) * self.tau * float(np.trace(W)))
        if not is_psd_after(self.tau * W - B, loose):
            raise Rejected(f"tau = {self.tau:g} is not shown to bound the Fisher ratio")
        length = float(self.w @ self.w)
        roundings = gamma(2 * self.d + 16) * self.d * length
        top = float(self.w @ B @ self.w) - above(rounding_error * length + roundings * size * size)
        bottom = float(self.w @ W @ self.w) + above(slack * length + roundings * float(np.abs(W).max()))
        return float(above(self.tau - top / bottom * (1 - 8 * U) + 4 * U * self.tau))

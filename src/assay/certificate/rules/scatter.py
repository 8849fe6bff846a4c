"""Fisher's criterion: that no direction has a larger ratio of scatter between classes to scatter within
(claim D19)."""

import math
from typing import Any

import numpy as np

from assay.certificate.rules.numerics import Sums, U, above, gamma, is_psd_after, norm_above
from assay.certificate.rules.record import Refused, Rejected, number
from assay.certificate.rules.rule import Rule, View


class FisherOptimality(Rule):
    """D19. The first pass gives the class means, the second W = sum_k omega_k S_k about them, shrunk as
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
            self.choice("covariance", ["pooled", "equal"]),
        )
        self.shrinkage, self.mu = self.number("shrinkage", zero=True), self.number("mu")
        if self.shrinkage > 1:
            raise Rejected("shrinkage is above 1")
        self.classes, self.d = len(self.model.classes), self.model.columns
        exponents = self.witness("exponents", self.d, integer=True)
        if np.any(np.abs(exponents) > 400):
            raise Refused("exponents beyond 400")
        self.scale = np.ldexp(1.0, exponents)
        if self.form == "two-class":
            if not self.model.binary:
                raise Rejected("it needs a model of two classes with one row of coefficients")
            self.w = self.model.W[0] / self.scale
        else:
            self.w, self.tau = self.witness("direction", self.d) / self.scale, self.number("tau")
            priors = self.param("priors")
            if not isinstance(priors, (list, tuple)) or len(priors) != self.classes:
                raise Rejected(f"priors must list {self.classes} numbers")
            self.priors = np.array([number(p, "priors") for p in priors])
        if not np.any(self.w):
            raise Rejected("the direction is zero")
        self.counts, self.sums = np.zeros(self.classes), [Sums(self.d) for _ in range(self.classes)]
        self.means: Any = None
        self.within, self.longest, self.adds = np.zeros((self.d, self.d)), 0, 0

    def block(self, view: View) -> None:
        if np.any(view.codes < 0):
            raise Rejected("there are labels which the model does not know")
        if self.means is None:
            for code in np.unique(view.codes):
                self.sums[code].add(view.X[view.codes == code])
            self.counts += np.bincount(view.codes, minlength=self.classes)
            return
        A = (view.X - self.means[view.codes]) * self.scale * np.sqrt(self.share[view.codes])[:, None]
        self.within += A.T @ A
        self.longest, self.adds = max(self.longest, len(A)), self.adds + 1

    def next_pass(self) -> bool:
        if self.means is not None:
            return False
        if np.any(self.counts < 1) or self.rows <= self.classes:
            raise Rejected("it needs a row of each class, and more rows than classes")
        self.means = np.array([sums.value for sums in self.sums]) / self.counts[:, None]
        error = np.array([sums.error for sums in self.sums]) / self.counts[:, None] + 2 * U * np.abs(
            self.means
        )
        self.mean_error = above(error * self.scale)
        pooled = np.full(self.classes, 1.0 / self.rows)
        self.share = pooled if self.kind == "pooled" else 1.0 / (self.classes * self.counts)
        return True

    def measure(self) -> float:
        W, slack = self._within()
        # scatter about rounded means exceeds the exact one by n_k |mean error|^2 at most
        if not is_psd_after(W, above(self.mu + slack, 2)):
            raise Rejected(
                f"mu = {self.mu:g} is not shown to be below the least eigenvalue of the within-class matrix"
            )
        return self._two_class(W, slack) if self.form == "two-class" else self._direction(W, slack)

    def _within(self) -> tuple[np.ndarray, float]:
        """Return W and a bound of its error in norm."""
        trace = above(float(np.trace(self.within)), self.d + 8)
        off = self.counts * self.share @ np.sum(self.mean_error**2, axis=1)
        slack = gamma(self.longest + self.adds + 24) * trace + above(float(off), self.d + 16)
        W = (1 - self.shrinkage) * self.within
        spread = (
            float(np.sum(np.diag(self.within) / self.scale**2)) / self.d
        )  # tr(W) / d in the rows' own units
        added = self.shrinkage * spread * self.scale**2
        W[np.diag_indices(self.d)] += added
        loose = self.shrinkage * above(float(np.max(self.scale**2) * np.sum(slack / self.scale**2)) / self.d)
        return W, above(2 * slack + loose + gamma(self.d + 16) * (trace + float(added.max())))

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
        error = (self.mean_error + self.mean_error.max(axis=0)) + 16 * U * self.classes * np.abs(
            self.means
        ).max(axis=0) * self.scale
        B = apart.T @ apart
        size, off = norm_above(apart), norm_above(error)
        wobble = above((2 * size + off) * off + gamma(self.classes + 16) * size * size)
        loose = above(self.tau * slack + wobble + gamma(8) * self.tau * float(np.trace(W)))
        if not is_psd_after(self.tau * W - B, loose):
            raise Rejected(f"tau = {self.tau:g} is not shown to bound the Fisher ratio")
        length = float(self.w @ self.w)
        roundings = gamma(2 * self.d + 16) * self.d * length
        top = float(self.w @ B @ self.w) - above(wobble * length + roundings * size * size)
        bottom = float(self.w @ W @ self.w) + above(slack * length + roundings * float(np.abs(W).max()))
        return float(above(self.tau - top / bottom * (1 - 8 * U) + 4 * U * self.tau))

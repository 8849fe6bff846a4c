"""Sub-optimality of a linear model by weak duality: one engine for every loss and penalty.

For P(w, b) = R(w) + sum_i c_i loss(y_i, f_i), f = X w + b, and every feasible tau, with v = X' (c tau):

    P(w, b) - min P  <=  [R(w) + R*(v) - w.v]  +  sum_i c_i bracket(f_i, tau_i)

A free intercept asks for sum c_i tau_i = 0, a pure L1 penalty for |v_j| <= l1. The dual vector c tau is a
vector of floats (the witness, or the slopes of the loss at the model), mapped in exact arithmetic to a
feasible one; rounding enters only where the right side is evaluated.
"""

import math

import numpy as np

from assay.checker.numerics import SMALLEST, UNDERFLOW, Products, Sums, U, above
from assay.checker.record import Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.problem import Penalised, accurate_scores, check_intercept


class LinearGap(Penalised):
    """duality-gap: the problem of `problem` with f = X w + b. b is free, or 0; or, with a `column` s > 0, penalised as
    the coefficient b / s of a constant column s, which is then one of X, so that no equality binds tau. `dual` says
    where the dual vector is from: "witness" or "slopes"."""

    def prepare(self) -> None:
        self.problem()
        self.strength, self.column = self.l2, self.number("column", zero=True)
        if self.column and not self.intercept:
            raise Rejected("a column belongs to an intercept")
        self.free = self.intercept and not self.column
        W, b = self.linear.W[self.output], self.linear.b[self.output]
        check_intercept(self, b)
        self.w = np.column_stack([W, b / self.column]) if self.column else W  # b / s is off by U of itself
        self.theta: np.ndarray | None = None
        if self.choice("dual", ["slopes", "witness"]) == "witness":
            self.theta = self.witness("theta", self.rows)[:, None]
            if len(W) != 1:
                raise Rejected("a dual vector belongs to one row of coefficients")
        elif self.loss.slope is None:
            raise Rejected(f"the {self.loss_name} loss has kinks: its slopes are no dual vector")
        self.sums, self.losses = Sums(3 * len(self.w)), Sums(1)
        self.products, self.shorten = Products(self.w.shape[1], len(self.w)), 1.0
        self.phases = ["balance"] * self.free + ["scale"] * (self.l1 > 0 and not self.l2) + ["evaluate"]

    def block(self, view: View) -> None:
        c, y = self.costs(view), self.aims(view, len(self.linear.W))
        theta = self._dual(view, c, y)
        if self.phases[0] == "balance":
            parts = [np.maximum(theta, 0), np.maximum(-theta, 0), np.broadcast_to(c, theta.shape)]
            self.sums.add(np.hstack(parts))
            return
        tau, theta, off = self._feasible(c, theta)
        slack = (c * off + 4 * U * np.abs(theta)).sum(axis=0)
        X, largest = view.X, view.largest
        if self.column:
            X, largest = np.column_stack([X, np.full(len(X), self.column)]), np.append(largest, self.column)
        self.products.add(X, theta, largest, slack)
        if self.phases[0] == "evaluate":
            scores, errors = accurate_scores(view, self.output)
            brackets = c * self.loss.bracket(scores, errors, y, tau, off, **self.loss_params)
            self.losses.add(above(brackets.sum(axis=1), len(self.w) + 8)[:, None])

    def next_pass(self) -> bool:
        phase = self.phases.pop(0)
        if phase == "balance":
            self._balance()
        elif phase == "scale":
            largest = float(above(np.max(np.abs(self.products.value) + self.products.error)))
            self.shorten = 1.0 if largest <= self.l1 else self.l1 / largest * (1 - 4 * U)
            self.products = Products(*self.products.shape[::-1])
        return phase != "evaluate"

    def measure(self) -> float:
        total = self.losses.value[0] + self.losses.error[0] + UNDERFLOW
        return float(above(total + self._penalty(self.products.value, self.products.error), len(self.w) + 8))

    def _dual(self, view: View, c: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the dual vector before repair; entries too small for safe products are zero."""
        if self.theta is not None:
            theta = self.theta[view.start : view.start + len(view.X)]
        else:
            assert self.loss.slope is not None
            theta = c * self.loss.slope(view.scores[0][:, self.output], y, **self.loss_params)
        self.check_box(theta, c, y)
        return np.where(np.abs(theta) < SMALLEST, 0.0, theta)

    def _balance(self) -> None:
        """Find the map to sum c tau = 0: subtract the mean where tau is free, else shrink the heavier
        side."""
        positive, negative, weight = np.maximum(self.sums.value.reshape(3, -1), SMALLEST)
        error = self.sums.error.reshape(3, -1)
        if self.loss.box is None:
            exact = self.sums.value.reshape(3, -1)
            self.mean = (exact[0] - exact[1]) / weight
            self.repair_error = above((error[0] + error[1]) / weight + (8 * U + error[2] / weight) * np.abs(self.mean))
        else:
            least = np.minimum(*self.sums.value.reshape(3, -1)[:2])
            self.shrink = np.stack([least / positive, least / negative])
            self.repair_error = above(4 * U + error[0] / positive + error[1] / negative)

    def _feasible(self, c: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the repaired tau and theta, and how far the computed tau can be from the exact one."""
        tau = np.divide(theta, c, out=np.zeros_like(theta), where=c > 0)
        off = 8 * U * np.abs(tau)
        if self.free and self.loss.box is None:
            tau = np.where(c > 0, tau - self.mean, 0.0)
            theta, off = c * tau, off + 2 * U * np.abs(tau) + self.repair_error
        elif self.free:
            factor = np.where(theta > 0, self.shrink[0], self.shrink[1])
            tau, theta = tau * factor, theta * factor
            off = above(off * factor + self.repair_error * np.abs(tau))
        if self.shorten != 1.0:
            tau, theta = tau * self.shorten, theta * self.shorten
            off = above(off * self.shorten) + U * np.abs(tau)
        return tau, theta, off

    def _penalty(self, v: np.ndarray, error: np.ndarray) -> float:
        """Return an upper bound of R(w) + R*(v) - w.v, convex in each v_j, so largest at an end of v_j +-
        error."""
        w, l1, l2 = self.w, self.l1, self.l2
        reach = above(error, 2) + 2 * U * np.abs(v)
        ends = (v + reach, v - reach) if l2 else (np.clip(v + reach, -l1, l1), np.clip(v - reach, -l1, l1))
        values = []
        for end in ends:
            inside = (l1 - np.sign(w) * end) * np.abs(w) + 0.5 * l2 * w * w
            if l2:
                excess = np.maximum(np.abs(end) - l1, 0.0) / l2
                apart = np.abs(w - np.sign(end) * excess) + 4 * U * (np.abs(w) + excess)
                outside = 0.5 * l2 * apart * apart + l1 * (np.abs(w) - np.sign(end) * w)
                inside = np.where(np.abs(end) > l1, outside, inside)
            values.append(inside)
        return float(above(np.sum(above(np.maximum(*values), 16)), v.size + 8))


class Enclosure(Rule):
    """solution.enclosure: a gap G of a problem with a `strength`-strongly convex penalty gives |w - w*| <= sqrt(2 G /
    strength)."""

    def prepare(self) -> None:
        self.position, self.gap = self.context.rule_for(
            self.choice("gap", ["duality-gap", "kernel-duality-gap", "multinomial.gap"])
        )
        self.strength = self.number("strength")
        if self.strength > self.gap.strength:
            raise Rejected(f"strength is {self.strength:g}; the penalty has {self.gap.strength:g}")
        if not getattr(self.gap, "whole", True):
            raise Rejected("the gap is that of one of several scores, and says nothing of the others")
        self.fixed = 0
        if self.has("fixed_rows"):
            self.count("fixed_rows")
            # of a kernel's space, and with a constant column, |x| is not the length
            if self.gap.intercept or not self.linear.binary:
                raise Rejected("fixed_rows needs two classes and a problem without an intercept")

    def block(self, view: View) -> None:
        """Count rows whose score the exact optimum cannot have on the other side: |f| > |x| |w - w*|."""
        if self.has("fixed_rows"):
            scores, errors = view.scores
            reach = above(np.sqrt(np.einsum("ij,ij->i", view.X, view.X)) * self.claim.value, view.X.shape[1] + 8)
            self.fixed += int(np.sum(np.abs(scores[:, 0]) > (reach + errors[0]) * (1 + 8 * U)))

    def measure(self) -> float:
        if self.position in self.context.failures:
            raise Rejected(f"the gap it builds on fails: {self.context.failures[self.position]}")
        if self.fixed < self.params.get("fixed_rows", 0):
            raise Rejected(f"fixed_rows is {self.params['fixed_rows']}, recounted {self.fixed}")
        return above(math.sqrt(2 * self.gap.measure() / self.strength))

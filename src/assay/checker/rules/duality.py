"""Sub-optimality by weak duality: one engine for every loss and penalty.

For P(w, b) = R(w) + sum_i c_i loss(f_i), f = X w + b, and every feasible tau, with v = X' (c tau):

    P(w, b) - min P  <=  [R(w) + R*(v) - w.v]  +  sum_i c_i bracket(f_i, tau_i)

A free intercept asks for sum c_i tau_i = 0, a pure L1 penalty for |v_j| <= l1. The dual vector c tau is a
vector of floats (the witness, or the slopes of the loss at the model), mapped in exact arithmetic to a
feasible one; rounding enters only where the right side is evaluated.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.checker.numerics import SMALLEST, UNDERFLOW, Products, Sums, U, above
from assay.checker.record import Refused, Rejected, number
from assay.checker.rule import Rule, View
from assay.checker.rules.losses import LOSSES


class DualityGap(Rule):
    """The engine. Subclasses say which loss, which penalty (l1, l2) and which weights c_i the problem has."""

    loss_name = "squared"
    loss_params: Mapping[str, float] = {}
    l1, l2, scale = 0.0, 0.0, 1.0
    class_weight: np.ndarray | None = None
    theta: np.ndarray | None = None

    def problem(self) -> None:
        """Read the problem from the claim."""
        raise NotImplementedError

    def prepare(self) -> None:
        self.problem()
        self.loss, self.strength = LOSSES[self.loss_name], self.l2
        if self.loss.labels and not self.model.binary:
            raise Rejected(f"the {self.loss_name} loss needs a model of two classes with one row of coefficients")
        if not self.loss.labels and self.model.classes is not None:
            raise Rejected(f"the {self.loss_name} loss needs a numeric target")
        if self.loss.slope is None and self.theta is None:
            raise Rejected("the witness 'theta' is missing")
        check_intercept(self)
        self.outputs, d = self.linear.W.shape
        self.sums, self.losses = Sums(3 * self.outputs), Sums(1)
        self.products, self.shorten = Products(d, self.outputs), 1.0
        self.phases = ["balance"] * self.intercept + ["scale"] * (self.l1 > 0 and not self.l2) + ["evaluate"]

    def block(self, view: View) -> None:
        c, y = cost(view, self.scale, self.class_weight)[:, None], signed_targets(view, self.loss.labels)
        theta = self._dual(view, c, y)
        if self.phases[0] == "balance":
            parts = [np.maximum(theta, 0), np.maximum(-theta, 0), np.broadcast_to(c, theta.shape)]
            self.sums.add(np.hstack(parts))
            return
        tau, theta, off = self._feasible(c, theta)
        slack = (c * off + 4 * U * np.abs(theta)).sum(axis=0)
        self.products.add(view.X, theta, view.largest, slack)
        if self.phases[0] == "evaluate":
            scores, errors = accurate_scores(view)
            brackets = c * self.loss.bracket(scores, errors, y, tau, off, **self.loss_params)
            self.losses.add(above(brackets.sum(axis=1), self.outputs + 8)[:, None])

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
        return float(above(total + self._penalty(self.products.value, self.products.error), self.outputs + 8))

    def _dual(self, view: View, c: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the dual vector before repair; entries too small for safe products are zero."""
        if self.theta is None and self.loss.slope is not None:
            theta = c * self.loss.slope(view.scores[0], y, **self.loss_params)
        elif self.theta is not None:
            theta = self.theta[view.start : view.start + len(view.X)]
            if self.loss.box is not None:
                low, high = (np.where(c > 0, side * c, 0.0) for side in self.loss.box(y, **self.loss_params))
                if np.any((theta < low) | (theta > high)):
                    raise Rejected("the dual vector leaves its box")
            if np.any((c == 0) & (theta != 0)):
                raise Rejected("the dual vector is not zero on a row of weight zero")
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
        if self.intercept and self.loss.box is None:
            tau = np.where(c > 0, tau - self.mean, 0.0)
            theta, off = c * tau, off + 2 * U * np.abs(tau) + self.repair_error
        elif self.intercept:
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
        w, l1, l2 = self.linear.W, self.l1, self.l2
        ends = (
            (above(v + error, 1), above(v - error, 1))
            if l2
            else (np.clip(v + error, -l1, l1), np.clip(v - error, -l1, l1))
        )
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


class NamedGap(DualityGap):
    """D04: penalty + scale * sum s_i c(y_i) loss, with the loss and the penalty named in the claim."""

    def problem(self) -> None:
        self.loss_name, self.intercept = self.choice("loss", list(LOSSES)), self.flag("intercept")
        self.scale = self.number("scale")
        loss, given, penalty = LOSSES[self.loss_name], self.param("loss_params"), self.param("penalty")
        if not isinstance(given, Mapping) or set(given) != set(loss.params):
            raise Rejected(f"loss_params must name {', '.join(loss.params) or 'nothing'}")
        self.loss_params = {name: number(given[name], name, zero=name == "epsilon") for name in loss.params}
        if self.loss_params.get("level", 0.5) >= 1:
            raise Rejected("level must lie between 0 and 1")
        if not isinstance(penalty, Mapping) or not set(penalty) <= {"L1", "L2"}:
            raise Rejected("penalty must name L1 and L2")
        self.l1, self.l2 = (number(penalty.get(name, 0.0), name, zero=True) for name in ("L1", "L2"))
        if not self.l1 and not self.l2:
            raise Rejected("without a penalty the dual needs an exact equality; this claim cannot be made")
        self.class_weight = class_weights(self.param("class_weight") if self.has("class_weight") else None, 2)
        if self.class_weight is not None and not loss.labels:
            raise Rejected("class_weight belongs to a loss of labels")
        if "theta" in self.claim.witness:
            self.theta = self.witness("theta", self.rows)[:, None]
            if len(self.linear.W) != 1:
                raise Rejected("a dual vector belongs to one row of coefficients")


class RidgeGap(DualityGap):
    """D06: 1/2 sum s_i r_i^2 + alpha/2 |w|^2, targets added."""

    def problem(self) -> None:
        self.l2, self.intercept = self.number("alpha"), self.flag("intercept")


class LassoGap(DualityGap):
    """D07: 1/2 sum s_i r_i^2 + l1 |w|_1 + l2/2 |w|^2."""

    def problem(self) -> None:
        self.l1, self.l2 = self.number("l1", zero=True), self.number("l2", zero=True)
        self.intercept = self.flag("intercept")
        if not self.l1 and not self.l2:
            raise Rejected("without a penalty the dual needs an exact equality; this claim cannot be made")


class LogisticGap(DualityGap):
    """D08: 1/2 |w|^2 + sum C_i ln(1 + exp(-z_i)), C_i = C s_i c(y_i)."""

    loss_name, l2 = "logistic", 1.0

    def problem(self) -> None:
        self.scale, self.intercept = self.number("C"), self.flag("intercept")
        self.class_weight = class_weights(self.param("class_weight"), 2)


class Enclosure(Rule):
    """D15: a gap G of a problem with a `strength`-strongly convex penalty gives |w - w*| <= sqrt(2 G /
    strength)."""

    def prepare(self) -> None:
        gaps = ["D04/1", "D06/1", "D06/2", "D07/1", "D08/1", "D08/2", "D09/1", "D10/1", "D10/2", "D11/1", "D11/2"]
        self.position, self.gap = self.context.rule_for(self.choice("gap", gaps))
        self.strength = self.number("strength")
        if self.strength > self.gap.strength:
            raise Rejected(f"strength is {self.strength:g}; the penalty has {self.gap.strength:g}")
        if hasattr(self.gap, "output") and self.model.classes is not None and not self.model.binary:
            raise Rejected("the gap is that of one of several scores, and says nothing of the others")
        self.fixed = 0
        if self.has("fixed_rows"):
            self.count("fixed_rows")
            if self.gap.intercept or not self.linear.binary:  # of a kernel's space |x| is not the length
                raise Rejected("fixed_rows needs two classes and a problem without a free intercept")

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


def cost(view: View, scale: float, class_weight: np.ndarray | None) -> np.ndarray:
    """Return c_i = scale s_i c(y_i), to a relative error of 2 U."""
    c = scale * view.weight
    return c if class_weight is None else c * class_weight[view.codes]


def signed_targets(view: View, labels: bool) -> np.ndarray:
    """Return the targets as columns; labels become -1 and +1."""
    if not labels:
        return view.targets
    return np.where(view.known_codes == 1, 1.0, -1.0)[:, None]


def accurate_scores(view: View) -> tuple[np.ndarray, np.ndarray]:
    scores, errors = view.scores
    if errors.max() > 0.1:
        raise Refused("the scores are too large to be computed accurately; rescale the columns")
    return scores, errors


def check_intercept(rule: Rule) -> None:
    if not rule.intercept and np.any(rule.linear.b):
        raise Rejected("the problem has no intercept, the model has one")


def class_weights(value: Any, classes: int) -> np.ndarray | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) != classes:
        raise Rejected(f"class_weight must list {classes} numbers")
    return np.array([number(weight, "class_weight", zero=True) for weight in value])

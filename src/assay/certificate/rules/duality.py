"""Sub-optimality by weak duality: one engine for every loss and penalty, and the multinomial case beside it.

For P(w, b) = R(w) + sum_i c_i loss(f_i), f = X w + b, and every feasible tau, with v = X' (c tau):

    P(w, b) - min P  <=  [R(w) + R*(v) - w.v]  +  sum_i c_i bracket(f_i, tau_i)

A free intercept asks for sum c_i tau_i = 0. The dual vector c tau is a vector of floats (the witness, or the slopes of the
loss at the model), mapped in exact arithmetic to a feasible one; rounding enters only where the right side is evaluated.
"""

import math
from typing import Any

import numpy as np

from assay.certificate.rules.losses import LOSSES, TINY, far_mass
from assay.certificate.rules.numerics import SMALLEST, UNDERFLOW, Products, Sums, U, above, excess_above
from assay.certificate.rules.rule import Refused, Rejected, Rule, View, number


class DualityGap(Rule):
    """The engine. Subclasses say which loss, which penalty (l1, l2) and which weights c_i the problem has."""

    loss_name = "squared"
    loss_params: dict[str, float] = {}
    l1, l2, scale = 0.0, 0.0, 1.0
    class_weight: np.ndarray | None = None
    theta: np.ndarray | None = None
    intercept = True

    def problem(self) -> None:
        """Read the problem from the claim."""
        raise NotImplementedError

    def prepare(self) -> None:
        self.problem()
        self.loss = LOSSES[self.loss_name]
        if self.loss.labels and not self.model.binary:
            raise Rejected(
                f"the {self.loss_name} loss needs a model of two classes with one row of coefficients"
            )
        if not self.loss.labels and self.model.classes is not None:
            raise Rejected(f"the {self.loss_name} loss needs a numeric target")
        self.outputs, d = self.model.W.shape
        if not self.intercept and np.any(self.model.b):
            raise Rejected("the problem has no intercept, the model has one")
        self.sums, self.products = Sums(3 * self.outputs), Products(d, self.outputs)
        self.losses, self.balancing = Sums(1), self.intercept

    @property
    def strength(self) -> float:
        """Strong convexity of the penalty."""
        return self.l2

    def weights(self, view: View) -> np.ndarray:
        """Return c_i as a column, relative error at most 4 U."""
        c = self.scale * view.weight
        if self.class_weight is not None:
            c = c * self.class_weight[view.codes]
        return c[:, None]

    def targets(self, view: View) -> np.ndarray:
        if not self.loss.labels:
            return view.targets
        if np.any(view.codes < 0):
            raise Rejected("there are labels which the model does not know")
        return np.where(view.codes == 1, 1.0, -1.0)[:, None]

    def dual(self, view: View, c: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the stored dual vector, or c times the slopes; entries too small for safe products are zero."""
        if self.theta is None:
            theta = c * self.loss.slope(view.scores[0], y, self.loss_params)
        else:
            theta = self.theta[view.start : view.start + len(view.X)]
        if self.loss.box is not None:
            low, high = self.loss.box(y, self.loss_params)
            if self.theta is not None and np.any((theta < low * c) | (theta > high * c)):
                raise Rejected("the dual vector leaves its box")
        return np.where(np.abs(theta) < SMALLEST, 0.0, theta)

    def block(self, view: View) -> None:
        c, y = self.weights(view), self.targets(view)
        theta = self.dual(view, c, y)
        if self.balancing:
            self.sums.add(
                np.hstack([np.maximum(theta, 0), np.maximum(-theta, 0), np.broadcast_to(c, theta.shape)])
            )
        else:
            self._evaluate(view, c, y, theta)

    def next_pass(self) -> bool:
        if not self.balancing:
            return False
        self.balancing = False
        positive, negative, weight = self.sums.value.reshape(3, -1)
        error = self.sums.error.reshape(3, -1)
        if self.loss.box is None:  # subtract the mean
            weight = np.maximum(weight, SMALLEST)
            self.mean = (positive - negative) / weight
            self.repair_error = above(
                (error[0] + error[1]) / weight + (8 * U + error[2] / weight) * np.abs(self.mean)
            )
        else:  # shrink the heavier side
            parts = np.maximum(self.sums.value.reshape(3, -1)[:2], SMALLEST)
            self.shrink = np.minimum(positive, negative) / parts
            self.repair_error = above(4 * U + (error[:2] / parts).sum(axis=0))
        return True

    def _evaluate(self, view: View, c: np.ndarray, y: np.ndarray, theta: np.ndarray) -> None:
        tau = np.divide(theta, c, out=np.zeros_like(theta), where=c > 0)
        off = 8 * U * np.abs(tau)  # how far the computed tau can be from the exact one
        if self.intercept and self.loss.box is None:
            tau = tau - self.mean
            off = off + 2 * U * np.abs(tau) + self.repair_error
            theta = c * tau
        elif self.intercept:
            factor = np.where(theta > 0, self.shrink[0], self.shrink[1])
            tau, theta = tau * factor, theta * factor
            off = above(off * factor + self.repair_error * np.abs(tau))
        slack = (c * off + 4 * U * np.abs(theta)).sum(axis=0)
        self.products.add(view.X, theta, view.largest, slack)
        scores, errors = view.scores
        if errors.max() > 0.1:
            raise Refused("the scores are too large to be computed accurately; rescale the columns")
        brackets = c * self.loss.bracket(scores, errors, y, tau, off, self.loss_params)
        self.losses.add(above(brackets.sum(axis=1), self.outputs + 8)[:, None])

    def measure(self) -> float:
        total = self.losses.value[0] + self.losses.error[0] + UNDERFLOW
        return float(above(total + self._penalty(self.products.value, self.products.error), self.outputs + 8))

    def _penalty(self, v: np.ndarray, error: np.ndarray) -> float:
        """Return an upper bound of R(w) + R*(v) - w.v summed over entries."""
        if self.l1 or not self.l2:
            raise Rejected("this penalty is not known")
        distance = np.abs(v - self.l2 * self.model.W)
        distance = above(distance + error + 4 * U * (np.abs(v) + self.l2 * np.abs(self.model.W)))
        return float(above(np.sum(distance * distance / (2 * self.l2)), distance.size + 8))


class RidgeGap(DualityGap):
    """D06: 1/2 sum s_i r_i^2 + alpha/2 |w|^2, targets added."""

    def problem(self) -> None:
        self.l2, self.intercept = self.number("alpha"), self.flag("intercept")


class LogisticGap(DualityGap):
    """D08: 1/2 |w|^2 + sum C_i ln(1 + exp(-z_i)), C_i = C s_i c(y_i)."""

    loss_name, l2 = "logistic", 1.0

    def problem(self) -> None:
        self.scale, self.intercept = self.number("C"), self.flag("intercept")
        self.class_weight = class_weights(self._param("class_weight"), 2)


class MultinomialGap(Rule):
    """D09: 1/2 |W|^2 + sum C_i (ln sum_k exp(s_ik) - s_iy).

    Any rows p_i of the simplex with sum C_i p_i = sum C_i e_(y_i) (for a free intercept) give the bound
    sum C_i KL(p_i || softmax(s_i)) + 1/2 |W - V|^2, V = sum C_i (e_(y_i) - p_i) x_i'. Here p = softmax(s) as computed,
    mixed with a constant row until the column sums are right.
    """

    strength = 1.0

    def prepare(self) -> None:
        self.outputs, d = self.model.W.shape
        if self.model.classes is None or self.outputs != len(self.model.classes):
            raise Rejected("the multinomial problem needs one row of coefficients per class")
        self.C, self.intercept = self.number("C"), self.flag("intercept")
        if not self.intercept and np.any(self.model.b):
            raise Rejected("the problem has no intercept, the model has one")
        self.class_weight = class_weights(self._param("class_weight"), self.outputs)
        self.sums, self.products = Sums(2 * self.outputs), Products(d, self.outputs)
        self.losses, self.balancing = Sums(1), self.intercept
        self.keep, self.mix, self.mix_error = 1.0, np.zeros(self.outputs), np.zeros(self.outputs)

    def block(self, view: View) -> None:
        if np.any(view.codes < 0):
            raise Rejected("there are labels which the model does not know")
        c = self.C * view.weight
        if self.class_weight is not None:
            c = c * self.class_weight[view.codes]
        scores, errors = view.scores
        depth = scores.max(axis=1, keepdims=True) - scores
        p = np.exp(-depth)
        p /= p.sum(axis=1, keepdims=True)
        own = np.zeros_like(p)
        own[np.arange(len(p)), view.codes] = 1.0
        if self.balancing:
            self.sums.add(np.hstack([c[:, None] * p, c[:, None] * own]))
        else:
            self._evaluate(view, c[:, None], own, p, depth, float(errors.max()))

    def next_pass(self) -> bool:
        """Find the mixture: exact numbers are c, p / sum(p) and their sums; the computed ones are off by a few U."""
        if not self.balancing:
            return False
        self.balancing = False
        have, want = self.sums.value.reshape(2, -1)
        off = above(self.sums.error.reshape(2, -1) + (self.outputs + 16) * U * np.stack([have, want]))
        total = max(float(want.sum()), SMALLEST)
        self.keep = max(
            0.0, min(1.0, float(np.min((want - off[1]) / np.maximum(have + off[0], SMALLEST))) * (1 - 8 * U))
        )
        self.mix = np.maximum(want - self.keep * have, 0.0) / total
        self.mix_error = above((off.sum(axis=0) + (self.outputs + 16) * U * (want + have)) / total)
        return True

    def _evaluate(
        self, view: View, c: np.ndarray, own: np.ndarray, p: np.ndarray, depth: np.ndarray, error: float
    ) -> None:
        if error > 0.1:
            raise Refused("the scores are too large to be computed accurately; rescale the columns")
        wobble = (self.outputs + 40 + depth) * U  # relative error of p as softmax of the computed scores
        mixed = self.keep * p + self.mix
        slip = above((wobble + 8 * U) * (mixed + p) + self.mix_error)
        gap, off = mixed - p, above(slip + p * np.expm1(2 * error))
        reference = np.maximum(p, TINY) * np.exp(-2 * error) * (1 - wobble)
        brackets = excess_above(reference, above(np.abs(gap) + off), gap > off)
        far = depth > 300
        if far.any():
            brackets = np.where(
                far, far_mass(mixed + slip, depth + 2 * error + math.log(self.outputs)), brackets
            )
        self.losses.add(above((c * brackets).sum(axis=1), self.outputs + 8)[:, None])
        theta = c * (own - mixed)
        slack = (c * (slip + 8 * U * (own + mixed)) + SMALLEST).sum(axis=0)
        self.products.add(view.X, np.where(np.abs(theta) < SMALLEST, 0.0, theta), view.largest, slack)

    def measure(self) -> float:
        v, error = self.products.value, self.products.error
        distance = above(np.abs(v - self.model.W) + error + 4 * U * (np.abs(v) + np.abs(self.model.W)))
        penalty = float(above(np.sum(distance * distance) / 2, distance.size + 8))
        return float(above(self.losses.value[0] + self.losses.error[0] + penalty + UNDERFLOW))


def class_weights(value: Any, classes: int) -> np.ndarray | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) != classes:
        raise Rejected(f"class_weight must list {classes} numbers")
    return np.array([number(weight, "class_weight", zero=True) for weight in value])

"""Sub-optimality of linear support vector machines, whose intercept is the coefficient of a constant column.

P(w, b) = 1/2 |u|^2 + sum_i c_i loss(f_i), u = (w, b / s), f = X w + b. For the witness theta, with
v = sum theta_i (x_i, s), P - min P <= 1/2 |u - v|^2 + sum_i c_i bracket(f_i, theta_i / c_i): no equality binds theta,
so nothing is repaired. With |u|_1 in place of 1/2 |u|^2 the first term is |u|_1 - <u, v>, and theta must keep
|v_j| <= 1. Without an intercept (s = 0) the model must have none.
"""

from typing import Any

import numpy as np

from assay.checker.numerics import SMALLEST, UNDERFLOW, Products, Sums, U, above
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.duality import class_weights, cost
from assay.checker.rules.losses import LOSSES


class LinearMachineGap(Rule):
    """What D10/2 and D11/2 share."""

    losses: tuple[str, ...] = ()

    def prepare(self) -> None:
        self.loss = LOSSES[self.choice("loss", self.losses)]
        self.loss_params: dict[str, Any] = {}
        self.scale, self.column = self.number("C"), self.number("intercept_scaling", zero=True)
        self.intercept = self.column > 0  # an enclosure must not read |x| as the length of (x, s)
        self.l1 = self.choice("penalty", ["l1", "l2"]) == "l1"
        self.strength, self.output = 0.0 if self.l1 else 1.0, 0
        self.problem()
        self.theta = self.witness("theta", self.rows)
        w, b = self.linear.W[self.output], float(self.linear.b[self.output])
        if b and not self.column:
            raise Rejected("the problem has no intercept, the model has one")
        self.u = np.append(w, b / self.column) if self.column else w
        self.products, self.brackets = Products(len(self.u), 1), Sums(1)

    def problem(self) -> None:
        """Read what belongs to the task."""

    def costs_and_targets(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def block(self, view: View) -> None:
        c, y = self.costs_and_targets(view)
        theta = self.theta[view.start : view.start + len(view.X)]
        low, high = (-np.inf, np.inf) if self.loss.box is None else self.loss.box(y, **self.loss_params)
        low, high = (np.where(c > 0, side, 0.0) * np.where(c > 0, c, 1.0) for side in (low, high))
        if np.any(~((low <= theta) & (theta <= high))):
            raise Rejected("the dual vector leaves its box")
        theta = np.where(np.abs(theta) < SMALLEST, 0.0, theta)
        scores, errors = view.scores
        f, ef = scores[:, self.output], errors[self.output]
        if ef > 0.1:
            raise Refused("the scores are too large to be computed accurately; rescale the columns")
        tau = np.divide(theta, c, out=np.zeros_like(theta), where=c > 0)
        off = 8 * U * np.abs(tau)
        brackets = c * self.loss.bracket(f, ef, y, tau, off, **self.loss_params)
        self.brackets.add(above(brackets, 8)[:, None])
        X, largest = view.X, view.largest
        if self.column:
            X = np.column_stack([X, np.full(len(X), self.column)])
            largest = np.append(largest, self.column)
        self.products.add(X, theta[:, None], largest, float((c * off + 4 * U * np.abs(theta)).sum()))

    def measure(self) -> float:
        total = self._penalty() + float(self.brackets.value[0] + self.brackets.error[0])
        return float(above(total + UNDERFLOW, 8))

    def _penalty(self) -> float:
        """Return an upper bound of R(u) + R*(v) - <u, v>; b / s is off by U of itself."""
        v, error = self.products.value[0], self.products.error[0]
        if self.l1:
            if np.any(above(np.abs(v) + error, 2) > 1):
                raise Rejected("the dual vector does not keep |v_j| <= 1")
            rest = np.maximum(1 - np.sign(self.u) * v, 0.0) + error + 2 * U
            return float(above(np.sum(above(np.abs(self.u) * rest, 8)), len(v) + 8))
        apart = np.abs(self.u - v)
        apart = apart + error + 4 * U * (np.abs(self.u) + apart)
        return float(0.5 * above(np.sum(above(apart, 8) ** 2), len(v) + 8))


class LinearHingeGap(LinearMachineGap):
    """D10/2: hinge or squared hinge, C_i = C s_i c(y_i). Of more than two classes, `class` k is told from the rest; its
    rows have the factor c(k), the rest 1."""

    losses = ("hinge", "squared-hinge")

    def problem(self) -> None:
        classes = self.model.classes
        if classes is None:
            raise Rejected("the hinge loss needs a classifier")
        self.class_weight = class_weights(self.param("class_weight"), len(classes))
        self.positive = 1
        if not self.model.binary:
            self.positive = self.output = self.count("class")
            if self.output >= len(classes):
                raise Rejected(f"class must be a number below {len(classes)}")
            if self.class_weight is not None:
                self.class_weight = np.where(np.arange(len(classes)) == self.positive, self.class_weight, 1.0)

    def costs_and_targets(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        if np.any(view.codes < 0):
            raise Rejected("there are labels which the model does not know")
        return cost(view, self.scale, self.class_weight), np.where(view.codes == self.positive, 1.0, -1.0)


class LinearInsensitiveGap(LinearMachineGap):
    """D11/2: eps-insensitive loss or its square, C_i = C s_i."""

    losses = ("epsilon-insensitive", "squared-epsilon-insensitive")

    def problem(self) -> None:
        if self.model.classes is not None or len(self.linear.W) != 1:
            raise Rejected("the eps-insensitive loss needs a regression with one target")
        self.loss_params = {"epsilon": self.number("epsilon", zero=True)}

    def costs_and_targets(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        if view.targets.shape[1] != 1:
            raise Rejected("one target is needed")
        return cost(view, self.scale, None), view.targets[:, 0]

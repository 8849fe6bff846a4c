"""Duality gaps of penalised linear models, one engine for every loss and penalty, and leave-one-out errors.

The problem is the one that the claim names:

    l1 |w|_1 + l2/2 |w|^2 + sum_i c_i loss(y_i, f_i),    c_i = C s_i c(y_i)

s_i is the weight of the row and c(y_i) that of its class. Losses of labels have y = -1, +1 and one score f: that of two
classes (+1: the second), of one class (+1) against the rest, or of a pair of classes, on whose rows alone it is. Losses
of numbers have a score for each target, and the problems of the targets are added up.

By weak duality, for P(w, b) = R(w) + sum_i c_i loss(y_i, f_i), f = X w + b, and every feasible tau, with v = X' (c
tau):

    P(w, b) - min P  <=  [R(w) + R*(v) - w.v]  +  sum_i c_i bracket(f_i, tau_i)

A free intercept asks for sum c_i tau_i = 0, a pure L1 penalty for |v_j| <= l1. The dual vector c tau is a
vector of floats (the witness, or the slopes of the loss at the model), mapped in exact arithmetic to a
feasible one; rounding enters only where the right side is evaluated. Leave-one-out predictions, of the exact optimum
without a row, follow from one fit.
"""

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from assay.checker.numerics import SMALLEST, UNDERFLOW, Products, Sums, U, above, gamma, norm_above
from assay.checker.record import Refused, Rejected, number
from assay.checker.rule import Rule, View
from assay.checker.rules.kernels import KernelMachine
from assay.checker.rules.losses import LOSSES


class Penalised(Rule):
    """A rule about such a problem. Enclosures ask for `strength`, `intercept` and whether it has all scores."""

    def problem(self) -> None:
        """Read the problem from the claim."""
        self.choose_loss(self.choice("loss", list(LOSSES)), self.param("loss_params"))
        self.l1, self.l2 = self._penalties()
        self.scale, self.intercept = self.number("C"), self.flag("intercept")
        self.choose_score()

    def choose_loss(self, name: str, given: Any) -> None:
        self.loss_name, self.loss = name, LOSSES[name]
        if not isinstance(given, Mapping) or set(given) != set(self.loss.params):
            raise Rejected(f"loss_params must name {', '.join(self.loss.params) or 'nothing'}")
        self.loss_params = {param: number(given[param], param, zero=param == "epsilon") for param in self.loss.params}
        if self.loss_params.get("level", 0.5) >= 1:
            raise Rejected("level must lie between 0 and 1")

    def _penalties(self) -> tuple[float, float]:
        given = self.param("penalty")
        if not isinstance(given, Mapping) or not set(given) <= {"L1", "L2"}:
            raise Rejected("penalty must name L1 and L2")
        l1, l2 = (number(given.get(name, 0.0), name, zero=True) for name in ("L1", "L2"))
        if not l1 and not l2:
            raise Rejected("without a penalty the dual needs an exact equality; this claim cannot be made")
        return l1, l2

    def choose_score(self) -> None:
        """Find which score of the model it is about, which classes that tells apart, and their weights."""
        classes, self.whole = self.model.classes, True
        self.output = slice(None)
        self.sides: tuple[int, ...] = (1, 0)
        if self.loss.labels != (classes is not None):
            raise Rejected(f"the {self.loss_name} loss needs {'classes' if self.loss.labels else 'a numeric target'}")
        self.class_weight: np.ndarray | None = None
        if classes is None:
            return
        self.class_weight, chosen = class_weights(self.param("class_weight"), len(classes)), 0
        if not self.model.binary:
            votes = not self.model.compared
            options: list[tuple[int, ...]] = [(k,) for k in range(len(classes))]
            options = list(combinations(range(len(classes)), 2)) if votes else options
            name, self.whole = "pair" if votes else "class", False
            chosen = self.count(name)
            if chosen >= len(options):
                raise Rejected(f"{name} must be a number below {len(options)}")
            self.sides = options[chosen]
        self.output = slice(chosen, chosen + 1)

    def costs(self, view: View) -> np.ndarray:
        """Return c_i as a column."""
        c = cost(view, self.scale, self.class_weight)
        if not self.whole and len(self.sides) == 2:
            c = np.where(np.isin(view.known_codes, self.sides), c, 0.0)
        return c[:, None]

    def aims(self, view: View, scores: int) -> np.ndarray:
        """Return y, a column for each score."""
        if self.loss.labels:
            return np.where(view.known_codes == self.sides[0], 1.0, -1.0)[:, None]
        if view.targets is None or view.targets.shape[1] != scores:
            raise Rejected("the rows have not as many targets as the model")
        return view.targets

    def check_box(self, theta: np.ndarray, c: np.ndarray, y: np.ndarray) -> None:
        """Refuse a dual vector c tau that leaves its range; every range must hold 0, so that shrinking stays inside."""
        low, high = (-np.inf, np.inf) if self.loss.box is None else self.loss.box(y, **self.loss_params)
        if np.any(np.asarray(low) > 0) or np.any(np.asarray(high) < 0):
            raise Rejected(f"the {self.loss_name} loss cannot have such targets")
        low, high = (np.where(c > 0, side, 0.0) * np.where(c > 0, c, 1.0) for side in (low, high))
        if np.any(~((low <= theta) & (theta <= high))):
            raise Rejected("the dual vector leaves its box")


def cost(view: View, scale: float, class_weight: np.ndarray | None) -> np.ndarray:
    """Return c_i = scale s_i c(y_i), to a relative error of 2 U."""
    c = scale * view.weight
    return c if class_weight is None else c * class_weight[view.known_codes]


def accurate_scores(view: View, output: slice | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and their errors where these are small; `output` picks some of the scores."""
    chosen = slice(None) if output is None else output
    scores, errors = view.scores[0][:, chosen], view.scores[1][chosen]
    if errors.max() > 0.1:
        raise Refused("the scores are too large to be computed accurately; rescale the columns")
    return scores, errors


def check_intercept(rule: Rule, b: np.ndarray) -> None:
    if not rule.intercept and np.any(b):
        raise Rejected("the problem has no intercept, the model has one")


def class_weights(value: Any, classes: int) -> np.ndarray | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) != classes:
        raise Rejected(f"class_weight must list {classes} numbers")
    return np.array([number(weight, "class_weight", zero=True) for weight in value])


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


MOST_ROWS = 1000  # the check of loo.squared-error takes the third power of the rows


class PressError(Rule):
    """loo.squared-error: kernel ridge without weights. With G = K + alpha I and c = G^-1 y the row left out is missed
    by exactly c_i / (G^-1)_ii (Allen 1974).

    The stored c is off by at most |y - G c| / alpha, and (G^-1)_ii >= 2 v_i - v' G v for every v; v is a column of an
    approximate inverse.
    """

    def prepare(self) -> None:
        model = self.model
        if (
            not isinstance(model, KernelMachine)
            or model.classes is not None
            or not model.psd
            or model.kind == "precomputed"
            or np.any(model.b)
        ):
            raise Rejected("it needs a kernel regression without offset and a positive semidefinite kernel")
        if not np.array_equal(model.support, np.arange(self.rows)):
            raise Rejected("support_ must name every training row in order")
        if self.rows > MOST_ROWS:
            raise Refused(f"it is checked for at most {MOST_ROWS} rows")
        self.alpha, self.y = self.number("alpha"), np.empty(self.rows)

    def block(self, view: View) -> None:
        here = slice(view.start, view.start + len(view.X))
        if not np.array_equal(view.X, self.model.vectors[here]) or view.targets.shape[1] != 1:
            raise Rejected("the stored rows are not the training rows, or there are several targets")
        if np.any(view.weight != 1):
            raise Rejected("row weights are not part of it")
        self.y[here] = view.targets[:, 0]

    def measure(self) -> float:
        n, c = self.rows, self.model.coef[0]
        K, slack, _ = self.model.values(self.model.vectors)
        off = float(slack.max())
        G = (K + K.T) / 2 + self.alpha * np.eye(n)
        size = np.abs(G)
        residual = np.abs(self.y - G @ c) + gamma(2 * n + 16) * (np.abs(self.y) + size @ np.abs(c))
        moved = above(norm_above(residual + off * np.abs(c).sum() * (1 + 1e-12)) / self.alpha)
        V = np.linalg.inv(G)
        V = np.where(np.abs(V) < 1e-140, 0.0, V)
        square = np.einsum("ij,ij->j", V, G @ V)
        slip = gamma(4 * n + 32) * np.einsum("ij,ij->j", np.abs(V), size @ np.abs(V)) + off * np.square(
            np.abs(V).sum(axis=0)
        )
        diagonal = np.diag(V)
        inverse = 2 * diagonal - square - above(slip) - 8 * U * (np.abs(diagonal) + np.abs(square))
        if not inverse.min() > 0:
            raise Refused("alpha is too small for the leave-one-out errors to be computed accurately")
        missed = above((np.abs(c) + moved) / inverse)
        return above(math.fsum(np.square(missed)) / n, 16)


class LeaveOneOutErrors(Rule):
    """loo.errors: 1/2 |w|^2 + sum C_i ln(1 + exp(-z_i)) without intercept; at most so many leave-one-out errors.

    With the gap G of duality-gap for the model, its dual vector from the slopes, |w - v| <= sqrt(2 G). Without row i
    the same w is optimal up to 1/2 (|w - v| + alpha_i |x_i|)^2 + (what of G is not 1/2 |w - v|^2),
    alpha_i = C_i / (1 + exp(z_i)); in all at most 1/2 (sqrt(2 G) + alpha_i |x_i|)^2. So the exact prediction for the
    row left out keeps the sign of z_i > 0 if z_i > |x_i| (sqrt(2 G) + alpha_i |x_i|).
    """

    def prepare(self) -> None:
        self.position, gap = self.context.rule_for(self.choice("gap", ["duality-gap"]))
        if not isinstance(gap, LinearGap) or gap.loss_name != "logistic" or not gap.whole:
            raise Rejected("the gap it builds on is not that of a logistic regression of two classes")
        if gap.intercept or gap.l1 or gap.l2 != 1 or gap.theta is not None:
            raise Rejected("it needs the penalty 1/2 |w|^2, no intercept, and the slopes as dual vector")
        self.gap = gap
        self.reach = above(math.sqrt(2 * self.context.certificate.claims[self.position].value))
        self.lost = 0

    def block(self, view: View) -> None:
        scores, errors = view.scores
        y = np.where(view.known_codes == 1, 1.0, -1.0)
        z = y * scores[:, 0] - errors[0]
        length = above(np.sqrt(np.einsum("ij,ij->i", view.X, view.X)), view.X.shape[1] + 4)
        alpha = above(cost(view, self.gap.scale, self.gap.class_weight) / (1 + np.exp(np.minimum(z, 700.0))), 64)
        self.lost += int(np.sum(~(z > above(length * (self.reach + alpha * length)) * (1 + 8 * U))))

    def measure(self) -> float:
        gap = self.context.certificate.claims[self.position].value
        if self.position in self.context.failures or not self.gap.measure() <= gap:
            raise Rejected("the gap it builds on fails")
        return float(self.lost)

"""More facts about kernel machines: the gap of the one-class problem, and how far a dual vector is from optimal."""

import math
from typing import Any

import numpy as np

from assay.checker.numerics import UNDERFLOW, Sums, U, above
from assay.checker.record import Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.kernel_gap import SHORTEN, HingeMachine
from assay.checker.rules.kernels import KernelMachine

_UNBALANCED = 1e-9  # share of sum |beta| by which sum beta may differ from zero


class OneClassGap(Rule):
    """one-class.gap: 1/2 |w|^2 - nu N rho + sum s_i max(0, rho - f_i), f = sum beta_j kappa(v_j, .), rho = minus the
    offset.

    N is the sum of the row weights s_i. Dual vectors alpha have 0 <= alpha_i <= s_i and the sum nu N, and the gap is
    1/2 |w - v|^2 + sum [s_i max(0, rho - f_i) - alpha_i (rho - f_i)]. alpha is the model's beta: scaled down if its
    sum is too large, else moved towards s_i on the support vectors until it has the sum.
    """

    strength, intercept = 1.0, True

    def prepare(self) -> None:
        model: Any = self.model
        if not isinstance(model, KernelMachine) or model.classes is not None or len(model.coef) != 1:
            raise Rejected("it needs a kernel machine with one score and no classes")
        if not model.psd or model.kind == "precomputed":
            raise Rejected(f"the {model.kind} kernel is not known to be positive semidefinite")
        self.nu = self.number("nu")
        if self.nu > 1:
            raise Rejected("nu is a share of the rows, at most 1")
        beta = np.where(np.abs(model.coef[0]) < 1e-140, 0.0, model.coef[0])
        self.order = np.argsort(model.support, kind="stable")
        self.sorted, self.beta = model.support[self.order], beta[self.order]
        if np.any(self.sorted[1:] == self.sorted[:-1]) or np.any(self.sorted >= self.rows) or np.any(beta < 0):
            raise Rejected("support_ names a row twice or one that there is not, or a coefficient is negative")
        self.room, self.weights = np.empty(len(beta)), Sums(1)
        self.alpha: np.ndarray | None = None
        self.seen, self.losses = 0, Sums(1)

    def block(self, view: View) -> None:
        where, inside = view.pick(self.sorted)
        if self.alpha is None:
            if not np.array_equal(view.X[inside], self.model.vectors[self.order[where]]):
                raise Rejected("a support vector is not the row that support_ names")
            self.room[where] = view.weight[inside]
            self.weights.add(view.weight[:, None])
            self.seen += len(inside)
            return
        alpha = np.zeros(len(view.X))
        alpha[inside] = self.alpha[where]
        scores, errors = self.model.pair_scores(view.X)
        short = -scores[:, 0]  # rho - f
        slack = errors[:, 0] + 4 * U * np.abs(short)
        bracket = np.where(short > 0, (view.weight - alpha) * short, alpha * -short)
        lost = view.weight * slack + 64 * U * (view.weight + alpha) * (np.abs(short) + slack)
        self.losses.add(above(np.maximum(bracket, 0.0) + lost, 8)[:, None])

    def next_pass(self) -> bool:
        if self.alpha is not None:
            return False
        if self.seen != len(self.sorted):
            raise Rejected("not every support vector is a training row")
        if np.any(self.beta > self.room):
            raise Rejected("the dual vector leaves its box")
        wanted, total = self.nu * float(self.weights.value[0]), math.fsum(self.beta)
        if total >= wanted:
            self.alpha = self.beta * (wanted / total if total > 0 else 1.0)
        else:
            free = math.fsum(self.room - self.beta)
            if not wanted - total <= free:
                raise Rejected("the dual vector cannot reach its sum inside the box")
            self.alpha = self.beta + (self.room - self.beta) * ((wanted - total) / max(free, 1e-300))
        own = np.sqrt(self.model.squared_lengths(self.model.vectors[self.order]))
        apart = np.abs(self.alpha - self.beta) + 64 * U * (self.room + self.beta)
        self.apart = above(math.fsum(apart * own), len(own) + 16)
        return True

    def measure(self) -> float:
        total = float(self.losses.value[0] + self.losses.error[0]) + UNDERFLOW
        return above(total + 0.5 * self.apart**2, 16)


class KktResidual(HingeMachine):
    """kkt.residual: e_i = y_i - f_i; alpha_i y_i can rise where e_i is at most the value above all e_j that can fall.

    The conditions are of first order, so they say something for kernels that are not positive semidefinite too.
    """

    needs_psd = False

    def prepare(self) -> None:
        super().prepare()
        self.rise, self.fall = -math.inf, math.inf

    def feasible(self) -> np.ndarray:
        if not abs(math.fsum(self.beta)) <= _UNBALANCED * math.fsum(np.abs(self.beta)):
            raise Rejected("the dual vector does not sum to zero")
        return self.beta

    def block(self, view: View) -> None:
        """An alpha from SHORTEN of C on is at its bound: C may be rounded in another order."""
        self.meet(view)
        c, y, beta = self.costs(view), self.aims(view, 1), self.of_model(view, self.theta)
        if np.any(beta * y < 0) or np.any(np.abs(beta) * SHORTEN > c):
            raise Rejected("the dual vector leaves its box")
        f, slack = (part[:, self.output] for part in self.model.pair_scores(view.X))
        e, slack = y - f, slack + 4 * U * (1 + np.abs(f))
        below, above_zero = np.abs(beta) < SHORTEN * c, beta != 0
        can_rise = (c > 0) & np.where(y > 0, below, above_zero)
        can_fall = (c > 0) & np.where(y > 0, above_zero, below)
        self.rise = max(self.rise, float((e + slack)[can_rise].max(initial=-math.inf)))
        self.fall = min(self.fall, float((e - slack)[can_fall].min(initial=math.inf)))

    def measure(self) -> float:
        self.check_seen()
        if math.isinf(self.rise) or math.isinf(self.fall):
            return 0.0
        return above(max(0.0, self.rise - self.fall), 8) + 8 * U * (abs(self.rise) + abs(self.fall))

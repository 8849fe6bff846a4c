"""Sub-optimality of a kernel machine by weak duality: the gap of `duality` in the kernel's space.

P(w, b) = l2/2 |w|^2 + sum_i c_i loss(y_i, f_i), f = <w, phi(x)> + b, w = sum_j beta_j phi(v_j), the v_j being training
rows. For every theta = c tau inside its box, with sum theta_i = 0 if b is free, and v = sum theta_i phi(x_i),

    P(w, b) - min P  <=  |l2 w - v|^2 / (2 l2)  +  sum_i c_i bracket(f_i, tau_i)

and |l2 w - v| is at most the sum of |l2 beta_i - theta_i| sqrt(kappa(x_i, x_i)). theta is what the model itself is,
l2 beta, shortened a little and balanced if b is free; or, with b = 0, the slopes of the loss at the model.
"""

import math

import numpy as np

from assay.checker.numerics import UNDERFLOW, Sums, U, above
from assay.checker.record import Rejected
from assay.checker.rule import View
from assay.checker.rules import kernel_gap
from assay.checker.rules.kernels import KernelMachine
from assay.checker.rules.problem import Penalised, check_intercept
from assay.claims.definitions import Definition
from assay.claims.sentences import gap_sentence

SHORTEN = 1 - 1e-12  # pays for bounds C_i that were rounded in another order


class KernelGap(Penalised):
    """kernel-duality-gap: the problem above, `dual` "model" or "slopes"."""

    model: KernelMachine
    needs_psd = True

    def prepare(self) -> None:
        if not isinstance(self.model, KernelMachine):
            raise Rejected("it needs a kernel machine")
        if self.needs_psd and not self.model.psd:
            raise Rejected(
                f"the {self.model.kind} kernel is not known to be positive semidefinite, so there is no bound"
            )
        self.problem()
        self.strength, coef = self.l2, self.model.coef[self.output]
        if len(coef) != 1 or self.l1 or not self.l2:
            raise Rejected("the problem of a kernel machine has one score and the penalty L2")
        check_intercept(self, self.model.b[self.output])
        self.order = np.argsort(self.model.support, kind="stable")
        self.sorted = self.model.support[self.order]
        if np.any(self.sorted[1:] == self.sorted[:-1]) or np.any(self.sorted >= self.rows):
            raise Rejected("support_ names a row twice or one that there is not")
        self.beta = np.where(np.abs(coef[0]) < 1e-140, 0.0, coef[0])[self.order]
        self.theta = self.feasible()
        self.seen, self.losses, self.apart = 0, Sums(1), Sums(1)

    def problem(self) -> None:
        super().problem()
        self.slopes = self.choice("dual", ["model", "slopes"]) == "slopes"
        if self.slopes and (self.intercept or self.loss.slope is None):
            raise Rejected("slopes need a smooth loss, and no intercept that binds their sum")

    def feasible(self) -> np.ndarray:
        """Return l2 beta, shortened and, if b is free, of sum zero (up to rounding that is paid for later)."""
        beta, factor = self.beta, np.ones(len(self.beta))
        if self.intercept:
            positive, negative = math.fsum(beta[beta > 0]), -math.fsum(beta[beta < 0])
            least = min(positive, negative)
            factor = np.where(beta > 0, least / max(positive, 1e-300), least / max(negative, 1e-300))
        return self.l2 * beta * (factor * SHORTEN)

    def of_model(self, view: View, parts: np.ndarray) -> np.ndarray:
        """Spread numbers of the stored vectors, in the order of `sorted`, over the rows of this block."""
        where, inside = view.pick(self.sorted)
        spread = np.zeros(len(view.X))
        spread[inside] = parts[where]
        return spread[:, None]

    def meet(self, view: View) -> None:
        """Check that the stored vectors are the rows that support_ names; given kernel values have no vectors."""
        where, inside = view.pick(self.sorted)
        given = self.model.kind == "precomputed"
        if not given and not np.array_equal(view.X[inside], self.model.vectors[self.order[where]]):
            raise Rejected("a support vector is not the row that support_ names")
        self.seen += len(inside)

    def block(self, view: View) -> None:
        self.meet(view)
        c, y = self.costs(view), self.aims(view, 1)
        f, ef = (part[:, self.output] for part in self.model.pair_scores(view.X))
        if self.slopes and self.loss.slope is not None:
            theta = c * self.loss.slope(f, y, **self.loss_params)
            theta = np.where(np.abs(theta) < 1e-140, 0.0, theta)
        else:
            theta = self.of_model(view, self.theta)
        self.check_box(theta, c, y)
        tau = np.divide(theta, c, out=np.zeros_like(theta), where=c > 0)
        brackets = c * self.loss.bracket(f, ef, y, tau, 64 * U * np.abs(tau), **self.loss_params)
        self.losses.add(above(brackets, 8))
        own, beta = np.sqrt(self.model.squared_lengths(view.X))[:, None], self.l2 * self.of_model(view, self.beta)
        self.apart.add(above((np.abs(beta - theta) + 16 * U * (np.abs(beta) + np.abs(theta))) * own, 16))

    def measure(self) -> float:
        self.check_seen()
        total = float(self.losses.value[0] + self.losses.error[0]) + UNDERFLOW
        apart = float(self.apart.value[0] + self.apart.error[0])
        return above(total + apart * apart / (2 * self.l2), 16)

    def check_seen(self) -> None:
        if self.seen != len(self.sorted):
            raise Rejected("not every support vector is a training row")


class HingeMachine(KernelGap):
    """What other claims about a support vector machine share: 1/2 |w|^2 + sum c_i max(0, 1 - y_i f_i), b free."""

    def problem(self) -> None:
        self.choose_loss("hinge", {})
        self.l1, self.l2, self.scale, self.intercept, self.slopes = 0.0, 1.0, self.number("C"), True, False
        self.choose_score()


GAP = Definition(
    "kernel-duality-gap",
    kernel_gap.KernelGap,
    gap_sentence(),
    by_loss={
        "squared": "kernel-ridge.gap",
        "logistic": "kernel-logistic.gap",
        "hinge": "svm.gap",
        "epsilon-insensitive": "svr.gap",
    },
)

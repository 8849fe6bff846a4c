"""Sub-optimality of a kernel machine by weak duality: the gap of `duality` in the kernel's space.

P(w, b) = l2/2 |w|^2 + sum_i c_i loss(y_i, f_i), f = <w, phi(x)> + b, w = sum_j beta_j phi(v_j), the v_j being training
rows. For every theta = c tau inside its box, with sum theta_i = 0 if b is free, and v = sum theta_i phi(x_i),

    P(w, b) - min P  <=  |l2 w - v|^2 / (2 l2)  +  sum_i c_i bracket(f_i, tau_i)

and |l2 w - v| is at most the sum of |l2 beta_i - theta_i| sqrt(kappa(x_i, x_i)). theta is what the model itself is,
l2 beta, shortened a little and balanced if b is free; or, with b = 0, the slopes of the loss at the model.

Further rules: the gap of the one-class problem, KKT violations, and sample compression by support vectors.
"""

import math
from decimal import localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.bounds.margins import GRID, SLIP, WORD, Rebuilt
from assay.checker.bounds.tails import ln
from assay.checker.numerics import UNDERFLOW, Sums, U, above
from assay.checker.record import Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.duality import Penalised, check_intercept
from assay.checker.rules.kernels import KernelMachine
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
    KernelGap,
    gap_sentence(),
    by_loss={
        "squared": "kernel-ridge.gap",
        "logistic": "kernel-logistic.gap",
        "hinge": "svm.gap",
        "epsilon-insensitive": "svr.gap",
    },
)


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


class SupportCompression(HingeMachine):
    """compression.support-vectors: the machine that is optimal for the support vectors alone has |w - w*| <= sqrt(2
    gap) on these rows.

    g(x) = <w*, phi(x)> + offset step; t(x) = slope sqrt(kappa(x, x)) + step / 2, with sqrt(2 gap) <= slope and
    |b - offset step| <= step / 2. Message: slope and step from 2^-30 .. 2^10 (1/41 each), offset m with weight
    2 / (3 (|m| + 1)(|m| + 2)), and 64 bits for each number that is `told` (gamma, class weights) because it was
    computed from all rows; C and the rest were fixed in advance.
    """

    def prepare(self) -> None:
        super().prepare()
        self.shared = Rebuilt()
        self.shared.check_claim(self)
        if not self.model.binary:
            raise Rejected("it needs two classes")
        self.slope, self.step = self.number("slope"), self.number("step")
        if self.slope not in GRID or self.step not in GRID:
            raise Rejected("slope and step must be powers of two from 2^-30 to 2^10")
        sign, size = self.choice("side", [1, -1]), self.count("offset")
        self.told = self.count("told")
        self.offset = size
        off = Fraction(float(self.model.b[0])) - sign * size * Fraction(self.step)
        if abs(off) > Fraction(self.step) / 2:
            raise Rejected("offset times step is not within half a step of the model's offset")

    def costs(self, view: View) -> np.ndarray:
        """Rows that are not support vectors have no part in the problem."""
        if np.any(view.weight != 1):
            raise Rejected("row weights are not part of it")
        return np.where(self.of_model(view, np.ones(len(self.sorted))) > 0, super().costs(view), 0.0)

    def block(self, view: View) -> None:
        super().block(view)
        reach = above(self.slope * np.sqrt(self.model.squared_lengths(view.X)))
        self.shared.count_outside(view, self.sorted, above(2 * reach + self.step))

    def measure(self) -> float:
        gap = super().measure()
        if not above(np.sqrt(2 * gap)) <= self.slope:
            raise Rejected(f"the gap on the support vectors is {gap:.6g}, too large for slope {self.slope:g}")
        with localcontext(prec=60):
            paid = ln(len(GRID) ** 2) + ln(Fraction(3, 2) * (self.offset + 1) * (self.offset + 2))
            message = -paid - self.told * WORD * ln(2) - SLIP
        return self.shared.limit(self, len(self.sorted), message)

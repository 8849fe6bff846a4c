"""Leave-one-out: what the exact algorithm would predict for a row that it was not given, from one fit."""

import math

import numpy as np

from assay.checker.numerics import U, above, gamma, norm_above
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.duality import LinearGap
from assay.checker.rules.kernels import KernelMachine
from assay.checker.rules.problem import cost

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

"""Kernel expansions f_k(x) = sum_j c_kj kappa(v_j, x) + b_k: the class of the largest, or a map of the rows.

Kernel values and their errors are those of `kernels`; what differs from a support vector machine is that the
outputs are compared with each other instead of voting in pairs, or stand for coordinates.
"""

import math

import numpy as np

from assay.checker.numerics import UNDERFLOW, Sums, U, above, gamma
from assay.checker.record import Rejected, number
from assay.checker.rule import Rule, View
from assay.checker.rules.kernels import KernelMachine, read_kernel_machine


class Expansion(KernelMachine):
    """One output per class (one alone for two classes: positive means the second), or any number of coordinates."""

    compared = True

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores, errors = self.pair_scores(X)
        return scores, errors.max(axis=0)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self.pair_scores(X)[1]

    def with_coef(self, coef: np.ndarray) -> "Expansion":
        """Return other sums over the same vectors, without offsets."""
        kernel = (self.kind, self.gamma, self.power, self.coef0, self.n_columns)
        return Expansion(self.vectors, coef, np.zeros(len(coef)), self.support, *kernel, None)


def read_expansion(
    vectors: np.ndarray,
    coef: np.ndarray,
    b: np.ndarray,
    support: np.ndarray,
    kernel: np.ndarray,
    classes: tuple[str, ...] | None,
) -> Expansion:
    """Return the expansion of stored arrays, after checking that they fit together."""
    if classes is not None and len(coef) != (1 if len(classes) == 2 else len(classes)):
        raise Rejected(f"pair_coef_ has {len(coef)} rows for {len(classes)} classes")
    if coef.ndim != 2 or b.shape != (len(coef),) or not len(coef):
        raise Rejected(f"pair_coef_ and intercept_ have shapes {coef.shape}, {b.shape}")
    one = read_kernel_machine(vectors, coef[:1], b[:1], support, kernel, None)
    stored = (one.kind, one.gamma, one.power, one.coef0, one.n_columns)
    return Expansion(one.vectors, coef, b, one.support, *stored, classes)


class OneAgainstRest(Rule):
    """What rules about one output of an expansion share: which class it tells from the others."""

    model: Expansion

    def choose_output(self) -> None:
        if not isinstance(self.model, Expansion) or self.model.classes is None:
            raise Rejected("it needs a classifier that is a kernel expansion")
        self.output, self.code = (0, 1) if self.model.binary else (self.count("class"),) * 2
        if self.output >= len(self.model.coef):
            raise Rejected(f"class must be a number below {len(self.model.coef)}")

    def sides(self, view: View) -> np.ndarray:
        return np.where(view.known_codes == self.code, 1.0, -1.0)


class KernelMistakes(OneAgainstRest):
    """kernel-perceptron.mistakes: w = sum_j beta_j (phi(x_j), 1) is the sum of `updates` corrections, and separates
    with a margin.

    Each |beta_j| is an integer, the number of mistakes on row j, with the sign of the row's class; the constant 1
    is there with an intercept, b = sum beta_j. No run of the perceptron on these rows makes more than
    (R / margin)^2 updates, R^2 = max kappa(x, x) + 1 (Novikoff 1962).
    """

    def prepare(self) -> None:
        self.choose_output()
        if not self.model.psd:
            raise Rejected(f"the {self.model.kind} kernel is not known to be positive semidefinite")
        self.augment, self.margin = self.flag("intercept"), self.number("margin")
        self.beta = self.model.coef[self.output]
        total = math.fsum(self.beta) if self.augment else 0.0
        if np.any(self.beta != np.rint(self.beta)) or self.model.b[self.output] != total:
            raise Rejected("coefficients must be numbers of updates, and the offset their sum (0 without intercept)")
        if self.count("updates") != math.fsum(np.abs(self.beta)):
            raise Rejected(f"updates is {self.params['updates']}, recounted {math.fsum(np.abs(self.beta)):g}")
        self.order = np.argsort(self.model.support, kind="stable")
        self.sorted = self.model.support[self.order]
        if np.any(self.sorted[1:] == self.sorted[:-1]):
            raise Rejected("support_ names a row twice")
        self.seen, self.least, self.farthest, self.square = 0, math.inf, 0.0, Sums(2)

    def block(self, view: View) -> None:
        side = self.sides(view)
        scores, errors = self.model.pair_scores(view.X)
        f, ef = scores[:, self.output], errors[:, self.output]
        self.least = min(self.least, float((side * f - above(ef)).min()))
        self.farthest = max(self.farthest, float(above(self.model.squared_lengths(view.X).max() + self.augment)))
        where, at = view.pick(self.sorted)
        beta, chosen = self.beta[self.order[where]], self.order[where]
        if not np.array_equal(view.X[at], self.model.vectors[chosen]) or np.any(beta * side[at] < 0):
            raise Rejected("a stored vector is not the row that support_ names, or its coefficient has the wrong sign")
        self.square.add(np.stack([beta * f[at], np.abs(beta) * (ef[at] + 4 * U * np.abs(f[at]))], axis=1))
        self.seen += len(chosen)

    def measure(self) -> float:
        if self.seen != len(self.sorted):
            raise Rejected("not every stored vector is a training row")
        square = float(self.square.value.sum() + self.square.error.sum())  # |w|^2 = sum beta_j f(x_j)
        if not square > 0 or not self.least / math.sqrt(above(square)) * (1 - 16 * U) >= self.margin:
            raise Rejected(f"the margin {self.margin:.10g} is not reached")
        return above(self.farthest / self.margin**2)


class KernelFisher(Rule):
    """kernel-lda.optimality: the sum of Fisher ratios of the model's directions is within `value` of the largest one.

    With A = N + mu I, N = K H K, H = I - sum_c 1_c 1_c' / m_c, and d_k = K t_k the class means' differences (two
    classes: one, k_1 - k_0, of weight p_0 p_1; more: k_c - sum p k, of weight p_c), the largest sum is
    sum_k weight_k d_k' A^-1 d_k. N is positive semidefinite, so that for every u_k, here coef_k / n,

        d_k' A^-1 d_k <= 2 u_k' d_k - u_k' A u_k + |d_k - A u_k|^2 / mu.
    """

    model: Expansion

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, Expansion) or model.classes is None or model.kind == "precomputed":
            raise Rejected("it needs a classifier that is a kernel expansion over rows")
        if not np.array_equal(model.support, np.arange(self.rows)):
            raise Rejected("support_ must name every training row in order")
        self.mu, self.priors = self.number("mu"), self._priors(len(model.classes))
        self.u, self.codes = model.coef / self.rows, np.empty(self.rows, dtype=np.int64)
        self.sums, self.reached, self.error = model.with_coef(model.coef), np.empty_like(self.u), np.empty_like(self.u)
        self.most = math.sqrt(float(model.squared_lengths(model.vectors).max()))
        self.weight = self.priors if not model.binary else np.array([self.priors[0] * self.priors[1]])
        self.residuals, self.first = Sums(1), True

    def _priors(self, classes: int) -> np.ndarray:
        given = self.param("priors")
        if not isinstance(given, (list, tuple)) or len(given) != classes:
            raise Rejected(f"priors must list {classes} numbers")
        priors = np.array([number(one, "priors") for one in given])
        if abs(priors.sum() - 1) > 1e-9:
            raise Rejected("priors must sum to one")
        return priors

    def block(self, view: View) -> None:
        here = slice(view.start, view.start + len(view.X))
        if not np.array_equal(view.X, self.model.vectors[here]):
            raise Rejected("the stored rows are not the training rows")
        scores, errors = (part.T for part in self.sums.pair_scores(view.X))
        if self.first:
            self.reached[:, here], self.error[:, here] = scores / self.rows, above(errors / self.rows)
            self.codes[here] = view.known_codes
            return
        slack = errors + above(self._largest(view.X) * self.slip)[:, None]
        u = self.mu * self.u[:, here]
        residual = np.abs(scores - u) + slack + 4 * U * (np.abs(scores) + np.abs(u))
        self.residuals.add(above((self.weight @ residual**2), len(u) + 8)[:, None])

    def next_pass(self) -> bool:
        if not self.first:
            return False
        self.first = False
        counts = np.bincount(self.codes, minlength=len(self.priors))
        if not counts.min() > 0:
            raise Rejected("a class has no rows")
        share = (self.codes == np.arange(len(counts))[:, None]) / counts[:, None]
        apart, size = share - self.priors @ share, share + self.priors @ share
        if self.model.binary:
            apart, size = apart[1:] - apart[:1], size[1:] + size[:1]
        combined = apart - (self.reached - (self.reached @ share.T)[:, self.codes])
        # Errors of `reached` count twice, since the mean over a class adds up to as much over its rows.
        off = 2 * self.error + 8 * U * np.abs(self.reached) + (2 * len(counts) + 16) * U * size
        mean = gamma(self.rows + 16) * np.abs(self.reached).max(axis=1, keepdims=True)
        self.slip = above((off + mean).sum(axis=1), self.rows + 16)
        self.sums = self.model.with_coef(combined)
        return True

    def _largest(self, X: np.ndarray) -> float:
        """Return an upper bound of |kappa(x, v)| over these rows and all stored vectors."""
        if self.model.kind in ("rbf", "laplacian", "sigmoid"):
            return 1.0
        return above(math.sqrt(float(self.model.squared_lengths(X).max())) * self.most)

    def measure(self) -> float:
        return above(float(self.residuals.value[0] + self.residuals.error[0]) / self.mu, 16) + UNDERFLOW

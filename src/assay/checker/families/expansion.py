"""Kernel expansions f_k(x) = sum_j c_kj kappa(v_j, x) + b_k: the class of the largest, or coordinates of a map.

Arrays are those of the kernel family; a classifier has an output per class, one alone for two classes.

Kernel expansions f_k(x) = sum_j c_kj kappa(v_j, x) + b_k: the class of the largest, or a map of the rows.

Kernel values and their errors are those of `kernels`; what differs from a support vector machine is that the
outputs are compared with each other instead of voting in pairs, or are coordinates.

Kernel PCA: no other directions have more variance, proved by a positive semidefinite matrix. For orthonormal V (n, k),
a symmetric G and Theta = V' G V >= t I,

    (t + e) I + V (Theta - t I) V' - G >= 0   implies   sum of the k largest eigenvalues of G <= trace Theta + k e,

because that sum is monotone in the order of positive semidefinite matrices (Ky Fan). Sample compression of a kernel
perceptron is by its stored rows and numbers of updates (compression.kernel-perceptron).
"""

import math
from decimal import localcontext
from typing import Any

import numpy as np

from assay.checker.bounds.margins import SLIP, WORD, Rebuilt, ln_counts
from assay.checker.bounds.tails import ln
from assay.checker.family import Family, Variant
from assay.checker.numerics import UNDERFLOW, Sums, U, above, gamma, is_psd_after
from assay.checker.record import Refused, Rejected, number
from assay.checker.rule import Rule, View
from assay.checker.rules import duality, kernel_machines
from assay.checker.rules.kernel_machines import GAP
from assay.checker.rules.kernels import ARRAYS, KernelMachine, read_kernel_machine
from assay.checker.rules.linear_models import ENCLOSURE, MISTAKES, class_weights
from assay.checker.rules.stability import UniformStability
from assay.claims.definitions import PRIOR, Definition
from assay.claims.sentences import Sentence, error_rate


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
        priors = np.array([number(item, "priors") for item in given])
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


MOST_ROWS = 2_000
"""Rows up to which the matrix is factorised."""


class KernelComponents(Rule):
    """kernel-pca.optimality: the directions of the model hold the largest variance of the rows in the kernel's space,
    up to `value`.

    G = H K H, H = I - 1 1'/n, over all training rows; V are the model's coefficients, each row of length one; V
    need be orthonormal only to eta = |V'V - I|, which is paid for. Variances are eigenvalues divided by n.
    """

    model: Expansion

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, Expansion) or model.classes is not None or model.kind == "precomputed":
            raise Rejected("it needs a map that is a kernel expansion over rows")
        if not np.array_equal(model.support, np.arange(self.rows)):
            raise Rejected("support_ must name every training row in order")
        if self.rows > MOST_ROWS:
            raise Refused(f"the matrix is factorised up to {MOST_ROWS} rows; there are {self.rows}")
        lengths = np.sqrt(np.einsum("ij,ij->i", model.coef, model.coef))
        if self.count("components", 1) != np.count_nonzero(lengths):
            raise Rejected(f"components is {self.params['components']}, recounted {np.count_nonzero(lengths)}")
        self.V = (model.coef[lengths > 0] / lengths[lengths > 0, None]).T
        self.t, self.e = self.number("t", zero=True), self.number("e")
        self.K, self.square = np.empty((self.rows, self.rows)), 0.0

    def block(self, view: View) -> None:
        here = slice(view.start, view.start + len(view.X))
        if not np.array_equal(view.X, self.model.vectors[here]):
            raise Rejected("the stored rows are not the training rows")
        self.K[here], slack, _ = self.model.values(view.X)
        self.square += float(self.rows * (slack @ slack))

    def measure(self) -> float:
        n, k = self.rows, self.V.shape[1]
        G, error = self._centred()
        V, size = self.V, above(float(np.linalg.norm(self.V)) ** 2, n * k + 8)
        eta = above(float(np.linalg.norm(V.T @ V - np.eye(k))) + gamma(n + 4) * size, 8)
        GV = G @ V
        theta = V.T @ GV
        theta = (theta + theta.T) / 2
        product = above(gamma(2 * n + 16) * size * float(np.linalg.norm(G)), n + 16)
        inner = theta - self.t * np.eye(k)
        if eta >= 0.5 or not is_psd_after(inner, 4 * U * above(self.t + float(np.abs(theta).max()))):
            raise Rejected("the directions are not orthonormal, or hold less than t")
        outer = (V @ inner) @ V.T
        matrix = (outer + outer.T) / 2 - G
        matrix[np.diag_indices(n)] += self.t + self.e
        slip = gamma(4 * k + 16) * size * float(np.linalg.norm(inner)) + 8 * U * (
            float(np.linalg.norm(outer)) + float(np.linalg.norm(G)) + math.sqrt(n) * (self.t + self.e)
        )
        if not is_psd_after(matrix, above(slip + error, n + 16)):
            raise Rejected("other directions may hold more: the matrix of the proof is not positive semidefinite")
        captured = (float(np.trace(theta)) - product - above(error * size)) / (1 + eta)
        most = k * (self.t + self.e) + (1 + eta) * (
            float(np.trace(inner)) + k * 4 * U * (self.t + float(np.trace(theta)))
        )
        return above(max(most - captured, 0.0) + 8 * k * U * most, k + 16) / n * (1 + 4 * U)

    def _centred(self) -> tuple[np.ndarray, float]:
        """Return H K H, symmetric, and a bound of its error in norm."""
        n, largest = self.rows, float(self.model.squared_lengths(self.model.vectors).max())
        if self.model.kind == "sigmoid":
            largest = 1.0
        K = (self.K + self.K.T) / 2
        means = K.mean(axis=0)
        G = K - means[:, None] - means[None, :] + means.mean()
        return (G + G.T) / 2, above(math.sqrt(self.square) + n * gamma(3 * n + 32) * 4 * largest, n + 16)


class KernelPerceptronCompression(Rule):
    """compression.kernel-perceptron: f = sum beta_j (kappa(v_j, x) + 1), the 1 with an intercept, is rebuilt from the
    v_j, which are training rows, and |beta_j|, numbers of updates told as in compression.perceptron; 64 bits for each
    number of the kernel that is `told`."""

    def prepare(self) -> None:
        self.shared = Rebuilt()
        self.shared.check_claim(self)
        model: Any = self.model
        if not isinstance(model, Expansion) or model.kind == "precomputed":
            raise Rejected("it needs a classifier that is an expansion over rows")
        self.told, coef = self.count("told"), model.coef
        sums = [math.fsum(row) if self.flag("intercept") else 0.0 for row in coef]
        if np.any(coef != np.rint(coef)) or np.any(np.abs(coef) > 2.0**53) or list(model.b) != sums:
            raise Rejected("coefficients must be numbers of updates, and the offset their sum (0 without intercept)")
        self.order = np.argsort(model.support, kind="stable")
        self.kept, self.signed = model.support[self.order], coef[:, self.order]
        if not len(self.kept) or np.any(self.kept[1:] == self.kept[:-1]) or not self.signed.any(axis=0).all():
            raise Rejected("support_ is empty, names a row twice, or one without an update")
        self.positive = np.arange(len(coef)) if len(coef) > 1 else np.array([1])
        self.found = 0

    def block(self, view: View) -> None:
        where, inside = view.pick(self.kept)
        if not np.array_equal(view.X[inside], self.model.vectors[self.order[where]]):
            raise Rejected("a stored vector is not the row that support_ names")
        signs = np.where(view.codes[inside] == self.positive[:, None], 1.0, -1.0)
        if np.any(self.signed[:, where] * signs < 0):
            raise Rejected("an update has the sign of another class")
        self.found += len(inside)
        self.shared.count_outside(view, self.kept, np.zeros(len(view.X)))

    def measure(self) -> float:
        if self.found != len(self.kept):
            raise Rejected("not every stored vector is a training row")
        with localcontext(prec=60):
            message = ln_counts(np.abs(self.signed.T).astype(np.int64)) - self.told * WORD * ln(2) - SLIP
        return self.shared.limit(self, len(self.kept), message)


_ONE_CLASS = Sentence.plain("The training objective (one class, nu = {nu:g}) is at most {value:up} above its minimum.")


_VARIANCE = Sentence.plain(
    "No {components} directions of the kernel's space hold more of the rows' variance than these, up to {value:up}."
)


_FISHER = Sentence.plain(
    "In the kernel's space no directions reach a sum of Fisher ratios (mu = {mu:g}) more than {value:up} above that of "
    "these."
)


def _directions(array: np.ndarray, model: Any) -> bool:
    return array.ndim == 2 and len(array) == len(model.vectors)


def _means(array: np.ndarray, model: Any) -> bool:
    return array.shape == (len(model.classes), len(model.vectors))


def _ratios(array: np.ndarray, model: Any) -> bool:
    return array.ndim == 1 and len(array) < len(model.classes)


CLAIMS = {
    "D04/2": GAP,
    "D12/1": Definition("one-class.gap", kernel_machines.OneClassGap, _ONE_CLASS),
    "D15/1": Definition("solution.enclosure", duality.Enclosure, ENCLOSURE),
    "D17/2": Definition("kernel-perceptron.mistakes", KernelMistakes, MISTAKES),
    "D18/2": Definition("kernel-pca.optimality", KernelComponents, _VARIANCE),
    "D19/2": Definition("kernel-lda.optimality", KernelFisher, _FISHER),
    "P16/3": Definition(
        "compression.kernel-perceptron",
        KernelPerceptronCompression,
        error_rate("{errors} errors outside the {kept} of {rows} training rows that the updates were made on"),
        PRIOR,
        quantity="error rate",
    ),
    "P17/1": Definition(
        "stability.uniform",
        UniformStability,
        error_rate("{rows} training rows, each of which moves the model little"),
        PRIOR,
        quantity="error rate",
    ),
}
FAMILY = Family(
    "expansion",
    {
        "classifier": Variant(
            ARRAYS,
            read_expansion,
            classes=True,
            probabilities=("logistic",),
            more={
                "class_weight_": class_weights,
                "priors_": class_weights,
                "scalings_": _directions,
                "kernel_means_": _means,
                "fisher_ratios_": _ratios,
            },
        ),
        "map": Variant(ARRAYS, read_expansion, target=False),
    },
    CLAIMS,
)

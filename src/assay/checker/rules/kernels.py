"""Kernel machines: the checker's own kernel values, predictors and margins.

f(x) = sum_j beta_j kappa(v_j, x) + b over stored vectors v_j. Every kernel value comes with a bound of its error,
and with it every score.
"""

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from assay.checker.family import NUMBERS, WHOLE
from assay.checker.numerics import U, above, gamma
from assay.checker.predictors import Predictor, norm_bounds
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View

KINDS = ("linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed")
OTHER = "other"  # a kernel that only the learner has
MOST_CELLS = 500_000  # kernel values held at a time: they stay in the processor's cache


@dataclass(frozen=True)
class KernelMachine(Predictor):
    """Stored vectors (m, d), coefficients (outputs, m), offsets (outputs,), and the kernel: kind, gamma,
    degree, coef0."""

    vectors: np.ndarray
    coef: np.ndarray
    b: np.ndarray
    support: np.ndarray
    kind: str
    gamma: float
    power: int
    coef0: float
    n_columns: int
    classes: tuple[str, ...] | None
    _last: list[Any] = field(default_factory=list, compare=False, repr=False)  # rows seen last, and their scores
    compared = False

    @property
    def columns(self) -> int:
        return self.n_columns

    @property
    def binary(self) -> bool:
        return self.classes is not None and len(self.classes) == 2

    @property
    def degree(self) -> int | None:  # type: ignore[override]
        return {"linear": 1, "poly": self.power}.get(self.kind)

    def weight_norm(self) -> tuple[float, float]:
        if not (self.classes is None or self.binary or self.compared):
            raise Rejected("it needs scores that are linear in a kernel's space, not votes")
        if not self.psd or self.kind == "precomputed":
            raise Rejected(f"the {self.kind} kernel is not known to be positive semidefinite")
        K, slack, largest = self.values(self.vectors)
        square = float(np.einsum("ki,ij,kj->", self.coef, K, self.coef, optimize=True))
        size = np.abs(self.coef).sum(axis=1)
        most = slack + gamma(4 * len(K) + 4 * len(self.coef) + 16) * (largest + slack)
        return norm_bounds(square, above(float(most.max(initial=0.0)) * float(size @ size), len(size) + 16), self)

    def squared_lengths(self, X: np.ndarray) -> np.ndarray:
        """Return an upper bound of kappa(x, x) for each row."""
        if self.kind in ("rbf", "laplacian"):
            return np.ones(len(X))
        squares = np.square(_norms(X))
        if self.kind == "linear":
            return above(squares)
        return above(above(self.gamma * squares + abs(self.coef0)) ** self.power, self.power + 4)

    @property
    def psd(self) -> bool:
        return self.kind in ("linear", "rbf", "laplacian") or (self.kind == "poly" and self.coef0 >= 0)

    def values(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return kernel values (rows, m), a bound of their error for each row, and of their magnitude."""
        result = self._values(X)
        if not all(np.isfinite(part).all() for part in result):
            raise Refused("a kernel value overflows: the entries of the rows are too large for this kernel")
        return result

    def _values(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.kind == OTHER:
            raise Refused("the kernel is a function which the checker does not have")
        if self.kind == "precomputed":
            K = X[:, self.support]
            return K, np.zeros(len(X)), np.abs(K).max(axis=1, initial=0.0)
        d = self.n_columns
        x, v = _norms(X), float(_norms(self.vectors).max(initial=0.0))
        if self.kind == "laplacian":
            return self._laplacian(X), np.full(len(X), gamma(d + 8) / math.e + 8 * U), np.ones(len(X))
        inner = X @ self.vectors.T
        slack = above(gamma(d + 8) * x * v)
        if self.kind == "linear":
            return inner, slack, above(x * v)
        if self.kind == "rbf":
            own, other = (np.einsum("ij,ij->i", A, A) for A in (X, self.vectors))
            squares = np.subtract(own[:, None], np.multiply(inner, 2.0, out=inner), out=inner)
            squares += other[None, :]
            np.maximum(squares, 0.0, out=squares)
            K = np.exp(np.multiply(squares, -self.gamma, out=squares), out=squares)
            return K, above(self.gamma * gamma(2 * d + 24) * np.square(x + v)) + 8 * U, np.ones(len(X))
        argument, room = self.gamma * inner + self.coef0, above(self.gamma * x * v + abs(self.coef0))
        if self.kind == "sigmoid":
            return np.tanh(argument), above(gamma(d + 12) * room) + 8 * U, np.ones(len(X))
        size = above(room**self.power, self.power + 4)
        return argument**self.power, above(4 * self.power * gamma(d + self.power + 8) * size), size

    def _laplacian(self, X: np.ndarray) -> np.ndarray:
        distance = np.zeros((len(X), len(self.vectors)))
        for j in range(self.n_columns):
            distance += np.abs(X[:, j, None] - self.vectors[None, :, j])
        return np.exp(-self.gamma * distance)

    def pair_scores(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the score of each output, (rows, outputs), and bounds of their errors, (rows, outputs).

        Several rules ask about the same rows one after the other: the last answer is remembered.
        """
        if self._last and self._last[0] is X:
            return self._last[1]
        m = len(self.support)
        size = np.abs(self.coef).sum(axis=1)
        step = max(1, MOST_CELLS // max(1, m))
        scores, errors = np.empty((len(X), len(self.coef))), np.empty((len(X), len(self.coef)))
        for at in range(0, len(X), step):
            K, slack, largest = self.values(X[at : at + step])
            scores[at : at + step] = K @ self.coef.T + self.b
            slip = slack + gamma(2 * m + 16) * (largest + slack)
            errors[at : at + step] = above(np.outer(slip, size) + gamma(8) * np.abs(self.b), m + 8)
        if not (np.isfinite(scores).all() and np.isfinite(errors).all()):
            raise Refused("a score of the kernel machine overflows")
        self._last[:] = [X, (scores, errors)]
        return scores, errors

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores, errors = self.pair_scores(X)
        if self.classes is None or self.binary:
            return scores, errors.max(axis=0)
        return self._votes(scores), self._vote_errors(scores, errors).max(axis=0)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        scores, errors = self.pair_scores(X)
        return errors if self.classes is None or self.binary else self._vote_errors(scores, errors)

    def _votes(self, scores: np.ndarray) -> np.ndarray:
        votes = np.zeros((len(scores), len(self.classes or ())))
        for p, (i, j) in enumerate(combinations(range(len(self.classes or ())), 2)):
            votes[:, i] += scores[:, p] > 0
            votes[:, j] += scores[:, p] <= 0
        return votes

    def _vote_errors(self, scores: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """Return per row and class less than half a vote, or more than there are where a score is too
        close to zero."""
        open_rows = _open(scores, errors).any(axis=1)
        count = len(self.classes or ())
        return np.where(open_rows, float(count), 0.25)[:, None] * np.ones(count)


def _open(scores: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Tell which scores may have either sign; one of a machine without coefficients is exactly what it is."""
    return (np.abs(scores) <= errors) & (errors > 0)


def _norms(X: np.ndarray) -> np.ndarray:
    return above(np.sqrt(np.einsum("ij,ij->i", X, X)), X.shape[1] + 4)


def read_kernel_machine(
    vectors: np.ndarray,
    coef: np.ndarray,
    b: np.ndarray,
    support: np.ndarray,
    kernel: np.ndarray,
    classes: tuple[str, ...] | None,
) -> KernelMachine:
    """Return the machine of stored arrays, after checking that they fit together."""
    if kernel.shape != (5,) or not -1 <= kernel[0] < len(KINDS) or kernel[0] != int(kernel[0]):
        raise Rejected("kernel_numbers_ must be a kind of kernel, gamma, degree, coef0 and a number of columns")
    kind, degree, width = KINDS[int(kernel[0])] if kernel[0] >= 0 else OTHER, kernel[2], int(kernel[4])
    m = len(support)
    if (kind in ("poly", "rbf", "laplacian") and not kernel[1] > 0) or degree != int(degree) or not 1 <= degree <= 1000:
        raise Rejected("gamma must be above 0 and degree an integer from 1")
    if coef.ndim != 2 or coef.shape[1] != m or b.shape != (len(coef),) or support.ndim != 1 or not width >= 1:
        raise Rejected(f"pair_coef_, intercept_ and support_ have shapes {coef.shape}, {b.shape}, {support.shape}")
    outputs = 1 if classes is None else len(classes) * (len(classes) - 1) // 2
    if len(coef) != outputs:
        raise Rejected(f"pair_coef_ has {len(coef)} rows; {outputs} are needed")
    if kind != "precomputed" and vectors.shape != (m, width):
        raise Rejected(f"support_vectors_ has shape {vectors.shape}; {(m, width)} is needed")
    rows = support.astype(np.int64)
    if np.any(rows != support) or np.any(rows < 0) or (kind == "precomputed" and np.any(rows >= width)):
        raise Rejected("support_ must list row numbers")
    return KernelMachine(vectors, coef, b, rows, kind, float(kernel[1]), int(degree), float(kernel[3]), width, classes)


class KernelMargin(Rule):
    """kernel-margin.bounds: bounds of the hard margin in the kernel's space, from the model itself.

    lower: [min over the second class of f - max over the first] / (2 |w|); upper: half the distance of the
    points of the two
    hulls whose weights are the model's coefficients.
    """

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, KernelMachine) or not model.binary or not model.psd or model.kind == "precomputed":
            raise Rejected("it needs a kernel machine of two classes with a positive semidefinite kernel")
        beta = model.coef[0]
        K, slack, largest = model.values(model.vectors)
        size = float(np.abs(beta).sum())
        slip = float((slack + gamma(4 * len(beta) + 16) * (largest + slack)).max(initial=0.0)) * size * size
        self.square = float(beta @ K @ beta)
        self.slip = above(slip, 16)
        self.least = {1: math.inf, 0: math.inf}
        self.order = np.argsort(model.support, kind="stable")
        self.sorted = model.support[self.order]
        self.seen = 0

    def block(self, view: View) -> None:
        scores, errors = self.model.pair_scores(view.X)
        f = scores[:, 0] - self.model.b[0]
        for code, sign in ((1, 1.0), (0, -1.0)):
            own = view.codes == code
            if own.any():
                low = sign * f[own] - errors[own, 0] - 4 * U * (np.abs(f[own]) + abs(self.model.b[0]))
                self.least[code] = min(self.least[code], float(low.min()))
        where, inside = view.pick(self.sorted)
        chosen = self.order[where]
        beta = self.model.coef[0][chosen]
        if not np.array_equal(view.X[inside], self.model.vectors[chosen]):
            raise Rejected("a support vector is not the row that support_ names")
        if np.any(beta * np.where(view.codes[inside] == 1, 1.0, -1.0) < 0):
            raise Rejected("a coefficient has the wrong sign for its class")
        self.seen += len(chosen)

    def measure(self) -> float:
        beta = self.model.coef[0]
        if self.claim.direction == "lower":
            width = sum(self.least.values())
            norm = math.sqrt(max(self.square + self.slip, 0.0))
            if not 0 < width < math.inf or norm == 0:
                return 0.0
            return width / (2 * norm) * (1 - 16 * U)
        positive, negative = math.fsum(beta[beta > 0]), -math.fsum(beta[beta < 0])
        if self.seen != len(self.sorted) or not min(positive, negative) > 0:
            raise Rejected("the model has no support vectors on one of the sides")
        unequal = abs(positive - negative) / min(positive, negative)
        if unequal > 1e-6:
            raise Refused("the coefficients of the two classes do not balance")
        K_most = float(np.max(self.model.values(self.model.vectors)[2]))
        distance = math.sqrt(self.square + self.slip) / min(positive, negative) + 2 * unequal * math.sqrt(K_most)
        return above(distance / 2, 64)


ARRAYS = {
    "support_vectors_": NUMBERS,
    "pair_coef_": NUMBERS,
    "intercept_": NUMBERS,
    "support_": WHOLE,
    "kernel_numbers_": NUMBERS,
}

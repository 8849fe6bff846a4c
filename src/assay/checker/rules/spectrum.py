"""Directions of largest variance: no others hold more, proved by a matrix that is positive semidefinite.

For orthonormal V (n, k), a symmetric G and Theta = V' G V >= t I,

    (t + e) I + V (Theta - t I) V' - G >= 0   implies   sum of the k largest eigenvalues of G <= trace Theta + k e,

because that sum is monotone in the order of positive semidefinite matrices (Ky Fan).
"""

import math

import numpy as np

from assay.checker.numerics import U, above, gamma, is_psd_after
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.expansions import Expansion

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

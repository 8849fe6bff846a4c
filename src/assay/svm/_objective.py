"""`objective` of linear and of kernel machines: sum_i C_i loss(y_i, f_k(x_i)) + l2/2 |f_k|^2 over functions f_k.

Coefficients of kernel machines are those of the functions kappa(v, .) of the support vectors v, so that |f_k|^2 is
c_k' K c_k.
"""

from itertools import combinations
from typing import Any

import numpy as np

from assay.kernels import Precomputed
from assay.linear_model._base import Objective, class_weights, elastic, one_against_rest, told_weights
from assay.losses import epsilon_insensitive, hinge, log_loss, named, squared_error
from assay.params import refuse
from assay.svm._base import support_rows


class LinearMachineObjective(Objective):
    """The intercept is penalised as the coefficient of a constant column."""

    penalty = "l2"

    def _penalty(self: Any, W: np.ndarray, b: np.ndarray, n: int) -> float:
        column, sparse = self._column(), float(self.penalty == "l1")
        return elastic(np.append(W, b / column) if column else W, sparse, 1.0 - sparse)


class LinearClassifierObjective(LinearMachineObjective):
    """C sum of hinge losses or their squares, one class against the rest, or of Crammer and Singer's loss of all.

    Crammer and Singer's two hyperplanes of two classes are opposite halves of the one that is kept.
    """

    def _row_losses(self: Any, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        codes, K = np.searchsorted(self.classes_, y), len(self.classes_)
        if self.multi_class == "crammer_singer":
            scores = np.hstack([-scores / 2, scores / 2]) if K == 2 else scores
            worst = (scores + (np.arange(K) != codes[:, None])).max(axis=1)
            return self.C * class_weights(self, y)[codes] * (worst - scores[np.arange(len(y)), codes])
        losses = one_against_rest(self.classes_, named(self.loss), y, scores)
        return self.C * (told_weights(self, y) * losses).sum(axis=1)

    def _penalty(self: Any, W: np.ndarray, b: np.ndarray, n: int) -> float:
        halves = self.multi_class == "crammer_singer" and len(self.classes_) == 2
        return super()._penalty(W, b, n) * (0.5 if halves else 1.0)


class LinearRegressorObjective(LinearMachineObjective):
    """C sum of epsilon-insensitive losses or their squares."""

    def _row_losses(self: Any, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        epsilon = float(self.epsilon)
        return self.C * named(self.loss, epsilon).value(y, scores[:, 0])


class KernelObjective(Objective):
    """A machine says what its losses are; its penalty is half the squared norm, times `_l2`."""

    pair_coef_: np.ndarray
    _l2: Any = 1.0

    def _fitted_coef(self) -> np.ndarray:
        return self.pair_coef_

    def _scores_of(self: Any, X: Any, W: np.ndarray) -> np.ndarray:
        return self._expansion(X, W)

    def _penalty(self: Any, W: np.ndarray, b: np.ndarray, n: int) -> float:
        kernel = self._kernel()
        if isinstance(kernel, Precomputed):
            raise refuse(self, "the objective needs the kernel between support vectors, which a Gram matrix is not.")
        gram = kernel(support_rows(self))
        l2 = np.broadcast_to(np.ravel(self._l2), len(W))
        return 0.5 * float(l2 @ np.einsum("ki,ij,kj->k", W, gram, W))


class HingeObjective(KernelObjective):
    """C sum of hinge losses of each pair of classes, on the rows of the two."""

    def _row_losses(self: Any, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        codes, K = np.searchsorted(self.classes_, y), len(self.classes_)
        pairs = [(1, 0)] if K == 2 else combinations(range(K), 2)
        total = np.zeros(len(scores))
        for (i, j), f in zip(pairs, scores.T, strict=True):
            total += np.where(codes == i, hinge.value(1.0, f), 0.0) + np.where(codes == j, hinge.value(-1.0, f), 0.0)
        return self.C * class_weights(self, y)[codes] * total


class TubeObjective(KernelObjective):
    """C sum of epsilon-insensitive losses, epsilon that of the fit."""

    def _row_losses(self: Any, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return self.C * epsilon_insensitive(float(self.epsilon_)).value(y, scores[:, 0])


class SquaredKernelObjective(KernelObjective):
    """1/2 sum (y - f)^2 + alpha/2 |f|^2 over the targets."""

    @property
    def _l2(self: Any) -> Any:  # type: ignore[override]
        return self.alpha

    def _row_losses(self: Any, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return squared_error.value(y.reshape(len(y), -1), scores).sum(axis=1)


class LogisticKernelObjective(KernelObjective):
    """C sum of log losses, of more than two classes one against the rest each."""

    def _row_losses(self: Any, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        classes = self.classes_
        weight = class_weights(self, y)[np.searchsorted(classes, y)]
        return self.C * weight * one_against_rest(classes, log_loss, y, scores).sum(axis=1)


class OneClassObjective(KernelObjective):
    """sum max(0, rho - g) - nu n rho + 1/2 |g|^2 with f = g - rho."""

    def _row_losses(self: Any, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, -scores[:, 0])

    def _penalty(self: Any, W: np.ndarray, b: np.ndarray, n: int) -> float:
        return super()._penalty(W, b, n) + float(self.nu) * n * float(b[0])

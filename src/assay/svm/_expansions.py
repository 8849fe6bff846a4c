"""Classifiers f_k(x) = sum_i c_ki kappa(x_i, x) + b_k: the sign of one function, or the largest of several, decides.

`objective` of linear and of kernel machines: sum_i C_i loss(y_i, f_k(x_i)) + l2/2 |f_k|^2 over functions f_k.

Coefficients of kernel machines are those of the functions kappa(v, .) of the support vectors v, so that |f_k|^2 is
c_k' K c_k.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.claims.claim import NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Evidence, Scores
from assay.guarantees.ledger import Statement
from assay.kernels import Kernel, Precomputed
from assay.kernels._tiles import expand
from assay.linear_model._base import Objective, class_weights, elastic, one_against_rest, told_weights
from assay.losses import epsilon_insensitive, hinge, log_loss, named, squared_error
from assay.params import refuse
from assay.scan import Rows, one_blas_thread
from assay.svm._base import KernelMachine, support_rows
from assay.svm._claims import scores

_THREADS_FROM = 2_000  # rows of a matrix from which BLAS gets its threads


class ExpansionClassifier(ClassifierMixin, KernelMachine):
    """What kernel classifiers with one function per class share (two classes have one function alone)."""

    family = "expansion.classifier"
    pair_coef_: np.ndarray
    intercept_: np.ndarray
    support_: np.ndarray

    def _outputs(self, X: Any) -> np.ndarray:
        """Return the value of each function at each row, (n, outputs)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        kernel = self._kernel()
        X = X[:, self.support_] if isinstance(kernel, Precomputed) else X
        return expand(kernel, self.support_vectors_, self.pair_coef_, X, self.n_jobs) + self.intercept_

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores: (n,) for two classes, positive for the second; else (n, n_classes)."""
        values = self._outputs(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each row."""
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)]

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield what margins in the kernel's space say about new data."""
        from assay.svm._claims import margin_statements

        yield from margin_statements(self, rows)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores."""
        yield Scores(bounded_outputs, (self,), self.logistic_scores)

    @property
    def logistic_scores(self) -> bool:
        """Whether the class probabilities are the logistic function of the scores."""
        return False

    def _class_weights(self, codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return the factor of each class; every class must have a row of positive weight."""
        counts = np.bincount(codes, weight, minlength=len(self.classes_))
        if not counts.min() > 0:
            raise refuse(self, f"class {self.classes_[counts.argmin()]} has no row of positive weight; leave it out.")
        if self.class_weight is None:
            return np.ones(len(self.classes_))
        if self.class_weight == "balanced":
            return counts.sum() / (len(counts) * counts)
        factors = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        if not (np.isfinite(factors) & (factors > 0)).all():
            raise refuse(self, f"class_weight must hold finite numbers > 0; got {self.class_weight!r}.")
        return factors


def blas_for(n: int) -> AbstractContextManager[None]:
    """Return a context for dense algebra with n x n matrices: one BLAS thread where more cost more than they bring."""
    return one_blas_thread() if n < _THREADS_FROM else nullcontext()


def whole_gram(machine: KernelMachine, kernel: Kernel, X: np.ndarray, copies: int) -> np.ndarray:
    """Return the Gram matrix of all rows, as an array to write to; refuse if `copies` of it do not fit in memory."""
    need, room = copies * 8 * len(X) ** 2, _memory()
    if need > 0.8 * room:
        raise refuse(
            machine,
            f"works with {copies} matrices of {len(X)} x {len(X)} numbers, {need / 2**30:.1f} GB, and this machine has "
            f"{room / 2**30:.1f} GB; fit to a sample of the rows, or use assay.svm.SVC, which keeps only parts of it.",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        gram = X.copy() if isinstance(kernel, Precomputed) else kernel(X)
        require_finite_values(machine, gram)
    return gram


def require_finite_values(machine: KernelMachine, values: np.ndarray) -> None:
    """Refuse kernel values that are infinite or not numbers."""
    if not np.isfinite(values).all():
        raise refuse(
            machine, "kernel values overflow: the entries of X are too large for this kernel; scale the columns."
        )


def _memory() -> float:
    """Return the bytes of memory of this machine, infinity if the system does not tell."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def same_rows(rows: Rows, X: np.ndarray) -> bool:
    """Tell whether `rows` are exactly these, in order."""
    return rows.n_rows == len(X) and all(
        rows.map(lambda block: np.array_equal(block.X, X[block.start : block.start + len(block.X)]))
    )


def bounded_outputs(block: Block, machine: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the value of each function at each row, and how far rounding can move those of each row."""

    values, error = scores(machine, block)
    return values, 1.01 * error.max(axis=1)


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

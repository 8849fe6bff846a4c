"""Classifiers f_k(x) = sum_i c_ki kappa(x_i, x) + b_k: the sign of one function, or the largest of several, decides."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
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
from assay.params import refuse
from assay.scan import Rows, one_blas_thread
from assay.svm._base import KernelMachine
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

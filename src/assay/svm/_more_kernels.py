"""Kernels that kernel ridge regression and kernel principal components have beside those of the machines: the cosine of
two rows, the chi-squared ones of histograms, and functions of two rows."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from assay.kernels import Kernel, Linear
from assay.kernels._algebra import Function
from assay.svm._base import KernelMachine

_OTHERS = ("cosine", "chi2", "additive_chi2")


class MoreKernels(KernelMachine):
    """A machine with these kernels; gamma=None is 1 / n_features, and sparse rows are taken as a dense copy."""

    kernel_params: Any
    _pairs = False  # whether the kernel is a function of two rows

    def _set_kernel(self, X: np.ndarray) -> Kernel:
        self._pairs = self._is_function and not _takes_tables(self._given(), X)
        if not isinstance(self.kernel, str) or self.kernel not in _OTHERS:
            return super()._set_kernel(X)
        self._set_kernel_numbers(self.kernel, self._gamma(X), X.shape[1])
        return self._kernel()

    def _kernel(self) -> Kernel:
        name = self.chosen_kernel_
        if name == "cosine":
            return Linear().rescaled(_inverse_length)
        if name in _OTHERS:
            options = {"gamma": self.gamma_} if name == "chi2" else {}
            return Function(partial(pairwise_kernels, metric=name, **options))
        if not self._is_function:
            return super()._kernel()
        given = self._given()
        return Function(partial(_by_pairs, given) if self._pairs else given)

    @property
    def _is_function(self) -> bool:
        return callable(self.kernel) and not isinstance(self.kernel, Kernel)

    def _given(self) -> Any:
        return partial(self.kernel, **(self.kernel_params or {}))

    def _gamma(self, X: np.ndarray) -> float:
        return 1.0 / X.shape[1] if self.gamma is None else super()._gamma(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _takes_tables(function: Any, X: np.ndarray) -> bool:
    """Tell whether a kernel returns the matrix of two tables, rather than a number for two rows."""
    few, more = X[:2], X[:3]
    try:
        return np.shape(function(few, more)) == (len(few), len(more))
    except Exception:  # whatever a function of rows does with tables
        return False


def _by_pairs(function: Any, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.array([[function(x, z) for z in Z] for x in X], dtype=np.float64).reshape(len(X), len(Z))


def _inverse_length(X: np.ndarray) -> np.ndarray:
    """Return 1 / |x| for each row, 0 for a row of zeros."""
    length = np.sqrt(np.einsum("ij,ij->i", X, X))
    return np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)

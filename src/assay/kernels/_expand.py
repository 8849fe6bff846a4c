"""Sums of kernel sections at many rows, in double precision."""

import numpy as np

from assay.kernels._algebra import Kernel, Precomputed
from assay.scan import thread_map

_CELLS = 2_000_000  # kernel values that a thread holds at a time


def expand(
    kernel: Kernel, vectors: np.ndarray, coef: np.ndarray, X: np.ndarray, n_jobs: int | None = None
) -> np.ndarray:
    """Return sum_j coef_kj kappa(vector_j, x_i), (n, k); of a precomputed kernel X holds the values.

    >>> from assay.kernels import Linear
    >>> expand(Linear(), np.array([[1.0], [2.0]]), np.array([[3.0, 1.0]]), np.array([[10.0]]))
    array([[50.]])
    """
    if isinstance(kernel, Precomputed):
        return X @ coef.T
    step = max(1, _CELLS // max(1, len(vectors)))
    starts = range(0, len(X), step)
    parts = thread_map(lambda at: kernel.block(X[at : at + step], vectors) @ coef.T, starts, n_jobs=n_jobs)
    return np.concatenate([np.empty((0, len(coef))), *parts])

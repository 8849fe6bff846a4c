"""Compiled product and update of one packed row, dense or sparse."""

import numpy as np

from assay.jit import compiled


@compiled(reduction=True)
def dot(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, i: int, w: np.ndarray) -> float:
    """Return <x_i, w>."""
    total = 0.0
    first = starts[i]
    if columns.size:
        for k in range(first, starts[i + 1]):
            total += values[k] * w[columns[k]]
    else:
        for j in range(w.shape[0]):
            total += values[first + j] * w[j]
    return total


@compiled
def add(
    starts: np.ndarray, columns: np.ndarray, values: np.ndarray, i: int, factor: float, w: np.ndarray
) -> None:
    """Add factor * x_i to w."""
    first = starts[i]
    if columns.size:
        for k in range(first, starts[i + 1]):
            w[columns[k]] += factor * values[k]
    else:
        for j in range(w.shape[0]):
            w[j] += factor * values[first + j]

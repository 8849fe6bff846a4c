"""Compiled counts on linear scores."""

import numpy as np

from assay.jit import compiled


@compiled(reduction=True)
def binary_errors_block(X: np.ndarray, y: np.ndarray, w: np.ndarray, b: float, slack: float) -> tuple[int, int]:
    """Return how many rows have z_i < -slack, and how many z_i <= slack, z_i = (2 y_i - 1)(<w, x_i> + b)."""
    low = high = 0
    for i in range(X.shape[0]):
        score = b
        for j in range(w.shape[0]):
            score += X[i, j] * w[j]
        z = (2.0 * y[i] - 1.0) * score
        low += z < -slack
        high += z <= slack
    return low, high

"""The compiled loop of the intersection of histograms."""

import numpy as np

from assay.jit import compiled


@compiled(reduction=True)
def intersections(X: np.ndarray, Z: np.ndarray, out: np.ndarray) -> None:
    """Set out[i, j] to the sum of the smaller entries of row i of X and row j of Z."""
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            total = 0.0
            for k in range(X.shape[1]):
                a, b = X[i, k], Z[j, k]
                total += a if a < b else b
            out[i, j] = total

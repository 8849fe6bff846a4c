"""Scatter of a block of rows about a point: sum_i a_i a_i', a_i = (x_i - c, 1).

A panel of shifted rows is built in cache; tiles of the upper triangle, 4 x 3 vectors, are summed in registers while the
rows pass by. On rows this narrow that takes about half the time of a matrix product.
"""

import numpy as np

from assay.jit import add_products, compiled

_PANEL = 128  # rows


@compiled
def scatter_block(X: np.ndarray, center: np.ndarray, panel: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return the (d + 1, d + 1) sum of a a' over the block, double precision.

    panel (any, wide) and M (wide, wide) are room to work in, zeros of float64 or float32: the products are computed in
    their type. wide is a multiple of 3 vectors, at least d + 1. Writes no other input.
    """
    n, d = X.shape
    most, wide = panel.shape
    vectors = 12 * 8 // panel.itemsize
    for start in range(0, n, most):
        size = min(most, n - start)
        for r in range(size):
            _shift(X[start + r], center, panel[r])
        for i in range(0, d + 1, 4):
            for j in range(i // vectors * vectors, wide, vectors):
                add_products(panel, size, i, j, M)
    S = np.empty((d + 1, d + 1))
    for i in range(d + 1):
        for j in range(i, d + 1):
            S[i, j] = S[j, i] = M[i, j]
    return S


@compiled
def _shift(x: np.ndarray, center: np.ndarray, out: np.ndarray) -> None:
    d = len(x)
    whole = d // 4 * 4
    for j in range(0, whole, 4):  # by fours, since what is left over of a vectorised loop would cost more than the loop
        a, b, c, e = x[j] - center[j], x[j + 1] - center[j + 1], x[j + 2] - center[j + 2], x[j + 3] - center[j + 3]
        out[j], out[j + 1], out[j + 2], out[j + 3] = a, b, c, e
    for j in range(whole, d):
        out[j] = x[j] - center[j]
    out[d] = 1.0


def scatter(X: np.ndarray, center: np.ndarray, precision: type = np.float64) -> np.ndarray:
    """Return the (d + 1, d + 1) sum of a a' over a block; products in `precision`, float64 or float32."""
    each = np.dtype(precision).itemsize
    wide = -(-(X.shape[1] + 1) * each // 96) * 96 // each
    return scatter_block(X, center, np.zeros((_PANEL, wide), precision), np.zeros((wide, wide), precision))

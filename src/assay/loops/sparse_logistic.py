"""Products with rows of few entries: `ends[i]` to `ends[i + 1]` are the entries of row i."""

import numpy as np

from assay.jit import compiled


@compiled
def scores(
    entries: np.ndarray, columns: np.ndarray, ends: np.ndarray, first: int, last: int, w: np.ndarray, b: float
) -> np.ndarray:
    """Return <w, x_i> + b of some rows."""
    found = np.empty(last - first)
    for i in range(first, last):
        score = b
        for k in range(ends[i], ends[i + 1]):
            score += entries[k] * w[columns[k]]
        found[i - first] = score
    return found


@compiled
def scattered(
    entries: np.ndarray, columns: np.ndarray, ends: np.ndarray, first: int, last: int, slopes: np.ndarray, d: int
) -> np.ndarray:
    """Return sum t_i x_i over some rows, whose t_i are given."""
    total = np.zeros(d)
    for i in range(first, last):
        t = slopes[i - first]
        for k in range(ends[i], ends[i + 1]):
            total[columns[k]] += entries[k] * t
    return total


@compiled
def curved(
    entries: np.ndarray,
    columns: np.ndarray,
    ends: np.ndarray,
    first: int,
    last: int,
    v: np.ndarray,
    v0: float,
    curvature: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Return sum c_i (<x_i, v> + v0) (x_i, 1): the Hessian of the losses times (v, v0). The entries of a row are read
    again while they are in cache."""
    product, total = np.zeros(len(v)), 0.0
    for i in range(first, last):
        t = v0
        for k in range(ends[i], ends[i + 1]):
            t += entries[k] * v[columns[k]]
        t *= curvature[i]
        total += t
        for k in range(ends[i], ends[i + 1]):
            product[columns[k]] += entries[k] * t
    return product, total

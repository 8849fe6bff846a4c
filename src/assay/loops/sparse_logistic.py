"""Sums of logistic regression over rows with few entries: the entries of a row are read for its score and, while they
are in cache, once more for what they add to the sum. `ends[i]` to `ends[i + 1]` are the entries of row i."""

import numpy as np

from assay.jit import compiled


@compiled
def loss_slopes(
    entries: np.ndarray,
    columns: np.ndarray,
    ends: np.ndarray,
    first: int,
    last: int,
    w: np.ndarray,
    b: float,
    sign: np.ndarray,
    cost: np.ndarray,
) -> tuple[float, np.ndarray, float]:
    """Return sum C_i ln(1 + exp(-y_i f(x_i))), its gradient in w and in b; `cost` holds one C or one for each row."""
    value, pull, slope = 0.0, 0.0, np.zeros(len(w))
    for i in range(first, last):
        score = b
        for k in range(ends[i], ends[i + 1]):
            score += entries[k] * w[columns[k]]
        margin = sign[i] * score
        small = np.exp(-abs(margin))
        loss = np.log1p(small) + max(-margin, 0.0)
        wrong = (small if margin > 0 else 1.0) / (1.0 + small)
        c = cost[i] if len(cost) > 1 else cost[0]
        value += c * loss
        t = -c * sign[i] * wrong
        pull += t
        for k in range(ends[i], ends[i + 1]):
            slope[columns[k]] += entries[k] * t
    return value, slope, pull


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
    """Return sum c_i (x_i^T v + v0) (x_i, 1): the Hessian of the losses times (v, v0)."""
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

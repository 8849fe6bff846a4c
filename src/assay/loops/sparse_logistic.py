"""Products with rows of few entries: `ends[i]` to `ends[i + 1]` are the entries of row i."""

from math import log, log1p

import numpy as np

from assay.jit import compiled
from assay.loops.logistic import exp_of_negative
from assay.loops.moments import PANEL


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
    """Return sum C_i ln(1 + exp(-y_i f(x_i))), its gradient in w and in b; `cost` holds one C or one for each row.

    Where all rows cost the same, one logarithm is taken of a panel's product of 1 + exp(-|f_i|).
    """
    value, pull, slope, same = 0.0, 0.0, np.zeros(len(w)), len(cost) == 1
    margin, small, scratch = np.empty(PANEL), np.zeros(PANEL), np.empty(PANEL)
    for start in range(first, last, PANEL):
        size = min(PANEL, last - start)
        for r in range(size):
            score = b
            for k in range(ends[start + r], ends[start + r + 1]):
                score += entries[k] * w[columns[k]]
            margin[r] = sign[start + r] * score
            small[r] = -abs(margin[r])
        exp_of_negative(small, small, scratch)
        product = 1.0
        for r in range(size):
            i, e = start + r, small[r]
            c = cost[0] if same else cost[i]
            value += c * (max(-margin[r], 0.0) + (0.0 if same else log1p(e)))
            product *= 1.0 + e
            t = -c * sign[i] * (e if margin[r] > 0 else 1.0) / (1.0 + e)
            pull += t
            for k in range(ends[i], ends[i + 1]):
                slope[columns[k]] += entries[k] * t
        value += cost[0] * log(product) if same else 0.0
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

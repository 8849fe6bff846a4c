"""Block functions of the logistic loss for two classes, compiled so that a block is one call that holds no lock.

Rows have y in {0, 1} and f_i = <w, x_i> + b; loss_i = ln(1 + exp(f_i)) - y_i f_i = ln(1 + exp(-z_i)), z_i = (2 y_i - 1) f_i.
`cost` (2,) holds C of either class, `weight` (n,) a factor per row, or is empty.
"""

from math import log, log1p

import numpy as np

from assay.jit import compiled
from assay.loops.moments import moments_block

_STRETCH = 512  # factors in (1, 2] multiplied before one logarithm is taken: their product stays below 2^512


@compiled(reduction=True)
def exp_of_negative(t: np.ndarray, out: np.ndarray, power: np.ndarray) -> None:
    """Write exp(t) to `out` for t <= 0, to one unit in the last place; `power` is scratch of the same length.

    t = k ln 2 + r with |r| <= ln 2 / 2; exp(r) by its Taylor polynomial of degree 13, remainder below 2^-56; 2^k by writing
    the exponent's bits. Vectorises, unlike a call of the C library. Below -708, where doubles end, t counts as -708.
    """
    bits = power.view(np.int64)
    for i in range(t.shape[0]):
        x = max(t[i], -708.0)
        k = np.floor(x * 1.4426950408889634 + 0.5)
        r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10  # ln 2 in two parts
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        out[i] = p * r + 1.0
        bits[i] = (np.int64(k) + 1023) << 52
    for i in range(t.shape[0]):
        out[i] *= power[i]


@compiled(reduction=True)
def _scores(X: np.ndarray, w: np.ndarray, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Return f and exp(-|f|)."""
    f = np.dot(X, w)
    e, power = np.empty_like(f), np.empty_like(f)
    for i in range(f.shape[0]):
        f[i] += b
        e[i] = -abs(f[i])
    exp_of_negative(e, e, power)
    return f, e


@compiled(reduction=True)
def loss_block(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, cost: np.ndarray, w: np.ndarray, b: float
) -> tuple[float, np.ndarray, float]:
    """Return sum C_i loss_i, its gradient in w (d,) and in b."""
    f, e = _scores(X, w, b)
    pull = np.empty_like(f)
    for i in range(f.shape[0]):
        top = 1.0 if f[i] >= 0.0 else e[i]
        pull[i] = cost[y[i]] * (top / (1.0 + e[i]) - y[i])
    if weight.size:
        pull *= weight
    return _loss(f, e, y, weight, cost), np.dot(pull, X), pull.sum()


@compiled(reduction=True)
def _loss(f: np.ndarray, e: np.ndarray, y: np.ndarray, weight: np.ndarray, cost: np.ndarray) -> float:
    """Return sum C_i (max(f_i, 0) - y_i f_i + ln(1 + e_i)); with one cost for all, one logarithm per stretch of rows."""
    n = f.shape[0]
    total = 0.0
    if weight.size or cost[0] != cost[1]:
        for i in range(n):
            factor = cost[y[i]] * (weight[i] if weight.size else 1.0)
            total += factor * (max(f[i], 0.0) - y[i] * f[i] + log1p(e[i]))
        return total
    for start in range(0, n, _STRETCH):
        product = 1.0
        for i in range(start, min(start + _STRETCH, n)):
            total += max(f[i], 0.0) - y[i] * f[i]
            product *= 1.0 + e[i]
        total += log(product)
    return cost[0] * total


@compiled(reduction=True)
def hessian_block(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, cost: np.ndarray, w: np.ndarray, b: float
) -> np.ndarray:
    """Return sum C_i p_i (1 - p_i) (x_i, 1)(x_i, 1)^T, (d + 1, d + 1)."""
    curvature = curvatures(X, y, weight, cost, w, b)
    return moments_block(X, np.empty((X.shape[0], 0)), curvature, np.zeros(X.shape[1]))


@compiled(reduction=True)
def curvatures(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, cost: np.ndarray, w: np.ndarray, b: float
) -> np.ndarray:
    """Return C_i p_i (1 - p_i), (n,)."""
    f, e = _scores(X, w, b)
    for i in range(f.shape[0]):
        e[i] = cost[y[i]] * e[i] / ((1.0 + e[i]) * (1.0 + e[i]))
    if weight.size:
        e *= weight
    return e


@compiled(reduction=True)
def pull_block(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, cost: np.ndarray, w: np.ndarray, b: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return per class sum alpha_i, sum C_i exp(-z_i) (both (2,)) and sum alpha_i x_i (2, d), alpha_i = C_i sigma(-z_i)."""
    f, e = _scores(X, w, b)
    n = f.shape[0]
    alpha, total, tail = np.zeros((2, n)), np.zeros(2), np.zeros(2)
    for i in range(n):
        k = y[i]
        C = cost[k] * (weight[i] if weight.size else 1.0)
        right = (f[i] >= 0.0) == (k == 1)
        a = C * (e[i] if right else 1.0) / (1.0 + e[i])
        alpha[k, i] = a
        total[k] += a
        tail[k] += C * (e[i] if right else 1.0 / e[i])
    return total, tail, np.dot(alpha, X)

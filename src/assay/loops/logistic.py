"""Block functions of the logistic loss for two classes, compiled so that a block is one call that holds no lock.

Rows have y in {0, 1} and f_i = <w, x_i> + b; loss_i = ln(1 + exp(f_i)) - y_i f_i = ln(1 + exp(-z_i)) with z_i = (2
y_i - 1) f_i. `cost` (2,) holds C of either class, `weight` (n,) a factor per row, or is empty.

Of rows of few entries (`loss_slopes`, `curved`) `ends[i]` to `ends[i + 1]` are the entries of row i.
"""

from math import log, log1p

import numpy as np

from assay.jit import compiled
from assay.loops.moments import PANEL, add_panel, empty_sums, mirror


# PANEL rows are taken through all steps while they are in cache; a product of so many factors in (1, 2] is finite.
@compiled(reduction=True)
def exp_of_negative(t: np.ndarray, out: np.ndarray, power: np.ndarray) -> None:
    """Write exp(t) to `out` for t <= 0, to one unit in the last place; `power` is scratch of the same length.

    t = k ln 2 + r with |r| <= ln 2 / 2; exp(r) by its Taylor polynomial of degree 13, remainder below 2^-56; 2^k by
    writing the exponent's bits. Vectorises, unlike a call of the C library. Below -708 t
    counts as -708.
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
def _scores(
    X: np.ndarray, w: np.ndarray, b: float, start: int, f: np.ndarray, e: np.ndarray, scratch: np.ndarray
) -> int:
    """Write f and exp(-|f|) of the panel of rows from `start` on; return how many they are."""
    size = min(PANEL, X.shape[0] - start)
    for r in range(size):
        total = b
        for j in range(w.shape[0]):
            total += X[start + r, j] * w[j]
        f[r] = total
        e[r] = -abs(total)
    for r in range(size, PANEL):
        e[r] = 0.0
    exp_of_negative(e, e, scratch)
    return size


@compiled
def add_pairs(sums: np.ndarray) -> None:
    """Add neighbours, then neighbours of these sums, until sums[0] is the sum of all 2^l of them."""
    count = sums.shape[0]
    while count > 1:
        count //= 2
        for k in range(count):
            for j in range(sums.shape[1]):
                sums[k, j] = sums[2 * k, j] + sums[2 * k + 1, j]


@compiled(reduction=True)
def loss_stretch(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, cost: np.ndarray, w: np.ndarray, b: float, step: int
) -> tuple[float, np.ndarray, float]:
    """Return sum C_i loss_i, its gradient in w (d,) and in b, of one block or of 2^l blocks of `step` rows.

    Where all rows cost the same, one logarithm is taken of a panel's product of 1 + exp(-|f_i|).
    Loops that add up write nothing: a loop that does both is compiled twice, and which of the two runs, with its order
    of the terms, depends on where the arrays lie in memory.
    """
    n, d = X.shape
    f, e, scratch = np.empty(PANEL), np.empty(PANEL), np.empty(PANEL)
    sums = np.zeros((max(1, n // step), d + 2))
    single = weight.size == 0 and cost[0] == cost[1]
    for k in range(sums.shape[0]):
        last = n if k == sums.shape[0] - 1 else (k + 1) * step
        block, slope, loss, offset = X[:last], sums[k], 0.0, 0.0
        for start in range(k * step, last, PANEL):
            size = _scores(block, w, b, start, f, e, scratch)
            for r in range(size):
                target = y[start + r]
                top = 1.0 if f[r] >= 0.0 else e[r]
                scratch[r] = top / (1.0 + e[r]) - target
                f[r] = max(f[r], 0.0) - target * f[r]
            if single:
                linear, product = 0.0, 1.0
                for r in range(size):
                    linear += f[r]
                    product *= 1.0 + e[r]
                loss += cost[0] * (linear + log(product))
            for r in range(size):
                C = cost[y[start + r]] * (weight[start + r] if weight.size else 1.0)
                scratch[r] *= C
                f[r] = C * (f[r] + log1p(e[r])) if not single else 0.0
            total = 0.0
            for r in range(size):
                offset += scratch[r]
                total += f[r]
            loss += total
            for r in range(size):
                gradient = scratch[r]
                for j in range(d):
                    slope[j] += gradient * X[start + r, j]
        slope[d], slope[d + 1] = loss, offset
    add_pairs(sums)
    return sums[0, d], sums[0, :d].copy(), sums[0, d + 1]


@compiled(reduction=True)
def curvatures(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, cost: np.ndarray, w: np.ndarray, b: float
) -> np.ndarray:
    """Return C_i p_i (1 - p_i), (n,)."""
    n = X.shape[0]
    f, e, scratch = np.empty(PANEL), np.empty(PANEL), np.empty(PANEL)
    out = np.empty(n)
    for start in range(0, n, PANEL):
        for r in range(_scores(X, w, b, start, f, e, scratch)):
            C = cost[y[start + r]] * (weight[start + r] if weight.size else 1.0)
            out[start + r] = C * e[r] / ((1.0 + e[r]) * (1.0 + e[r]))
    return out


@compiled(reduction=True)
def hessian_stretch(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, cost: np.ndarray, w: np.ndarray, b: float, step: int
) -> np.ndarray:
    """Return sum C_i p_i (1 - p_i) (x, 1)(x, 1)^T of one block or of 2^l blocks of `step` rows, padded with zeros to
    whole tiles; scores, curvatures and products are taken of a panel while it is in cache."""
    n, d = X.shape
    f, e, scratch = np.empty(PANEL), np.empty(PANEL), np.empty(PANEL)
    nothing, origin = np.empty((n, 0)), np.zeros(d)
    M, panel = empty_sums(d + 1)
    sums = np.empty((max(1, n // step), M.size))
    for k in range(sums.shape[0]):
        last = n if k == sums.shape[0] - 1 else (k + 1) * step
        block = X[:last]
        M[:] = 0.0
        for start in range(k * step, last, PANEL):
            size = _scores(block, w, b, start, f, e, scratch)
            for r in range(size):
                C = cost[y[start + r]] * (weight[start + r] if weight.size else 1.0)
                scratch[r] = np.sqrt(C * e[r] / ((1.0 + e[r]) * (1.0 + e[r])))
            add_panel(M, panel, X, nothing, scratch, origin, start, size)
        mirror(M)
        sums[k] = M.ravel()
    add_pairs(sums)
    return sums[0].copy().reshape(M.shape)


@compiled(reduction=True)
def dual_sums_block(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, cost: np.ndarray, w: np.ndarray, b: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return per class sum alpha_i, sum C_i exp(-z_i) (both (2,)) and sum alpha_i x_i (2, d), where
    alpha_i = C_i sigma(-z_i)."""
    n, d = X.shape
    f, e, scratch = np.empty(PANEL), np.empty(PANEL), np.empty(PANEL)
    total, tail, vectors = np.zeros(2), np.zeros(2), np.zeros((2, d))
    for start in range(0, n, PANEL):
        for r in range(_scores(X, w, b, start, f, e, scratch)):
            k = y[start + r]
            C = cost[k] * (weight[start + r] if weight.size else 1.0)
            right = (f[r] >= 0.0) == (k == 1)
            alpha = C * (e[r] if right else 1.0) / (1.0 + e[r])
            total[k] += alpha
            tail[k] += C * (e[r] if right else 1.0 / e[r])
            for j in range(d):
                vectors[k, j] += alpha * X[start + r, j]
    return total, tail, vectors


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

"""The compiled pass of the perceptron."""

import numpy as np

from assay.jit import compiled, prefetch
from assay.linear_model._row_loops import add, dot

_AHEAD = 6  # rows fetched before they are needed


@compiled
def perceptron_block(
    X: np.ndarray,
    signs: np.ndarray,
    order: np.ndarray,
    eta: float,
    intercept: bool,
    w: np.ndarray,
    b: np.ndarray,
    at: np.ndarray,
) -> int:
    """Visit the rows of X (n, d) in `order`, update w (d,) and b (1,) on each mistake, write its row to `at`.

    Returns the number of mistakes. Strict arithmetic: the update sequence can be replayed to the last bit.
    """
    n, d = order.shape[0], X.shape[1]
    lines = min(8 * d + 64, 512)
    mistakes = 0
    for k in range(n):
        if k + _AHEAD < n:  # in random order most of the time would go into waiting for memory
            place = order[k + _AHEAD] * d * 8
            for line in range(0, lines, 64):
                prefetch(X, place + line)
        i = order[k]
        sign = signs[i]
        if sign * _score(X[i], w, b[0]) <= 0.0:
            step = eta * sign
            for j in range(d):
                w[j] += step * X[i, j]
            if intercept:
                b[0] += step
            at[mistakes] = i
            mistakes += 1
    return mistakes


@compiled
def sparse_perceptron_block(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray],
    signs: np.ndarray,
    order: np.ndarray,
    eta: float,
    intercept: bool,
    w: np.ndarray,
    b: np.ndarray,
    at: np.ndarray,
) -> int:
    """Do the same for packed rows (starts, columns, values)."""
    starts, columns, values = rows
    mistakes = 0
    for i in order:
        if signs[i] * (dot(starts, columns, values, i, w) + b[0]) <= 0.0:
            add(starts, columns, values, i, eta * signs[i], w)
            if intercept:
                b[0] += eta * signs[i]
            at[mistakes] = i
            mistakes += 1
    return mistakes


@compiled
def replay_block(X: np.ndarray, signs: np.ndarray, at: np.ndarray, eta: float, intercept: bool) -> np.ndarray:
    """Return (w, b) (d + 1,) after updates on the rows `at` of X, in order: the arithmetic of
    `perceptron_block`."""
    d = X.shape[1]
    out = np.zeros(d + 1)
    for i in at:
        step = eta * signs[i]
        for j in range(d):
            out[j] += step * X[i, j]
        if intercept:
            out[d] += step
    return out


@compiled(reduction=True)
def _score(x: np.ndarray, w: np.ndarray, b: float) -> float:
    """Return <w, x> + b; the sum may be re-ordered, since only its sign counts and near ties are mistakes
    either way."""
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * w[j]
    return total + b


@compiled
def joint_block(
    X: np.ndarray, y: np.ndarray, order: np.ndarray, eta: float, intercept: bool, W: np.ndarray, b: np.ndarray
) -> int:
    """Visit the rows of X (n, d) in `order`; where another class scores at least as much as y, add the row to the
    weights W (K, d) of y and take it from those of the best other class. Returns the number of such rows."""
    K, d = W.shape
    mistakes = 0
    for i in order:
        right, best, other = 0.0, -np.inf, -1
        for k in range(K):
            score = _score(X[i], W[k], b[k])
            if k == y[i]:
                right = score
            elif score > best:
                best, other = score, k
        if best >= right:
            mistakes += 1
            for j in range(d):
                W[y[i], j] += eta * X[i, j]
                W[other, j] -= eta * X[i, j]
            if intercept:
                b[y[i]] += eta
                b[other] -= eta
    return mistakes

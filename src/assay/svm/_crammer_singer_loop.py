"""Compiled sweeps over the dual variables of all classes together; see `_crammer_singer` for the problem."""

import numpy as np

from assay.jit import compiled
from assay.linear_model._row_loops import add, dot


@compiled(reduction=True)
def row_squares(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """Return |x_i|^2 of every row."""
    found = np.empty(n)
    for i in range(n):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * values[k]
        found[i] = total
    return found


@compiled
def best_duals(linear: np.ndarray, own: int, square: float, cost: float, out: np.ndarray) -> None:
    """Write the t that minimise square/2 |t|^2 + <linear, t> with sum t = 0, t_own <= cost and t_k <= 0 otherwise.

    t_k = min(its bound, (level - linear_k) / square), where `level` makes the sum zero: of the r largest linear_k +
    square * bound_k those are below their bounds that exceed the level.
    """
    K = linear.shape[0]
    ends = linear.copy()
    ends[own] += square * cost
    ends.sort()
    total, r = ends[K - 1] - square * cost, 1
    while r < K and total < r * ends[K - 1 - r]:
        total += ends[K - 1 - r]
        r += 1
    level = total / r
    for k in range(K):
        out[k] = min(cost if k == own else 0.0, (level - linear[k]) / square)


@compiled
def sweep(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    codes: np.ndarray,
    cost: np.ndarray,
    column: float,
    squares: np.ndarray,
    order: np.ndarray,
    theta: np.ndarray,
    W: np.ndarray,
) -> None:
    """Set the dual variables of each row of `order` to their best values, and W to what follows."""
    K, d = W.shape[0], W.shape[1] - 1
    linear, new = np.empty(K), np.empty(K)
    for place in range(order.shape[0]):
        i = order[place]
        if squares[i] <= 0.0:  # a row of zeros: its loss is one whatever W is
            theta[i] = -cost[i] / max(K - 1, 1)
            theta[i, codes[i]] = cost[i]
            continue
        for k in range(K):
            score = dot(starts, columns, values, i, W[k, :d]) + column * W[k, d]
            linear[k] = score + (0.0 if k == codes[i] else 1.0) - squares[i] * theta[i, k]
        best_duals(linear, codes[i], squares[i], cost[i], new)
        for k in range(K):
            change = new[k] - theta[i, k]
            if change != 0.0:
                add(starts, columns, values, i, change, W[k, :d])
                W[k, d] += column * change
                theta[i, k] = new[k]


@compiled
def gap_of(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    codes: np.ndarray,
    cost: np.ndarray,
    column: float,
    theta: np.ndarray,
    W: np.ndarray,
) -> tuple[float, float]:
    """Return the objective at W and the gap to the dual objective at theta."""
    K, d = W.shape[0], W.shape[1] - 1
    half, losses, linear = 0.5 * np.sum(W * W), 0.0, 0.0
    for i in range(codes.shape[0]):
        own, worst = 0.0, -np.inf
        for k in range(K):
            score = dot(starts, columns, values, i, W[k, :d]) + column * W[k, d]
            if k == codes[i]:
                own = score
                worst = max(worst, score)
            else:
                worst = max(worst, score + 1.0)
                linear += theta[i, k]
        losses += cost[i] * (worst - own)
    return half + losses, half + losses + half + linear

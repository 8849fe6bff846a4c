"""Compiled coordinate descent for squared loss with L1 and L2, on second moments alone."""

import numpy as np

from assay.jit import compiled


@compiled(reduction=True)
def gap_of(
    q: np.ndarray, c: np.ndarray, w: np.ndarray, total: float, l1: float, l2: float, positive: bool
) -> float:
    """Return the duality gap at w, with q = c - G w = X^T r, and |r|^2 = total - <w, c> - <w, q>; where w must be
    positive, only q_j > l1 binds.
    """
    size, largest, residual = 0.0, 0.0, total
    for j in range(w.shape[0]):
        residual -= w[j] * (c[j] + q[j])
        largest = max(largest, q[j] if positive else abs(q[j]))
    shorten = 1.0 if l2 > 0.0 or largest <= l1 else l1 / largest
    for j in range(w.shape[0]):
        v = shorten * q[j]
        beyond = (v if positive else abs(v)) - l1
        if beyond <= 0.0 or l2 == 0.0:
            size += l1 * abs(w[j]) + 0.5 * l2 * w[j] * w[j] - v * w[j]
        else:
            sign = 1.0 if v > 0.0 else -1.0
            size += 0.5 * l2 * (w[j] - sign * beyond / l2) ** 2 + l1 * (abs(w[j]) - sign * w[j])
    return max(size, 0.0) + 0.5 * (1.0 - shorten) ** 2 * max(residual, 0.0)


@compiled(reduction=True)
def _subtract(q: np.ndarray, column: np.ndarray, factor: float) -> None:
    for k in range(q.shape[0]):
        q[k] -= factor * column[k]


@compiled
def descend(
    G: np.ndarray,
    c: np.ndarray,
    q: np.ndarray,
    w: np.ndarray,
    total: float,
    l1: float,
    l2: float,
    positive: bool,
    target: float,
    max_sweeps: int,
) -> tuple[int, float]:
    """Minimise 1/2 w'Gw - c'w + l1 |w|_1 + l2/2 |w|^2 from w, until the duality gap is at most `target`; over
    w >= 0 if it must be positive.

    q = c - G w comes in and is kept up to date. Sweeps run over the columns that are in use; the others are looked at
    when those have settled, and join if they should not be zero. Returns the number of sweeps and the gap.
    """
    d = w.shape[0]
    used = np.empty(d, dtype=np.bool_)
    for j in range(d):
        used[j] = w[j] != 0.0 or (q[j] if positive else abs(q[j])) > l1
    gap = gap_of(q, c, w, total, l1, l2, positive)
    settled, sweeps = 0.1, 0
    while sweeps < max_sweeps and gap > target:
        moved = np.inf
        limit = settled * target
        while moved > limit and sweeps < max_sweeps:
            moved = 0.0
            for j in range(d):
                if not used[j] or G[j, j] <= 0.0:
                    continue
                pull = q[j] + G[j, j] * w[j]
                reach = (pull if positive else abs(pull)) - l1
                new = 0.0 if reach <= 0.0 else (reach if pull > 0.0 else -reach) / (G[j, j] + l2)
                step = new - w[j]
                if step != 0.0:
                    _subtract(q, G[j], step)
                    w[j] = new
                    moved += step * step * (G[j, j] + l2)
            sweeps += 1
        gap = gap_of(q, c, w, total, l1, l2, positive)
        settled *= 0.1
        for j in range(d):
            used[j] = used[j] or (q[j] if positive else abs(q[j])) > l1
    return sweeps, gap

"""Compiled steps that learners share: product and update of one packed row, a fast shuffle, coordinate descent for
squared loss with L1 and L2 on second moments alone, and whether an array is the one that was seen before, without
keeping it.
"""

import numpy as np

from assay.jit import compiled

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@compiled(reduction=True)
def dot(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, i: int, w: np.ndarray) -> float:
    """Return <x_i, w>."""
    total = 0.0
    first = starts[i]
    if columns.size:
        for k in range(first, starts[i + 1]):
            total += values[k] * w[columns[k]]
    else:
        for j in range(w.shape[0]):
            total += values[first + j] * w[j]
    return total


@compiled
def add(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, i: int, factor: float, w: np.ndarray) -> None:
    """Add factor * x_i to w."""
    first = starts[i]
    if columns.size:
        for k in range(first, starts[i + 1]):
            w[columns[k]] += factor * values[k]
    else:
        for j in range(w.shape[0]):
            w[j] += factor * values[first + j]


@compiled
def shuffle(order: np.ndarray, seed: int) -> None:
    """Put `order` into a random order in place: Fisher and Yates, with the generator xorshift32 started at the seed (at
    1 if its last 32 bits are zero). scikit-learn's sequential learners draw their orders in this way."""
    state, n = np.uint32(seed), order.shape[0]
    if state == 0:
        state = np.uint32(1)
    for i in range(n - 1):
        state ^= np.uint32(state << np.uint32(13))
        state ^= np.uint32(state >> np.uint32(17))
        state ^= np.uint32(state << np.uint32(5))
        j = i + np.int64(state & np.uint32(0x7FFFFFFF)) % (n - i)
        order[i], order[j] = order[j], order[i]


@compiled(reduction=True)
def gap_of(q: np.ndarray, c: np.ndarray, w: np.ndarray, total: float, l1: float, l2: float, positive: bool) -> float:
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


@compiled
def mixed_sums(words: np.ndarray) -> tuple[np.uint64, np.uint64]:
    """Return two sums over 64-bit words, each mixed with its place (splitmix64; Steele, Lea and Flood 2014)."""
    total, odd, place = np.uint64(0), np.uint64(0), np.uint64(0)
    for k in range(words.shape[0]):
        place += _STEP
        z = words[k] + place
        z = (z ^ (z >> np.uint64(30))) * _FIRST
        z = (z ^ (z >> np.uint64(27))) * _SECOND
        z ^= z >> np.uint64(31)
        total += z
        odd ^= z
    return total, odd


def mark(*arrays: np.ndarray | None) -> tuple[object, ...] | None:
    """Return numbers that differ, up to a chance of 2^-64, where any entry of the arrays does; None if one of them is
    not a block of 64-bit numbers.

    >>> a = np.arange(6.0)
    >>> mark(a) == mark(a.copy()), mark(a) == mark(a[::-1].copy())
    (True, False)
    """
    results: list[object] = []
    for array in arrays:
        if array is None:
            results.append(None)
            continue
        if not isinstance(array, np.ndarray) or array.dtype.itemsize != 8 or array.dtype.kind not in "fiu":
            return None
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            return None
        words = (array if array.flags.c_contiguous else array.T).reshape(-1).view(np.uint64)
        results += [array.shape, array.flags.c_contiguous, array.dtype.kind, *mixed_sums(words)]
    return tuple(results)

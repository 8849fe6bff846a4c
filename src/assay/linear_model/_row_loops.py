"""Compiled steps that sequential learners share: product and update of one packed row, and a fast shuffle."""

import numpy as np

from assay.jit import compiled


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

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
    """Put `order` into a random order in place: Fisher and Yates, with the generator xorshift64* started at
    seed > 0."""
    state = np.uint64(seed)
    for i in range(order.shape[0] - 1, 0, -1):
        state ^= state >> np.uint64(12)
        state ^= state << np.uint64(25)
        state ^= state >> np.uint64(27)
        drawn = (state * np.uint64(2685821657736338717)) >> np.uint64(32)
        j = np.int64((drawn * np.uint64(i + 1)) >> np.uint64(32))
        order[i], order[j] = order[j], order[i]

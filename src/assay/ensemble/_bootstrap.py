"""Which rows a member of an ensemble is trained on: drawn by a generator that a certificate can name and repeat.

SplitMix64 (Steele, Lea and Flood 2014): from the state mix(seed), draw number i is mix(state + i gamma) modulo
2^64. With replacement, draw i picks the row number floor(high 32 bits * n / 2^32); without, the rows with the
smallest draws are picked. The certificate's checker has the same few lines, written again from SPEC.md.
"""

import numpy as np

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def bag(seed: int, n: int, size: int, replace: bool = True) -> np.ndarray:
    """Return `size` row numbers out of 0 .. n - 1; without replacement they are distinct and ascending."""
    if replace:
        return ((_draws(seed, size) >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)).astype(np.int64)
    return np.sort(np.argsort(_draws(seed, n), kind="stable")[:size])


def _draws(seed: int, count: int) -> np.ndarray:
    start = _mix(np.array([seed], dtype=np.uint64))
    return _mix(start + np.arange(1, count + 1, dtype=np.uint64) * _GAMMA)


def _mix(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))

"""Rows and folds drawn by a seed, so that whoever checks can draw them again.

Each row number has a random key, which is the seed's: the state of the generator splitmix64 (Steele, Lea and Flood
2014) is set from seed, purpose and row number in turn. Rows in the order of their keys are a random permutation.
"""

import numpy as np

from assay.messages import Message

HOLDOUT, GROUPS, FOLDS, RESERVE = 1, 2, 3, 4
"""Purposes: draws for one say nothing about draws for another."""

_MASK = 2**64 - 1


def permutation(n: int, seed: int, purpose: int) -> np.ndarray:
    """Return the numbers 0..n-1 in random order.

    >>> permutation(5, 0, HOLDOUT).tolist() == permutation(5, 0, HOLDOUT).tolist()
    True
    """
    state = _scramble(_scramble(seed & _MASK) ^ purpose)
    keys = np.bitwise_xor(np.uint64(state), np.arange(n, dtype=np.uint64))
    keys += np.uint64(0x9E3779B97F4A7C15)
    keys ^= keys >> np.uint64(30)
    keys *= np.uint64(0xBF58476D1CE4E5B9)
    keys ^= keys >> np.uint64(27)
    keys *= np.uint64(0x94D049BB133111EB)
    keys ^= keys >> np.uint64(31)
    return np.argsort(keys, kind="stable")


def fold_of_rows(n: int, folds: int, seed: int) -> np.ndarray:
    """Return the fold of each of n rows, drawn without looking at them; sizes differ by at most one."""
    if not 2 <= folds <= n // 2:
        raise ValueError(Message("folds.few", folds=folds, rows=n))
    found = np.empty(n, dtype=np.int64)
    found[permutation(n, seed, FOLDS)] = np.arange(n) % folds
    return found


def _scramble(state: int) -> int:
    """Return one output of splitmix64."""
    z = (state + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)

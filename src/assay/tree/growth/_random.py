"""Compiled pseudo-random numbers: the same bits on every machine, from a state of one word."""

import numpy as np

from assay.jit import compiled


@compiled
def random_bits(state):
    """Return 64 pseudo-random bits and step `state` (1,) (SplitMix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def below(state, n):
    """Return a pseudo-random number from 0 .. n - 1, for n up to 2^32."""
    return np.int64(((random_bits(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@compiled
def share(state):
    """Return a pseudo-random number from [0, 1), a multiple of 2^-53."""
    return np.float64(random_bits(state) >> np.uint64(11)) * 2.0**-53


@compiled
def draw_columns(order, begin, end, state):
    """Put columns drawn evenly from order[begin:] at places begin .. end - 1."""
    d = order.shape[0]
    for i in range(begin, end):
        j = i + below(state, d - i)
        order[i], order[j] = order[j], order[i]

"""Compiled pseudo-random numbers, the same bits on every machine, from a state of one word; compiled sorting."""

import numpy as np

from assay.jit import compiled

DIGIT = 11
_PASSES = 6  # digits of 64 bits
_FEW = 400  # rows up to which merging is faster than counting digits
_SIGN = np.uint64(1 << 63)
_SMALL = 40  # rows up to which insertion is the fastest sort


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


@compiled
def next_column(order, drawn, drawing, state):
    """Return the column that a node tries after `drawn` others: the next in order, or one drawn from the rest."""
    if drawing:
        draw_columns(order, drawn, drawn + 1, state)
    return order[drawn]


# Sorting
# ----------------------------------------------------------------------------------------------------------------------


@compiled
def sort_column(x, order):
    """Write the row numbers of x (n,), complete and contiguous, by ascending value to `order`; equals keep their order.

    A double's bits, all of them flipped if it is negative and the first one if not, are integers in the same order;
    they are sorted digit by digit from the last (a digit that all rows share is left out).
    """
    n = x.shape[0]
    if n <= _FEW:
        order[:] = np.argsort(x, kind="mergesort")
        return
    keys, moved = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint64)
    rows, moved_rows = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint32)
    counts = np.zeros((_PASSES, 1 << DIGIT), dtype=np.uint32)
    mask = np.uint64((1 << DIGIT) - 1)
    for i in range(n):
        keys[i] = np.float64(x[i] + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    for i in range(n):
        key = keys[i]
        key = ~key if key & _SIGN else key | _SIGN
        keys[i], rows[i] = key, i
        for p in range(_PASSES):
            counts[p, (key >> np.uint64(DIGIT * p)) & mask] += np.uint32(1)
    for p in range(_PASSES):
        shift, places = np.uint64(DIGIT * p), counts[p]
        if places[(keys[0] >> shift) & mask] == n:
            continue
        total = np.uint32(0)
        for k in range(1 << DIGIT):
            here = places[k]
            places[k] = total
            total += here
        for i in range(n):
            digit = (keys[i] >> shift) & mask
            at = np.uint64(places[digit])
            moved[at], moved_rows[at] = keys[i], rows[i]
            places[digit] += np.uint32(1)
        keys, moved, rows, moved_rows = moved, keys, moved_rows, rows
    for i in range(n):
        order[i] = rows[i]


@compiled
def code_column(x, codes, values):
    """Write the distinct values of x, ascending, and the place of each row's value among them; return how many."""
    n = x.shape[0]
    order = np.empty(n, dtype=np.int32)
    sort_column(x, order)
    place = 0
    values[0] = x[order[0]]
    for i in range(n):
        if x[order[i]] > values[place]:
            place += 1
            values[place] = x[order[i]]
        codes[order[i]] = place
    return place + 1


@compiled
def sort_keys(keys, spare, counts, low, high):
    """Sort keys by their upper 32 bits, which lie between low and high."""
    n = keys.shape[0]
    if n <= _SMALL:
        for i in range(1, n):
            key = keys[i]
            j = i
            while j > 0 and keys[j - 1] > key:
                keys[j] = keys[j - 1]
                j -= 1
            keys[j] = key
        return
    base, span, shift = np.uint64(low), high - low, np.uint64(32)
    source, target, flips = keys, spare, 0
    while True:
        size = min(span + 1, 1 << DIGIT)
        mask = np.uint64((1 << DIGIT) - 1)
        counts[:size] = 0
        for i in range(n):
            counts[np.int64((((source[i] >> np.uint64(32)) - base) >> (shift - np.uint64(32))) & mask)] += 1
        total = 0
        for k in range(size):
            here = counts[k]
            counts[k] = total
            total += here
        for i in range(n):
            digit = np.int64((((source[i] >> np.uint64(32)) - base) >> (shift - np.uint64(32))) & mask)
            target[counts[digit]] = source[i]
            counts[digit] += 1
        source, target, flips = target, source, flips + 1
        span >>= DIGIT
        shift += np.uint64(DIGIT)
        if span == 0:
            break
    if flips % 2:
        for i in range(n):
            keys[i] = spare[i]

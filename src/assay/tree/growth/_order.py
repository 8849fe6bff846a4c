"""Compiled sorting of a column of numbers: rows by ascending value, and the codes of the values."""

import numpy as np

from assay.jit import compiled

_DIGIT = 11
_PASSES = 6  # digits of 64 bits
_FEW = 400  # rows up to which merging is faster than counting digits
_SIGN = np.uint64(1 << 63)


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
    counts = np.zeros((_PASSES, 1 << _DIGIT), dtype=np.uint32)
    mask = np.uint64((1 << _DIGIT) - 1)
    for i in range(n):
        keys[i] = np.float64(x[i] + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    for i in range(n):
        key = keys[i]
        key = ~key if key & _SIGN else key | _SIGN
        keys[i], rows[i] = key, i
        for p in range(_PASSES):
            counts[p, (key >> np.uint64(_DIGIT * p)) & mask] += np.uint32(1)
    for p in range(_PASSES):
        shift, places = np.uint64(_DIGIT * p), counts[p]
        if places[(keys[0] >> shift) & mask] == n:
            continue
        total = np.uint32(0)
        for k in range(1 << _DIGIT):
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

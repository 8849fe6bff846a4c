"""A hash of the row number: which rows a draw takes, without a list of them, wherever the rows are kept.

Row i has the 64-bit number hash(seed, i) (the finaliser of SplitMix64: Steele, Lea, Flood, OOPSLA 2014); a draw takes
the rows whose numbers lie below a limit.
"""

import numpy as np

from assay.jit import compiled

TOP = 16  # leading bits by which numbers are counted
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@compiled
def _hash(seed, row):
    z = (np.uint64(row) + np.uint64(1)) * _STEP + seed
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@compiled
def mark_below(seed, limit, first, mark, marks):
    """Set marks[i] to `mark` where the number of row first + i lies below `limit`."""
    for i in range(marks.shape[0]):
        if _hash(seed, first + i) < limit:
            marks[i] = mark


@compiled
def drawn_below(seed, limit, first, start, stop, chosen, taken):
    """Write to chosen[taken], ... those of the places start .. stop - 1 whose rows, first, first + 1, ..., have numbers
    below `limit`; return how many places are taken then."""
    for i in range(start, stop):
        chosen[taken] = i
        taken += np.int64(_hash(seed, first + i - start) < limit)
    return taken


@compiled
def count_leading_bits(seed, n, counts):
    """Count the leading bits of the numbers of rows 0 .. n - 1."""
    for i in range(n):
        counts[_hash(seed, i) >> np.uint64(64 - TOP)] += 1


@compiled
def numbers_with(seed, n, bits, found):
    """Write to `found` the numbers of rows 0 .. n - 1 that have these leading bits."""
    k = 0
    for i in range(n):
        number = _hash(seed, i)
        if number >> np.uint64(64 - TOP) == np.uint64(bits):
            found[k] = number
            k += 1

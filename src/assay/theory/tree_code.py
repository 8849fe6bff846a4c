"""A prefix code for decision trees whose thresholds are any binary numbers; no box is fixed in advance.

Nodes are written level by level. One bit tells a leaf from a split; a leaf names one of K labels (K equally likely
words), a split one of d columns and a threshold t <= ... relative to e, the exponent of the last threshold that was
written for that column (0 before the first):

    0                                    t = 0
    1, sign, gamma(z), gamma(L), rest    t = +- m 2^(E - L + 1), m odd with L bits, z the place of E - e in
                                         0, 1, -1, 2, -2, ...; the L - 2 bits of m between its first and last

gamma is Elias' code of 1, 2, 3, ... with 2 floor(log2 i) + 1 bits, whose words have sum 2^-length equal to 1. So the
words of thresholds have sum exactly 1 too: 1/2 for zero and 1/2 * 2 * 1/2 * 1 * sum_L 2^-gamma(L) 2^(L-2) 2^-(L-2)
for the others. The sum over all finite trees is at most 1, since it is the probability that a branching process with
two children or none, equally likely, dies out (Kraft's inequality). 2^-bits is a prior for `pac.occam_bound`.
"""

import math
from collections.abc import Iterator

import numpy as np

_LONGEST = 53
_FINER = 12  # exponents below that of the upper end which are tried for a short threshold


def gamma_bits(i: int) -> int:
    """Return the length of Elias' gamma code of i >= 1.

    >>> [gamma_bits(i) for i in (1, 2, 3, 4, 8)]
    [1, 3, 3, 5, 7]
    """
    return 2 * i.bit_length() - 1


def exponent(t: float) -> int:
    """Return E with 2^E <= |t| < 2^(E + 1), for t other than 0."""
    return math.frexp(t)[1] - 1


def threshold_bits(t: float, previous: int = 0) -> int:
    """Return the length of the code of a threshold after one of exponent `previous`.

    >>> threshold_bits(0.0), threshold_bits(1.0), threshold_bits(2.5), threshold_bits(2.5, previous=1)
    (1, 4, 9, 7)
    """
    if t == 0:
        return 1
    odd = abs(t).as_integer_ratio()[0]
    length = (odd // (odd & -odd)).bit_length()
    return 2 + gamma_bits(_place(exponent(t) - previous)) + gamma_bits(length) + max(0, length - 2)


def _place(shift: int) -> int:
    return 2 * shift if shift > 0 else 1 - 2 * shift


def shortest(low: float, high: float, previous: int = 0) -> float:
    """Return a threshold t with low <= t < high whose code is short: the shortest of those not much finer than high.

    >>> shortest(2.3, 2.9), shortest(-0.1, 7.0), shortest(96.5, 101.0, previous=6)
    (2.5, 0.0, 100.0)
    """
    if low <= 0 < high:
        return 0.0
    best = low
    for t in _candidates(low, high, previous):
        if threshold_bits(t, previous) < threshold_bits(best, previous):
            best = t
    return best


def _candidates(low: float, high: float, previous: int) -> Iterator[float]:
    """Yield, for each exponent and length, the number of that kind in [low, high) that is next to its end nearest 0."""
    sign = 1.0 if low > 0 else -1.0
    near, far = (low, high) if low > 0 else (-high, -low)  # magnitudes: [near, far), or (near, far] below zero
    top = exponent(far)
    least = max(exponent(near) if near > 0 else top - _FINER, top - _FINER)
    for E in sorted({*range(least, top + 1), previous}):
        start = max(near, math.ldexp(1.0, E))
        for length in range(1, _LONGEST + 1):
            unit = math.ldexp(1.0, E - length + 1)
            if unit == 0:
                break
            m = math.ceil(start / unit)
            t = sign * m * unit
            if t and not low <= t < high:
                t = sign * (m + 1) * unit
            if t and low <= t < high:
                yield t
                break


def tree_bits(column: np.ndarray, threshold: np.ndarray, child: np.ndarray, n_columns: int, n_labels: int) -> float:
    """Return the length of the code of a binary tree: children of node i are child[i] and child[i] + 1, -1 for a leaf.

    Equally likely words of d columns and K labels count as log2 d and log2 K bits.

    >>> stump = [0, -1, -1], [2.5, 0.0, 0.0], [1, -1, -1]
    >>> tree_bits(*map(np.array, stump), n_columns=4, n_labels=2)  # 3 for the shape, 2, 9, and 1 for each leaf
    16.0
    """
    previous: dict[int, int] = {}
    bits, level = 0.0, [0]
    while level:
        below: list[int] = []
        for at in level:
            bits += 1
            if child[at] < 0:
                bits += math.log2(n_labels)
                continue
            j, t = int(column[at]), float(threshold[at])
            bits += math.log2(n_columns) + threshold_bits(t, previous.get(j, 0))
            if t:
                previous[j] = exponent(t)
            below += (int(child[at]), int(child[at]) + 1)
        level = below
    return bits

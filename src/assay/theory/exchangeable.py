"""Two samples of one source: exact tests of whether new rows look like old ones.

If n old and m new rows are exchangeable, which of the n + m are the new ones is a draw without replacement: every
p-value here is a tail of the hypergeometric distribution. For many rows a tail is replaced by Hoeffding's bound of it,
which is above it.

References: Fisher 1935; Tarone 1990 (levels that cannot be significant cost nothing); Hoeffding 1963, section 6
(drawing without replacement).
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from assay.theory import _checks as check
from assay.theory.concentration import kl

_EXACT = 20_000  # draws up to which a tail is summed


def at_most(k: int, total: int, marked: int, drawn: int) -> float:
    """Return P[X <= k], or a bound of it, for the marked ones among `drawn` of `total`, drawn without replacement.

    >>> round(at_most(0, 10, 5, 3), 6)  # 5/10 4/9 3/8
    0.083333
    """
    if k >= min(marked, drawn):
        return 1.0
    if k < max(0, marked + drawn - total):
        return 0.0
    if min(marked, drawn) <= _EXACT:
        return _summed(k, total, marked, drawn)
    if k >= marked * drawn / total:
        return 1.0
    bounds = (size * kl(k / size, other / total) for size, other in ((drawn, marked), (marked, drawn)))
    return min(1.0, math.exp(-max(bounds)) * (1 + 1e-9))


@lru_cache(maxsize=4096)
def _summed(k: int, total: int, marked: int, drawn: int) -> float:
    x = np.arange(max(0, marked + drawn - total), k + 1, dtype=np.float64)
    own = gammaln(marked + 1) - gammaln(x + 1) - gammaln(marked - x + 1)
    other = gammaln(total - marked + 1) - gammaln(drawn - x + 1) - gammaln(total - marked - drawn + x + 1)
    every = gammaln(total + 1) - gammaln(drawn + 1) - gammaln(total - drawn + 1)
    error = 2.0**-48 * float(gammaln(total + 1) + 1)  # of the logarithms, each rounded to a few units
    return min(1.0, float(np.exp(own + other - every).sum()) * math.exp(error))


def at_least(k: int, total: int, marked: int, drawn: int) -> float:
    """Return P[X >= k], or a bound of it; see `at_most`."""
    return at_most(drawn - k, total, total - marked, drawn)


def two_sided(k: int, total: int, marked: int, drawn: int) -> float:
    """Return twice the smaller tail, at most 1: Fisher's exact test of a table of two rows and two columns.

    >>> two_sided(5, 20, 10, 10)
    1.0
    """
    tails = at_most(k, total, marked, drawn), at_least(k, total, marked, drawn)
    return min(1.0, 2 * min(tails))


def levels_differ(old: ArrayLike, new: ArrayLike, alarm: float, unlisted: tuple[int, int] = (0, 0)) -> bool:
    """Tell whether some level is commoner, or rarer, in new rows than in old ones; a false alarm has chance `alarm`.

    So many of the old and of the new rows are `unlisted`: they have levels that are none of these. Each level is tested
    exactly against all others. Of the levels of both samples together, those that are so rare that no split of their
    rows would be significant need not be paid for (Tarone): with K the least number such that at most K of them could
    be significant at alarm / K, each is tested at that. Unlisted levels that could be are counted as well.
    """
    first, second = (np.asarray(one, dtype=np.int64) for one in (old, new))
    m = int(second.sum()) + unlisted[1]
    total = int(first.sum()) + unlisted[0] + m
    alarm = check.failure(alarm)
    both = first + second
    if not m or m == total:
        return False
    least = {count: two_sided(_end(count, total, m), total, count, m) for count in set(both.tolist())}
    paid = 1
    while True:
        able = [count for count in both.tolist() if count and least[count] <= alarm / paid]
        hidden = _hidden(sum(unlisted), total, m, alarm / paid)
        if len(able) + hidden <= paid:
            break
        paid += 1
    limit = alarm / paid
    tested = np.flatnonzero([count > 0 and least[count] <= limit for count in both.tolist()])
    return any(two_sided(int(second[i]), total, int(both[i]), m) <= limit for i in tested)


def _end(count: int, total: int, m: int) -> int:
    """Return the more extreme of the least and the largest number of new rows that a level of so many rows can have."""
    fewest, most = max(0, count + m - total), min(count, m)
    return fewest if at_most(fewest, total, count, m) < at_least(most, total, count, m) else most


def _hidden(rows: int, total: int, m: int, limit: float) -> int:
    """Return how many levels that could be significant can hide in so many rows."""
    count = 1
    while count <= rows:
        if two_sided(_end(count, total, m), total, count, m) <= limit:
            return rows // count
        count += 1
    return 0


def numbers_differ(ranks: ArrayLike, n: int, below: ArrayLike, up_to: ArrayLike, m: int, alarm: float) -> bool:
    """Tell whether m new numbers lie otherwise than n old ones; a false alarm has chance `alarm`.

    For the old number of each of the ranks 1..n, fixed in advance, `below` and `up_to` count the new numbers below it,
    and not above it. With ties broken by lot, the new numbers before the j-th old one are as many as r or more if and
    only if of the first j + r - 1 of all numbers at most j - 1 are old; ties make `below` smaller and `up_to` larger,
    and both tails the safer.
    """
    limit = check.failure(alarm) / (2 * max(1, len(np.atleast_1d(ranks))))
    for j, fewer, more in zip(np.atleast_1d(ranks).tolist(), np.atleast_1d(below), np.atleast_1d(up_to), strict=True):
        later = at_most(j - 1, n + m, n, j + int(fewer) - 1) if fewer else 1.0
        earlier = at_least(j, n + m, n, j + int(more))
        if min(later, earlier) <= limit:
            return True
    return False

"""Exchangeable rows: split conformal prediction, and exact two-sample tests of drift.

Split conformal prediction finds the calibration score that covers a new row with a given probability. Scores s_1..s_m
come from a model trained on other rows; the prediction set of a new row holds every label whose score is at most the
j-th smallest of them. If rows and the new row are exchangeable, it covers with probability at least j / (m + 1). For
independent rows the coverage given the calibration set has, without ties, the Beta(j, m+1-j) law.

References: Vovk, Gammerman and Shafer 2005; Lei et al. 2018; Vovk 2012 and 2015; Barber, Candes, Ramdas and Tibshirani
2021; Vovk and Wang 2020.

Drift: if n old and m new rows are exchangeable, which of the n + m are the new ones is a draw without replacement:
every p-value here is a tail of the hypergeometric distribution. For many rows a tail is replaced by Hoeffding's bound
of it, which is above it.

References: Fisher 1935; Tarone 1990 (levels that cannot be significant cost nothing); Hoeffding 1963, section 6
(drawing without replacement).
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, gammaln

from assay.theory import _checks as check
from assay.theory.concentration import kl, log_binomial_cdf


def conformal_index(m: int, alpha: float) -> int:
    """Return j = ceil((m + 1)(1 - alpha)): the j-th smallest of m scores covers with chance >= 1 - alpha.

    Parameters
    ----------
    m : int
        Number of calibration scores.
    alpha : float
        Largest probability of a miss: 1 - coverage.

    Returns
    -------
    int
        Rank of the threshold.

    Raises
    ------
    ValueError
        No rank of m scores suffices.

    Examples
    --------
    >>> conformal_index(19, 0.1)
    18
    """
    m, alpha = check.whole("m", m), check.probability("alpha", alpha, "the share of rows that may be missed")
    j = math.ceil((m + 1) * (1 - Fraction(str(alpha))))
    if j > m:
        raise ValueError(f"{m} scores cannot promise a coverage of {1 - alpha:g}; it takes 1/alpha - 1 of them.")
    return j


def cross_index(rows: int, folds: int, coverage: float) -> int:
    """Return how many rows must be as far off as an answer, for it to be in the cross-conformal set of a new row.

    Let model k be made without the n_k rows of fold k, and c_k of these be at least as far off by it as the answer y to
    a new row is. If rows are exchangeable, p_k = (c_k + 1)/(n_k + 1) of the true answer is at or below u with a chance
    of at most u, whatever the model. By convexity (2 - p/a)+ of any weighted mean p of them is at most the mean of
    (2 - p_k/a)+, each of which is 2 a at most in expectation: p <= a with a chance of at most 2 a (Rueschendorf 1982,
    Vovk and Wang 2020). With weights (n_k + 1)/(n + K) p is (c + K)/(n + K), c the sum of the c_k: answers with p above
    a = (1 - coverage)/2, that is c > a (n + K) - K, cover. Folds may differ in size, and models may depend on the
    order of their rows.

    Parameters
    ----------
    rows : int
        Number of training rows.
    folds : int
        Number of folds.
    coverage : float
        Coverage asked for.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    ValueError
        So few rows cannot have that coverage.

    Examples
    --------
    >>> cross_index(200, 5, 0.9)
    6
    """
    rows, folds = check.whole("rows", rows), check.whole("folds", folds)
    alpha = (1 - Fraction(str(check.probability("coverage", coverage)))) / 2
    enough = math.floor(alpha * (rows + folds)) - folds + 1
    if enough < 1:
        raise ValueError(
            f"{rows} rows in {folds} folds cannot promise a coverage of {coverage:g}: the most is "
            f"{1 - 2 * folds / (rows + folds):.4g}."
        )
    return enough


def conditional_coverage(j: int, m: int, delta: float) -> float:
    """Return the coverage that the j-th smallest of m scores has with chance 1 - delta over the calibration.

    The delta quantile of Beta(j, m+1-j), rounded down; independent rows.

    Parameters
    ----------
    j : int
        Rank of the score that serves as threshold, from 1.
    m : int
        Number of calibration scores.
    delta : float
        Probability over the calibration rows with which the statement may fail.

    Returns
    -------
    float
        Lower bound of the coverage.
    """
    m = check.whole("m", m)
    if check.whole("j", j) > m:
        raise ValueError(f"j must be at most m; got j = {j}, m = {m}.")
    return check.down(float(betaincinv(j, m + 1 - j, check.failure(delta))))


def conditional_index(m: int, alpha: float, delta: float) -> int:
    """Return the smallest j whose coverage is >= 1 - alpha with chance 1 - delta over the calibration.

    The smallest j with P[Bin(m, 1-alpha) >= j] <= delta.

    Parameters
    ----------
    m : int
        Number of calibration scores.
    alpha : float
        Largest probability of a miss: 1 - coverage.
    delta : float
        Probability over the calibration rows with which the statement may fail.

    Returns
    -------
    int
        Rank of the threshold.

    Raises
    ------
    ValueError
        No rank of m scores suffices.
    """
    m, alpha = check.whole("m", m), check.probability("alpha", alpha)
    log_delta = math.log(check.failure(delta))
    low, high = 0, m + 1  # P[Bin(m, 1-alpha) >= j] = P[Bin(m, alpha) <= m - j]
    while high - low > 1:
        j = (low + high) // 2
        low, high = (low, j) if log_binomial_cdf(m - j, m, alpha) <= log_delta else (j, high)
    if high > m:
        raise ValueError(f"{m} scores cannot promise a coverage of {1 - alpha:g} at confidence {1 - delta:g}.")
    return high


def threshold(scores: ArrayLike, j: int) -> float:
    """Return the j-th smallest score.

    Parameters
    ----------
    scores : array-like
        Calibration scores.
    j : int
        Rank of the score that serves as threshold, from 1.

    Returns
    -------
    float
        The score.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or np.isnan(values).any():
        raise ValueError("scores must be a non-empty one-dimensional array of numbers.")
    if not 1 <= check.whole("j", j) <= values.size:
        raise ValueError(f"j must lie in 1..{values.size}; got {j}.")
    return float(np.partition(values, j - 1)[j - 1])


def jackknife_plus(predictions: ArrayLike, residuals: ArrayLike, alpha: float) -> tuple[float, float]:
    """Return the interval for a new row that covers with chance at least 1 - 2 alpha.

    predictions[i] is the prediction for the new row, residuals[i] the absolute residual of row i, both of
    the model trained without row i; exchangeable rows, a learner that treats rows alike (Barber et al.
    2021, theorem 1).

    Parameters
    ----------
    predictions : array-like
        Prediction for the new row of each model trained without one row.
    residuals : array-like
        Absolute residual of each row by the model trained without it.
    alpha : float
        Largest probability of a miss: 1 - coverage.

    Returns
    -------
    tuple of float
        Lower and upper end.
    """
    f, r = np.asarray(predictions, dtype=np.float64), np.asarray(residuals, dtype=np.float64)
    if f.ndim != 1 or f.shape != r.shape or not np.all(r >= 0.0):
        raise ValueError("predictions and residuals must be lists of one length, residuals >= 0.")
    j = conformal_index(f.size, alpha)
    return -threshold(-(f - r), j), threshold(f + r, j)


_EXACT = 20_000  # draws up to which a tail is summed


def at_most(k: int, total: int, marked: int, drawn: int) -> float:
    """Return P[X <= k], or a bound of it, for the marked ones among `drawn` of `total`, drawn without replacement.

    Parameters
    ----------
    k : int
        Number of marked rows drawn.
    total : int
        Number of rows.
    marked : int
        Number of marked rows.
    drawn : int
        Number of rows drawn without replacement.

    Returns
    -------
    float
        The probability, or an upper bound of it.

    Examples
    --------
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
    """Return P[X >= k], or a bound of it; see `at_most`.

    Parameters
    ----------
    k : int
        Number of marked rows drawn.
    total : int
        Number of rows.
    marked : int
        Number of marked rows.
    drawn : int
        Number of rows drawn without replacement.

    Returns
    -------
    float
        The probability, or an upper bound of it.
    """
    return at_most(drawn - k, total, total - marked, drawn)


def two_sided(k: int, total: int, marked: int, drawn: int) -> float:
    """Return twice the smaller tail, at most 1: Fisher's exact test of a table of two rows and two columns.

    Parameters
    ----------
    k : int
        Number of marked rows drawn.
    total : int
        Number of rows.
    marked : int
        Number of marked rows.
    drawn : int
        Number of rows drawn without replacement.

    Returns
    -------
    float
        The p-value.

    Examples
    --------
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

    Parameters
    ----------
    old : array-like
        Counts of the levels in the old rows.
    new : array-like
        Counts of the same levels in the new rows.
    alarm : float
        Probability of a false alarm.
    unlisted : tuple of int, default=(0, 0)
        Numbers of old and of new rows with levels that are not listed.

    Returns
    -------
    bool
        Whether a difference is significant.
    """
    first, second = (np.asarray(item, dtype=np.int64) for item in (old, new))
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

    Parameters
    ----------
    ranks : array-like
        Ranks of old numbers, fixed in advance.
    n : int
        Number of old numbers.
    below : array-like
        For each rank: new numbers below the old one.
    up_to : array-like
        For each rank: new numbers not above the old one.
    m : int
        Number of new numbers.
    alarm : float
        Probability of a false alarm.

    Returns
    -------
    bool
        Whether a difference is significant.
    """
    limit = check.failure(alarm) / (2 * max(1, len(np.atleast_1d(ranks))))
    for j, fewer, more in zip(np.atleast_1d(ranks).tolist(), np.atleast_1d(below), np.atleast_1d(up_to), strict=True):
        later = at_most(j - 1, n + m, n, j + int(fewer) - 1) if fewer else 1.0
        earlier = at_least(j, n + m, n, j + int(more))
        if min(later, earlier) <= limit:
            return True
    return False

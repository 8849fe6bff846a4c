"""Bounds through the growth function: how many patterns of right and wrong a class can make on N points.

`log_growth` is ln of the growth function, given either as the number at the N that the docstring names or
as a function of N such as `HalfSpaces(2).log_growth`. Every bound holds for all hypotheses of the class at
once, whatever the distribution; rows are independent, the class is fixed before they are seen.

References: Vapnik and Chervonenkis 1971; Sauer 1972; Cover 1965; Blumer, Ehrenfeucht, Haussler and Warmuth
1989; Mohri, Rostamizadeh and Talwalkar 2018, chapter 3.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from scipy.special import betaincinv

from assay.theory import _checks as check
from assay.theory.concentration import binomial_sum, log_binomial_sum, log_hypergeometric_cdf

LogGrowth = float | Callable[[int], float]


def sauer(n: int, d: int) -> int:
    """Return C(n,0) + ... + C(n,d): the most patterns on n points that a class of VC dimension d can make.

    Sauer's lemma (Sauer 1972; Shelah 1972; Vapnik and Chervonenkis 1971).

    >>> [sauer(n, 2) for n in range(1, 7)]
    [2, 4, 7, 11, 16, 22]
    """
    return binomial_sum(check.whole("n", n), check.whole("d", d, low=0))


def log_sauer(n: int, d: int) -> float:
    """Return ln of Sauer's sum, rounded up; fast for millions of points."""
    return log_binomial_sum(check.whole("n", n), check.whole("d", d, low=0))


def log_sauer_simple(n: int, d: int) -> float:
    """Return d ln(e n / d), which is at least ln of Sauer's sum for n >= d >= 1."""
    n, d = (
        check.whole("n", n),
        check.whole("d", d, why="the closed form divides by d; for d = 0 the growth is 1"),
    )
    if n < d:
        raise ValueError(f"n must be at least d (the closed form (en/d)^d needs it); got n = {n}, d = {d}.")
    return d * (1.0 + math.log(n / d))


def cover(n: int, dimension: int) -> int:
    """Return 2 (C(n-1,0) + ... + C(n-1,dimension-1)): dichotomies by hyperplanes through the origin.

    Exact for points in general position in R^dimension, an upper bound for all (Cover 1965). Affine
    hyperplanes in R^d are those through the origin of R^(d+1).

    >>> [cover(n, 3) for n in range(2, 7)]
    [4, 8, 14, 22, 32]
    """
    n, dimension = check.whole("n", n), check.whole("dimension", dimension)
    return 2 * binomial_sum(n - 1, dimension - 1)


def log_cover(n: int, dimension: int) -> float:
    """Return ln of Cover's count, rounded up."""
    n, dimension = check.whole("n", n), check.whole("dimension", dimension)
    return math.log(2.0) + log_binomial_sum(n - 1, dimension - 1)


def uniform_failure(m: int, epsilon: float, log_growth: LogGrowth) -> float:
    """Return 4 Pi(2m) exp(-m epsilon^2 / 8), at most 1: the chance that some h has |L - L_m| >= epsilon.

    Theorem of Vapnik and Chervonenkis 1971; `log_growth` is taken at 2m.
    """
    m, epsilon = check.whole("m", m), check.probability("epsilon", epsilon)
    log_bound = math.log(4.0) + check.log_growth_at(log_growth, 2 * m) - m * epsilon * epsilon / 8.0
    return check.up(math.exp(min(0.0, log_bound)))


def uniform_deviation(m: int, delta: float, log_growth: LogGrowth) -> float:
    """Return sqrt(8 (ln Pi(2m) + ln(4/delta)) / m), the epsilon at which `uniform_failure` is delta.

    With ln Pi(2m) = d ln(2em/d), as `log_sauer_simple(2*m, d)` gives, it is the textbook VC bound
    sqrt((8 d ln(2em/d) + 8 ln(4/delta)) / m).
    """
    m, log_delta = check.whole("m", m), math.log(check.failure(delta))
    return check.enlarge(math.sqrt(8.0 * (check.log_growth_at(log_growth, 2 * m) + math.log(4.0) - log_delta) / m))


def massart_deviation(n: int, delta: float, log_growth: LogGrowth) -> float:
    """Return sqrt(2 ln Pi(n) / n) + sqrt(ln(1/delta) / (2n)); `log_growth` is taken at n.

    Theorem: L <= L_n + this, for all h. Symmetrisation bounds E sup(L - L_n) by the Rademacher complexity
    of the +-1 patterns, Massart's lemma bounds that by sqrt(2 ln Pi / n), and McDiarmid's inequality adds
    the second term (Mohri et al. 2018, corollary 3.9).
    """
    n, log_delta = check.whole("n", n), math.log(check.failure(delta))
    first = math.sqrt(2.0 * check.log_growth_at(log_growth, n) / n)
    return check.enlarge(first + math.sqrt(-log_delta / (2.0 * n)))


def massart_bound(k: int, n: int, delta: float, log_growth: LogGrowth) -> float:
    """Return the error bound k/n + `massart_deviation`, at most 1."""
    k, n = check.errors(k, n)
    return check.up(k / n + massart_deviation(n, delta, log_growth))


def realizable_growth_bound(n: int, delta: float, log_growth: LogGrowth) -> float:
    """Return (2/n)(log2 Pi(2n) + log2(2/delta)), at most 1: the error of every h without a training error.

    Theorem of Blumer et al. 1989; `log_growth` is taken at 2n. Their condition n >= 8/epsilon holds whenever
    2 Pi(2n)/delta >= 16; otherwise the larger 8/n is returned.
    """
    n, log_delta = check.whole("n", n), math.log(check.failure(delta))
    bits = (check.log_growth_at(log_growth, 2 * n) + math.log(2.0) - log_delta) / math.log(2.0)
    return check.up(2.0 * max(bits, 4.0) / n)


class GhostSample(NamedTuple):
    """An error bound and what proves it: K marked rows among n + M, and the share q of the ghost argument."""

    bound: float
    K: int
    M: int
    q: float


def ghost_sample_bound(
    k: int, n: int, log_growth: LogGrowth, delta: float, M: int | None = None, q: float = 0.5
) -> GhostSample:
    """Return the error bound of any h in the class after k errors in n training rows (ghost sample).

    Theorem. Fix a ghost size M (default 4n) and q before seeing the data. Let K be the smallest number with
    P[at most k of K marked rows fall among n of n+M rows] <= delta q / Pi(n+M), and let the bound be the
    smallest epsilon with P[Bin(M, epsilon) >= K - k] >= q. With probability 1 - delta it holds for every h
    of the class, k being its own number of errors; `log_growth` is taken at n + M.

    Proof. Draw M more rows. If some h has error at least its bound, then with probability q it makes K - k
    or more ghost errors, so at least K errors on all n + M rows. Given these rows as a set, the split is
    uniform; for one pattern with T errors in all, K(k) <= T means k <= k* for some k* because K(k) grows
    with k, and the hypergeometric probability of that is at most delta q / Pi(n+M) since it falls as T
    grows beyond K(k*). There are at most Pi(n+M) patterns, so q P(failure) <= delta q.

    K = n + M + 1 and bound 1 mean that no K does. 20 ms at most for a million rows.

    >>> result = ghost_sample_bound(0, 200, lambda N: log_cover(N, 3), 0.05)
    >>> round(result.bound, 3)
    0.095
    """
    k, n = check.errors(k, n)
    q = check.probability("q", q, "the share of the ghost argument")
    M = 4 * n if M is None else check.whole("M", M)
    target = math.log(check.failure(delta)) + math.log(q) - check.log_growth_at(log_growth, n + M) - 1e-12
    if k == n or log_hypergeometric_cdf(k, n + M, k + M, n) > target:
        return GhostSample(1.0, n + M + 1, M, q)
    low, high = k, k + M
    while high - low > 1:
        middle = (low + high) // 2
        if log_hypergeometric_cdf(k, n + M, middle, n) <= target:
            high = middle
        else:
            low = middle
    ghosts = high - k
    return GhostSample(check.up(float(betaincinv(ghosts, M - ghosts + 1, q)), k / n), high, M, q)

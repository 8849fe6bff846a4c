"""Concentration: deviation of a mean from its expectation, limits of an error rate, and logarithms of binomial tails.

Notation: m independent rows, losses in a known range, delta the probability with which a bound may fail. "Upper"
functions return U with P[L <= U] >= 1 - delta, L the expected loss.

Binomial and hypergeometric tails have log-concave terms. They are summed outward from the largest term by the ratio of
neighbours; the truncated remainder is replaced by the geometric series that dominates it, and the error of `lgamma` is
added. The result is an upper bound, exact to about 1e-6 relative for millions of rows and to 1e-12 for hundreds.

References: Hoeffding 1963; McDiarmid 1989; Bernstein (see Boucheron, Lugosi and Massart 2013, section 2.8);
Maurer and Pontil 2009; Clopper and Pearson 1934; Waudby-Smith and Ramdas 2024; Maurer 2004.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv, gammaln, logsumexp

from assay.theory import _checks as check

_CHUNK = 256
_NEGLIGIBLE = 1e-16
_EPS = 2.0**-52
_LOG_TINY = -600.0  # below e^-600 a share of delta is handled by its logarithm


def log_choose(n: int, k: int) -> float:
    """Return ln C(n, k).

    Parameters
    ----------
    n : int
        Number of elements, trials or values.
    k : int
        Number of elements chosen.

    Returns
    -------
    float
        Natural logarithm of the binomial coefficient.
    """
    if min(k, n - k) <= 64:  # exact integers: no cancellation between large lgamma values
        return math.log(math.comb(n, k))
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _log_choose_error(n: int) -> float:
    return 16 * _EPS * (math.lgamma(n + 1) + 1.0)


def _sum_from(start: int, stop: int, step: int, ratio: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return at least the sum of term(j)/term(start), j from start+step to stop; the ratios fall."""
    total, term, at = 0.0, 1.0, start
    while at != stop:
        count = min(_CHUNK, abs(stop - at))
        ratios = ratio(at + step * np.arange(count, dtype=np.float64))
        products = term * np.cumprod(ratios)
        total += float(products.sum())
        term, last, at = float(products[-1]), float(ratios[-1]), at + step * count
        if last < 1.0 and term * last / (1.0 - last) <= _NEGLIGIBLE * (1.0 + total):
            total += term * last / (1.0 - last)
            break
    return total


def _log_tail(log_top: float, error: float, top: int, k: int, low: int, down: Callable) -> float:
    """Return ln of the terms from low to k, the largest at `top`; down(j) = term(j-1)/term(j)."""
    total = 1.0 + _sum_from(top, low, -1, down)
    if top < k:
        total += _sum_from(top, k, 1, lambda j: 1.0 / down(j + 1.0))
    return log_top + math.log(total) + error + 1e-12


def log_binomial_cdf(k: int, m: int, p: float) -> float:
    """Return an upper bound of ln P[Bin(m, p) <= k].

    Parameters
    ----------
    k : int
        Number of successes (errors).
    m : int
        Number of trials.
    p : float
        Mean, or probability of a success.

    Returns
    -------
    float
        Natural logarithm, rounded up.
    """
    if k >= m or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return -math.inf
    top = min(k, int((m + 1) * p))
    log_top = log_choose(m, top) + top * math.log(p) + (m - top) * math.log1p(-p)
    error = _log_choose_error(m) + 4 * _EPS * (top * abs(math.log(p)) + (m - top) * abs(math.log1p(-p)))
    odds = (1.0 - p) / p
    return min(0.0, _log_tail(log_top, error, top, k, 0, lambda j: j * odds / (m - j + 1.0)))


def log_hypergeometric_cdf(k: int, total: int, marked: int, drawn: int) -> float:
    """Return at least ln P[k or fewer marked among `drawn` of `total` rows, `marked` marked].

    Parameters
    ----------
    k : int
        Largest number of marked rows drawn.
    total : int
        Number of rows.
    marked : int
        Number of marked rows.
    drawn : int
        Number of rows drawn without replacement.

    Returns
    -------
    float
        Natural logarithm, rounded up.
    """
    low, high = max(0, drawn - (total - marked)), min(drawn, marked)
    if k < low:
        return -math.inf
    if k >= high:
        return 0.0
    top = max(low, min(k, (drawn + 1) * (marked + 1) // (total + 2)))
    log_top = log_choose(marked, top) + log_choose(total - marked, drawn - top) - log_choose(total, drawn)
    error = 2 * _log_choose_error(total)
    rest = float(total - marked - drawn)

    def down(j: np.ndarray) -> np.ndarray:
        return j * (rest + j) / ((marked - j + 1.0) * (drawn - j + 1.0))

    return min(0.0, _log_tail(log_top, error, top, k, low, down))


def log_binomial_sum(n: int, d: int) -> float:
    """Return an upper bound of ln(C(n,0) + ... + C(n,d)).

    Parameters
    ----------
    n : int
        Number of elements, trials or values.
    d : int
        Largest number of elements chosen.

    Returns
    -------
    float
        Natural logarithm of the sum, rounded up.
    """
    if d >= n:
        return n * math.log(2.0) + 1e-9
    if d <= 2_000:
        return math.log(binomial_sum(n, d)) + 1e-9
    top = min(d, n // 2)
    value = _log_tail(log_choose(n, top), _log_choose_error(n), top, d, 0, lambda j: j / (n - j + 1.0))
    return min(n * math.log(2.0), value) + 1e-9


def binomial_sum(n: int, d: int) -> int:
    """Return C(n,0) + ... + C(n,d) as an exact integer.

    Parameters
    ----------
    n : int
        Number of elements, trials or values.
    d : int
        Largest number of elements chosen.

    Returns
    -------
    int
        The sum.
    """
    total, term = 1, 1
    for i in range(1, min(d, n) + 1):
        term = term * (n - i + 1) // i
        total += term
    return total


def _log_inverse(delta: float, two_sided: bool) -> float:
    return math.log((2.0 if two_sided else 1.0) / check.failure(delta))


def jensen_gap(function: Callable[[np.ndarray], np.ndarray], values: ArrayLike, weights: ArrayLike) -> float:
    """Return E f(X) - f(E X) for a random X with these values and probabilities: >= 0 if f is convex, <= 0 if concave.

    Parameters
    ----------
    function : callable
        Function of an array, applied to each value.
    values : array-like
        Values of the random variable.
    weights : array-like
        Probabilities of the values.

    Returns
    -------
    float
        E f(X) - f(E X).

    Examples
    --------
    >>> jensen_gap(np.square, [0.0, 2.0], [0.5, 0.5])
    1.0
    """
    x, p = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if x.ndim != 1 or x.shape != p.shape or p.min() < 0 or abs(p.sum() - 1) > 1e-9:
        raise ValueError("jensen_gap: weights must be probabilities, one for each value, and sum to 1.")
    return float(p @ function(x) - function(np.array([p @ x]))[0])


def union_bound(probabilities: ArrayLike) -> float:
    """Return a bound of the probability that at least one of some events happens: the sum of theirs, at most 1.

    Parameters
    ----------
    probabilities : array-like
        Probabilities of the events.

    Returns
    -------
    float
        The bound.

    Examples
    --------
    >>> union_bound([0.01, 0.02, 0.02])
    0.05
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 1 or not np.all((p >= 0) & (p <= 1)):
        raise ValueError(f"union_bound: probabilities must lie in [0, 1]; got {probabilities!r}.")
    return min(1.0, math.fsum(p.tolist()))


def log_union_bound(log_probability: float, size: int) -> float:
    """Return ln of `union_bound` for `size` events (an integer of any length) of one probability, at most 0.

    Parameters
    ----------
    log_probability : float
        Natural logarithm of the probability of each event.
    size : int
        Number of events (hypotheses).

    Returns
    -------
    float
        Natural logarithm of the bound.

    Examples
    --------
    >>> round(math.exp(log_union_bound(math.log(0.01), 5)), 4)
    0.05
    """
    return min(0.0, check.log_size(size) + check.number("log_probability", log_probability, high=0.0))


def log_share(delta: float, size: int) -> float:
    """Return ln(delta / size): what each of `size` events may have so that their union bound is delta.

    Parameters
    ----------
    delta : float
        Probability with which the statement may fail.
    size : int
        Number of events (hypotheses).

    Returns
    -------
    float
        Natural logarithm of each event's share.

    Examples
    --------
    >>> round(math.exp(log_share(0.05, 10)), 6)
    0.005
    """
    return math.log(check.failure(delta)) - check.log_size(size)


def hoeffding_failure(m: int, epsilon: float, *, width: float = 1.0, two_sided: bool = False) -> float:
    """Return the probability bound exp(-2 m (epsilon/width)^2), doubled if two-sided, at most 1.

    Theorem (Hoeffding 1963): the mean of m independent values, each in an interval of length `width`,
    exceeds its expectation by epsilon or more with at most this probability.

    Parameters
    ----------
    m : int
        Number of independent values or rows.
    epsilon : float
        Deviation of the mean from its expectation.
    width : float, default=1.0
        Length of the interval that each value lies in.
    two_sided : bool, default=False
        Whether both directions count; otherwise only that above the expectation.

    Returns
    -------
    float
        Upper bound of the probability, at most 1.

    Examples
    --------
    >>> round(hoeffding_failure(100, 0.1), 4)
    0.1353
    """
    m, width = check.whole("m", m), check.positive("width", width)
    ratio = check.positive("epsilon", epsilon) / width
    return check.up((2.0 if two_sided else 1.0) * math.exp(-2.0 * m * ratio * ratio))


def hoeffding_deviation(m: int, delta: float, *, width: float = 1.0, two_sided: bool = False) -> float:
    """Return epsilon = width sqrt(ln(1/delta) / (2m)), with ln(2/delta) if two-sided: the inverse in epsilon.

    Parameters
    ----------
    m : int
        Number of independent values or rows.
    delta : float
        Probability with which the statement may fail.
    width : float, default=1.0
        Length of the interval that each value lies in.
    two_sided : bool, default=False
        Whether both directions count; otherwise only that above the expectation.

    Returns
    -------
    float
        The deviation epsilon.

    Examples
    --------
    >>> round(hoeffding_deviation(1000, 0.05), 5)
    0.0387
    """
    m, width = check.whole("m", m), check.positive("width", width)
    return check.enlarge(width * math.sqrt(_log_inverse(delta, two_sided) / (2.0 * m)))


def hoeffding_sample_size(epsilon: float, delta: float, *, width: float = 1.0, two_sided: bool = False) -> int:
    """Return the smallest m whose Hoeffding deviation is at most epsilon: the inverse in m.

    Parameters
    ----------
    epsilon : float
        Deviation of the mean from its expectation.
    delta : float
        Probability with which the statement may fail.
    width : float, default=1.0
        Length of the interval that each value lies in.
    two_sided : bool, default=False
        Whether both directions count; otherwise only that above the expectation.

    Returns
    -------
    int
        Number of rows.

    Examples
    --------
    >>> hoeffding_sample_size(0.03, 0.05, two_sided=True)  # television rating to 3 points, 95 % sure
    2050
    """
    ratio = check.positive("width", width) / check.positive("epsilon", epsilon)
    return check.ceil(_log_inverse(delta, two_sided) * ratio * ratio / 2.0)


def _square_sum(differences: ArrayLike) -> float:
    c = np.asarray(differences, dtype=np.float64)
    if c.ndim != 1 or c.size == 0 or not np.all(np.isfinite(c) & (c >= 0.0)) or not c.any():
        raise ValueError("differences must be a non-empty list of finite numbers >= 0, not all of them 0.")
    return float(np.sum(c * c))


def mcdiarmid_failure(epsilon: float, differences: ArrayLike, *, two_sided: bool = False) -> float:
    """Return exp(-2 epsilon^2 / sum c_i^2), doubled if two-sided, at most 1.

    Theorem (McDiarmid 1989): f of independent values, where changing the i-th alone moves f by at most c_i,
    exceeds its expectation by epsilon or more with at most this probability. c_i = 1/m gives Hoeffding's
    inequality.

    Parameters
    ----------
    epsilon : float
        Deviation of the mean from its expectation.
    differences : array-like
        c_i: the most that the function changes with its i-th argument.
    two_sided : bool, default=False
        Whether both directions count; otherwise only that above the expectation.

    Returns
    -------
    float
        Upper bound of the probability, at most 1.
    """
    epsilon = check.positive("epsilon", epsilon)
    return check.up((2.0 if two_sided else 1.0) * math.exp(-2.0 * epsilon * epsilon / _square_sum(differences)))


def mcdiarmid_deviation(delta: float, differences: ArrayLike, *, two_sided: bool = False) -> float:
    """Return sqrt(ln(1/delta) sum c_i^2 / 2), with ln(2/delta) if two-sided.

    Parameters
    ----------
    delta : float
        Probability with which the statement may fail.
    differences : array-like
        c_i: the most that the function changes with its i-th argument.
    two_sided : bool, default=False
        Whether both directions count; otherwise only that above the expectation.

    Returns
    -------
    float
        The deviation epsilon.
    """
    return check.enlarge(math.sqrt(_log_inverse(delta, two_sided) * _square_sum(differences) / 2.0))


def bounded_differences(function: Callable[[tuple], float], domain: Sequence, m: int) -> list[float]:
    """Return c_1..c_m: the most that `function` of m values changes when one of them is replaced.

    All len(domain)^m arguments are tried, so this is for small cases, to check constants derived on paper.

    Parameters
    ----------
    function : callable
        Function of a tuple of m values.
    domain : sequence
        All values that an argument may take.
    m : int
        Number of arguments.

    Returns
    -------
    list of float
        c_i for each argument.

    Examples
    --------
    >>> bounded_differences(max, [0.0, 0.5, 1.0], 3)
    [1.0, 1.0, 1.0]
    """
    m = check.whole("m", m)
    if len(domain) ** m > 1_000_000:
        raise ValueError(f"{len(domain)}^{m} arguments are too many to try; take fewer values or a smaller m.")
    indices = itertools.product(range(len(domain)), repeat=m)
    value = {index: float(function(tuple(domain[i] for i in index))) for index in indices}
    largest = [0.0] * m
    for rest in itertools.product(range(len(domain)), repeat=m - 1):
        for i in range(m):
            line = [value[(*rest[:i], j, *rest[i:])] for j in range(len(domain))]
            largest[i] = max(largest[i], max(line) - min(line))
    return largest


def bernstein_failure(m: int, epsilon: float, variance: float, *, width: float = 1.0) -> float:
    """Return exp(-m epsilon^2 / (2 variance + 2 width epsilon / 3)), at most 1.

    Theorem (Bernstein): the mean of m independent values with variance at most `variance` and distance at
    most `width` from their expectation exceeds that expectation by epsilon or more with at most this
    probability.

    Parameters
    ----------
    m : int
        Number of independent values or rows.
    epsilon : float
        Deviation of the mean from its expectation.
    variance : float
        Upper bound of the variance of a value.
    width : float, default=1.0
        Length of the interval that each value lies in.

    Returns
    -------
    float
        Upper bound of the probability, at most 1.
    """
    m, epsilon, width = (
        check.whole("m", m),
        check.positive("epsilon", epsilon),
        check.positive("width", width),
    )
    variance = check.number("variance", variance, low=0.0)
    return check.up(math.exp(-m * epsilon * epsilon / (2.0 * variance + 2.0 * width * epsilon / 3.0)))


def bernstein_deviation(m: int, delta: float, variance: float, *, width: float = 1.0) -> float:
    """Return the epsilon at which Bernstein's probability is delta.

    It is (a + sqrt(a^2 + 2 m variance ln(1/delta))) / m with a = width ln(1/delta) / 3. With variance 0
    this falls like 1/m instead of 1/sqrt(m).

    Parameters
    ----------
    m : int
        Number of independent values or rows.
    delta : float
        Probability with which the statement may fail.
    variance : float
        Upper bound of the variance of a value.
    width : float, default=1.0
        Length of the interval that each value lies in.

    Returns
    -------
    float
        The deviation epsilon.
    """
    m, variance = check.whole("m", m), check.number("variance", variance, low=0.0)
    log_inverse = _log_inverse(delta, False)
    a = check.positive("width", width) * log_inverse / 3.0
    return check.enlarge((a + math.sqrt(a * a + 2.0 * m * variance * log_inverse)) / m)


def empirical_bernstein_upper(losses: ArrayLike, delta: float, *, high: float = 1.0) -> float:
    """Return mean + sqrt(2 V ln(2/delta) / m) + 7 high ln(2/delta) / (3(m-1)), V the unbiased variance.

    Theorem 4 of Maurer and Pontil 2009; one-sided, the 2 in the logarithm pays for estimating the variance.
    Assumes m independent losses in [0, high]. At most `high`, never below the mean.

    Parameters
    ----------
    losses : array-like
        Independent losses in [0, high].
    delta : float
        Probability with which the statement may fail.
    high : float, default=1.0
        Largest possible loss.

    Returns
    -------
    float
        Upper bound of the expected loss.
    """
    high = check.positive("high", high)
    values = check.losses(losses, high, least=2)
    m, log_inverse = values.size, _log_inverse(delta, True)
    mean = math.fsum(values) / m
    variance = math.fsum((values - mean) ** 2) / (m - 1)
    bound = mean + math.sqrt(2.0 * variance * log_inverse / m) + 7.0 * high * log_inverse / (3.0 * (m - 1))
    return min(high, max(mean, check.enlarge(bound)))


def clopper_pearson_upper(k: int, m: int, delta: float, *, log_weight: float = 0.0) -> float:
    """Return the largest p with P[Bin(m, p) <= k] >= delta: the upper limit after k errors in m rows.

    Theorem (Clopper and Pearson 1934; Langford 2005 calls it the test-set bound): with probability at least
    1 - delta over m independent rows on which the classifier was not chosen, its error rate is at most
    this. `log_weight` <= 0 is ln of the share of delta that this statement may use, such as -ln K for one
    of K statements; it may be far below what a float can hold. Never below k/m.

    Parameters
    ----------
    k : int
        Number of successes (errors).
    m : int
        Number of independent values or rows.
    delta : float
        Probability with which the statement may fail.
    log_weight : float, default=0.0
        Logarithm of the share of delta that this statement may use, at most 0.

    Returns
    -------
    float
        Upper limit of the error rate.

    Examples
    --------
    >>> round(clopper_pearson_upper(0, 100, 0.05), 4)
    0.0295
    """
    k, m = check.errors(k, m)
    log_delta = math.log(check.failure(delta)) + check.number("log_weight", log_weight, high=0.0)
    if k == m:
        return 1.0
    if log_delta > _LOG_TINY:
        return check.up(float(betainccinv(k + 1, m - k, math.exp(log_delta))), k / m)
    return check.up(_solve_upper(k, m, log_delta), k / m)


def _solve_upper(k: int, m: int, log_delta: float) -> float:
    """Return p with ln P[Bin(m, p) <= k] <= log_delta, by bisection on the complement, which may be tiny."""
    low, high = k / m, 1.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high or high - low <= 1e-12 * (1.0 - low):
            break
        if log_binomial_cdf(k, m, middle) <= log_delta:
            high = middle
        else:
            low = middle
    return high


def clopper_pearson_lower(k: int, m: int, delta: float, *, log_weight: float = 0.0) -> float:
    """Return the smallest error rate p with P[Bin(m, p) >= k] >= delta: the lower limit. Never above k/m.

    It is 1 minus the upper limit for the m - k rows that were right.

    Parameters
    ----------
    k : int
        Number of successes (errors).
    m : int
        Number of independent values or rows.
    delta : float
        Probability with which the statement may fail.
    log_weight : float, default=0.0
        Logarithm of the share of delta that this statement may use, at most 0.

    Returns
    -------
    float
        Lower limit of the error rate.
    """
    k, m = check.errors(k, m)
    log_delta = math.log(check.failure(delta)) + check.number("log_weight", log_weight, high=0.0)
    if k == 0:
        return 0.0
    if log_delta > _LOG_TINY:
        return check.down(float(betaincinv(k, m - k + 1, math.exp(log_delta))), k / m)
    return check.down(1.0 - _solve_upper(m - k, m, log_delta), k / m)


def kl(p: float, q: float) -> float:
    """Return p ln(p/q) + (1-p) ln((1-p)/(1-q)), the relative entropy of two coins, with 0 ln 0 = 0.

    Parameters
    ----------
    p : float
        Mean, or probability of a success.
    q : float
        Probability of a success of the second coin.

    Returns
    -------
    float
        Relative entropy, in nats.
    """
    p, q = check.number("p", p, low=0.0, high=1.0), check.number("q", q, low=0.0, high=1.0)
    return _kl(p, q)


def _kl(p: float, q: float) -> float:
    if p == q:
        return 0.0
    if q <= 0.0 or q >= 1.0:
        return math.inf
    first = p * math.log(p / q) if p > 0.0 else 0.0
    second = (1.0 - p) * (math.log1p(-p) - math.log1p(-q)) if p < 1.0 else 0.0
    return max(0.0, first + second)


def kl_upper(p: float, c: float) -> float:
    """Return sup{q >= p : kl(p, q) <= c}, rounded up.

    With c = ln(1/delta)/m and p the mean of m independent losses in [0, 1], this is at least the expected
    loss with probability 1 - delta (Hoeffding 1963, theorem 1; one-sided, no further factor).

    Parameters
    ----------
    p : float
        Mean, or probability of a success.
    c : float
        Largest relative entropy allowed, at least 0.

    Returns
    -------
    float
        The largest such q.

    Examples
    --------
    >>> round(kl_upper(0.1, 0.02), 4)
    0.1704
    """
    p, c = check.number("p", p, low=0.0, high=1.0), check.number("c", c, low=0.0)
    if p == 0.0:
        return check.up(-math.expm1(-c))
    low, high = p, 1.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        if _kl(p, middle) > c:
            high = middle
        else:
            low = middle
    return check.up(high, p)


def kl_lower(p: float, c: float) -> float:
    """Return inf{q <= p : kl(p, q) <= c}, rounded down.

    Parameters
    ----------
    p : float
        Mean, or probability of a success.
    c : float
        Largest relative entropy allowed, at least 0.

    Returns
    -------
    float
        The smallest such q.
    """
    p, c = check.number("p", p, low=0.0, high=1.0), check.number("c", c, low=0.0)
    if p == 1.0:
        return check.down(math.exp(-c))
    low, high = 0.0, p
    for _ in range(1100):  # q may lie near the smallest float
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if _kl(p, middle) > c:
            low = middle
        else:
            high = middle
    return check.down(low, p)


@lru_cache(maxsize=64)
def maurer_xi(n: int) -> float:
    """Return Xi(n) = sum_k C(n,k) (k/n)^k (1-k/n)^(n-k), the exact value of E exp(n kl(mean, p)) for n coins.

    It does not depend on p, and is at most 2 sqrt(n) (Maurer 2004). Summed in O(n) for n <= 10^6, above
    that the closed form 2 sqrt(n) is returned.

    Parameters
    ----------
    n : int
        Number of elements, trials or values.

    Returns
    -------
    float
        The value, rounded up.
    """
    n = check.whole("n", n)
    if n > 1_000_000:
        return check.enlarge(2.0 * math.sqrt(n))
    k = np.arange(n + 1, dtype=np.float64)
    terms = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    terms += k * np.log(np.maximum(k, 1.0) / n) + (n - k) * np.log(np.maximum(n - k, 1.0) / n)
    error = 64.0 * 2.0**-53 * float(gammaln(n + 1))
    return min(check.enlarge(2.0 * math.sqrt(n)), check.enlarge(math.exp(float(logsumexp(terms)) + error)))


def betting_upper(losses: ArrayLike, delta: float) -> float:
    """Return the smallest g such that betting on an expected loss below g multiplies money by 1/delta.

    Statement: for losses in [0, 1] in an order that does not depend on them, and stakes s_t that depend on g and on
    earlier losses only, W_t(g) = product over s <= t of (1 - stake_s (loss_s - g)) is a non-negative supermartingale
    whenever the expected loss is at least g; by Ville's inequality it ever reaches 1/delta with probability at most
    delta. The stake is min(0.98 / (1 - g), sqrt(2 ln(1/delta) / (m v_{t-1}))), v the running variance started at 1/4:
    no loss takes more than 98 % of the money, and W_t(g) grows with g, since 1 - 0.98 (loss - g) / (1 - g) does. So the
    expected loss is at most inf{g : max_t W_t(g) >= 1/delta}. After Waudby-Smith and Ramdas 2024. Never below the mean.

    Parameters
    ----------
    losses : array-like
        Losses in the order in which they are observed.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Upper bound of the expected loss, at most 1.
    """
    values = check.losses(losses)
    m, log_inverse = values.size, _log_inverse(delta, False)
    count = np.arange(2, m + 2, dtype=np.float64)
    mean = (0.5 + np.cumsum(values)) / count
    variance = (0.25 + np.cumsum((values - mean) ** 2)) / count
    wanted = np.sqrt(2.0 * log_inverse / (m * np.concatenate(([0.25], variance[:-1]))))
    needed = log_inverse + 1e-9

    def wins(g: float) -> bool:
        stake = wanted if g == 1.0 else np.minimum(wanted, 0.98 / (1.0 - g))
        return bool(np.cumsum(np.log1p(-stake * (values - g))).max() >= needed)

    low, high = 0.0, 1.0
    if not wins(high):
        return 1.0
    for _ in range(45):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if wins(middle) else (middle, high)
    return check.up(high, math.fsum(values) / m)

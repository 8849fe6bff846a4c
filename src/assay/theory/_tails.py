"""Logarithms of binomial and hypergeometric tails and of binomial sums, never below the truth.

Every such sum has log-concave terms. It is summed outward from its largest term by the ratio of neighbours; what is
cut off is replaced by the geometric series that dominates it, and the error of `lgamma` is added. So the result is
an upper bound, exact to about 1e-6 relative for millions of rows and to 1e-12 for hundreds.
"""

import math
from collections.abc import Callable

import numpy as np

_CHUNK = 256
_NEGLIGIBLE = 1e-16
_EPS = 2.0**-52


def log_choose(n: int, k: int) -> float:
    """Return ln C(n, k)."""
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
    """Return an upper bound of ln P[Bin(m, p) <= k]."""
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
    """Return at least ln P[k or fewer marked among `drawn` of `total` rows, `marked` marked]."""
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
    """Return an upper bound of ln(C(n,0) + ... + C(n,d))."""
    if d >= n:
        return n * math.log(2.0) + 1e-9
    if d <= 2_000:
        return math.log(binomial_sum(n, d)) + 1e-9
    top = min(d, n // 2)
    value = _log_tail(log_choose(n, top), _log_choose_error(n), top, d, 0, lambda j: j / (n - j + 1.0))
    return min(n * math.log(2.0), value) + 1e-9


def binomial_sum(n: int, d: int) -> int:
    """Return C(n,0) + ... + C(n,d) as an exact integer."""
    total, term = 1, 1
    for i in range(1, min(d, n) + 1):
        term = term * (n - i + 1) // i
        total += term
    return total

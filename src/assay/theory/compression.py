"""Sample compression: a model that can be rebuilt from a few of its training rows.

Theorem (Littlestone and Warmuth 1986; Floyd and Warmuth 1995; Langford 2005). Fix in advance a map that
rebuilds a classifier from k rows and a message, weights P(k) that add up to at most 1 and weights of
messages likewise. With probability 1 - delta over n independent rows, for every choice of k rows and
message: if the rebuilt classifier makes e errors on the other n - k rows, its error rate is at most the
Clopper-Pearson limit of e in n - k at delta P(k) P(message) / C(n, k). Rows are handed over in the order of
their indices; if the order carries information, k! more is paid.
"""

import math

from assay.theory import _checks as check
from assay.theory.concentration import clopper_pearson_upper, log_choose


def log_size_weight(k: int, largest: int | None = None) -> float:
    """Return ln P(k): uniform on 0..largest if that is given, else 6 / (pi^2 (k+1)^2)."""
    k = check.whole("k", k, low=0)
    if largest is None:
        return math.log(6.0) - 2.0 * math.log(math.pi * (k + 1))
    if k > check.whole("largest", largest, low=0):
        raise ValueError(f"k = {k} exceeds the largest size {largest} that was fixed in advance.")
    return -math.log(largest + 1)


def compression_bound(
    errors: int,
    n: int,
    k: int,
    delta: float,
    *,
    largest: int | None = None,
    log_message: float = 0.0,
    ordered: bool = False,
) -> float:
    """Return the error bound of a model rebuilt from k of n rows with `errors` errors on the other n - k.

    `largest` selects the weight of the size (see `log_size_weight`), `log_message` <= 0 is ln of the
    message's weight.

    >>> round(compression_bound(0, 1000, 3, 0.05), 4)
    0.025
    """
    n, k = check.whole("n", n), check.whole("k", k, low=0)
    if k >= n:
        raise ValueError(f"k must be less than n (some rows must be left to judge by); got k = {k}, n = {n}.")
    if check.whole("errors", errors, low=0) > n - k:
        raise ValueError(f"errors are counted on the n - k = {n - k} other rows; got {errors}.")
    log_weight = log_size_weight(k, largest) + check.number("log_message", log_message, high=0.0)
    log_weight -= log_choose(n, k) + (math.lgamma(k + 1) if ordered else 0.0)
    log_weight *= 1.0 + 1e-13 if log_weight < 0.0 else 1.0  # outward: the error of the logarithms of factorials
    return clopper_pearson_upper(errors, n - k, delta, log_weight=min(0.0, log_weight))

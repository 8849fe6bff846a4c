"""Two models on the same rows, and means of bounded values with limits on both sides.

Notation: m independent rows in an order that does not depend on their values; delta the probability with which a
statement may fail. References: Waudby-Smith and Ramdas 2024 (betting); the sign test is the binomial's own tail.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from assay.theory import _checks as check
from assay.theory.concentration import betting_upper


def sign_test(first: int, second: int) -> float:
    """Return P[Bin(first + second, 1/2) <= first]: how likely so few are, if the first kind is at least as likely.

    Of the rows on which exactly one of two models errs, `first` are errors of the first alone and `second` of the
    second alone. Given their number, the former are binomial with the probability p1 / (p1 + p2), which is at least
    1/2 if the first model errs at least as often as the second: p1 + both >= p2 + both. So the p-value is exact, and
    whoever says "the first is better" when it is at most delta is wrong with a chance of at most delta.

    >>> round(sign_test(1, 4), 6)
    0.1875
    """
    k, n = check.whole("first", first, low=0), check.whole("second", second, low=0) + first
    return 1.0 if n == 0 else min(1.0, float(bdtr(k, n, 0.5)) * (1 + 1e-9))


def mean_limits(values: ArrayLike, delta: float, low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
    """Return limits between which the mean of values in [low, high] lies, by betting, half of delta for either side.

    >>> least, most = mean_limits([-1.0, 1.0] * 200, 0.05, -1.0, 1.0)
    >>> least < 0 < most
    True
    """
    width = check.positive("high - low", high - low)
    x = np.clip((np.asarray(values, dtype=np.float64) - low) / width, 0.0, 1.0)
    half, more = check.failure(delta) / 2, 1e-9 * width  # more than the scaling rounds
    least, most = high - width * betting_upper(1.0 - x, half), low + width * betting_upper(x, half)
    return max(low, least - more), min(high, most + more)

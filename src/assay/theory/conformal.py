"""Split conformal prediction: the calibration score that covers a new row with a promised chance.

Scores s_1..s_m come from a model trained on other rows; the prediction set of a new row holds every label
whose score is at most the j-th smallest of them. If rows and the new row are exchangeable, it covers with
probability at least j / (m + 1). For independent rows the coverage given the calibration set has, without
ties, the Beta(j, m+1-j) law.

References: Vovk, Gammerman and Shafer 2005; Lei et al. 2018; Vovk 2012; Barber, Candes, Ramdas and Tibshirani 2021.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from assay.theory import _checks as check
from assay.theory._tails import log_binomial_cdf


def conformal_index(m: int, alpha: float) -> int:
    """Return j = ceil((m + 1)(1 - alpha)): the j-th smallest of m scores covers with chance >= 1 - alpha.

    >>> conformal_index(19, 0.1)
    18
    """
    m, alpha = check.whole("m", m), check.probability("alpha", alpha, "the share of rows that may be missed")
    j = math.ceil((m + 1) * (1 - Fraction(str(alpha))))
    if j > m:
        raise ValueError(f"{m} scores cannot promise a coverage of {1 - alpha:g}; it takes 1/alpha - 1 of them.")
    return j


def conditional_coverage(j: int, m: int, delta: float) -> float:
    """Return the coverage that the j-th smallest of m scores has with chance 1 - delta over the calibration.

    The delta quantile of Beta(j, m+1-j), rounded down; independent rows.
    """
    m = check.whole("m", m)
    if check.whole("j", j) > m:
        raise ValueError(f"j must be at most m; got j = {j}, m = {m}.")
    return check.down(float(betaincinv(j, m + 1 - j, check.failure(delta))))


def conditional_index(m: int, alpha: float, delta: float) -> int:
    """Return the smallest j whose coverage is >= 1 - alpha with chance 1 - delta over the calibration.

    The smallest j with P[Bin(m, 1-alpha) >= j] <= delta.
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
    """Return the j-th smallest score."""
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
    """
    f, r = np.asarray(predictions, dtype=np.float64), np.asarray(residuals, dtype=np.float64)
    if f.ndim != 1 or f.shape != r.shape or not np.all(r >= 0.0):
        raise ValueError("predictions and residuals must be lists of one length, residuals >= 0.")
    j = conformal_index(f.size, alpha)
    return -threshold(-(f - r), j), threshold(f + r, j)

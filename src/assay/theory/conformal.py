"""Split conformal prediction: the calibration score that covers a new row with a promised chance.

Scores s_1..s_m come from a model trained on other rows; the prediction set of a new row holds every label
whose score is at most the j-th smallest of them. If rows and the new row are exchangeable, it covers with
probability at least j / (m + 1). For independent rows the coverage given the calibration set has, without
ties, the Beta(j, m+1-j) law.

References: Vovk, Gammerman and Shafer 2005; Lei et al. 2018; Vovk 2012 and 2015; Barber, Candes, Ramdas and Tibshirani
2021; Vovk and Wang 2020.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from assay.theory import _checks as check
from assay.theory.concentration import log_binomial_cdf


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


def cross_index(rows: int, folds: int, coverage: float) -> int:
    """Return how many rows must be as far off as an answer, for it to be in the cross-conformal set of a new row.

    Let model k be made without the n_k rows of fold k, and c_k of these be at least as far off by it as the answer y to
    a new row is. If rows are exchangeable, p_k = (c_k + 1)/(n_k + 1) of the true answer is at or below u with a chance
    of at most u, whatever the model. By convexity (2 - p/a)+ of any weighted mean p of them is at most the mean of
    (2 - p_k/a)+, each of which is 2 a at most in expectation: p <= a with a chance of at most 2 a (Rueschendorf 1982,
    Vovk and Wang 2020). With weights (n_k + 1)/(n + K) p is (c + K)/(n + K), c the sum of the c_k: answers with p above
    a = (1 - coverage)/2, that is c > a (n + K) - K, cover. Folds may differ in size, and models may depend on the
    order of their rows.

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

"""The Bayes rule of Gaussian classes that share a covariance, and the exact error of any linear rule on them.

Linear discriminant analysis is that rule if three conditions hold: every class is Gaussian, all have one covariance,
and the priors are the true ones. Then its error is known without drawing a row: along w, class k is normal with mean
<w, mu_k> and variance w^T Sigma w.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve
from scipy.special import ndtr


class LinearRule(NamedTuple):
    """Second class iff <coef, x> + intercept > 0."""

    coef: np.ndarray
    intercept: float


def bayes_rule(means: Any, covariance: Any, priors: Any = (0.5, 0.5)) -> LinearRule:
    """Return the rule of least error for two Gaussian classes with means (2, d) and one covariance (d, d).

    >>> bayes_rule([[0.0], [2.0]], [[1.0]])
    LinearRule(coef=array([2.]), intercept=-2.0)
    """
    means, covariance, priors = _checked(means, covariance, priors)
    coef = solve(covariance, means[1] - means[0], assume_a="pos")
    intercept = float(np.log(priors[1] / priors[0]) - coef @ (means[0] + means[1]) / 2)
    return LinearRule(coef, intercept)


def gaussian_risk(coef: Any, intercept: float, means: Any, covariance: Any, priors: Any = (0.5, 0.5)) -> float:
    """Return the probability that a linear rule errs on a new row of two Gaussian classes with one covariance.

    p_0 Phi((<w, mu_0> + b) / s) + p_1 Phi(-(<w, mu_1> + b) / s), s^2 = w^T Sigma w.

    >>> round(gaussian_risk(*bayes_rule([[0.0], [2.0]], [[1.0]]), [[0.0], [2.0]], [[1.0]]), 6)
    0.158655
    """
    means, covariance, priors = _checked(means, covariance, priors)
    w = np.ravel(np.asarray(coef, dtype=np.float64))
    spread = np.sqrt(w @ covariance @ w)
    if not spread > 0:
        raise ValueError("gaussian_risk: coef must not be zero, or the rule has no direction.")
    first, second = (means @ w + float(np.ravel(intercept)[0])) / spread
    return float(priors[0] * ndtr(first) + priors[1] * ndtr(-second))


def _checked(means: Any, covariance: Any, priors: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    means, covariance, priors = (np.asarray(part, dtype=np.float64) for part in (means, covariance, priors))
    if means.ndim != 2 or len(means) != 2 or covariance.shape != (means.shape[1],) * 2:
        raise ValueError(
            f"means must be (2, d) and covariance (d, d); got shapes {means.shape} and {covariance.shape}."
        )
    if priors.shape != (2,) or not (priors > 0).all() or abs(priors.sum() - 1) > 1e-9:
        raise ValueError(f"priors must be two positive numbers that sum to 1; got {priors!r}.")
    return means, covariance, priors

"""Scalar forms of the losses for compiled loops. They are inlined, and loss and slope share what they have in common.

Losses go by their places in `assay.losses.CODES`, families and links by theirs in `assay.losses.deviance`.
"""

from math import erfc, exp, inf, log, log1p, pi, sqrt

import numpy as np

from assay.jit import compiled
from assay.losses._losses import CODES

SQUARED_ERROR, ABSOLUTE_ERROR, EPSILON_INSENSITIVE, HUBER, QUANTILE, SQUARED_EPSILON_INSENSITIVE = range(6)
LOG_LOSS, HINGE, SQUARED_HINGE, EXPONENTIAL, SIGMOID_SQUARED, PERCEPTRON, MODIFIED_HUBER = range(6, len(CODES))


@compiled
def residual_terms(code: int, parameter: float, r: float) -> tuple[float, float]:
    """Return the loss of numbers at r = f - y, and its derivative by f; `parameter` is epsilon, delta or level."""
    if code == SQUARED_ERROR:
        return 0.5 * r * r, r
    a = abs(r)
    if code == HUBER:
        return 0.5 * r * r if a <= parameter else parameter * (a - 0.5 * parameter), min(max(r, -parameter), parameter)
    if code == QUANTILE:
        slope = 1.0 - parameter if r > 0 else -parameter
        return slope * r, slope
    beyond = a if code == ABSOLUTE_ERROR else a - parameter
    if not beyond > 0:
        return 0.0, 0.0
    sign = 1.0 if r > 0 else -1.0
    return (beyond * beyond, 2.0 * sign * beyond) if code == SQUARED_EPSILON_INSENSITIVE else (beyond, sign)


@compiled
def margin_terms(code: int, y: float, f: float) -> tuple[float, float]:
    """Return the loss of a label y = -1, +1 at score f, and its derivative by f."""
    z = y * f
    if code == LOG_LOSS:
        small = exp(-abs(z))
        s = small / (1.0 + small) if z > 0 else 1.0 / (1.0 + small)
        return log1p(small) + max(-z, 0.0), -y * s
    if code == HINGE:
        return (1.0 - z, -y) if z < 1.0 else (0.0, 0.0)
    if code == SQUARED_HINGE:
        return ((1.0 - z) ** 2, -2.0 * y * (1.0 - z)) if z < 1.0 else (0.0, 0.0)
    if code == PERCEPTRON:
        return (-z, -y) if z <= 0.0 else (0.0, 0.0)
    if code == MODIFIED_HUBER:
        if z <= -1.0:
            return -4.0 * z, -4.0 * y
        return ((1.0 - z) ** 2, -2.0 * y * (1.0 - z)) if z < 1.0 else (0.0, 0.0)
    if code == EXPONENTIAL:
        e = exp(-max(z, -500.0))
        return e, -y * e
    small = exp(-abs(z))
    s = small / (1.0 + small) if z > 0 else 1.0 / (1.0 + small)
    return s * s, -2.0 * y * s * s * (1.0 - s)


@compiled
def loss_and_slope(code: int, parameter: float, y: float, f: float) -> tuple[float, float]:
    """Return the loss and its derivative by f, for any loss with a code."""
    if code < LOG_LOSS:
        return residual_terms(code, parameter, f - y)
    return margin_terms(code, y, f)


@compiled
def mean_and_slope(link: int, f: float) -> tuple[float, float]:
    """Return mu = g^-1(f) and its derivative."""
    if link == 0:
        return f, 1.0
    if link == 1:
        mu = exp(f)
        return mu, mu
    if link == 2:
        small = exp(-abs(f))
        p = 1.0 / (1.0 + small)
        return (p if f > 0 else small * p), small * p * p
    if link == 3:
        return 0.5 * erfc(-f / sqrt(2.0)), exp(-0.5 * f * f) / sqrt(2.0 * pi)
    return 1.0 / f, -1.0 / (f * f)


@compiled
def deviance_terms(family: int, link: int, y: float, f: float) -> tuple[float, float, float]:
    """Return half the unit deviance up to a term in y alone, its derivative by f, and the expected second derivative
    mu'^2 / V(mu). Scores outside the domain of family and link make the loss infinite."""
    mu, slope = mean_and_slope(link, f)
    if family == 0:
        return 0.5 * (y - mu) * (y - mu), (mu - y) * slope, slope * slope
    if family == 3:
        return _binomial_terms(link, y, f, mu, slope)
    if not mu > 0.0 or not np.isfinite(mu):
        return inf, 0.0, 0.0
    if family == 1:
        lost = mu - (y * (f if link == 1 else log(mu)) if y != 0.0 else 0.0)
        return lost, (1.0 - y / mu) * slope, slope * slope / mu
    ratio = slope / mu
    return y / mu + (f if link == 1 else log(mu)), (1.0 - y / mu) * ratio, ratio * ratio


@compiled
def _binomial_terms(link: int, y: float, f: float, mu: float, slope: float) -> tuple[float, float, float]:
    if link == 2:
        small = exp(-abs(f))
        return max(f, 0.0) - y * f + log1p(small), mu - y, slope
    rest = 0.5 * erfc(f / sqrt(2.0)) if link == 3 else 1.0 - mu
    if not (mu > 0.0 and rest > 0.0):
        return inf, 0.0, 0.0
    lost = -(y * log(mu) if y > 0.0 else 0.0) - ((1.0 - y) * log(rest) if y < 1.0 else 0.0)
    return lost, slope * ((1.0 - y) / rest - y / mu), slope * slope / (mu * rest)

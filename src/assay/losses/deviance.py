"""Deviances of generalised linear models: the mean of a row is a function of its score f, mu = g^-1(f)."""

import numpy as np
from scipy.special import expit, log_ndtr, ndtr, ndtri, xlogy

FAMILIES = ("gaussian", "poisson", "gamma", "binomial")
LINKS = ("identity", "log", "logit", "probit", "inverse")
"""Compiled loops know a family and a link by their places in these lists."""


def inverse_link(link: str, f: np.ndarray) -> np.ndarray:
    """Return g^-1(f): the mean of rows with that score.

    >>> inverse_link("log", np.array([0.0])).tolist()
    [1.0]
    """
    return {
        "identity": lambda f: f,
        "log": np.exp,
        "logit": expit,
        "probit": ndtr,
        "inverse": lambda f: 1.0 / f,
    }[link](f)


def link_function(link: str, mean: np.ndarray) -> np.ndarray:
    """Return g(mean); for "logit" the logarithm of the odds mean / (1 - mean).

    >>> link_function("logit", np.array([0.5])).tolist()
    [0.0]
    """
    logit = lambda m: np.log(m) - np.log1p(-m)  # noqa: E731
    table = {
        "identity": lambda m: m,
        "log": np.log,
        "logit": logit,
        "probit": ndtri,
        "inverse": lambda m: 1.0 / m,
    }
    return table[link](mean)


def unit_deviance(family: str, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return twice the log-likelihood that each row loses against a model with mean y.

    >>> unit_deviance("gaussian", np.array([3.0]), np.array([1.0])).tolist()
    [4.0]
    """
    if family == "gaussian":
        return (y - mean) ** 2
    if family == "poisson":
        return 2 * (xlogy(y, y / mean) - y + mean)
    if family == "gamma":
        return 2 * (y / mean - 1 - np.log(y / mean))
    return 2 * (xlogy(y, y / mean) + xlogy(1 - y, (1 - y) / (1 - mean)))


def first_derivative(family: str, link: str, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return the derivative of half each deviance by the score, for the pairs where that is convex; NaN where a score
    has no mean. It is accurate near the ends of the domain too, where 1 - mean cancels.

    >>> first_derivative("poisson", "log", np.array([2.0]), np.array([0.0])).tolist()
    [-1.0]
    """
    if family == "gaussian":
        return f - y
    if family == "poisson":
        return np.exp(f) - y if link == "log" else np.where(f > 0, 1 - y / f, np.nan)
    if family == "gamma":
        return 1 - y * np.exp(-f) if link == "log" else np.where(f > 0, y - 1 / f, np.nan)
    if link == "logit":
        return expit(f) - y
    if link == "probit":
        return (1 - y) * _mills(-f) - y * _mills(f)
    if link == "log":
        return np.where(f < 0, (1 - y) * np.exp(f) / -np.expm1(f) - y, np.nan)
    return np.where((f > 0) & (f < 1), (1 - y) / (1 - f) - y / f, np.nan)


def second_derivative(family: str, link: str, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return the second derivative of half each deviance by the score, for the pairs where that is convex.

    >>> second_derivative("poisson", "log", np.array([2.0]), np.array([0.0])).tolist()
    [1.0]
    """
    if family == "gaussian":
        return np.ones_like(f)
    if family == "poisson":
        return np.exp(f) if link == "log" else y / f**2
    if family == "gamma":
        return y * np.exp(-f) if link == "log" else 1.0 / f**2
    if link == "logit":
        return expit(f) * expit(-f)
    if link == "probit":
        up, down = _mills(f), _mills(-f)
        return y * up * (f + up) + (1 - y) * down * (down - f)
    if link == "log":
        return (1 - y) * np.exp(f) / np.expm1(f) ** 2
    return y / f**2 + (1 - y) / (1 - f) ** 2


def _mills(f: np.ndarray) -> np.ndarray:
    """Return phi(f) / Phi(f)."""
    return np.exp(-0.5 * f * f - 0.5 * np.log(2 * np.pi) - log_ndtr(f))

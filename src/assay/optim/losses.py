"""Losses of linear scores f, with derivative: what descent and stochastic gradients minimise.

For labels y = -1, +1 and z = y f; for numbers r = y - f. The zero-one loss is for reporting: it has no
useful gradient.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit


class Loss(NamedTuple):
    """A loss and its derivative by f, as functions of (y, f, epsilon); what it is for; whether it is convex
    in f."""

    value: Callable[[np.ndarray, np.ndarray, float], np.ndarray]
    slope: Callable[[np.ndarray, np.ndarray, float], np.ndarray]
    labels: bool
    convex: bool = True


def zero_one(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return 1 where y f <= 0 (a score of zero is an error), else 0."""
    return (np.asarray(y) * np.asarray(f) <= 0).astype(float)


LOSSES: dict[str, Loss] = {
    "squared_error": Loss(lambda y, f, e: 0.5 * (y - f) ** 2, lambda y, f, e: f - y, False),
    "absolute_error": Loss(lambda y, f, e: np.abs(y - f), lambda y, f, e: np.sign(f - y), False),
    "epsilon_insensitive": Loss(
        lambda y, f, e: np.maximum(np.abs(y - f) - e, 0.0),
        lambda y, f, e: np.where(np.abs(y - f) > e, np.sign(f - y), 0.0),
        False,
    ),
    "log_loss": Loss(lambda y, f, e: np.logaddexp(0.0, -y * f), lambda y, f, e: -y * expit(-y * f), True),
    "hinge": Loss(lambda y, f, e: np.maximum(1 - y * f, 0.0), lambda y, f, e: np.where(y * f < 1, -y, 0.0), True),
    "squared_hinge": Loss(
        lambda y, f, e: np.maximum(1 - y * f, 0.0) ** 2,
        lambda y, f, e: -2 * y * np.maximum(1 - y * f, 0.0),
        True,
    ),
    "exponential": Loss(lambda y, f, e: np.exp(-y * f), lambda y, f, e: -y * np.exp(-y * f), True),
    "sigmoid_squared": Loss(
        lambda y, f, e: expit(-y * f) ** 2,
        lambda y, f, e: -2 * y * expit(-y * f) ** 2 * expit(y * f),
        True,
        False,
    ),
}
NAMES = tuple(LOSSES)
"""Compiled loops know a loss by its place in this list."""

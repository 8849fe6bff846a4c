"""Losses of the master duality theorem, one unit each: domain of the dual variable, a default for it, and the bracket.

The bracket  loss(f) + conjugate(-tau) + tau f  is never negative and measures how far tau is from the slope of the loss at
f. Each function returns an upper bound of it for all f within `ef` and all tau within `et` of the given ones, so that the
rounding of scores and repaired duals is paid for. Binary labels are y = -1, +1, with z = y f and a = y tau.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from assay.certificate.rules.numerics import U, above, excess_above

TINY = 1e-300
Bracket = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Loss:
    """A convex loss: `slope` is minus its derivative (the best dual variable); `box` limits tau for label or target y."""

    bracket: Bracket
    slope: Callable[..., np.ndarray]
    box: Callable[..., tuple] | None = None  # (lowest, highest) tau; None: every real number
    labels: bool = False
    params: tuple[str, ...] = ()


def sigmoid(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return 1 / (1 + exp(-t)) and 1 / (1 + exp(t)), each to a relative error of 8 U while |t| <= 700."""
    small = np.exp(-np.abs(t))
    large_part = 1 / (1 + small)
    small_part = small * large_part
    return np.where(t > 0, large_part, small_part), np.where(t > 0, small_part, large_part)


def squared(f, ef, y, tau, et, params: Mapping) -> np.ndarray:
    """Half squared error: the bracket is (r - tau)^2 / 2."""
    residual = y - f
    distance = np.abs(residual - tau)
    return above(0.5 * (distance + ef + et + 2 * U * (np.abs(residual) + distance)) ** 2)


def logistic(f, ef, y, tau, et, params: Mapping) -> np.ndarray:
    """ln(1 + exp(-z)): the bracket is the relative entropy of a to s = 1 / (1 + exp(z)).

    Written as s h(d/s) + (1-s) h(-d/(1-s)) with d = a - s, h(x) = (1+x) ln(1+x) - x, no term cancels another.
    """
    z, a = y * f, y * tau
    s, rest = sigmoid(-z)
    gap, slip = a - s, et + s * (np.expm1(ef) * rest + 16 * U)
    distance, shrink = above(np.abs(gap) + slip), np.exp(-ef) * (1 - 32 * U)
    value = excess_above(np.maximum(s, TINY) * shrink, distance, gap > slip)
    value += excess_above(np.maximum(rest, TINY) * shrink, distance, -gap > slip)
    far = np.abs(z) > 300
    if far.any():
        minor = (
            np.where(z > 0, a, 1 - a) + et + 2 * U * (z < 0)
        )  # mass on the class of probability below exp(-300)
        value = np.where(far, far_mass(minor, np.abs(z) + ef), value)
    return above(value)


def far_mass(mass, depth) -> np.ndarray:
    """Return an upper bound of m ln(m / s) - m + s where s <= 1e-100 is exp(-depth) up to a factor e, and m <= mass."""
    return mass * np.maximum(np.log(np.maximum(mass, TINY)) + depth + 1, 0.0) + 1e-99


def logistic_slope(f, y, params: Mapping) -> np.ndarray:
    return y * sigmoid(-y * f)[0]


LOSSES: dict[str, Loss] = {
    "squared": Loss(squared, lambda f, y, params: y - f),
    "logistic": Loss(
        logistic, logistic_slope, lambda y, params: (np.minimum(y, 0), np.maximum(y, 0)), labels=True
    ),
}

"""Losses of the master duality theorem, one unit each: domain of the dual variable tau, its best value, the bracket.

The bracket  loss(f) + conjugate(-tau) + tau f  is never negative; it is zero where tau is minus a slope of
the loss at f. Each `bracket` returns an upper bound of it for all f within `ef` and all tau within `et` of
the given ones, so that the rounding of scores and of repaired dual variables is paid for. Binary labels are y
= -1, +1, with z = y f and a = y tau; r = y - f for numeric targets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.checker.numerics import UNDERFLOW, U, above, entropy_excess, excess_above

TINY = 1e-300
Function = Callable[..., Any]


@dataclass(frozen=True)
class Loss:
    """A convex loss. `slope` is minus its derivative, `box` the range of tau; None: none, or every real
    number."""

    bracket: Function
    slope: Function | None = None
    box: Function | None = None
    labels: bool = False
    params: tuple[str, ...] = ()


def sigmoid(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return 1 / (1 + exp(-t)) and 1 / (1 + exp(t)), each to a relative error of 8 U while |t| <= 700."""
    small = np.exp(-np.abs(t))
    large_part = 1 / (1 + small)
    small_part = small * large_part
    return np.where(t > 0, large_part, small_part), np.where(t > 0, small_part, large_part)


def squared(f, ef, y, tau, et) -> np.ndarray:
    """Half squared error: the bracket is (r - tau)^2 / 2."""
    residual = y - f
    distance = np.abs(residual - tau)
    return above(0.5 * (distance + ef + et + 2 * U * (np.abs(residual) + distance)) ** 2)


def logistic(f, ef, y, tau, et) -> np.ndarray:
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
    if far.any():  # the mass on the class whose probability is below exp(-300)
        minor = np.where(z > 0, a, 1 - a) + et + 2 * U * (z < 0)
        value = np.where(far, far_mass(minor, np.abs(z) + ef), value)
    return above(value)


def far_mass(mass, depth) -> np.ndarray:
    """Return an upper bound of m ln(m / s) - m + s for m <= mass and s <= 1e-100 within a factor e of
    exp(-depth)."""
    return mass * np.maximum(np.log(np.maximum(mass, TINY)) + depth + 1, 0.0) + 1e-99


def hinge(f, y, tau) -> np.ndarray:
    s, a = 1 - y * f, y * tau
    return np.maximum((1 - a) * s, -a * s)


def squared_hinge(f, y, tau) -> np.ndarray:
    s, a = 1 - y * f, y * tau
    return np.where(s > 0, (s - a / 2) ** 2, a * a / 4 - a * np.minimum(s, 0))


def huber(f, y, tau, kappa) -> np.ndarray:
    r = y - f
    near = np.clip(r, -kappa, kappa)
    return 0.5 * (near - tau) ** 2 + (near - tau) * (r - near)


def quantile(f, y, tau, level) -> np.ndarray:
    r = y - f
    return np.maximum((level - tau) * r, (level - 1 - tau) * r)


def insensitive(f, y, tau, epsilon) -> np.ndarray:
    t, r = np.abs(tau), np.where(tau < 0, f - y, y - f)
    return np.maximum(np.maximum((1 - t) * (r - epsilon), t * (epsilon - r)), (-r - epsilon) + t * (epsilon - r))


def squared_insensitive(f, y, tau, epsilon) -> np.ndarray:
    t, r = np.abs(tau), np.where(tau < 0, f - y, y - f)
    beyond = np.maximum(np.abs(r) - epsilon, 0.0)
    inside = beyond**2 + t * t / 4 + t * np.maximum(epsilon - r, 0.0)
    return np.where(r > epsilon, (beyond - t / 2) ** 2, inside)


def exponential(f, y, tau) -> np.ndarray:
    """exp(-z): the bracket is a ln(a / s) - a + s with s = exp(-z)."""
    return poisson(-y * f, y * tau, 0.0)


def poisson(f, y, tau) -> np.ndarray:
    rate = np.exp(f)
    return rate * entropy_excess((y - tau) / rate - 1) * (1 + 1e-12)


def at_corners(bracket: Function, box: Function | None) -> Function:
    """Bound a bracket, convex in f and in tau, over a box by its corners.

    Rounding inside the formula acts like a small change of f and tau, which the box is enlarged by; what
    remains are sums of non-negative products.
    """

    def bound(f, ef, y, tau, et, **params) -> np.ndarray:
        ef = ef + 4 * U * (1 + np.abs(f) + np.abs(y) + sum(params.values()))
        et = et + 4 * U * np.abs(tau)
        low, high = (-np.inf, np.inf) if box is None else box(y, **params)
        corners = [bracket(f + i, y, np.clip(tau + j, low, high), **params) for i in (ef, -ef) for j in (et, -et)]
        return above(np.maximum.reduce(corners), 16) + UNDERFLOW

    return bound


def _toward_label(y, **params):
    return np.minimum(y, 0), np.maximum(y, 0)


def _unit(y, **params):
    return -1.0, 1.0


def _loss(bracket: Function, box: Function | None = None, slope: Function | None = None, **more: Any) -> Loss:
    return Loss(at_corners(bracket, box), slope, box, **more)


LOSSES: dict[str, Loss] = {
    "squared": Loss(squared, lambda f, y: y - f),
    "logistic": Loss(logistic, lambda f, y: y * sigmoid(-y * f)[0], _toward_label, labels=True),
    "hinge": _loss(hinge, _toward_label, labels=True),
    "squared-hinge": _loss(
        squared_hinge,
        lambda y: (np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)),
        lambda f, y: y * 2 * np.maximum(1 - y * f, 0.0),
        labels=True,
    ),
    "huber": _loss(
        huber,
        lambda y, kappa: (-kappa, kappa),
        lambda f, y, kappa: np.clip(y - f, -kappa, kappa),
        params=("kappa",),
    ),
    "quantile": _loss(quantile, lambda y, level: (level - 1, level), params=("level",)),
    "epsilon-insensitive": _loss(insensitive, _unit, params=("epsilon",)),
    "squared-epsilon-insensitive": _loss(
        squared_insensitive,
        None,
        lambda f, y, epsilon: 2 * np.sign(y - f) * np.maximum(np.abs(y - f) - epsilon, 0.0),
        params=("epsilon",),
    ),
    "exponential": _loss(
        exponential,
        lambda y: (np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)),
        lambda f, y: y * np.exp(-y * f),
        labels=True,
    ),
    "poisson": _loss(poisson, lambda y: (-np.inf, y), lambda f, y: y - np.exp(f)),
}

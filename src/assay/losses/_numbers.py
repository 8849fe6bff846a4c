"""Losses of a prediction f of numbers y: functions of the residual r = y - f, and the deviances of counts and amounts
whose mean is exp(f)."""

from typing import Any

import numpy as np
from scipy.special import xlogy

from assay.losses._loss import Dual, Loss, entropy_excess, smoothed_step, within


def _require(loss: str, name: str, value: float, low: float, high: float = np.inf) -> None:
    if not (np.isfinite(value) and low <= value <= high):
        to = "" if high == np.inf else f" and <= {high:g}"
        raise ValueError(f"{loss}: {name} must be a finite number >= {low:g}{to}; got {value!r}.")


squared_error = Loss(
    "squared_error",
    lambda y, f: 0.5 * np.subtract(y, f) ** 2,
    lambda y, f: np.subtract(f, y),
    curvature=lambda y, f: np.ones(np.broadcast(y, f).shape),
    dual=Dual(
        lambda y, u: np.multiply(u, y) + 0.5 * np.multiply(u, u),
        lambda y, f: np.subtract(y, f),
        lambda y, f, tau: 0.5 * (np.subtract(y, f) - tau) ** 2,
        boxed=False,
    ),
    prox=lambda y, v, t: (v + t * y) / (1 + t),
)
"""r^2 / 2; conjugate u y + u^2 / 2."""


def epsilon_insensitive(epsilon: float) -> Loss:
    """Return the loss max(0, |r| - epsilon) of support vector regression; conjugate u y + epsilon |u| on |u| <= 1.

    >>> epsilon_insensitive(0.1).value(0.0, [0.05, 1.1]).tolist()
    [0.0, 1.0]
    """
    _require("epsilon_insensitive", "epsilon", epsilon, 0.0)

    def slope(y: Any, f: Any) -> np.ndarray:
        r = np.subtract(f, y)
        return np.where(np.abs(r) > epsilon, np.sign(r), 0.0)

    def conjugate(y: Any, u: Any) -> np.ndarray:
        return within(np.abs(u) <= 1, np.multiply(u, y) + epsilon * np.abs(u))

    def point(y: Any, f: Any) -> np.ndarray:
        r = np.subtract(y, f)
        return np.sign(r) * smoothed_step(np.abs(r) - epsilon)

    def bracket(y: Any, f: Any, tau: Any) -> np.ndarray:
        r = np.subtract(y, f)
        return np.maximum(np.abs(r) - epsilon, 0.0) - tau * r + epsilon * np.abs(tau)

    def prox(y: Any, v: Any, t: float) -> np.ndarray:
        r = np.subtract(v, y)
        beyond = np.abs(r) - epsilon
        return y + np.sign(r) * np.where(beyond <= 0, np.abs(r), epsilon + np.maximum(beyond - t, 0.0))

    return Loss(
        "epsilon_insensitive",
        lambda y, f: np.maximum(np.abs(np.subtract(y, f)) - epsilon, 0.0),
        slope,
        dual=Dual(conjugate, point, bracket, boxed=True, kinks=True),
        prox=prox,
        parameter=float(epsilon),
    )


def squared_epsilon_insensitive(epsilon: float) -> Loss:
    """Return the loss max(0, |r| - epsilon)^2; conjugate u y + epsilon |u| + u^2 / 4.

    >>> squared_epsilon_insensitive(0.5).value(0.0, [0.25, 2.5]).tolist()
    [0.0, 4.0]
    """
    _require("squared_epsilon_insensitive", "epsilon", epsilon, 0.0)

    def slope(y: Any, f: Any) -> np.ndarray:
        r = np.subtract(f, y)
        return 2.0 * np.sign(r) * np.maximum(np.abs(r) - epsilon, 0.0)

    def bracket(y: Any, f: Any, tau: Any) -> np.ndarray:
        r = np.subtract(y, f)
        s, beyond = np.sign(r) * tau, np.abs(r) - epsilon
        opposite = 2.0 * epsilon * np.maximum(-s, 0.0)
        return np.where(beyond > 0, (beyond - s / 2) ** 2, s * s / 4 - s * beyond) + opposite

    return Loss(
        "squared_epsilon_insensitive",
        lambda y, f: np.maximum(np.abs(np.subtract(y, f)) - epsilon, 0.0) ** 2,
        slope,
        curvature=lambda y, f: np.where(np.abs(np.subtract(y, f)) > epsilon, 2.0, 0.0),
        dual=Dual(
            lambda y, u: np.multiply(u, y) + epsilon * np.abs(u) + np.multiply(u, u) / 4,
            lambda y, f: -slope(y, f),
            bracket,
            boxed=False,
        ),
        parameter=float(epsilon),
    )


absolute_error = Loss(
    "absolute_error",
    lambda y, f: np.abs(np.subtract(y, f)),
    lambda y, f: np.sign(np.subtract(f, y)),
    dual=epsilon_insensitive(0.0).dual,
    prox=epsilon_insensitive(0.0).prox,
)
"""|r|; conjugate u y on |u| <= 1."""


def huber(delta: float) -> Loss:
    """Return Huber's loss, r^2 / 2 up to |r| = delta and delta (|r| - delta / 2) beyond; conjugate u y + u^2 / 2 on
    |u| <= delta.

    >>> huber(2.0).value(0.0, [1.0, 5.0]).tolist()
    [0.5, 8.0]
    """
    _require("huber", "delta", delta, 0.0)

    def value(y: Any, f: Any) -> np.ndarray:
        a = np.abs(np.subtract(y, f))
        return np.where(a <= delta, 0.5 * a * a, delta * (a - 0.5 * delta))

    def slope(y: Any, f: Any) -> np.ndarray:
        return np.clip(np.subtract(f, y), -delta, delta)

    def bracket(y: Any, f: Any, tau: Any) -> np.ndarray:
        r = np.subtract(y, f)
        a, s = np.abs(r), np.sign(r) * tau
        return np.where(a <= delta, 0.5 * (a - s) ** 2, 0.5 * (s - delta) ** 2 + (delta - s) * (a - delta))

    return Loss(
        "huber",
        value,
        slope,
        dual=Dual(
            lambda y, u: within(np.abs(u) <= delta, np.multiply(u, y) + 0.5 * np.multiply(u, u)),
            lambda y, f: -slope(y, f),
            bracket,
            boxed=True,
        ),
        parameter=float(delta),
    )


def quantile(level: float) -> Loss:
    """Return the quantile (pinball) loss, level r for r > 0 and (level - 1) r else; conjugate u y on
    -level <= u <= 1 - level.

    >>> quantile(0.75).value([0.0, 2.0], [1.0, 0.0]).tolist()
    [0.25, 1.5]
    """
    _require("quantile", "level", level, 0.0, 1.0)

    def value(y: Any, f: Any) -> np.ndarray:
        r = np.subtract(y, f)
        return np.where(r > 0, level, level - 1.0) * r

    def bracket(y: Any, f: Any, tau: Any) -> np.ndarray:
        return value(y, f) - tau * np.subtract(y, f)

    return Loss(
        "quantile",
        value,
        lambda y, f: np.where(np.subtract(f, y) > 0, 1.0 - level, -level),
        dual=Dual(
            lambda y, u: within((np.asarray(u) >= -level) & (np.asarray(u) <= 1 - level), np.multiply(u, y)),
            lambda y, f: smoothed_step(np.subtract(y, f)) - (1.0 - level),
            bracket,
            boxed=True,
            kinks=True,
        ),
        parameter=float(level),
    )


def _poisson_conjugate(y: Any, u: Any) -> np.ndarray:
    mean = np.add(y, u)
    m = np.maximum(mean, 0.0)
    return within(mean >= 0, xlogy(m, m) - m)


poisson = Loss(
    "poisson",
    lambda y, f: np.exp(f) - np.multiply(y, f),
    lambda y, f: np.exp(f) - y,
    curvature=lambda y, f: np.exp(f) + np.zeros_like(y),
    dual=Dual(
        _poisson_conjugate,
        lambda y, f: y - np.exp(f),
        lambda y, f, tau: entropy_excess(np.maximum(np.subtract(y, tau), 0.0), f),
        boxed=True,
    ),
)
"""exp(f) - y f, half the deviance of counts with mean exp(f), but for a term in y alone; conjugate m ln m - m with
m = y + u >= 0."""


def _gamma_conjugate(y: Any, u: Any) -> np.ndarray:
    rest = np.subtract(1.0, u)
    m = np.maximum(rest, 0.0)
    return within(rest >= 0, xlogy(m, m / y) - m)


gamma = Loss(
    "gamma",
    lambda y, f: y * np.exp(np.negative(f)) + f,
    lambda y, f: 1.0 - y * np.exp(np.negative(f)),
    curvature=lambda y, f: y * np.exp(np.negative(f)),
    dual=Dual(
        _gamma_conjugate,
        lambda y, f: y * np.exp(np.negative(f)) - 1.0,
        lambda y, f, tau: entropy_excess(np.maximum(np.add(1.0, tau), 0.0), np.log(y) - f),
        boxed=True,
    ),
)
"""y exp(-f) + f, half the deviance of amounts y > 0 with mean exp(f), but for a term in y alone; conjugate
m ln(m / y) - m with m = 1 - u >= 0."""

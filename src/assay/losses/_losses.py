"""Losses: the record of a loss, and the losses themselves.

Regression losses of a prediction f of a number y are functions of the residual r = y - f, or deviances of counts and
amounts whose mean is exp(f). Classification losses of a score f and a label y = -1, +1 are functions of the margin
z = y f, with a = -y u in conjugates. The multinomial logistic loss has class indices y = 0, ..., K - 1 and scores
(n, K).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp, softmax, xlogy

Function = Callable[..., np.ndarray]

CODES = (
    "squared_error",
    "absolute_error",
    "epsilon_insensitive",
    "huber",
    "quantile",
    "squared_epsilon_insensitive",
    "log_loss",
    "hinge",
    "squared_hinge",
    "exponential",
    "sigmoid_squared",
    "perceptron",
    "modified_huber",
)
"""Compiled loops know a loss by its place in this list; the losses of numbers come first."""
_NEWTON = 60
_SIMPLEX = 1e-12  # how far rounding may put a row from the simplex


@dataclass(frozen=True)
class Dual:
    """The conjugate of a convex loss in f, and what a duality gap needs of it.

    conjugate(y, u)       loss*(u) = sup_f u f - loss(y, f); infinite outside its domain
    point(y, f)           tau = minus a slope of the loss at f; where the loss has kinks, a smoothed one
    bracket(y, f, tau)    loss(y, f) + loss*(-tau) + tau f for tau in the domain: never negative (Fenchel and Young),
                          and zero iff tau is minus a slope at f; written so that no large terms cancel

    Parameters
    ----------
    conjugate : callable
        loss*(u), a function of y and u.
    point : callable
        tau, a function of y and f.
    bracket : callable
        loss(y, f) + loss*(-tau) + tau f.
    boxed : bool
        Whether tau has a sign or an interval to keep to.
    kinks : bool, default=False
        Whether `point` is smoothed.
    """

    conjugate: Function
    point: Function
    bracket: Function
    boxed: bool  # tau has a sign or an interval to keep to, so that a repair may only shrink it
    kinks: bool = False  # `point` is smoothed, so that nobody finds it again from the model alone


@dataclass(frozen=True)
class Loss:
    """A loss of scores.

    value(y, f)        the loss of each row
    slope(y, f)        its derivative by f; at a kink one of its slopes
    curvature(y, f)    its second derivative by f, where learners use it
    prox(y, v, t)      argmin_f t value(y, f) + 1/2 (f - v)^2, where solvers use it

    Parameters
    ----------
    name : str
        Name of the loss.
    value : callable
        The loss of y and f.
    slope : callable
        Its derivative by f.
    labels : bool, default=False
        Whether y are labels -1 and +1.
    convex : bool, default=True
        Whether it is convex in f.
    curvature : callable or None
        Second derivative by f; None: no learner uses it.
    dual : Dual or None
        Conjugate and what belongs to it; None: there is none.
    prox : callable or None
        Proximal operator; None: no solver uses it.
    parameter : float, default=0.0
        epsilon, delta or level.
    """

    name: str
    value: Function
    slope: Function
    labels: bool = False  # y = -1, +1
    convex: bool = True
    curvature: Function | None = None
    dual: Dual | None = None
    prox: Function | None = None
    parameter: float = 0.0  # epsilon, delta or level

    @property
    def code(self) -> int:
        """The number by which compiled loops know the loss.

        >>> from assay.losses import hinge
        >>> CODES[hinge.code]
        'hinge'
        """
        return CODES.index(self.name)


def within(inside: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the values where `inside`, infinity elsewhere."""
    return np.where(inside, values, np.inf)


def entropy_excess(a: np.ndarray, log_rate: np.ndarray) -> np.ndarray:
    """Return a ln(a / rate) - a + rate >= 0, the relative entropy of a to the rate."""
    return np.maximum(xlogy(a, a) - a * log_rate - a + np.exp(log_rate), 0.0)


def smoothed_step(t: np.ndarray) -> np.ndarray:
    """Return numbers in [0, 1] that rise from 0 to 1 over the middle tenth of the spread of t."""
    width = 0.05 * float(np.std(t)) + 1e-12
    return np.clip(0.5 + t / (2 * width), 0.0, 1.0)


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

    Parameters
    ----------
    epsilon : float
        Half the width of the tube in which the loss is 0.

    Returns
    -------
    Loss
        The loss.

    Examples
    --------
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

    Parameters
    ----------
    epsilon : float
        Half the width of the tube in which the loss is 0.

    Returns
    -------
    Loss
        The loss.

    Examples
    --------
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

    Parameters
    ----------
    delta : float
        Residual up to which the loss is quadratic.

    Returns
    -------
    Loss
        The loss.

    Examples
    --------
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

    Parameters
    ----------
    level : float
        Level of the quantile, in (0, 1).

    Returns
    -------
    Loss
        The loss.

    Examples
    --------
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


def _of_margin(of: Function) -> Function:
    return lambda y, f: of(np.multiply(y, f))


def _zero_one(y: Any, f: Any) -> np.ndarray:
    return (np.multiply(y, f) <= 0).astype(float)


zero_one = Loss(
    "zero_one",
    _zero_one,
    lambda y, f: np.zeros(np.broadcast(y, f).shape),
    labels=True,
    convex=False,
)
"""1 where y f <= 0, else 0.

A classifier says the second class iff f > 0, so that a score of exactly 0 is right for one class; but which one is
a convention of the code and not of the model. As in certificates, it is an error for both classes.
"""


def _log_curvature(y: Any, f: Any) -> np.ndarray:
    z = np.multiply(y, f)
    return expit(z) * expit(-z)


def _log_conjugate(y: Any, u: Any) -> np.ndarray:
    a = -np.multiply(y, u)
    b = np.clip(a, 0.0, 1.0)
    return within(a == b, xlogy(b, b) + xlogy(1 - b, 1 - b))


def _log_bracket(y: Any, f: Any, tau: Any) -> np.ndarray:
    z, a = np.multiply(y, f), np.clip(np.multiply(y, tau), 0.0, 1.0)
    return np.maximum(xlogy(a, a) + xlogy(1 - a, 1 - a) + np.logaddexp(0.0, -z) + a * z, 0.0)


def _log_prox(y: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
    """Solve z - v y = t sigma(-z) by Newton's method; the left side minus the right is increasing in z."""
    start = y * v
    low, high, z = start, start + t, start + t * expit(-start)
    for _ in range(_NEWTON):
        excess = z - start - t * expit(-z)
        low, high = np.where(excess < 0, z, low), np.where(excess > 0, z, high)
        new = z - excess / (1 + t * expit(z) * expit(-z))
        new = np.where((new <= low) | (new >= high), (low + high) / 2, new)
        if np.array_equal(new, z):
            break
        z = new
    return y * z


log_loss = Loss(
    "log_loss",
    _of_margin(lambda z: np.logaddexp(0.0, -z)),
    lambda y, f: -np.multiply(y, expit(-np.multiply(y, f))),
    labels=True,
    curvature=_log_curvature,
    dual=Dual(_log_conjugate, lambda y, f: np.multiply(y, expit(-np.multiply(y, f))), _log_bracket, boxed=True),
    prox=_log_prox,
)
"""ln(1 + exp(-z)), the logistic loss; conjugate a ln a + (1 - a) ln(1 - a) on [0, 1]."""


def _hinge_conjugate(y: Any, u: Any) -> np.ndarray:
    a = -np.multiply(y, u)
    return within((a >= 0) & (a <= 1), -a)


def _hinge_bracket(y: Any, f: Any, tau: Any) -> np.ndarray:
    z, a = np.multiply(y, f), np.multiply(y, tau)
    return np.where(z < 1, (1 - a) * (1 - z), a * (z - 1))


def _hinge_prox(y: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
    z = y * v
    return y * np.where(z >= 1, z, np.minimum(z + t, 1.0))


hinge = Loss(
    "hinge",
    _of_margin(lambda z: np.maximum(1 - z, 0.0)),
    lambda y, f: np.where(np.multiply(y, f) < 1, np.negative(y), 0.0),
    labels=True,
    dual=Dual(
        _hinge_conjugate,
        lambda y, f: y * smoothed_step(1 - np.multiply(y, f)),
        _hinge_bracket,
        boxed=True,
        kinks=True,
    ),
    prox=_hinge_prox,
)
"""max(0, 1 - z); conjugate -a on [0, 1]."""


def _squared_hinge_conjugate(y: Any, u: Any) -> np.ndarray:
    a = -np.multiply(y, u)
    return within(a >= 0, a * a / 4 - a)


def _squared_hinge_bracket(y: Any, f: Any, tau: Any) -> np.ndarray:
    z, a = np.multiply(y, f), np.multiply(y, tau)
    return np.where(z < 1, (1 - z - a / 2) ** 2, a * a / 4 + a * (z - 1))


squared_hinge = Loss(
    "squared_hinge",
    _of_margin(lambda z: np.maximum(1 - z, 0.0) ** 2),
    lambda y, f: np.multiply(-2.0, y) * np.maximum(1 - np.multiply(y, f), 0.0),
    labels=True,
    curvature=lambda y, f: np.where(np.multiply(y, f) < 1, 2.0, 0.0),
    dual=Dual(
        _squared_hinge_conjugate,
        lambda y, f: np.multiply(2.0, y) * np.maximum(1 - np.multiply(y, f), 0.0),
        _squared_hinge_bracket,
        boxed=True,
    ),
)
"""max(0, 1 - z)^2; conjugate a^2 / 4 - a for a >= 0."""


def _exponential_conjugate(y: Any, u: Any) -> np.ndarray:
    a = -np.multiply(y, u)
    b = np.maximum(a, 0.0)
    return within(a >= 0, xlogy(b, b) - b)


def _exponential_bracket(y: Any, f: Any, tau: Any) -> np.ndarray:
    return entropy_excess(np.maximum(np.multiply(y, tau), 0.0), -np.multiply(y, f))


exponential = Loss(
    "exponential",
    _of_margin(lambda z: np.exp(-z)),
    lambda y, f: np.negative(y) * np.exp(-np.multiply(y, f)),
    labels=True,
    curvature=_of_margin(lambda z: np.exp(-z)),
    dual=Dual(_exponential_conjugate, lambda y, f: y * np.exp(-np.multiply(y, f)), _exponential_bracket, boxed=True),
)
"""exp(-z); conjugate a ln a - a for a >= 0."""


def _perceptron_conjugate(y: Any, u: Any) -> np.ndarray:
    a = -np.multiply(y, u)
    return within((a >= 0) & (a <= 1), np.zeros_like(a))


def _perceptron_bracket(y: Any, f: Any, tau: Any) -> np.ndarray:
    z, a = np.multiply(y, f), np.multiply(y, tau)
    return np.where(z < 0, (a - 1) * z, a * z)


perceptron = Loss(
    "perceptron",
    _of_margin(lambda z: np.maximum(-z, 0.0)),
    lambda y, f: np.where(np.multiply(y, f) <= 0, np.negative(y), 0.0),
    labels=True,
    dual=Dual(
        _perceptron_conjugate,
        lambda y, f: y * smoothed_step(-np.multiply(y, f)),
        _perceptron_bracket,
        boxed=True,
        kinks=True,
    ),
)
"""max(0, -z); conjugate 0 on [0, 1]. It is no bound of the 0/1 loss: it is smaller near z = 0."""


squared_margin = Loss(
    "squared_margin",
    _of_margin(lambda z: (z - 1.0) ** 2),
    lambda y, f: np.multiply(2.0, y) * (np.multiply(y, f) - 1.0),
    labels=True,
    curvature=_of_margin(lambda z: np.full(np.shape(z), 2.0)),
    dual=Dual(
        lambda y, u: np.multiply(u, u) / 4 + np.multiply(y, u),
        lambda y, f: np.multiply(2.0, y) * (1.0 - np.multiply(y, f)),
        lambda y, f, tau: (1.0 - np.multiply(y, f) - np.multiply(y, tau) / 2) ** 2,
        boxed=False,
    ),
)
"""(z - 1)^2 = (y - f)^2; conjugate a^2 / 4 - a."""


sigmoid_squared = Loss(
    "sigmoid_squared",
    _of_margin(lambda z: expit(-z) ** 2),
    lambda y, f: np.multiply(-2.0, y) * expit(-np.multiply(y, f)) ** 2 * expit(np.multiply(y, f)),
    labels=True,
    convex=False,
)
"""(sigma(z) - 1)^2: bounded, and not convex."""


def _modified_huber(z: np.ndarray) -> np.ndarray:
    return np.where(z <= -1, -4 * z, np.maximum(1 - z, 0.0) ** 2)


modified_huber = Loss(
    "modified_huber",
    _of_margin(_modified_huber),
    lambda y, f: np.multiply(-2.0, y) * np.clip(1 - np.multiply(y, f), 0.0, 2.0),
    labels=True,
)
"""max(0, 1 - z)^2 down to z = -1, and -4 z below: the squared hinge that a row far on the wrong side does not rule."""


def surrogates(z: Any) -> dict[str, np.ndarray]:
    """Return every loss of the margin on a grid, by name: the data of the usual comparison plot.

    The logistic loss in base 2 equals 1 at z = 0 and lies above the 0/1 loss.

    Parameters
    ----------
    z : array-like
        Margins y f.

    Returns
    -------
    dict
        The losses by name.

    Examples
    --------
    >>> [round(float(value[0]), 4) for value in surrogates(np.array([0.0])).values()]
    [1.0, 1.0, 1.0, 0.6931, 1.0, 1.0, 0.25]
    """
    z = np.asarray(z, dtype=np.float64)
    return {
        "0/1": zero_one.value(1.0, z),
        "hinge": hinge.value(1.0, z),
        "exponential": exponential.value(1.0, z),
        "logistic": log_loss.value(1.0, z),
        "logistic, base 2": log_loss.value(1.0, z) / np.log(2.0),
        "squared": squared_margin.value(1.0, z),
        "sigmoid squared": sigmoid_squared.value(1.0, z),
    }


def gradient_table(z: Any = (-10.0, -5.0, -2.0, -1.0, 0.0, 1.0, 2.0, 5.0)) -> dict[str, np.ndarray]:
    """Return the size of the gradient by the score of the squared error of the sigmoid and of the cross-entropy at
    margins z = y <w, x>, and their ratio: far on the wrong side the squared error hardly moves, and learning stalls.

    Parameters
    ----------
    z : array-like
        Margins y f.

    Returns
    -------
    dict
        Columns "margin", "squared", "cross-entropy" and "ratio".

    Examples
    --------
    >>> table = gradient_table([-10.0, 0.0])
    >>> [round(float(value), 6) for value in table["ratio"]]
    [9.1e-05, 0.5]
    """
    z = np.asarray(z, dtype=np.float64)
    squared, cross = np.abs(sigmoid_squared.slope(1.0, z)), np.abs(log_loss.slope(1.0, z))
    return {"margin": z, "squared": squared, "cross-entropy": cross, "ratio": squared / cross}


def _of_class(y: Any, shape: tuple[int, ...]) -> np.ndarray:
    own = np.zeros(shape)
    own[np.arange(shape[0]), np.asarray(y)] = 1.0
    return own


def _multinomial_value(y: Any, F: Any) -> np.ndarray:
    F = np.asarray(F)
    return logsumexp(F, axis=1) - F[np.arange(len(F)), np.asarray(y)]


def _multinomial_slope(y: Any, F: Any) -> np.ndarray:
    return softmax(F, axis=1) - _of_class(y, np.shape(F))


def _multinomial_conjugate(y: Any, U: Any) -> np.ndarray:
    p = U + _of_class(y, np.shape(U))
    inside = (p.min(axis=1) >= -_SIMPLEX) & (np.abs(p.sum(axis=1) - 1.0) <= _SIMPLEX * p.shape[1])
    kept = np.maximum(p, 0.0)
    return within(inside, xlogy(kept, kept).sum(axis=1))


def _multinomial_bracket(y: Any, F: Any, T: Any) -> np.ndarray:
    p = np.maximum(_of_class(y, np.shape(F)) - T, 0.0)
    log_q = F - logsumexp(F, axis=1, keepdims=True)
    return np.maximum((xlogy(p, p) - p * log_q).sum(axis=1), 0.0)


multinomial = Loss(
    "multinomial",
    _multinomial_value,
    _multinomial_slope,
    dual=Dual(_multinomial_conjugate, lambda y, F: -_multinomial_slope(y, F), _multinomial_bracket, boxed=True),
)
"""logsumexp(F) - F_y; conjugate sum_k p_k ln p_k with p = U + e_y in the simplex: the bracket is the relative entropy
of p to softmax(F)."""

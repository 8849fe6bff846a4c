"""What a loss is made of."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

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


@dataclass(frozen=True)
class Dual:
    """The conjugate of a convex loss in f, and what a duality gap needs of it.

    conjugate(y, u)       loss*(u) = sup_f u f - loss(y, f); infinite outside its domain
    point(y, f)           tau = minus a slope of the loss at f; where the loss has kinks, a smoothed one
    bracket(y, f, tau)    loss(y, f) + loss*(-tau) + tau f for tau in the domain: never negative (Fenchel and Young),
                          and zero iff tau is minus a slope at f; written so that no large terms cancel
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

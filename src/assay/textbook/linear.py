"""Formulas of linear models: squared error of a line, sigmoid and logit, likelihood of a label, margin."""

from typing import Any, NamedTuple

import numpy as np

from assay.losses.deviance import inverse_link, link_function


class SquaredError(NamedTuple):
    """E = sum (y - w x - b)^2 and its derivatives by w and b.

    Parameters
    ----------
    value : float
        E.
    by_w : float
        dE/dw.
    by_b : float
        dE/db.
    """

    value: float
    by_w: float
    by_b: float


def squared_error(x: Any, y: Any, w: float, b: float) -> SquaredError:
    """Return E(w, b) of a line, dE/dw = 2 (w sum x^2 - sum (y - b) x) and dE/db = 2 (m b - sum (y - w x)).

    Parameters
    ----------
    x : array-like
        Inputs.
    y : array-like
        Targets.
    w : float
        Slope.
    b : float
        Intercept.

    Returns
    -------
    SquaredError
        The error and its derivatives.

    Examples
    --------
    >>> squared_error([0.0, 1.0], [1.0, 3.0], 2.0, 1.0)
    SquaredError(value=0.0, by_w=0.0, by_b=0.0)
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    by_w = 2 * (w * float(x @ x) - float((y - b) @ x))
    by_b = 2 * (len(x) * b - float(np.sum(y - w * x)))
    return SquaredError(float(np.sum((y - w * x - b) ** 2)), by_w, by_b)


def sigmoid(z: Any) -> Any:
    """Return 1 / (1 + e^-z), without overflow at any z.

    Parameters
    ----------
    z : array-like
        Log odds.

    Returns
    -------
    float or ndarray
        The probability.

    Examples
    --------
    >>> float(sigmoid(0.0)), float(sigmoid(-800.0)), float(sigmoid(800.0))
    (0.5, 0.0, 1.0)
    """
    return inverse_link("logit", np.asarray(z, dtype=np.float64))


def logit(p: Any) -> Any:
    """Return the log odds ln(p / (1 - p)) of a probability, the inverse of `sigmoid`; -inf at 0, inf at 1.

    Parameters
    ----------
    p : array-like
        Probabilities.

    Returns
    -------
    float or ndarray
        The log odds.

    Examples
    --------
    >>> float(logit(0.5))
    0.0
    """
    with np.errstate(divide="ignore"):
        return link_function("logit", np.asarray(p, dtype=np.float64))


def likelihood_term(y: Any, positive: Any) -> Any:
    """Return p(y | x) = y p_1 + (1 - y) p_0 for y in {0, 1}, p_1 the probability of class 1 and p_0 = 1 -
    p_1.

    Parameters
    ----------
    y : array-like
        Labels 0 and 1.
    positive : array-like
        Probability of the label 1.

    Returns
    -------
    float or ndarray
        The probability of the label.

    Examples
    --------
    >>> likelihood_term(1, 0.7)
    0.7
    """
    return y * positive + (1 - y) * (1 - positive)


def hyperplane_margin(rows: Any, labels: Any, w: Any, b: float = 0.0) -> float:
    """Return min_i y_i (<w, a_i> + b) / |w|: negative if a row is on the wrong side; the length of w does
    not matter.

    Parameters
    ----------
    rows : array-like
        Rows.
    labels : array-like
        Labels -1 and +1.
    w : array-like
        Normal of the hyperplane.
    b : float, default=0.0
        Intercept.

    Returns
    -------
    float
        The margin.

    Examples
    --------
    >>> hyperplane_margin([[3.0, 4.0], [-3.0, 0.0]], [1, -1], [2.0, 0.0])
    3.0
    """
    w = np.asarray(w, dtype=np.float64)
    scores = np.asarray(labels) * (np.asarray(rows, dtype=np.float64) @ w + b)
    return float(scores.min() / np.linalg.norm(w))

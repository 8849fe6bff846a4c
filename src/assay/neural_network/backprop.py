"""Back-propagation of one hidden layer of sigmoid units, in the symbols of the textbooks.

    alpha_h = sum_i v_ih x_i,  b_h = f(alpha_h - gamma_h),  beta_j = sum_h w_hj b_h,  y^_j = f(beta_j - theta_j)
    E_k = 1/2 sum_j (y^_j - y_j)^2
    g_j = y^_j (1 - y^_j) (y_j - y^_j),   e_h = b_h (1 - b_h) sum_j w_hj g_j
    w_hj += eta g_j b_h,  theta_j -= eta g_j,  v_ih += eta e_h x_i,  gamma_h -= eta e_h

g and e are minus the derivatives of E_k by beta and alpha. `MLPClassifier(loss="squared_error", solver="standard_bp")`
is the same method for any number of layers; this file exists to be read and to check it against.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit


class Weights(NamedTuple):
    """v (d, q) and gamma (q,) of the hidden layer, w (q, l) and theta (l,) of the output layer."""

    v: np.ndarray
    gamma: np.ndarray
    w: np.ndarray
    theta: np.ndarray


class Pass(NamedTuple):
    """What the hidden units and the outputs say of one row."""

    b: np.ndarray
    out: np.ndarray


def forward(net: Weights, x: Any) -> Pass:
    """Return hidden values b and outputs y^ of one row."""
    b = expit(np.asarray(x, dtype=np.float64) @ net.v - net.gamma)
    return Pass(b, expit(b @ net.w - net.theta))


def error(out: Any, y: Any) -> float:
    """Return E_k = 1/2 sum_j (y^_j - y_j)^2.

    >>> error([0.5, 1.0], [1.0, 1.0])
    0.125
    """
    return float(0.5 * np.sum((np.asarray(out) - np.asarray(y)) ** 2))


def output_gradient(out: Any, y: Any) -> np.ndarray:
    """Return g_j = y^_j (1 - y^_j) (y_j - y^_j).

    >>> output_gradient([0.5], [1.0]).tolist()
    [0.125]
    """
    out = np.asarray(out, dtype=np.float64)
    return out * (1 - out) * (np.asarray(y) - out)


def hidden_gradient(b: Any, w: Any, g: Any) -> np.ndarray:
    """Return e_h = b_h (1 - b_h) sum_j w_hj g_j.

    >>> hidden_gradient([0.5], [[2.0]], [0.125]).tolist()
    [0.0625]
    """
    b = np.asarray(b, dtype=np.float64)
    return b * (1 - b) * (np.asarray(w, dtype=np.float64) @ np.asarray(g, dtype=np.float64))


def moves(net: Weights, x: Any, y: Any) -> Weights:
    """Return minus the gradient of E_k at one row, by each of the parameters: the update at rate 1."""
    said = forward(net, x)
    g = output_gradient(said.out, y)
    e = hidden_gradient(said.b, net.w, g)
    return Weights(np.outer(x, e), -e, np.outer(said.b, g), -g)


def bp_step(net: Weights, x: Any, y: Any, eta: float | tuple[float, float] = 0.1) -> Weights:
    """Return the parameters after one row: standard back-propagation.

    `eta` is the learning rate, or one for the hidden and one for the output layer.
    """
    hidden, out = eta if isinstance(eta, tuple) else (eta, eta)
    d = moves(net, x, y)
    return Weights(net.v + hidden * d.v, net.gamma + hidden * d.gamma, net.w + out * d.w, net.theta + out * d.theta)


def accumulated_step(net: Weights, X: Any, Y: Any, eta: float = 0.1) -> Weights:
    """Return the parameters after one step along the mean gradient of all rows: accumulated back-propagation."""
    total = [moves(net, x, y) for x, y in zip(np.asarray(X, dtype=np.float64), np.asarray(Y), strict=True)]
    return Weights(*(part + eta * np.mean(moved, axis=0) for part, moved in zip(net, zip(*total), strict=True)))

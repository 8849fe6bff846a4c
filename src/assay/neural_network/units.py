"""Neurons with a threshold and an activation, networks of threshold gates, back-propagation written out.

    y = f(sum_i w_i x_i - theta)        (McCulloch and Pitts 1943)

Back-propagation of one hidden layer of sigmoid units, in the notation of textbooks:

    alpha_h = sum_i v_ih x_i,  b_h = f(alpha_h - gamma_h),  beta_j = sum_h w_hj b_h,  y^_j = f(beta_j - theta_j)
    E_k = 1/2 sum_j (y^_j - y_j)^2
    g_j = y^_j (1 - y^_j) (y_j - y^_j),   e_h = b_h (1 - b_h) sum_j w_hj g_j
    w_hj += eta g_j b_h,  theta_j -= eta g_j,  v_ih += eta e_h x_i,  gamma_h -= eta e_h

g and e are minus the derivatives of E_k by beta and alpha. `MLPClassifier(loss="squared_error", solver="standard_bp")`
is the same method for any number of layers; this file exists to be read and to check it against.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit


class Activation(NamedTuple):
    """A function and its derivative, both of arrays; `slope` is None where the derivative is zero almost everywhere."""

    value: Callable[[Any], np.ndarray]
    slope: Callable[[Any], np.ndarray] | None


def _sigmoid_slope(x: Any) -> np.ndarray:
    f = expit(np.asarray(x, dtype=np.float64))
    return f * (1 - f)


ACTIVATIONS = {
    "step": Activation(lambda x: (np.asarray(x) >= 0).astype(np.float64), None),
    "sign": Activation(lambda x: np.where(np.asarray(x) >= 0, 1.0, -1.0), None),
    "logistic": Activation(lambda x: expit(np.asarray(x, dtype=np.float64)), _sigmoid_slope),
    "tanh": Activation(np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "relu": Activation(lambda x: np.maximum(x, 0.0), lambda x: (np.asarray(x) > 0).astype(np.float64)),
    "identity": Activation(lambda x: np.asarray(x, dtype=np.float64), lambda x: np.ones(np.shape(x))),
}
"""What a unit does with its sum. "step" says 0 or 1, "sign" -1 or +1, and both say the upper one at zero."""


def neuron(x: Any, w: Any, theta: float, activation: str = "step") -> np.ndarray:
    """Return f(<w, x> - theta) of each row of x.

    >>> neuron([[0, 0], [0, 1], [1, 1]], [1.0, 1.0], 1.5).tolist()  # AND
    [0.0, 0.0, 1.0]
    """
    if activation not in ACTIVATIONS:
        raise ValueError(f"neuron: activation must be one of {', '.join(ACTIVATIONS)}; got {activation!r}.")
    x, w = np.asarray(x, dtype=np.float64), np.asarray(w, dtype=np.float64)
    if w.ndim != 1 or x.shape[-1:] != w.shape:
        raise ValueError(f"neuron: w must hold one weight for each column of x; got shapes {x.shape} and {w.shape}.")
    return ACTIVATIONS[activation].value(x @ w - theta)


class ThresholdNetwork:
    """Layers of linear threshold gates: each says 1 where <w, x> >= theta, else 0.

    A gate is a half-space, so a network is a Boolean function of half-spaces; with one hidden layer it can be any
    union or intersection of them. The weights are given, not learnt: the step has no slope to follow. The space of
    such networks is `assay.theory.spaces.ThresholdNets`.

    Parameters
    ----------
    layers : sequence of (weights, thresholds)
        Weights (inputs, gates) and thresholds (gates,) of each layer; a layer reads what the one before it says.

    Examples
    --------
    >>> xor = ThresholdNetwork([([[1, 1], [1, 1]], [0.5, 1.5]), ([[1], [-1]], [0.5])])  # or, and not both
    >>> xor([[0, 0], [0, 1], [1, 0], [1, 1]]).ravel().tolist()
    [0.0, 1.0, 1.0, 0.0]
    """

    def __init__(self, layers: Sequence[tuple[Any, Any]]) -> None:
        self.layers = [(np.asarray(w, dtype=np.float64), np.asarray(t, dtype=np.float64)) for w, t in layers]
        if not self.layers:
            raise ValueError("ThresholdNetwork: layers must hold at least one pair (weights, thresholds); got none.")
        width = self.layers[0][0].shape[0] if self.layers[0][0].ndim == 2 else -1
        for k, (w, t) in enumerate(self.layers):
            if w.ndim != 2 or w.shape[0] != width or t.shape != w.shape[1:]:
                raise ValueError(
                    f"ThresholdNetwork: layer {k} must have weights (inputs, gates) that read the {width} outputs of "
                    f"the layer before, and one threshold per gate; got shapes {w.shape} and {t.shape}."
                )
            width = w.shape[1]

    def __call__(self, X: Any) -> np.ndarray:
        """Return what the gates of the last layer say of each row, (n, gates) of 0 and 1."""
        A = np.atleast_2d(np.asarray(X, dtype=np.float64))
        inputs = len(self.layers[0][0])
        if A.ndim != 2 or A.shape[1] != inputs:
            raise ValueError(f"ThresholdNetwork: X must have {inputs} columns, one per input; got shape {A.shape}.")
        for w, t in self.layers:
            A = (A @ w - t >= 0).astype(np.float64)
        return A


def two_layer_perceptron(X: Any, Y: Any, *, eta: float = 0.1, epochs: int = 100) -> ThresholdNetwork:
    """Return inputs joined to one layer of threshold gates, learnt from 0 row by row by the perceptron's rule.

        w_ij <- w_ij + eta (y_j - said_j) x_i,   theta_j <- theta_j - eta (y_j - said_j)

    Y (n, gates) holds 0 and 1. Each gate comes to rest if a half-space has its labels, constant ones too (Rosenblatt
    1962); the others are left as they are after so many epochs.

    >>> square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> net = two_layer_perceptron(square, [[0, 0], [0, 1], [0, 1], [1, 1]])  # and, or
    >>> net(square).tolist()
    [[0.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 1.0]]
    """
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y) or not np.isin(Y, (0, 1)).all():
        raise ValueError(f"two_layer_perceptron: Y must hold 0 and 1, (rows, gates); got shapes {X.shape}, {Y.shape}.")
    w, theta = np.zeros((X.shape[1], Y.shape[1])), np.zeros(Y.shape[1])
    for _ in range(epochs):
        for x, y in zip(X, Y, strict=True):
            moved = eta * (y - (x @ w >= theta))
            w += np.outer(x, moved)
            theta -= moved
    return ThresholdNetwork([(w, theta)])


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
    outputs = forward(net, x)
    g = output_gradient(outputs.out, y)
    e = hidden_gradient(outputs.b, net.w, g)
    return Weights(np.outer(x, e), -e, np.outer(outputs.b, g), -g)


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

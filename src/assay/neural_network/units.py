"""Neurons: a weighted sum against a threshold, passed through an activation; networks of threshold gates.

y = f(sum_i w_i x_i - theta)        (McCulloch and Pitts 1943)
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

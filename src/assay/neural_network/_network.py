"""The shape of a network: sizes, units, loss; its parameters as one vector; what it says of rows, in NumPy."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

UNITS = ("identity", "logistic", "tanh", "relu")
OUTPUTS = ("softmax", "logistic", "identity", "exp", "squared_logistic")
"""Output and loss, numbered as in the compiled loops: log loss of softmax, log loss of logistic outputs, squared error,
Poisson deviance of exp, squared error of logistic outputs."""


class Shape(NamedTuple):
    """Sizes of all layers, inputs and outputs included; the unit of the hidden layers; output with loss, by name."""

    sizes: tuple[int, ...]
    unit: str
    output: str

    @property
    def codes(self) -> tuple[np.ndarray, int, int]:
        """Sizes, unit and output as the compiled loops read them."""
        return np.array(self.sizes, dtype=np.int64), UNITS.index(self.unit), OUTPUTS.index(self.output)

    @property
    def n_weights(self) -> int:
        return sum(a * b for a, b in pairwise(self.sizes))

    @property
    def n_parameters(self) -> int:
        return self.n_weights + sum(self.sizes[1:])

    @property
    def widest_product(self) -> int:
        """Multiplications of the most expensive layer for one row."""
        return max(a * b for a, b in pairwise(self.sizes))

    def by_layer(self, values: Sequence[float]) -> np.ndarray:
        """Return one number per layer as one per parameter; none as none."""
        weights = [np.full(a * b, value) for value, (a, b) in zip(values, pairwise(self.sizes))]
        return np.concatenate([*weights, *(np.full(b, value) for value, b in zip(values, self.sizes[1:])), np.empty(0)])

    def start(self, random: np.random.RandomState, dtype: Any) -> np.ndarray:
        """Return first parameters: uniform in +-sqrt(6 / (fan in + fan out)), of the logistic unit sqrt(2 / ...)
        (Glorot and Bengio 2010), drawn as scikit-learn draws them."""
        weights, intercepts = [], []
        for a, b in pairwise(self.sizes):
            bound = np.sqrt((2.0 if self.unit == "logistic" else 6.0) / (a + b))
            weights.append(random.uniform(-bound, bound, (a, b)).ravel())
            intercepts.append(random.uniform(-bound, bound, b))
        return np.concatenate([*weights, *intercepts]).astype(dtype)


def unpack(sizes: Sequence[int] | np.ndarray, theta: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the weights (k_l, k_l+1) and intercepts (k_l+1,) of every layer, as views of theta: one vector of the
    weights of every layer, then the intercepts."""
    weights, intercepts, at = [], [], 0
    for a, b in pairwise(sizes):
        weights.append(theta[at : at + a * b].reshape(a, b))
        at += a * b
    for b in sizes[1:]:
        intercepts.append(theta[at : at + b])
        at += b
    return weights, intercepts


_VALUES = {
    "identity": lambda Z: Z,
    "logistic": lambda Z: expit(Z, out=Z),
    "tanh": lambda Z: np.tanh(Z, out=Z),
    "relu": lambda Z: np.maximum(Z, 0, out=Z),
}


def sums_of_last(X: Any, coefs: list[np.ndarray], intercepts: list[np.ndarray], unit: str) -> np.ndarray:
    """Return what the output units receive of each row, (n, outputs): the scores, before the output function."""
    A = X
    for k, (W, b) in enumerate(zip(coefs, intercepts, strict=True)):
        A = A @ W + b
        A = _VALUES[unit](A) if k < len(coefs) - 1 else A
    return A


def outputs(Z: np.ndarray, output: str) -> np.ndarray:
    """Return the output function of the scores."""
    if output == "identity":
        return Z
    if output == "exp":
        return np.exp(Z)
    return softmax(Z, axis=1) if output == "softmax" else expit(Z)

"""What a network certifies: how its scores round, its errors, and the length of the gradient of its objective.

Rounding is bounded layer by layer. If the values of a layer are off by at most e, its sums are off by
gamma (|a| |W| + |b|) + e |W|, and what the units say by that times their largest slope. All bounds are doubled, so that
whoever recomputes in another order resolves every row that is resolved here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import is_classifier

from assay.base import Diagram, Learner
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.messages import Message
from assay.neural_network._network import OUTPUTS, UNITS, sums_of_last, unpack
from assay.neural_network._training import targets
from assay.scan import Rows
from assay.theory.spaces import Unbounded

_UNIT = 2.0**-53
_LEAST = 1e-140  # what underflow can hide, generously
_STEEPEST = {"identity": 1.0, "relu": 1.0, "tanh": 1.0, "logistic": 0.25}
_ROUNDING_ERROR = 40 * _UNIT  # rounding of a bounded unit
_LOSSES = {
    "softmax": "log",
    "logistic": "log",
    "identity": "squared",
    "exp": "poisson",
    "squared_logistic": "squared",
}


@dataclass(frozen=True)
class _NotCounted(Unbounded):
    """A class whose capacity is finite, but of which no bound is used: infinity stands for "nothing is claimed"."""

    why_no_bound: ClassVar[str] = Message("why.network-capacity")


class Networks:
    """The family of feed-forward networks; `at` says why no bound goes through its capacity."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Unbounded:
        return _NotCounted("feed-forward networks, of whose capacity nothing is claimed")

    def __str__(self) -> str:
        return "layers of units f(W a + b), any number of them"


class CertifiedNetwork(Learner):
    """A network as the checker reads it: three arrays, and bounds of what rounding does to its scores."""

    activation: str
    loss: str
    batch_rows_: int = 0
    """Rows of a batch of the last fit; 0 for solvers that read all rows at once."""
    network_sizes_: np.ndarray
    """Units of every layer, inputs and outputs included."""
    network_weights_: np.ndarray
    """All weights, layer by layer, then all intercepts."""

    def diagram(self) -> Diagram:
        """Return the layers that a diagram shows."""
        hidden = [f"hidden {k}" for k in range(1, len(self.coefs_))]
        return Diagram(list(self.coefs_), ["inputs", *hidden, "outputs"])

    def _output(self) -> str:
        """Return the output function with its loss, by name."""
        raise NotImplementedError

    @property
    def out_activation_(self) -> str:
        """The output function: softmax, logistic, identity or exp."""
        return self._output().removeprefix("squared_")

    @property
    def coefs_(self) -> list[np.ndarray]:
        """The weights of every layer, (k_l, k_l+1), as views of `network_weights_`."""
        return unpack(self.network_sizes_, self.network_weights_)[0]

    @property
    def intercepts_(self) -> list[np.ndarray]:
        """The intercepts of every layer, (k_l+1,), as views of `network_weights_`."""
        return unpack(self.network_sizes_, self.network_weights_)[1]

    @property
    def n_layers_(self) -> int:
        """Number of layers, inputs and outputs included."""
        return len(self.network_sizes_)

    @property
    def n_outputs_(self) -> int:
        """Number of output units."""
        return int(self.network_sizes_[-1])

    @property
    def network_codes_(self) -> np.ndarray:
        """Which unit the hidden layers have, and which output: 0 the score itself, 1 its exponential."""
        return np.array([UNITS.index(self.activation), int(self.out_activation_ == "exp")], dtype=np.int64)

    def _layers(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        return unpack(self.network_sizes_, self.network_weights_.astype(np.float64))

    def _double_scores(self, block: Block) -> np.ndarray:
        Z = sums_of_last(block.X, *self._layers(), self.activation)
        return np.exp(Z) if self.out_activation_ == "exp" else Z

    def _rounding(self, rows: Rows) -> np.ndarray:
        """Return, for each output, how far rounding can move it in any row."""
        layers = self._layers()
        tops = [np.max(part, axis=0) for part in zip(*rows.map(_largest_values, *layers, self.activation), strict=True)]
        error = np.zeros(len(tops[0]))
        for k, (W, b) in enumerate(zip(*layers, strict=True)):
            error = _sum_error(tops[k], error, W, b)
            if k < len(layers[0]) - 1:
                error = _unit_error(error, self.activation)
        if self.out_activation_ == "exp":
            error = np.exp(tops[-1]) * (np.expm1(error) + 1e-12)
        return error

    def _row_rounding(self, X: np.ndarray) -> np.ndarray:
        """Return the same for each of these rows alone, (n, outputs)."""
        W, b = self._layers()
        A, error = X, np.zeros_like(X)
        for k in range(len(W)):
            error = _sum_error(np.abs(A), error, W[k], b[k])
            if k < len(W) - 1:
                A = sums_of_last(A, [W[k], np.eye(W[k].shape[1])], [b[k], np.zeros(W[k].shape[1])], self.activation)
                error = _unit_error(error, self.activation)
        return error

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the length of the gradient of the objective at the weights."""
        if not np.isfinite(self.network_weights_).all():
            yield NotApplicable("network.gradient", Message("why.weights-infinite"))
            return
        yield self._gradient_claim(rows)

    def _gradient_claim(self, rows: Rows) -> Claim:
        """Return the claim; its value holds what rounding can hide on either side."""
        layers = self._layers()
        output = self._output()
        sums = rows.sum(_gradient_sums, *layers, self.activation, OUTPUTS.index(output), is_classifier(self))
        mass = float(sums[0])
        penalty = self._penalty()  # type: ignore[attr-defined]
        batch = self.batch_rows_
        decay = penalty.alpha / (batch or mass) + penalty.decay
        k = len(layers[0])
        square = 0.0
        roundings = 4 * (rows.n_rows + 64) * _UNIT
        for place, part in enumerate([*layers[0], *layers[1]]):
            value, size = sums[1 + place] / mass, sums[1 + 2 * k + place] / mass
            rate = decay if place < k else penalty.intercept_decay
            slope = penalty.share * value + rate * part
            slack = penalty.share * (size + roundings * np.abs(value)) + 64 * _UNIT * rate * np.abs(part)
            square += float(np.sum((np.abs(slope) + 2 * slack) ** 2))
        params = {
            "loss": _LOSSES[output],
            "share": penalty.share,
            "decay": float(decay),
            "intercept_decay": penalty.intercept_decay,
        }
        return Claim("network.gradient", float(np.sqrt(square)) * (1 + 1e-6) + 1e-12, params=params)


def _sum_error(size: np.ndarray, error: np.ndarray, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return twice a bound of how far sums a W + b are off, for |a| <= size and a off by at most error."""
    gamma = (2 * len(W) + 16) * _UNIT
    return 2 * gamma * ((size + error) @ np.abs(W) + np.abs(b)) + (1 + 1e-9) * (error @ np.abs(W)) + _LEAST


def _unit_error(error: np.ndarray, unit: str) -> np.ndarray:
    return error * _STEEPEST[unit] + (_ROUNDING_ERROR if unit in ("tanh", "logistic") else 0.0)


def _hidden(A: np.ndarray, W: np.ndarray, b: np.ndarray, unit: str) -> tuple[np.ndarray, np.ndarray]:
    """Return sums and values of one hidden layer."""
    Z = A @ W + b
    return Z, {"relu": lambda: np.maximum(Z, 0), "tanh": lambda: np.tanh(Z), "logistic": lambda: expit(Z)}.get(
        unit, lambda: Z
    )()


def _largest_values(block: Block, weights: list, intercepts: list, unit: str) -> list[np.ndarray]:
    """Return the largest magnitude of each input, of each hidden unit, and of each score."""
    A, tops = block.X, [np.abs(block.X).max(axis=0)]
    for W, b in zip(weights[:-1], intercepts[:-1], strict=True):
        A = _hidden(A, W, b, unit)[1]
        tops.append(np.abs(A).max(axis=0))
    tops.append(np.abs(A @ weights[-1] + intercepts[-1]).max(axis=0))
    return tops


def _slope(
    Z: np.ndarray, A: np.ndarray, off: np.ndarray, error: np.ndarray, unit: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return f'(z) and how far off it can be, for sums off by `off` and values off by `error`."""
    if unit == "relu":
        return (Z > 0).astype(np.float64), (np.abs(Z) <= off).astype(np.float64)
    if unit == "logistic":
        return A * (1 - A), error * (1 + error) + 16 * _UNIT
    if unit == "tanh":
        return 1 - A**2, error * (2 * np.abs(A) + error) + 16 * _UNIT
    return np.ones_like(Z), np.zeros_like(Z)


def _pull(Z: np.ndarray, off: np.ndarray, Y: np.ndarray, output: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivative of each row's loss by its scores, and how far off it can be."""
    name = OUTPUTS[output]
    if name == "softmax":
        P = softmax(Z, axis=1)
        spread = Z.max(axis=1, keepdims=True) - Z.min(axis=1, keepdims=True)
        return P - Y, P * (
            np.expm1(2 * off.max(axis=1, keepdims=True)) + 16 * (spread + Z.shape[1] + 16) * _UNIT
        ) + 4 * _UNIT
    if name == "identity":
        return Z - Y, off + 4 * _UNIT * np.abs(Z - Y)
    if name == "exp":
        mean = np.exp(Z)
        return mean - Y, mean * (np.expm1(off) + 64 * _UNIT) + 4 * _UNIT * np.abs(mean - Y)
    P, error = expit(Z), 0.25 * off + 64 * _UNIT
    return (P - Y, error) if name == "logistic" else ((P - Y) * P * (1 - P), 1.25 * error + 64 * _UNIT)


def _gradient_sums(block: Block, weights: list, intercepts: list, unit: str, output: int, coded: bool) -> tuple:
    """Return the sum of the row weights; the gradient of the weighted losses by each W, then by each b; and for each of
    these, entry by entry, a bound of its error."""
    n, s = len(block.X), np.ones(len(block.X)) if block.weight is None else np.asarray(block.weight)
    sums, values, offs, errors = [], [block.X], [], [np.zeros((n, block.X.shape[1]))]
    for W, b in zip(weights, intercepts, strict=True):
        Z, A = _hidden(values[-1], W, b, unit)
        offs.append(_sum_error(np.abs(values[-1]), errors[-1], W, b))
        sums.append(Z)
        values.append(A)
        errors.append(_unit_error(offs[-1], unit))
    D, off = _pull(sums[-1], offs[-1], targets(np.asarray(block.y), sums[-1].shape[1], coded), output)
    D, off = D * s[:, None], off * s[:, None]
    results: dict[str, list[np.ndarray]] = {"W": [], "b": [], "eW": [], "eb": []}
    for k in range(len(weights) - 1, -1, -1):
        A, error, rough = values[k], errors[k], 2 * off + 2 * (n + 16) * _UNIT * np.abs(D)
        results["W"].insert(0, A.T @ D)
        results["eW"].insert(0, np.abs(A).T @ rough + error.T @ (np.abs(D) + off) + _LEAST)
        results["b"].insert(0, D.sum(axis=0))
        results["eb"].insert(0, rough.sum(axis=0) + _LEAST)
        if k:
            size = np.abs(weights[k]).T
            P = D @ weights[k].T
            rough = off @ size + 2 * (D.shape[1] + 16) * _UNIT * (np.abs(D) @ size)
            slope, wrong = _slope(sums[k - 1], A, offs[k - 1], error, unit)
            D, off = P * slope, rough * (slope + wrong) + np.abs(P) * wrong + 8 * _UNIT * np.abs(P)
    return (float(s.sum()), *results["W"], *results["b"], *results["eW"], *results["eb"])

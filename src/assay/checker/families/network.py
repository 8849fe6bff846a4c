"""Feed-forward networks: scores of rows with a bound of their rounding, and the length of a gradient (claim
network.gradient).

Errors are carried through the layers. If the values a of a layer are off by at most e, then a W + b is off by
gamma (|a| |W| + |b|) + e |W|, and what the units say by that times their largest slope, plus their own rounding.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from assay.checker.family import SINGLE, WHOLE, Family, Variant
from assay.checker.numerics import UNDERFLOW, U, above, gamma, norm_above
from assay.checker.predictors import Predictor
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.losses import sigmoid
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence, part

UNITS = ("identity", "logistic", "tanh", "relu")
_SLOPES = {"identity": 1.0, "logistic": 0.25, "tanh": 1.0, "relu": 1.0}
_ROUNDING_ERROR = 16 * U  # relative error of an elementary function or of a few operations after it
_MOST_EXACT = 20_000  # weights of a network that is evaluated in exact arithmetic


@dataclass(frozen=True)
class Network(Predictor):
    """Layers a <- f(a W + b), the last one without f; `exponential`: the prediction is the exponential of the score."""

    weights: list[np.ndarray]  # (k, next k) of each layer
    intercepts: list[np.ndarray]
    unit: str
    exponential: bool
    classes: tuple[str, ...] | None

    @property
    def columns(self) -> int:
        return len(self.weights[0])

    @property
    def width(self) -> int:  # type: ignore[override]
        return sum(len(b) for b in self.intercepts)

    @property
    def binary(self) -> bool:
        return self.classes is not None and self.weights[-1].shape[1] == 1

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        A, top, error = X, largest, np.zeros(self.columns)
        for k, (W, b) in enumerate(zip(self.weights, self.intercepts, strict=True)):
            Z, error = A @ W + b, _sum_error(top, error, W, b)
            if k < len(self.weights) - 1:
                A, error = self.activated(Z), _unit_error(error, self.unit)
                top = np.abs(A).max(axis=0)
        return self._predictions(Z, np.broadcast_to(error, Z.shape)) if self.exponential else (Z, error)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        *_, last = self.passes(X)
        return last.sum_error

    def _predictions(self, Z: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = np.exp(Z)
        return mean, above(mean * (np.expm1(error) + _ROUNDING_ERROR)).max(axis=0) + np.finfo(np.float64).tiny

    def activated(self, Z: np.ndarray) -> np.ndarray:
        """Return what units say of their sums."""
        if self.unit == "relu":
            return np.maximum(Z, 0.0)
        if self.unit == "logistic":
            return sigmoid(Z)[0]
        return np.tanh(Z) if self.unit == "tanh" else Z

    def passes(self, X: np.ndarray) -> "list[Pass]":
        """Return what every layer receives and says, with errors row by row."""
        results, A, error = [], X, np.zeros(X.shape)
        for W, b in zip(self.weights, self.intercepts, strict=True):
            Z, off = A @ W + b, _sum_error(np.abs(A), error, W, b)
            results.append(Pass(A, error, Z, off))
            A, error = self.activated(Z), _unit_error(off, self.unit)
        return results


@dataclass(frozen=True)
class Pass:
    """One layer at some rows: its inputs and their errors, its sums and theirs."""

    inputs: np.ndarray
    input_error: np.ndarray
    sums: np.ndarray
    sum_error: np.ndarray


def _sum_error(size: np.ndarray, error: np.ndarray, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Bound |fl(a W + b) - exact| for computed |a| <= size that is off by at most error."""
    magnitude = np.abs(W)
    return above(gamma(2 * len(W) + 8) * (size @ magnitude + np.abs(b)) + above(error @ magnitude, len(W))) + UNDERFLOW


def _unit_error(error: np.ndarray, unit: str) -> np.ndarray:
    return above(error * _SLOPES[unit] + (_ROUNDING_ERROR if unit in ("logistic", "tanh") else 0.0))


def read_network(sizes: np.ndarray, weights: np.ndarray, codes: np.ndarray, classes: Any) -> Network:
    """Return the network that the three stored arrays describe."""
    if sizes.ndim != 1 or len(sizes) < 2 or np.any(sizes < 1) or np.any(sizes != np.floor(sizes)):
        raise Rejected(f"network_sizes_ must be at least two numbers of units; it is {str(sizes)[:60]}")
    if np.any(sizes > 2**31) or weights.ndim != 1:
        raise Rejected("network_weights_ must be one vector, and layers not beyond 2^31 units")
    shapes = list(pairwise([int(size) for size in sizes]))
    if sum(a * b + b for a, b in shapes) != len(weights):
        raise Rejected(f"network_weights_ has {len(weights)} numbers, which layers {str(sizes)[:60]} do not have")
    if codes.shape != (2,) or codes[0] not in range(len(UNITS)) or codes[1] not in (0, 1):
        raise Rejected(f"network_codes_ must be the number of a unit and 0 or 1; it is {str(codes)[:60]}")
    outputs = shapes[-1][1]
    if classes is not None and (codes[1] or outputs != (1 if len(classes) == 2 else len(classes))):
        raise Rejected(f"a network with {outputs} outputs does not tell {len(classes)} classes apart")
    results, at = [], 0
    for a, b in shapes:
        results.append(weights[at : at + a * b].reshape(a, b))
        at += a * b
    intercepts = np.split(weights[at:], np.cumsum([b for _, b in shapes])[:-1])
    return Network(results, intercepts, UNITS[int(codes[0])], bool(codes[1]), classes)


class SeveralLabels(Network):
    """A network with an output for each label, any number of which a row may have: no claim is about such rows."""

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise Rejected("claims are about one label per row")


def read_classifier(
    sizes: np.ndarray, weights: np.ndarray, codes: np.ndarray, several: np.ndarray, classes: Any
) -> Network:
    """Return the network of a classifier: of one label per row, or of several."""
    if several.shape != () or several not in (0, 1):
        raise Rejected("several_labels_ must be 0 or 1")
    if not several:
        return read_network(sizes, weights, codes, classes)
    result = read_network(sizes, weights, codes, None)
    if result.weights[-1].shape[1] != len(classes):
        raise Rejected(f"a network with {result.weights[-1].shape[1]} outputs does not tell {len(classes)} labels")
    return SeveralLabels(result.weights, result.intercepts, result.unit, result.exponential, None)


class NetworkGradient(Rule):
    """network.gradient: the gradient, by all weights and intercepts, of share/S sum_i s_i loss_i + decay/2 |W|^2 +
    free/2 |b|^2, where S = sum_i s_i and free is `intercept_decay`, has at most this length; at the kink of a unit
    whichever slope between both sides is taken."""

    def prepare(self) -> None:
        if not isinstance(self.model, Network):
            raise Rejected("it needs a network")
        self.share = self.number("share")
        self.decay, self.free = self.number("decay", zero=True), self.number("intercept_decay", zero=True)
        if self.model.classes is not None:
            self.loss = self.choice("loss", ["log", "squared"])
        else:
            self.loss = self.choice("loss", ["poisson" if self.model.exponential else "squared"])
        parts = [*self.model.weights, *self.model.intercepts]
        self.total, self.error = [np.zeros(part.shape) for part in parts], [np.zeros(part.shape) for part in parts]
        self.mass, self.blocks = 0.0, 0

    def block(self, view: View) -> None:
        passes = self.model.passes(view.X)
        D, off = self._pull(view, passes[-1])
        s = view.weight[:, None]
        D, off = D * s, above(off * s + 2 * U * np.abs(D) * s)
        self.mass, self.blocks = self.mass + float(view.weight.sum()), self.blocks + 1
        layers, n = len(passes), len(view.X)
        for k in range(layers - 1, -1, -1):
            layer = passes[k]
            rough = off + gamma(n + 8) * np.abs(D)
            errors = np.abs(layer.inputs).T @ rough + layer.input_error.T @ (np.abs(D) + off)
            self._add(k, layer.inputs.T @ D, errors, n)
            self._add(layers + k, D.sum(axis=0), rough.sum(axis=0), n)
            if k:
                size = np.abs(self.model.weights[k]).T
                P, width = D @ self.model.weights[k].T, D.shape[1]
                rough = above(off @ size + gamma(2 * width + 8) * (np.abs(D) @ size), width) + UNDERFLOW
                slope, wrong = self._slope(passes[k - 1], layer)
                D = P * slope
                off = above(rough * (np.abs(slope) + wrong) + np.abs(P) * wrong + 2 * U * np.abs(D))

    def _add(self, place: int, value: np.ndarray, error: np.ndarray, n: int) -> None:
        self.total[place] += value
        self.error[place] += above(error, n) + U * self.blocks * np.abs(self.total[place]) + UNDERFLOW

    def _slope(self, before: Pass, after: Pass) -> tuple[np.ndarray, np.ndarray]:
        """Return the slope of each unit, and how far off it can be."""
        A, e = after.inputs, after.input_error
        if self.model.unit == "relu":
            return (before.sums > 0).astype(np.float64), (~(np.abs(before.sums) > before.sum_error)).astype(np.float64)
        if self.model.unit == "logistic":
            return A * (1 - A), above(e * (1 + e) + 4 * U)
        if self.model.unit == "tanh":
            return 1 - A * A, above(e * (2 * np.abs(A) + e) + 4 * U)
        return np.ones_like(A), np.zeros_like(A)

    def _pull(self, view: View, last: Pass) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivative of each row's loss by its scores, and a bound of its error."""
        Z, e = last.sums, last.sum_error
        if not (np.isfinite(Z).all() and np.isfinite(e).all()):
            raise Refused("a score overflows: rows and weights are too large to be multiplied")
        Y = self._targets(view, Z.shape[1])
        if self.model.classes is None:
            if self.loss == "squared":
                return Z - Y, above(e + 2 * U * np.abs(Z - Y))
            mean = np.exp(Z)
            return mean - Y, above(mean * (np.expm1(e) + _ROUNDING_ERROR) + 2 * U * np.abs(mean - Y))
        if self.loss == "log" and Z.shape[1] > 1:
            shifted = Z - Z.max(axis=1, keepdims=True)
            P = np.exp(shifted)
            P /= P.sum(axis=1, keepdims=True)
            rounding_error = 2 * U * (np.abs(shifted).max(axis=1, keepdims=True) + Z.shape[1]) + 2 * _ROUNDING_ERROR
            return P - Y, above(P * (np.expm1(2 * e.max(axis=1, keepdims=True)) + rounding_error) + 2 * U)
        P, rest = sigmoid(Z)
        if self.loss == "log":
            return P - Y, above(0.25 * e + _ROUNDING_ERROR)
        # |d/dp (p - y) p (1 - p)| <= 5/4 for p and y in [0, 1]
        return (P - Y) * P * rest, above(1.25 * (0.25 * e + _ROUNDING_ERROR) + _ROUNDING_ERROR)

    def _targets(self, view: View, outputs: int) -> np.ndarray:
        if self.model.classes is None:
            if view.targets.shape[1] != outputs:
                raise Rejected(f"the rows have {view.targets.shape[1]} targets, the network {outputs} outputs")
            return view.targets
        if np.any(view.codes < 0):
            raise Rejected("a label is not a class of the model")
        return (view.codes[:, None] == (np.arange(outputs) if outputs > 1 else 1)).astype(np.float64)

    def measure(self) -> float:
        if not self.mass > 0:
            raise Rejected("the weights of the rows are all zero")
        results, layers = [], len(self.model.weights)
        loss = gamma(self.rows + 16)  # of the sum of the row weights and of the division by it
        for place, weights in enumerate([*self.model.weights, *self.model.intercepts]):
            rate = self.decay if place < layers else self.free
            mean = self.share * self.total[place] / self.mass
            error = self.share * self.error[place] / self.mass * (1 + 2 * loss) + loss * np.abs(mean)
            error = above(error + 4 * U * (np.abs(mean) + np.abs(rate * weights)), self.blocks + 8)
            results.append(np.abs(mean + rate * weights) + error)
        return norm_above(np.concatenate([result.ravel() for result in results]))


_GRADIENT = Sentence(
    {
        "": "The gradient of the training objective (mean {loss:term} loss, decay = {decay:g}{drawn}) by all weights "
        "has at most the length {value:up}; where it is zero the objective is level, which need not be its minimum.",
        "share": ", share = {share:g}",
    },
    lambda value, direction, params: {"drawn": part(params["share"] != 1, "share")},
)


CLAIMS = {"D34/1": Definition("network.gradient", NetworkGradient, _GRADIENT)}
_ARRAYS = {"network_sizes_": WHOLE, "network_weights_": SINGLE, "network_codes_": WHOLE}
FAMILY = Family(
    "network",
    {
        "classifier": Variant({**_ARRAYS, "several_labels_": WHOLE}, read_classifier, classes=True),
        "regressor": Variant(_ARRAYS, read_network),
    },
    CLAIMS,
)

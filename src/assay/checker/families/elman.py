"""Elman networks: the output at the last step of a sequence, and the length of a gradient through time (claim
elman.gradient).

Arrays: `input_weights_` U (d, k), `state_weights_` V (k, k), `hidden_intercept_` b (k,), `coef_` W (K, k),
`intercept_` c (K,), `elman_codes_` (unit: 0 identity, 1 logistic, 2 tanh, 3 ReLU; steps T; 1 if targets belong to
last steps alone, else 0). A row is a sequence: for T = 1 its d columns; else its number of steps from 1 to T, then T
times d columns, of which the last steps are the sequence and those before it are zero. h = 0 before the first step, h
<- f(U' x + V' h + b) at each, and the scores are W h + c after the last.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import UNDERFLOW, U, above, gamma, norm_above
from assay.checker.predictors import Predictor
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.losses import sigmoid
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence

UNITS = ("identity", "logistic", "tanh", "relu")
_ROUNDING_ERROR = 16 * U
_MOST_STEPS = 10_000


class Step(NamedTuple):
    """One step of all sequences: what comes in, which take part, the state before, the sums, the state after; with
    errors."""

    x: np.ndarray
    mask: np.ndarray
    before: np.ndarray
    before_error: np.ndarray
    sums: np.ndarray
    sum_error: np.ndarray
    after: np.ndarray
    after_error: np.ndarray


@dataclass(frozen=True)
class Recurrent(Predictor):
    """A recurrent layer and outputs that are linear in its last state."""

    into: np.ndarray  # (d, k)
    again: np.ndarray  # (k, k)
    b: np.ndarray
    W: np.ndarray  # (K, k)
    c: np.ndarray
    unit: str
    steps: int
    last_only: bool
    classes: tuple[str, ...] | None

    @property
    def columns(self) -> int:
        return len(self.into) * self.steps + (self.steps > 1)

    @property
    def width(self) -> int:  # type: ignore[override]
        return 8 * self.steps * len(self.b)

    @property
    def binary(self) -> bool:
        return self.classes is not None and len(self.W) == 1

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, error = self.last(self.run(X)[-1])
        return values, error.max(axis=0, initial=0.0)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self.last(self.run(X)[-1])[1]

    def last(self, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores after the last step, and bounds of their errors."""
        return _affine([(step.after, step.after_error, self.W.T)], self.c)

    def run(self, X: np.ndarray) -> list[Step]:
        """Return every step."""
        n, d = len(X), len(self.into)
        lengths = X[:, 0] if self.steps > 1 else np.ones(n)
        if np.any(lengths != np.floor(lengths)) or np.any(lengths < 1) or np.any(lengths > self.steps):
            raise Rejected(f"a sequence must have from 1 to {self.steps} steps")
        series = X[:, 1:] if self.steps > 1 else X
        results, state, error = [], np.zeros((n, len(self.b))), np.zeros((n, len(self.b)))
        for t in range(self.steps):
            x, mask = series[:, t * d : (t + 1) * d], (lengths >= self.steps - t)[:, None]
            sums, off = _affine([(x, np.zeros_like(x), self.into), (state, error, self.again)], self.b)
            after = np.where(mask, self._activated(sums), state)
            after_error = np.where(mask, self._unit_error(sums, off), error)
            results.append(Step(x, mask, state, error, sums, off, after, after_error))
            state, error = after, after_error
        return results

    def _activated(self, Z: np.ndarray) -> np.ndarray:
        if self.unit == "relu":
            return np.maximum(Z, 0.0)
        if self.unit == "logistic":
            return sigmoid(Z)[0]
        return np.tanh(Z) if self.unit == "tanh" else Z

    def _unit_error(self, Z: np.ndarray, off: np.ndarray) -> np.ndarray:
        """Bound what an error of the sums does: the slope is largest where the interval is nearest to zero."""
        if self.unit not in ("tanh", "logistic"):
            return off
        half = 1.0 if self.unit == "tanh" else 0.5
        nearest = np.clip((np.abs(Z) - off) * (1 - _ROUNDING_ERROR) * half, 0.0, 300.0)
        steepest = above(half * half / np.square(np.cosh(nearest)))
        return above(np.minimum(off * steepest, 2.0)) + _ROUNDING_ERROR

    def slope(self, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Return the slope of each unit at a step, 0 where it takes no part, and how far off it can be."""
        A, e = step.after, step.after_error
        if self.unit == "relu":
            value, off = (step.sums > 0).astype(float), (~(np.abs(step.sums) > step.sum_error)).astype(float)
        elif self.unit == "logistic":
            value, off = A * (1 - A), above(e * (1 + e) + 4 * U)
        elif self.unit == "tanh":
            value, off = 1 - A * A, above(e * (2 * np.abs(A) + e) + 4 * U)
        else:
            value, off = np.ones_like(A), np.zeros_like(A)
        return value * step.mask, off * step.mask


def _affine(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of values times weights, plus b, and a bound of its error."""
    many = sum(len(weights) for _, _, weights in parts)
    size = sum(np.abs(value) @ np.abs(weights) for value, _, weights in parts) + np.abs(b)
    carried = sum(error @ np.abs(weights) for _, error, weights in parts)
    total = sum(value @ weights for value, _, weights in parts) + b
    return total, above(gamma(2 * many + 16) * size + above(carried, many)) + UNDERFLOW


def read_recurrent(
    into: np.ndarray, again: np.ndarray, b: np.ndarray, W: np.ndarray, c: np.ndarray, codes: np.ndarray, classes: Any
) -> Recurrent:
    """Return the network that the arrays describe."""
    k = len(b) if b.ndim == 1 else -1
    if into.ndim != 2 or not into.size or into.shape[1] != k or again.shape != (k, k):
        raise Rejected(f"input_weights_ {into.shape}, state_weights_ {again.shape} and hidden_intercept_ do not fit")
    if W.ndim != 2 or not W.size or W.shape[1] != k or c.shape != (len(W),):
        raise Rejected(f"coef_ has shape {W.shape} and intercept_ {c.shape}; they must be (K, {k}) and (K,)")
    known = codes.shape == (3,) and codes[0] in range(len(UNITS)) and codes[2] in (0, 1)
    if not known or not 1 <= codes[1] <= _MOST_STEPS:
        raise Rejected(f"elman_codes_ must be the number of a unit, of steps, and 0 or 1; it is {str(codes)[:60]}")
    if classes is not None and len(W) != (1 if len(classes) == 2 else len(classes)):
        raise Rejected(f"a network with {len(W)} outputs does not tell {len(classes)} classes apart")
    return Recurrent(into, again, b, W, c, UNITS[int(codes[0])], int(codes[1]), bool(codes[2]), classes)


class ThroughTime(Rule):
    """elman.gradient: the gradient, by U, V, b, W and c, of the mean over sequences of the loss at the last step +
    alpha/2 (|U|^2 + |V|^2 +
    |W|^2) has at most this length: log loss of classes, half the squared error of numbers."""

    def prepare(self) -> None:
        if not isinstance(self.model, Recurrent):
            raise Rejected("it needs a recurrent network")
        if not self.model.last_only:
            raise Rejected("targets of the steps before the last are no part of the rows")
        self.check_rows()
        self.alpha, m = self.number("alpha", zero=True), self.model
        self.parts = [m.into, m.again, m.b, m.W, m.c]
        self.total, self.error = [np.zeros(p.shape) for p in self.parts], [np.zeros(p.shape) for p in self.parts]
        self.added = 0

    def block(self, view: View) -> None:
        if not np.all(view.weight == 1):
            raise Rejected("it is about sequences of equal weight")
        m, steps = self.model, self.model.run(view.X)
        Z, off = m.last(steps[-1])
        D, off = self._pull(view, Z, off)
        self._add(3, D, off, steps[-1].after, steps[-1].after_error)
        self._add(4, np.ones((len(D), 1)), np.zeros((len(D), 1)), D, off)
        back, error = _affine([(D, off, m.W)], np.zeros(m.W.shape[1]))
        for step in reversed(steps):
            slope, wrong = m.slope(step)
            D = back * slope
            off = above(error * (np.abs(slope) + wrong) + np.abs(back) * wrong + 2 * U * np.abs(D))
            self._add(0, step.x, np.zeros_like(step.x), D, off)
            self._add(1, step.before, step.before_error, D, off)
            self._add(2, np.ones((len(D), 1)), np.zeros((len(D), 1)), D, off)
            later, off = _affine([(D, off, m.again.T)], np.zeros(len(m.b)))
            # A sequence that has not begun hands back what came: nothing is before it.
            back, error = np.where(step.mask, later, 0.0), np.where(step.mask, off, 0.0)

    def _add(self, place: int, A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray) -> None:
        """Add A' B, where A and B are off by at most a and b."""
        shape, n = self.total[place].shape, len(A)
        rough = np.abs(A).T @ (b + gamma(n + 8) * np.abs(B)) + a.T @ (np.abs(B) + b)
        self.added += 1
        self.total[place] += (A.T @ B).reshape(shape)
        self.error[place] += above(rough, n).reshape(shape) + 2 * U * np.abs(self.total[place]) + UNDERFLOW

    def _pull(self, view: View, Z: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivative of each loss by its scores, and a bound of its error."""
        if not (np.isfinite(Z).all() and np.isfinite(e).all()):
            raise Refused("a score overflows: rows and weights are too large to be multiplied")
        if self.model.classes is None:
            if view.targets.shape != Z.shape:
                raise Rejected(f"the rows have {view.targets.shape[1]} targets, the network {Z.shape[1]} outputs")
            return Z - view.targets, above(e + 2 * U * np.abs(Z - view.targets))
        Y = (view.known_codes[:, None] == (np.arange(Z.shape[1]) if Z.shape[1] > 1 else 1)).astype(float)
        if Z.shape[1] == 1:
            return sigmoid(Z)[0] - Y, above(e / 4 + _ROUNDING_ERROR)
        shifted = Z - Z.max(axis=1, keepdims=True)
        P = np.exp(shifted)
        P /= P.sum(axis=1, keepdims=True)
        rounding_error = 2 * U * (np.abs(shifted).max(axis=1, keepdims=True) + Z.shape[1]) + 2 * _ROUNDING_ERROR
        return P - Y, above(P * (np.expm1(2 * e.max(axis=1, keepdims=True)) + rounding_error) + 2 * U)

    def measure(self) -> float:
        results = []
        for place, part in enumerate(self.parts):
            rate = self.alpha if place in (0, 1, 3) else 0.0
            mean, off = self.total[place] / self.rows, self.error[place] / self.rows
            results.append(
                np.abs(mean + rate * part) + above(off, self.added) + 8 * U * (np.abs(mean) + rate * np.abs(part))
            )
        return norm_above(np.concatenate([result.ravel() for result in results]))


_SENTENCE = Sentence.plain(
    "The gradient of the training objective (mean loss at the last step of {rows} sequences, penalty {alpha:g}) by all "
    "weights has at most the length {value:up}; where it is zero the objective is level, which need not be its minimum."
)


CLAIMS = {"D34/8": Definition("elman.gradient", ThroughTime, _SENTENCE)}
_ARRAYS = {
    "input_weights_": NUMBERS,
    "state_weights_": NUMBERS,
    "hidden_intercept_": NUMBERS,
    "coef_": NUMBERS,
    "intercept_": NUMBERS,
    "elman_codes_": WHOLE,
}
FAMILY = Family(
    "elman",
    {"classifier": Variant(_ARRAYS, read_recurrent, classes=True), "regressor": Variant(_ARRAYS, read_recurrent)},
    CLAIMS,
)

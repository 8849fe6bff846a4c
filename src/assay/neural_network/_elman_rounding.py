"""Rounding of an Elman network: its last outputs and its gradient through time, with bounds of their errors.

All bounds are doubled, so that whoever recomputes in another order resolves every row that is resolved here.
"""

from typing import Any

import numpy as np

from assay.neural_network._recurrence import Weights, activated, pull, slopes

_UNIT = 2.0**-53
_LEAST = 1e-140
_WOBBLE = 64 * _UNIT

Bounded = tuple[np.ndarray, np.ndarray]


def _affine(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], b: Any) -> Bounded:
    many = sum(len(weights) for _, _, weights in parts)
    size = sum(np.abs(value) @ np.abs(weights) for value, _, weights in parts) + np.abs(b)
    carried = sum(error @ np.abs(weights) for _, error, weights in parts)
    total = sum(value @ weights for value, _, weights in parts) + b
    return total, (4 * many + 64) * _UNIT * size + (1 + 1e-9) * carried + _LEAST


def _unit_error(Z: np.ndarray, off: np.ndarray, unit: str) -> np.ndarray:
    if unit not in ("tanh", "logistic"):
        return off
    half = 1.0 if unit == "tanh" else 0.5
    nearest = np.clip((np.abs(Z) - off) * (1 - 1e-12) * half, 0.0, 290.0)
    return np.minimum((1 + 1e-9) * off * half * half / np.square(np.cosh(nearest)), 2.0) + _WOBBLE


def states(net: Weights, X: np.ndarray, mask: np.ndarray, unit: str) -> list[tuple[np.ndarray, ...]]:
    """Return for each step the state before and its error, the sums and theirs, the state after and its error."""
    found: list[tuple[np.ndarray, ...]] = []
    state = np.zeros((len(X), len(net.b)))
    error = np.zeros_like(state)
    for t in range(X.shape[1]):
        x = X[:, t]
        sums, off = _affine([(x, np.zeros_like(x), net.U), (state, error, net.V)], net.b)
        on = mask[:, t, None]
        after = np.where(on, activated(sums, unit), state)
        wrong = np.where(on, _unit_error(sums, off, unit), error)
        found.append((state, error, sums, off, after, wrong))
        state, error = after, wrong
    return found


def last_outputs(net: Weights, X: np.ndarray, mask: np.ndarray, unit: str) -> Bounded:
    """Return the outputs after the last step, and twice how far rounding can move them."""
    *_, after, wrong = states(net, X, mask, unit)[-1]
    Z, off = _affine([(after, wrong, net.W.T)], net.c)
    return Z, 2 * off


def gradient_sums(
    net: Weights, X: np.ndarray, mask: np.ndarray, Y: np.ndarray, unit: str, output: str
) -> list[np.ndarray]:
    """Return the sums over sequences of the gradient by U, V, b, W, c, then bounds of the error of each."""
    steps, n = states(net, X, mask, unit), len(X)
    *_, after, wrong = steps[-1]
    Z, e = _affine([(after, wrong, net.W.T)], net.c)
    D = pull(Z, Y, output)[1]
    off = e + 8 * _UNIT * np.abs(D)
    if output == "logistic":
        off = e / 4 + 2 * _WOBBLE
    elif output == "softmax":
        spread = Z.max(axis=1, keepdims=True) - Z.min(axis=1, keepdims=True)
        rough = np.expm1(2 * e.max(axis=1, keepdims=True)) + 16 * (spread + Z.shape[1] + 16) * _UNIT
        off = (np.abs(D) + Y) * rough + 8 * _UNIT
    ones = np.ones((n, 1))
    total = [np.zeros(part.shape) for part in net]
    error = [np.zeros(part.shape) for part in net]

    def add(place: int, A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray) -> None:
        rough = np.abs(A).T @ (b + 4 * (n + 32) * _UNIT * np.abs(B)) + a.T @ (np.abs(B) + b)
        total[place] += (A.T @ B).reshape(total[place].shape)
        error[place] += (1 + 1e-9) * rough.reshape(total[place].shape) + 8 * _UNIT * np.abs(total[place]) + _LEAST

    add(3, D, off, after, wrong)
    add(4, ones, 0 * ones, D, off)
    back, off = _affine([(D, off, net.W)], 0.0)
    for t in range(X.shape[1] - 1, -1, -1):
        before, early, sums, loose, after, wrong = steps[t]
        on = mask[:, t, None]
        slope, slip = slopes(after, unit), _slope_error(sums, loose, after, wrong, unit)
        D = back * slope * on
        off = (off * (np.abs(slope) + slip) + np.abs(back) * slip + 8 * _UNIT * np.abs(D)) * on
        add(0, X[:, t], np.zeros_like(X[:, t]), D, off)
        add(1, before, early, D, off)
        add(2, ones, 0 * ones, D, off)
        back, off = _affine([(D, off, net.V.T)], 0.0)
        back, off = np.where(on, back, 0.0), np.where(on, off, 0.0)
    return [*total, *error]


def _slope_error(Z: np.ndarray, off: np.ndarray, H: np.ndarray, error: np.ndarray, unit: str) -> np.ndarray:
    if unit == "relu":
        return (np.abs(Z) <= 2 * off).astype(float)
    if unit == "logistic":
        return error * (1 + error) + 16 * _UNIT
    return error * (2 * np.abs(H) + error) + 16 * _UNIT if unit == "tanh" else np.zeros_like(H)


def gradient_length(net: Weights, sums: list[np.ndarray], n: int, alpha: float) -> float:
    """Return an upper bound of the length of the gradient of the objective, from the sums over n sequences."""
    square = 0.0
    for place, part in enumerate(net):
        rate = alpha if place in (0, 1, 3) else 0.0
        mean, off = sums[place] / n, 2 * sums[5 + place] / n
        off = off + 64 * _UNIT * (np.abs(mean) + rate * np.abs(part))
        square += float(np.square(np.abs(mean + rate * part) + off).sum())
    return float(np.sqrt(square)) * (1 + 1e-6) + 1e-12

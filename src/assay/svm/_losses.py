"""Losses of the margin z = y f(x), and of the residual: the 0/1 loss and its surrogates."""

import numpy as np


def zero_one(z: np.ndarray) -> np.ndarray:
    """Return 1 where z < 0, else 0."""
    return (np.asarray(z) < 0).astype(float)


def hinge(z: np.ndarray) -> np.ndarray:
    """Return max(0, 1 - z)."""
    return np.maximum(0.0, 1.0 - np.asarray(z))


def exponential(z: np.ndarray) -> np.ndarray:
    """Return exp(-z)."""
    return np.exp(-np.asarray(z))


def logistic(z: np.ndarray, base: float = np.e) -> np.ndarray:
    """Return log(1 + exp(-z)); in base 2 it equals 1 at z = 0 and lies above the 0/1 loss."""
    return np.logaddexp(0.0, -np.asarray(z)) / np.log(base)


def squared(z: np.ndarray) -> np.ndarray:
    """Return (z - 1)^2, which is (y - s)^2 for labels y = -1, +1 and scores s."""
    return (np.asarray(z) - 1.0) ** 2


def sigmoid_squared(z: np.ndarray) -> np.ndarray:
    """Return (sigma(z) - 1)^2: bounded, and not convex."""
    return (1.0 / (1.0 + np.exp(-np.asarray(z))) - 1.0) ** 2


def insensitive(r: np.ndarray, epsilon: float) -> np.ndarray:
    """Return max(0, |r| - epsilon): nothing inside the tube, slope 1 outside."""
    return np.maximum(0.0, np.abs(np.asarray(r)) - epsilon)


def surrogates(z: np.ndarray) -> dict[str, np.ndarray]:
    """Return every loss of the margin on a grid, by name: the data of the usual comparison plot.

    >>> [round(float(value[0]), 4) for value in surrogates(np.array([0.0])).values()]
    [0.0, 1.0, 1.0, 0.6931, 1.0, 1.0, 0.25]
    """
    return {
        "0/1": zero_one(z),
        "hinge": hinge(z),
        "exponential": exponential(z),
        "logistic": logistic(z),
        "logistic, base 2": logistic(z, 2.0),
        "squared": squared(z),
        "sigmoid squared": sigmoid_squared(z),
    }

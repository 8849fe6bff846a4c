"""Worked examples of linear separation as generators of rows and labels -1, +1."""

from itertools import product

import numpy as np


def first_one_parity(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all 2^d - 1 non-zero vectors of zeros and ones; label +1 if the first one stands at an odd
    place, counted from 1.

    (1, -1/2, 1/4, ...) separates them, but the best margin of the normalised rows shrinks by the golden
    ratio with each
    dimension: the perceptron needs exponentially many updates.

    >>> X, y = first_one_parity(2)
    >>> X.tolist(), y.tolist()
    ([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [-1, 1, 1])
    """
    X = np.array(list(product((0.0, 1.0), repeat=d))[1:])
    return X, np.where(X.argmax(axis=1) % 2 == 0, 1, -1)


def four_quadrants(n: int, seed: int = 0, gap: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return n points of the square [-1, 1]^2, label the sign of x_1 x_2; `gap` keeps them away from the
    axes.

    No line separates them, the polynomial x_1 x_2 does.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(gap, 1.0, size=(n, 2)) * rng.choice([-1.0, 1.0], size=(n, 2))
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1)


def checkerboard(k: int, per_cell: int = 4, seed: int = 0, gap: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Return points of k x k unit cells whose labels alternate; `gap` keeps them away from the cells'
    borders."""
    rng = np.random.default_rng(seed)
    cells = np.repeat(np.array(list(product(range(k), repeat=2)), dtype=float), per_cell, axis=0)
    X = cells + rng.uniform(gap, 1 - gap, size=cells.shape) - k / 2
    return X, np.where(cells.sum(axis=1) % 2 == 0, 1, -1)


def noisy_labels(X: np.ndarray, w: np.ndarray, b: float = 0.0, seed: int = 0) -> np.ndarray:
    """Return labels drawn with P(y = +1 | x) = 1 / (1 + exp(-(<w, x> + b))): the noise that logistic
    regression assumes."""
    rng = np.random.default_rng(seed)
    chance = 1.0 / (1.0 + np.exp(-(np.asarray(X, dtype=np.float64) @ np.asarray(w, dtype=np.float64) + b)))
    return np.where(rng.random(len(chance)) < chance, 1, -1)

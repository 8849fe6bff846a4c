"""Least squares in rational arithmetic: doubles are fractions, so the minimiser has no rounding error."""

from fractions import Fraction

import numpy as np


def least_squares(X, y, *, intercept=True, weight=None, alpha=0.0) -> np.ndarray:
    """Return (b, w), or w without intercept, that minimise sum s_i (y_i - b - <w, x_i>)^2 + alpha |w|^2,
    each entry rounded once."""
    weight = np.ones(len(y)) if weight is None else weight
    rows = [[Fraction(1)] * intercept + [Fraction(float(v)) for v in x] for x in X]
    scaled = [[Fraction(float(s)) * v for v in row] for row, s in zip(rows, weight)]
    size = len(rows[0])
    system = [
        [sum(a[i] * b[j] for a, b in zip(scaled, rows)) for j in range(size)]
        + [sum(a[i] * Fraction(float(t)) for a, t in zip(scaled, y))]
        for i in range(size)
    ]
    for i in range(int(intercept), size):
        system[i][i] += Fraction(float(alpha))
    return np.array([float(value) for value in solve(system)])


def solve(system: list[list[Fraction]]) -> list[Fraction]:
    """Return x of the augmented system (A | b) by Gauss-Jordan elimination."""
    size = len(system)
    for i in range(size):
        pivot = next(k for k in range(i, size) if system[k][i] != 0)
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [value / system[i][i] for value in system[i]]
        for k in range(size):
            if k != i and system[k][i] != 0:
                system[k] = [a - system[k][i] * b for a, b in zip(system[k], system[i])]
    return [row[size] for row in system]


def objective(X, y, coef, b, *, weight=None, alpha=0.0) -> Fraction:
    """Return 1/2 sum s_i (y_i - b - <w, x_i>)^2 + alpha/2 |w|^2, exactly."""
    weight = np.ones(len(y)) if weight is None else weight
    w = [Fraction(float(v)) for v in coef]
    total = Fraction(float(alpha)) * sum(v * v for v in w)
    for x, t, s in zip(X, y, weight):
        r = Fraction(float(t)) - Fraction(float(b)) - sum(a * Fraction(float(v)) for a, v in zip(w, x))
        total += Fraction(float(s)) * r * r
    return total / 2

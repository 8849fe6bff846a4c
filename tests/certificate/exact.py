"""Exact arithmetic for the oracles of claims: rationals where there is no logarithm, else 60 digits.

Nothing here is fast or rounds; it is for two dozen rows.
"""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from tests.certificate.forge import Case

DIGITS = 60


def rational(values: Any) -> list:
    return [rational(v) for v in values] if np.ndim(values) else Fraction(float(values))


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def scores(case: Case, X: Any = None) -> list[list[Fraction]]:
    X = rational(case.X if X is None else X)
    W, b = rational(np.atleast_2d(case.model.coef_)), rational(np.atleast_1d(case.model.intercept_))
    b = b * len(W) if len(b) == 1 else b
    return [[sum((x * w for x, w in zip(row, weights)), bias) for weights, bias in zip(W, b)] for row in X]


def codes(case: Case, y: Any = None) -> list[int]:
    names = case.model.classes_.tolist()
    return [names.index(label) for label in (case.y if y is None else y).tolist()]


def row_costs(case: Case, scale: Any = 1, class_weight: Any = None) -> list[Fraction]:
    weight = rational(np.ones(len(case.X)) if case.weight is None else case.weight)
    if class_weight is None:
        return [Fraction(scale) * w for w in weight]
    return [Fraction(scale) * w * Fraction(class_weight[k]) for w, k in zip(weight, codes(case))]


def combine(case: Case, theta: list) -> list:
    """Return X' theta for one dual vector."""
    columns = list(zip(*rational(case.X)))
    convert = decimal if isinstance(theta[0], Decimal) else (lambda value: value)
    return [sum((convert(x) * t for x, t in zip(column, theta)), type(theta[0])(0)) for column in columns]


def solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    rows = [[*row, b] for row, b in zip(matrix, right)]
    for j in range(len(rows)):
        at = next(i for i in range(j, len(rows)) if rows[i][j])
        rows[j], rows[at] = rows[at], rows[j]
        rows[j] = [v / rows[j][j] for v in rows[j]]
        for i in range(len(rows)):
            if i != j:
                rows[i] = [a - rows[i][j] * b for a, b in zip(rows[i], rows[j])]
    return [row[-1] for row in rows]

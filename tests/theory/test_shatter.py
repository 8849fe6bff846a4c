"""Separators and their proofs of absence, checked in rationals."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from assay.theory.vc import separate


def proves(X, y, found):
    """Whether the answer proves itself: strict separator, or weights that balance the signed points."""
    rows = [[*(Fraction(float(v)) for v in x), Fraction(1)] for x in X]
    if found.separable:
        return all(int(s) * sum(w * v for w, v in zip(found.normal, row)) > 0 for row, s in zip(rows, y))
    balanced = all(
        sum(weight * int(s) * row[j] for weight, s, row in zip(found.weights, y, rows)) == 0
        for j in range(len(rows[0]))
    )
    few = sum(weight > 0 for weight in found.weights) <= len(rows[0]) + 1
    return balanced and few and min(found.weights) >= 0 and sum(found.weights) == 1


@pytest.mark.mission("LTH-25", "CON-07")
@pytest.mark.parametrize("d", [1, 2, 4])
def test_separation_agrees_with_a_linear_programme_and_proves_itself(d):
    rng = np.random.default_rng(d)
    seen = set()
    for _ in range(60):
        X = rng.integers(-3, 4, (7, d)).astype(float)
        y = rng.choice([-1, 1], 7)
        found = separate(X, y)
        A = -(y[:, None] * np.hstack([X, np.ones((7, 1))]))
        status = linprog(np.zeros(d + 1), A_ub=A, b_ub=-np.ones(7), bounds=[(None, None)] * (d + 1)).status
        assert found.separable == (status == 0)
        assert proves(X, y, found)
        seen.add(found.separable)
    assert seen == {True, False}


@pytest.mark.mission("CON-07")
def test_one_ulp_decides():
    """Three collinear points, the middle one labelled apart; then that one moved by one unit."""
    X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    y = np.array([1, -1, 1])
    assert not separate(X, y).separable
    X[1, 1] = np.nextafter(1.0, 2.0)
    found = separate(X, y)
    assert found.separable
    assert proves(X, y, found)


def test_a_hundred_separable_rows_in_ten_dimensions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 10))
    y = np.where(X @ rng.normal(size=10) + 0.1 > 0, 1, -1)
    found = separate(X, y)
    assert found.separable
    assert proves(X, y, found)
    y[0] = -y[0]
    assert proves(X, y, separate(X, y))


def test_one_class_is_separable():
    assert separate([[1.0], [2.0]], [1, 1]).separable


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [([1.0, 2.0], [1, 1], "two-dimensional"), ([[np.inf]], [1], "finite"), ([[1.0]], [0], "each -1 or \\+1")],
)
def test_bad_input_is_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        separate(X, y)

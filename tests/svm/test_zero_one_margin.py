"""Soft margins with the zero-one loss, by enumeration; the hinge alone."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from assay.svm import SVC
from assay.textbook import svm as textbook
from tests.svm.machine_rows import SIGNS, overlapping


def by_subsets(x, y, C, wrong_must_be_wrong):
    """Return the least 1/2 w^2 + C |wrong| on a line, over all sets of rows given up: |w| is linear on each side of 0,
    so that two linear programmes tell the least one of a set."""
    best = np.inf
    for pattern in product((False, True), repeat=len(x)):
        wrong = np.array(pattern)
        A = -y[:, None] * np.column_stack([x, np.ones(len(x))])
        rows, right = [A[~wrong]], [-np.ones((~wrong).sum())]
        if wrong_must_be_wrong:
            rows, right = [*rows, -A[wrong]], [*right, np.zeros(wrong.sum())]
        for sign in (1.0, -1.0):
            found = linprog(
                [sign, 0.0],
                A_ub=np.vstack([*rows, [[-sign, 0.0]]]),
                b_ub=np.concatenate([*right, [0.0]]),
                bounds=(None, None),
            )
            if found.status == 0:
                best = min(best, 0.5 * found.x[0] ** 2 + C * wrong.sum())
    return best


@pytest.mark.mission("KER-20", "KER-21")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_the_least_zero_one_margin_is_that_of_all_subsets(seed, C):
    """Misclassification version: a row that is right must have y f >= 1, a wrong one is free at cost C."""
    random = np.random.default_rng(seed)
    x = random.normal(size=7)
    y = np.where(x + 0.6 * random.normal(size=7) > 0, 1.0, -1.0)
    for count in ("error", "margin"):
        found = textbook.zero_one_soft_margin(x[:, None], y, C, count=count)
        assert found.value == pytest.approx(by_subsets(x, y, C, count == "error"), abs=1e-6)
        z = textbook.functional_margins(found.w, found.b, x[:, None], y)
        assert np.all(z[~found.given_up] >= 1 - 1e-6)


@pytest.mark.mission("KER-21")
def test_a_right_row_inside_the_margin_parts_the_two_zero_one_problems():
    """Two far rows of each class and one near the middle. On its wrong side both problems pay for it and have the
    margin of the others; on its right side, inside the margin, only the one that charges every y f < 1 may do so."""
    y, C = np.array([-1.0, -1.0, -1.0, 1.0, 1.0]), 0.15
    X = np.array([[-2.0], [-2.0], [0.5], [2.0], [2.0]])
    for count in ("margin", "error"):
        found = textbook.zero_one_soft_margin(X, y, C, count=count)
        assert found.given_up.tolist() == [False, False, True, False, False]
        assert found.value == pytest.approx(0.5 * 0.5**2 + C)
        assert textbook.functional_margins(found.w, found.b, X, y)[2] < 0
    X[2] = -0.4
    margin, error = (textbook.zero_one_soft_margin(X, y, C, count=count) for count in ("margin", "error"))
    assert margin.value == pytest.approx(0.5 * 0.5**2 + C)
    assert 0 < textbook.functional_margins(margin.w, margin.b, X, y)[2] < 1
    assert error.value == pytest.approx(2 * C)  # one class is given up; all rows with margin 1 cost (5/6)^2 / 2
    assert error.value == pytest.approx(by_subsets(X[:, 0], y, C, wrong_must_be_wrong=True), abs=1e-6)


@pytest.mark.mission("KER-20", "KER-21")
def test_soft_margin_with_zero_one_loss_by_enumeration():
    X, y = overlapping(5, 9)
    C = 0.7
    best = textbook.zero_one_soft_margin(X, y, C)
    z = textbook.functional_margins(best.w, best.b, X, y)
    assert np.array_equal(z < 1 - 1e-6, best.given_up)

    def value(w, b):
        return 0.5 * w @ w + C * np.sum(y * (X @ w + b) < 1 - 1e-9)

    grid = np.linspace(-3, 3, 25)
    assert best.value <= min(value(np.array([p, q]), b) for p in grid for q in grid for b in grid) + 1e-6
    hinge = SVC(C=C, kernel="linear", tol=1e-8).fit(X, y)
    assert best.value <= value(hinge.coef_[0], hinge.intercept_[0]) + 1e-6
    errors = textbook.zero_one_soft_margin(X, y, C, count="error")
    z = textbook.functional_margins(errors.w, errors.b, X, y)
    assert np.all(z[~errors.given_up] >= 1 - 1e-6)
    assert np.all(z[errors.given_up] <= 1e-6)
    with pytest.raises(ValueError, match="at most 12"):
        textbook.zero_one_soft_margin(np.zeros((13, 1)), np.ones(13), 1.0)


@pytest.mark.mission("KER-42")
def test_hinge_alone_separates_without_the_largest_margin():
    X, y = np.array([[1.0, 0.0], [3.0, 30.0], [-1.0, 0.0]]), SIGNS
    w, b = np.zeros(2), 0.0
    far = X + np.array([4.0, 0.0])  # no hyperplane through the origin separates these
    for steps in range(1, 41):  # the mean hinge, row by row
        inside = [i for i in range(3) if y[i] * (far[i] @ w + b) < 1]
        w, b = w + 0.05 * sum(y[i] * far[i] for i in inside) / 3, b + 0.05 * sum(y[i] for i in inside) / 3
        found = textbook.hinge_only(far, y, rate=0.05, max_steps=steps)
        np.testing.assert_allclose([*found[0], found[1]], [*w, b], atol=1e-15)
    w, b = textbook.hinge_only(X, y)
    assert np.all(y * (X @ w + b) >= 1 - 1e-12)
    best = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(X, y)
    wide = textbook.geometric_margin(best.coef_[0], best.intercept_[0], X, y)
    assert textbook.geometric_margin(w, b, X, y) < 0.95 * wide

"""Margin bounds: the formulas written out again, and their lemmas by enumeration."""

import itertools
import math

import numpy as np
import pytest

from assay.theory import margin, rademacher
from assay.theory.spaces import Stumps


def ramp(t):
    return min(1.0, max(0.0, 1.0 - t))


def draw(seed=0, n=80):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1, -1)
    w = np.array([20.0, 1.0, -1.0])
    return X, y, w, y * (X @ w)


def plain(z, rho, size, last):
    return min(1.0, sum(ramp(v / rho) for v in z) / len(z) + size + last)


def test_kernel_bound_is_the_minimum_over_its_grid():
    X, _y, w, z = draw(n=4000)
    norm, trace, n = np.linalg.norm(w), (X * X).sum(), len(X)
    last = 3 * math.sqrt(math.log(41 / 0.05) / (2 * n))
    expected = min(plain(z, norm / 2.0**e, 2 * 2.0**e * math.sqrt(trace) / n, last) for e in range(-10, 31))
    found = margin.kernel_margin_bound(z, norm, trace, 0.05)
    assert found.bound == pytest.approx(expected, rel=1e-9)
    assert found.bound < 0.5
    assert found.bound == pytest.approx(found.ramp + found.complexity + last)
    again = margin.kernel_margin_bound(4 * z, 4 * norm, trace, 0.05)  # scaling w changes nothing
    assert again.bound == pytest.approx(found.bound)


def test_a_bias_outside_the_norm_is_paid_for():
    X, y, w, _ = draw(n=4000)
    b, norm, trace, n = 0.7, np.linalg.norm(w), (X * X).sum(), len(X)
    z = y * (X @ w + b)
    last = 3 * math.sqrt(math.log(41**2 / 0.05) / (2 * n))

    def at(e):
        rho = norm / 2.0**e
        t = min(2.0**j for j in range(-10, 31) if 2.0**j >= b / rho)
        return plain(z, rho, 2 * 2.0**e * math.sqrt(trace) / n + 2 * t / math.sqrt(n), last)

    found = margin.kernel_margin_bound(z, norm, trace, 0.05, bias=-b)
    assert found.bound == pytest.approx(min(at(e) for e in range(-10, 20)), rel=1e-9)


@pytest.mark.parametrize(("value", "above"), [(0.0, 2.0**-10), (0.5, 0.5), (0.51, 1.0), (3.0, 4.0), (1e12, math.inf)])
def test_the_grid_is_rounded_up(value, above):
    assert margin._grid_ceiling(value) == above


def test_multiclass_and_l1_bounds_are_the_minimum_over_their_grids():
    X, _y, w, z = draw(n=40_000)
    n, trace = len(X), (X * X).sum()
    last = 3 * math.sqrt(math.log(41 / 0.05) / (2 * n))
    norm = 30.0
    expected = min(plain(z, norm / 2.0**e, 4 * 2.0**e * math.sqrt(3 * trace) / n, last) for e in range(-10, 31))
    assert margin.multiclass_margin_bound(z, norm, trace, 3, 0.05).bound == pytest.approx(expected, rel=1e-9)
    column, norm = np.linalg.norm(X, axis=0).max(), np.abs(w).sum()
    expected = min(
        plain(z, norm / 2.0**e, 2 * 2.0**e * column * math.sqrt(2 * math.log(6)) / n, last) for e in range(-10, 31)
    )
    assert margin.l1_margin_bound(z, norm, column, 3, 0.05).bound == pytest.approx(expected, rel=1e-9)


def test_boosting_bounds_are_the_minimum_over_their_grid():
    rng = np.random.default_rng(1)
    n = 20_000
    z = np.clip(rng.normal(0.5, 0.2, n), -1, 1)
    growth = 2 + 2 * 5 * (n - 1)
    last = math.sqrt(math.log(11 / 0.05) / (2 * n))
    expected = min(plain(z, 2.0**-e, 2 * 2.0**e * math.sqrt(2 * math.log(growth) / n), last) for e in range(11))
    found = margin.boosting_margin_bound(z, 0.05, Stumps(5).log_growth)
    assert found.bound == pytest.approx(expected, rel=1e-8)
    assert found.bound < 1
    estimate = rademacher.monte_carlo(rademacher.of_space(Stumps(5), rng.normal(size=(n, 5))), 20, 0)
    size = estimate.value + math.sqrt(2 * math.log(40) / (n * 20))
    last = 3 * math.sqrt(math.log(11 * 40) / (2 * n))
    expected = min(plain(z, 2.0**-e, 2 * 2.0**e * size, last) for e in range(11))
    assert margin.boosting_sample_bound(z, 0.05, estimate).bound == pytest.approx(expected, rel=1e-8)


def test_regression_bound_by_hand():
    r, n = np.array([0.5, -3.0, 1.0, 0.0] * 5000), 20_000
    norm, trace, clip = 0.9, 2.0 * n, 2.0  # the grid value above 0.9 is 1
    last = math.sqrt(math.log(41 / 0.05) / (2 * n))
    found = margin.regression_bound(r, norm, trace, clip, 0.05)
    assert found.bound == pytest.approx(3.5 / 4 + 2 * math.sqrt(trace) / n + 3 * clip * last, rel=1e-9)
    found = margin.regression_bound(r, norm, trace, clip, 0.05, squared=True)
    expected = 5.25 / 4 + 4 * clip * math.sqrt(trace) / n + 3 * clip**2 * last
    assert found.bound == pytest.approx(expected, rel=1e-9)
    biased = margin.regression_bound(r, norm, trace, clip, 0.05, bias=3.0)
    last = math.sqrt(math.log(41**2 / 0.05) / (2 * n))
    expected = 3.5 / 4 + 2 * math.sqrt(trace) / n + 2 * 4.0 / math.sqrt(n) + 3 * clip * last
    assert biased.bound == pytest.approx(expected, rel=1e-9)
    assert margin.regression_bound(r[:8], norm, trace, clip, 0.05).bound == clip


def test_lemma_the_complexity_of_multiclass_margins():
    """R of the margins of W with |W|_F <= Lambda is at most 2 Lambda sqrt(K tr)/n, over all signs."""
    rng = np.random.default_rng(2)
    for K, n in ((2, 6), (3, 7), (5, 6)):
        X, y = rng.normal(size=(n, 2)), rng.integers(0, K, n)
        W = rng.normal(size=(400, K, 2))
        W *= 1.5 / np.linalg.norm(W, axis=(1, 2), keepdims=True)
        scores = W @ X.T
        own = scores[:, y, np.arange(n)]
        rest = scores.copy()
        rest[:, y, np.arange(n)] = -np.inf
        value = rademacher.exact(rademacher.of_functions(own - rest.max(axis=1)))
        assert 0.2 < value / (2 * 1.5 * math.sqrt(K * (X * X).sum()) / n) <= 1


def test_lemma_the_ramp_dominates_the_error():
    for z, rho in itertools.product(np.linspace(-2, 2, 41), (0.1, 1.0)):
        assert margin.mean_ramp([z], rho) >= (z <= 0)


@pytest.mark.mission("LTH-55")
def test_radius_margin_dimension():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 50)) * 0.05
    y = np.r_[np.ones(15), -np.ones(15)]
    X[:, 0] += y
    w = np.eye(50)[0]
    value = margin.gap_tolerant_dimension(X, y, w)
    gamma = np.min(y * X[:, 0])
    radius = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    assert value == min(math.ceil(radius**2 / gamma**2), 50) + 1 < 51
    assert margin.gap_tolerant_dimension(7.3 * X, y, w) == value
    assert margin.gap_tolerant_dimension(X, y, 0.01 * w) == value
    tighter = [margin.gap_tolerant_dimension(X, y, w, b) for b in (0.0, 0.3, 0.6, 0.8)]
    gammas = [np.min(y * (X[:, 0] + b)) for b in (0.0, 0.3, 0.6, 0.8)]
    assert tighter == [min(math.ceil(radius**2 / gamma**2), 50) + 1 for gamma in gammas]
    assert tighter == sorted(tighter)  # moving the plane towards one class shrinks the margin
    assert 2 < tighter[1] < tighter[-1] == 51
    with pytest.raises(ValueError, match="must separate"):
        margin.gap_tolerant_dimension(X, -y, w)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: margin.kernel_margin_bound([], 1.0, 1.0, 0.05), "non-empty"),
        (lambda: margin.kernel_margin_bound([np.nan], 1.0, 1.0, 0.05), "finite"),
        (lambda: margin.kernel_margin_bound([1.0], -1.0, 1.0, 0.05), "norm must be"),
        (lambda: margin.boosting_margin_bound([1.5], 0.05, 1.0), "lie in \\[-1, 1\\]"),
        (lambda: margin.boosting_margin_bound([0.5], 0.05, math.inf), "infinite capacity"),
        (lambda: margin.regression_bound([1.0], 1e12, 1.0, 1.0, 0.05), "largest scale"),
        (lambda: margin.regression_bound([1.0], 1.0, 1.0, 0.0, 0.05), "clip must be"),
        (lambda: margin.multiclass_margin_bound([1.0], 1.0, 1.0, 1, 0.05), "classes must be"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_zero_weight_vector_says_nothing():
    assert margin.kernel_margin_bound([0.0, 0.0], 0.0, 3.0, 0.05).bound == 1.0

"""Lemmas behind the bounds of votes by out-of-bag rows, each against enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from assay.theory.pac_bayes import RATES, SHARES, OutOfBag, mean_risk_bound


def forms(W, w):
    return W / w, (W / w) ** 2, W + W * (1 - W) / w


@pytest.mark.parametrize("T", [1, 2, 3, 5, 8, 11])
def test_every_form_is_at_least_one_where_the_vote_can_err(T):
    w = (T + 1) // 2 / T
    for wrong in itertools.product((0, 1), repeat=T):
        W = sum(wrong) / T
        errs = T - sum(wrong) <= sum(wrong)  # not more than half of the votes are right; ties are errors
        for value in forms(W, w):
            assert value >= (1 - 1e-12 if errs else 0)


def test_the_mean_over_pairs_is_the_form():
    rng = np.random.default_rng(0)
    losses = rng.random((1, 5))  # one row, five members, all out of bag
    W = losses.mean()
    for w in (0.5, 0.6, 2 / 3):
        for form, value in zip(SHARES, forms(W, w)):
            loss, rows, factor = OutOfBag(5).add(losses, np.ones((1, 5), dtype=bool)).loss(form, w)
            assert factor * loss == pytest.approx(value, abs=1e-12)
            assert rows == 1
            assert 0 <= loss <= 1


def test_losses_of_pairs_stay_between_zero_and_one():
    grid = np.linspace(0, 1, 21)
    a, b = np.meshgrid(grid, grid)
    for w in (0.5, 0.6, 2 / 3, 1.0):
        loss = a + b - 2 * a * b / (1 + w)
        assert loss.min() >= 0
        assert loss.max() <= 1 + 1e-12


def test_the_exponential_moment_is_at_most_one():
    """E exp(n D(L) - r n e) <= 1 for Bernoulli losses, with equality; the heart of the theorem."""
    for n, p, exponent in itertools.product((1, 7, 40), (0.0, 0.1, 0.5, 0.9), RATES):
        r = 2.0**exponent
        k = np.arange(n + 1)
        D = -math.log(1 - p * (1 - math.exp(-r)))
        assert np.sum(binom.pmf(k, n, p) * np.exp(n * D - r * k)) == pytest.approx(1.0)


def test_rows_are_averaged_harmonically():
    out = np.array([[1, 0], [1, 0], [1, 1], [1, 1], [0, 1]], dtype=bool)  # 4 rows for one member, 3 for the other
    sums = OutOfBag(2).add(np.zeros((5, 2)), out)
    assert sums.loss("first", 0.5)[1] == pytest.approx(2 / (1 / 4 + 1 / 3))
    assert sums.loss("tandem", 0.5)[1] == pytest.approx(4 / (1 / 4 + 1 / 3 + 2 / 2))


def test_the_bound_by_hand_and_its_price():
    expected = (1 - math.exp(-0.5 * 0.1 - math.log(1 / 0.05) / 400)) / (1 - math.exp(-0.5))
    assert mean_risk_bound(0.1, 400, 0.05, 0.5) == pytest.approx(expected)
    found = OutOfBag(3).add(np.zeros((1000, 3)), np.ones((1000, 3), dtype=bool)).bound(0.05, 2 / 3)
    single = min(1.5 * mean_risk_bound(0.0, 1000, 0.05 / 16, 2.0**e) for e in RATES)
    assert found.bound <= single * (1 + 1e-9)
    assert found.bound >= -math.log(0.05 * 0.5 / 8) / 1000  # never below what no error at all would prove


def test_a_member_without_rows_of_its_own_bounds_nothing():
    out = np.array([[1, 0], [1, 0]], dtype=bool)
    assert OutOfBag(2).add(np.zeros((2, 2)), out).bound(0.05).bound == 1.0

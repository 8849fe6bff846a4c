"""Bayesian decisions against tables by hand, enumeration and integrals."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from assay.textbook.decision import (
    REJECT,
    bayes_risk,
    conditional_risk,
    gaussian_bayes_risk,
    minimum_risk,
    posterior,
)


@pytest.mark.mission("BAY-01")
class TestPosterior:
    def test_the_medical_test_by_hand(self):
        ill = 0.01 * 0.95 / (0.01 * 0.95 + 0.99 * 0.05)
        assert posterior([0.01, 0.99], [0.95, 0.05]) == pytest.approx([ill, 1 - ill], rel=1e-14)

    def test_rows_sum_to_one_for_densities(self):
        x = np.linspace(-30, 30, 50)
        P = posterior([0.2, 0.3, 0.5], np.column_stack([norm.pdf(x, m) for m in (-1, 0, 2)]))
        assert np.allclose(P.sum(axis=1), 1, atol=1e-15)

    def test_logarithms_do_not_underflow(self):
        logs = np.array([[-2000.0, -2001.0]])
        assert posterior([0.5, 0.5], logs, log=True)[0, 0] == pytest.approx(1 / (1 + np.exp(-1)))
        with pytest.raises(ValueError, match="no class can have produced row 0"):
            posterior([0.5, 0.5], np.exp(logs))

    @pytest.mark.parametrize("prior", [[0.5, 0.6], [-0.1, 1.1], [[0.5, 0.5]]])
    def test_a_prior_is_a_distribution(self, prior):
        with pytest.raises(ValueError, match="prior must be"):
            posterior(prior, [0.5, 0.5])

    @pytest.mark.parametrize("likelihood", [[0.1, np.nan], [0.1, -0.1], [0.1, 0.2, 0.3]])
    def test_likelihoods_that_are_none(self, likelihood):
        with pytest.raises(ValueError, match="likelihood must"):
            posterior([0.5, 0.5], likelihood)


@pytest.fixture
def shares():
    return np.random.default_rng(0).dirichlet([1, 1, 1], size=6)


@pytest.mark.mission("BAY-02")
def test_conditional_risk_is_the_sum(shares):
    cost = np.array([[0, 3, 1], [2, 0, 5], [4, 1, 0], [1, 1, 1]])
    risk = conditional_risk(shares, cost)
    by_hand = [[sum(cost[i, j] * p[j] for j in range(3)) for i in range(4)] for p in shares]
    assert np.allclose(risk, by_hand, rtol=1e-14)


@pytest.mark.mission("BAY-03")
def test_no_rule_has_a_smaller_risk(shares):
    cost = np.array([[0, 3, 1], [2, 0, 5], [4, 1, 0]])
    best = minimum_risk(shares, cost)
    risk = conditional_risk(shares, cost)
    least = risk[np.arange(6), best].sum()
    every = (sum(risk[i, rule[i]] for i in range(6)) for rule in itertools.product(range(3), repeat=6))
    assert least == pytest.approx(min(every), rel=1e-14)
    assert np.array_equal(minimum_risk(shares), shares.argmax(axis=1))  # every error costs the same
    assert np.array_equal(
        minimum_risk(shares, reject=0.5), np.where(shares.max(axis=1) < 0.5, -1, shares.argmax(axis=1))
    )


@pytest.mark.mission("BAY-04")
def test_zero_one_cost_is_the_largest_posterior(shares):
    assert np.array_equal(minimum_risk(shares), shares.argmax(axis=1))
    assert np.allclose(conditional_risk(shares, 1 - np.eye(3)), 1 - shares)


def test_rejecting_is_one_more_decision(shares):
    limit = 0.4
    with_reject = np.vstack([1 - np.eye(3), np.full((1, 3), limit)])
    expected = minimum_risk(shares, with_reject)
    assert np.array_equal(minimum_risk(shares, reject=limit), np.where(expected == 3, REJECT, expected))
    assert (minimum_risk(shares, reject=0.0) == REJECT).all()


def test_costs_that_do_not_fit(shares):
    with pytest.raises(ValueError, match="column for each of 3 classes"):
        minimum_risk(shares, [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="posterior must"):
        minimum_risk([[0.5, 0.6]])


@pytest.mark.mission("BAY-05")
class TestBayesRisk:
    def test_enumeration_of_all_rules(self):
        joint = np.random.default_rng(1).dirichlet(np.ones(12)).reshape(4, 3)
        every = [1 - sum(joint[x, rule[x]] for x in range(4)) for rule in itertools.product(range(3), repeat=4)]
        assert bayes_risk(joint) == pytest.approx(min(every), rel=1e-13)

    def test_costs(self):
        joint = np.array([[0.4, 0.1], [0.2, 0.3]])
        assert bayes_risk(joint, [[0, 10], [1, 0]]) == pytest.approx(0.4 + 0.2)

    @pytest.mark.parametrize("distance", [0.5, 2.0, 3.0])
    def test_two_gaussians(self, distance):
        assert gaussian_bayes_risk(distance) == pytest.approx(norm.cdf(-distance / 2), rel=1e-13)

    def test_two_gaussians_of_unequal_shares_by_integration(self):
        least = quad(lambda x: min(0.2 * norm.pdf(x), 0.8 * norm.pdf(x, 1.5)), -12, 13, points=[-0.2, 0.0])[0]
        assert gaussian_bayes_risk(1.5, 0.2) == pytest.approx(least, abs=1e-9)
        assert gaussian_bayes_risk(0.0, 0.3) == 0.3

"""Finite classes and prefix codes: closed forms, inverses, exact failure probabilities."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, binom, entropy

from assay.theory import pac
from assay.theory.concentration import clopper_pearson_upper, hoeffding_failure, union_bound


@pytest.mark.mission("LTH-18")
def test_chain_of_the_separable_case():
    for size in (1, 7, 3**10):
        for m in (1, 20, 500):
            for epsilon in (0.01, 0.1, 0.7):
                sharp = pac.realizable_failure(m, epsilon, size)
                simple = pac.realizable_failure(m, epsilon, size, exponential=True)
                assert sharp <= simple <= 1.0
                assert sharp == pytest.approx(min(1.0, size * (1 - epsilon) ** m), rel=1e-8, abs=1e-14)


@pytest.mark.mission("LTH-18")
def test_simulated_frequency_of_a_bad_consistent_hypothesis_stays_below():
    rng = np.random.default_rng(0)
    size, m, epsilon, runs = 30, 60, 0.1, 4000
    wrong = rng.random((runs, size, m)) < epsilon  # each hypothesis errs independently just at epsilon
    frequency = np.mean(~wrong.any(axis=2).all(axis=1))
    bound = pac.realizable_failure(m, epsilon, size)
    exact = 1 - (1 - (1 - epsilon) ** m) ** size
    assert 0.9 * bound < exact < bound  # nearly attained, so the comparison has force
    assert abs(frequency - exact) < 4 * math.sqrt(exact / runs)


@pytest.mark.mission("LTH-19")
def test_sample_size_of_conjunctions_is_minimal():
    m = pac.realizable_sample_size(0.1, 0.05, 3**10, exponential=True)
    assert m == 140
    assert (math.log(3**10) + math.log(20)) / 0.1 == pytest.approx(139.82, abs=0.005)
    assert 3**10 * math.exp(-0.1 * m) <= 0.05 < 3**10 * math.exp(-0.1 * (m - 1))
    sharp = pac.realizable_sample_size(0.1, 0.05, 3**10)
    power = Fraction(9, 10)
    assert 3**10 * power**sharp <= Fraction(1, 20) < 3**10 * power ** (sharp - 1)


@pytest.mark.mission("LTH-20", "LTH-21")
def test_rates_in_the_number_of_rows():
    m = np.array([10**3, 10**4, 10**5])
    separable = [pac.realizable_error(int(v), 0.05, 1000, exponential=True) for v in m]
    assert np.diff(np.log(separable)) / np.diff(np.log(m)) == pytest.approx([-1, -1], abs=1e-9)
    agnostic = [pac.agnostic_deviation(int(v), 0.05, 1000) for v in m]
    assert np.diff(np.log(agnostic)) / np.diff(np.log(m)) == pytest.approx([-0.5, -0.5], abs=1e-9)
    assert separable[0] == pytest.approx((math.log(1000) + math.log(20)) / 1000)
    assert pac.realizable_error(30, 0.05, 1000) == pytest.approx(1 - (0.05 / 1000) ** (1 / 30))


@pytest.mark.parametrize("size", [1, 50, 2**300])
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-8])
@pytest.mark.mission("LTH-14", "LTH-21")
def test_bound_size_and_confidence_invert_each_other(size, delta):
    m = 100_000
    epsilon = pac.realizable_error(m, delta, size)
    assert pac.realizable_failure(m, epsilon, size) == pytest.approx(delta, rel=1e-5)
    assert abs(pac.realizable_sample_size(epsilon, delta, size) - m) <= 1
    for two_sided in (False, True):
        epsilon = pac.agnostic_deviation(m, delta, size, two_sided=two_sided)
        assert pac.agnostic_failure(m, epsilon, size, two_sided=two_sided) == pytest.approx(delta, rel=1e-5)
        assert abs(pac.agnostic_sample_size(epsilon, delta, size, two_sided=two_sided) - m) <= 1


@pytest.mark.mission("LTH-14")
def test_sample_size_grows_linearly_in_the_inverse_error_and_the_log_confidence():
    size, base = 10**6, pac.realizable_sample_size(0.01, 0.05, 10**6, exponential=True)
    assert pac.realizable_sample_size(0.001, 0.05, size, exponential=True) == pytest.approx(10 * base, rel=1e-2)
    steps = [pac.realizable_sample_size(0.01, 10.0**-j, size, exponential=True) for j in (2, 4, 6)]
    assert steps[2] - steps[1] == pytest.approx(steps[1] - steps[0], abs=2)


@pytest.mark.mission("LTH-12", "LTH-21")
def test_the_finite_class_bounds_are_union_bounds():
    single = hoeffding_failure(300, 0.12, two_sided=True)
    assert pac.agnostic_failure(300, 0.12, 40) == pytest.approx(union_bound([single] * 40))
    one_sided = hoeffding_failure(300, 0.12)
    assert pac.agnostic_failure(300, 0.12, 40, two_sided=False) == pytest.approx(union_bound([one_sided] * 40))
    assert pac.realizable_failure(300, 0.03, 40) == pytest.approx(union_bound([0.97**300] * 40))
    assert pac.realizable_failure(300, 0.03, 40, exponential=True) == pytest.approx(union_bound([math.exp(-9)] * 40))
    assert pac.finite_class_bound(7, 300, 0.05, 40) == clopper_pearson_upper(7, 300, 0.05 / 40)
    assert pac.holdout_bound(7, 300, 0.05, candidates=40) == clopper_pearson_upper(7, 300, 0.05 / 40)


@pytest.mark.mission("LTH-21")
def test_uniform_deviation_over_independent_hypotheses():
    rng = np.random.default_rng(1)
    size, m, delta, runs = 25, 80, 0.2, 2000
    epsilon = pac.agnostic_deviation(m, delta, size)
    worst = np.abs(rng.binomial(m, 0.5, (runs, size)) / m - 0.5).max(axis=1)
    assert np.mean(worst > epsilon) <= delta


@pytest.mark.mission("LTH-22")
def test_erm_on_noisy_labels_is_near_the_best_of_the_class():
    epsilon, delta, size = 0.15, 0.2, 21
    m = pac.erm_sample_size(epsilon, delta, size)
    assert m == math.ceil(2 * math.log(2 * size / delta) / epsilon**2)
    assert m == pac.agnostic_sample_size(epsilon / 2, delta, size)
    rng = np.random.default_rng(2)
    cuts, theta, noise = np.linspace(0, 1, size), 0.37, 0.2
    risk = noise + (1 - 2 * noise) * np.abs(cuts - theta)
    excess = []
    for _ in range(300):
        x = rng.random(m)
        y = (x > theta) ^ (rng.random(m) < noise)
        empirical = ((x[:, None] > cuts) != y[:, None]).mean(axis=0)
        excess.append(risk[np.argmin(empirical)] - risk.min())
    assert np.mean(np.array(excess) > epsilon) <= delta


def test_exact_failure_of_the_finite_class_bound_on_independent_hypotheses():
    """P[some of |H| independent hypotheses breaks the bound], worst over their error rate: near delta."""
    n, size, delta = 60, 20, 0.05
    bounds = np.array([pac.finite_class_bound(k, n, delta, size) for k in range(n + 1)])
    rates = []
    for p in np.linspace(0.005, 0.9, 400):
        single = binom.pmf(np.arange(n + 1), n, p)[bounds < p].sum()
        rates.append(1 - (1 - single) ** size)
    assert 0.8 * delta <= max(rates) <= delta


def test_occam_with_a_uniform_prior_is_the_finite_class_bound():
    """Both are the limit q at which 3 errors or fewer in 200 rows have probability delta / 64."""
    for found in (pac.occam_bound(3, 200, 0.05, -math.log(64)), pac.finite_class_bound(3, 200, 0.05, 64)):
        assert found == pytest.approx(beta.ppf(1 - 0.05 / 64, 4, 197), rel=1e-9)
        assert binom.cdf(3, 200, found) == pytest.approx(0.05 / 64, rel=1e-6)
    limit = pac.occam_bound(3, 200, 0.05, -1000 * math.log(2))  # 0.05 * 2^-1000, by logarithms
    assert binom.logcdf(3, 200, limit) == pytest.approx(math.log(0.05) - 1000 * math.log(2), rel=1e-6)
    for loss in (pac.occam_loss_bound(0.1, 200, 0.05, -math.log(64)), pac.finite_class_loss_bound(0.1, 200, 0.05, 64)):
        assert loss > 0.1
        assert entropy([0.1, 0.9], [loss, 1 - loss]) == pytest.approx(math.log(64 / 0.05) / 200, rel=1e-8)


def test_choice_among_candidates_is_paid_for():
    assert pac.holdout_bound(4, 100, 0.05, candidates=20) == pytest.approx(clopper_pearson_upper(4, 100, 0.0025))
    rng = np.random.default_rng(3)
    errors = rng.binomial(50, 0.5, (4000, 20)).min(axis=1)  # twenty coin-flipping models, the best is kept
    paid = np.array([pac.holdout_bound(int(k), 50, 0.05, candidates=20) for k in range(51)])
    naive = np.array([pac.holdout_bound(int(k), 50, 0.05) for k in range(51)])
    assert np.mean(paid[errors] < 0.5) <= 0.05
    assert np.mean(naive[errors] < 0.5) > 0.4  # without paying, the choice breaks the promise


@pytest.mark.mission("LTH-04")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pac.realizable_sample_size(0.0, 0.05, 9), "epsilon must lie strictly between 0 and 1"),
        (lambda: pac.realizable_sample_size(1.0, 0.05, 9), "epsilon must lie strictly"),
        (lambda: pac.agnostic_sample_size(0.1, 1.5, 9), "delta must lie strictly"),
        (lambda: pac.agnostic_deviation(10, 0.05, math.inf), "size must be finite"),
        (lambda: pac.agnostic_deviation(10, 0.05, 0), "size must be an integer >= 1"),
        (lambda: pac.occam_bound(1, 10, 0.05, 0.5), "log_prior must be"),
        (lambda: pac.finite_class_loss_bound(1.5, 10, 0.05, 4), "p must be"),
        (lambda: pac.holdout_bound(1, 10, 0.05, candidates=0), "candidates must be"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()

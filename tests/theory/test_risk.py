"""Losses and risks against scikit-learn, closed forms and exact sums."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import metrics

from assay.linear_model import Lasso, Ridge
from assay.model_selection import penalty_path
from assay.textbook import risk
from assay.theory.concentration import hoeffding_deviation
from assay.theory.spaces import PolynomialClassifiers, Thresholds
from assay.tree import DecisionTreeRegressor


@pytest.mark.mission("CON-20", "CON-21", "CON-22", "CON-23", "CON-24", "CON-25", "LTH-02")
def test_losses_against_scikit_learn():
    rng = np.random.default_rng(0)
    y, guess, w = rng.integers(0, 3, 50), rng.integers(0, 3, 50), rng.random(50)
    p = rng.dirichlet(np.ones(3), 50)
    f, t = rng.normal(size=50), rng.normal(size=50)
    pairs = [
        (
            risk.zero_one(y, guess),
            metrics.zero_one_loss(y, guess, sample_weight=w),
            metrics.zero_one_loss(y, guess),
        ),
        (
            risk.squared(t, f),
            metrics.mean_squared_error(t, f, sample_weight=w),
            metrics.mean_squared_error(t, f),
        ),
        (
            risk.absolute(t, f),
            metrics.mean_absolute_error(t, f, sample_weight=w),
            metrics.mean_absolute_error(t, f),
        ),
        (risk.log_loss(y, p), metrics.log_loss(y, p, sample_weight=w), metrics.log_loss(y, p)),
    ]
    for losses, weighted, plain in pairs:
        assert risk.empirical_risk(losses, w) == pytest.approx(weighted)
        assert risk.empirical_risk(losses) == pytest.approx(plain)
        assert losses.sum() == pytest.approx(50 * risk.empirical_risk(losses))  # the training objective
    assert risk.log_loss([1], [[1.0, 0.0]]) == pytest.approx(-math.log(1e-15))  # clipped, not infinite
    assert risk.empirical_risk(risk.zero_one([1, -1, 1], [1, 1, -1])) == pytest.approx(2 / 3)


def finite(noise=0.1, size=6):
    x = np.repeat(np.arange(float(size)), 2)
    y = np.tile([1, -1], size)
    truth = np.where(x > 2.5, 1, -1)
    return risk.FiniteDistribution(x, y, np.where(y == truth, 1 - noise, noise) / size)


@pytest.mark.mission("LTH-01", "CON-26")
def test_exact_risk_of_a_finite_distribution():
    law = finite()
    assert law.risk(lambda x: np.where(x > 2.5, 1, -1)) == pytest.approx(0.1)
    assert law.risk(lambda x: np.where(x > 0.5, 1, -1)) == pytest.approx(0.1 + 0.8 * 2 / 6)
    assert law.risk(lambda x: np.where(x > 2.5, -1, 1)) == pytest.approx(0.9)


@pytest.mark.mission("LTH-01", "CON-26")
def test_simulated_risk_of_a_threshold_has_its_closed_form():
    """Uniform x with target threshold 0.4: threshold t errs on |t - 0.4|."""
    for t in (0.1, 0.4, 0.75):
        found = risk.simulated_risk(
            lambda rng, m, t=t: (lambda x: risk.zero_one(x > 0.4, x > t))(rng.random(m)),
            draws=40_000,
            high=1.0,
            seed=1,
        )
        assert found.lower <= abs(t - 0.4) <= found.upper
        assert abs(found.value - abs(t - 0.4)) <= 4 * found.standard_error + 1e-12
        p, half = found.value, math.sqrt(math.log(2 / 0.05) / 80_000)  # Hoeffding's
        assert (found.lower, found.upper) == pytest.approx((max(0.0, p - half), min(1.0, p + half)))
        assert found.standard_error == pytest.approx(math.sqrt(p * (1 - p) / 39_999))


@pytest.mark.mission("CON-26")
def test_simulated_risk_of_a_linear_function_under_a_gaussian():
    """y = 2x + e, f = 1.5x: E(y - f)^2 = 0.25 + Var e; sign error by the normal distribution."""

    def squared(rng, m):
        x, e = rng.normal(size=m), 0.5 * rng.normal(size=m)
        return risk.squared(2 * x + e, 1.5 * x)

    found = risk.simulated_risk(squared, draws=40_000)
    assert abs(found.value - 0.5) <= 4 * found.standard_error
    drawn = squared(np.random.default_rng(0), 40_000)
    mean, error = drawn.mean(), drawn.std(ddof=1) / 200
    assert found == pytest.approx((mean, error, mean - 4 * error, mean + 4 * error))

    def sign(rng, m):
        y = rng.choice([-1, 1], m)
        return risk.zero_one(y, np.sign(y + rng.normal(size=m)))

    found = risk.simulated_risk(sign, draws=40_000, high=1.0)
    assert abs(found.value - norm.sf(1)) <= 4 * found.standard_error


@pytest.mark.mission("LTH-02")
def test_the_mean_of_the_empirical_error_is_the_risk():
    law, rng = finite(), np.random.default_rng(1)

    def h(x):
        return np.where(x > 1.5, 1, -1)

    values = [risk.empirical_risk(risk.zero_one(y, h(x))) for x, y in (law.sample(15, rng) for _ in range(4000))]
    assert np.mean(values) == pytest.approx(law.risk(h), abs=4 * np.std(values) / math.sqrt(4000))


@pytest.mark.mission("CON-29")
def test_the_bayes_classifier_minimises_the_expected_risk():
    rng = np.random.default_rng(2)
    for _ in range(20):
        x, y = np.repeat(np.arange(4.0), 2), np.tile([1, -1], 4)
        law = risk.FiniteDistribution(x, y, rng.dirichlet(np.ones(8)))
        table, error = law.bayes()
        everything = [
            law.risk(lambda z, c=c: np.array([c[int(v)] for v in z])) for c in itertools.product([-1, 1], repeat=4)
        ]
        assert error == pytest.approx(min(everything))
        assert law.risk(lambda z, t=table: np.array([t[(float(v),)] for v in z])) == pytest.approx(error)
        missed = law.risk(lambda z: np.where(z > 1, 1, -1), lambda t, f: 3.0 * ((t == 1) & (f == -1)))  # not symmetric
        assert missed == pytest.approx(3 * law.probability[(y == 1) & (x <= 1)].sum())


@pytest.mark.mission("CON-52", "CON-53")
def test_mean_and_covariance_of_a_finite_distribution():
    rng = np.random.default_rng(7)
    X, p = rng.normal(size=(9, 3)), rng.dirichlet(np.ones(9))
    law = risk.FiniteDistribution(X, np.ones(9), p)
    assert law.mean() == pytest.approx(np.average(X, axis=0, weights=p))
    assert law.covariance() == pytest.approx(np.cov(X.T, ddof=0, aweights=p))
    assert law.covariance() == pytest.approx((X * p[:, None]).T @ X - np.outer(law.mean(), law.mean()))
    assert np.array_equal(law.covariance(), law.covariance().T)
    assert np.linalg.eigvalsh(law.covariance()).min() >= -1e-15
    even = risk.FiniteDistribution(X, np.ones(9), np.full(9, 1 / 9))
    assert even.covariance() == pytest.approx(np.cov(X.T, ddof=0))
    square = risk.FiniteDistribution([[-1.0, 1.0], [0.0, 0.0], [1.0, 1.0]], np.ones(3), np.full(3, 1 / 3))
    assert square.covariance()[0, 1] == pytest.approx(0.0)  # uncorrelated, though the second is the square


@pytest.mark.mission("CON-27")
def test_empirical_risk_tends_to_the_expected_risk_of_a_fixed_function_only():
    law, rng, delta = finite(), np.random.default_rng(3), 0.1

    def h(x):
        return np.where(x > 1.5, 1, -1)

    for n in (20, 200, 2000):
        inside = 0
        for _ in range(200):
            x, y = law.sample(n, rng)
            gap = abs(risk.empirical_risk(risk.zero_one(y, h(x))) - law.risk(h))
            inside += gap <= hoeffding_deviation(n, delta, two_sided=True)
        assert inside >= 180 - 20
    # a lookup table on continuous inputs: no training error for any n, risk one half on coin labels
    for n in (20, 2000):
        x, y = rng.random(n), rng.choice([-1, 1], n)
        table = dict(zip(x, y))
        assert risk.empirical_risk(risk.zero_one(y, [table[v] for v in x])) == 0.0
        fresh, labels = rng.random(4000), rng.choice([-1, 1], 4000)
        error = risk.empirical_risk(risk.zero_one(labels, [table.get(v, 1) for v in fresh]))
        assert error > hoeffding_deviation(n, delta) or n == 20
        assert abs(error - 0.5) < 0.05


@pytest.mark.mission("CON-28")
def test_erm_loses_at_most_twice_the_largest_deviation():
    law, rng = finite(0.2), np.random.default_rng(4)
    cuts = np.arange(-0.5, 6)
    risks = np.array([law.risk(lambda z, t=t: np.where(z > t, 1, -1)) for t in cuts])
    for _ in range(200):
        x, y = law.sample(12, rng)
        seen = np.array([risk.empirical_risk(risk.zero_one(y, np.where(x > t, 1, -1))) for t in cuts])
        found = Thresholds().erm(x, y)
        assert found.errors == pytest.approx(12 * seen.min())
        chosen = law.risk(found.hypothesis)
        assert chosen <= risks.min() + 2 * np.abs(risks - seen).max() + 1e-12


@pytest.mark.mission("CON-30")
def test_regularised_choice():
    rng = np.random.default_rng(5)
    risks, penalties = rng.random(30), rng.random(30)
    assert risk.regularised_minimum(risks, penalties, 0.0) == np.argmin(risks)
    chosen = [risk.regularised_minimum(risks, penalties, lam) for lam in np.linspace(0, 20, 80)]
    assert chosen == [min(range(30), key=lambda i: risks[i] + lam * penalties[i]) for lam in np.linspace(0, 20, 80)]
    assert len(set(chosen)) > 3
    assert np.all(np.diff(risks[chosen]) >= 0)
    assert np.all(np.diff(penalties[chosen]) <= 0)
    assert risk.regularised_minimum([1.0, 1.0], [3.0, 2.0], 0.0) == 1  # ties go to the simpler one


@pytest.mark.mission("CON-30")
@pytest.mark.parametrize(
    ("learner", "parameter", "strengths", "penalty"),
    [
        (Ridge(), "alpha", np.geomspace(1e-4, 1e4, 15), "squared length"),
        (Lasso(tol=1e-12), "alpha", np.geomspace(1e-3, 3.0, 12), "absolute sum"),
        (DecisionTreeRegressor(), "ccp_alpha", np.geomspace(1e-3, 2.0, 12), "leaves"),
    ],
    ids=["length", "sum", "leaves"],
)
def test_a_stronger_penalty_never_lowers_the_loss(learner, parameter, strengths, penalty):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 5))
    y = X @ [2.0, -1.0, 0.5, 0.0, 0.0] + 0.5 * rng.normal(size=80)
    least = 1e-9 if penalty == "absolute sum" else 0.0  # the lasso refuses 0
    path = penalty_path(learner, parameter, [least, *strengths], X, y, penalty=penalty)
    assert np.all(np.diff(path.losses) >= -1e-9)
    assert np.all(np.diff(path.penalties) <= 1e-9)
    assert path.losses[0] < path.losses[-1]
    assert path.penalties[0] > path.penalties[-1]
    if penalty == "leaves":
        assert path.losses[0] == pytest.approx(0.0, abs=1e-12)  # every row in a leaf of its own
    else:
        plain = np.linalg.lstsq(np.column_stack([X, np.ones(80)]), y, rcond=None)[1][0] / 80
        assert path.losses[0] == pytest.approx(plain, rel=1e-6)
    own = penalty_path(learner, parameter, strengths[:2], X, y, penalty=lambda model: 7.0)
    assert own.penalties.tolist() == [7.0, 7.0]


@pytest.mark.mission("CON-31")
def test_the_four_rows_of_the_diagnosis_table():
    assert risk.diagnose(0.01, 0.02, 0.05, 0.05) == "generalises well"
    assert risk.diagnose(0.01, 0.30, 0.05, 0.05) == "overfits"
    assert risk.diagnose(0.30, 0.35, 0.05, 0.05) == "underfits"
    assert risk.diagnose(0.30, 0.02, 0.05, 0.05) == "too good to be true"


def fewest_errors(labels, degree):
    """Fewest errors of the sign of a polynomial in one variable: at most `degree` changes of label."""
    best = np.zeros((2, degree + 1))  # current sign, changes so far
    for y in labels:
        stay = best + np.array([[y != 1], [y != -1]])
        change = np.full_like(best, np.inf)
        change[:, 1:] = best[::-1, :-1] + np.array([[y != 1], [y != -1]])
        best = np.minimum(stay, change)
    return int(best.min())


@pytest.mark.mission("LTH-54")
def test_nested_classes_are_chosen_by_the_smallest_bound():
    """Polynomials of degree 1..8 on noisy labels of a cubic: errors fall, confidence grows."""
    rng = np.random.default_rng(6)
    n = 4000
    x = rng.uniform(-1, 1, n)
    y = np.where((x * (x - 0.7) * (x + 0.7) > 0) ^ (rng.random(n) < 0.1), 1, -1)
    degrees = range(1, 9)
    errors = [fewest_errors(y[np.argsort(x)], degree) for degree in degrees]
    assert errors == sorted(errors, reverse=True)
    growths = [PolynomialClassifiers(1, degree).log_growth for degree in degrees]
    choice = risk.structural_minimum(errors, n, 0.05, growths)
    assert choice.chosen == int(np.argmin(choice.bounds)) == 2  # degree 3
    confidence = np.array(choice.bounds) - np.array(errors) / n
    assert np.all(np.diff(confidence) > 0)
    assert choice.bounds[0] > choice.bounds[2] < choice.bounds[-1]  # U-shape
    by_hand = errors[2] / n + math.sqrt(2 * growths[2](n) / n) + math.sqrt(math.log(8 / 0.05) / (2 * n))
    assert choice.bounds[2] == pytest.approx(by_hand, rel=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: risk.empirical_risk([]), "non-empty"),
        (lambda: risk.empirical_risk([1.0], [-1.0]), "sample_weight"),
        (lambda: risk.log_loss([2], [[0.5, 0.5]]), "integers below"),
        (lambda: risk.log_loss([0], [[0.5, 0.6]]), "add up to 1"),
        (lambda: risk.FiniteDistribution([0], [1], [0.5]), "adding up to 1"),
        (lambda: risk.simulated_risk(lambda rng, m: np.full(m, 2.0), high=1.0), "losses must lie"),
        (lambda: risk.structural_minimum([], 10, 0.05, []), "positive length"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()

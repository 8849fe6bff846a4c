"""Linear discriminant analysis and the Bayes rule of Gaussian classes with one covariance."""

import numpy as np
import pytest
from scipy.optimize import minimize

from assay.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from assay.textbook.decision import bayes_rule, gaussian_risk


def rows_with_moments(means, root):
    """Return rows whose class means are `means` and whose covariances are root @ root.T, exactly but for rounding: each
    mean -+ sqrt(d) times a column of the root."""
    d = len(root)
    steps = np.sqrt(d) * np.vstack([root.T, -root.T])
    return np.vstack([mean + steps for mean in means]), np.repeat(np.arange(len(means)), 2 * d)


@pytest.mark.mission("LIN-35")
@pytest.mark.parametrize("seed", range(5))
def test_lda_is_the_bayes_rule_where_the_sample_has_the_true_moments(seed):
    """No simulation: on rows with exactly the moments of the Gaussian classes, LDA is their Bayes rule, which was found
    by minimising the error integral itself."""
    rng = np.random.default_rng(seed)
    root, means, prior = rng.normal(size=(3, 3)), rng.normal(size=(2, 3)), [0.3, 0.7]
    X, y = rows_with_moments(means, root)
    model = LinearDiscriminantAnalysis(priors=prior).fit(X, y)
    rule = bayes_rule(means, root @ root.T, prior)
    np.testing.assert_allclose(model.coef_[0], rule.coef, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_[0], rule.intercept, rtol=1e-9, atol=1e-9)
    risk = lambda v: gaussian_risk(v[:3], v[3], means, root @ root.T, prior)  # noqa: E731
    least = min(minimize(risk, rng.normal(size=4), method="BFGS", tol=1e-12).fun for _ in range(5))
    assert risk([*model.coef_[0], model.intercept_[0]]) == pytest.approx(least, abs=1e-9)
    other = QuadraticDiscriminantAnalysis(priors=prior).fit(X, y)  # equal covariances: the quadratic terms vanish
    np.testing.assert_allclose(other.predict_proba(X), model.predict_proba(X), atol=1e-9)


@pytest.mark.mission("LIN-35")
def test_the_excess_over_the_bayes_error_falls_like_one_over_n():
    """The exact error of the fitted rule, by its normal integrals, against that of the Bayes rule; with unequal
    covariances, one of the conditions, a quadratic rule is better."""
    rng = np.random.default_rng(17)
    mix, means = rng.normal(size=(3, 3)), np.array([[0.0, 0, 0], [0.6, -0.4, 0.5]])
    covariance = mix.T @ mix
    bayes = gaussian_risk(*bayes_rule(means, covariance), means, covariance)
    excess = []
    for n in (200, 2_000, 20_000):
        found = []
        for _ in range(20):
            y = np.arange(n) % 2
            model = LinearDiscriminantAnalysis().fit(rng.normal(size=(n, 3)) @ mix + means[y], y)
            found.append(gaussian_risk(model.coef_, model.intercept_, means, covariance) - bayes)
        assert min(found) >= 0
        excess.append(np.mean(found))
    assert 4 < excess[0] / excess[1] < 25
    assert 4 < excess[1] / excess[2] < 25
    y = np.arange(4_000) % 2
    X = rng.normal(size=(4_000, 3)) @ mix * np.where(y, 3.0, 1.0)[:, None] + means[y]
    line, curve = LinearDiscriminantAnalysis().fit(X, y), QuadraticDiscriminantAnalysis().fit(X, y)
    assert curve.score(X, y) > line.score(X, y) + 0.1


def test_the_error_of_a_linear_rule_is_its_frequency():
    rng = np.random.default_rng(18)
    root, means = rng.normal(size=(2, 2)), np.array([[0.0, 1.0], [1.0, 0.0]])
    w, b, prior = np.array([1.0, -0.5]), 0.2, [0.25, 0.75]
    y = (rng.random(400_000) < 0.75).astype(int)
    X = rng.normal(size=(400_000, 2)) @ root.T + means[y]
    wrong = np.mean((X @ w + b > 0) != y)
    assert gaussian_risk(w, b, means, root @ root.T, prior) == pytest.approx(wrong, abs=4 * 0.5 / np.sqrt(400_000))
    for bad, words in (((means, np.eye(3)), "shapes"), ((means, np.eye(2), [0.5, 0.6]), "sum to 1")):
        with pytest.raises(ValueError, match=words):
            bayes_rule(*bad)


@pytest.mark.mission("LIN-35")
def test_lda_approaches_the_bayes_rule_of_gaussian_classes():
    """Equal priors, Gaussian classes, one covariance: decisions agree with the true Bayes rule as rows
    grow."""
    rng = np.random.default_rng(7)
    mix = rng.normal(size=(3, 3))
    means = np.array([[0.0, 0, 0], [0.4, -0.2, 0.2]])
    direction = np.linalg.solve(mix.T @ mix, means[1] - means[0])
    fresh = rng.normal(size=(20_000, 3)) @ mix + means[rng.integers(0, 2, 20_000)]
    bayes = fresh @ direction > direction @ means.mean(axis=0)
    disagreements = []
    for n in (100, 1_000, 100_000):
        y = np.arange(n) % 2
        X = rng.normal(size=(n, 3)) @ mix + means[y]
        disagreements.append(np.mean(LinearDiscriminantAnalysis().fit(X, y).predict(fresh) != bayes))
    assert disagreements[2] < 0.005
    assert disagreements[2] < disagreements[0]

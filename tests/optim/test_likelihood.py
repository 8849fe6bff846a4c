"""Maximum likelihood of densities that are functions, against closed forms."""

import numpy as np
import pytest
from scipy import stats

from assay.mixture import GaussianDensity
from assay.textbook.likelihood import fit


@pytest.fixture
def numbers():
    return np.random.default_rng(0).normal(3.0, 2.0, size=200)


def log_normal(x, theta):
    return -0.5 * np.log(2 * np.pi * theta[1]) - (x - theta[0]) ** 2 / (2 * theta[1])


@pytest.mark.mission("BAY-06")
class TestClosedForms:
    def test_gaussian(self, numbers):
        found = fit(log_normal, numbers, [0.0, 1.0], [(None, None), (1e-9, None)])
        assert found.converged
        assert found.parameters == pytest.approx([numbers.mean(), numbers.var()], rel=1e-7)
        assert found.log_likelihood == pytest.approx(stats.norm.logpdf(numbers, numbers.mean(), numbers.std()).sum())
        assert np.abs(found.gradient).max() < 1e-6 * len(numbers)

    def test_weights_are_repeated_rows(self, numbers):
        weight = np.arange(200) % 3
        one = fit(log_normal, numbers, [0.0, 1.0], [(None, None), (1e-9, None)], sample_weight=weight)
        repeated = np.repeat(numbers, weight)
        assert one.parameters == pytest.approx([repeated.mean(), repeated.var()], rel=1e-7)

    def test_poisson_and_categorical(self):
        rng = np.random.default_rng(1)
        counts = rng.poisson(4.2, size=300)
        found = fit(lambda x, t: stats.poisson.logpmf(x, t[0]), counts, [1.0], [(1e-6, None)])
        assert found.parameters == pytest.approx([counts.mean()], rel=1e-7)
        levels = rng.integers(0, 3, size=100)

        def log_share(x, t):
            return (np.array([*t, 0.0]) - np.logaddexp.reduce([*t, 0.0]))[x]

        logits = np.array([*fit(log_share, levels, [0.0, 0.0]).parameters, 0.0])
        assert np.exp(logits - np.logaddexp.reduce(logits)) == pytest.approx(np.bincount(levels) / 100, rel=1e-6)

    def test_a_maximum_on_a_bound(self, numbers):
        found = fit(log_normal, numbers, [1.0, 4.0], [(None, 2.0), (1e-9, None)])
        assert found.parameters[0] == 2.0
        assert found.on_bound.tolist() == [True, False]
        assert found.parameters[1] == pytest.approx(np.square(numbers - 2.0).mean(), rel=1e-6)
        assert found.converged


def test_what_cannot_be_fitted(numbers):
    with pytest.raises(ValueError, match="within its bounds"):
        fit(log_normal, numbers, [0.0, -1.0], [(None, None), (1e-9, None)])
    with pytest.raises(ValueError, match="0 or not a number at start"):
        fit(log_normal, numbers, [0.0, -1.0])
    with pytest.raises(ValueError, match="a number for each of 200 rows"):
        fit(lambda x, t: 1.0, numbers, [0.0])
    with pytest.warns(RuntimeWarning, match="stopped where the gradient"):
        fit(log_normal, numbers, [0.0, 1.0], [(None, None), (1e-9, None)], max_iter=1, tol=1e-15)


@pytest.mark.mission("BAY-08")
def test_no_gaussian_near_mean_and_covariance_is_likelier():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 3)) + 5.0
    model = GaussianDensity(reg_covar=0.0).fit(X)
    mean, covariance = X.mean(axis=0), np.cov(X.T, ddof=0)
    assert model.means_[0] == pytest.approx(mean, rel=1e-12)
    assert model.covariances_ == pytest.approx(covariance, rel=1e-10)
    best = stats.multivariate_normal(mean, covariance).logpdf(X).sum()
    assert model.score_samples(X).sum() == pytest.approx(best, rel=1e-12)
    for _ in range(200):
        moved, change = mean + 0.1 * rng.normal(size=3), np.eye(3) + 0.1 * rng.normal(size=(3, 3))
        assert stats.multivariate_normal(moved, change @ covariance @ change.T).logpdf(X).sum() < best

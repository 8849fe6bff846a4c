"""Small models with hidden parts: published numbers, counting, k-means as a limit, and what EM refuses."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from assay.mixture import GaussianDensity
from assay.mixture._components import GaussianProblem
from assay.mixture._gaussian_mixture import GapProblem
from assay.mixture.latent import Coins, KnownVariance, NaiveBayesWithGaps, ThreeCoins
from assay.optim.em import Expected, LikelihoodFellError, em
from assay.scan import rows

THROWS = [1, 1, 0, 1, 0, 0, 1, 0, 1, 1]


@pytest.mark.mission("LAT-04")
@pytest.mark.parametrize(
    ("start", "end"), [((0.5, 0.5, 0.5), (0.5, 0.6, 0.6)), ((0.4, 0.6, 0.7), (0.4064, 0.5368, 0.6432))]
)
def test_three_coins_depend_on_the_start(start, end):
    found = em(ThreeCoins(THROWS), Coins(*start), tol=1e-14, max_iter=1000)
    assert np.round(found.parameters, 4).tolist() == list(end)
    assert found.converged
    # Both ends have the largest likelihood there is: that of a share of 0.6 heads.
    assert found.log_likelihood == pytest.approx(6 * np.log(0.6) + 4 * np.log(0.4))


@pytest.mark.mission("LAT-01")
def test_every_model_has_the_interface():
    X = np.random.default_rng(0).normal(size=(60, 2))
    holes = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.2, np.nan, X)
    gaps = NaiveBayesWithGaps([[0, 1], [1, -1], [1, 0]], [0, -1, 1])
    known = KnownVariance(X, 1.0)
    problem, density = GaussianProblem(rows(X), "full", 0.0), GapProblem(rows(holes), "tied", 0.0, GaussianDensity())
    one = problem.m_step(
        problem.e_step(
            GaussianDensity(reg_covar=0.0)
            .fit(X)
            .components_._replace(kind="full", covariances=np.eye(2)[None], factors=np.eye(2)[None])
        ).statistics
    )
    for model, start in (
        (ThreeCoins(THROWS), Coins(0.3, 0.2, 0.7)),
        (gaps, gaps.start()),
        (known, known.start(X[:3])),
        (problem, one),
        (density, density.start()),
    ):
        expected = model.e_step(start)
        assert isinstance(expected, Expected)
        assert expected.log_likelihood == pytest.approx(model.log_likelihood(start), rel=1e-12)
        after = model.m_step(expected.statistics)
        assert model.log_likelihood(after) >= expected.log_likelihood - 1e-12


def test_a_fall_of_the_likelihood_is_an_error():
    class Wrong(ThreeCoins):
        def m_step(self, statistics):
            right = super().m_step(statistics)
            return Coins(right.first, 0.1, right.after_tails)

    with pytest.raises(LikelihoodFellError, match=r"EM: step 1 lowered the log-likelihood from"):
        em(Wrong(THROWS), Coins(0.4, 0.6, 0.7), tol=0.0, max_iter=10)


def test_steps_and_watching():
    seen = []
    found = em(
        ThreeCoins(THROWS), Coins(0.4, 0.6, 0.7), tol=0.0, max_iter=5, watch=lambda *step: bool(seen.append(step))
    )
    assert found.n_iter == len(seen) == 5
    assert found.history[1:] == [value for _, value, _ in seen]
    stopped = em(ThreeCoins(THROWS), Coins(0.4, 0.6, 0.7), tol=0.0, max_iter=5, watch=lambda *step: True)
    assert stopped.n_iter == 1
    start = em(ThreeCoins(THROWS), Coins(0.4, 0.6, 0.7), tol=0.0, max_iter=0)
    assert start.parameters == Coins(0.4, 0.6, 0.7)
    assert not start.converged


def test_bad_throws_are_refused():
    with pytest.raises(ValueError, match="ThreeCoins: throws must be a list of 0"):
        ThreeCoins([0, 2])


# Naive Bayes with gaps ----------------------------------------------------------------------------------------


def nominal(seed=0, n=300):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = np.column_stack([rng.binomial(2, 0.2 + 0.5 * y), (rng.uniform(size=n) < 0.3 + 0.4 * y).astype(int)])
    return X, y


@pytest.mark.mission("LAT-05")
def test_without_gaps_em_is_counting():
    X, y = nominal()
    model = NaiveBayesWithGaps(X, y)
    found = em(model, model.start(), tol=1e-12, max_iter=50)
    assert found.n_iter <= 3
    assert found.parameters.priors == pytest.approx(np.bincount(y) / len(y))
    for column, table in zip(X.T, found.parameters.columns, strict=True):
        for c in (0, 1):
            assert table[c] == pytest.approx(np.bincount(column[y == c], minlength=table.shape[1]) / np.sum(y == c))


@pytest.mark.mission("LAT-05")
@pytest.mark.parametrize("seed", range(4))
def test_with_gaps_the_likelihood_never_falls(seed):
    X, y = nominal(seed)
    rng = np.random.default_rng(seed)
    X, y = np.where(rng.uniform(size=X.shape) < 0.3, -1, X), np.where(rng.uniform(size=len(y)) < 0.5, -1, y)
    model = NaiveBayesWithGaps(X, y, n_classes=2)
    found = em(model, model.start(seed), tol=1e-10, max_iter=500)
    assert np.min(np.diff(found.history)) >= -1e-9
    # The likelihood by hand: sum over classes, gaps left out of the product.
    priors, tables = found.parameters
    by_hand = 0.0
    for row, label in zip(X, y, strict=True):
        terms = [
            priors[c] * np.prod([table[c, v] for table, v in zip(tables, row, strict=True) if v >= 0])
            for c in ([label] if label >= 0 else [0, 1])
        ]
        by_hand += np.log(np.sum(terms))
    assert found.log_likelihood == pytest.approx(by_hand)


def test_attribute_gaps_alone_leave_the_counts_of_what_is_there():
    """With the classes known the likelihood factorises: the maximum is the share among observed entries."""
    X, y = nominal()
    X = np.where(np.random.default_rng(3).uniform(size=X.shape) < 0.4, -1, X)
    model = NaiveBayesWithGaps(X, y)
    found = em(model, model.start(), tol=1e-15, max_iter=2000)
    for column, table in zip(X.T, found.parameters.columns, strict=True):
        for c in (0, 1):
            own = column[(y == c) & (column >= 0)]
            assert table[c] == pytest.approx(np.bincount(own, minlength=table.shape[1]) / len(own), abs=1e-6)


def test_bad_tables_are_refused():
    with pytest.raises(ValueError, match="NaiveBayesWithGaps: X must be a table"):
        NaiveBayesWithGaps([[0.5]], [0])
    with pytest.raises(ValueError, match="values and classes are 0, 1"):
        NaiveBayesWithGaps([[-2]], [0])


# k-means ------------------------------------------------------------------------------------------------------


@pytest.mark.mission("LAT-14")
@pytest.mark.parametrize("seed", range(5))
def test_k_means_is_the_limit_of_vanishing_variance(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 3)) + 2 * rng.integers(0, 3, size=(500, 1))
    first = X[rng.choice(500, 4, replace=False)]
    reference = KMeans(4, init=first, n_init=1, tol=0.0, max_iter=1000, algorithm="lloyd").fit(X)
    model = KnownVariance(X, variance=1e-9)
    found = em(model, model.start(first), tol=1e-12, max_iter=1000)
    labels = found.parameters.log_joint(X).argmax(axis=1)
    assert np.array_equal(labels, reference.labels_)
    assert found.parameters.means == pytest.approx(reference.cluster_centers_, abs=1e-9)
    hard = KnownVariance(X, variance=1.0, hard=True)  # hard assignments need no limit
    assert em(hard, hard.start(first), tol=1e-15, max_iter=1000).parameters.means == pytest.approx(
        reference.cluster_centers_, abs=1e-9
    )
    wide = KnownVariance(X, variance=4.0)  # with a variance of its own EM is not k-means
    assert not np.allclose(
        em(wide, wide.start(first), tol=1e-9, max_iter=1000).parameters.means, reference.cluster_centers_
    )

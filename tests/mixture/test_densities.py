"""GaussianDensity, HistogramDensity, GaussianMixtureClassifier: SciPy, brute force and discriminant analysis agree."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import is_classifier
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from assay.discriminant_analysis import QuadraticDiscriminantAnalysis
from assay.mixture import GaussianDensity, GaussianMixture, GaussianMixtureClassifier, HistogramDensity
from assay.mixture._components import GaussianProblem
from assay.mixture._gaussian_mixture import GapProblem
from assay.optim.em import em
from assay.scan import rows


def draw(seed=0, n=500, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


# One Gaussian -------------------------------------------------------------------------------------------------


@pytest.mark.mission("LAT-06", "CON-47")
@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_density_is_scipys(d):
    X = draw(d=d)
    model = GaussianDensity(reg_covar=0.0).fit(X)
    assert model.mean_ == pytest.approx(X.mean(axis=0))
    assert model.covariance_ == pytest.approx(np.cov(X.T, bias=True).reshape(d, d))
    new = draw(seed=9, d=d)
    np.testing.assert_allclose(
        model.score_samples(new), multivariate_normal(model.mean_, model.covariance_).logpdf(new)
    )
    assert model.score(new) == pytest.approx(model.score_samples(new).mean())


@pytest.mark.mission("CON-47")
def test_the_gaussian_integrates_to_one():
    model = GaussianDensity().fit(draw(d=2))
    spread = np.sqrt(np.diag(model.covariance_))
    axes = [np.linspace(m - 9 * s, m + 9 * s, 500) for m, s in zip(model.mean_, spread, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    assert np.exp(model.score_samples(grid)).sum() * cell == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_one_gaussian_is_a_mixture_of_one(kind):
    X, weight = draw(), np.random.default_rng(1).uniform(size=500)
    one = GaussianDensity(covariance_type=kind).fit(X, sample_weight=weight)
    mixture = GaussianMixture(1, covariance_type=kind).fit(X, sample_weight=weight)
    assert one.score_samples(X) == pytest.approx(mixture.score_samples(X))
    assert one.bic(X) == pytest.approx(mixture.bic(X))
    drawn, _ = one.sample(100_000, random_state=0)
    assert np.cov(drawn.T) == pytest.approx(one.covariance_, abs=0.05 * one.covariance_.max())


def holes(X, share=0.25, seed=0):
    rng = np.random.default_rng(seed)
    gone = rng.uniform(size=X.shape) < share
    gone[gone.all(axis=1), 0] = False
    return np.where(gone, np.nan, X)


@pytest.mark.mission("LAT-05")
def test_without_gaps_em_ends_at_the_covariance_of_the_rows():
    X = draw()
    problem = GapProblem(rows(X), "tied", 0.0, GaussianDensity())
    found = em(problem, problem.start(), tol=1e-12, max_iter=10)
    assert found.n_iter <= 3
    assert found.parameters.means[0] == pytest.approx(X.mean(axis=0))
    assert found.parameters.covariances == pytest.approx(np.cov(X.T, bias=True))


@pytest.mark.mission("LAT-05")
@pytest.mark.parametrize("seed", range(3))
def test_missing_entries_have_the_likelihood_of_what_is_there(seed):
    X = holes(draw(seed, n=200), seed=seed)
    model = GaussianDensity(reg_covar=0.0, tol=1e-12, max_iter=5000).fit(X)
    history = [-step.objective for step in model.history_]
    assert np.min(np.diff(history)) >= -1e-10

    def likelihood(mean, covariance):
        total = 0.0
        for x in X:
            seen = ~np.isnan(x)
            total += multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(x[seen])
        return total / len(X)

    best = likelihood(model.mean_, model.covariance_)
    assert model.lower_bound_ == pytest.approx(best)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1e-2, 1e-1):  # no parameters nearby are better
        A = np.eye(3) + size * rng.normal(size=(3, 3))
        assert likelihood(model.mean_ + size * rng.normal(size=3), A @ model.covariance_ @ A.T) < best


def test_missing_entries_are_refused_where_they_cannot_be():
    X = draw()
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"GaussianDensity: column 1 \(counted from 0\) has no entry at all"):
        GaussianDensity().fit(X)
    model = GaussianDensity().fit(holes(draw()))
    with pytest.raises(ValueError, match="NaN"):
        model.certify(holes(draw()))
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=1 steps"):
        GaussianDensity(max_iter=1).fit(holes(draw()))
    with pytest.raises(ValueError, match=r"GaussianDensity: .*ill-defined empirical covariance"):
        GaussianDensity(reg_covar=0.0).fit(np.ones((5, 2)))


# Histograms ---------------------------------------------------------------------------------------------------


@pytest.mark.mission("CON-47")
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_histogram_integrates_to_one(d, alpha):
    X = draw(d=d)
    model = HistogramDensity(bins=7, alpha=alpha).fit(X)
    middles = [(edges[1:] + edges[:-1]) / 2 for edges in model.edges_]
    grid = np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, d)
    volumes = np.prod(np.stack(np.meshgrid(*np.diff(model.edges_), indexing="ij"), axis=-1).reshape(-1, d), axis=1)
    assert np.exp(model.score_samples(grid)) @ volumes == pytest.approx(1.0, abs=1e-12)
    counts, _ = np.histogramdd(X, bins=list(model.edges_))
    np.testing.assert_allclose(
        np.exp(model.score_samples(grid)), (counts.ravel() + alpha) / (500 + alpha * 7**d) / volumes, atol=1e-300
    )
    outside = X.max(axis=0) + 1.0
    assert model.score_samples(outside[None])[0] == -np.inf


def test_no_density_on_the_same_cells_is_likelier():
    X = draw(d=1)
    model = HistogramDensity(bins=5).fit(X)
    best, rng = model.score(X), np.random.default_rng(0)
    for _ in range(50):
        other = HistogramDensity(bins=5).fit(X)
        other.counts_ = model.counts_ * rng.uniform(0.5, 1.5, len(model.counts_))
        assert other.score(X) <= best + 1e-12


def test_weights_bounds_draws_and_threads():
    X = draw(d=2, n=3_000)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = HistogramDensity(bins=6, bounds=(-20, 20)).fit(X, sample_weight=weight)
    repeated = HistogramDensity(bins=6, bounds=(-20, 20)).fit(np.repeat(X, weight, axis=0))
    assert np.array_equal(weighted.counts_, repeated.counts_)
    assert np.array_equal(weighted.cells_, repeated.cells_)
    drawn, cell = repeated.sample(50_000, random_state=0)
    assert np.bincount(cell, minlength=len(repeated.counts_)) / 50_000 == pytest.approx(
        repeated.counts_ / repeated.counts_.sum(), abs=0.01
    )
    assert np.isfinite(repeated.score_samples(drawn)).all()
    spread = HistogramDensity(bins=3, alpha=100.0).fit(X)
    assert (spread.sample(2_000, random_state=0)[1] < len(spread.counts_)).all()
    assert HistogramDensity().fit(X).edges_.shape == (2, int(np.ceil(2 * 3_000**0.25)) + 1)


BAD = [
    ({"bins": 0}, "bins must be an integer >= 1 or 'rice'; got 0"),
    ({"bins": "many"}, "bins must be an integer >= 1 or 'rice'; got 'many'"),
    ({"bins": 10**10}, "10000000000 bins along each of 3 columns make more than"),
    ({"bounds": (1.0, 0.0)}, "each column needs low < high"),
    ({"bounds": 3.0}, r"bounds must be \(low, high\)"),
    ({"bounds": (1e6, 2e6)}, "no row lies within bounds"),
    ({"alpha": -1.0}, "alpha must be a finite number >= 0"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD)
def test_histogram_parameters_are_refused_by_name(parameters, message):
    with pytest.raises(ValueError, match=f"^HistogramDensity: {message}"):
        HistogramDensity(**parameters).fit(draw())


# A mixture for each class -------------------------------------------------------------------------------------


@pytest.mark.mission("LAT-15")
def test_one_component_per_class_is_quadratic_discriminant_analysis():
    X, y = load_iris(return_X_y=True)
    ours = GaussianMixtureClassifier(1, reg_covar=0.0).fit(X, y)
    reference = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    assert ours.predict_proba(X) == pytest.approx(reference.predict_proba(X), abs=1e-9)
    assert np.array_equal(ours.predict(X), reference.predict(X))
    assert ours.means_ == pytest.approx(reference.means_)
    assert ours.covariances_ == pytest.approx(reference.covariance_)
    with pytest.raises(ValueError, match="needs 2 rows, and one for each component; class 2 has 1"):
        GaussianMixtureClassifier().fit(X[:101], y[:101])


def rings(seed=0, n=600):
    """Classes that no quadric separates: each is two clouds at opposite corners."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    side = rng.choice([-1, 1], size=n)
    return np.column_stack([3 * side, 3 * side * (1 - 2 * y)]) + rng.normal(size=(n, 2)), np.array(["a", "b"])[y]


@pytest.mark.mission("LAT-15", "CON-49")
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_mixtures_tell_classes_apart_and_draw_them(kind):
    X, y = rings()
    model = GaussianMixtureClassifier(2, covariance_type=kind, random_state=0).fit(X, y)
    assert is_classifier(model)
    assert model.score(*rings(seed=1)) > 0.97
    probabilities = model.predict_proba(X)
    assert probabilities.sum(axis=1) == pytest.approx(1.0)
    densities = []
    for code, name in enumerate(model.classes_):
        own = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X[y == name])
        part = model.component_class_ == code
        joint = [
            w * multivariate_normal(m, S).pdf(X)
            for w, m, S in zip(model.weights_[part], model.means_[part], model.covariances_[part], strict=True)
        ]
        assert np.log(np.sum(joint, axis=0)).mean() == pytest.approx(own.score(X), abs=0.3)
        densities.append(model.priors_[code] * np.sum(joint, axis=0))
    posterior = np.stack(densities, axis=1) / np.sum(densities, axis=0)[:, None]
    assert probabilities == pytest.approx(posterior, abs=1e-9)
    drawn, labels = model.sample(5_000, random_state=0)
    assert np.mean(model.predict(drawn) == labels) > 0.97
    assert np.mean(labels == "a") == pytest.approx(model.priors_[0], abs=0.03)


def test_files_give_the_classifier_of_arrays(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = rings(n=3_000)
    codes = (y == "b").astype(np.int64)
    pq.write_table(pa.table({"p": X[:, 0], "q": X[:, 1], "y": codes}), tmp_path / "rows.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = GaussianMixtureClassifier(1).fit(X, codes)
        other = GaussianMixtureClassifier(1).fit(str(tmp_path / "rows.parquet"), "y")
    assert np.array_equal(one.covariances_, other.covariances_)


def test_classifier_parameters_are_refused_by_name():
    X, y = rings()
    with pytest.raises(ValueError, match=r"^GaussianMixtureClassifier: priors must be 2 numbers > 0 that sum to 1"):
        GaussianMixtureClassifier(priors=[0.5, 0.6]).fit(X, y)
    with pytest.raises(ValueError, match=r"^GaussianMixtureClassifier: n_components must be an integer >= 1"):
        GaussianMixtureClassifier(0).fit(X, y)


def test_ctrl_c_keeps_the_steps_made_and_gives_every_class_a_mixture(monkeypatch):
    X, y = load_iris(return_X_y=True)
    step, calls = GaussianProblem.m_step, []

    def interrupted(problem, statistics):
        calls.append(problem)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(problem, statistics)

    monkeypatch.setattr(GaussianProblem, "m_step", interrupted)
    model = GaussianMixtureClassifier(2, max_iter=500, tol=0.0, random_state=0).fit(X, y)
    assert not model.converged_
    assert len(calls) == 7  # for each class one makes the start, one is a step
    np.testing.assert_allclose(model.weights_.reshape(3, 2).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.9

"""GaussianMixture: scikit-learn's numbers, the book's, the compiled loops against matrix products, and what dies."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture as Reference

import assay
from assay.mixture import DegenerateComponentWarning, GaussianMixture
from assay.mixture._components import Components, GaussianProblem, _step, factors_of, plain_step
from assay.optim.em import em
from assay.scan import Block, rows
from tests.mixture.melons import MELONS

KINDS = ("full", "tied", "diag", "spherical")


def draw(seed=0, n=900, d=3, scale=1.0, offset=0.0):
    rng = np.random.default_rng(seed)
    centers = 4 * rng.normal(size=(3, d))
    shapes = rng.normal(size=(3, d, d)) / 2 + np.eye(d)
    z = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    return offset + scale * (centers[z] + np.einsum("nij,nj->ni", shapes[z], rng.normal(size=(n, d))))


def start_of(X, k, kind, seed=0):
    rng = np.random.default_rng(seed)
    v = X.var(axis=0)
    precisions = {
        "full": np.tile(np.diag(1 / v), (k, 1, 1)),
        "tied": np.diag(1 / v),
        "diag": np.tile(1 / v, (k, 1)),
        "spherical": np.full(k, 1 / v.mean()),
    }
    means = X[rng.choice(len(X), k, replace=False)]
    return {"weights_init": np.full(k, 1 / k), "means_init": means, "precisions_init": precisions[kind]}


# scikit-learn -------------------------------------------------------------------------------------------------


@pytest.mark.mission("LAT-10")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [300, 5_000])  # matrix products, and compiled loops
def test_every_number_is_scikit_learns(kind, n):
    X = draw(n=n, offset=3.0)
    options = {"covariance_type": kind, "tol": 1e-6, "max_iter": 300, **start_of(X, 3, kind)}
    ours, theirs = GaussianMixture(3, **options).fit(X), Reference(3, **options).fit(X)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.converged_
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-8)
    few = X[:200]
    np.testing.assert_allclose(ours.score_samples(few), theirs.score_samples(few), rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(few), theirs.predict_proba(few), atol=1e-9)
    assert np.array_equal(ours.predict(few), theirs.predict(few))
    for name in ("score", "bic", "aic"):
        assert getattr(ours, name)(few) == pytest.approx(getattr(theirs, name)(few), rel=1e-9)


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_start_leads_somewhere_good(kind, init):
    X = draw(n=600)
    options = {"covariance_type": kind, "init_params": init, "random_state": 0, "max_iter": 300, "tol": 1e-5}
    ours = GaussianMixture(3, **options, n_init=3).fit(X)
    best = max(Reference(3, **options | {"random_state": seed}).fit(X).score(X) for seed in range(3))
    assert ours.score(X) > best - 0.05
    again = GaussianMixture(3, **options, n_init=3).fit(X)
    assert np.array_equal(ours.means_, again.means_)


def test_the_bound_is_that_of_the_parameters_returned():
    X = draw()
    for tol in (1e-1, 1e-3, 1e-6):
        model = GaussianMixture(3, tol=tol, random_state=0).fit(X)
        assert model.lower_bound_ == pytest.approx(model.score(X), rel=1e-12)
        assert model.lower_bounds_[-1] == model.lower_bound_
        assert len(model.lower_bounds_) == model.n_iter_ + 1


# The book's example -------------------------------------------------------------------------------------------


def book(max_iter):
    return GaussianMixture(
        3,
        means_init=MELONS[[5, 21, 26]],
        weights_init=np.full(3, 1 / 3),
        precisions_init=np.tile(10 * np.eye(2), (3, 1, 1)),
        reg_covar=0.0,
        max_iter=max_iter,
    )


@pytest.mark.mission("LAT-09")
def test_shares_of_the_first_melon():
    model = book(0).fit(MELONS)
    shares = model.predict_proba(MELONS)
    assert shares[0].round(3).tolist() == [0.219, 0.404, 0.377]
    assert shares.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.mission("LAT-10")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_step_on_the_melons():
    model = book(1).fit(MELONS)
    assert model.weights_.round(3).tolist() == [0.361, 0.323, 0.316]
    assert model.means_.round(3).tolist() == [[0.491, 0.251], [0.571, 0.281], [0.534, 0.295]]


# The compiled loops -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 3), (5, 2), (8, 4), (13, 3), (25, 3), (30, 4)])
def test_compiled_loops_are_the_matrix_products(d, k, weighted, hard):
    rng = np.random.default_rng(d)
    X, means, A = rng.normal(size=(1_500, d)), 3 * rng.normal(size=(k, d)), rng.normal(size=(k, d, 2 * d))
    X[0] += 1e3  # shares underflow
    S = A @ A.transpose(0, 2, 1) / (2 * d)
    weight = rng.uniform(0, 2, len(X)) if weighted else None
    for kind, covariances in (("full", S), ("diag", np.diagonal(S, axis1=1, axis2=2))):
        at = Components(kind, rng.dirichlet(np.ones(k)), means, covariances, factors_of(kind, covariances))
        value, sums = _step(Block(X, None, weight, 0), means, at.factors, at.constants, None, at.weights, hard, True)
        expected, products = plain_step(X, weight, means, at.factors, at.constants, hard)
        assert value == pytest.approx(expected, rel=1e-12)
        upper = np.triu(np.ones(sums.shape[-2:])) if kind == "full" else 1.0
        np.testing.assert_allclose(sums * upper, products * upper, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("apart", [0.0, 0.7, 2.0, 8.0])
@pytest.mark.parametrize("hard", [False, True])
def test_components_that_are_done_with_half_way_change_no_sum(apart, hard):
    """The first columns tell nothing about the component in some rows and mislead in others."""
    rng = np.random.default_rng(3)
    d, k, n = 17, 4, 3000
    means = apart * rng.normal(size=(k, d))
    means[1, :8] = means[0, :8]
    turns = rng.normal(size=(k, d, d)) / np.sqrt(d) + 0.4 * np.eye(d)
    z = rng.integers(k, size=n)
    X = means[z] + np.einsum("ij,ikj->ik", rng.normal(size=(n, d)), turns[z])
    X[:40, :8] += 5 * apart
    covariances = turns @ turns.transpose(0, 2, 1)
    at = Components("full", np.array([0.5, 0.3, 0.2 - 1e-9, 1e-9]), means, covariances, factors_of("full", covariances))
    value, sums = _step(Block(X, None, None, 0), means, at.factors, at.constants, None, at.weights, hard, True)
    expected, products = plain_step(X, None, means, at.factors, at.constants, hard)
    assert value == pytest.approx(expected, rel=1e-13)
    assert np.allclose(np.triu(sums), np.triu(products), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_files_and_clusters_change_no_bit(kind, tmp_path):
    import dask.array as da
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = draw(n=70_000, d=4)
    model = GaussianMixture(3, covariance_type=kind, max_iter=4, tol=0.0, **start_of(X, 3, kind))
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(4)}), tmp_path / "rows.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [model.set_params(n_jobs=k).fit(X).covariances_ for k in (1, 2, 5)]
        found.append(model.fit(str(tmp_path / "rows.parquet")).covariances_)
        cluster = model.fit(da.from_array(X, chunks=(32_768, 4))).covariances_
    assert all(np.array_equal(found[0], other) for other in found[1:])
    np.testing.assert_allclose(cluster, found[0], rtol=1e-12)


def test_weights_are_repeated_rows():
    X = draw(n=400)
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    for kind in KINDS:
        start = start_of(X, 2, kind)
        options = {"covariance_type": kind, "tol": 1e-9, "max_iter": 500, **start}
        weighted = GaussianMixture(2, **options).fit(X, sample_weight=weight)
        repeated = GaussianMixture(2, **options).fit(np.repeat(X, weight, axis=0))
        np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-6)
        assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-9)


def test_far_from_the_origin_no_digits_are_lost():
    X = draw(n=3_000, d=4)
    for kind in KINDS:
        near = GaussianMixture(3, covariance_type=kind, random_state=0, tol=1e-8, max_iter=300, reg_covar=0.0).fit(X)
        shift = np.array([1e7, -1e6, 1e7, 1e5])
        far = GaussianMixture(3, covariance_type=kind, random_state=0, tol=1e-8, max_iter=300, reg_covar=0.0).fit(
            X + shift
        )
        assert far.score(X + shift) == pytest.approx(near.score(X), abs=1e-6)


# EM -----------------------------------------------------------------------------------------------------------


@pytest.mark.mission("LAT-02")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_the_likelihood_never_falls(kind, seed):
    X = draw(seed, n=300)
    model = GaussianMixture(4, covariance_type=kind, init_params="random", reg_covar=0.0, tol=0.0, max_iter=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(random_state=seed).fit(X)
    if not model.restarts_:
        assert np.min(np.diff(model.lower_bounds_)) >= -1e-9


@pytest.mark.mission("LAT-02")
@pytest.mark.parametrize("kind", KINDS)
def test_a_fixed_point_is_stationary(kind):
    """Finite differences of scikit-learn's log-likelihood vanish in weights, means and scales."""
    X = draw(n=400, d=2)
    model = GaussianMixture(3, covariance_type=kind, random_state=0, tol=1e-14, max_iter=3000, reg_covar=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)

    def likelihood(shift, scale, tilt):
        weights = model.weights_ * np.exp(tilt * np.arange(3))
        other = Reference(3, covariance_type=kind)
        other.weights_, other.means_ = weights / weights.sum(), model.means_ + shift
        other.precisions_cholesky_ = model.precisions_cholesky_ * (1 + scale)
        return other.score(X)

    step = 1e-4
    for change in ((step, 0, 0), (0, step, 0), (0, 0, step)):
        slope = (likelihood(*change) - likelihood(*(-np.array(change)))) / (2 * step)
        assert abs(slope) < 1e-5


@pytest.mark.mission("LAT-03")
@pytest.mark.parametrize("kind", KINDS)
def test_hard_em_never_lowers_the_complete_likelihood(kind):
    X = draw(n=1_200)
    problem = GaussianProblem(rows(X), kind, 0.0, hard=True)
    start = start_of(X, 3, kind)
    covariances = (
        1 / start["precisions_init"] if kind in ("diag", "spherical") else np.linalg.inv(start["precisions_init"])
    )
    begun = Components(kind, start["weights_init"], start["means_init"], covariances, factors_of(kind, covariances))
    found = em(problem, begun, tol=1e-12, max_iter=200)  # raises if a step lowers it
    assert np.min(np.diff(found.history)) >= -1e-10
    at = found.parameters
    joint = at.log_joint(X)
    assert found.log_likelihood == pytest.approx(joint.max(axis=1).mean(), rel=1e-12)
    labels = joint.argmax(axis=1)
    model = GaussianMixture(3, covariance_type=kind, assignment="hard", reg_covar=0.0, tol=1e-12, max_iter=200, **start)
    model.fit(X)
    assert np.array_equal(model.predict(X), labels)
    for k in range(3):  # a fixed point: means are those of the rows assigned
        assert model.means_[k] == pytest.approx(X[labels == k].mean(axis=0), abs=1e-9)


@pytest.mark.mission("LAT-11")
@pytest.mark.parametrize("seed", range(4))
def test_freer_covariances_fit_better_from_nested_starts(seed):
    X = draw(seed, n=700)
    options = {"tol": 1e-7, "max_iter": 1000, "reg_covar": 0.0}
    round_ones = GaussianMixture(3, covariance_type="spherical", random_state=0, **options).fit(X)
    at = {"weights_init": round_ones.weights_, "means_init": round_ones.means_}
    scales = np.repeat(round_ones.precisions_[:, None], X.shape[1], axis=1)
    diagonal = GaussianMixture(3, covariance_type="diag", precisions_init=scales, **at, **options).fit(X)
    at = {"weights_init": diagonal.weights_, "means_init": diagonal.means_}
    matrices = diagonal.precisions_[:, :, None] * np.eye(X.shape[1])
    full = GaussianMixture(3, precisions_init=matrices, **at, **options).fit(X)
    tied = GaussianMixture(3, covariance_type="tied", random_state=0, **options).fit(X)
    loosened = GaussianMixture(
        3,
        weights_init=tied.weights_,
        means_init=tied.means_,
        precisions_init=np.tile(tied.precisions_, (3, 1, 1)),
        **options,
    ).fit(X)
    assert full.lower_bound_ >= diagonal.lower_bound_ - 1e-9 >= round_ones.lower_bound_ - 2e-9
    assert loosened.lower_bound_ >= tied.lower_bound_ - 1e-9


# What dies ----------------------------------------------------------------------------------------------------


@pytest.mark.mission("LAT-12")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reg_covar", [1e-6, 0.0])
def test_duplicate_rows_do_not_crash(kind, reg_covar):
    rng = np.random.default_rng(0)
    X = np.concatenate([np.tile([5.0, 5.0], (40, 1)), rng.normal(size=(60, 2))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianMixture(3, covariance_type=kind, reg_covar=reg_covar, random_state=0).fit(X)
    assert np.isfinite(model.lower_bound_)
    assert np.isfinite(model.score_samples(X)).all()
    assert (model.weights_ > 0).all()


@pytest.mark.mission("LAT-12")
def test_a_component_that_dies_is_told_and_starts_again():
    rng = np.random.default_rng(0)
    sides = np.repeat([[8.0, 0.0], [-8.0, 0.0]], 100, axis=0)
    X = np.concatenate([np.zeros((30, 2)), sides + rng.normal(size=(200, 2))])
    model = GaussianMixture(3, reg_covar=0.0, max_iter=300, random_state=0)
    with pytest.warns(DegenerateComponentWarning) as told:
        model.fit(X)
    words = [str(one.message) for one in told]
    assert any(
        "shrank to a point or lost all rows; it starts again" in one and "Raise reg_covar" in one for one in words
    )
    assert model.restarts_ > 0
    assert np.linalg.eigvalsh(model.covariances_).min() > 0
    # The point of 30 equal rows draws the component back, so in the end the variances got a floor, and it is told.
    assert any("is added to all variances" in one for one in words)
    assert model.reg_covar_ == pytest.approx(1e-6 * X.var(axis=0).mean())
    assert assay.verify(model.certify(X), model, X).holds


@pytest.mark.mission("LAT-12")
@pytest.mark.filterwarnings("ignore::assay.mixture.DegenerateComponentWarning")
def test_rows_without_any_spread_are_refused_in_words():
    X = np.ones((20, 2))
    assert np.isfinite(GaussianMixture(1).fit(X).score(X))
    for kind in KINDS:
        with pytest.raises(ValueError, match=r"GaussianMixture: .*ill-defined empirical.*increase reg_covar"):
            GaussianMixture(1, covariance_type=kind, reg_covar=0.0).fit(X)


# Densities, clusters, draws -----------------------------------------------------------------------------------


@pytest.mark.mission("LAT-07", "CON-47")
@pytest.mark.parametrize("kind", KINDS)
def test_the_density_integrates_to_one(kind):
    X = draw(n=600, d=2)
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    low, high = X.min(axis=0) - 12, X.max(axis=0) + 12
    axes = [np.linspace(a, b, 600) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    assert np.exp(model.score_samples(grid)).sum() * cell == pytest.approx(1.0, abs=1e-6)
    parts = [
        w * multivariate_normal(m, S).pdf(X)
        for w, m, S in zip(model.weights_, model.means_, model.components_.each(model.covariances_), strict=True)
    ]
    assert model.score_samples(X) == pytest.approx(np.log(np.sum(parts, axis=0)))


@pytest.mark.mission("LAT-08")
@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_moments_of_the_mixture(kind):
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(draw(n=800))
    X, label = model.sample(200_000, random_state=1)
    assert X.shape == (200_000, 3)
    assert np.bincount(label) / len(label) == pytest.approx(model.weights_, abs=0.005)
    for k in range(3):
        own = X[label == k]
        S = model.components_.each(model.covariances_)[k]
        spread = np.sqrt(np.diag(S) / len(own))
        assert np.all(np.abs(own.mean(axis=0) - model.means_[k]) < 5 * spread)
        assert np.cov(own.T) == pytest.approx(S, abs=0.05 * np.abs(S).max())
    with pytest.raises(ValueError, match="Invalid value for 'n_samples'"):
        model.sample(0)


@pytest.mark.mission("LAT-13")
def test_well_separated_clusters_are_found():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 100)
    X = np.array([[0, 0], [30, 0], [0, 30], [30, 30]])[truth] + rng.normal(size=(400, 2))
    for kind in KINDS:
        labels = GaussianMixture(4, covariance_type=kind, random_state=0).fit_predict(X)
        assert adjusted_rand_score(truth, labels) == 1.0


# Options and refusals -----------------------------------------------------------------------------------------


def test_warm_start_goes_on():
    X = draw()
    whole = GaussianMixture(3, tol=0.0, max_iter=8, **start_of(X, 3, "full"))
    half = GaussianMixture(3, tol=0.0, max_iter=4, warm_start=True, **start_of(X, 3, "full"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole.fit(X)
        half.fit(X).fit(X)
    np.testing.assert_allclose(half.means_, whole.means_, rtol=1e-10)


def test_stopping_early_is_told_and_printing_is_asked_for(capsys):
    X = draw()
    with pytest.warns(ConvergenceWarning, match=r"stopped after max_iter=2 steps, the last of which still gained"):
        model = GaussianMixture(3, max_iter=2, tol=1e-9, init_params="random", random_state=0).fit(X)
    assert not model.converged_
    assert capsys.readouterr().out == ""
    GaussianMixture(3, verbose=2, verbose_interval=1, random_state=0).fit(X)
    printed = capsys.readouterr().out
    assert "step 1:" in printed
    assert "converged" in printed


BAD = [
    ({"n_components": 0}, "n_components must be an integer >= 1; got 0"),
    ({"covariance_type": "round"}, "covariance_type must be one of 'full', 'tied', 'diag', 'spherical'; got 'round'"),
    ({"tol": -1.0}, "tol must be a finite number >= 0; got -1.0"),
    ({"reg_covar": -1e-3}, "reg_covar must be a finite number >= 0 .*; got -0.001"),
    ({"init_params": "best"}, "init_params must be one of"),
    ({"assignment": "maybe"}, "assignment must be one of 'soft', 'hard'; got 'maybe'"),
    ({"max_iter": -1}, "max_iter must be an integer >= 0; got -1"),
    ({"n_components": 2, "weights_init": [0.9, 0.3]}, "weights_init: The parameter 'weights' should be normalized"),
    (
        {"n_components": 2, "means_init": [[0.0]]},
        r"means_init: The parameter 'means' should have the shape of \(2, 3\), but got \(1, 1\)",
    ),
    ({"precisions_init": -np.eye(3)[None]}, "precisions_init: 'full precision' should be symmetric"),
    ({"n_components": 1000}, "Expected n_samples >= n_components"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD)
def test_parameters_are_refused_by_name(parameters, message):
    with pytest.raises(ValueError, match=f"^GaussianMixture: {message}"):
        GaussianMixture(**parameters).fit(draw())


def test_a_saved_model_is_the_model(tmp_path):
    X = draw()
    model = GaussianMixture(3, random_state=0).fit(X)
    certificate = model.certify(X)
    assay.save(model, tmp_path / "model.assay", certificate)
    loaded = assay.load(tmp_path / "model.assay")
    assert np.array_equal(loaded.model.score_samples(X), model.score_samples(X))
    assert assay.verify(loaded.certificate, loaded.model, X).holds

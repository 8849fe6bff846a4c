"""Forgeries against claims about clusters, densities, neighbours and networks that the checker once accepted, and
certificates that once made it run for hours or fill the memory."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

import assay
from assay.checker.verify import verify
from assay.cluster import KMeans
from assay.decomposition import PCA, TruncatedSVD
from assay.kernel_ridge import KernelRidge
from assay.linear_model import LogisticRegression
from assay.mixture import GaussianMixture
from assay.neighbors import KNeighborsClassifier
from assay.persist import ModelFileError
from assay.stored import plain_parameters
from assay.svm import SVR
from tests.certificate import forge
from tests.certificate.forged_files import Parts

DELTA = "0.05"
MEGABYTES = 2**20


def check(family, arrays, claims, X, y=None, holdout=None, weight=None):
    """Return what the checker says of claims about a model of these arrays, sealed with fingerprints that fit."""
    model = forge.Forged(family=family, **{name: np.asarray(value) for name, value in arrays.items()})
    return forge.Case(tuple(claims), model, X, y, weight, holdout).verify()


def peak(function):
    """Return the result of a call, and the megabytes that it held at most."""
    tracemalloc.start()
    try:
        return function(), tracemalloc.get_traced_memory()[1] / MEGABYTES
    finally:
        tracemalloc.stop()


# Sentences about another quantity than the one that is bounded ----------------------------------------------------


@pytest.mark.parametrize("loss", ["distance", "brier", "log", "squared"])
def test_a_mean_absolute_error_is_not_called_another_loss(loss):
    """holdout.empirical-bernstein: the sentence follows the parameter, which nobody compared with what is measured."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 1))
    params = {"clip": 1.0, "rows": 400, "loss": loss, "compared": 1}
    arrays = {"coef_": [1.0], "intercept_": [0.0]}
    for stated, holds in ((params, False), (params | {"loss": "absolute"}, True)):
        claim = forge.claim("holdout.empirical-bernstein", 0.2, delta=DELTA, params=stated, data=("holdout",))
        found = check("linear.regressor", arrays, [claim], X[:2] + 9, X[:2, 0], (X, X[:, 0]))
        assert found.holds == holds, found.reason


@pytest.mark.parametrize(
    ("name", "value", "params"),
    [
        ("kmeans.fixed-point", 0.0, {"clusters": 1, "rows": 2, "shift": 1.0}),
        ("kmeans.lower-bound", 0.0, {"clusters": 1, "rows": 2, "form": "axes", "buckets": 2}),
        ("kmeans-1d.optimal", 0.0, {"clusters": 1, "rows": 2}),
        ("density.log-likelihood", 0.0, {"center": 1.0}),
    ],
)
def test_sums_over_rows_with_weights_say_so(name, value, params):
    """Rows of weight 0 cost nothing, which was told as the cost of plain rows."""
    direction = "lower" if name == "kmeans.lower-bound" else "upper"
    assert "by their weights" in forge.claim(name, value, direction, params=params).statement


def test_a_mixture_without_classes_has_no_class_number():
    X = np.random.default_rng(0).standard_normal((50, 1))
    params = {"covariance": "full", "reg_covar": 0.0, "moved": 5.0}
    for extra, holds in (({}, True), ({"class": 3}, False)):
        claims = [
            forge.claim("em.stationary", 5.0, params=params | extra),
            forge.claim("em.weights", 5.0, params=extra),
        ]
        assert check("mixture.full", gaussian(1), claims, X).holds == holds


def gaussian(d, factor=None):
    factor = np.eye(d) if factor is None else factor
    return {"weights_": [1.0], "means_": np.zeros((1, d)), "precisions_cholesky_": np.asarray(factor)[None]}


# Not a number -----------------------------------------------------------------------------------------------------


def test_a_distance_that_is_not_a_number_is_not_small():
    """em.monotone: the largest of 0 and of what is not a number was 0; the model's deviations are 1e-150, those of the
    rows 1e84."""
    X = 2.0**280 * np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0]])
    start = {"weights": np.ones(1), "means": np.zeros((1, 2)), "factors": 2.0**-280 * np.eye(2)[None]}
    params = {"steps": 1, "distance": 1e-6, "reg_covar": 0.0}
    claim = forge.claim("em.monotone", 1e-6, params=params, witness=start)
    own = np.triu(np.linalg.inv(np.linalg.cholesky(X.T @ X / len(X))).T)
    for factor, holds in ((own, True), (np.array([[1e150, 1e150], [0.0, 1e150]]), False)):
        assert check("mixture.full", gaussian(2, factor), [claim], X).holds == holds


# Numbers whose squares vanish -------------------------------------------------------------------------------------


def test_distances_whose_squares_vanish_are_not_zero():
    """kmeans.fixed-point: centres beside the rows, not on them; the square of the distance underflows, its weight does
    not."""
    X, weight = np.array([[1e-150], [1.0]]), np.array([1e150, 1.0])
    beside = X * (1 + 2.0**-52)
    beside[1] = 1.0
    for at, holds in ((X, True), (beside, False)):
        claim = forge.claim("kmeans.fixed-point", 0.0, params={"clusters": 2, "rows": 2, "shift": 1e140})
        assert check("centroids", {"cluster_centers_": at}, [claim], X, weight=weight).holds == holds


# Time and memory --------------------------------------------------------------------------------------------------


def test_millions_of_steps_on_two_rows_are_not_made_again():
    """em.monotone: the work was counted in rows, and two rows have next to none."""
    X = np.array([[-1.0], [1.0]])
    start = {"weights": np.ones(1), "means": np.zeros((1, 1)), "factors": np.ones((1, 1, 1))}
    params = {"steps": 2_000_000, "distance": 1.0, "reg_covar": 0.0}
    claim = forge.claim("em.monotone", 1.0, params=params, witness=start)
    assert "not made again" in check("mixture.full", gaussian(1), [claim], X).reason


def test_a_table_of_all_pairs_of_buckets_stays_small():
    """kmeans.lower-bound: one column and one centre allowed 46,340 buckets, whose pairs take 34 GB."""
    X = np.random.default_rng(3).standard_normal((6000, 1))
    params = {"clusters": 1, "rows": 6000, "form": "axes", "buckets": 5000}
    claim = forge.claim("kmeans.lower-bound", 1.0, "lower", params=params)
    found, most = peak(lambda: check("centroids", {"cluster_centers_": [[0.0]]}, [claim], X))
    assert most < 600
    assert "buckets" in found.reason


def test_many_centres_are_compared_with_few_rows_at_once():
    X = np.linspace(0, 1, 2**15)[:, None]
    claim = forge.claim("kmeans.fixed-point", 1e5, params={"clusters": 4000, "rows": len(X), "shift": 10.0})
    found, most = peak(lambda: check("centroids", {"cluster_centers_": X[:4000]}, [claim], X))
    assert found.holds, found.reason
    assert most < 600


def test_wide_networks_meet_few_rows_at_once():
    X = np.linspace(-1, 1, 2**14)[:, None]
    width = 2000
    arrays = {
        "network_sizes_": [1, width, 1],
        "network_weights_": np.full(3 * width + 1, 1e-3),
        "network_codes_": [3, 0],
    }
    params = {"loss": "squared", "share": 1.0, "decay": 0.0, "intercept_decay": 0.0}
    claim = forge.claim("network.gradient", 1e6, params=params)
    found, most = peak(lambda: check("network.regressor", arrays, [claim], X, X[:, 0]))
    assert found.holds, found.reason
    assert most < 600


def test_rows_that_are_all_the_same_are_compared_once():
    """knn.loo-errors: each of n rows is as far from each other one; all were compared in rational arithmetic, n^2
    times."""
    n = 3000
    X, y = np.full((n, 2), 0.1), np.arange(n) % 2
    arrays = {"fit_X_": X, "fit_y_": y, "neighbor_numbers_": [3, 0, 0], "classes_": [0, 1]}
    claim = forge.claim("knn.loo-errors", float(n), params={"k": 3, "rows": n})
    found, most = peak(lambda: check("neighbors.classifier", arrays, [claim], X, y))
    assert found.holds, found.reason
    assert most < 600


def test_covariances_of_many_columns_are_not_made_into_matrices():
    """em.stationary: a row of 8000 scales was looked at as a matrix of 64 million."""
    d = 8000
    X = np.random.default_rng(4).standard_normal((20, d))
    arrays = {"weights_": [0.5, 0.5], "means_": np.zeros((2, d)), "precisions_cholesky_": np.ones(2)}
    params = {"covariance": "spherical", "reg_covar": 0.0, "moved": 1e3}
    claims = [forge.claim("em.stationary", 1e3, params=params), forge.claim("em.weights", 1e3)]
    _, most = peak(lambda: check("mixture.spherical", arrays, claims, X))
    assert most < 600


# Rows that are awkward, but legal ---------------------------------------------------------------------------------


def awkward(kind):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 3))
    y = (X[:, 0] + 0.3 * rng.standard_normal(40) > 0).astype(int)
    return {"constant": np.full((40, 3), 0.1), "zero": np.zeros((40, 3)), "far": X + 1e12, "large": 1e100 * X}[kind], y


@pytest.mark.parametrize("kind", ["constant", "zero", "far", "large"])
@pytest.mark.parametrize(
    "learner",
    [
        PCA(n_components=1),
        TruncatedSVD(n_components=1),
        KMeans(n_clusters=2, random_state=0),
        GaussianMixture(n_components=2, covariance_type="diag", random_state=0),
        LogisticRegression(fit_intercept=False),
        KNeighborsClassifier(n_neighbors=40),
    ],
    ids=lambda learner: type(learner).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_certified_of_awkward_rows_is_verified(learner, kind):
    X, y = awkward(kind)
    learner = clone(learner).fit(X, y)
    ball = {} if isinstance(learner, (GaussianMixture, KNeighborsClassifier)) else {"radius": 1e102}
    found = verify(learner.certify(X, y, **ball), learner, X, y)
    assert found.holds, found.reason


def test_more_neighbours_than_rows_are_refused():
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    with pytest.raises(ValueError, match="2 training rows"):
        KNeighborsClassifier(n_neighbors=3).fit(X, y).certify(X, y)


def test_a_penalty_too_weak_for_the_ball_says_nothing():
    X, y = awkward("large")
    found = LogisticRegression(fit_intercept=False).fit(X, y).certify(X, y, radius=1e149)
    assert all(claim.name != "stability.ball" for claim in found.claims)


def test_a_number_of_components_chosen_by_the_rows_stays_so():
    """projection.risk: a parameter that is set afterwards says that the number was given."""
    X = np.random.default_rng(6).uniform(-0.5, 0.5, (4000, 3))
    for first, stated in ((0.5, False), (2, True)):
        found = PCA(n_components=first).fit(X).set_params(n_components=2).certify(X, radius=1.0)
        assert any(claim.name == "projection.risk" for claim in found.claims) == stated


def test_a_support_vector_regression_does_not_pass_for_a_kernel_ridge_regression(tmp_path):
    """Both are sums of kernels, but the one has an intercept, which the other's `predict` would leave out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 3
    model = SVR().fit(X, y)
    assay.save(model, tmp_path / "m.assay", model.certify(X, y))
    parts = Parts.of((tmp_path / "m.assay").read_bytes())
    parts.record["learner"] = "kernel_ridge.KernelRidge"
    parts.record["parameters"] = plain_parameters(KernelRidge(kernel="rbf", gamma="scale"))
    parts.seal()
    (tmp_path / "m.assay").write_bytes(parts.content())
    with pytest.raises(ModelFileError, match="no intercept"):
        assay.load(tmp_path / "m.assay")

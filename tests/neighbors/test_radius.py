"""Neighbours within a radius, and of sparse rows: scikit-learn's answers, the rim, certificates, forgeries."""

import doctest
import warnings
from importlib import import_module

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import neighbors as peer

import assay
from assay.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestNeighbors,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)


def draw(seed, n=200, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.array(["a", "b", "c"])[(X[:, 0] * 1.5 + rng.normal(size=n) > [[0], [1]]).sum(axis=0)]
    return X, y, rng.normal(size=n)


def test_where_all_weights_are_zero_nobody_votes():
    """The second row has a neighbour, of weight 0. It is refused, or gets the label of an outlier."""
    X, y, new = [[0.0], [0.75], [5.0]], [0, 1, 1], [[0.125], [5.5]]

    def away_from_a_half(distances):
        return (distances - 0.5) ** 2

    for labels in (y, np.stack([y, y], axis=1)):
        model = RadiusNeighborsClassifier(1.0, weights=away_from_a_half).fit(X, labels)
        with pytest.raises(ValueError, match=r"neighbors of 1 rows, the first at 1 .* weight 0.*outlier_label"):
            model.predict(new)
        ours, theirs = (
            room.RadiusNeighborsClassifier(1.0, weights=away_from_a_half, outlier_label=1).fit(X, labels)
            for room in (assay.neighbors, peer)
        )
        assert np.array_equal(ours.predict(new), theirs.predict(new))
        assert np.array_equal(ours.predict_proba(new), theirs.predict_proba(new))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "cosine"])
@pytest.mark.parametrize("weights", ["uniform", "distance", lambda d: 1 / (d + 1)])
def test_the_same_answers_as_scikit_learn(metric, weights):
    X, y, t = draw(0)
    new, radius = draw(1)[0], 0.3 if metric == "cosine" else 1.2
    settings = {"radius": radius, "metric": metric, "weights": weights}
    ours, theirs = (
        room.RadiusNeighborsClassifier(**settings, outlier_label="most_frequent").fit(X, y)
        for room in (import_module("assay.neighbors"), peer)
    )
    assert np.array_equal(ours.predict(new), theirs.predict(new))
    assert ours.predict_proba(new) == pytest.approx(theirs.predict_proba(new), abs=1e-12)
    ours, theirs = RadiusNeighborsRegressor(**settings).fit(X, t), peer.RadiusNeighborsRegressor(**settings).fit(X, t)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ours.predict(new) == pytest.approx(theirs.predict(new), abs=1e-12, nan_ok=True)
    search, other = (room.NearestNeighbors(radius=radius, metric=metric).fit(X) for room in (assay.neighbors, peer))
    answers = (one.radius_neighbors(new, sort_results=True) for one in (search, other))
    for found, expected in zip(*answers):
        for one, two in zip(found, expected):
            assert one == pytest.approx(two, abs=1e-7)
    assert (search.radius_neighbors_graph() != other.radius_neighbors_graph()).nnz == 0


def test_rows_on_the_rim_and_rows_far_away():
    X, y = [[0.0], [1.0], [5.0]], [0, 1, 1]
    model = RadiusNeighborsClassifier(1.0).fit(X, y)
    assert model.radius_neighbors([[2.0]], return_distance=False)[0].tolist() == [1]
    assert model.radius_neighbors([[np.nextafter(2.0, 3)]], return_distance=False)[0].tolist() == []
    with pytest.raises(ValueError, match="No neighbors found for 1 rows"):
        model.predict([[0.5], [9.0]])
    labelled = RadiusNeighborsClassifier(1.0, outlier_label=7).fit(X, y)
    assert labelled.predict([[0.2], [9.0]]).tolist() == [0, 7]
    with pytest.warns(UserWarning, match="not in training classes"):
        assert labelled.predict_proba([[9.0]]).tolist() == [[0.0, 0.0]]
    with pytest.raises(TypeError, match="outlier_label must be one label"):
        RadiusNeighborsClassifier(outlier_label="x").fit(X, y)
    with pytest.warns(UserWarning, match="predicting NaN"):
        assert np.isnan(RadiusNeighborsRegressor(1.0).fit(X, y).predict([[9.0]]))[0]
    with pytest.raises(ValueError, match="radius"):
        RadiusNeighborsClassifier(-1.0).fit(X, y)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_certificates_hold_with_rows_on_the_rim(metric, weights):
    rng = np.random.default_rng(2)
    X = rng.integers(6, size=(150, 2)) / 3  # many distances are exactly the radius, up to rounding
    y, t = rng.integers(3, size=150), rng.normal(size=150)
    new = (rng.normal(size=(60, 2)) + 1, rng.integers(3, size=60))
    model = RadiusNeighborsClassifier(1 / 3, metric=metric, weights=weights, outlier_label="most_frequent").fit(X, y)
    certificate = model.certify(X, y, holdout=new)
    report = assay.verify(certificate, model, X, y, holdout=new)
    assert report.holds, report.reason
    model = RadiusNeighborsRegressor(1 / 3, metric=metric, weights=weights).fit(X, t)
    report = assay.verify(model.certify(X, t), model, X, t)
    assert report.holds, report.reason


def test_an_outlier_without_a_class_is_an_error_and_a_forged_radius_is_noticed():
    X, y, _ = draw(3)
    model = RadiusNeighborsClassifier(0.8).fit(X, y)
    far = (draw(4)[0] * 3, draw(4)[1])
    certificate = model.certify(X, y, holdout=far)
    assert assay.verify(certificate, model, X, y, holdout=far).holds
    alone = sum(len(rows) == 0 for rows in model.radius_neighbors(far[0], return_distance=False))
    right = RadiusNeighborsClassifier(0.8, outlier_label="none").fit(X, y.astype("<U4")).predict(far[0]) == far[1]
    assert alone > 20
    errors = next(claim for claim in certificate.claims if claim.kind.startswith("holdout")).params["errors"]
    assert 200 - right.sum() <= errors  # ties count, too
    model.radius = 1.0
    assert not assay.verify(certificate, model, X, y, holdout=far).holds
    with pytest.raises(ValueError, match="certificates are about the distances"):
        RadiusNeighborsClassifier(metric="cosine").fit(X, y).certify(X, y)
    model = RadiusNeighborsRegressor(0.1).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="no training row within the radius"):
        model.certify(X, X[:, 0], holdout=(far[0], far[0][:, 0]), clip=1.0)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_sparse_rows_have_the_neighbours_of_dense_ones(metric):
    X, y, t = draw(5, d=8)
    X = np.where(X > 0.4, X, 0.0) + np.eye(8)[np.arange(200) % 8]
    new = np.maximum(draw(6, d=8)[0], 0.0) + 0.1
    for learner, target in (
        (KNeighborsClassifier(4, metric=metric), y),
        (KNeighborsRegressor(4, metric=metric), t),
        (RadiusNeighborsRegressor(50.0, metric=metric), t),
    ):
        dense, sparse = learner.fit(X, target).predict(new), learner.fit(csr_array(X), target).predict(csr_array(new))
        assert np.array_equal(dense, sparse) if target is y else dense == pytest.approx(sparse, abs=1e-12)
        assert learner.predict(new).shape == dense.shape  # dense queries of sparse rows
    search = NearestNeighbors(n_neighbors=3, metric=metric).fit(csr_array(X))
    assert np.array_equal(
        search.kneighbors(return_distance=False),
        NearestNeighbors(n_neighbors=3, metric=metric).fit(X).kneighbors(return_distance=False),
    )
    again = KNeighborsClassifier(4, metric=metric).fit(X, y)
    assert np.array_equal(again.predict(csr_array(new)), again.predict(new))  # sparse queries of dense rows


def test_what_sparse_rows_cannot_do_is_said():
    X, y, _ = draw(7)
    with pytest.raises(ValueError, match="Metric 'chebyshev' not valid for sparse input"):
        KNeighborsClassifier(metric="chebyshev").fit(csr_array(X), y)
    with pytest.raises(ValueError, match="certificates need dense rows"):
        KNeighborsClassifier().fit(csr_array(X), y).certify(csr_array(X), y)


def test_examples():
    outcome = doctest.testmod(import_module("assay.neighbors._radius"))
    assert outcome.failed == 0 < outcome.attempted

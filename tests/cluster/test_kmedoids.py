"""KMedoids: brute force, any distance, rows by blocks, exchanges that are re-checked, forgeries that are refused."""

import doctest
import itertools
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

import assay
from assay.cluster import KMedoids
from assay.cluster import _kmedoids as search
from assay.metrics.distance import MinkovDM, Minkowski, Weighted

SCIPY = {"manhattan": "cityblock", "euclidean": "euclidean", "chebyshev": "chebyshev", "cosine": "cosine"}


def heaps(seed, n=150, d=3, k=6):
    rng = np.random.default_rng(seed)
    return (3 * rng.normal(size=(k, d)))[rng.integers(k, size=n)] + rng.normal(size=(n, d))


def best_exchange(D, medoids):
    """Return the cost and the least cost after one exchange, straight from the definitions."""
    after = np.inf
    for i in range(len(medoids)):
        rest = np.delete(medoids, i)
        near = D[:, rest].min(axis=1, initial=np.inf)
        after = min(after, np.minimum(near[:, None], D).sum(axis=0).min())
    return D[:, medoids].min(axis=1).sum(), after


@pytest.mark.parametrize("metric", SCIPY)
@pytest.mark.parametrize("init", ["k-medoids++", "random"])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_no_exchange_lowers_the_cost(metric, init, k):
    X = heaps(0)
    D = cdist(X, X, SCIPY[metric])
    model = KMedoids(k, metric=metric, init=init, random_state=1).fit(X)
    cost, after = best_exchange(D, model.medoid_indices_)
    assert model.inertia_ == pytest.approx(cost, rel=1e-12)
    assert after >= cost * (1 - 1e-9)
    assert np.array_equal(model.labels_, D[:, model.medoid_indices_].argmin(axis=1))
    assert np.array_equal(model.cluster_centers_, X[model.medoid_indices_])
    assert np.array_equal(model.predict(X), model.labels_)
    assert model.transform(X) == pytest.approx(D[:, model.medoid_indices_])
    assert model.score(X) == pytest.approx(-cost)
    falling = [step.objective for step in model.history_]
    assert all(b < a for a, b in itertools.pairwise(falling))


def test_the_best_of_all_medoids_on_few_rows():
    X = heaps(1, n=14, k=3)
    D = cdist(X, X)
    best = min(D[:, list(chosen)].min(axis=1).sum() for chosen in itertools.combinations(range(14), 3))
    model = KMedoids(3, n_init=10, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(best, rel=1e-12)


def test_any_distance_and_precomputed_ones():
    X = heaps(2)
    for distance in (Minkowski(1), Minkowski(3), Weighted([0.5, 0.25, 0.25])):
        D = distance.pairwise(X, X)
        model = KMedoids(4, metric=distance, random_state=0).fit(X)
        cost, after = best_exchange(D, model.medoid_indices_)
        assert after >= cost * (1 - 1e-9)
        same = KMedoids(4, metric="precomputed", random_state=0).fit(D)
        assert np.array_equal(same.medoid_indices_, model.medoid_indices_)
        assert np.array_equal(same.predict(D[:5]), model.predict(X[:5]))
    y = np.arange(150) % 3
    mixed = np.column_stack([X[:, 0], np.random.default_rng(0).integers(4, size=150)])
    distance = MinkovDM(2.0, unordered=[1]).fit(mixed, y)
    by_object = KMedoids(3, metric=distance, random_state=0).fit(mixed)
    by_function = KMedoids(3, metric=lambda a, b: distance(a, b), random_state=0).fit(mixed[:40])
    assert best_exchange(distance.pairwise(mixed, mixed), by_object.medoid_indices_)[1] >= by_object.inertia_ - 1e-9
    assert by_function.labels_.shape == (40,)
    with pytest.raises(ValueError, match="certificates are about the distances"):
        by_object.certify(mixed)


def test_distances_to_a_row_need_not_be_those_from_it():
    D = np.random.default_rng(3).uniform(1, 2, size=(40, 40))
    np.fill_diagonal(D, 0.0)
    model = KMedoids(3, metric="precomputed", random_state=0).fit(D)
    cost, after = best_exchange(D, model.medoid_indices_)
    assert model.inertia_ == pytest.approx(cost)
    assert after >= cost * (1 - 1e-9)
    assert assay.verify(model.certify(D), model, D).holds


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_rows_that_are_too_many_for_all_their_distances(metric, monkeypatch):
    X = heaps(4, n=300) + 100  # an offset, and copies of rows
    X[50:60] = X[0]
    stored = KMedoids(5, metric=metric, random_state=0).fit(X)
    monkeypatch.setattr(search, "_KEPT", 0)
    monkeypatch.setattr(search, "_BLOCK", 300 * 17)
    blocks = KMedoids(5, metric=metric, random_state=0).fit(X)
    assert np.array_equal(stored.medoid_indices_, blocks.medoid_indices_)
    monkeypatch.setattr(search, "_FEW", 1)
    for jobs in (1, 2, 5):
        threads = KMedoids(5, metric=metric, random_state=0, n_jobs=jobs).fit(X)
        assert np.array_equal(blocks.medoid_indices_, threads.medoid_indices_)
        assert [step.objective for step in threads.history_] == [step.objective for step in blocks.history_]


def test_the_same_exchanges_as_one_candidate_after_another():
    X = heaps(5, n=120)
    D = cdist(X, X)
    start = np.array([3, 50, 99, 7])
    medoids, at, idle = start.copy(), 0, 0
    while idle < 120:
        cost, costs = D[:, medoids].min(axis=1).sum(), []
        for i in range(4):
            costs.append(D[:, [*np.delete(medoids, i), at]].min(axis=1).sum())
        idle += 1
        if min(costs) < cost * (1 - 1e-10):
            medoids[int(np.argmin(costs))], idle = at, 0
        at = (at + 1) % 120
    assert np.array_equal(KMedoids(4, init=start).fit(X).medoid_indices_, medoids)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "precomputed"])
def test_the_certificate_holds_and_forgeries_are_refused(metric):
    X, new = heaps(6), heaps(7)
    if metric == "precomputed":
        X, new = cdist(X, X), cdist(new, X)
    new = (new, None)
    model = KMedoids(5, metric=metric, random_state=0).fit(X)
    certificate = model.certify(X, holdout=new, clip=100.0)
    report = assay.verify(certificate, model, X, holdout=new)
    assert report.holds, report.reason
    fact = certificate.find("medoids.swap")
    assert fact.value < 1e-8 * model.inertia_
    assert fact.params["candidates"] == 150
    worse = KMedoids(5, metric=metric, init=np.arange(5), random_state=0).fit(X)
    worse.medoid_indices_ = np.arange(5)
    if metric != "precomputed":
        worse.cluster_centers_ = X[:5]
    honest = worse.certify(X)
    assert assay.verify(honest, worse, X).holds  # it tells how much an exchange would gain
    gain = honest.find("medoids.swap")
    D = X if metric == "precomputed" else cdist(X, X, SCIPY[metric])
    cost, after = best_exchange(D, np.arange(5))
    assert gain.value == pytest.approx(cost - after, rel=1e-6)
    for forged in (
        replace(gain, value=gain.value * 0.99),
        replace(gain, value=0.0),
        replace(gain, params={**gain.params, "cost": cost * 0.999}),
        replace(gain, params={**gain.params, "candidates": 151}),
        replace(gain, params={**gain.params, "clusters": 4}),
    ):
        claims = tuple(forged if claim is gain else claim for claim in honest.claims)
        assert not assay.verify(replace(honest, claims=claims), worse, X).holds


def test_medoids_that_are_no_rows_are_refused():
    X = heaps(8)
    model = KMedoids(3, random_state=0).fit(X)
    model.cluster_centers_ = model.cluster_centers_ + 1e-9
    assert not assay.verify(model.certify(X), model, X).holds


def test_new_rows_within_a_ball():
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(5000, 2))
    model = KMedoids(3, random_state=0).fit(X)
    certificate = model.certify(X, radius=0.75)
    assert assay.verify(certificate, model, X).holds
    assert 0.04 < certificate.find("kmeans.risk").value < 0.6
    taxi = KMedoids(3, metric="manhattan", random_state=0).fit(X[:200]).certify(X[:200], radius=0.75)
    assert "Euclidean" in next(gap.reason for gap in taxi.not_applicable if gap.name == "kmeans.risk")


def test_refusals_and_examples():
    X = heaps(9, n=30)
    for settings, message in (
        ({"n_clusters": 31}, "needs as many rows"),
        ({"metric": "nearby"}, "metric must be"),
        ({"metric": 3}, "metric must be a name"),
        ({"metric": "precomputed"}, "must hold distances"),
        ({"n_clusters": 2, "init": [0, 0]}, "distinct row numbers"),
        ({"n_clusters": 2, "init": [0, 30]}, "distinct row numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            KMedoids(**settings).fit(X)
    with pytest.warns(ConvergenceWarning, match="raise"):
        KMedoids(3, init=[0, 1, 2], max_iter=1).fit(heaps(0))
    copies = KMedoids(3, random_state=0).fit(np.ones((5, 2)))
    assert copies.inertia_ == 0
    outcome = doctest.testmod(import_module("assay.cluster._kmedoids"))
    assert outcome.failed == 0 < outcome.attempted

"""MiniBatchKMeans: scikit-learn's runs, any source of rows, what its certificate may say."""

import doctest
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import MiniBatchKMeans as Peer

import assay
from assay.cluster import KMeans, MiniBatchKMeans


def heaps(seed, n=3000, d=5, k=30):
    rng = np.random.default_rng(seed)
    return (3 * rng.normal(size=(k, d)))[rng.integers(k, size=n)] + rng.normal(size=(n, d))


@pytest.mark.parametrize("init", ["k-means++", "random", "given"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_run_as_scikit_learn(init, weighted):
    X = heaps(0)
    init = X[:10] if init == "given" else init
    weight = np.random.default_rng(1).uniform(size=len(X)) if weighted else None
    settings = {"init": init, "random_state": 3, "batch_size": 256, "n_init": 1 if init is X else "auto"}
    ours = MiniBatchKMeans(10, **settings).fit(X, sample_weight=weight)
    peer = Peer(10, **settings).fit(X, sample_weight=weight)
    assert (ours.n_steps_, ours.n_iter_) == (peer.n_steps_, peer.n_iter_)
    assert ours.cluster_centers_ == pytest.approx(peer.cluster_centers_, abs=1e-9)
    assert ours.inertia_ == pytest.approx(peer.inertia_, rel=1e-10)
    assert np.array_equal(ours.labels_, peer.labels_)
    assert np.array_equal(ours.predict(X), ours.labels_)


def test_batches_given_one_by_one():
    X = heaps(1) + 1e6  # far from the origin, where squares lose digits
    ours, peer = MiniBatchKMeans(10, random_state=0), Peer(10, random_state=0)
    for start in range(0, len(X), 300):
        part, weight = X[start : start + 300], np.linspace(0.5, 2, 300)
        ours.partial_fit(part, sample_weight=weight)
        peer.partial_fit(part, sample_weight=weight)
    assert ours.n_steps_ == 10
    assert np.sum(ours.counts_) == pytest.approx(10 * 300 * 1.25)
    # The peer's squares are of numbers near 10^6: its centres may be those of a slightly different run.
    assert -ours.score(X) < 1.02 * -peer.score(X)
    assert assay.verify(ours.certify(X), ours, X).holds


def test_sums_of_batches_are_means_of_what_each_centre_had():
    X = heaps(2, n=400)
    model = MiniBatchKMeans(1, random_state=0)
    for start in range(0, 400, 100):
        model.partial_fit(X[start : start + 100])
    assert model.cluster_centers_[0] == pytest.approx(X.mean(axis=0), abs=1e-12)


def test_stops_by_movement_by_idle_batches_or_by_passes():
    X = heaps(3)
    quick = MiniBatchKMeans(5, random_state=0, tol=1.0).fit(X)
    assert quick.n_steps_ == 2 == Peer(5, random_state=0, tol=1.0).fit(X).n_steps_
    few = MiniBatchKMeans(5, random_state=0, max_iter=2, max_no_improvement=None, batch_size=500).fit(X)
    assert few.n_steps_ == 12
    assert few.n_iter_ == 2


def test_without_labels_the_cost_is_estimated():
    X = heaps(4)
    model = MiniBatchKMeans(8, random_state=0, compute_labels=False).fit(X)
    assert not hasattr(model, "labels_")
    assert model.inertia_ == pytest.approx(-model.score(X), rel=0.2)
    assert model.inertia_ == pytest.approx(Peer(8, random_state=0, compute_labels=False).fit(X).inertia_, rel=1e-9)


def test_sparse_rows_files_and_threads(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = np.maximum(heaps(5, n=800), 0.0)
    dense = MiniBatchKMeans(4, random_state=0).fit(X)
    sparse = MiniBatchKMeans(4, random_state=0, n_jobs=3).fit(csr_array(X))
    assert np.array_equal(dense.cluster_centers_, sparse.cluster_centers_)
    assert np.array_equal(dense.labels_, sparse.labels_)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(5)}), path)
    streamed = MiniBatchKMeans(4, init=X[:4], batch_size=100, max_no_improvement=None, max_iter=3).fit(str(path))
    steps = MiniBatchKMeans(4, init=X[:4])
    for start in list(range(0, 800, 100)) * 3:
        steps.partial_fit(X[start : start + 100])
    assert streamed.n_steps_ == steps.n_steps_ == 24
    assert streamed.cluster_centers_ == pytest.approx(steps.cluster_centers_, abs=1e-12)
    assert streamed.labels_.shape == (800,)


def test_the_certificate_tells_that_centres_are_not_means_and_forgeries_fail():
    X = heaps(6)
    model = MiniBatchKMeans(6, random_state=0).fit(X)
    certificate = model.certify(X, holdout=(heaps(7), None), radius=50.0)
    report = assay.verify(certificate, model, X, holdout=(heaps(7), None))
    assert report.holds, report.reason
    fact = certificate.find("kmeans.fixed-point")
    means = np.array([X[model.labels_ == j].mean(axis=0) for j in range(6)])
    apart = np.linalg.norm(means - model.cluster_centers_, axis=1).max()
    assert fact.params["shift"] == pytest.approx(apart, rel=1e-6)
    assert fact.params["shift"] > 1e-4
    assert certificate.find("kmeans.lower-bound").value < KMeans(6, n_init=5, random_state=0).fit(X).inertia_
    for forged in (
        replace(fact, params={**fact.params, "shift": apart * 0.99}),
        replace(fact, value=fact.value * 0.999),
    ):
        claims = tuple(forged if claim is fact else claim for claim in certificate.claims)
        assert not assay.verify(replace(certificate, claims=claims), model, X, holdout=(heaps(7), None)).holds


def test_refusals_and_examples():
    X = heaps(8, n=50)
    with pytest.raises(ValueError, match="should be >= n_clusters=51"):
        MiniBatchKMeans(51).fit(X)
    with pytest.warns(RuntimeWarning, match="init_size=3 should be larger than"):
        MiniBatchKMeans(5, init_size=3, random_state=0).fit(X)
    with pytest.warns(RuntimeWarning, match="performing only one init"):
        MiniBatchKMeans(5, init=X[:5], n_init=4).fit(X)
    with pytest.raises(ValueError, match="reassignment_ratio"):
        MiniBatchKMeans(reassignment_ratio=-1.0).fit(X)
    outcome = doctest.testmod(import_module("assay.cluster._mini_batch"))
    assert outcome.failed == 0 < outcome.attempted


def test_a_line_for_each_step(capsys):
    MiniBatchKMeans(3, random_state=0, verbose=1, max_iter=1, batch_size=100).fit(heaps(9, n=300))
    assert capsys.readouterr().out.count("mean squared distance in the batch") == 3

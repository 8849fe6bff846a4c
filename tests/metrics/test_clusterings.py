"""Scores of clusterings: pair counts, sizes and distances of clusters, silhouettes."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from sklearn import metrics as peer
from sklearn.metrics.cluster import pair_confusion_matrix

from assay.metrics import (
    cluster_geometry,
    davies_bouldin,
    dunn,
    fowlkes_mallows,
    jaccard,
    mean_similarities,
    pair_counts,
    rand_index,
    rmsstd,
    silhouette_samples,
    silhouette_score,
)


def draw(seed, n=60, k=4, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, k, n)


def blobs(seed=0, each=40):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(place, 0.4, size=(each, 2)) for place in ((0, 0), (5, 0), (0, 5))])
    return X, np.repeat(np.arange(3), each)


def brute_pairs(first, second):
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for i, j in itertools.combinations(range(len(first)), 2):
        counts[first[i] == first[j], second[i] == second[j]] += 1
    return tuple(counts[key] for key in ((True, True), (True, False), (False, True), (False, False)))


@pytest.mark.mission("CLU-22", "CLU-23", "CLU-24", "CLU-25")
@pytest.mark.parametrize("seed", range(6))
def test_pairs_and_external_indices(seed):
    (_, first), (_, second) = draw(seed), draw(seed + 50, k=6)
    a, b, c, d = found = pair_counts(first, second)
    assert tuple(found) == brute_pairs(first, second)
    assert sum(found) == 60 * 59 // 2
    assert np.array_equal(np.array([[d, c], [b, a]]), pair_confusion_matrix(first, second) // 2)
    assert jaccard(first, second) == a / (a + b + c)
    assert jaccard(first, first) == 1
    assert fowlkes_mallows(first, second) == pytest.approx(np.sqrt(a / (a + b) * a / (a + c)), rel=1e-12)
    assert fowlkes_mallows(first, second) == pytest.approx(peer.fowlkes_mallows_score(first, second), rel=1e-12)
    assert rand_index(first, second) == 2 * (a + d) / (60 * 59) == rand_index(second, first)
    assert rand_index(first, second) == pytest.approx(peer.rand_score(first, second), rel=1e-12)


@pytest.mark.mission("CLU-23")
def test_no_two_rows_together():
    assert jaccard([0, 1, 2], [5, 6, 7]) == 1
    assert jaccard([0, 1, 2], [5, 5, 7]) == 0
    assert fowlkes_mallows([0, 1, 2], [5, 5, 7]) == 0
    assert rand_index([0], [3]) == 1


@pytest.mark.mission("CLU-26")
def test_external_indices_are_shares_and_do_not_depend_on_names():
    for seed in range(20):
        (_, first), (_, second) = draw(seed, n=15), draw(seed + 99, n=15)
        renamed = np.array(["d", "c", "a", "b"])[first]
        for index in (jaccard, fowlkes_mallows, rand_index):
            assert 0 <= index(first, second) <= 1
            assert index(renamed, second) == index(first, second)
            assert index(second, renamed) == pytest.approx(index(first, second), rel=1e-12)


@pytest.mark.mission("CLU-27", "CLU-28", "CLU-29", "CLU-30", "CLU-03")
@pytest.mark.parametrize("seed", range(4))
def test_sizes_of_clusters_and_distances_between_them(seed):
    X, labels = draw(seed, n=1300 if seed == 3 else 60)
    labels = np.append(labels[:-1], 9)  # one row alone
    found = cluster_geometry(X, labels, n_jobs=2)
    for i, name in enumerate(found.labels):
        own = X[labels == name]
        assert found.avg[i] == pytest.approx(pdist(own).mean() if len(own) > 1 else 0.0)
        assert found.diam[i] == pytest.approx(pdist(own).max(initial=0.0))
        for j, other in enumerate(found.labels):
            if i != j:
                assert found.d_min[i, j] == pytest.approx(cdist(own, X[labels == other]).min())
            apart = np.linalg.norm(own.mean(axis=0) - X[labels == other].mean(axis=0))
            assert found.d_cen[i, j] == pytest.approx(apart, abs=1e-12)


@pytest.mark.mission("CLU-31", "CLU-32", "CLU-33")
def test_internal_indices_by_hand_and_against_scikit_learn():
    square = [[0.0, 0.0], [0.0, 2.0], [10.0, 0.0], [10.0, 2.0]]
    assert davies_bouldin(square, [0, 0, 1, 1]) == pytest.approx((2 + 2) / 10)
    assert davies_bouldin(square, [0, 0, 1, 1], spread="centroid") == pytest.approx((1 + 1) / 10)
    line = [[0.0], [1.0], [5.0], [20.0], [22.0]]  # pairs 1, 4, 5 and 2; means 2 and 21
    assert davies_bouldin(line, [0, 0, 0, 1, 1]) == pytest.approx((10 / 3 + 2) / 19)
    assert davies_bouldin(line, [0, 0, 0, 1, 1], spread="centroid") == pytest.approx((2 + 1) / 19)
    three = [[0.0], [2.0], [10.0], [14.0], [40.0]]  # spreads 2, 4, 0; means 1, 12, 40
    assert davies_bouldin(three, [0, 0, 1, 1, 2]) == pytest.approx((6 / 11 + 6 / 11 + 4 / 28) / 3)
    assert dunn(square, [0, 0, 1, 1]) == pytest.approx(10 / 2)
    assert dunn(square, [0, 1, 0, 1]) == pytest.approx(2 / 10)
    for seed in range(5):
        X, labels = draw(seed)
        assert davies_bouldin(X, labels, spread="centroid") == pytest.approx(peer.davies_bouldin_score(X, labels))
    X, labels = blobs()
    apart = X + 10 * labels[:, None]
    assert dunn(apart, labels) > dunn(X, labels)
    assert davies_bouldin(apart, labels) < davies_bouldin(X, labels)


@pytest.mark.mission("CLU-31")
def test_clusters_whose_means_coincide():
    """Spread clusters of one mean are not told apart at all; two clusters that are one point each have no ratio."""
    rings = [[-1.0], [1.0], [-3.0], [3.0], [50.0]]
    assert davies_bouldin(rings, [0, 0, 1, 1, 2]) == np.inf
    assert davies_bouldin([[0.0], [0.0], [6.0], [10.0]], [0, 1, 2, 2]) == pytest.approx(4 / 8)
    assert davies_bouldin([[1.0], [1.0], [1.0]], [0, 1, 2]) == 0.0


@pytest.mark.mission("CLU-17", "CLU-18")
@pytest.mark.parametrize("seed", range(4))
def test_silhouettes_against_scikit_learn(seed):
    X, labels = draw(seed, n=2500 if seed == 3 else 70)
    labels[0] = 17  # one row alone: 0
    X = X + 1000.0 * (seed == 2)
    ours = silhouette_samples(X, labels, n_jobs=2)
    assert ours == pytest.approx(peer.silhouette_samples(X, labels), abs=1e-9)
    assert ours[0] == 0
    assert silhouette_score(X, labels) == pytest.approx(peer.silhouette_score(X, labels), abs=1e-9)


@pytest.mark.mission("CLU-17")
def test_silhouette_by_hand():
    # Row 0: a = 1, b = mean(10, 12) = 11; all rows equal: a = b = 0.
    assert silhouette_samples([[0.0], [1.0], [10.0], [12.0]], [0, 0, 1, 1])[0] == pytest.approx(10 / 11)
    assert np.array_equal(silhouette_samples(np.zeros((4, 2)), [0, 0, 1, 1]), np.zeros(4))


@pytest.mark.mission("CLU-02")
def test_true_labels_are_more_alike_inside_and_less_between():
    X, labels = blobs()
    inside, between = mean_similarities(X, labels)
    shuffled = np.random.default_rng(1).permutation(labels)
    worse_inside, worse_between = mean_similarities(X, shuffled)
    assert inside > worse_inside
    assert between < worse_between
    assert inside == pytest.approx(np.mean(np.concatenate([1 / (1 + pdist(X[labels == j])) for j in range(3)])))
    pairs = [cdist(X[labels == i], X[labels == j]).ravel() for i, j in itertools.combinations(range(3), 2)]
    assert between == pytest.approx(np.mean(1 / (1 + np.concatenate(pairs))))


@pytest.mark.mission("CLU-16")
def test_rmsstd_is_the_pooled_deviation():
    X, labels = draw(0)
    sse = sum(((X[labels == j] - X[labels == j].mean(axis=0)) ** 2).sum() for j in range(4))
    assert rmsstd(X, labels) == pytest.approx(np.sqrt(sse / (3 * (60 - 4))))
    assert rmsstd(X, labels, per_column=False) == pytest.approx(np.sqrt(sse / (60 - 4)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rmsstd(np.eye(3), [0, 1, 2]), "more rows than clusters"),
        (lambda: dunn(np.zeros((4, 1)), [0, 0, 1, 1]), "largest diameter is 0"),
        (lambda: dunn(np.eye(3), [0, 0, 0]), "at least 2 clusters"),
        (lambda: davies_bouldin(np.eye(3), [0, 0, 1], spread="mean"), "spread must be"),
        (lambda: silhouette_score(np.eye(3), [0, 1, 2]), "Number of labels is 3"),
        (lambda: silhouette_score(np.eye(4), [0, 0, 1, 1], metric="precomputed"), "on the diagonal"),
        (lambda: mean_similarities(np.eye(3), [0, 0, 0]), "needs two rows"),
    ],
)
def test_what_is_not_defined_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""KMeans: the textbook's statements, scikit-learn's runs, any source of rows, exact clusters on a line."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans as Peer
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import assay
from assay.cluster import KMeans, KMedoids, sweep
from assay.metrics.distance import Weighted
from tests.certificate.test_cluster_claims import partition_cost

MELONS = np.array(
    [[0.697, 0.460], [0.774, 0.376], [0.634, 0.264], [0.608, 0.318], [0.556, 0.215], [0.403, 0.237], [0.481, 0.149],
     [0.437, 0.211], [0.666, 0.091], [0.243, 0.267], [0.245, 0.057], [0.343, 0.099], [0.639, 0.161], [0.657, 0.198],
     [0.360, 0.370], [0.593, 0.042], [0.719, 0.103], [0.359, 0.188], [0.339, 0.241], [0.282, 0.257], [0.748, 0.232],
     [0.714, 0.346], [0.483, 0.312], [0.478, 0.437], [0.525, 0.369], [0.751, 0.489], [0.532, 0.472], [0.473, 0.376],
     [0.725, 0.445], [0.446, 0.459]]
)  # fmt: skip
FIVE = np.array([[0.0, 2.0], [0.0, 0.0], [1.0, 0.0], [5.0, 0.0], [5.0, 2.0]])


def heaps(seed, n=600, d=4, k=5, spread=3.0):
    rng = np.random.default_rng(seed)
    return spread * rng.normal(size=(k, d))[rng.integers(0, k, n)] + rng.normal(size=(n, d))


def silent(model, X, **fit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, **fit)


@pytest.mark.mission("CLU-01", "CLU-04", "CLU-11")
def test_labels_are_nearest_centres_and_the_cost_is_theirs():
    X = heaps(0)
    model = KMeans(5, random_state=0)
    labels = model.fit_predict(X)
    square = cdist(X, model.cluster_centers_, "sqeuclidean")
    assert labels.shape == (len(X),)
    assert set(labels) == set(range(5))
    assert np.array_equal(labels, square.argmin(axis=1))
    assert np.array_equal(model.predict(X), labels)
    assert model.inertia_ == pytest.approx(square.min(axis=1).sum(), rel=1e-12)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-12)
    assert model.transform(X) == pytest.approx(np.sqrt(square))


@pytest.mark.mission("CLU-05", "CLU-10")
def test_at_the_end_centres_are_means_and_another_step_changes_nothing():
    X = heaps(1)
    model = KMeans(5, random_state=0, tol=0).fit(X)
    means = np.array([X[model.labels_ == j].mean(axis=0) for j in range(5)])
    assert model.cluster_centers_ == pytest.approx(means, abs=1e-12)
    again = KMeans(5, init=model.cluster_centers_, tol=0).fit(X)
    assert np.array_equal(again.labels_, model.labels_)
    assert again.cluster_centers_ == pytest.approx(model.cluster_centers_, abs=1e-12)
    for j in range(5):  # the mean has the least sum of squares
        own = X[model.labels_ == j]
        for step in np.random.default_rng(j).normal(size=(5, 4)):
            assert np.sum((own - means[j]) ** 2) <= np.sum((own - means[j] - 0.1 * step) ** 2)


@pytest.mark.mission("CLU-06", "CLU-07")
@pytest.mark.parametrize("algorithm", ["auto", "lloyd", "elkan"])
@pytest.mark.parametrize(
    ("n", "d", "k", "tol"), [(600, 4, 5, 0), (3000, 2, 40, 0), (500, 60, 3, 1e-4), (400, 1, 17, 0)]
)
def test_the_same_run_as_scikit_learn_from_the_same_start(algorithm, n, d, k, tol):
    X = heaps(n + k, n, d)
    start = X[:k].copy()
    ours, peer = (
        KMeans(k, init=start, tol=tol, algorithm=algorithm).fit(X),
        Peer(k, init=start, n_init=1, tol=tol).fit(X),
    )
    assert ours.n_iter_ == peer.n_iter_
    assert np.array_equal(ours.labels_, peer.labels_)
    assert ours.cluster_centers_ == pytest.approx(peer.cluster_centers_, abs=1e-10)
    assert ours.inertia_ == pytest.approx(peer.inertia_, rel=1e-12)
    objective = [step.objective for step in ours.history_]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(objective))


@pytest.mark.mission("CLU-06")
def test_one_step_on_the_melons():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KMeans(3, init=MELONS[[5, 11, 23]], max_iter=1).fit(MELONS)
    expected = [[0.493, 0.207], [0.394, 0.066], [0.602, 0.396]]
    assert model.cluster_centers_ == pytest.approx(np.array(expected), abs=1e-3)


@pytest.mark.mission("CLU-08")
def test_random_starts_are_seeded_and_distinct():
    X = heaps(2, n=50)
    starts = []

    def watch(rows, k, random_state):
        starts.append(rows[random_state.choice(len(rows), k, replace=False)])
        return starts[-1]

    one, two = (KMeans(6, init="random", n_init=1, random_state=3).fit(X) for _ in range(2))
    assert np.array_equal(one.cluster_centers_, two.cluster_centers_)
    KMeans(6, init=watch, n_init=4, random_state=3).fit(X)
    assert len(starts) == 4
    from assay.cluster._assignment import starting_centers
    from assay.scan import rows

    for init in ("random", "k-means++"):
        chosen = starting_centers(KMeans(init=init), rows(X), 6, np.random.RandomState(0))
        assert len(np.unique(chosen, axis=0)) == 6
        assert all(any(np.array_equal(c, x) for x in X) for c in chosen)


@pytest.mark.mission("CLU-09")
def test_iterations_are_limited():
    X = heaps(3, n=2000, spread=0.5)
    for limit in (1, 2, 5):
        model = KMeans(8, random_state=0, max_iter=limit, tol=0).fit(X)
        assert model.n_iter_ == limit == len(model.history_)
    centres, start = X[:8].copy(), X[:8].copy()
    for _ in range(3):
        nearest = cdist(X, centres).argmin(axis=1)
        centres = np.stack([X[nearest == k].mean(axis=0) for k in range(8)])
    model = silent(KMeans(8, init=start, n_init=1, max_iter=3, tol=0), X)
    np.testing.assert_allclose(model.cluster_centers_, centres)


@pytest.mark.mission("CLU-12")
def test_cost_is_the_weighted_variance_of_the_clusters():
    X = heaps(4)
    model = KMeans(5, random_state=0, tol=0).fit(X)
    own = [X[model.labels_ == j] for j in range(5)]
    within = sum(len(part) * part.var(axis=0).sum() for part in own)
    between = sum(len(part) * np.sum((part.mean(axis=0) - X.mean(axis=0)) ** 2) for part in own)
    assert model.inertia_ == pytest.approx(within)
    assert within + between == pytest.approx(len(X) * X.var(axis=0).sum())


@pytest.mark.mission("CLU-13")
def test_a_bad_start_ends_in_a_local_minimum_and_restarts_find_the_best():
    assert KMeans(2, init=FIVE[:2]).fit(FIVE).inertia_ == pytest.approx(26.5)
    best = KMeans(2, n_init=20, random_state=0).fit(FIVE)
    assert best.inertia_ == pytest.approx(16 / 3)
    single = [KMeans(2, init="random", n_init=1, random_state=s).fit(FIVE).inertia_ for s in range(20)]
    assert best.inertia_ == pytest.approx(min(single))
    assert max(single) > 20


@pytest.mark.mission("CLU-14")
def test_the_scale_of_a_column_matters_unless_it_is_standardised():
    X = heaps(5, d=2, k=3)
    wide = X * [1.0, 1000.0]
    start = [0, 1, 2]
    plain = [KMeans(3, init=Z[start]).fit(Z).labels_ for Z in (X, wide)]
    assert not np.array_equal(*plain)
    labels = []
    for Z in (X, wide):
        S = StandardScaler().fit_transform(Z)
        labels.append(make_pipeline(StandardScaler(), KMeans(3, init=S[start])).fit_predict(Z))
    assert np.array_equal(*labels)


@pytest.mark.mission("CLU-14")
def test_weights_of_the_columns_are_a_distance_of_medoids():
    """Squared distances sum_u w_u (x_u - z_u)^2: with w_u = 1 / variance no unit matters, with w_u = 0 no column."""
    X = heaps(5, n=200, d=2, k=3)
    wide = X * [1.0, 1000.0]

    def labels(Z, w=None):
        metric = "euclidean" if w is None else Weighted(np.asarray(w) / np.sum(w))
        return KMedoids(3, metric=metric, random_state=0).fit(Z).labels_

    assert not np.array_equal(labels(X), labels(wide))
    assert np.array_equal(labels(X, 1 / X.var(axis=0)), labels(wide, 1 / wide.var(axis=0)))
    assert np.array_equal(labels(wide, [1.0, 0.0]), labels(X[:, :1]))


@pytest.mark.mission("CLU-15")
def test_distances_are_counted():
    X = heaps(6, n=1000)
    whole = KMeans(7, init=X[:7], algorithm="lloyd", tol=0).fit(X)
    assert whole.n_distances_ == 1000 * 7 * whole.n_iter_
    fewer = KMeans(7, init=X[:7], tol=0).fit(X)
    assert fewer.n_distances_ < 0.8 * whole.n_distances_
    assert np.array_equal(fewer.labels_, whole.labels_)


@pytest.mark.mission("CLU-16", "CLU-19")
def test_three_heaps_are_found():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(place, 0.5, size=(80, 2)) for place in ((0, 0), (6, 0), (0, 6))])
    found = sweep(X, range(1, 9), model=KMeans(n_init=5, random_state=0))
    assert found.elbow == 3
    assert found.widest == 3
    assert np.isnan(found.silhouette[0])
    assert np.all(np.diff(found.inertia) < 0)


def test_seeds_as_scikit_learn_draws_them():
    X = heaps(8, n=300)
    for k in (2, 5, 20):
        ours, peer = KMeans(k, random_state=5).fit(X), Peer(k, random_state=5).fit(X)
        assert ours.inertia_ == pytest.approx(peer.inertia_, rel=1e-10)
        assert np.array_equal(ours.labels_, peer.labels_)


def test_weights_count_rows():
    X = heaps(9, n=80)
    weight = np.random.default_rng(0).integers(1, 4, 80)
    start = X[:4].copy()
    weighted = KMeans(4, init=start, tol=0).fit(X, sample_weight=weight)
    repeated = KMeans(4, init=start, tol=0).fit(np.repeat(X, weight, axis=0))
    assert weighted.cluster_centers_ == pytest.approx(repeated.cluster_centers_, abs=1e-12)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)
    peer = Peer(4, init=start, n_init=1, tol=0).fit(X, sample_weight=weight)
    assert weighted.inertia_ == pytest.approx(peer.inertia_, rel=1e-12)


def test_an_empty_cluster_takes_over_the_farthest_row():
    X = np.array([[0.0], [1.0], [2.0], [30.0]])
    model = KMeans(3, init=[[0.0], [1.0], [1e9]]).fit(X)
    assert len(set(model.labels_)) == 3
    assert model.inertia_ == pytest.approx(0.5)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters .2. found"):
        same = KMeans(3, random_state=0).fit([[0.0], [0.0], [1.0], [1.0]])
    assert same.inertia_ == 0


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_units_and_offsets_do_not_matter(scale, offset):
    X = np.round(heaps(10) * 8) / 8
    plain = KMeans(5, init=X[:5]).fit(X)
    moved = (X + offset) * scale
    other = KMeans(5, init=moved[:5]).fit(moved)
    assert np.array_equal(plain.labels_, other.labels_)
    assert other.inertia_ == pytest.approx(plain.inertia_ * scale**2, rel=1e-6)


def test_near_ties_are_decided_in_double_precision():
    """Rows halfway between two centres up to 1e-12: single precision cannot tell, the labels must."""
    rng = np.random.default_rng(0)
    side = rng.choice([-1e-12, 1e-12], 500)
    X = np.column_stack([side, rng.normal(size=500)])
    model = KMeans(2, init=[[-1.0, 0.0], [1.0, 0.0]], max_iter=1)
    model.fit(np.append(X, [[-1.0, 0.0], [1.0, 0.0]], axis=0))
    from assay.cluster._kmeans import nearest
    from assay.scan import rows

    table = rows(X)
    labels, _ = nearest(table, model, np.array([[-1.0, 0.0], [1.0, 0.0]]))
    assert np.array_equal(labels, (side > 0).astype(int))


@pytest.mark.parametrize("seed", range(12))
def test_exact_clusters_on_a_line(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(5, 12)), int(rng.integers(2, 5))
    x = rng.normal(size=n) if seed % 2 else rng.integers(0, 6, n).astype(float)
    weight = rng.integers(1, 3, n).astype(float)
    model = silent(KMeans(k, algorithm="exact"), x[:, None], sample_weight=weight)
    assert model.inertia_ == pytest.approx(partition_cost(x, weight, k), abs=1e-12)
    certificate = model.certify(x[:, None], sample_weight=weight)
    assert certificate.find("kmeans-1d.optimal").value < 1e-9
    assert assay.verify(certificate, model, x[:, None], sample_weight=weight).holds


def test_exact_clusters_are_never_worse_than_many_starts():
    x = np.random.default_rng(1).standard_cauchy(2000)[:, None]
    exact = KMeans(6, algorithm="exact").fit(x)
    assert exact.inertia_ <= KMeans(6, n_init=10, random_state=0).fit(x).inertia_ * (1 + 1e-12)
    other = KMeans(6, init="random", n_init=1, random_state=0).fit(x)
    proved = other.certify(x).find("kmeans-1d.optimal").value
    assert proved >= other.inertia_ - exact.inertia_
    assert proved <= (other.inertia_ - exact.inertia_) * (1 + 1e-5) + 1e-6 * other.inertia_


def test_parquet_and_dask_rows_give_the_same_clusters(tmp_path):
    import dask.array as da
    import pyarrow as pa
    from pyarrow import parquet

    X = heaps(11, n=5000)
    start = X[:5].copy()
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({name: X[:, j] for j, name in enumerate("abcd")}), path, row_group_size=1000)
    memory = KMeans(5, init=start, tol=0).fit(X)
    for source in (str(path), da.from_array(X, chunks=(1700, 4))):
        model = KMeans(5, init=start, tol=0).fit(source)
        assert np.array_equal(model.labels_, memory.labels_)
        assert model.cluster_centers_ == pytest.approx(memory.cluster_centers_, abs=1e-11)
        assert model.inertia_ == pytest.approx(memory.inertia_, rel=1e-12)
        drawn = KMeans(5, random_state=0).fit(source)
        assert drawn.inertia_ == pytest.approx(KMeans(5, random_state=0).fit(X).inertia_, rel=1e-6)
    certificate = memory.certify(str(path))
    assert assay.verify(certificate, memory, X).holds


def test_sparse_rows():
    from scipy.sparse import csr_array

    X = np.maximum(heaps(12), 0.0)
    dense, sparse = KMeans(4, random_state=0).fit(X), KMeans(4, random_state=0).fit(csr_array(X))
    assert np.array_equal(dense.labels_, sparse.labels_)
    assert np.array_equal(sparse.predict(csr_array(X)), dense.labels_)
    assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=1e-12)


def texts(n=900, d=120, seed=3):
    """Return rows with few entries, an empty one and doubles among them, and their dense form."""
    from scipy.sparse import random_array

    X = random_array((n, d), density=0.06, format="csr", rng=np.random.default_rng(seed))
    X = (X + 3 * X.multiply(X > 0.8)).tocsr()
    dense = X.toarray()
    dense[5], dense[6] = 0.0, dense[7]
    return type(X)(dense), dense


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [3, 40])
def test_sparse_rows_take_the_steps_of_dense_ones_and_of_scikit_learn(k, weighted):
    X, dense = texts()
    weight = np.random.default_rng(2).integers(1, 4, len(dense)).astype(float) if weighted else None
    start = dense[np.random.default_rng(1).choice(len(dense), k, replace=False)]
    ours = KMeans(k, init=start, tol=0).fit(X, sample_weight=weight)
    for peer, rows in ((KMeans, dense), (Peer, X)):
        other = peer(k, init=start, n_init=1, tol=0).fit(rows, sample_weight=weight)
        assert np.array_equal(ours.labels_, other.labels_)
        assert ours.n_iter_ == other.n_iter_
        assert ours.inertia_ == pytest.approx(other.inertia_, rel=1e-10)
        assert np.allclose(ours.cluster_centers_, other.cluster_centers_, atol=1e-12)
    assert ours.n_distances_ == len(dense) * k * ours.n_iter_
    again = KMeans(k, init=start, tol=0, n_jobs=1).fit(X, sample_weight=weight)
    assert np.array_equal(again.cluster_centers_, ours.cluster_centers_)


def test_sparse_rows_are_seeded_as_dense_ones_and_an_empty_cluster_takes_the_farthest():
    X, dense = texts()
    for init in ("k-means++", "random"):
        pair = [KMeans(12, init=init, n_init=2, random_state=4).fit(rows) for rows in (X, dense)]
        assert np.allclose(pair[0].cluster_centers_, pair[1].cluster_centers_, atol=1e-10)
    start = np.vstack([dense[:3], np.full((1, dense.shape[1]), 50.0)])  # the last one is nobody's
    pair = [KMeans(4, init=start).fit(rows) for rows in (X, dense)]
    assert np.array_equal(pair[0].labels_, pair[1].labels_)
    assert len(np.unique(pair[0].labels_)) == 4


def test_more_centres_than_a_piece_and_entries_that_are_not_finite():
    X, dense = texts(n=1400, d=30)
    centers = np.random.default_rng(0).uniform(size=(1100, 30))
    model = silent(KMeans(1100, init=centers, max_iter=1, tol=0), X)
    square = ((dense[:, None, :] - model.cluster_centers_) ** 2).sum(axis=2)
    assert np.array_equal(model.labels_, square.argmin(axis=1))
    assert model.inertia_ == pytest.approx(square.min(axis=1).sum(), rel=1e-10)
    X.data[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        KMeans(2).fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer >= 1; got 0"),
        ({"n_clusters": 100}, "n_samples=50 should be >= n_clusters=100"),
        ({"init": "kmeans"}, "init must be one of 'k-means\\+\\+', 'random'"),
        ({"init": np.zeros((3, 4))}, "init: The shape of the initial centers"),
        ({"algorithm": "full"}, "algorithm must be one of"),
        ({"algorithm": "exact"}, "algorithm='exact' is for rows of one column"),
        ({"tol": -1}, "tol must be a finite number >= 0"),
        ({"n_init": "many"}, "n_init must be one of 'auto'"),
        ({"n_init": 0}, "n_init must be an integer >= 1"),
    ],
)
def test_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=f"^KMeans: {message}"):
        KMeans(**parameters).fit(heaps(0, n=50))


def test_a_sweep_over_nothing_is_refused():
    with pytest.raises(ValueError, match=r"^sweep: ks must hold at least one"):
        sweep(heaps(0, n=50), [])

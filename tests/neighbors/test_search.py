"""Nearest neighbours against scikit-learn, and every route of the search against a direct comparison."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import sklearn.neighbors as sk
from scipy.spatial.distance import cdist

from assay.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from assay.neighbors._search import Boxes, Products, nearest


def direct(X, Q, k, metric="euclidean"):
    """Return the k nearest rows by all distances, the first of equals."""
    return np.argsort(cdist(Q, X, metric), axis=1, kind="stable")[:, :k]


def draw(seed, n=1500, d=4, queries=300):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(queries, d))


def squares(X, Q, rows):
    return ((Q[:, None, :] - X[rows]) ** 2).sum(axis=2)


@pytest.mark.parametrize("d", [1, 2, 7, 40])
@pytest.mark.parametrize("k", [1, 6, 33])
def test_products_and_boxes_find_the_nearest(d, k):
    X, Q = draw(d, d=d)
    expected = direct(X, Q, k)
    for engine in (Products(X), Boxes(X)):
        powers, index = nearest(engine, Q, k, None)
        assert np.array_equal(index, expected)
        assert np.allclose(powers, squares(X, Q, expected), rtol=1e-12)


@pytest.mark.parametrize("spoil", ["offset", "outlier", "tiny", "huge", "scales"])
def test_products_in_single_precision_lose_no_neighbour(spoil):
    """Screening must stay right where single precision has few digits left."""
    X, Q = draw(3, d=5)
    if spoil == "offset":
        X, Q = X + 1e9, Q + 1e9
    if spoil == "outlier":
        X[7] *= 1e12
    if spoil == "tiny":
        X, Q = X * 1e-120, Q * 1e-120
    if spoil == "huge":
        X, Q = X * 1e140, Q * 1e140
    if spoil == "scales":
        X, Q = X * 10.0 ** np.arange(-6, 4, 2), Q * 10.0 ** np.arange(-6, 4, 2)
    by_products, by_boxes = (nearest(engine, Q, 5, None)[1] for engine in (Products(X), Boxes(X)))
    assert np.array_equal(by_products, by_boxes)
    if spoil != "offset":  # there the distances themselves have ties
        assert np.array_equal(by_products, direct(X, Q, 5))


def test_many_ties_do_not_send_queries_to_all_rows(monkeypatch):
    """Columns of names have many rows at the same distance: more than a hundred share that of the k-th."""
    rng = np.random.default_rng(3)
    X = np.concatenate([np.eye(3)[rng.integers(0, 3, 3_000)] for _ in range(5)], axis=1)
    ranked, alone = Products._ranked, []

    def looked_at(self, Q, heap, found, lower, count, k):
        alone.append(int((count[: len(Q)] < 0).sum()))
        return ranked(self, Q, heap, found, lower, count, k)

    monkeypatch.setattr(Products, "_ranked", looked_at)
    powers, index = nearest(Products(X), X[:300], 16, None)
    apart = cdist(X[:300], X, "sqeuclidean").round()
    tied = (apart == np.sort(apart, axis=1)[:, 15:16]).sum(axis=1)
    assert np.median(tied) > 4 * 16 + 32
    assert sum(alone) == 0
    assert (index == np.argsort(apart, axis=1, kind="stable")[:, :16]).all()
    assert (powers == np.sort(apart, axis=1)[:, :16]).all()


@pytest.mark.parametrize("engine", [Products, Boxes])
def test_ties_go_to_the_first_rows(engine):
    rng = np.random.default_rng(0)
    X, Q = rng.integers(0, 3, (700, 3)).astype(float), rng.integers(0, 3, (60, 3)).astype(float)
    assert np.array_equal(nearest(engine(X), Q, 40, None)[1], direct(X, Q, 40))
    same = np.zeros((90, 2))
    assert np.array_equal(nearest(engine(same), same[:3], 4, None)[1], [[0, 1, 2, 3]] * 3)


SETTINGS = [
    {},
    {"weights": "distance"},
    {"weights": lambda distance: np.exp(-distance)},
    {"metric": "manhattan"},
    {"metric": "chebyshev"},
    {"p": 3},
    {"p": 1.5},
    {"metric": "minkowski", "p": 2, "metric_params": {"w": np.array([1.0, 2.0, 0.0, 0.5])}},
    {"metric": "cosine"},
    {"metric": "canberra"},
    {"metric": lambda a, b: float(np.abs(a - b).max())},
    {"algorithm": "brute", "n_neighbors": 1},
    {"algorithm": "kd_tree", "n_neighbors": 12},
]


@pytest.mark.mission("CLU-03", "CLU-35", "CLU-36")
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: "-".join(setting) or "default")
def test_same_answers_as_scikit_learn(setting):
    X, Q = draw(1, n=400, queries=60)
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1], [-0.6, 0.6])]
    z = np.column_stack([X.sum(axis=1), X[:, 0] ** 2])
    copy = {name: dict(v) if isinstance(v, dict) else v for name, v in setting.items()}
    ours, theirs = KNeighborsClassifier(**setting).fit(X, y), sk.KNeighborsClassifier(**copy).fit(X, y)
    distance, index = ours.kneighbors(Q)
    expected = theirs.kneighbors(Q)
    assert np.array_equal(index, expected[1])
    assert np.allclose(distance, expected[0], rtol=1e-10, atol=1e-12)
    assert np.array_equal(ours.kneighbors()[1], theirs.kneighbors()[1])
    assert np.array_equal(ours.predict(Q), theirs.predict(Q))
    assert np.allclose(ours.predict_proba(Q), theirs.predict_proba(Q))
    assert ours.score(Q, y[:60]) == theirs.score(Q, y[:60])
    graphs = (model.kneighbors_graph(Q, 3, mode="distance").toarray() for model in (ours, theirs))
    assert np.allclose(next(graphs), next(graphs), atol=1e-12)
    for target in (z, z[:, 0]):
        found = KNeighborsRegressor(**setting).fit(X, target).predict(Q)
        assert np.allclose(found, sk.KNeighborsRegressor(**copy).fit(X, target).predict(Q))


def test_precomputed_distances():
    X, Q = draw(2, n=80, queries=20)
    y = (X[:, 0] > 0).astype(int)
    plain = KNeighborsClassifier(3).fit(X, y)
    given = KNeighborsClassifier(3, metric="precomputed").fit(cdist(X, X), y)
    assert np.array_equal(given.predict(cdist(Q, X)), plain.predict(Q))
    with pytest.raises(ValueError, match="must be square"):
        KNeighborsClassifier(metric="precomputed").fit(X, y)


def test_cosine_of_rows_that_are_zero():
    X, Q = draw(4, n=60, queries=9)
    X[5] = Q[2] = 0.0
    ours = KNeighborsClassifier(4, metric="cosine").fit(X, X[:, 0] > 0).kneighbors(Q)
    theirs = sk.KNeighborsClassifier(4, metric="cosine").fit(X, X[:, 0] > 0).kneighbors(Q)
    assert np.allclose(ours[0], theirs[0])


def test_threads_and_routes_change_no_bit():
    X, Q = draw(6, n=3000, d=9, queries=700)
    y = X[:, 0]
    answers = [
        KNeighborsRegressor(7, algorithm=algorithm, n_jobs=jobs).fit(X, y).kneighbors(Q)
        for algorithm in ("auto", "brute", "kd_tree")
        for jobs in (1, 2, 5)
    ]
    for distance, index in answers[1:]:
        assert np.array_equal(distance, answers[0][0])
        assert np.array_equal(index, answers[0][1])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1; got 0"),
        ({"weights": "close"}, "weights must be one of 'uniform', 'distance', None; got 'close'"),
        ({"algorithm": "grid"}, "algorithm must be one of"),
        ({"p": 0.5, "algorithm": "kd_tree"}, 'algorithm="kd_tree" does not support 0 < p < 1'),
        ({"metric": "cosine", "algorithm": "kd_tree"}, "algorithm='kd_tree' does not have the metric 'cosine'"),
        ({"leaf_size": 0}, "leaf_size must be an integer >= 1"),
        ({"metric": 3}, "metric must be a name"),
        ({"metric": "euclid"}, "metric must be a distance, .* canberra, .*; got 'euclid'"),
    ],
)
def test_parameters_are_refused(setting, message):
    X, _ = draw(0, n=30)
    with pytest.raises(ValueError, match=f"^KNeighborsClassifier: {message}"):
        KNeighborsClassifier(**setting).fit(X, X[:, 0] > 0)


def test_more_neighbours_than_rows_are_refused():
    X, Q = draw(0, n=4)
    model = KNeighborsClassifier(5).fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="n_samples_fit = 4; expected n_neighbors <= 4"):
        model.predict(Q)
    with pytest.raises(ValueError, match="expected n_neighbors <= 3"):
        model.kneighbors(n_neighbors=4)


def test_a_search_alone_has_no_certificate():
    X, _ = draw(0, n=30)
    with pytest.raises(ValueError, match=r"^NearestNeighbors: it predicts nothing by itself"):
        NearestNeighbors().fit(X).certify(X)


def test_the_search_alone():
    X, Q = draw(8, n=200, queries=30)
    ours, theirs = NearestNeighbors(n_neighbors=6, p=1).fit(X), sk.NearestNeighbors(n_neighbors=6, p=1).fit(X)
    for part, expected in zip(ours.kneighbors(Q), theirs.kneighbors(Q)):
        assert np.allclose(part, expected)
    assert (ours.kneighbors_graph(Q) != theirs.kneighbors_graph(Q)).nnz == 0
    assert (ours.kneighbors_graph() != theirs.kneighbors_graph()).nnz == 0


def test_size_of_the_leaves():
    X, Q = draw(9, n=1000, d=3)
    small, large = Boxes(X, leaf=4), Boxes(X)
    assert len(small.leaves) == 8 * len(large.leaves)
    for part, expected in zip(nearest(small, Q, 5, None), nearest(large, Q, 5, None)):
        assert np.array_equal(part, expected)


def test_real_rows_of_many_sizes():
    """Columns of very different spread, whole numbers and ties, as real tables have."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine

    for load in (load_breast_cancer, load_wine, load_digits):
        X = load().data
        by_boxes = NearestNeighbors(algorithm="kd_tree").fit(X).kneighbors()
        by_products = NearestNeighbors(algorithm="brute").fit(X).kneighbors()
        assert np.array_equal(by_boxes[1], by_products[1])
        expected = sk.NearestNeighbors(algorithm="kd_tree").fit(X).kneighbors()[0]
        assert np.allclose(by_boxes[0], expected, rtol=1e-12)


# Numbers at the end of the range ------------------------------------------------------------------------------


def exact_powers(X, q, p):
    """Return the distance of each row, to the power p, in rational arithmetic."""
    gaps = [[abs(Fraction(a) - Fraction(b)) for a, b in zip(x, q)] for x in X.tolist()]
    return [max(row) if p == np.inf else sum(gap**p for gap in row) for row in gaps]


@pytest.mark.parametrize("p", [1, 2, 3, np.inf])
@pytest.mark.parametrize("algorithm", ["brute", "kd_tree"])
def test_distances_that_overflow_are_ranked(algorithm, p):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    X[3, 1], X[7, 0], X[60, 2], X[61, 2] = 1e300, -2e300, 1.5e308, -1.7e308
    Q = np.vstack([rng.normal(size=(5, 3)), X[[3, 7, 60, 61]] * 0.9, [[1e200, 0.0, -1e250]]])
    model = NearestNeighbors(n_neighbors=90, algorithm=algorithm, p=p).fit(X)
    index = model.kneighbors(Q, return_distance=False)
    for q, found in zip(Q.tolist(), index):
        assert sorted(found) == list(range(90))
        powers = [exact_powers(X, q, p)[i] for i in found]
        assert all(a <= b * Fraction(1 + 1e-12) for a, b in itertools.pairwise(powers))


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_a_vote_of_rows_that_are_infinitely_far(weights):
    X = np.random.default_rng(1).normal(size=(100, 2))
    y = (X[:, 0] > 0).astype(int)
    X[0, 0], X[1, 1] = 1e300, -1e300
    model = KNeighborsClassifier(5, weights=weights).fit(X, y)
    shares = model.predict_proba([[1e300, 1e300], [0.0, 0.0]])
    assert np.isfinite(shares).all()
    plain = KNeighborsClassifier(5, weights=weights).fit(X[2:], y[2:])
    assert np.array_equal(model.predict(X[2:]), plain.predict(X[2:]))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("algorithm", ["brute", "auto"])
def test_stored_rows_that_are_no_numbers_end_and_stay_in_range(algorithm, metric):
    X = np.random.default_rng(2).normal(size=(300, 3))
    model = NearestNeighbors(n_neighbors=4, algorithm=algorithm, metric=metric).fit(X)
    for bad in (np.nan, np.inf, -np.inf):
        for rows in (slice(0, 300), slice(10, 60), slice(7, 8)):
            model.fit_X_ = X.copy()
            model.fit_X_[rows, 1] = bad
            model._derive()
            with np.errstate(all="ignore"):
                _, index = model.kneighbors(X[:50])
            assert index.min() >= 0
            assert index.max() < 300


def test_cosine_of_huge_and_tiny_rows():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    model = NearestNeighbors(n_neighbors=1, metric="cosine", algorithm="brute").fit(X * [[1e300], [1e-300], [1e200]])
    distance, index = model.kneighbors([[3e250, 1e240], [1e-260, 3e-250], [2e-290, 2e-290]])
    assert index.ravel().tolist() == [0, 1, 2]
    assert np.abs(distance).max() < 1e-9

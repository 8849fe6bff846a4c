"""What scikit-learn's nearest neighbours take: graphs of distances, gaps, several targets, a radius for each row."""

import numpy as np
import pytest
import sklearn.neighbors as peers
from scipy.sparse import csr_array, dok_matrix

import assay
from assay import neighbors


def draw(seed=0, n=60, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(7, d)), rng


def pair(name, *args, **options):
    """Return ours and scikit-learn's."""
    return [getattr(room, name)(*args, **options) for room in (neighbors, peers)]


@pytest.mark.filterwarnings("ignore:Precomputed sparse input")
def test_a_graph_of_distances_is_searched_by_its_entries():
    X, Q, rng = draw()
    search = peers.NearestNeighbors(n_neighbors=12).fit(X)
    within, new = search.kneighbors_graph(X, mode="distance"), search.kneighbors_graph(Q, mode="distance")
    for name in ("KNeighborsRegressor", "RadiusNeighborsRegressor"):
        ours, peer = pair(name, 1.5 if "Radius" in name else 5, metric="precomputed")
        y = rng.normal(size=60)
        assert ours.fit(within, y).predict(new) == pytest.approx(peer.fit(within, y).predict(new), nan_ok=True)
    model = neighbors.NearestNeighbors(n_neighbors=5, metric="precomputed").fit(within)
    plain = neighbors.NearestNeighbors(n_neighbors=5).fit(X)
    for queries, rows in ((new, Q), (None, None)):
        distance, index = model.kneighbors(queries)
        assert np.array_equal(index, plain.kneighbors(rows)[1])
        assert distance == pytest.approx(plain.kneighbors(rows)[0])
    with pytest.raises(ValueError, match="13 neighbors per samples are required, but some samples have only 12"):
        model.kneighbors(new, 13)
    with pytest.raises(TypeError, match="explicit zeros"):
        model.kneighbors(dok_matrix(new))
    with pytest.raises(ValueError, match="Negative values"):
        model.kneighbors(-new)


@pytest.mark.filterwarnings("ignore:.*Mind that for 0 < p < 1")
def test_orders_below_one_and_gaps_agree():
    X, Q, rng = draw(1)
    gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    for options, rows in (({"p": 0.5}, X), ({"metric": "nan_euclidean"}, gaps)):
        ours, peer = pair("NearestNeighbors", n_neighbors=6, **options)
        for mine, theirs in zip(ours.fit(rows).kneighbors(Q), peer.fit(rows).kneighbors(Q)):
            assert mine == pytest.approx(theirs)
    with pytest.raises(ValueError, match="NaN"):
        neighbors.NearestNeighbors().fit(gaps)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_several_columns_of_labels(weights):
    X, Q, rng = draw(2)
    y = np.column_stack([rng.integers(0, 3, 60), rng.integers(5, 7, 60)])
    ours, peer = (model.fit(X, y) for model in pair("KNeighborsClassifier", 4, weights=weights))
    assert np.array_equal(ours.predict(Q), peer.predict(Q))
    assert all(a == pytest.approx(b) for a, b in zip(ours.predict_proba(Q), peer.predict_proba(Q)))
    with pytest.raises(ValueError, match="one target"):
        ours.certify(X, y)
    with pytest.raises(ValueError, match="several targets cannot be saved"):
        ours.stored()


def test_one_label_and_rows_of_another_model():
    X, Q, _ = draw(3)
    only = neighbors.KNeighborsClassifier().fit(X, np.ones(60))
    assert (only.predict(Q) == 1).all()
    with pytest.raises(ValueError, match="needs two classes"):
        only.certify(X, np.ones(60))
    for source in (only, peers.KDTree(X), peers.BallTree(X)):
        assert np.array_equal(neighbors.NearestNeighbors().fit(source).kneighbors(Q)[1], only.kneighbors(Q)[1])


def test_a_radius_for_each_row_and_sorted_graphs():
    X, Q, rng = draw(4)
    radii = rng.uniform(0.5, 2.0, size=7)
    model = neighbors.NearestNeighbors().fit(X)
    found = model.radius_neighbors(Q, radii, return_distance=False)
    for q, radius, rows in zip(Q, radii, found):
        assert np.array_equal(rows, np.flatnonzero(np.linalg.norm(X - q, axis=1) <= radius))
    graph = model.radius_neighbors_graph(Q, 1.5, mode="distance", sort_results=True)
    assert all((np.diff(graph.data[a:b]) >= 0).all() for a, b in zip(graph.indptr, graph.indptr[1:]))
    with pytest.raises(ValueError, match="one for each of 7 rows"):
        model.radius_neighbors(Q, radii[:3])


def test_weights_that_leave_nobody_are_refused():
    X, Q, rng = draw(5)
    model = neighbors.KNeighborsClassifier(3, weights=lambda distance: 0 * distance).fit(X, rng.integers(0, 2, 60))
    with pytest.raises(ValueError, match="zero weights"):
        model.predict(Q)


def test_sparse_rows_of_more_distances_and_a_certificate_of_the_plain_ones():
    X, Q, rng = draw(6)
    for metric in ("cosine", "l1", lambda a, b: float(abs(a - b).sum())):
        ours, peer = pair("NearestNeighbors", n_neighbors=4, metric=metric, algorithm="brute")
        assert np.array_equal(
            ours.fit(csr_array(X)).kneighbors(csr_array(Q))[1], peer.fit(csr_array(X)).kneighbors(csr_array(Q))[1]
        )
    y = rng.integers(0, 2, 60)
    model = neighbors.KNeighborsClassifier().fit(X, y)
    assert assay.verify(model.certify(X, y), model, X, y).holds


def test_radius_votes_of_several_columns_are_scikit_learns():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(60, 2)), rng.integers(0, 3, size=(60, 2))
    far = np.vstack([rng.normal(size=(20, 2)), [[50.0, 50.0]]])
    for label in (1, [0, 2], "most_frequent"):
        ours, theirs = pair("RadiusNeighborsClassifier", 0.7, outlier_label=label, weights="distance")
        ours.fit(X, Y), theirs.fit(X, Y)
        assert ours.outlier_label_ == theirs.outlier_label_
        np.testing.assert_array_equal(ours.predict(far), theirs.predict(far))
        np.testing.assert_allclose(ours.predict_proba(far), theirs.predict_proba(far), rtol=1e-12)
    with pytest.raises(ValueError, match="length"):
        neighbors.RadiusNeighborsClassifier(0.7, outlier_label=[0, 1, 2]).fit(X, Y)
    with pytest.raises(ValueError, match="one column"):
        ours.certify(X, Y[:, 0])


def test_scikit_learns_graphs_take_a_fitted_search():
    X, _, _ = draw()
    ours, theirs = pair("NearestNeighbors", n_neighbors=4, radius=0.8)
    for graph, reach in ((peers.radius_neighbors_graph, 0.8), (peers.kneighbors_graph, 4)):
        mine, wanted = (graph(one.fit(X), reach, mode="distance") for one in (ours, theirs))
        np.testing.assert_allclose(mine.toarray(), wanted.toarray())

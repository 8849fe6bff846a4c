"""PCA and TruncatedSVD: scikit-learn's numbers, the textbook's identities, any source of rows, what is proved."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA as Peer
from sklearn.decomposition import TruncatedSVD as PeerSVD

import assay
from assay.decomposition import PCA, TruncatedSVD, svd_with_rank

SOLVERS = ["full", "covariance_eigh", "auto"]
FITTED = ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_")


def table(seed=0, n=400, d=6, offset=5.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + offset


@pytest.mark.mission("DEC-01", "DEC-02")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("k", [None, 1, 3, 0.7, 0.999, "mle"])
def test_the_numbers_of_scikit_learn(solver, k):
    X = table()
    ours, peer = PCA(k, svd_solver=solver).fit(X), Peer(k, svd_solver=solver).fit(X)
    for name in FITTED:
        assert getattr(ours, name) == pytest.approx(getattr(peer, name), rel=1e-9, abs=1e-10), name
    assert ours.n_components_ == peer.n_components_
    assert ours.noise_variance_ == pytest.approx(peer.noise_variance_, rel=1e-9)
    assert ours.transform(X) == pytest.approx(peer.transform(X), abs=1e-9)
    assert ours.get_covariance() == pytest.approx(peer.get_covariance(), abs=1e-9)
    assert ours.get_precision() == pytest.approx(peer.get_precision(), rel=1e-6, abs=1e-9)
    assert ours.score_samples(X) == pytest.approx(peer.score_samples(X), abs=1e-7)
    assert ours.score(X) == pytest.approx(peer.score(X), abs=1e-8)


@pytest.mark.mission("DEC-01")
@pytest.mark.parametrize("k", [1, 2, 5, 6])
def test_components_are_orthonormal_and_what_is_lost_is_the_rest_of_the_variance(k):
    X = table(1)
    model = PCA(k).fit(X)
    assert model.components_ @ model.components_.T == pytest.approx(np.eye(k), abs=1e-12)
    lost = np.sum((X - model.inverse_transform(model.transform(X))) ** 2)
    dropped = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1][k:].sum()
    assert lost == pytest.approx(len(X) * dropped, abs=1e-9)


@pytest.mark.mission("DEC-02")
def test_eigenvectors_and_singular_vectors_agree():
    X = table(2)
    one, two = (PCA(svd_solver=solver).fit(X) for solver in ("full", "covariance_eigh"))
    assert one.components_ == pytest.approx(two.components_, abs=1e-9)
    assert one.explained_variance_ == pytest.approx(two.explained_variance_, rel=1e-10)


@pytest.mark.mission("DEC-03")
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.99])
def test_the_smallest_dimension_that_holds_a_share(share):
    X = table(3)
    ratio = np.cumsum(PCA().fit(X).explained_variance_ratio_)
    model = PCA(share).fit(X)
    assert model.n_components_ == int(np.argmax(ratio > share)) + 1
    assert model.explained_variance_ratio_.sum() > share


@pytest.mark.mission("DEC-04")
def test_fewer_columns_and_the_same_again():
    X = table(4)
    for model in (PCA(2), TruncatedSVD(2)):
        one, two = model.fit_transform(X), model.fit(X).transform(X)
        assert one.shape == (400, 2)
        assert np.array_equal(one, two)
        assert list(model.get_feature_names_out())[1].endswith("1")


def test_whitened_components_have_variance_one():
    X = table(5)
    model = PCA(3, whiten=True).fit(X)
    Z = model.transform(X)
    assert np.cov(Z.T) == pytest.approx(np.eye(3), abs=1e-10)
    assert model.inverse_transform(Z) == pytest.approx(PCA(3).fit(X).inverse_transform(PCA(3).fit_transform(X)))
    # The Gaussian model does not depend on the units of the components.
    assert model.get_covariance() == pytest.approx(PCA(3).fit(X).get_covariance())


def test_a_large_offset_does_not_cancel():
    X = table(6, offset=0.0)
    near, far = PCA(3).fit(X), PCA(3).fit(X + 1e7)
    assert far.explained_variance_ == pytest.approx(near.explained_variance_, rel=1e-7)


def test_a_few_components_of_wide_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 12)) @ rng.normal(size=(12, 700)) + 0.01 * rng.normal(size=(600, 700))
    ours, peer = PCA(5, random_state=0).fit(X), Peer(5, svd_solver="full").fit(X)
    assert ours.explained_variance_ == pytest.approx(peer.explained_variance_, rel=1e-6)
    proof = ours.certify(X).find("pca.optimality")
    assert proof.value < 1e-4 * peer.explained_variance_.sum()


def test_a_sketch_that_misses_a_direction_is_told_so():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 60))
    model = PCA(5, svd_solver="randomized", iterated_power=0, n_oversamples=0, random_state=0).fit(X)
    best = PCA(5, svd_solver="full").fit(X)
    held = np.sum((X - X.mean(axis=0)) @ model.components_.T @ model.components_ * (X - X.mean(axis=0))) / 300
    short = best.explained_variance_.sum() * 299 / 300 - held
    certificate = model.certify(X)
    assert short > 0.1
    assert certificate.find("pca.optimality").value == pytest.approx(short, rel=1e-4)
    assert assay.verify(certificate, model, X).holds
    assert best.certify(X).find("pca.optimality").value < 1e-8


@pytest.mark.mission("DEC-07")
def test_singular_values_of_a_scatter_matrix():
    X = table(7, d=5)
    X[:, 4] = X[:, 0] + X[:, 1]  # rank 4
    S = (X - X.mean(axis=0)).T @ (X - X.mean(axis=0))
    found = svd_with_rank(S)
    assert found.rank == 4 == np.linalg.matrix_rank(X - X.mean(axis=0))
    assert (found.U * found.singular_values) @ found.Vt == pytest.approx(S, abs=1e-12 * np.abs(S).max())
    assert np.allclose(found.U.T @ found.U, np.eye(4), atol=1e-12)
    middle = float(np.sqrt(found.singular_values[1] * found.singular_values[2]))
    assert svd_with_rank(S, middle / found.singular_values[0]).rank == 2
    assert svd_with_rank(np.zeros((3, 2))).rank == 0
    with pytest.raises(ValueError, match="tol must be a number in"):
        svd_with_rank(S, -0.1)
    model = TruncatedSVD(found.rank).fit(S)
    assert model.inverse_transform(model.transform(S)) == pytest.approx(S, abs=1e-8 * np.abs(S).max())
    assert model.singular_values_ == pytest.approx(np.linalg.svd(S, compute_uv=False)[:4], rel=1e-8)


@pytest.mark.parametrize("algorithm", ["auto", "gram", "randomized", "arpack"])
def test_truncated_decomposition_against_scikit_learn(algorithm):
    from scipy.sparse import csr_array

    X = np.maximum(table(8, offset=0.0), 0.0)
    for rows in (X, csr_array(X)):
        ours = TruncatedSVD(3, algorithm=algorithm, random_state=0).fit(rows)
        peer = PeerSVD(3, algorithm="arpack", random_state=0).fit(X)
        assert np.abs(ours.components_ @ peer.components_.T) == pytest.approx(np.eye(3), abs=1e-6)
        for name in ("singular_values_", "explained_variance_", "explained_variance_ratio_"):
            assert getattr(ours, name) == pytest.approx(getattr(peer, name), rel=1e-6)
        certificate = ours.certify(rows)
        assert certificate.find("pca.optimality").value < 1e-8
        assert assay.verify(certificate, ours, rows).holds


def test_parquet_and_dask_rows(tmp_path):
    import dask.array as da
    import pyarrow as pa
    from pyarrow import parquet

    X = table(9, n=3000)
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({name: X[:, j] for j, name in enumerate("abcdef")}), path, row_group_size=700)
    for make in (lambda: PCA(2), lambda: TruncatedSVD(2)):
        memory = make().fit(X)
        for source in (str(path), da.from_array(X, chunks=(1100, 6))):
            model = make().fit(source)
            assert model.components_ == pytest.approx(memory.components_, abs=1e-11)
            assert model.explained_variance_ == pytest.approx(memory.explained_variance_, rel=1e-11)
        certificate = memory.certify(str(path))
        assert assay.verify(certificate, memory, X).holds
    with pytest.raises(ValueError, match="needs the rows in memory"):
        PCA(2, svd_solver="full").fit(str(path))


def test_threads_change_no_bit():
    X = table(10, n=20_000, d=20)
    one, two = (PCA(4, n_jobs=k).fit(X) for k in (1, 3))
    assert np.array_equal(one.components_, two.components_)
    assert np.array_equal(one.explained_variance_, two.explained_variance_)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PCA(0, svd_solver="arpack"), "PCA: n_components=0 must be between 1 and min"),
        (PCA(-1), "PCA: n_components=-1 must be between 0 and min"),
        (PCA(7), "PCA: n_components=7 must be between 0 and min"),
        (PCA(1.5), "PCA: n_components=1.5 must be"),
        (PCA("all"), "PCA: n_components='all' must be"),
        (PCA(svd_solver="arpac"), "PCA: svd_solver must be one of"),
        (PCA(0.5, svd_solver="randomized"), "PCA: n_components=0.5 cannot be a share"),
        (TruncatedSVD(0), "TruncatedSVD: n_components must be an integer >= 1"),
        (TruncatedSVD(7), "TruncatedSVD: n_components must be at most the number of columns, 6"),
        (TruncatedSVD(6, algorithm="arpack"), "TruncatedSVD: algorithm='arpack' finds fewer"),
    ],
    ids=str,
)
def test_parameters_are_refused(model, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        model.fit(table())


def test_no_components_leave_the_mean(tmp_path):
    """The flat of no dimensions that is nearest to the rows is their mean; the Gaussian model is a sphere."""
    X = table()
    model, peer = PCA(0, svd_solver="full").fit(X), Peer(0, svd_solver="full").fit(X)
    assert model.transform(X).shape == (len(X), 0)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), np.tile(X.mean(axis=0), (len(X), 1)))
    assert model.score(X) == pytest.approx(peer.score(X))
    certificate = model.certify(X, radius=float(np.linalg.norm(X, axis=1).max() * 1.01))
    assert assay.verify(certificate, model, X).holds
    moved = PCA(0, svd_solver="full").fit(X)
    moved.center_ = moved.center_ + 1e-3
    assert not assay.verify(certificate, moved, X).holds


def test_variances_of_a_sketch_are_those_along_its_directions():
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 80))
    model = PCA(2, svd_solver="randomized", random_state=0, iterated_power=0).fit(X)
    np.testing.assert_allclose(model.explained_variance_, np.var(model.transform(X), axis=0, ddof=1), rtol=1e-10)
    assert model.explained_variance_[0] >= model.explained_variance_[1]


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="at least 2 rows"):
        PCA().fit([[1.0, 2.0]])
    with pytest.raises(ValueError, match="n_samples >= n_features"):
        PCA("mle").fit(table(n=5, d=8))


@pytest.mark.parametrize("model", [PCA(2), TruncatedSVD(2)], ids=repr)
def test_coordinates_of_other_width_are_refused(model):
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=r"inverse_transform takes 2 columns.*got shape \(20, 3\)"):
        model.fit(X).inverse_transform(X)


def test_coverage_needs_a_target():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="PCA: coverage is about predictions of a target"):
        PCA(2).fit(X).certify(X, holdout=(X, None), coverage=0.9)


@pytest.mark.parametrize("solver", ["arpack", "covariance_eigh", "auto"])
@pytest.mark.parametrize("size", [(400, 60, 0.05), (400, 60, 0.4), (60, 400, 0.05), (700, 600, 0.02)])
def test_sparse_components_are_those_of_dense_rows(solver, size):
    X = sp.random(*size, format="csr", random_state=0)
    model, dense = PCA(4, svd_solver=solver, random_state=0).fit(X), PCA(4, svd_solver="full").fit(X.toarray())
    np.testing.assert_allclose(model.explained_variance_, dense.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(model.noise_variance_, dense.noise_variance_, rtol=1e-9)
    np.testing.assert_allclose(model.components_, dense.components_, atol=1e-7)


def test_sparse_columns_far_from_zero_keep_their_digits():
    rng = np.random.default_rng(0)
    X = np.zeros((200, 30))
    X[:, :3] = 1e7 + rng.normal(size=(200, 3))
    few, dense = (PCA(2, svd_solver="covariance_eigh").fit(rows) for rows in (sp.csr_array(X), X))
    np.testing.assert_allclose(few.explained_variance_, dense.explained_variance_, rtol=1e-6)

"""Linear discriminant analysis: threshold, singular scatter, solvers as in scikit-learn, files, refusals."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError, subspace_angles
from sklearn.covariance import OAS
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as PeerLDA

import assay
from assay.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    SingularScatterWarning,
    fisher_direction,
)
from tests.discriminant_analysis.gaussian_classes import certified_or_said_why_not, draw, parts


@pytest.mark.mission("LIN-32")
def test_singular_scatter_uses_the_pseudo_inverse_and_says_so():
    X, y = draw(5, n=60)
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    with pytest.warns(SingularScatterWarning, match="4 of 5 directions"):
        model = LinearDiscriminantAnalysis().fit(X, y)
    assert model.rank_ == 4
    plain = LinearDiscriminantAnalysis().fit(X[:, :4], y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X[:, :4]), rtol=1e-6)
    _, means, scatter = parts(X, y)
    w = fisher_direction(scatter.sum(axis=0), means[1] - means[0])
    np.testing.assert_allclose(
        w, np.linalg.pinv(scatter.sum(axis=0), hermitian=True) @ (means[1] - means[0]), rtol=1e-6, atol=1e-9
    )
    assert any("singular" in one.reason for one in model.certify(X, y).not_applicable)
    shrunk = LinearDiscriminantAnalysis("lsqr", shrinkage=0.1).fit(X, y)
    assert shrunk.rank_ == 5
    assert assay.verify(shrunk.certify(X, y), shrunk, X, y).holds


@pytest.mark.mission("LIN-33", "LIN-34")
def test_threshold_is_half_way_between_the_projected_means():
    X, y = draw(6)
    model = LinearDiscriminantAnalysis(priors=[0.5, 0.5]).fit(X, y)
    _, means, _ = parts(X, y)
    w = model.coef_[0]
    s = X @ w
    assert model.threshold_ == pytest.approx(w @ (means[0] + means[1]) / 2, rel=1e-10)
    np.testing.assert_allclose(model.project(X), s, rtol=1e-13)
    assert model.project(X).shape == (len(X),)
    np.testing.assert_array_equal(model.predict(X), (model.project(X) > model.threshold_).astype(int))
    own = np.linalg.solve(sum(np.cov(X[y == k].T, bias=True) * np.mean(y == k) for k in (0, 1)), means[1] - means[0])
    np.testing.assert_allclose(model.project(X) / np.linalg.norm(w), X @ own / np.linalg.norm(own), rtol=1e-8)
    shifted = LinearDiscriminantAnalysis(priors=[0.2, 0.8]).fit(X, y)
    assert model.threshold_ - shifted.threshold_ == pytest.approx(np.log(0.8 / 0.2), rel=1e-9)
    along = model.transform(X)[:, 0]
    assert abs(np.corrcoef(along, s)[0, 1]) == pytest.approx(1, abs=1e-12)
    with pytest.raises(AttributeError, match="two classes"):
        LinearDiscriminantAnalysis().fit(*draw(1, classes=3)).threshold_  # noqa: B018
    with pytest.raises(ValueError, match="two classes alone"):
        LinearDiscriminantAnalysis().fit(*draw(1, classes=3)).project(X)


@pytest.mark.mission("LIN-37")
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_agrees_with_scikit_learn(load):
    X, y = load(return_X_y=True)
    ours, peer = LinearDiscriminantAnalysis().fit(X, y), PeerLDA().fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-9, atol=1e-11 * np.abs(peer.coef_).max())
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-10)
    np.testing.assert_allclose(ours.explained_variance_ratio_, peer.explained_variance_ratio_, atol=1e-12)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(peer.transform(X)), atol=1e-9)
    eigen = PeerLDA(solver="eigen").fit(X, y)
    k = ours.scalings_.shape[1]
    assert subspace_angles(ours.scalings_, eigen.scalings_[:, :k]).max() < 1e-5
    auto, peer = (
        LinearDiscriminantAnalysis("lsqr", shrinkage="auto").fit(X, y),
        PeerLDA(solver="lsqr", shrinkage="auto").fit(X, y),
    )
    np.testing.assert_allclose(auto.predict_proba(X), peer.predict_proba(X), atol=1e-6)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_files_and_clusters_give_the_same_directions(tmp_path):
    import dask.array as da
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = draw(11, n=20_000, classes=3)
    pq.write_table(pa.table([*X.T.copy(), y], names=["a", "b", "c", "d", "y"]), tmp_path / "rows.parquet")
    for kind in (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis):
        memory = kind().fit(X, y)
        parquet = kind().fit(str(tmp_path / "rows.parquet"), "y")
        dask = kind().fit(da.from_array(X, chunks=(3_000, 4)), da.from_array(y, chunks=3_000))
        for other in (parquet, dask):
            np.testing.assert_allclose(other.decision_function(X), memory.decision_function(X), rtol=1e-8, atol=1e-8)
    certificate = memory.certify(str(tmp_path / "rows.parquet"), "y")
    assert assay.verify(certificate, memory, X, y).holds


def test_threads_change_no_bit():
    X, y = draw(12, n=40_000)
    one, two = (LinearDiscriminantAnalysis(n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_refusals_say_what_is_wrong():
    X, y = draw(13)
    for kind, options, words in [
        (LinearDiscriminantAnalysis, {"shrinkage": 2}, "shrinkage must be"),
        (LinearDiscriminantAnalysis, {"priors": [0.5, -0.5]}, "priors must be non-negative"),
        (LinearDiscriminantAnalysis, {"n_components": 2}, r"larger than min\(n_features, n_classes - 1\) = 1"),
        (LinearDiscriminantAnalysis, {"solver": "qr"}, "'svd', 'lsqr', 'eigen'"),
        (LinearDiscriminantAnalysis, {"covariance": "both"}, "'pooled', 'equal'"),
        (QuadraticDiscriminantAnalysis, {"reg_param": -1}, "reg_param must be"),
    ]:
        with pytest.raises(ValueError, match=words):
            kind(**options).fit(X, y)
    with pytest.raises(ValueError, match="two rows"):
        QuadraticDiscriminantAnalysis().fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    with pytest.raises(NotImplementedError, match="shrinkage not supported"):
        LinearDiscriminantAnalysis(shrinkage=0.5).fit(X, y)
    with pytest.raises(NotImplementedError, match="transform not implemented"):
        LinearDiscriminantAnalysis("lsqr").fit(X, y).transform(X)
    flat = np.column_stack([X, X[:, 0]])
    with pytest.raises(LinAlgError, match=r"covariance matrix of class .+ is not full rank"):
        QuadraticDiscriminantAnalysis().fit(flat, y)
    with pytest.warns(UserWarning, match="reg_param belongs to solver='svd'"):
        QuadraticDiscriminantAnalysis(solver="eigen", reg_param=0.1).fit(X, y)


def _options(solver, **more):
    return {"solver": solver, "store_covariance": True, **more}


@pytest.mark.parametrize("priors", [None, [0.2, 0.3, 0.5]])
@pytest.mark.parametrize(
    "options",
    [
        _options("svd"),
        _options("lsqr"),
        _options("eigen"),
        _options("lsqr", shrinkage=0.4),
        _options("eigen", shrinkage=0.4),
        _options("eigen", shrinkage="auto"),
        _options("eigen", covariance_estimator=OAS()),
        _options("lsqr", covariance_estimator=OAS()),
    ],
    ids=str,
)
def test_every_solver_has_scikit_learns_meaning(options, priors):
    X, y = load_wine(return_X_y=True)
    ours, peer = (kind(priors=priors, **options).fit(X, y) for kind in (LinearDiscriminantAnalysis, PeerLDA))
    if options["solver"] != "svd" or priors is None:  # there scikit-learn shows another matrix than it uses
        np.testing.assert_allclose(ours.covariance_, peer.covariance_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-9)
    if options["solver"] != "lsqr":
        np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(peer.transform(X)), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(ours.explained_variance_ratio_, peer.explained_variance_ratio_, atol=1e-9)
    certified_or_said_why_not(ours, X, y)


def test_single_precision_is_kept_and_certified():
    X, y = draw(16, n=200, classes=3)
    X = X.astype(np.float32)
    model = LinearDiscriminantAnalysis().fit(X, y)
    assert model.coef_.dtype == np.float32
    assert assay.verify(model.certify(X, y), model, X, y).holds

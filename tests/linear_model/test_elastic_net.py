"""Lasso, elastic net and their path: against scikit-learn, optimality conditions and a quadratic
programme."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from scipy.optimize import minimize

import assay
from assay.linear_model import ElasticNet, Lasso, LinearRegression, Ridge, elastic_net_path


def draw(seed, n=200, d=12, shift=3.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d))) + shift
    return X, X[:, :4] @ [1.0, -2.0, 0.5, 0.25] + rng.normal(size=n) + 10


@pytest.mark.parametrize("alpha", [0.01, 0.3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ratio", [1.0, 0.4])
def test_agrees_with_scikit_learn(alpha, intercept, ratio):
    X, y = draw(0)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    for s in (None, weight):
        ours = ElasticNet(alpha, l1_ratio=ratio, fit_intercept=intercept, tol=1e-14).fit(X, y, s)
        peer = sk.ElasticNet(alpha, l1_ratio=ratio, fit_intercept=intercept, tol=1e-14, max_iter=200_000).fit(X, y, s)
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-6)
        np.testing.assert_allclose(ours.predict(X), peer.predict(X), atol=1e-5)
        certificate = ours.certify(X, y, sample_weight=s)
        report = assay.verify(certificate, ours, X, y, sample_weight=s)
        assert report.holds, report.reason


def test_the_gap_bounds_the_true_distance_and_a_worse_model_is_caught():
    """The optimum from a split into positive and negative parts, solved by another method."""
    X, y = draw(2, d=5)
    l1 = 200 * 0.2

    def objective(w, b):
        return 0.5 * np.sum((y - X @ w - b) ** 2) + l1 * np.abs(w).sum()

    def split(v):
        _w, r = v[:5] - v[5:10], y - X @ (v[:5] - v[5:10]) - v[10]
        slope = -X.T @ r
        return 0.5 * r @ r + l1 * v[:10].sum(), np.concatenate([slope + l1, -slope + l1, [-r.sum()]])

    best = minimize(
        split,
        np.zeros(11),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * 10 + [(None, None)],
        options={"maxiter": 50_000, "ftol": 1e-16, "gtol": 1e-10},
    ).fun
    model = Lasso(0.2).fit(X, y)
    claim = model.certify(X, y).find("elastic-net.gap")
    assert objective(model.coef_, model.intercept_) - best <= claim.value < 1e-3
    model.coef_ = model.coef_ * 1.01
    worse = model.certify(X, y)
    assert worse.find("elastic-net.gap").value >= objective(model.coef_, model.intercept_) - best > claim.value
    assert assay.verify(worse, model, X, y).holds
    forged = replace(worse, claims=tuple(claim if c.name == "duality-gap" else c for c in worse.claims))
    assert "elastic-net.gap" in assay.verify(forged, model, X, y).reason
    l1 = claim.params["penalty"]["L1"]
    for change in ({"penalty": {"L1": 2 * l1}}, {"intercept": False}, {"penalty": {"L1": l1, "L2": -1.0}}):
        wrong = replace(claim, params={**claim.params, **change})
        claims = tuple(wrong if c.name == "duality-gap" else c for c in worse.claims)
        assert not assay.verify(replace(worse, claims=claims), model, X, y).holds


@pytest.mark.mission("LIN-08")
def test_pure_l2_is_ridge_and_small_l1_is_least_squares():
    X, y = draw(3)
    ours = ElasticNet(0.5, l1_ratio=0.0, tol=1e-15).fit(X, y)
    ridge = Ridge(0.5 * len(y)).fit(X, y)
    closed = np.linalg.solve((Xc := X - X.mean(axis=0)).T @ Xc + 0.5 * len(y) * np.eye(12), Xc.T @ (y - y.mean()))
    peer = sk.Ridge(0.5 * len(y)).fit(X, y)
    for other in (ridge.coef_, closed, peer.coef_):
        np.testing.assert_allclose(ours.coef_, other, atol=1e-7)
    np.testing.assert_allclose(Lasso(1e-9, tol=1e-15).fit(X, y).coef_, LinearRegression().fit(X, y).coef_, atol=1e-5)
    top = np.abs(Xc.T @ (y - y.mean())).max() / len(y)
    assert not Lasso(top * 1.0001).fit(X, y).coef_.any()
    assert Lasso(top * 0.99).fit(X, y).coef_.any()


def test_nearly_dependent_columns_converge():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40)) + 5
    y = X[:, :5].sum(axis=1) + rng.normal(size=300) + 100
    model = Lasso(0.1, fit_intercept=False).fit(X, y)
    assert model.dual_gap_ <= 1e-8 * 0.5 * y @ y
    assert assay.verify(model.certify(X, y), model, X, y).holds


def test_path_is_that_of_scikit_learn_and_of_single_fits():
    X, y = draw(4)
    path = elastic_net_path(X, y, l1_ratio=0.7, n_alphas=30, tol=1e-13)
    centred = X - X.mean(axis=0)
    _, coefs, _ = sk.enet_path(centred, y - y.mean(), l1_ratio=0.7, alphas=path.alphas, tol=1e-12, max_iter=100_000)
    top = np.abs(centred.T @ (y - y.mean())).max() / (0.7 * len(y))
    np.testing.assert_allclose(path.alphas, top * np.geomspace(1, 1e-3, 30), rtol=1e-9)
    np.testing.assert_allclose(path.coefs, coefs, atol=1e-5)
    one = ElasticNet(path.alphas[11], l1_ratio=0.7, tol=1e-13).fit(X, y)
    np.testing.assert_allclose(path.coefs[:, 11], one.coef_, atol=1e-6)
    assert path.intercepts[11] == pytest.approx(one.intercept_, abs=1e-5)
    assert (path.gaps <= 1e-13 * np.sum((y - y.mean()) ** 2)).all()
    assert not path.coefs[:, 0].any()


def test_sparse_rows_files_and_clusters_give_the_same_coefficients(tmp_path):
    import dask.array as da
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = draw(5, n=3000, d=4)
    X = X * (np.random.default_rng(0).random(X.shape) < 0.4)
    memory = Lasso(0.05).fit(X, y)
    pq.write_table(pa.table([*X.T.copy(), y], names=["a", "b", "c", "d", "y"]), tmp_path / "rows.parquet")
    others = [
        Lasso(0.05).fit(sp.csr_matrix(X), y),
        Lasso(0.05).fit(sp.csc_matrix(X), y),
        Lasso(0.05).fit(str(tmp_path / "rows.parquet"), "y"),
        Lasso(0.05).fit(da.from_array(X, chunks=(700, 4)), da.from_array(y, chunks=700)),
    ]
    for other in others:
        np.testing.assert_allclose(other.coef_, memory.coef_, atol=1e-7)
    certificate = others[0].certify(sp.csr_matrix(X), y)
    assert assay.verify(certificate, others[0], X, y).holds
    np.testing.assert_allclose(others[0].predict(sp.csr_matrix(X)), memory.predict(X), atol=1e-6)


def test_refusals_say_what_is_wrong():
    X, y = draw(6)
    for options, words in [({"alpha": -1}, "alpha must be"), ({"l1_ratio": 2}, "l1_ratio must be")]:
        with pytest.raises(ValueError, match=words):
            ElasticNet(**options).fit(X, y)
    with pytest.raises(ValueError, match="one column; got 2"):
        elastic_net_path(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="did not pass validation"):
        Lasso(precompute=np.eye(X.shape[1])).fit(X, y)
    with pytest.raises(ValueError, match="pass alphas"):
        elastic_net_path(X, y, l1_ratio=0.0)


@pytest.mark.parametrize("ratio", [0.0, 0.4, 1.0])
def test_positive_coefficients_are_scikit_learns(ratio):
    X, y = draw(7)
    X = np.hstack([X, -X + 0.1 * np.random.default_rng(0).normal(size=X.shape)])
    ours = ElasticNet(0.05, l1_ratio=ratio, positive=True, tol=1e-12).fit(X, y)
    other = sk.ElasticNet(alpha=0.05, l1_ratio=ratio, positive=True, tol=1e-12, max_iter=10**6).fit(X, y)
    assert ours.coef_.min() == 0.0
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-6)
    certificate = ours.certify(X, y)
    assert assay.verify(certificate, ours, X, y).holds
    assert any("coefficients >= 0" in one.reason for one in certificate.not_applicable)


def test_several_targets_are_several_fits():
    X, y = draw(8)
    Y = np.column_stack([y, X[:, 0] - y])
    both = Lasso(0.05).fit(X, Y)
    assert both.coef_.shape == (2, X.shape[1])
    for k in range(2):
        one = Lasso(0.05).fit(X, Y[:, k])
        np.testing.assert_array_equal(both.coef_[k], one.coef_)
        assert both.dual_gap_[k] == one.dual_gap_
    np.testing.assert_allclose(both.predict(X)[:, 1], one.predict(X))
    assert assay.verify(both.certify(X, Y), both, X, Y).holds


def test_a_warm_start_goes_on_from_the_last_coefficients():
    X, y = draw(9)
    model = Lasso(0.05, tol=1e-12).fit(X, y)
    cold, found = model.n_iter_, model.coef_
    again = model.set_params(warm_start=True).fit(X, y)
    assert again.n_iter_ < cold
    np.testing.assert_allclose(again.coef_, found, atol=1e-9)


def test_a_warm_start_notices_rows_that_changed_in_place():
    random = np.random.default_rng(3)
    X, y, weight = random.normal(size=(60, 5)), random.normal(size=60), random.uniform(0.5, 2.0, 60)
    model = Lasso(alpha=0.01, warm_start=True)

    def agrees(**given):
        peer = sk.Lasso(alpha=0.01, tol=1e-12, max_iter=100_000, fit_intercept=model.fit_intercept)
        assert model.fit(X, y, **given).coef_ == pytest.approx(peer.fit(X, y, **given).coef_, abs=1e-6)

    agrees()
    agrees()
    X[17, 3] += 1.0
    agrees()
    y[4] = -y[4]
    agrees()
    agrees(sample_weight=weight)
    model.set_params(fit_intercept=False)
    agrees()
    X[[2, 3]] = X[[3, 2]]
    agrees()
    assert len(pickle.dumps(model)) < 4_000  # what it remembers of the rows is not part of the model


def test_without_a_penalty_it_is_least_squares_and_says_so():
    X, y = draw(10)
    with pytest.warns(UserWarning, match="use the LinearRegression"):
        model = ElasticNet(alpha=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-9)
    assert assay.verify(model.certify(X, y), model, X, y).holds


def test_sparse_coefficients_and_path_are_scikit_learns():
    X, y = draw(11)
    ours, other = Lasso(0.1).fit(X, y), sk.Lasso(alpha=0.1, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.sparse_coef_.toarray(), other.sparse_coef_.toarray(), atol=1e-6)
    alphas, coefs, _ = Lasso.path(X, y, l1_ratio=1.0, alphas=[0.1, 0.01], tol=1e-13)
    expected = sk.lasso_path(X, y, alphas=[0.1, 0.01], tol=1e-13, max_iter=10**6)
    np.testing.assert_allclose(alphas, expected[0])
    np.testing.assert_allclose(coefs, expected[1], atol=1e-6)

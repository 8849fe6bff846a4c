"""LinearSVC and LinearSVR: sparse rows, samples to start from, and files lead to the optimum of the arrays."""

import zlib

import numpy as np
import pytest
import scipy.sparse as sp

import assay
from assay.svm import LinearSVC, LinearSVR, _linear_problem, _linear_solvers
from tests.svm.linear_problems import HINGE, TUBE, objective

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dual", [True, False])
def test_sparse_rows_give_the_dense_model(dual, index):
    random = np.random.default_rng(2)
    X = random.normal(size=(150, 30)) * (random.random((150, 30)) < 0.2)
    X[:3] = 0.0
    y, target = (X[:, 0] + X[:, 1] + 0.3 * random.normal(size=150) > 0).astype(int), X[:, 0] + random.normal(size=150)
    table = sp.csr_matrix(X)
    table.indices, table.indptr = table.indices.astype(index), table.indptr.astype(index)
    for kind, losses, t in ((LinearSVC, HINGE, y), (LinearSVR, TUBE, target)):
        for loss in losses:
            settings = {"loss": loss, "dual": dual, "tol": 1e-6, "random_state": 0, "max_iter": 20_000}
            dense, sparse = (kind(**settings).fit(rows, t) for rows in (X, table))
            np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-5)
            np.testing.assert_allclose(sparse.predict(table), dense.predict(X), atol=1e-4)


def test_sparse_rows_are_never_made_dense(monkeypatch):
    random = np.random.default_rng(0)
    X = sp.random(300, 5_000, density=0.01, format="csr", random_state=0)
    y = (X @ random.normal(size=5_000) > 0).astype(int)
    monkeypatch.setattr(sp.csr_matrix, "toarray", lambda self: pytest.fail("made dense"))
    model = LinearSVC().fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("loss", HINGE + TUBE)
def test_many_rows_start_on_a_sample_and_end_at_the_same_optimum(loss, monkeypatch):
    random = np.random.default_rng(5)
    X = random.normal(size=(6_000, 4))
    score = X @ [1.0, -0.5, 0.2, 0.0] + 0.5 * random.normal(size=6_000)
    kind, y = (LinearSVC, (score > 0.3).astype(int)) if loss in HINGE else (LinearSVR, score)
    whole = kind(loss=loss, tol=1e-6).fit(X, y)
    monkeypatch.setattr(_linear_problem, "_SAMPLE", 300)
    monkeypatch.setattr(_linear_solvers, "_WHOLE", 100)
    sampled = kind(loss=loss, tol=1e-6).fit(X, y)
    params = {"loss": loss, "C": 1.0}
    assert objective(sampled, X, y, None, params) == pytest.approx(objective(whole, X, y, None, params), rel=1e-10)
    np.testing.assert_allclose(sampled.coef_, whole.coef_, atol=1e-4)


def test_a_sorted_table_misleads_the_sample_but_not_the_fit(monkeypatch):
    """Every tenth row is of one class, so that the sample's optimum is far away."""
    random = np.random.default_rng(6)
    X = random.normal(size=(3_000, 3))
    y = (X[:, 0] + 0.3 * random.normal(size=3_000) > 0).astype(int)
    y[::10], y[1] = 0, 1
    whole = LinearSVC(loss="hinge", tol=1e-6).fit(X, y)
    monkeypatch.setattr(_linear_problem, "_SAMPLE", 300)
    monkeypatch.setattr(_linear_solvers, "_WHOLE", 100)
    sampled = LinearSVC(loss="hinge", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(sampled.coef_, whole.coef_, atol=1e-4)


def test_files_give_the_model_of_the_arrays(tmp_path):
    import pandas as pd

    random = np.random.default_rng(7)
    X = random.normal(size=(500, 3))
    y = (X[:, 0] + random.normal(size=500) > 0).astype(int)
    table = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    table.to_parquet(tmp_path / "rows.parquet")
    for loss in HINGE:
        from_file = LinearSVC(loss=loss).fit(str(tmp_path / "rows.parquet"), "y")
        np.testing.assert_allclose(from_file.coef_, LinearSVC(loss=loss).fit(X, y).coef_, atol=1e-7)
    with pytest.raises(ValueError, match=r"^LinearSVC: coordinate descent .* needs the rows in memory"):
        LinearSVC(dual=True).fit(str(tmp_path / "rows.parquet"), "y")


def test_multipliers_that_reach_their_bound_end_the_interior_point_method():
    """Asked for more than doubles hold, the method comes to rest; sample 27 of this stream once was an error."""
    name = b"stability.uniform linear support vector regression on the circle, absolute loss up to 2, n = 1000"
    rng = np.random.default_rng([zlib.crc32(name), 200])
    for _ in range(28):
        angle = rng.uniform(0, 2 * np.pi, 1000)
        X = np.column_stack([np.cos(angle), np.sin(angle)])
        y = 0.5 * X[:, 0] + rng.uniform(-1, 1, 1000)
    model = LinearSVR(C=5e-4, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert assay.verify(model.certify(X, y), model, X, y).holds

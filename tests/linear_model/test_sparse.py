"""Sparse rows: the same answer as dense ones, from learners that read them as they are or block by block."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier

import assay
from assay.linear_model import (
    ElasticNet,
    Lasso,
    LogisticRegression,
    Perceptron,
    Pocket,
    SGDClassifier,
    SGDRegressor,
)
from assay.scan import rows

READERS = [
    Perceptron(random_state=0),
    Perceptron(shuffle=False),
    Pocket(random_state=0, max_updates=200),
    SGDClassifier(alpha=0.01, max_iter=20, fit_intercept=False, random_state=0),
    SGDClassifier("log_loss", alpha=0.01, max_iter=20, batch_size=16, optimizer="adam", eta0=0.01, random_state=0),
    SGDRegressor(alpha=0.01, max_iter=20, fit_intercept=False, random_state=0),
    LogisticRegression(),
    Lasso(0.01, tol=1e-12),
    ElasticNet(0.01, tol=1e-12),
]


def draw(n=600, d=20):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.2)
    return X, (X @ np.linspace(-1, 1, d) > 0.05).astype(int)


def test_blocks_of_sparse_rows_are_those_of_dense_rows():
    X, y = draw(5000)
    for kind in (sp.csr_matrix, sp.csc_matrix, sp.csr_array):
        for one, two in zip(rows(kind(X), y).blocks(), rows(X, y).blocks(), strict=True):
            np.testing.assert_array_equal(one.X, two.X)
            np.testing.assert_array_equal(one.y, two.y)
            assert one.X.flags.c_contiguous


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("model", READERS, ids=str)
def test_sparse_and_dense_fits_agree_and_certify(model, kind):
    X, y = draw()
    y = y if is_classifier(model) else X @ np.linspace(-1, 1, X.shape[1]) + 0.1 * y
    dense, sparse = (clone(model).fit(table, y) for table in (X, kind(X)))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-7, atol=1e-9)
    if is_classifier(model):
        np.testing.assert_array_equal(sparse.predict(kind(X)), dense.predict(X))
    else:
        np.testing.assert_allclose(sparse.predict(kind(X)), dense.predict(X), atol=1e-7)
    certificate = sparse.certify(kind(X), y)
    for table in (X, kind(X)):
        report = assay.verify(certificate, sparse, table, y)
        assert report.holds, report.reason
    wrong = kind(X + np.eye(len(X), X.shape[1]))
    assert not assay.verify(certificate, sparse, wrong, y).holds


def test_sparse_rows_with_missing_values_are_refused():
    X, y = draw()
    X[3, 4] = np.nan
    for model in (Perceptron(), LogisticRegression()):
        with pytest.raises(ValueError, match="NaN"):
            model.fit(sp.csr_matrix(X), y)

"""Logistic regression on sparse rows of many entries, whose sums are made by loops on threads."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from assay.data.blocks import Block
from assay.linear_model import LogisticRegression, _logistic_problem


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(0)
    X = sp.random(4_000, 400, 0.08, format="csr", random_state=0, data_rvs=rng.standard_normal)
    w = rng.normal(size=400)
    y = (rng.random(4_000) < expit(X @ w)).astype(np.int64)
    assert X.nnz >= _logistic_problem._MANY
    return X, y, rng.uniform(0.0, 2.0, 4_000), 0.3 * rng.normal(size=(1, 400)), np.array([0.2])


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_dense_formulas(drawn, weighted):
    X, y, weight, coef, b = drawn
    block = Block(X, y, weight if weighted else None, 0)
    cost = np.array([0.7, 1.3])
    C = cost[y] * (weight if weighted else 1.0)
    A, sign = np.column_stack([X.toarray(), np.ones(len(y))]), 2.0 * y - 1.0
    z = sign * (A @ np.append(coef, b))
    value, slope, pull = _logistic_problem.sparse_value_slopes(block, coef, b, cost)
    assert value == pytest.approx(np.sum(C * np.logaddexp(0.0, -z)), rel=1e-12)
    np.testing.assert_allclose(np.append(slope, pull), A.T @ (-C * sign * expit(-z)), rtol=1e-10, atol=1e-10)
    v, v0 = np.random.default_rng(1).normal(size=(1, 400)), np.array([-0.5])
    found, total = _logistic_problem.sparse_products(block, coef, b, cost)(v, v0)
    hessian = A.T @ ((C * expit(z) * expit(-z))[:, None] * A)
    np.testing.assert_allclose(np.append(found, total), hessian @ np.append(v, v0), rtol=1e-9, atol=1e-9)


def test_scores_far_out_do_not_overflow(drawn):
    X, y, _, coef, b = drawn
    value, slope, _ = _logistic_problem.sparse_value_slopes(Block(X, y, None, 0), 1e6 * coef, b, np.array([1.0, 1.0]))
    z = (2.0 * y - 1.0) * (1e6 * (X @ coef[0]) + b[0])
    assert value == pytest.approx(np.maximum(-z, 0.0).sum(), rel=1e-6)
    assert np.isfinite(slope).all()


def test_threads_change_no_bit_and_the_optimum_is_that_of_dense_rows(drawn):
    X, y, weight, *_ = drawn
    one, three = (LogisticRegression(n_jobs=k, tol=1e-8).fit(X, y, weight) for k in (1, 3))
    np.testing.assert_array_equal(one.coef_, three.coef_)
    dense = LogisticRegression(tol=1e-8).fit(X.toarray(), y, weight)
    np.testing.assert_allclose(one.coef_, dense.coef_, atol=1e-5)


@pytest.mark.parametrize("C", [1e3, 1e6])
def test_columns_that_are_nearly_copies_converge(C):
    """L-BFGS alone crawls here; Newton's method, which goes on from where it is, does not."""
    rng = np.random.default_rng(0)
    half = sp.random(2_000, 200, 0.05, format="csr", random_state=0, data_rvs=rng.standard_normal)
    noise = half.copy()
    noise.data = 1e-3 * rng.standard_normal(len(noise.data))
    X = sp.hstack([half, half + noise]).tocsr()
    y = (rng.random(2_000) < expit(half @ rng.normal(size=200))).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression(C=C).fit(X, y)
    dense = LogisticRegression(C=C).fit(X.toarray(), y)
    assert model.coef_ == pytest.approx(dense.coef_, rel=1e-3, abs=1e-3 * np.abs(dense.coef_).max())

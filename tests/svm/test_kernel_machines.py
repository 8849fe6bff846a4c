"""Kernel machines and support vector regression as the notes state them."""

import numpy as np
import pytest
import sklearn.svm as libsvm
from scipy.spatial.distance import pdist

from assay.kernels import Gaussian, Linear, embedding
from assay.losses import epsilon_insensitive
from assay.svm import SVC, SVR
from assay.textbook import svm as textbook
from tests.svm.machine_rows import beta_of, overlapping


@pytest.mark.mission("KER-62", "KER-75", "KER-76")
def test_a_narrow_gaussian_separates_any_distinct_points_at_quadratic_cost():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 3)), random.choice([-1.0, 1.0], 60)
    calls = 0

    def counting(A, B):
        nonlocal calls
        calls += len(A) * len(B)
        return Gaussian(200.0)(A, B)

    model = SVC(C=np.inf, kernel=counting).fit(X, y)
    assert calls <= 3 * 60**2
    assert model.score(X, y) == 1.0
    twins, labels = np.vstack([X, X[:1]]), np.append(y, -y[0])
    with pytest.raises(ValueError, match="hulls of the classes touch"):
        SVC(C=np.inf, gamma=200.0).fit(twins, labels)


@pytest.mark.mission("KER-79")
def test_linear_kernel_is_the_linear_machine():
    X, y = overlapping(6, 50)
    model = SVC(C=1.0, kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0], atol=1e-9)
    same = SVC(C=1.0, kernel=Linear(), tol=1e-8).fit(X, y)
    np.testing.assert_allclose(same.decision_function(X), model.decision_function(X), atol=1e-6)


@pytest.mark.mission("KER-80", "KER-81", "KER-82", "KER-83", "KER-84", "KER-85", "KER-86", "KER-87")
def test_regression_conditions():
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 2))
    t = X @ [1.0, -0.5] + 0.3 * random.normal(size=50)
    C, eps = 1.0, 0.2
    model = SVR(C=C, epsilon=eps, kernel="linear", tol=1e-9).fit(X, t)
    beta = beta_of(model, 50)
    w, b = model.coef_[0], model.intercept_[0]
    r = t - X @ w - b
    np.testing.assert_allclose(w, beta @ X)
    assert abs(beta.sum()) < 1e-9
    over, under = np.maximum(r - eps, 0), np.maximum(-r - eps, 0)
    np.testing.assert_allclose(epsilon_insensitive(eps).value(r, 0.0), over + under)
    value = 0.5 * w @ w + C * epsilon_insensitive(eps).value(r, 0.0).sum()
    dual = t @ beta - eps * np.abs(beta).sum() - 0.5 * w @ w
    assert value == pytest.approx(dual, rel=1e-6)
    upper, lower = np.maximum(beta, 0), np.maximum(-beta, 0)
    assert np.all((C - upper) * over < 1e-6)
    assert np.all((C - lower) * under < 1e-6)
    assert np.all(np.abs(upper * (eps + over - r)) < 1e-6)
    free = (np.abs(beta) > 1e-8) & (np.abs(beta) < C - 1e-8)
    assert free.any()
    np.testing.assert_allclose((t - X @ w - eps * np.sign(beta))[free], b, atol=1e-6)
    assert np.all(beta[np.abs(r) < eps - 1e-6] == 0)
    theirs = libsvm.SVR(C=C, epsilon=eps, kernel="linear", tol=1e-9).fit(X, t)
    assert b == pytest.approx(theirs.intercept_[0], abs=1e-4)


@pytest.mark.mission("KER-90", "KER-91")
def test_two_intertwined_curves():
    delta, sigma, apart = 0.25, 0.3, 3.0
    X, y = textbook.intertwined_curves(delta, apart, 60.0)
    K = Gaussian.of_width(sigma)(X)
    n = len(X) // 2
    with pytest.raises(ValueError, match="touch"):
        SVC(C=np.inf, kernel="linear").fit(X, y)
    nearest = np.linalg.norm(X[:n, None] - X[None, n:], axis=2).min()
    assert K[:n, n:].max() == pytest.approx(np.exp(-(nearest**2) / (2 * sigma**2)))
    assert K[:n, n:].max() < 1e-10
    row = K[n // 2, :n]
    assert np.all(np.diff(row[n // 2 : n // 2 + 8]) < 0)
    c = textbook.margin_through_origin(K, y)
    assert np.all(y * (K @ c) > 0)
    np.testing.assert_allclose(c[:n], -c[n:], atol=1e-5)
    half = textbook.margin_through_origin(K[:n, :n], y[:n])
    np.testing.assert_allclose(half, c[:n], atol=1e-5)
    straight = np.column_stack([np.arange(0.0, 40.0, delta), np.zeros(160)])
    inner = textbook.margin_through_origin(Gaussian.of_width(sigma)(straight), np.ones(160))[40:120]
    np.testing.assert_allclose(np.abs(inner), delta / (np.sqrt(2 * np.pi) * sigma), rtol=0.01)
    assert delta / (np.sqrt(2 * np.pi) * sigma) == pytest.approx(0.3324, abs=1e-4)


@pytest.mark.mission("KER-92")
def test_automatic_kernel():
    X, y = overlapping(0, 60)
    model = SVC(kernel="auto").fit(X, y)
    assert model.chosen_kernel_ == "rbf"
    gamma = 1 / np.median(pdist(X, "sqeuclidean"))
    assert model._kernel().gamma == pytest.approx(gamma, rel=1e-12)
    same = SVC(gamma=gamma).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), rtol=1e-6, atol=1e-9)
    random = np.random.default_rng(0)
    wide = (random.random((40, 400)) < 0.02).astype(float)
    assert SVC(kernel="auto").fit(wide, random.integers(0, 2, 40)).chosen_kernel_ == "linear"


def test_embedding_of_the_primal_route_spans_the_data():
    X, _ = overlapping(0)
    B = embedding(Gaussian(0.5)(X))
    np.testing.assert_allclose(B @ B.T, Gaussian(0.5)(X), atol=1e-10)

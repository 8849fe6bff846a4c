"""The kernel perceptron against the perceptron of explicit features, update by update, and its certificate."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.svm import SVC as TheirSVC

import assay
from assay.kernel_model import KernelPerceptron
from assay.kernels import Gaussian, Polynomial, embedding
from assay.linear_model import Perceptron


def integers(seed=0, n=30):
    """Points of a grid inside and outside a circle: a quadratic function separates them, exactly in integers."""
    random = np.random.default_rng(seed)
    X = random.integers(-4, 5, size=(n, 2)).astype(float)
    return X, (np.sum(X**2, axis=1) > 12).astype(int)


@pytest.mark.mission("KER-79")
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_linear_kernel_makes_the_updates_of_the_perceptron(fit_intercept):
    X, y = load_iris(return_X_y=True)
    X, y = np.rint(10 * X[y < 2]), y[y < 2]
    settings = {"fit_intercept": fit_intercept, "shuffle": False}
    ours, other = KernelPerceptron(kernel="linear", **settings).fit(X, y), Perceptron(**settings).fit(X, y)
    np.testing.assert_array_equal(ours.updates_[0], other.updates_[0])
    np.testing.assert_array_equal(ours.dual_coef_ @ ours.support_vectors_, other.coef_)
    np.testing.assert_array_equal(ours.intercept_, other.intercept_)
    assert (ours.n_iter_, ours.n_updates_) == (other.n_iter_, other.n_updates_)


def test_a_polynomial_kernel_makes_the_updates_of_the_perceptron_on_monomials():
    X, y = integers()
    kernel = Polynomial(2, 1.0, 1.0)
    ours = KernelPerceptron(kernel="poly", degree=2, gamma=1.0, coef0=1.0, shuffle=False).fit(X, y)
    w, b, updates = np.zeros(6), 0.0, []
    Z, sign = kernel.features(X), np.where(y == 1, 1.0, -1.0)
    for _ in range(ours.n_iter_):
        for i in range(len(X)):
            if round(sign[i] * (w @ Z[i] + b), 9) <= 0:  # the features have roots of two, the kernel is an integer
                w, b = w + sign[i] * Z[i], b + sign[i]
                updates.append(i)
    np.testing.assert_array_equal(ours.updates_[0], updates)
    assert ours.converged_
    counts = np.bincount(updates, minlength=len(X))
    np.testing.assert_array_equal(np.abs(ours.dual_coef_[0]), counts[ours.support_])


def test_shuffled_orders_are_those_of_the_seed():
    X, y = make_moons(100, noise=0.1, random_state=0)
    one, two, three = (KernelPerceptron(gamma=2.0, random_state=k).fit(X, y) for k in (0, 0, 1))
    np.testing.assert_array_equal(one.updates_[0], two.updates_[0])
    assert not np.array_equal(one.updates_[0], three.updates_[0])
    assert one.score(X, y) == three.score(X, y) == 1.0


def test_a_given_gram_matrix_is_the_named_kernel():
    X, y = make_moons(80, noise=0.1, random_state=0)
    K = Gaussian(2.0)(X)
    given = KernelPerceptron(kernel="precomputed", shuffle=False).fit(K, y)
    named = KernelPerceptron(gamma=2.0, shuffle=False).fit(X, y)
    np.testing.assert_array_equal(given.updates_[0], named.updates_[0])
    np.testing.assert_allclose(given.decision_function(K), named.decision_function(X), atol=1e-9)
    assert "not known to be an inner product" in given.certify(K, y).not_applicable[0].reason


def test_columns_beyond_the_cache_are_computed_again(monkeypatch):
    X, y = make_moons(60, noise=0.1, random_state=0)
    whole = KernelPerceptron(gamma=2.0, shuffle=False).fit(X, y)
    monkeypatch.setattr("assay.kernel_model._perceptron._KEPT", 120)
    few = KernelPerceptron(gamma=2.0, shuffle=False).fit(X, y)
    np.testing.assert_array_equal(whole.updates_[0], few.updates_[0])


def test_a_fit_that_does_not_end_says_so():
    X, y = make_moons(60, noise=0.6, random_state=0)
    with pytest.warns(UserWarning, match="still making mistakes after 4 epochs"):
        model = KernelPerceptron(kernel="linear", max_iter=4, random_state=0).fit(X, y)
    assert not model.converged_
    certificate = model.certify(X, y)
    assert "does not separate" in certificate.not_applicable[0].reason
    assert assay.verify(certificate, model, X, y).holds


# Certificate ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_mistake_bound(kernel, fit_intercept):
    """Updates <= (R / margin of the best separator)^2 <= the claim, which uses the separator found."""
    X, y = integers(1)
    model = KernelPerceptron(
        kernel=kernel, gamma=1.0, degree=2, coef0=1.0, fit_intercept=fit_intercept, random_state=0, max_iter=100_000
    ).fit(X, y)
    certificate = model.certify(X, y)
    claim = certificate.find("kernel-perceptron.mistakes")
    K = model._kernel()(X) + fit_intercept
    sign = np.where(y == 1, 1.0, -1.0)
    found = np.zeros(len(X))
    found[model.support_] = model.dual_coef_[0]
    margin = (sign * (K @ found)).min() / np.sqrt(found @ K @ found)
    assert claim.params["margin"] == pytest.approx(margin, rel=1e-6)
    assert claim.value == pytest.approx(np.diag(K).max() / margin**2, rel=1e-5)
    best = TheirSVC(C=1e9, kernel="linear", tol=1e-6).fit(np.vstack([Z := embedding(K), -Z]), np.append(sign, -sign))
    widest = 1 / np.linalg.norm(best.coef_)
    assert (
        len(model.updates_[0]) == claim.params["updates"] <= np.diag(K).max() / widest**2 * 1.001 <= claim.value * 1.002
    )
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason


def test_false_claims_are_refused():
    X, y = integers(0)
    model = KernelPerceptron(gamma=0.1, random_state=0).fit(X, y)
    honest = model.certify(X, y)
    claim = honest.find("kernel-perceptron.mistakes")
    assert model.intercept_[0] != 0

    def holds(params, one=model, **changes):
        forged = replace(claim, params={**claim.params, **params}, **changes)
        return assay.verify(replace(one.certify(X, y), claims=(forged,)), one, X, y).holds

    assert holds({})
    assert not holds({}, value=0.99 * claim.value)
    assert not holds({"updates": claim.params["updates"] - 1})
    assert not holds({"margin": 1.001 * claim.params["margin"]}, value=10 * claim.value)
    assert not holds({"intercept": False})
    halves = KernelPerceptron(gamma=0.1, random_state=0).fit(X, y)
    halves.pair_coef_, halves.intercept_ = halves.pair_coef_ / 2, halves.intercept_ / 2
    assert not holds({"updates": claim.params["updates"] // 2}, halves, value=10 * claim.value)
    offset = KernelPerceptron(gamma=0.1, random_state=0).fit(X, y)
    offset.intercept_ = offset.intercept_ + 1
    assert not holds({}, offset, value=1e9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        iris = load_iris(return_X_y=True)
        three = KernelPerceptron(gamma=1.0, random_state=0).fit(*iris)
    stated = three.certify(*iris)
    report = assay.verify(stated, three, *iris)
    assert report.holds, report.reason
    assert [one.params["class"] for one in stated.claims if one.name == "kernel-perceptron.mistakes"] == [0, 1, 2]

"""Kernel logistic regression against logistic regression of explicit features, another minimiser, and forgeries."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.multiclass import OneVsRestClassifier

import assay
from assay.decomposition import KernelPCA
from assay.discriminant_analysis import KernelDiscriminantAnalysis
from assay.kernel_model import KernelLogisticRegression, KernelPerceptron
from assay.kernels import Gaussian, Polynomial, embedding
from assay.linear_model import LogisticRegression


def moons(n=120, seed=0):
    return make_moons(n, noise=0.3, random_state=seed)


@pytest.mark.mission("KER-79")
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_a_linear_kernel_gives_logistic_regression(C, fit_intercept):
    X, y = moons()
    ours = KernelLogisticRegression(C, kernel="linear", fit_intercept=fit_intercept, tol=1e-14).fit(X, y)
    for other in (TheirLogistic, LogisticRegression):
        settings = {"max_iter": 5000} if other is TheirLogistic else {}
        model = other(C=C, fit_intercept=fit_intercept, tol=1e-10, **settings).fit(X, y)
        np.testing.assert_allclose(ours.dual_coef_ @ X, model.coef_, atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, model.intercept_, atol=1e-5)
        np.testing.assert_allclose(ours.predict_proba(X), model.predict_proba(X), atol=1e-5)


def test_a_polynomial_kernel_is_logistic_regression_of_monomials():
    X, y = moons()
    weight = np.random.default_rng(0).uniform(0, 3, len(y))
    weight[:10] = 0
    settings = {"class_weight": {0: 2.0, 1: 0.5}, "C": 0.7, "tol": 1e-14}
    ours = KernelLogisticRegression(kernel="poly", degree=3, gamma=1.0, coef0=1.0, **settings).fit(X, y, weight)
    Z = Polynomial(3, 1.0, 1.0).features(X)
    other = LogisticRegression(**settings).fit(Z, y, weight)
    np.testing.assert_allclose(ours.decision_function(X), other.decision_function(Z), atol=1e-6)
    balanced = KernelLogisticRegression(kernel="linear", class_weight="balanced").fit(X, y, weight)
    other = TheirLogistic(class_weight="balanced", tol=1e-10).fit(X, y, weight)
    np.testing.assert_allclose(balanced.decision_function(X), other.decision_function(X), atol=1e-4)


@pytest.mark.mission("KER-78")
def test_representer_theorem():
    """The minimum over all functions of the space lies in the span of the rows: more points do not lower it."""
    X, y = moons(40)
    model = KernelLogisticRegression(C=3.0, gamma=0.5, fit_intercept=False, tol=1e-14).fit(X, y)
    more = np.vstack([X, moons(20, 1)[0]])
    images, sign = embedding(Gaussian(0.5)(more)), np.where(y == 1, 1.0, -1.0)

    def objective(w):
        f = images[:40] @ w
        slope = images[:40].T @ (-3.0 * sign / (1 + np.exp(sign * f)))
        return 0.5 * w @ w + 3.0 * np.logaddexp(0, -sign * f).sum(), w + slope

    found = minimize(objective, np.zeros(60), jac=True, method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-15})
    own = images[:40].T @ model.dual_coef_[0]
    assert objective(own)[0] <= found.fun + 1e-9
    assert objective(own)[0] == pytest.approx(model.history_[-1].objective, rel=1e-12)
    np.testing.assert_allclose(objective(own)[1], 0.0, atol=1e-6)
    np.testing.assert_allclose(images[:40] @ found.x, model.decision_function(X), atol=1e-3)


def test_coefficients_are_the_dual_variables():
    X, y = moons()
    model = KernelLogisticRegression(C=5.0, tol=1e-14).fit(X, y)
    sign = np.where(y == 1, 1.0, -1.0)
    expected = 5.0 * sign / (1 + np.exp(sign * model.decision_function(X)))
    np.testing.assert_allclose(model.dual_coef_[0], expected, atol=1e-7)
    assert abs(model.dual_coef_.sum()) < 1e-9


def test_many_classes_are_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    ours = KernelLogisticRegression(kernel="linear").fit(X, y)
    other = OneVsRestClassifier(TheirLogistic(tol=1e-10, max_iter=5000)).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), other.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(ours.predict_log_proba(X), np.log(ours.predict_proba(X)))
    assert ours.n_iter_.shape == (3,)


def test_a_given_gram_matrix_is_the_named_kernel():
    X, y = moons()
    K = Gaussian(1.5)(X)
    given = KernelLogisticRegression(kernel="precomputed").fit(K, y)
    named = KernelLogisticRegression(gamma=1.5).fit(X, y)
    np.testing.assert_allclose(given.decision_function(K[:9]), named.decision_function(X[:9]), atol=1e-9)
    certificate = given.certify(K, y)
    assert "nothing proves" in certificate.not_applicable[0].reason
    assert assay.verify(certificate, given, K, y).holds


def test_objective_falls_and_the_gap_bounds_it():
    X, y = moons()
    model = KernelLogisticRegression(C=1e4, gamma=2.0, tol=1e-14).fit(X, y)
    objective = np.array([step.objective for step in model.history_])
    gap = np.array([step.violation for step in model.history_])
    late = slice(2, None)  # before, coefficients may have been moved into their box
    assert np.all(np.diff(objective[late]) <= 1e-9 * objective[late][:-1])
    assert np.all(objective - objective[-1] <= gap + 1e-9 * objective[-1])


def test_refusals_and_warnings():
    X, y = moons(60)
    for settings, message in (
        ({"C": np.inf}, "C must be a finite number > 0 .*; got inf"),
        ({"tol": 0}, "tol must be a finite number > 0; got 0"),
        ({"kernel": "cubic"}, "kernel must be one of"),
        ({"class_weight": {0: -1}}, "class_weight must hold finite numbers > 0"),
        ({"kernel": "sigmoid", "gamma": 5.0, "coef0": -2.0, "C": 100.0}, "I . W K W is not positive definite"),
    ):
        with pytest.raises(ValueError, match=f"^KernelLogisticRegression: {message}"):
            KernelLogisticRegression(**settings).fit(X, y)
    with pytest.warns(UserWarning, match="stopped after 2 steps; the objective is within"):
        KernelLogisticRegression(C=1e4, max_iter=2).fit(X, y)
    with pytest.raises(ValueError, match="class 1 has no row of positive weight"):
        KernelLogisticRegression().fit(X, y, np.where(y == 1, 0.0, 1.0))


def test_a_gram_matrix_that_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    X, y = moons()
    monkeypatch.setattr("assay.svm._expansions._memory", lambda: 2.0**18)
    for kind in (KernelLogisticRegression, KernelDiscriminantAnalysis, KernelPCA):
        with pytest.raises(ValueError, match=rf"^{kind.__name__}: works with \d matrices of 120 x 120 numbers, 0.0 GB"):
            kind().fit(X, y)


@pytest.mark.parametrize(
    "kind",
    [KernelLogisticRegression, KernelPerceptron, KernelDiscriminantAnalysis, KernelPCA],
    ids=lambda k: k.__name__,
)
def test_kernel_values_that_overflow_are_refused(kind):
    X, y = moons(20)
    with pytest.raises(ValueError, match=f"^{kind.__name__}: kernel values overflow"):
        kind(kernel="poly", degree=50, gamma=1.0).fit(1e8 * X, y)


# Certificate ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("max_iter", [1, 3, 100])
def test_gap_bounds_the_true_excess(kernel, fit_intercept, max_iter):
    X, y = moons(60)
    settings = {"kernel": kernel, "gamma": 0.7, "coef0": 1.0, "degree": 2, "fit_intercept": fit_intercept, "C": 20.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelLogisticRegression(max_iter=max_iter, **settings).fit(X, y)
    best = KernelLogisticRegression(tol=1e-14, **settings).fit(X, y)
    K, sign = model._kernel()(X), np.where(y == 1, 1.0, -1.0)

    def objective(one):
        beta = one.dual_coef_[0]
        return 0.5 * beta @ K @ beta + 20.0 * np.logaddexp(0, -sign * (K @ beta + one.intercept_[0])).sum()

    certificate = model.certify(X, y)
    claim = certificate.find("kernel-logistic.gap")
    assert objective(model) - objective(best) <= claim.value
    if max_iter == 100:
        assert claim.value < 1e-6
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    apart = model.dual_coef_[0] - best.dual_coef_[0]
    assert np.sqrt(max(apart @ K @ apart, 0.0)) <= certificate.find("solution.enclosure").value + 1e-6


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [1e-3, 1e3])
def test_certificates_with_weights(classes, C):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = KernelLogisticRegression(C, class_weight="balanced").fit(X, y, weight)
    report = assay.verify(model.certify(X, y, sample_weight=weight), model, X, y, sample_weight=weight)
    assert report.holds, report.reason


def test_false_claims_are_refused():
    X, y = moons()
    model = KernelLogisticRegression(C=2.0, tol=1e-12).fit(X, y)
    honest = model.certify(X, y)
    claim = honest.find("kernel-logistic.gap")

    def holds(params, one=model, **changes):
        forged = replace(claim, params={**claim.params, **params}, **changes)
        return assay.verify(replace(one.certify(X, y), claims=(forged,)), one, X, y).holds

    assert holds({})
    assert holds({}, value=1.0)
    assert not holds({"C": 2.01})
    assert not holds({"C": 1.99})  # the coefficients leave their box
    assert not holds({"intercept": False})
    assert not holds({"class_weight": [1.0, 1.1]})
    assert not holds({"class_weight": [1.0]})
    for change in (1.001, -1.0):
        worse = KernelLogisticRegression(C=2.0).fit(X, y)
        worse.pair_coef_ = worse.pair_coef_ * change
        assert not holds({}, worse)
    shifted = KernelLogisticRegression(C=2.0).fit(X, y)
    shifted.intercept_ = shifted.intercept_ + 0.01
    assert not holds({}, shifted)
    iris = load_iris(return_X_y=True)
    three = KernelLogisticRegression().fit(*iris)
    stated = three.certify(*iris)
    wrong = replace(stated.claims[2], params={**stated.claims[2].params, "class": 3})
    assert stated.claims[2].name == "kernel-duality-gap"
    assert not assay.verify(replace(stated, claims=(wrong,)), three, *iris).holds

"""Kernel discriminant analysis against its formulas and LDA of explicit features; its certificate against forgeries."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.datasets import load_iris, make_moons
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as TheirLDA

import assay
from assay.discriminant_analysis import KernelDiscriminantAnalysis, LinearDiscriminantAnalysis
from assay.kernels import Gaussian, Polynomial


def two_classes(n=60, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return random.normal(size=(n, 3)) + np.outer(y, [1.0, 0.5, 0.0]), y


def scatters(K, y):
    """M (means weighted by their shares) and N as the notes write them."""
    m, classes = len(y), np.unique(y)
    ones = [(y == c).astype(float) for c in classes]
    means = [K @ one / one.sum() for one in ones]
    overall = sum(one.sum() / m * mean for one, mean in zip(ones, means))
    M = sum(one.sum() / m * np.outer(mean - overall, mean - overall) for one, mean in zip(ones, means))
    N = K @ K.T - sum(one.sum() * np.outer(mean, mean) for one, mean in zip(ones, means))
    return M, N, means


@pytest.mark.mission("KER-89")
def test_two_classes_follow_the_formula():
    X, y = two_classes()
    K, mu = Gaussian(0.5)(X), 0.05
    _, N, means = scatters(K, y)
    alpha = np.linalg.solve(N + mu * np.eye(len(X)), means[0] - means[1])
    model = KernelDiscriminantAnalysis(kernel="rbf", gamma=0.5, mu=mu).fit(X, y)
    for found in (model.scalings_[:, 0], model.pair_coef_[0]):
        cosine = found @ alpha / (np.linalg.norm(found) * np.linalg.norm(alpha))
        assert abs(cosine) == pytest.approx(1.0, abs=1e-12)
    new = two_classes(20, 1)[0]
    h = Gaussian(0.5)(new, X) @ alpha
    assert abs(np.corrcoef(h, model.transform(new)[:, 0])[0, 1]) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.mission("KER-89", "KER-79")
def test_a_linear_kernel_gives_linear_discriminant_analysis():
    X, y = two_classes()
    model = KernelDiscriminantAnalysis(kernel="linear", mu=1e-9).fit(X, y)
    other = TheirLDA(solver="eigen").fit(X, y)
    assert abs(np.corrcoef(model.transform(X)[:, 0], other.transform(X)[:, 0])[0, 1]) >= 0.999999
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-5)


@pytest.mark.mission("KER-89")
def test_without_mu_the_scatter_is_singular_and_refused():
    X, y = two_classes(12)
    _, N, _ = scatters(Gaussian(0.5)(X), y)
    assert np.linalg.matrix_rank(N, hermitian=True) == 10  # m - 2
    with pytest.raises(ValueError, match=r"^KernelDiscriminantAnalysis: .* has rank 10 of 12 .* mu = 0 must be larger"):
        KernelDiscriminantAnalysis(kernel="rbf", gamma=0.5, mu=0).fit(X, y)


def test_many_classes_solve_the_eigenproblem():
    X, y = load_iris(return_X_y=True)
    mu = 0.1
    model = KernelDiscriminantAnalysis(kernel="rbf", gamma=0.3, mu=mu).fit(X, y)
    M, N, _ = scatters(Gaussian(0.3)(X), y)
    regular = N + mu * np.eye(len(X))
    values, vectors = eigh(M, regular, subset_by_index=(148, 149))
    np.testing.assert_allclose(model.fisher_ratios_ / len(X), values[::-1], rtol=1e-8)
    found = model.scalings_
    np.testing.assert_allclose(found.T @ regular @ found, len(X) * np.eye(2), atol=1e-6)
    projected = Gaussian(0.3)(X) @ vectors[:, ::-1]
    for k in range(2):
        assert abs(np.corrcoef(projected[:, k], model.transform(X)[:, k])[0, 1]) > 1 - 1e-9
    assert KernelDiscriminantAnalysis(1, gamma=0.3).fit(X, y).transform(X).shape == (150, 1)


@pytest.mark.parametrize("classes", [2, 3])
def test_polynomial_kernel_is_lda_of_monomials(classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes][:, :2] - X[:, :2].mean(axis=0), y[y < classes]
    kernel = Polynomial(2, 1.0, 1.0)
    Z = kernel.features(X)[:, :-1]  # without the constant, which no scatter sees
    other = TheirLDA(solver="eigen", priors=np.full(classes, 1 / classes)).fit(Z, y)
    settings = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0, "mu": 1e-8}
    model = KernelDiscriminantAnalysis(priors=np.full(classes, 1 / classes), **settings).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(Z), atol=1e-5)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)), atol=1e-14)
    ours = LinearDiscriminantAnalysis(priors=np.full(classes, 1 / classes)).fit(Z, y)
    np.testing.assert_allclose(model.explained_variance_ratio_, ours.explained_variance_ratio_, atol=1e-6)


def test_a_given_gram_matrix_is_the_named_kernel():
    X, y = make_moons(80, noise=0.2, random_state=0)
    K = Gaussian(1.0)(X)
    named = KernelDiscriminantAnalysis(kernel="rbf", gamma=1.0).fit(X, y)
    given = KernelDiscriminantAnalysis(kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(given.transform(K[:5]), named.transform(X[:5]), atol=1e-8)
    assert (given.predict(K) == named.predict(X)).all()
    assert "Gram matrix was given" in given.certify(K, y).not_applicable[0].reason


def test_refusals():
    X, y = two_classes()
    for settings, message in (
        ({"mu": -1.0}, "mu must be a finite number >= 0; got -1.0"),
        ({"n_components": 2}, "n_components must be at most n_classes - 1 = 1; got 2"),
        ({"priors": [0.5, -0.5]}, "priors must be non-negative"),
    ):
        with pytest.raises(ValueError, match=f"^KernelDiscriminantAnalysis: {message}"):
            KernelDiscriminantAnalysis(**settings).fit(X, y)


# Certificate ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid", "laplacian"])
def test_claim_bounds_what_the_directions_miss(kernel, classes):
    X, y = load_iris(return_X_y=True)
    X, y = (X[y < classes] - X.mean(axis=0)) / 3, y[y < classes]
    model = KernelDiscriminantAnalysis(kernel=kernel, gamma=0.2, degree=2, mu=0.5).fit(X, y)
    rng = np.random.default_rng(0)
    model.pair_coef_ = model.pair_coef_ * (1 + 1e-4 * rng.normal(size=model.pair_coef_.shape))  # a worse model
    certificate = model.certify(X, y)
    claim = certificate.find("kernel-lda.optimality")
    M, N, _ = scatters(model._kernel()(X), y)
    regular, S = N + 0.5 * np.eye(len(X)), model.pair_coef_.T
    best = np.trace(np.linalg.solve(regular, M))
    root = np.linalg.cholesky(regular)
    span = np.linalg.qr(root.T @ S)[0]
    white = np.linalg.solve(root, np.linalg.solve(root, M).T)
    reached = np.trace(span.T @ white @ span)
    assert best - reached <= claim.value <= best
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason


def test_false_claims_are_refused():
    X, y = two_classes()
    model = KernelDiscriminantAnalysis(gamma=0.5, mu=0.1).fit(X, y)
    honest = model.certify(X, y)
    claim = honest.find("kernel-lda.optimality")

    def holds(params, **changes):
        forged = replace(claim, params={**claim.params, **params}, **changes)
        return assay.verify(replace(honest, claims=(forged,)), model, X, y).holds

    assert holds({})
    assert not holds({"mu": 0.101})
    assert not holds({"mu": 1e-4})
    assert not holds({"priors": [0.5]})
    assert not holds({"priors": [0.4, 0.4]})
    worse = KernelDiscriminantAnalysis(gamma=0.5, mu=0.1).fit(X, y)
    worse.pair_coef_ = worse.pair_coef_ * 1.01
    stated = worse.certify(X, y)
    assert stated.find("kernel-lda.optimality").value > 1e3 * claim.value
    assert not assay.verify(replace(stated, claims=(claim,)), worse, X, y).holds
    swapped = np.where(np.arange(len(y)) < 2, 1 - y, y)
    other = KernelDiscriminantAnalysis(gamma=0.5, mu=0.1).fit(X, swapped)
    assert not assay.verify(replace(other.certify(X, swapped), claims=(claim,)), model, X, swapped).holds


def test_a_claim_that_rounding_would_hide_is_not_made():
    X, y = load_iris(return_X_y=True)
    model = KernelDiscriminantAnalysis(kernel="poly", degree=2, gamma=1.0, coef0=1.0, mu=1e-3).fit(X, y)
    assert any("rounding hides" in one.reason for one in model.certify(X, y).not_applicable)
    part = KernelDiscriminantAnalysis().fit(X, y).certify(X[::2], y[::2])
    assert any("not the rows" in one.reason for one in part.not_applicable)

"""Kernel PCA against scikit-learn's, PCA of explicit features, and its certificate against forgeries."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn import decomposition as theirs

import assay
from assay.decomposition import KernelPCA
from assay.kernels import Gaussian, Polynomial, embedding


def rows(seed=0, n=80, d=3):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "n_components": 5},
        {"kernel": "rbf", "gamma": 0.4, "n_components": 12},
        {"kernel": "cosine", "n_components": 2},
        {"kernel": "sigmoid", "gamma": 0.01, "n_components": 2},
        {"kernel": "rbf", "n_components": 4, "eigen_solver": "arpack", "random_state": 0},
        {"kernel": "rbf", "n_components": 4, "eigen_solver": "randomized", "random_state": 0},
        {"kernel": "linear", "n_components": 5, "remove_zero_eig": True},
    ],
    ids=str,
)
def test_equals_scikit_learn(settings):
    X, new = rows(), rows(1, 20)
    ours, other = KernelPCA(**settings).fit(X), theirs.KernelPCA(**settings).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, other.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(ours.transform(new), other.transform(new), atol=1e-10)
    np.testing.assert_allclose(ours.fit_transform(X), other.fit_transform(X), atol=1e-10)
    np.testing.assert_allclose(ours.transform(X), ours.fit_transform(X), atol=1e-6)
    assert list(ours.get_feature_names_out()) == [f"kernelpca{k}" for k in range(len(ours.eigenvalues_))]


def test_few_of_many_rows_go_to_lanczos():
    X = rows(n=300)
    ours, other = (kind(3, kernel="rbf", random_state=0).fit(X) for kind in (KernelPCA, theirs.KernelPCA))
    np.testing.assert_allclose(ours.transform(X), other.transform(X), atol=1e-10)


def test_inverse_transform_equals_scikit_learn():
    X, settings = rows(), {"kernel": "rbf", "n_components": 10, "fit_inverse_transform": True, "alpha": 0.05}
    ours, other = KernelPCA(**settings).fit(X), theirs.KernelPCA(**settings).fit(X)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), other.inverse_transform(other.transform(X)))
    with pytest.raises(ValueError, match="needs fit_inverse_transform=True"):
        KernelPCA().fit(X).inverse_transform(X)
    with pytest.raises(ValueError, match="Cannot fit_inverse_transform with a precomputed kernel"):
        KernelPCA(kernel="precomputed", fit_inverse_transform=True).fit(X @ X.T)


@pytest.mark.mission("DEC-08")
def test_is_the_embedding_of_the_centred_kernel_matrix():
    X = rows()
    K = Gaussian(0.3)(X)
    B = embedding(K)
    np.testing.assert_allclose(B @ B.T, K, atol=1e-10)
    H = np.eye(len(X)) - 1 / len(X)
    Z = KernelPCA(kernel="rbf", gamma=0.3).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, H @ K @ H, atol=1e-9)
    given = KernelPCA(kernel="precomputed").fit(K)
    np.testing.assert_allclose(np.abs(given.transform(K)[:, :5]), np.abs(Z[:, :5]), atol=1e-9)


def test_is_pca_of_explicit_features():
    X, new = rows(), rows(1, 10)
    kernel = Polynomial(2, 0.5, 1.0)
    other = theirs.PCA(3).fit(kernel.features(X))
    for kind in (kernel, lambda A, B: kernel(A, B)):
        ours = KernelPCA(3, kernel=kind).fit(X)
        np.testing.assert_allclose(
            np.abs(ours.transform(new)), np.abs(other.transform(kernel.features(new))), atol=1e-9
        )
    np.testing.assert_allclose(ours.explained_variance_ratio_, other.explained_variance_ratio_)
    left = ours.eigenvalues_.sum() * (1 / other.explained_variance_ratio_.sum() - 1)
    assert ours.history_[0].objective == pytest.approx(left)


def test_refusals():
    X = rows()
    with pytest.raises(ValueError, match=r"KernelPCA: There are significant negative eigenvalues.*no inner product"):
        KernelPCA(kernel="sigmoid", gamma=1.0, coef0=-1.0).fit(X)
    for settings, message in (
        ({"n_components": 0}, "n_components must be an integer >= 1; got 0"),
        ({"eigen_solver": "qr"}, "eigen_solver must be one of"),
        ({"kernel": "poly", "gamma": -1.0}, "gamma must be a finite number > 0"),
        ({"alpha": 0.0, "fit_inverse_transform": True}, "alpha must be a finite number > 0"),
    ):
        with pytest.raises(ValueError, match=f"^KernelPCA: {message}"):
            KernelPCA(**settings).fit(X)


# Certificate ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [{"kernel": "rbf"}, {"kernel": "poly", "degree": 2}, {"kernel": "linear"}, {"kernel": "laplacian"}],
    ids=str,
)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_claim_bounds_what_is_missed(kernel, scale):
    X = scale * rows(2)
    whole, model = KernelPCA(**kernel).fit(X), KernelPCA(2, **kernel).fit(X)
    certificate = model.certify(X)
    claim = certificate.find("kernel-pca.optimality")
    missed = (whole.eigenvalues_[:2].sum() - model.eigenvalues_.sum()) / len(X)
    assert missed <= claim.value <= 1e-8 * whole._kernel().diagonal(X).max() + 2e-12
    report = assay.verify(certificate, model, X)
    assert report.holds, report.reason
    assert not assay.verify(certificate, model, X[::-1]).holds


def test_false_claims_are_refused():
    X = rows(3)
    model = KernelPCA(2, kernel="rbf").fit(X)
    honest = model.certify(X)
    claim = honest.find("kernel-pca.optimality")

    def holds(**changes):
        params = {**claim.params, **changes.pop("params", {})}
        forged = replace(claim, params=params, **changes)
        return assay.verify(replace(honest, claims=(forged,)), model, X).holds

    assert holds()
    assert not holds(value=claim.value / 1e6)
    assert not holds(params={"components": 1})
    assert not holds(params={"e": 1e-18})
    assert not holds(params={"t": 2 * claim.params["t"]})
    assert not holds(params={"t": 0.5 * claim.params["t"]})  # below it the matrix bounds nothing
    # The second and third directions hold less than the first two.
    other = KernelPCA(3, kernel="rbf").fit(X)
    other.pair_coef_, other.intercept_ = other.pair_coef_[1:].copy(), other.intercept_[1:].copy()
    missed = (model.eigenvalues_.sum() - other.eigenvalues_[1:].sum()) / len(X)
    stated = other.certify(X)
    assert stated.find("kernel-pca.optimality").value >= missed
    assert assay.verify(stated, other, X).holds
    forged = replace(stated.find("kernel-pca.optimality"), value=0.9 * missed)
    assert not assay.verify(replace(stated, claims=(forged,)), other, X).holds


def test_what_is_not_claimed_is_said():
    X = rows()
    K = X @ X.T
    given = KernelPCA(kernel="precomputed").fit(K).certify(K)
    assert "Gram matrix was given" in given.not_applicable[0].reason
    constant = KernelPCA().fit(np.ones((5, 2))).certify(np.ones((5, 2)))
    assert "do not vary" in constant.not_applicable[0].reason
    model = KernelPCA(2).fit(X)
    part = model.certify(X[:20])
    assert "not the rows" in part.not_applicable[0].reason
    assert assay.verify(part, model, X[:20]).holds


def test_the_model_keeps_its_own_rows():
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = KernelPCA(2, kernel="rbf").fit(X)
    before, asked = model.transform(X), X.copy()
    X[:, 0] = 100.0
    assert np.array_equal(model.transform(asked), before)

"""Kernel ridge regression against its closed form, scikit-learn and the representer theorem."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as Peer
from sklearn.linear_model import Ridge

import assay
from assay.kernel_ridge import KernelRidge
from assay.kernels import Polynomial

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)


@pytest.mark.mission("KER-78")
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid", "laplacian"])
@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_are_those_of_the_closed_form_and_of_scikit_learn(kernel, weighted):
    weight = RNG.uniform(0.2, 3.0, 60) if weighted else None
    alpha = 30.0 if kernel == "sigmoid" else 0.7
    ours = KernelRidge(alpha, kernel=kernel, gamma=0.3).fit(X, y, weight)
    theirs = Peer(alpha=alpha, kernel=kernel, gamma=0.3).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.predict(X[:7] + 0.1), theirs.predict(X[:7] + 0.1), rtol=1e-7)
    if not weighted:
        K = ours._kernel()(X)
        np.testing.assert_allclose(ours.dual_coef_, np.linalg.solve(K + alpha * np.eye(60), y), atol=1e-8)


@pytest.mark.mission("KER-78", "KER-79")
def test_representer_theorem():
    kernel = Polynomial(2, 0.5, 1.0)
    model = KernelRidge(0.5, kernel=kernel).fit(X, y)
    phi = kernel.features(X)
    explicit = Ridge(alpha=0.5, fit_intercept=False).fit(phi, y)
    np.testing.assert_allclose(model.predict(X), explicit.predict(phi), atol=1e-8)
    np.testing.assert_allclose(phi.T @ model.dual_coef_, explicit.coef_, atol=1e-8)
    few = slice(0, 5)
    small = KernelRidge(0.5, kernel=kernel).fit(X[few], y[few])
    w = phi[few].T @ small.dual_coef_
    span = np.linalg.qr(phi[few].T)[0]
    extra = RNG.normal(size=phi.shape[1])
    outside = extra - span @ (span.T @ extra)
    value = lambda v: np.sum((y[few] - phi[few] @ v) ** 2) + 0.5 * v @ v  # noqa: E731
    assert value(w + outside) > value(w)
    linear = KernelRidge(0.5, kernel="linear").fit(X, y)
    np.testing.assert_allclose(linear.predict(X), Ridge(alpha=0.5, fit_intercept=False).fit(X, y).predict(X), atol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian"])
def test_gap_is_proved_and_a_worse_model_is_rejected(kernel):
    model = KernelRidge(0.5, kernel=kernel, gamma=0.3).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.find("kernel-ridge.gap").value < 1e-6
    assert assay.verify(certificate, model, X, y).holds
    exact = 0.5 * np.sum((y - model.predict(X)) ** 2) + 0.25 * model.dual_coef_ @ model._kernel()(X) @ model.dual_coef_
    model.pair_coef_ = model.pair_coef_ * 1.01
    worse = 0.5 * np.sum((y - model.predict(X)) ** 2) + 0.25 * model.dual_coef_ @ model._kernel()(X) @ model.dual_coef_
    moved = model.certify(X, y)
    assert moved.find("kernel-ridge.gap").value >= worse - exact > 1e-6
    assert assay.verify(moved, model, X, y).holds
    assert not assay.verify(certificate, model, X, y).holds


@pytest.mark.parametrize("dual", ["model", "slopes"])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_dual_vectors_bound_the_distance_to_the_minimum(dual, alpha, weighted):
    weight = RNG.uniform(0.2, 3.0, 60) if weighted else np.ones(60)
    model = KernelRidge(alpha, kernel="rbf", gamma=0.3).fit(X, y, weight)
    model.pair_coef_ = model.pair_coef_ + 1e-2 * RNG.normal(size=60)
    K, c = model._kernel()(X), model.dual_coef_
    g = alpha * c - weight * (y - K @ c)  # of the gradient K g; the Hessian is K (alpha I + diag(weight) K)
    excess = 0.5 * (K @ g) @ np.linalg.solve(alpha * np.eye(60) + weight[:, None] * K, g)
    certificate = model.certify(X, y, sample_weight=weight)
    claim = certificate["kernel-ridge.gap"]
    q, own = -g, np.sqrt(np.diag(K))
    gaps = {"slopes": (np.abs(q) @ own) ** 2 / (2 * alpha), "model": 0.5 * np.sum(q**2 / weight)}
    assert claim.value == pytest.approx(min(gaps.values()), rel=1e-5, abs=1e-9)

    def judged(**params):
        loose = replace(claim, value=1e9, params={**claim.params, **params})
        report = assay.verify(replace(certificate, claims=(loose,)), model, X, y, sample_weight=weight)
        return report.verdicts[0]

    found = judged(dual=dual)
    assert found.measured == pytest.approx(gaps[dual], rel=1e-6)
    assert found.measured >= excess * (1 - 1e-9)
    assert "one of" in judged(dual="witness").reason
    assert "intercept" in judged(dual="slopes", intercept=True).reason
    assert "one score and the penalty L2" in judged(penalty={"L1": 1.0, "L2": alpha}).reason
    assert "no part" in judged(class_weight=None).reason
    assert "classes" in judged(loss="hinge").reason


def test_an_indefinite_gram_matrix_is_refused():
    with pytest.raises(ValueError, match="indefinite"):
        KernelRidge(0.1, kernel="precomputed").fit(np.array([[0.0, 1.0], [1.0, 0.0]]), [0.0, 1.0])


@pytest.mark.parametrize("kernel", ["cosine", "chi2", lambda a, b, power=1: float((a @ b) ** power)])
def test_more_kernels_sparse_rows_and_several_targets_agree_with_scikit_learn(kernel):
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    X, Y = rng.random((30, 4)), rng.normal(size=(30, 2))
    more = {"kernel_params": {"power": 2}} if callable(kernel) else {"gamma": 0.5}
    options = {"kernel": kernel, **more}
    ours, peer = KernelRidge([0.5, 2.0], **options).fit(X, Y), Peer([0.5, 2.0], **options).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-8, atol=1e-10)
    assert ours.dual_coef_.shape == (30, 2)
    with pytest.raises(ValueError, match="several targets"):
        ours.certify(X, Y)
    if not callable(kernel):
        sparse = KernelRidge(1.0, **options).fit(csr_array(X), Y[:, 0])
        np.testing.assert_allclose(sparse.predict(csr_array(X)), KernelRidge(1.0, **options).fit(X, Y[:, 0]).predict(X))


def test_without_penalty_it_is_least_squares_and_nothing_is_proved():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    with pytest.warns(UserWarning, match="not positive definite"):
        model = KernelRidge(0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), X @ np.linalg.lstsq(X, y)[0], atol=1e-8)
    assert any("alpha = 0" in one.reason for one in model.certify(X, y).not_applicable)


@pytest.mark.parametrize("kernel", ["polynomial", "additive_chi2"])
def test_further_names_of_kernels_are_scikit_learns(kernel):
    X = np.abs(np.random.default_rng(0).normal(size=(40, 3)))
    y = X @ [1.0, -2.0, 0.5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # additive chi-squared is no inner product
        ours, theirs = (kind(alpha=0.5, kernel=kernel).fit(X, y) for kind in (KernelRidge, Peer))
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-7, atol=1e-8)

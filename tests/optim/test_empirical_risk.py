"""Regularised risk: one solver whose penalty and loss are parts, against the machines that are special cases of it."""

import numpy as np
import pytest
from sklearn import linear_model as theirs
from sklearn import svm as libsvm

from assay import losses
from assay.kernel_model import KernelLogisticRegression
from assay.kernels import Gaussian, embedding
from assay.linear_model import LogisticRegression
from assay.svm import SVC
from assay.textbook import risk


def labelled(seed=0, n=100):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4)) * [1.0, 2.0, 0.5, 1.0]
    return X, np.where(X[:, 0] + random.normal(size=n) > 0, 1.0, -1.0)


@pytest.mark.mission("KER-33")
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_hinge_is_the_svm_and_log_loss_is_logistic_regression(C):
    X, y = labelled()
    found = risk.minimise_risk(X, y, losses.hinge, risk.L2, C=C)
    assert found.converged
    for machine in (libsvm.SVC(kernel="linear", C=C, tol=1e-8), SVC(kernel="linear", C=C, tol=1e-8)):
        machine.fit(X, y)
        np.testing.assert_allclose(found.w, machine.coef_[0], atol=1e-4)
        np.testing.assert_allclose(found.b, machine.intercept_[0], atol=1e-3)
        w, b = machine.coef_[0], machine.intercept_[0]
        assert found.objective <= 0.5 * w @ w + C * np.maximum(0, 1 - y * (X @ w + b)).sum() + 1e-6
    found = risk.minimise_risk(X, y, losses.log_loss, risk.L2, C=C)
    for model in (theirs.LogisticRegression(C=C, tol=1e-10, max_iter=5000), LogisticRegression(C=C)):
        model.fit(X, y)
        np.testing.assert_allclose(found.w, model.coef_[0], atol=1e-5)
        np.testing.assert_allclose(found.b, model.intercept_[0], atol=1e-5)


@pytest.mark.mission("KER-33")
def test_the_same_in_a_kernel_space():
    X, y = labelled(n=60)
    K = Gaussian(0.4)(X)
    Z = embedding(K)
    svm = SVC(kernel="rbf", gamma=0.4, C=2.0, tol=1e-8).fit(X, y)
    found = risk.minimise_risk(Z, y, losses.hinge, C=2.0)
    np.testing.assert_allclose(Z @ found.w + found.b, svm.decision_function(X), atol=1e-4)
    logistic = KernelLogisticRegression(kernel="rbf", gamma=0.4, C=2.0).fit(X, y)
    found = risk.minimise_risk(Z, y, losses.log_loss, C=2.0)
    np.testing.assert_allclose(Z @ found.w + found.b, logistic.decision_function(X), atol=1e-6)
    assert found.objective == pytest.approx(logistic.history_[-1].objective, rel=1e-8)


@pytest.mark.mission("KER-33")
def test_other_penalties_and_losses_are_other_known_learners():
    X, y = labelled()
    target = X @ [1.0, 0.0, 0.0, 2.0] + np.random.default_rng(1).normal(size=len(X))
    n = len(X)
    cases = [
        (losses.squared_error, risk.elastic_net(0.1 * n, 0.0), theirs.Lasso(alpha=0.1, tol=1e-10)),
        (losses.squared_error, risk.elastic_net(0.05 * n, 0.05 * n), theirs.ElasticNet(alpha=0.1, tol=1e-10)),
        (losses.squared_error, risk.L2, theirs.Ridge(alpha=1.0)),
        (losses.epsilon_insensitive(0.2), risk.L2, libsvm.SVR(kernel="linear", C=1.0, epsilon=0.2, tol=1e-8)),
    ]
    for loss, penalty, model in cases:
        found = risk.minimise_risk(X, target, loss, penalty)
        np.testing.assert_allclose(found.w, np.ravel(model.fit(X, target).coef_), atol=1e-4)
    quantile = theirs.QuantileRegressor(quantile=0.5, alpha=1.0 / (2 * n)).fit(X, target)
    found = risk.minimise_risk(X, target, losses.absolute_error, risk.L1)
    excess = np.abs(target - quantile.predict(X)).sum() + np.abs(quantile.coef_).sum() - found.objective
    assert abs(excess) < 1e-4
    sparse = theirs.LogisticRegression(l1_ratio=1, C=0.2, solver="saga", tol=1e-10, max_iter=50_000).fit(X, y)
    found = risk.minimise_risk(X, y, losses.log_loss, risk.L1, C=0.2)
    np.testing.assert_allclose(found.w, sparse.coef_[0], atol=1e-5)


@pytest.mark.parametrize("t", [1e-3, 0.7, 50.0])
def test_each_prox_minimises_what_it_says(t):
    grid = np.linspace(-60, 60, 240_001)
    for loss in (losses.hinge, losses.log_loss, losses.squared_error, losses.epsilon_insensitive(0.3)):
        for y in (-1.0, 1.0):
            for v in (-3.0, -0.2, 0.0, 0.9, 2.5):
                found = float(loss.prox(np.array([y]), np.array([v]), t)[0])
                best = grid[np.argmin(t * loss.value(y, grid) + 0.5 * (grid - v) ** 2)]
                assert abs(found - best) < 1e-3, (loss.name, y, v)
    w = np.array([-3.0, -0.2, 0.0, 2.5])
    np.testing.assert_allclose(risk.L1.prox(w, 1.0), [-2.0, 0.0, 0.0, 1.5])
    np.testing.assert_allclose(risk.elastic_net(1.0, 1.0).prox(w, 1.0), [-1.0, 0.0, 0.0, 0.75])


def test_refusals_and_an_early_stop():
    X, y = labelled()
    with pytest.raises(ValueError, match="C must be a finite number > 0; got 0"):
        risk.minimise_risk(X, y, losses.hinge, C=0)
    with pytest.raises(ValueError, match="epsilon must be"):
        losses.epsilon_insensitive(-1)
    with pytest.raises(ValueError, match="l1 and l2 must be"):
        risk.elastic_net(-1, 0)
    early = risk.minimise_risk(X, y, losses.hinge, max_iter=3)
    assert not early.converged
    assert early.n_iter == 3
    through = risk.minimise_risk(X, y, losses.hinge, intercept=False)
    assert through.b == 0.0
    liblinear = libsvm.LinearSVC(loss="hinge", fit_intercept=False, tol=1e-9, max_iter=1_000_000).fit(X, y)
    np.testing.assert_allclose(through.w, liblinear.coef_[0], atol=1e-4)

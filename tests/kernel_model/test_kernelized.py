"""A linear learner in a kernel's space: the linear kernel gives it back, other kernels give kernel machines."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import HuberRegressor

from assay.kernel_model import Kernelized, KernelLogisticRegression
from assay.kernel_ridge import KernelRidge
from assay.kernels import Gaussian, Polynomial
from assay.linear_model import (
    ElasticNet,
    GeneralizedLinearRegressor,
    Lasso,
    LogisticRegression,
    Perceptron,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)
from assay.neighbors import KNeighborsClassifier
from assay.svm import SVR, LinearSVC, LinearSVR

IRIS = load_iris(return_X_y=True)
DIABETES = tuple(part[:120] for part in load_diabetes(return_X_y=True))
LINEAR = [
    LogisticRegression(C=0.5),
    LinearSVC(C=0.5, tol=1e-10),
    LinearSVC(C=0.5, loss="hinge", tol=1e-10),
    Perceptron(shuffle=False, max_iter=3),
    SGDClassifier("log_loss", alpha=0.1, shuffle=False, max_iter=20, tol=None),
    Ridge(alpha=0.5),
    LinearSVR(C=0.5, epsilon=5.0, tol=1e-10),
    SGDRegressor("huber", alpha=0.1, epsilon=10.0, eta0=0.01, shuffle=False, max_iter=20, tol=None),
    GeneralizedLinearRegressor("poisson", alpha=0.5),
    HuberRegressor(alpha=0.5, tol=1e-10, max_iter=5000),
]


def rows(model):
    return IRIS if is_classifier(model) else (50 * DIABETES[0][:, :4], DIABETES[1])


@pytest.mark.mission("KER-79")
@pytest.mark.parametrize("model", LINEAR, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_a_linear_kernel_gives_the_linear_learner(model):
    X, y = rows(model)
    plain, kernelized = clone(model).fit(X[::2], y[::2]), Kernelized(model, kernel="linear").fit(X[::2], y[::2])
    w = kernelized.dual_coef_ @ X[::2]
    scale = np.abs(plain.coef_).max()
    np.testing.assert_allclose(w, np.atleast_2d(plain.coef_), atol=2e-4 * scale)
    np.testing.assert_allclose(kernelized.predict(X[1::2]), plain.predict(X[1::2]), rtol=1e-3)
    if is_classifier(model):
        values = kernelized.decision_function(X[1::2])
        np.testing.assert_allclose(values, plain.decision_function(X[1::2]), atol=2e-3 * scale)


@pytest.mark.mission("KER-79")
def test_other_kernels_give_the_kernel_machines():
    X, y = rows(Ridge())
    new, gamma = X[1::2], 0.05
    kernel = Gaussian(gamma)(new, X[::2])
    ridge = Kernelized(Ridge(alpha=0.5, fit_intercept=False), gamma=gamma).fit(X[::2], y[::2])
    closed = kernel @ np.linalg.solve(Gaussian(gamma)(X[::2]) + 0.5 * np.eye(60), y[::2])
    np.testing.assert_allclose(ridge.predict(new), closed, rtol=1e-6)
    np.testing.assert_allclose(kernel @ ridge.dual_coef_[0], closed, rtol=1e-6)
    theirs = KernelRidge(alpha=0.5, kernel="rbf", gamma=gamma).fit(X[::2], y[::2])
    np.testing.assert_allclose(ridge.dual_coef_[0], theirs.dual_coef_, rtol=1e-5, atol=1e-7)
    tube = {"C": 50.0, "epsilon": 5.0, "tol": 1e-9}
    held = Kernelized(LinearSVR(**tube, fit_intercept=False), kernel=Polynomial(2, 0.1, 1.0)).fit(X[::2], y[::2] - 150)
    machine = SVR(**tube, kernel=Polynomial(2, 0.1, 1.0)).fit(X[::2], y[::2] - 150)
    objective = 0.5 * held.dual_coef_ @ Polynomial(2, 0.1, 1.0)(X[::2]) @ held.dual_coef_.T
    objective += 50 * np.maximum(np.abs(held.predict(X[::2]) - y[::2] + 150) - 5, 0).sum()
    assert machine.objective(X[::2], y[::2] - 150) <= objective.item() * (1 + 1e-6)  # it may have an offset
    A, labels = IRIS[0][50:], IRIS[1][50:]
    logistic = Kernelized(LogisticRegression(C=3.0), gamma=0.7).fit(A, labels)
    alone = KernelLogisticRegression(C=3.0, gamma=0.7, tol=1e-10).fit(A, labels)
    np.testing.assert_allclose(logistic.predict_proba(A), alone.predict_proba(A), atol=1e-5)
    gram = Kernelized(LogisticRegression(C=3.0), kernel="precomputed").fit(Gaussian(0.7)(A), labels)
    np.testing.assert_allclose(gram.decision_function(Gaussian(0.7)(A)), logistic.decision_function(A), atol=1e-9)


@pytest.mark.mission("KER-79")
def test_what_it_is_and_what_it_refuses():
    X, y = IRIS
    assert is_classifier(Kernelized(LogisticRegression()))
    assert is_regressor(Kernelized(Ridge()))
    model = Kernelized(LogisticRegression()).fit(X, y)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)[np.triu_indices(150, 1)]
    assert model.kernel_.gamma == pytest.approx(1 / np.median(squares[squares > 0]))
    assert model.score(X, y) > 0.95
    assert not hasattr(Kernelized(Ridge()), "predict_proba")
    for wrong in (Lasso(), ElasticNet(), LinearSVC(penalty="l1"), LogisticRegression(l1_ratio=0.5, solver="saga")):
        with pytest.raises(ValueError, match="depends on the coordinates"):
            Kernelized(wrong).fit(X, y)
    with pytest.raises(ValueError, match="is not linear"):
        Kernelized(KNeighborsClassifier()).fit(X, y)
    with pytest.raises(ValueError, match="must have 4 columns"):
        model.predict(X[:, :3])

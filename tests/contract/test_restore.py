"""A fitted model is its class, its parameters and the arrays that its family names: nothing else is read to predict."""

import numpy as np
import pytest
import scipy.sparse as sp

from assay import persist
from assay.discriminant_analysis import (
    KernelDiscriminantAnalysis,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from assay.kernel_model import KernelLogisticRegression, KernelPerceptron
from assay.kernel_ridge import KernelRidge
from assay.kernels import Gaussian, Linear
from assay.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform", "score_samples")

MODELS = [
    SVC(),
    SVC(kernel="linear", decision_function_shape="ovo"),
    SVC(kernel="auto", break_ties=True),
    SVC(kernel="poly", degree=2, coef0=1.0, gamma="auto"),
    SVC(kernel=0.5 * Gaussian(0.7) + Linear()),
    SVC(probability=True, random_state=0),
    NuSVC(nu=0.2),
    NuSVC(nu=0.2, probability=True, random_state=0),
    SVR(),
    SVR(kernel="linear"),
    NuSVR(),
    OneClassSVM(nu=0.2),
    LinearSVC(),
    LinearSVR(),
    KernelRidge(kernel="rbf"),
    KernelLogisticRegression(),
    KernelPerceptron(random_state=0),
    LinearDiscriminantAnalysis(n_components=1),
    QuadraticDiscriminantAnalysis(),
    KernelDiscriminantAnalysis(n_components=1),
]


def rows(n_classes, seed=0, n=90):
    random = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return random.normal(size=(n, 3)) + 1.5 * y[:, None], y


def restored(model):
    """Build the model anew from its parameters and arrays alone."""
    return persist.built(model.stored())


def assert_same(model, X):
    new = restored(model)
    told = 0
    for name in METHODS:
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(new, name)(X), getattr(model, name)(X))
            told += 1
    assert told
    for name in ("dual_coef_", "coef_", "n_support_", "support_", "probA_", "X_fit_", "gamma_"):
        if hasattr(type(model), name) and hasattr(model, name):
            np.testing.assert_array_equal(getattr(new, name), getattr(model, name))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_parameters_and_arrays_are_all_that_predicts(model, n_classes):
    X, y = rows(n_classes)
    fitted = type(model)(**model.get_params(deep=False)).fit(X, y)
    assert_same(fitted, rows(n_classes, seed=1)[0])


@pytest.mark.parametrize("model", [SVC(kernel="precomputed"), SVR(kernel="precomputed")], ids=str)
def test_a_gram_matrix_that_was_given(model):
    X, y = rows(3)
    assert_same(model.fit(X @ X.T, y), rows(3, seed=1)[0] @ X.T)


def test_sparse_support_vectors():
    X, y = rows(3)
    assert_same(SVC().fit(sp.csr_matrix(X), y), sp.csr_matrix(rows(3, seed=1)[0]))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_is_derived_is_scikit_learns(n_classes):
    import sklearn.svm as theirs

    X, y = rows(n_classes)
    ours, other = SVC(tol=1e-8).fit(X, y), theirs.SVC(tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(ours.n_support_, other.n_support_)
    np.testing.assert_array_equal(ours.support_, other.support_)
    np.testing.assert_allclose(np.abs(ours.dual_coef_), np.abs(other.dual_coef_), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", [*MODELS, SVC(kernel="sigmoid"), SVC(class_weight="balanced")], ids=str)
def test_a_model_built_anew_can_be_certified(model, n_classes):
    X, y = rows(n_classes)
    fitted = type(model)(**model.get_params(deep=False)).fit(X, y)
    found, again = fitted.certify(X, y), restored(fitted).certify(X, y)
    if not isinstance(fitted, (LinearSVC, LinearSVR)):  # whose proof needs dual variables that predict nothing
        for one, other in zip(found.claims, again.claims, strict=True):
            assert (one.template, one.value, one.params) == (other.template, other.value, other.params)

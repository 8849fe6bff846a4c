"""A model is its class, its parameters and the arrays of its family: built anew from these alone, it says the same."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from assay.checker.family import find
from assay.cluster import KMeans
from assay.decomposition import PCA, KernelPCA, TruncatedSVD
from assay.linear_model import (
    ElasticNet,
    GeneralizedLinearRegressor,
    Lasso,
    LinearRegression,
    LinearSeparator,
    LogisticRegression,
    Perceptron,
    Pocket,
    Ridge,
    SGDClassifier,
    SGDRegressor,
    VotedPerceptron,
)
from assay.mixture import GaussianDensity, GaussianMixture, GaussianMixtureClassifier, HistogramDensity
from assay.model_selection import CrossValidated, StructuralRiskMinimizer
from assay.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    LearningVectorQuantization,
    NearestNeighbors,
)
from assay.neural_network import MLPClassifier, MLPRegressor
from assay.preprocessing import PolynomialTransform

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 3))
SHIFT = X[:, 0] + 0.4 * RNG.normal(size=120)
TWO, THREE = np.where(SHIFT > 0, "yes", "no"), np.array(["a", "b", "c"])[np.digitize(SHIFT, [-0.5, 0.5])]
NUMBERS = X[:, 0] - X[:, 1] + 0.2 * RNG.normal(size=120)
COUNTS, TARGETS = np.exp(0.3 * NUMBERS).round(), np.column_stack([NUMBERS, SHIFT])
LABELS = np.column_stack([SHIFT > 0, NUMBERS > 0, X[:, 2] > 0]).astype(int)
FRESH = RNG.normal(size=(60, 3))

MORE = {  # arrays that a class has beside those that its family had when it was made
    "MLPClassifier": ("several_labels_",),
    "NearestNeighbors": ("fit_X_",),
    "PCA": ("explained_variance_", "noise_variance_"),
}
MEMBERS = {"CrossValidated": ("fold_models_",), "StructuralRiskMinimizer": ("best_estimator_",)}
SAID = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "score_samples",
    "kneighbors",
    "cells",
    "log_joint",
    "bic",
    "get_covariance",
)

CASES = [
    (LinearRegression(), NUMBERS),
    (LinearRegression(), TARGETS),
    (LinearRegression(fit_intercept=False), NUMBERS),
    (Ridge(), TARGETS),
    (Lasso(alpha=0.1), NUMBERS),
    (ElasticNet(alpha=0.1), NUMBERS),
    *((GeneralizedLinearRegressor(name), COUNTS + 1) for name in ("gaussian", "poisson", "gamma", "lognormal")),
    (GeneralizedLinearRegressor("gamma", link="inverse", alpha=0.1), COUNTS + 1),
    (GeneralizedLinearRegressor("binomial", link="probit"), (SHIFT > 0).astype(float)),
    (LogisticRegression(), TWO),
    (LogisticRegression(), THREE),
    (Perceptron(random_state=0), THREE),
    (Pocket(random_state=0), THREE),
    (LinearSeparator(), THREE),
    (VotedPerceptron(random_state=0), TWO),
    (VotedPerceptron(random_state=0, fit_intercept=False), THREE),
    (SGDClassifier("log_loss", random_state=0), THREE),
    (SGDRegressor(random_state=0), NUMBERS),
    (MLPClassifier((4,), random_state=0), TWO),
    (MLPClassifier((4, 3), random_state=0, activation="tanh"), THREE),
    (MLPClassifier((4,), random_state=0, loss="squared_error"), THREE),
    (MLPClassifier((4,), random_state=0), LABELS),
    (MLPRegressor("poisson", (4,), random_state=0), COUNTS),
    (MLPRegressor("squared_error", (4,), random_state=0, solver="lbfgs"), TARGETS),
    *((GaussianMixture(2, covariance_type=kind, random_state=0), None) for kind in ("full", "tied", "diag")),
    (GaussianMixture(2, covariance_type="spherical", random_state=0), None),
    (GaussianMixtureClassifier(2, covariance_type="tied", random_state=0), THREE),
    (GaussianDensity(), None),
    (GaussianDensity(covariance_type="diag"), None),
    (HistogramDensity(alpha=0.5), None),
    (KMeans(3, random_state=0), None),
    (PCA(2), None),
    (PCA(0.8, whiten=True), None),
    (TruncatedSVD(2), None),
    (KernelPCA(2, kernel="rbf"), None),
    (KernelPCA(2, kernel="poly", gamma=0.3, fit_inverse_transform=True), None),
    (KernelPCA(2, kernel="cosine"), None),
    (KNeighborsClassifier(3), THREE),
    (KNeighborsClassifier(3, weights="distance", metric="manhattan", algorithm="kd_tree"), TWO),
    (KNeighborsClassifier(3, metric="cosine", algorithm="brute"), TWO),
    (KNeighborsRegressor(3, p=3), TARGETS),
    (NearestNeighbors(n_neighbors=2), None),
    (LearningVectorQuantization(random_state=0), THREE),
    (PolynomialTransform(3, include_bias=False), None),
    (CrossValidated(LogisticRegression(), random_state=0), THREE),
    (StructuralRiskMinimizer([LogisticRegression(), Perceptron(random_state=0)], random_state=0), TWO),
]


def stored(model):
    """Return the names of the arrays (and members) that a file would hold."""
    name = type(model).__name__
    family = find(model.family)[1].arrays if hasattr(model, "family") and name not in MEMBERS else ()
    return ("n_features_in_", "feature_names_in_", "classes_", *family, *MORE.get(name, ()), *MEMBERS.get(name, ()))


def restored(model):
    """Return a model of the same class and parameters with only those arrays; properties are left to the class."""
    other = clone(model)
    for name in stored(model):
        if isinstance(getattr(type(model), name, None), property) or not hasattr(model, name):
            continue
        value = getattr(model, name)
        setattr(other, name, value.copy() if isinstance(value, np.ndarray) else value)
    if hasattr(other, "_derive"):
        other._derive()
    return other


def named(part):
    return " ".join(repr(part).split()) if hasattr(part, "get_params") else "" if part is None else str(part.shape)


@pytest.mark.parametrize(("model", "y"), CASES, ids=named)
def test_class_parameters_and_arrays_are_the_model(model, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(model).fit(X) if y is None else clone(model).fit(X, y)
        other = restored(fitted)
        asked = [name for name in SAID if hasattr(fitted, name)]
        assert asked
        for name in asked:
            args = () if name == "get_covariance" else (FRESH,)
            before, after = getattr(fitted, name)(*args), getattr(other, name)(*args)
            for one, two in zip(*((part if isinstance(part, tuple) else (part,)) for part in (before, after))):
                assert np.array_equal(one, two), name
    if getattr(fitted, "family", None) is not None:
        assert other.family == fitted.family

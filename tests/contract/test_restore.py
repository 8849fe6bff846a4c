"""A fitted model is its class, its parameters and the arrays of its family: built anew from these alone, it says the
same to the bit, and proves the same."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import get_tags

import assay
from assay import ensemble, tree
from assay.cluster import KMeans
from assay.decomposition import PCA, KernelPCA
from assay.discriminant_analysis import KernelDiscriminantAnalysis, LinearDiscriminantAnalysis
from assay.hmm import GMMHMM, GaussianHMM
from assay.kernel_ridge import KernelRidge
from assay.kernels import Gaussian, Linear
from assay.linear_model import (
    GeneralizedLinearRegressor,
    LinearRegression,
    LogisticRegression,
    Ridge,
    SGDClassifier,
    VotedPerceptron,
)
from assay.mixture import GaussianDensity, GaussianMixture, GaussianMixtureClassifier, HistogramDensity
from assay.model_selection import CrossValidated
from assay.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from assay.neural_network import MLPClassifier, MLPRegressor
from assay.persist import built
from assay.svm import SVC, SVR, NuSVC
from tests.contract.test_contract import suited

pytestmark = pytest.mark.filterwarnings("ignore")
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
    "member_votes",
)
ABOUT_THE_FIT = {"estimators_samples_"}  # of which rows each member saw, which no prediction needs


def drawn(seed, n):
    """Return rows of two numbers and a level, and a number that is learnt from them."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 2)
    X[:, 3] = rng.integers(0, 3, n)
    return X, X[:, 0] + 0.5 * X[:, 3] - 0.5 + 0.4 * rng.normal(size=n), X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=n)


X, SHIFT, NUMBERS = drawn(5, 120)
FRESH = drawn(6, 200)[0]
Y = {
    "two": np.where(SHIFT > 0, "yes", "no"),
    "three": np.array(["a", "b", "c"])[np.digitize(SHIFT, [-0.5, 0.5])],
    "numbers": NUMBERS,
    "counts": np.exp(0.3 * NUMBERS).round() + 1,
    "shares": (SHIFT > 0).astype(float),
    "targets": np.column_stack([NUMBERS, SHIFT]),
    "labels": np.column_stack([SHIFT > 0, NUMBERS > 0, X[:, 2] > 0]).astype(int),
    "none": None,
}


def with_defaults():
    """Return every learner of the registry, with each kind of target that it takes."""
    for learner in assay.learners():
        few = {"n_estimators": 5} if "n_estimators" in learner._get_param_names() else {}
        near = {"radius": 9.0} if learner.__name__.startswith("RadiusNeighbors") else {}  # no row has nobody near
        model, task = learner(**few, **near), learner.card.task
        if task == "classify":
            yield from ((model, y) for y in ("two", "three") if y == "two" or takes_more_than_two(model))
        else:
            positive = get_tags(model).target_tags.positive_only
            yield model, "none" if task != "regress" else "counts" if positive else "numbers"


def takes_more_than_two(model):
    return get_tags(model).classifier_tags.multi_class


NOMINAL = [  # fitted to rows with gaps, the last column nominal
    (tree.DecisionTreeClassifier(nominal=[3], split="multiway", missing="fractional"), "two"),
    (tree.ID3(nominal=[3]), "three"),
    (tree.C45(nominal=[3]), "three"),
    (ensemble.RandomForestClassifier(5, voting="hard", nominal=[3]), "two"),
    (ensemble.HistGradientBoostingClassifier(max_iter=5, categorical_features=[3], loss="exponential"), "two"),
    (ensemble.HistGradientBoostingRegressor(max_iter=5, categorical_features=[3]), "numbers"),
]
SPECIAL = [
    (LinearRegression(), "targets"),
    (LinearRegression(fit_intercept=False), "numbers"),
    (Ridge(), "targets"),
    *((GeneralizedLinearRegressor(name), "counts") for name in ("gaussian", "poisson", "gamma", "lognormal")),
    (GeneralizedLinearRegressor("gamma", link="inverse", alpha=0.1), "counts"),
    (GeneralizedLinearRegressor("binomial", link="probit"), "shares"),
    (VotedPerceptron(fit_intercept=False), "three"),
    (SGDClassifier("log_loss"), "three"),
    (MLPClassifier((4, 3), activation="tanh"), "three"),
    (MLPClassifier((4,), loss="squared_error"), "three"),
    (MLPClassifier((4,)), "labels"),
    (MLPRegressor("poisson", (4,)), "counts"),
    (MLPRegressor("squared_error", (4,), solver="lbfgs"), "targets"),
    *((GaussianMixture(2, covariance_type=kind), "none") for kind in ("full", "tied", "diag", "spherical")),
    (GaussianMixtureClassifier(2, covariance_type="tied"), "three"),
    (GaussianDensity(covariance_type="diag"), "none"),
    (HistogramDensity(alpha=0.5), "none"),
    *((GaussianHMM(2, covariance_type=kind), "none") for kind in ("full", "tied", "diag", "spherical")),
    *((GMMHMM(2, n_mix=2, covariance_type=kind), "none") for kind in ("full", "tied", "diag", "spherical")),
    (KMeans(3), "none"),
    (PCA(0.8, whiten=True), "none"),
    (KernelPCA(2, kernel="rbf"), "none"),
    (KernelPCA(2, kernel="poly", gamma=0.3, fit_inverse_transform=True), "none"),
    (KernelPCA(2, kernel="cosine"), "none"),
    (KNeighborsClassifier(3, weights="distance", metric="manhattan", algorithm="kd_tree"), "two"),
    (KNeighborsClassifier(3, metric="cosine", algorithm="brute"), "two"),
    (KNeighborsRegressor(3, p=3), "targets"),
    (NearestNeighbors(n_neighbors=2), "none"),
    (CrossValidated(LogisticRegression()), "three"),
    *((SVC(kernel="linear", decision_function_shape="ovo"), y) for y in ("two", "three")),
    *((SVC(kernel="auto", break_ties=True), y) for y in ("two", "three")),
    *((SVC(kernel="poly", degree=2, coef0=1.0, gamma="auto"), y) for y in ("two", "three")),
    *((SVC(kernel=0.5 * Gaussian(0.7) + Linear()), y) for y in ("two", "three")),
    *((SVC(probability=True), y) for y in ("two", "three")),
    *((SVC(kernel="sigmoid"), y) for y in ("two", "three")),
    *((SVC(class_weight="balanced"), y) for y in ("two", "three")),
    *((NuSVC(nu=0.2), y) for y in ("two", "three")),
    *((NuSVC(nu=0.2, probability=True), y) for y in ("two", "three")),
    (SVR(kernel="linear"), "numbers"),
    (KernelRidge(kernel="rbf"), "numbers"),
    (LinearDiscriminantAnalysis(n_components=1), "three"),
    (KernelDiscriminantAnalysis(n_components=1), "three"),
    (tree.DecisionTreeRegressor(criterion="absolute_error", max_depth=4), "numbers"),
    (tree.ObliqueTreeClassifier(routing="soft", max_depth=2, max_steps=5), "two"),
    (ensemble.HistGradientBoostingRegressor(max_iter=5, loss="poisson"), "counts"),
    (ensemble.AdaBoostClassifier(LogisticRegression(), n_estimators=3), "two"),
    (ensemble.AdaBoostRegressor(Ridge(), n_estimators=3), "numbers"),
    (ensemble.LPBoost(n_estimators=5, tol=1e-2), "two"),
    (ensemble.BaggingClassifier(n_estimators=4, max_features=2), "three"),
    (ensemble.BaggingClassifier(LogisticRegression(), 4, max_features=2), "three"),
    (ensemble.RandomSubspaceRegressor(Ridge(), 4), "numbers"),
]


def with_gaps(rows):
    rows = rows.copy()
    rows[np.random.default_rng(7).random(rows.shape) < 0.1] = np.nan
    return rows


CASES = [
    *((model, y, suited(model, X), suited(model, FRESH)) for model, y in [*with_defaults(), *SPECIAL]),
    *((model, y, with_gaps(X), with_gaps(FRESH)) for model, y in NOMINAL),
    *((model, "three", X @ X.T, FRESH @ X.T) for model in (SVC(kernel="precomputed"),)),
    *((model, "numbers", X @ X.T, FRESH @ X.T) for model in (SVR(kernel="precomputed"),)),
    *((model, "three", sp.csr_array(X), sp.csr_array(FRESH)) for model in (SVC(), LogisticRegression())),
]


def named(case):
    model, y, rows, _ = case
    return " ".join(repr(model).split()) + f"-{y}" + ("-sparse" if sp.issparse(rows) else "")


@pytest.fixture(params=CASES, ids=named, scope="module")
def case(request):
    """Return a fitted model, the same built anew, the rows of the fit and rows to ask about: once for all tests."""
    model, y, rows, fresh = request.param
    seed = {"random_state": 0} if "random_state" in model.get_params(deep=False) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(model).set_params(**seed).fit(rows, Y[y])
        return model, built(model.stored()), (rows, Y[y]), fresh


def assert_equal(one, other):
    for mine, yours in zip(*(value if isinstance(value, tuple) else (value,) for value in (one, other)), strict=True):
        mine, yours = (part.toarray() if sp.issparse(part) else np.asarray(part) for part in (mine, yours))
        assert mine.dtype == yours.dtype
        if mine.dtype == object:  # members
            mine, yours = (np.concatenate([one.tree_.threshold for one in part.ravel()]) for part in (mine, yours))
        np.testing.assert_array_equal(mine, yours)


def test_class_parameters_and_arrays_are_the_model(case):
    model, again, _, fresh = case
    asked = [name for name in SAID if hasattr(model, name)]
    assert asked
    for name in asked:
        assert_equal(getattr(model, name)(fresh), getattr(again, name)(fresh))


def test_what_is_derived_comes_back(case):
    model, again, _, _ = case
    kind = type(model)
    derived = {name for name in dir(kind) if name.endswith("_") and isinstance(getattr(kind, name), property)}
    for name in derived - ABOUT_THE_FIT:
        if hasattr(model, name) and isinstance(getattr(model, name), (np.ndarray, float, int)):
            assert_equal(getattr(model, name), getattr(again, name))


@pytest.mark.sampled(2)
def test_a_model_built_anew_proves_the_same(case):
    """What rests on the fit alone, such as its dual variables, is told to be missing; all else is the same."""
    model, again, rows, _ = case
    try:
        found = model.certify(*rows)
    except ValueError as refusal:
        with pytest.raises(ValueError, match=re.escape(str(refusal))):
            again.certify(*rows)
        return
    renewed = again.certify(*rows)
    assert renewed.model == found.model
    facts, kept = ({told(one) for one in each.claims if one.is_fact} for each in (found, renewed))
    assert kept <= facts
    assert {one.name for one in renewed.claims} <= {one.name for one in found.claims}
    if kept < facts:
        assert len(renewed.not_applicable) > len(found.not_applicable)
    verdicts = dict(judged(found, model, rows))
    assert all(verdicts[name] == status for name, status in judged(renewed, again, rows))


def told(claim):
    return claim.name, claim.value, repr(sorted(claim.params.items()))


def judged(certificate, model, rows):
    report = assay.verify(certificate, model, *rows)
    assert report.structure.status == "PROVED"
    return zip([one.name for one in certificate.claims], [one.status for one in report.verdicts], strict=True)

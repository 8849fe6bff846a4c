"""Every machine against LIBSVM (through scikit-learn) on random small problems of all kinds."""

import numpy as np
import pytest
import sklearn.svm as libsvm

from assay.kernels import named_kernel
from assay.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

# Badly scaled columns make some of these problems too hard for either solver; then only the objectives are
# compared.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KERNELS = ("linear", "poly", "rbf")


def random_problem(seed):
    """Return rows with duplicates, constant and badly scaled columns; labels; a target; weights or None;
    kernel; C."""
    random = np.random.default_rng(seed)
    n, d = int(random.integers(8, 70)), int(random.integers(1, 7))
    X = random.normal(size=(n, d))
    if random.random() < 0.3:
        X[: n // 4] = X[n // 2 : n // 2 + n // 4]
    if random.random() < 0.3:
        X[:, 0] = 3.0
    if random.random() < 0.2:
        X[:, -1] *= 10.0
    y = np.where(X[:, 0] + 0.5 * random.normal(size=n) > np.median(X[:, 0]), 1, 0)
    y[:2] = 0, 1
    target = np.sin(X[:, -1]) + 0.1 * random.normal(size=n)
    weight = random.uniform(0.1, 3.0, n) if random.random() < 0.4 else None
    C = float(10 ** random.uniform(-3, 3))
    kernel = KERNELS[seed % 3]
    if kernel != "rbf":
        C = min(C, 10.0)
    params = {"kernel": kernel, "gamma": float(10 ** random.uniform(-1.5, 0.5)), "degree": 2, "coef0": 1.0}
    return X, y, target, weight, C, params


def dual_objective(model, X, linear):
    """Return 1/2 beta'K beta - linear(beta) of a fitted machine, by its own coefficients."""
    p = model.get_params()
    kernel = named_kernel(p["kernel"], p["gamma"], p["degree"], p["coef0"])
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_.ravel()
    return 0.5 * beta @ kernel(X) @ beta - linear(beta)


@pytest.mark.mission("KER-22", "KER-28", "KER-32", "KER-51", "KER-73")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(200))
def test_classifier_reaches_libsvms_dual_objective(seed):
    X, y, _, weight, C, params = random_problem(seed)
    settings = {"C": C, "tol": 1e-6, "max_iter": 2_000_000, **params}
    ours = SVC(**settings).fit(X, y, weight)
    theirs = libsvm.SVC(**settings).fit(X, y, weight)
    signs = 2.0 * y - 1.0
    a = dual_objective(ours, X, lambda beta: signs @ beta)
    b = dual_objective(theirs, X, lambda beta: signs @ beta)
    assert a <= b + 1e-5 * max(abs(b), 1e-3)
    bound = C * (np.ones(len(X)) if weight is None else weight)
    beta = np.zeros(len(X))
    beta[ours.support_] = ours.dual_coef_[0]
    assert abs(beta.sum()) <= 1e-9 * bound.sum()
    assert np.all(beta * signs >= 0)
    assert np.all(np.abs(beta) <= bound * (1 + 1e-12))
    scale = 1e-2 * (1.0 + np.abs(theirs.decision_function(X)).max())  # LIBSVM keeps its kernel rows in single precision
    both_converged = ours.fit_status_ == theirs.fit_status_ == 0
    if both_converged and np.any((np.abs(beta) > 1e-6 * bound) & (np.abs(beta) < bound * (1 - 1e-6))):
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=scale)


@pytest.mark.mission("KER-82", "KER-84", "KER-88")
@pytest.mark.parametrize("seed", range(0, 200, 4))
def test_regressor_reaches_libsvms_dual_objective(seed):
    X, _, target, weight, C, params = random_problem(seed)
    settings = {"C": C, "tol": 1e-8, "epsilon": 0.1, "max_iter": 2_000_000, **params}
    ours = SVR(**settings).fit(X, target, weight)
    theirs = libsvm.SVR(**settings).fit(X, target, weight)

    def linear(beta):
        return target @ beta - 0.1 * np.abs(beta).sum()

    a, b = dual_objective(ours, X, linear), dual_objective(theirs, X, linear)
    assert a <= b + 1e-5 * max(abs(b), 1e-3)


@pytest.mark.mission("KER-88")
def test_regressor_whose_coefficients_all_reach_their_bounds():
    """Both reach C = .1, so that w = .1, and every b in [.5, 9.4] is optimal."""
    model = SVR(kernel="linear", C=0.1, epsilon=0.5).fit([[0.0], [1.0]], [0.0, 10.0])
    assert model.dual_coef_[0] == pytest.approx([-0.1, 0.1])
    assert model.predict([[0.0], [2.0]]) == pytest.approx([4.95, 5.15])


@pytest.mark.parametrize("seed", range(30))
def test_nu_machines_agree_with_libsvm(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(40, 3))
    y = (X[:, 0] + 0.5 * random.normal(size=40) > 0).astype(int)
    target, nu = np.sin(X[:, 1]), random.uniform(0.2, 0.6)
    params = {"kernel": "rbf", "gamma": 0.7, "tol": 1e-8}
    ours, theirs = (kind(C=3.0, nu=nu, **params).fit(X, target) for kind in (NuSVR, libsvm.NuSVR))
    np.testing.assert_allclose(ours.dual_coef_.sum(), 0, atol=1e-9)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)
    ours, theirs = (kind(nu=nu, **params).fit(X, y) for kind in (NuSVC, libsvm.NuSVC))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-4, atol=1e-4)
    assert np.mean(ours.decision_function(X) * (2 * y - 1) < 1 - 1e-5) <= nu + 1e-9
    assert len(ours.support_) / len(X) >= nu - 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_one_class_agrees_with_libsvm(seed):
    X, _, _, weight, _, params = random_problem(3 * seed + 2)
    ours, theirs = (
        kind(nu=0.3, tol=1e-8, **params).fit(X, sample_weight=weight) for kind in (OneClassSVM, libsvm.OneClassSVM)
    )
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-4 * (1 + len(X)))
    np.testing.assert_allclose(ours.offset_, theirs.offset_, atol=1e-3 * (1 + len(X) ** 0.5))
    if weight is None:
        assert np.mean(ours.decision_function(X) < -1e-6) <= 0.3 + 1e-9
        assert len(ours.support_) >= 0.3 * len(X) - 1e-9


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("break_ties", [False, True])
def test_many_classes_are_decided_as_in_libsvm(shape, break_ties):
    if shape == "ovo" and break_ties:
        pytest.skip("refused by both")
    random = np.random.default_rng(3)
    X = random.normal(size=(300, 3))
    y = np.array(["d", "a", "c", "b"])[(X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0.3)]
    settings = {
        "tol": 1e-6,
        "decision_function_shape": shape,
        "break_ties": break_ties,
        "C": 5.0,
        "class_weight": {"a": 2.0},
    }
    ours, theirs = (kind(**settings).fit(X, y) for kind in (SVC, libsvm.SVC))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.995
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    np.testing.assert_allclose(ours.dual_coef_.sum(axis=1), theirs.dual_coef_.sum(axis=1), atol=0.05)


def test_probabilities_resemble_libsvms():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 3))
    y = (X[:, 0] + 0.5 * random.normal(size=400) > 0).astype(int) + (X[:, 1] > 1)
    ours = SVC(probability=True, random_state=0).fit(X, y)
    with pytest.warns(FutureWarning):
        theirs = libsvm.SVC(probability=True, random_state=0).fit(X, y)
    found = ours.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.abs(found - theirs.predict_proba(X)).mean() < 0.03


@pytest.mark.mission("KER-62")
def test_precomputed_and_callable_kernels_give_the_named_kernels_machine():
    X, y, *_ = random_problem(5)
    named = SVC(kernel="rbf", gamma=0.5, tol=1e-9).fit(X, y)
    gram = named_kernel("rbf", 0.5)(X)
    matrix = SVC(kernel="precomputed", tol=1e-9).fit(gram, y)
    function = SVC(kernel=lambda A, B: named_kernel("rbf", 0.5)(A, B), tol=1e-9).fit(X, y)
    for other, rows in ((matrix, gram), (function, X)):
        np.testing.assert_allclose(other.decision_function(rows), named.decision_function(X), atol=1e-6)


def test_large_problems_in_single_precision_agree_with_libsvm():
    random = np.random.default_rng(1)
    X = random.normal(size=(5000, 8))
    y = (np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.3 * random.normal(size=5000) > 1).astype(int)
    signs = 2.0 * y - 1.0
    for C in (0.5, 20.0):
        ours, theirs = (kind(C=C, gamma=0.1, kernel="rbf").fit(X, y) for kind in (SVC, libsvm.SVC))
        a, b = (dual_objective(m, X, lambda beta: signs @ beta) for m in (ours, theirs))
        assert abs(a - b) <= 1e-5 * abs(b)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=0.03)


def test_zero_one_features_take_the_bit_route_to_the_same_optimum():
    random = np.random.default_rng(2)
    X = (random.random((3000, 150)) < 0.2).astype(float)
    y = (X[:, :20].sum(axis=1) + random.normal(size=3000) > 4).astype(int)
    signs = 2.0 * y - 1.0
    ours, theirs = (kind(C=1.0, gamma=0.05, kernel="rbf").fit(X, y) for kind in (SVC, libsvm.SVC))
    a, b = (dual_objective(m, X, lambda beta: signs @ beta) for m in (ours, theirs))
    assert abs(a - b) <= 1e-5 * abs(b)
    np.testing.assert_allclose(ours.decision_function(X[:50]), theirs.decision_function(X[:50]), atol=5e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_support_vectors_and_their_coefficients_are_laid_out_alike(n_classes):
    y = np.arange(90) % n_classes
    X = np.random.default_rng(0).normal(size=(90, 3)) + 1.5 * y[:, None]
    ours, other = SVC(tol=1e-8).fit(X, y), libsvm.SVC(tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(ours.n_support_, other.n_support_)
    np.testing.assert_array_equal(ours.support_, other.support_)
    np.testing.assert_allclose(np.abs(ours.dual_coef_), np.abs(other.dual_coef_), atol=1e-4)

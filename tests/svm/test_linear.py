"""LinearSVC and LinearSVR: against LIBLINEAR, by hand, and by the conditions of an optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm as liblinear
from scipy.optimize import LinearConstraint, minimize

from assay.svm import SVC, LinearSVC, LinearSVR
from tests.svm.linear_problems import HINGE, TUBE, certified, objective, random_problem

# LIBLINEAR, and coordinate descent at C = 1000, may stop short; objectives are compared all the same.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# LIBLINEAR --------------------------------------------------------------------------------------------------


@pytest.mark.mission("KER-23", "KER-25")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", HINGE)
@pytest.mark.parametrize("seed", range(60))
def test_classifier_is_as_good_as_liblinear_and_proves_it(seed, loss):
    X, y, _, weight, C = random_problem(seed)
    params = {"loss": loss, "C": C, "fit_intercept": seed % 3 > 0, "intercept_scaling": [1.0, 4.0][seed % 2]}
    theirs = liblinear.LinearSVC(dual=True, tol=1e-6, max_iter=20_000, random_state=0, **params).fit(X, y, weight)
    best = objective(theirs, X, y, weight, params)
    for dual in (False, True):
        ours = LinearSVC(dual=dual, tol=1e-5, max_iter=20_000, random_state=0, **params).fit(X, y, weight)
        reached = objective(ours, X, y, weight, params)
        at_zero = C * (len(y) if weight is None else weight.sum())
        assert reached - ours.gap_ <= best * (1 + 1e-12)  # what the gap says of the minimum is true
        if not dual:  # Newton and interior points get there whatever C is; coordinate descent may stop short
            assert reached <= best + 1e-9 * at_zero
            assert ours.gap_ <= 1e-10 * at_zero
        elif ours.n_iter_ < 20_000:
            assert reached <= best + 1e-9 * at_zero


@pytest.mark.mission("KER-80", "KER-81")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", TUBE)
@pytest.mark.parametrize("seed", range(30))
def test_regressor_is_as_good_as_liblinear_and_proves_it(seed, loss):
    X, _, y, weight, C = random_problem(seed)
    params = {"loss": loss, "C": C, "epsilon": [0.0, 0.3][seed % 2], "fit_intercept": seed % 3 > 0}
    theirs = liblinear.LinearSVR(dual=True, tol=1e-8, max_iter=20_000, random_state=0, **params).fit(X, y, weight)
    best = objective(theirs, X, y, weight, params)
    at_zero = objective(_zero(X.shape[1]), X, y, weight, params)
    for dual in (False, True):
        ours = LinearSVR(dual=dual, tol=1e-5, max_iter=20_000, random_state=0, **params).fit(X, y, weight)
        reached = objective(ours, X, y, weight, params)
        assert reached - ours.gap_ <= best * (1 + 1e-12)
        if not dual or ours.n_iter_ < 20_000:
            assert reached <= best + 1e-9 * at_zero


def _zero(d):
    model = LinearSVR()
    model.coef_, model.intercept_ = np.zeros(d), np.zeros(1)
    return model


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.5, 1: 2.0, 2: 3.0}])
@pytest.mark.parametrize("loss", HINGE)
def test_several_classes_and_their_weights_as_in_liblinear(class_weight, loss):
    random = np.random.default_rng(3)
    X = random.normal(size=(120, 3))
    y = np.digitize(X[:, 0] + random.normal(size=120), [-0.5, 1.0])
    params = {"loss": loss, "class_weight": class_weight, "max_iter": 50_000, "random_state": 0}
    theirs = liblinear.LinearSVC(dual=True, tol=1e-8, **params).fit(X, y)
    for dual in (True, False):
        ours = LinearSVC(dual=dual, tol=1e-6, **params).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


# Sparse coefficients ----------------------------------------------------------------------------------------


def l1_objective(model, X, y, weight, C, s):
    w, b = model.coef_[0], float(np.ravel(model.intercept_)[0])
    c = C * (np.ones(len(y)) if weight is None else weight)
    return np.abs(w).sum() + abs(b) / s + c @ np.maximum(1 - (2 * y - 1) * (X @ w + b), 0) ** 2


@pytest.mark.parametrize("seed", range(40))
def test_l1_is_as_good_as_liblinear_and_proves_it(seed):
    X, y, _, weight, C = random_problem(seed)
    s = [1.0, 4.0][seed % 2]
    settings = {"penalty": "l1", "C": C, "intercept_scaling": s, "max_iter": 5_000, "random_state": 0}
    theirs = liblinear.LinearSVC(dual=False, tol=1e-7, **settings).fit(X, y, weight)
    best, at_zero = l1_objective(theirs, X, y, weight, C, s), C * (len(y) if weight is None else weight.sum())
    table = sp.csr_matrix(X)
    for rows in (X, table):
        ours = LinearSVC(tol=1e-5, **settings).fit(rows, y, weight)
        reached = l1_objective(ours, X, y, weight, C, s)
        assert reached - ours.gap_ <= best * (1 + 1e-12)
        settled = ours.n_iter_ < 5_000  # a constant column beside the intercept's makes any coordinate descent crawl
        assert reached <= best + (1e-9 if settled else 1e-4) * at_zero
        assert ours.gap_ <= 1e-10 * at_zero or not settled
    assert certified(ours, table, y, weight).find("linear-svm.gap").value <= ours.gap_ * 1.01 + 1e-8 * (1 + at_zero)


@pytest.mark.parametrize("C", [0.1, 0.25, 1.0, 50.0])
def test_l1_by_hand(C):
    # x = -1, +1 without intercept: |w| + 2 C (1 - w)^2 has its minimum at max(0, 1 - 1 / (4 C)).
    model = LinearSVC("l1", C=C, fit_intercept=False, tol=1e-7).fit([[-1.0], [1.0]], [0, 1])
    assert model.coef_[0, 0] == pytest.approx(max(0.0, 1 - 1 / (4 * C)), abs=1e-6)


def test_l1_sets_coefficients_to_zero():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 30))
    y = (X[:, 3] + 0.3 * random.normal(size=200) > 0).astype(int)
    model = LinearSVC("l1", C=0.02).fit(X, y)
    assert model.coef_[0, 3] > 0
    assert np.count_nonzero(model.coef_) < 10
    claims = model.certify(X, y).claims
    assert not any(claim.name == "solution.enclosure" for claim in claims)  # nothing makes the optimum unique


# By hand ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("C", [1e-3, 0.2, 0.5, 3.0, 1e3])
def test_two_points_by_hand(C, dual):
    # x = -1, +1 without intercept: 1/2 w^2 + 2 C max(0, 1 - w), and with the square.
    fit = {"C": C, "dual": dual, "fit_intercept": False, "tol": 1e-7, "max_iter": 100_000}
    X, y = [[-1.0], [1.0]], [0, 1]
    assert LinearSVC(loss="hinge", **fit).fit(X, y).coef_[0, 0] == pytest.approx(min(1.0, 2 * C), rel=1e-6)
    assert LinearSVC(**fit).fit(X, y).coef_[0, 0] == pytest.approx(4 * C / (1 + 4 * C), rel=1e-6)


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_one_point_of_a_regression_by_hand(C, dual):
    # x = 1, y = 2, epsilon = 1/2: 1/2 w^2 + C max(0, |2 - w| - 1/2), and with the square.
    fit = {"C": C, "epsilon": 0.5, "dual": dual, "fit_intercept": False, "tol": 1e-7}
    insensitive, squared = (LinearSVR(loss=loss, **fit).fit([[1.0]], [2.0]).coef_[0] for loss in TUBE)
    assert insensitive == pytest.approx(min(C, 1.5), rel=1e-6)
    assert squared == pytest.approx(3 * C / (1 + 2 * C), rel=1e-6)


@pytest.mark.mission("KER-22", "KER-25", "KER-26")
@pytest.mark.parametrize("seed", range(6))
def test_the_constrained_form_has_the_same_minimum(seed):
    """min 1/2 |w|^2 + C sum xi with y <w, x> >= 1 - xi, xi >= 0, by SLSQP; and sum of hinges + |w|^2 / (2 C)."""
    random = np.random.default_rng(seed)
    X, C = random.normal(size=(12, 2)), 0.8
    y = (X[:, 0] + random.normal(size=12) > 0).astype(int)
    y[:2] = 0, 1
    t = 2.0 * y - 1.0
    slacks = LinearConstraint(np.hstack([t[:, None] * X, np.eye(12)]), 1.0, np.inf)
    found = minimize(
        lambda v: 0.5 * v[:2] @ v[:2] + C * v[2:].sum(),
        np.append(np.zeros(2), np.ones(12)),
        jac=lambda v: np.append(v[:2], np.full(12, C)),
        bounds=[(None, None)] * 2 + [(0, None)] * 12,
        constraints=slacks,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    model = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-7).fit(X, y)
    w = model.coef_[0]
    hinges = np.maximum(1 - t * (X @ w), 0)
    assert 0.5 * w @ w + C * hinges.sum() == pytest.approx(found.fun, rel=1e-8)
    np.testing.assert_allclose(w, found.x[:2], atol=1e-5)
    np.testing.assert_allclose(hinges, found.x[2:], atol=1e-5)
    risk = minimize(
        lambda v: np.maximum(1 - t * (X @ v), 0).sum() + v @ v / (2 * C),
        w,
        method="Nelder-Mead",
        options={"xatol": 1e-9},
    )
    np.testing.assert_allclose(risk.x, w, atol=1e-5)


@pytest.mark.mission("KER-22")
def test_a_wide_column_gives_the_machine_with_a_free_intercept():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    y = (X[:, 0] + 1.0 + random.normal(size=80) > 0).astype(int)
    free = SVC(kernel="linear", C=0.7, tol=1e-8).fit(X, y)
    ours = LinearSVC(loss="hinge", C=0.7, intercept_scaling=1e4, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(ours.coef_, free.coef_ * np.sign(free.coef_ @ ours.coef_.T), atol=1e-4)
    assert np.array_equal(ours.predict(X), free.predict(X))


# Conditions of an optimum -----------------------------------------------------------------------------------


@pytest.mark.mission("KER-24", "KER-29")
@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_conditions_of_the_hinge_hold_row_by_row(seed, dual):
    X, y, _, weight, _ = random_problem(seed)
    model = LinearSVC(loss="hinge", C=0.5, dual=dual, tol=1e-7, max_iter=100_000).fit(X, y, weight)
    t = 2.0 * y - 1.0
    alpha, top = model.dual_coef_[0] * t, 0.5 * (np.ones(len(y)) if weight is None else weight)
    z = t * model.decision_function(X)
    assert np.all((alpha >= 0) & (alpha <= top))
    np.testing.assert_allclose((alpha * t) @ X, model.coef_[0], atol=1e-4)
    assert (alpha * t).sum() == pytest.approx(model.intercept_[0], abs=1e-4)
    assert np.all(z[alpha < 1e-3 * top] >= 1 - 1e-3)
    assert np.all(z[alpha > (1 - 1e-3) * top] <= 1 + 1e-3)
    np.testing.assert_allclose(z[(alpha > 0.01 * top) & (alpha < 0.99 * top)], 1.0, atol=1e-3)


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR])
def test_dual_variables_of_squared_losses_are_their_slopes(kind, dual):
    X, y, target, _, _ = random_problem(4)
    settings = {"dual": dual, "tol": 1e-7, "max_iter": 100_000}
    if kind is LinearSVC:
        model = LinearSVC(**settings).fit(X, y)
        t = 2.0 * y - 1.0
        slopes = 2 * t * np.maximum(1 - t * model.decision_function(X), 0)
    else:
        model = LinearSVR(loss=TUBE[1], epsilon=0.2, **settings).fit(X, target)
        r = target - model.predict(X)
        slopes = 2 * np.sign(r) * np.maximum(np.abs(r) - 0.2, 0)
    np.testing.assert_allclose(model.dual_coef_[0], slopes, atol=1e-4)


@pytest.mark.mission("KER-16", "KER-18")
def test_rows_without_a_dual_variable_do_not_matter():
    random = np.random.default_rng(1)
    X = np.vstack([random.normal(-1.5, 1, (60, 2)), random.normal(1.5, 1, (60, 2))])
    y = np.repeat([0, 1], 60)
    model = LinearSVC(loss="hinge", tol=1e-7).fit(X, y)
    support = np.abs(model.dual_coef_[0]) > 1e-6
    assert 0 < support.sum() < 60
    again = LinearSVC(loss="hinge", tol=1e-7).fit(X[support], y[support])
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-5)
    np.testing.assert_allclose(again.intercept_, model.intercept_, atol=1e-5)

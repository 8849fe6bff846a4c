"""SGDClassifier and SGDRegressor against descent in Python, scikit-learn, SciPy and Newton; their gaps are proved."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.svm import LinearSVC

import assay
from assay.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from assay.linear_model._base import packed
from assay.losses import log_loss, named
from assay.optim.descent import RULES, Rule, Schedule, Stop, descend
from tests.linear_model.descent_rows import rows_of

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.mission("OPT-03")
@pytest.mark.parametrize("name", RULES)
def test_compiled_epochs_are_the_interface_in_python(name):
    from assay.linear_model._sgd_loops import Objective, Rates, UpdateRule, batch_epoch

    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(57, 4)), rng.choice([-1.0, 1.0], size=57)
    alpha, rule, schedule = 0.1, Rule(name), Schedule("sqrt", 0.05, 0.1)

    def gradient(v, rows):
        f = X[rows] @ v[:4] + v[4]
        slope = log_loss.slope(y[rows], f)
        value = log_loss.value(y[rows], f).mean()
        return float(value), np.append(X[rows].T @ slope / len(rows) + alpha * v[:4], slope.mean())

    found = descend(
        gradient,
        np.zeros(5),
        n_rows=57,
        batch_size=8,
        rule=rule,
        schedule=schedule,
        stop=Stop(epochs=1),
        seed=3,
    )
    w, b, state = np.zeros(4), np.zeros(1), rule.start(5)
    order = np.random.default_rng(3).permutation(57)
    batch_epoch(
        *packed(X),
        y,
        np.empty(0),
        order,
        8,
        Objective(log_loss.code, 0.0, alpha, 1.0),
        UpdateRule(rule.code, rule.inertia, rule.memory, rule.eps),
        Rates(schedule.code, schedule.eta, schedule.decay),
        0,
        w,
        b,
        state,
    )
    np.testing.assert_allclose(np.append(w, b), found.x, rtol=1e-10, atol=1e-14)


@quiet
@pytest.mark.mission("LIN-18")
def test_logistic_regression_by_descent():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 3))
    y = (X @ [1.0, -1.0, 0.5] + rng.logistic(size=400) > 0).astype(int)
    model = SGDClassifier(
        "log_loss",
        alpha=0.0,
        batch_size=400,
        learning_rate="constant",
        eta0=2.0,
        max_iter=3000,
        tol=0.0,
        n_iter_no_change=5,
        random_state=0,
    ).fit(X, y)
    peer = PeerLogistic(C=np.inf, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-4)


@quiet
@pytest.mark.mission("OPT-17")
def test_subgradients_of_the_hinge_approach_the_quadratic_programme():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = np.where(X @ [1.0, 1.0] + 0.5 * rng.normal(size=300) > 0, 1, -1)
    alpha = 0.05

    def objective(w):
        return alpha / 2 * w @ w + np.maximum(1 - y * (X @ w), 0).mean()

    exact = (
        LinearSVC(loss="hinge", C=1 / (alpha * 300), fit_intercept=False, tol=1e-10, max_iter=1_000_000)
        .fit(X, y)
        .coef_[0]
    )
    gaps = []
    for epochs in (10, 100, 1000):
        model = SGDClassifier(
            "hinge",
            alpha=alpha,
            fit_intercept=False,
            max_iter=epochs,
            tol=0.0,
            n_iter_no_change=epochs,
            random_state=0,
        ).fit(X, y)
        gaps.append(objective(model.coef_[0]) - objective(exact))
        steps = epochs * 300
        assert gaps[-1] <= 50 * math.log(steps) / (alpha * steps)
    assert gaps[2] < gaps[0]
    assert gaps[2] < 1e-4


@quiet
@pytest.mark.parametrize("loss", ["hinge", "log_loss", "squared_hinge", "exponential"])
@pytest.mark.parametrize("intercept", [True, False])
def test_gap_of_classifiers_is_proved_and_honest(loss, intercept):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3))
    y = (X @ [1.0, -1.0, 0.5] + 0.3 + rng.normal(size=300) > 0).astype(int)
    model = SGDClassifier(loss, alpha=0.1, fit_intercept=intercept, max_iter=200, tol=0.0, random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    signs = 2.0 * y - 1

    def objective(v):
        f = X @ v[:3] + (v[3] if intercept else 0.0)
        return 0.05 * v[:3] @ v[:3] + named(loss).value(signs, f).mean()

    here = np.append(model.coef_[0], model.intercept_)
    best = min(
        minimize(objective, here, method=method, options={"maxiter": 20_000}).fun for method in ("Nelder-Mead", "BFGS")
    )
    gap = certificate.find("duality-gap").value
    assert gap >= objective(here) - best
    assert gap < 0.05


@quiet
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "epsilon_insensitive"])
def test_gap_of_regressors_is_proved(loss):
    X, y = rows_of(6)
    model = SGDRegressor(loss, alpha=0.1, max_iter=300, tol=0.0, random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    assert certificate.find("duality-gap").value < 0.5


@quiet
def test_sigmoid_squared_says_why_it_has_no_gap():
    X, y = rows_of(7)
    model = SGDClassifier("sigmoid_squared", random_state=0).fit(X, y > 0)
    assert any("not convex" in one.reason for one in model.certify(X, y > 0).not_applicable)


@quiet
def test_sparse_rows_give_the_same_descent():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 8)) * (rng.random((300, 8)) < 0.3)
    y = (X.sum(axis=1) > 0).astype(int)
    for options in ({}, {"batch_size": 16, "optimizer": "adam", "learning_rate": "constant", "eta0": 0.01}):
        model = SGDClassifier(random_state=0, fit_intercept=False, **options)
        dense, sparse = (clone(model).fit(kind, y) for kind in (X, sp.csr_matrix(X)))
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9, atol=1e-12)
        assert assay.verify(sparse.certify(sp.csr_matrix(X), y), sparse, X, y).holds
    target = X @ np.arange(8.0)
    model = SGDRegressor(random_state=0, fit_intercept=False)
    dense, sparse = (clone(model).fit(kind, target) for kind in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9)


@quiet
def test_descent_agrees_with_newton_on_many_rows():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(20_000, 5))
    y = (X @ np.ones(5) + rng.logistic(size=20_000) > 0).astype(int)
    alpha = 1e-3
    model = SGDClassifier("log_loss", alpha=alpha, max_iter=30, tol=0.0, n_iter_no_change=30, random_state=0).fit(X, y)
    exact = LogisticRegression(C=1 / (alpha * 20_000)).fit(X, y)
    assert np.abs(model.coef_ - exact.coef_).max() < 0.05
    stopped = SGDClassifier("log_loss", alpha=alpha, early_stopping=True, random_state=0).fit(X, y)
    assert stopped.score(X, y) > exact.score(X, y) - 0.01

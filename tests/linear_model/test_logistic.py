"""Logistic regression against scikit-learn and SciPy; L1 penalties by their optimality conditions; parameters."""

import warnings

import numpy as np
import pytest
import sklearn.linear_model as peers
from scipy.optimize import minimize
from scipy.sparse import csr_array, csr_matrix
from sklearn.exceptions import ConvergenceWarning

import assay
from assay.datasets.worked import noisy_labels
from assay.linear_model import LogisticRegression
from tests.linear_model.logistic_rows import data, objective, peer

# Other solvers ----------------------------------------------------------------------------------------------


@pytest.mark.mission("LIN-21")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("lam", [5e3, 5.0, 0.5, 5e-5])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_penalised_optimum_is_scikit_learns(classes, intercept, lam, solver):
    X, y, _ = data(1, classes=classes)
    C = 1 / (2 * lam)  # lam |w|^2 + sum of losses
    model = LogisticRegression(C=C, solver=solver, fit_intercept=intercept, tol=1e-14, max_iter=2_000)
    model.fit(X, y)
    other = peer(C, fit_intercept=intercept, solver="newton-cholesky").fit(X, y)
    assert model.coef_ == pytest.approx(other.coef_, rel=1e-6, abs=1e-7)
    shift = model.intercept_.mean() - other.intercept_.mean() if classes > 2 else 0.0  # softmax ignores it
    assert model.intercept_ - shift == pytest.approx(other.intercept_, rel=1e-6, abs=1e-7)
    ours = objective(X, y, model.coef_, model.intercept_, C)
    assert ours <= objective(X, y, other.coef_, other.intercept_, C) * (1 + 1e-13)
    assert ours == pytest.approx(objective(X, y, other.coef_, other.intercept_, C), rel=1e-11)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.25}])
@pytest.mark.parametrize("weighted", [True, False])
def test_weights_are_scikit_learns(classes, class_weight, weighted):
    X, y, weight = data(2, classes=classes)
    weight[::7] = 0.0
    s = weight if weighted else None
    model = LogisticRegression(class_weight=class_weight, tol=1e-14).fit(X, y, sample_weight=s)
    other = peer(1.0, class_weight=class_weight, solver="newton-cholesky").fit(X, y, sample_weight=s)
    assert model.coef_ == pytest.approx(other.coef_, rel=1e-6, abs=1e-8)


def test_integer_weights_repeat_rows():
    X, y, _ = data(3)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = LogisticRegression(tol=1e-15).fit(X, y, sample_weight=times)
    repeated = LogisticRegression(tol=1e-15).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.coef_ == pytest.approx(repeated.coef_, rel=1e-7)
    assert weighted.intercept_ == pytest.approx(repeated.intercept_, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_unpenalised_optimum_is_scipys(classes, intercept):
    X, y, weight = data(4, n=300, classes=classes, spread=0.7)
    models = [
        LogisticRegression(C=np.inf, solver=solver, fit_intercept=intercept, tol=1e-14, max_iter=3_000)
        for solver in ("newton", "lbfgs")
    ]
    one, two = (model.fit(X, y, sample_weight=weight) for model in models)
    k, d = one.coef_.shape

    def function(x):
        W = x[: k * d].reshape(k, d)
        return objective(X, y, W, x[k * d :] if intercept else 0.0, np.inf, weight)

    start = np.zeros(k * d + (k if intercept else 0))
    least = min(minimize(function, start, method=m, options={"maxiter": 2_000}).fun for m in ("BFGS", "L-BFGS-B"))
    for model in (one, two):
        ours = objective(X, y, model.coef_, model.intercept_, np.inf, weight)
        assert ours <= least + 1e-9
        assert ours == pytest.approx(least, rel=1e-7)
    assert one.predict_proba(X) == pytest.approx(two.predict_proba(X), abs=1e-6)
    if classes == 2:
        assert one.coef_ == pytest.approx(two.coef_, abs=1e-5)


@pytest.mark.parametrize(("n", "d", "classes"), [(30, 80, 2), (30, 80, 3), (60, 1_600, 2), (2_500, 140, 2)])
def test_many_columns(n, d, classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.integers(0, classes, n)
    for solver in ("newton", "lbfgs"):
        model = LogisticRegression(C=0.05, solver=solver, tol=1e-13, max_iter=1_000).fit(X, y)
        other = peer(0.05).fit(X, y)
        assert model.coef_ == pytest.approx(other.coef_, rel=1e-4, abs=1e-6)
        ours = objective(X, y, model.coef_, model.intercept_, 0.05)
        assert ours <= objective(X, y, other.coef_, other.intercept_, 0.05) * (1 + 1e-10)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("C", [1e-3, 1.0, np.inf])
def test_badly_scaled_columns_change_no_prediction_without_penalty(solver, C):
    X, y, _ = data(5, n=400, spread=0.5)
    scale = 10.0 ** np.array([-6, -2, 3, 6])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = LogisticRegression(C=C, solver=solver, tol=1e-12).fit(X * scale, y)
    if np.isinf(C):
        plain = LogisticRegression(C=C, tol=1e-12).fit(X, y)
        assert model.coef_ * scale == pytest.approx(plain.coef_, rel=1e-4, abs=1e-6)
    else:
        least = minimize(lambda x: objective(X * scale, y, x[:-1] / scale, x[-1], C), np.zeros(5)).fun
        assert objective(X * scale, y, model.coef_, model.intercept_, C) <= least + 1e-8


def test_columns_far_from_zero():
    X, y, _ = data(6, n=500)
    model = LogisticRegression(C=10.0, tol=1e-12).fit(X + 1e5, y)
    plain = LogisticRegression(C=10.0, tol=1e-12).fit(X, y)
    assert model.coef_ == pytest.approx(plain.coef_, rel=1e-5)


@pytest.mark.parametrize("share", [0.5, 0.01])
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1e4])
def test_tol_bounds_the_gap_also_where_the_intercept_does_the_work(share, C):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(2_000, 3))
    y = (rng.random(2_000) < share).astype(int)
    model = LogisticRegression(C=C, tol=1e-9).fit(X, y)
    allowed = 1e-9 * C * 2_000 * np.log(2)
    tight = LogisticRegression(C=C, tol=1e-16).fit(X, y)
    excess = objective(X, y, model.coef_, model.intercept_, C) - objective(X, y, tight.coef_, tight.intercept_, C)
    assert excess <= allowed * 1.01 + 1e-15 * C * 2_000
    assert model.certify(X, y).find("logistic.gap").value <= 30 * allowed + 2e-12


@pytest.mark.mission("LIN-25")
def test_noisy_labels_follow_the_sigmoid_and_give_the_weights_back():
    rng = np.random.default_rng(6)
    w = np.array([1.0, -2.0, 0.5])
    errors = []
    for n in (500, 50_000):
        X = rng.normal(size=(n, 3))
        y = noisy_labels(X, w, 0.3, seed=n)
        errors.append(np.abs(LogisticRegression(C=np.inf).fit(X, y).coef_[0] - w).max())
    assert errors[1] < 0.06
    assert errors[1] < errors[0]
    chance = 1 / (1 + np.exp(-(X @ w + 0.3)))
    for low in (0.1, 0.4, 0.7):
        inside = (chance > low) & (chance < low + 0.2)
        spread = 4 * np.sqrt(0.25 / inside.sum())
        assert abs((y[inside] == 1).mean() - chance[inside].mean()) < spread


# L1 penalties, and scikit-learn's parameters ----------------------------------------------------------------


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_an_l1_penalty_meets_its_optimality_conditions(share, classes):
    """Where a coefficient is zero its slope is at most the penalty, elsewhere it balances it; the intercept's is 0."""
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(200, 8))
    y = np.argmax(X[:, :classes] + rng.normal(size=(200, classes)), axis=1)
    model = LogisticRegression(C=0.2, l1_ratio=share, tol=1e-7).fit(X, y)
    assert (model.coef_ == 0).any()
    p = model.predict_proba(X)
    told = (y[:, None] == np.arange(classes)) if classes > 2 else (y == 1)[:, None]
    slope = 0.2 * (p if classes > 2 else p[:, 1:]).T @ X - 0.2 * told.T @ X + (1 - share) * model.coef_
    at_zero = model.coef_ == 0
    assert np.abs(slope[at_zero]).max() <= share + 1e-6
    np.testing.assert_allclose(slope[~at_zero], -share * np.sign(model.coef_[~at_zero]), atol=1e-6)
    np.testing.assert_allclose((p if classes > 2 else p[:, 1:]).sum(axis=0), told.sum(axis=0), atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"solver": "liblinear"}, {"solver": "liblinear", "intercept_scaling": 5.0}])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_penalised_intercept_and_an_l1_penalty_are_certified(options, share):
    X, y, _ = data(3, n=300, spread=1.0)
    model = LogisticRegression(l1_ratio=share, **options).fit(X + 1, y)
    certificate = model.certify(X + 1, y)
    assert certificate["logistic.gap"].value < 1e-4
    assert assay.verify(certificate, model, X + 1, y).holds
    if options:
        other = peers.LogisticRegression(l1_ratio=share, tol=1e-10, max_iter=10_000, random_state=0, **options)
        other.fit(X + 1, y)
        np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3)
        np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-3)


def test_wide_rows_with_an_l1_penalty():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 1600)), rng.integers(0, 2, 60)
    X[:, 0] += 2 * y
    model = LogisticRegression(C=0.1, l1_ratio=1.0).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < 60
    assert model.certify(X, y)["logistic.gap"].value < 1e-3 * 60


def test_a_warm_start_needs_fewer_steps():
    X, y, _ = data(4, n=300, spread=1.0)
    model = LogisticRegression(warm_start=True).fit(X, y)
    cold, coef = model.n_iter_[0], model.coef_
    assert model.fit(X, y).n_iter_[0] < cold
    np.testing.assert_allclose(model.coef_, coef, atol=1e-6)


def test_coefficients_can_be_sparse(tmp_path):
    X, y, _ = data(5, n=300, spread=1.0)
    model = LogisticRegression(C=0.05, l1_ratio=1.0).fit(X, y)
    scores, certificate = model.decision_function(X), model.certify(X, y)
    assert model.sparsify().coef_.format == "csr"
    for rows in (X, csr_matrix(X), csr_array(X)):
        np.testing.assert_allclose(model.decision_function(rows), scores)
        assert model.predict(rows).shape == (300,)
    assay.save(model, tmp_path / "m.assay", certificate)
    assert assay.verify(*assay.load(tmp_path / "m.assay")[::-1], X, y).holds
    assert isinstance(model.densify().coef_, np.ndarray)


def test_solvers_refuse_what_they_do_not_offer():
    X, y = np.arange(12.0).reshape(6, 2), [0, 1, 2, 0, 1, 2]
    for options, words in [
        ({"solver": "liblinear"}, "does not support multiclass"),
        ({"solver": "lbfgs", "l1_ratio": 1.0}, "supports only 'l2' or None"),
        ({"solver": "liblinear", "l1_ratio": 0.5}, "Only 'saga' solver supports elasticnet"),
        ({"dual": True}, "supports only dual=False"),
        ({"solver": "liblinear", "C": np.inf}, "penalty=None is not supported"),
    ]:
        with pytest.raises(ValueError, match=words):
            LogisticRegression(**options).fit(X, y)
    with pytest.warns(UserWarning, match="penalty=None will ignore the C"):
        LogisticRegression(penalty=None, C=2.0, max_iter=1000).fit(np.r_[X, X[::-1]], [0, 1] * 6)

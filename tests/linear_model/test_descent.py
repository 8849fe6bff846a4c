"""Gradient descent and its relatives: rules against hand computation and PyTorch's formulas, linear models
by SGD, search."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.svm import LinearSVC

import assay
from assay.linear_model import LinearRegression, LogisticRegression, SGDClassifier, SGDRegressor
from assay.linear_model._packed_rows import packed
from assay.losses import log_loss, named
from assay.optim.descent import (
    RULES,
    Rule,
    Schedule,
    Stop,
    batches,
    descend,
    oscillates,
    updates_per_epoch,
)
from assay.optim.search import acceptance, anneal, evolve, multi_start, stationary_kind

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def quadratic(curvatures):
    curvatures = np.asarray(curvatures, dtype=float)
    return lambda x, rows: (0.5 * float(x @ (curvatures * x)), curvatures * x)


def least_squares(X, y):
    def gradient(w, rows):
        r = X[rows] @ w - y[rows]
        return float(r @ r) / len(rows), 2 * X[rows].T @ r / len(rows)

    return gradient


def rows_of(seed, n=200, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.arange(1.0, d + 1) + 0.1 * rng.normal(size=n)


# Batches and schedules ----------------------------------------------------------------------------


@pytest.mark.mission("OPT-01")
def test_full_batch_contracts_each_coordinate():
    x, eta = np.array([1.0, -2.0, 3.0]), 0.3
    curvatures = np.array([0.5, 1.0, 4.0])
    found = descend(quadratic(curvatures), x, schedule=Schedule(eta=eta), stop=Stop(epochs=7), keep_path=True)
    np.testing.assert_allclose(found.trace.path[-1], x * (1 - eta * curvatures) ** 7, rtol=1e-12)
    assert (np.diff(found.trace.objective) < 0).all()


@pytest.mark.mission("LIN-07")
def test_least_squares_by_descent_reaches_the_normal_equations():
    X, y = rows_of(0)
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    limit = len(X) / np.linalg.eigvalsh(X.T @ X)[-1]
    found = descend(
        least_squares(X, y),
        np.zeros(3),
        n_rows=200,
        schedule=Schedule(eta=0.9 * limit),
        stop=Stop(epochs=2000, gradient=1e-12),
    )
    assert found.reason == "gradient"
    np.testing.assert_allclose(found.x, exact, atol=1e-10)
    np.testing.assert_allclose(found.x, LinearRegression(fit_intercept=False).fit(X, y).coef_, atol=1e-9)
    wild = descend(
        least_squares(X, y),
        np.zeros(3),
        n_rows=200,
        schedule=Schedule(eta=1.1 * limit),
        stop=Stop(epochs=2000),
    )
    assert wild.reason == "diverged"


@pytest.mark.mission("OPT-02")
def test_single_rows_converge_and_are_unbiased():
    X, y = rows_of(1)
    gradient = least_squares(X, y)
    w = np.array([0.3, -1.0, 2.0])
    mean = np.mean([gradient(w, np.array([i]))[1] for i in range(200)], axis=0)
    np.testing.assert_allclose(mean, gradient(w, np.arange(200))[1], rtol=1e-10)
    found = descend(
        gradient,
        np.zeros(3),
        n_rows=200,
        batch_size=1,
        schedule=Schedule("inverse", 0.1, 0.02),
        stop=Stop(epochs=300),
    )
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.abs(found.x - exact).max() < 0.01
    assert found.updates == 300 * 200


@pytest.mark.mission("OPT-03", "OPT-04", "OPT-06")
def test_batches_visit_every_row_once_in_a_new_order():
    random = np.random.default_rng(0)
    one, two = batches(10, 4, random), batches(10, 4, random)
    assert [len(part) for part in one] == [4, 4, 2]
    for epoch in (one, two):
        assert sorted(np.concatenate(epoch)) == list(range(10))
    assert not np.array_equal(np.concatenate(one), np.concatenate(two))
    assert (updates_per_epoch(60_000, 1), updates_per_epoch(60_000, 60_000)) == (60_000, 1)
    X, y = rows_of(2)
    gradient = least_squares(X, y)
    full, whole = (
        descend(gradient, np.zeros(3), n_rows=200, batch_size=size, stop=Stop(epochs=5)) for size in (None, 200)
    )
    np.testing.assert_allclose(full.x, whole.x, rtol=1e-12)
    by_hand, order = np.zeros(3), np.random.default_rng(0).permutation(200)
    for i in order:
        by_hand = by_hand - 0.01 * gradient(by_hand, np.array([i]))[1]
    single = descend(gradient, np.zeros(3), n_rows=200, batch_size=1, stop=Stop(epochs=1), seed=0)
    np.testing.assert_allclose(single.x, by_hand, rtol=1e-12)


def test_the_compiled_shuffle_is_uniform_and_seeded():
    from assay.linear_model._row_loops import shuffle

    counts = np.zeros((5, 5))
    for seed in range(1, 5001):
        order = np.arange(5)
        shuffle(order, seed * 7919)
        assert sorted(order) == [0, 1, 2, 3, 4]
        counts[np.arange(5), order] += 1
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(800)
    one, two = np.arange(1000), np.arange(1000)
    shuffle(one, 42)
    shuffle(two, 42)
    np.testing.assert_array_equal(one, two)


@pytest.mark.mission("OPT-05")
def test_larger_batches_make_fewer_updates_and_quieter_gradients():
    X, y = rows_of(3, n=512)
    gradient, w = least_squares(X, y), np.zeros(3)
    random, spread, updates = np.random.default_rng(0), {}, {}
    for size in (1, 8, 64):
        drawn = [gradient(w, part)[1] for _ in range(40) for part in batches(512, size, random)]
        spread[size] = np.var(drawn, axis=0).sum()
        updates[size] = descend(gradient, w, n_rows=512, batch_size=size, stop=Stop(epochs=2)).updates
    assert updates == {1: 1024, 8: 128, 64: 16}
    # drawn without replacement: the variance is that of one row over B, times (1 - B / n) up to 1 / (n - 1)
    for size in (8, 64):
        assert spread[size] * size / spread[1] == pytest.approx((512 - size) / 511, rel=0.15)


@pytest.mark.mission("OPT-07")
def test_rates_above_two_over_curvature_diverge_and_below_converge():
    for eta, ends in ((1.9, "gradient"), (2.1, "diverged")):
        found = descend(quadratic([1.0]), [1.0], schedule=Schedule(eta=eta), stop=Stop(epochs=500, gradient=1e-9))
        assert found.reason == ends
    assert oscillates(descend(quadratic([1.0]), [1.0], schedule=Schedule(eta=2.05), stop=Stop(epochs=30)).trace)
    assert not oscillates(descend(quadratic([1.0]), [1.0], schedule=Schedule(eta=0.1), stop=Stop(epochs=30)).trace)


def test_schedules_are_their_formulas():
    assert [Schedule("sqrt", 2.0, 1.0)(t) for t in (0, 3)] == [2.0, 1.0]
    assert [Schedule("inverse", 1.0, 1.0)(t) for t in (0, 4)] == [1.0, 0.2]
    assert Schedule("optimal", 0.5, 0.1)(10) == pytest.approx(1 / (0.1 * 10 + 2))
    for wrong in ({"name": "slow"}, {"eta": -1.0}, {"decay": math.nan}):
        with pytest.raises(ValueError, match="Schedule"):
            Schedule(**wrong)
    with pytest.raises(ValueError, match="adagrad"):
        Rule("adamax")


# Rules --------------------------------------------------------------------------------------------


def moved(rule, gradients, eta=1.0):
    """Return the path of w from 0 under the given gradients."""
    state, w, path = rule.start(1), 0.0, []
    for t, g in enumerate(gradients):
        w += rule.move(state, np.array([g]), eta, t)[0]
        path.append(w)
    return path


@pytest.mark.mission("OPT-09", "OPT-10", "OPT-11")
def test_constant_gradients_tell_the_adaptive_rules_apart():
    steps = np.ones(100)
    assert moved(Rule("rms-mean", eps=0.0), steps)[-1] == pytest.approx(-100.0)
    assert moved(Rule("adagrad", eps=0.0), steps)[-1] == pytest.approx(-18.59, abs=0.005)
    path = moved(Rule("rmsprop", memory=0.9, eps=0.0), steps)
    assert path[-1] - path[-2] == pytest.approx(-1.0, abs=1e-4)


@pytest.mark.mission("OPT-10", "OPT-11", "OPT-12", "OPT-15")
def test_three_steps_by_hand():
    g = [3.0, -1.0, 2.0]
    total = np.cumsum(np.square(g))
    np.testing.assert_allclose(
        moved(Rule("adagrad", eps=1e-8), g, 0.1), -0.1 * np.cumsum(g / (np.sqrt(total) + 1e-8)), rtol=1e-12
    )
    v = [0.1 * 9, 0.9 * 0.9 + 0.1, 0.9 * (0.9 * 0.9 + 0.1) + 0.4]
    np.testing.assert_allclose(
        moved(Rule("rmsprop", memory=0.9), g, 0.1), -0.1 * np.cumsum(g / (np.sqrt(v) + 1e-8)), rtol=1e-12
    )
    m = [-0.3, 0.9 * -0.3 + 0.1, 0.9 * (0.9 * -0.3 + 0.1) - 0.2]
    np.testing.assert_allclose(moved(Rule("momentum"), g, 0.1), np.cumsum(m), rtol=1e-12)
    m = np.array([0.3, 0.9 * 0.3 - 0.1, 0.9 * (0.9 * 0.3 - 0.1) + 0.2]) / (1 - 0.9 ** np.arange(1, 4))
    v = np.array([0.009, 0.999 * 0.009 + 0.001, 0.999 * (0.999 * 0.009 + 0.001) + 0.004]) / (
        1 - 0.999 ** np.arange(1, 4)
    )
    np.testing.assert_allclose(moved(Rule("adam"), g, 0.1), -0.1 * np.cumsum(m / (np.sqrt(v) + 1e-8)), rtol=1e-12)
    assert moved(Rule("adam"), [-0.02], 0.1)[0] == pytest.approx(0.1, rel=1e-5)  # eta times minus the sign


@pytest.mark.mission("OPT-12")
def test_momentum_follows_its_recurrence_and_zero_inertia_is_plain():
    eta, inertia, curvature = 0.1, 0.8, 2.0
    matrix = np.array([[1 - eta * curvature, inertia], [-eta * curvature, inertia]])  # (w, m) -> next (w, m)
    state = np.array([1.0, 0.0])
    found = descend(
        quadratic([curvature]),
        [1.0],
        rule=Rule("momentum", inertia),
        schedule=Schedule(eta=eta),
        stop=Stop(epochs=20),
        keep_path=True,
    )
    for w in found.trace.path[1:, 0]:
        state = matrix @ state
        assert w == pytest.approx(state[0], rel=1e-10)
    still, plain = (
        descend(quadratic([1.0]), [1.0], rule=rule, schedule=Schedule(eta=0.3), stop=Stop(epochs=9)).x
        for rule in (Rule("momentum", 0.0), Rule())
    )
    np.testing.assert_array_equal(still, plain)


@pytest.mark.mission("OPT-08")
@pytest.mark.parametrize("name", ["adagrad", "rmsprop", "adam"])
def test_own_rate_per_coordinate_helps_on_bad_scales(name):
    gradient = quadratic([1e4, 1.0])

    def epochs(rule, schedule):
        def small(x, objective, norm):
            return 0.5 * (1e4 * x[0] ** 2 + x[1] ** 2) < 1e-3

        return descend(
            gradient, [1.0, 1.0], rule=rule, schedule=schedule, stop=Stop(epochs=100_000), on_epoch=small
        ).epochs

    plain = epochs(Rule(), Schedule(eta=1.9e-4))
    assert epochs(Rule(name, memory=0.9), Schedule("sqrt", 0.3, 0.1)) < plain / 5


@pytest.mark.mission("OPT-13")
def test_momentum_leaves_a_saddle_sooner():
    def gradient(x, rows):
        return float(x[0] ** 2 - x[1] ** 2), np.array([2 * x[0], -2 * x[1]])

    values = [
        descend(gradient, [1.0, 1e-3], rule=rule, schedule=Schedule(eta=0.05), stop=Stop(epochs=40)).trace.objective[-1]
        for rule in (Rule("momentum", 0.9), Rule())
    ]
    assert values[0] < values[1]


@pytest.mark.mission("OPT-13")
def test_momentum_crosses_the_lip_of_a_double_well():
    def gradient(x, rows):  # minima near -1 (higher) and +1 (lower), a lip between them
        t = float(x[0])
        return (t * t - 1) ** 2 - 0.3 * t, np.array([4 * t * (t * t - 1) - 0.3])

    ends, fewest = [], []
    for rule in (Rule("momentum", 0.9), Rule()):
        found = descend(gradient, [-1.6], rule=rule, schedule=Schedule(eta=0.02), stop=Stop(epochs=400))
        objective = np.array(found.trace.objective)
        ends.append(float(found.x[0]))
        fewest.append(int(np.argmax(objective < 0)) if (objective < 0).any() else np.inf)  # only the lower well is < 0
    assert ends[0] == pytest.approx(1.036, abs=0.01)  # the root of 4 t (t^2 - 1) = 0.3 above 1
    assert ends[1] == pytest.approx(-0.960, abs=0.01)  # gradient descent stays where it started
    assert fewest[0] < fewest[1] == np.inf


@pytest.mark.mission("OPT-14")
def test_uncorrected_adam_descends_and_the_printed_sign_climbs():
    found = descend(
        quadratic([1.0]),
        [1.0],
        rule=Rule("adam-uncorrected"),
        schedule=Schedule(eta=0.01),
        stop=Stop(epochs=300),
    )
    assert abs(found.x[0]) < 0.5
    w, m, v = 1.0, 0.0, 0.0  # w <- w - eta / sigma * m with m already carrying -eta: uphill
    for _ in range(300):
        m, v = 0.9 * m - 0.01 * w, 0.999 * v + 0.001 * w * w
        w -= 0.01 / (math.sqrt(v) + 1e-8) * m
    assert w > 1.0


@pytest.mark.mission("OPT-33")
def test_each_stopping_rule_fires_and_is_named():
    simple = {"schedule": Schedule(eta=0.5)}
    assert descend(quadratic([1.0]), [1.0], stop=Stop(epochs=5), **simple).reason == "epochs"
    assert descend(quadratic([1.0]), [1.0], stop=Stop(gradient=1e-3), **simple).reason == "gradient"
    assert descend(quadratic([1.0]), [1.0], stop=Stop(change=1e-3), **simple).reason == "change"
    assert descend(quadratic([1.0]), [1.0], stop=Stop(gain=1e-6), **simple).reason == "gain"
    assert descend(lambda x, r: (1.0, np.ones(1)), [1.0], stop=Stop(patience=3), **simple).epochs == 4
    assert descend(quadratic([1.0]), [1.0], on_epoch=lambda *a: True, **simple).reason == "stopped"
    assert descend(lambda x, r: (np.nan, x), [1.0], **simple).reason == "diverged"


def test_early_stopping_returns_the_best_on_the_validation_rows():
    X, y = rows_of(5, n=12, d=3)
    Z = np.column_stack([X] + [X[:, [j]] ** p for j in range(3) for p in (2, 3, 4)]) / 3
    train, held = np.arange(8), np.arange(8, 12)

    def validation(w):
        return float(np.mean((Z[held] @ w - y[held]) ** 2))

    found = descend(
        least_squares(Z[train], y[train]),
        np.zeros(12),
        n_rows=8,
        schedule=Schedule(eta=0.02),
        stop=Stop(epochs=4000, patience=200),
        validation=validation,
    )
    assert found.reason == "patience"
    assert validation(found.x) == pytest.approx(found.trace.validation.min())


# Linear models ------------------------------------------------------------------------------------


@pytest.mark.mission("OPT-03")
@pytest.mark.parametrize("name", RULES)
def test_compiled_epochs_are_the_interface_in_python(name):
    from assay.linear_model._sgd_loop import Objective, Rates, UpdateRule, batch_epoch

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
    gap = certificate.find("D04").value
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
    assert certificate.find("D04").value < 0.5


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


# Search -------------------------------------------------------------------------------------------


def wells(x):
    """A double well with minima near -1 (higher) and +1 (lower)."""
    return float((x[0] ** 2 - 1) ** 2 - 0.3 * x[0])


@pytest.mark.mission("OPT-27")
def test_kinds_of_stationary_points():
    zero = np.zeros(2)
    assert stationary_kind(zero, np.diag([2.0, 2.0])) == "minimum"
    assert stationary_kind(zero, np.diag([-2.0, -2.0])) == "maximum"
    assert stationary_kind(zero, np.diag([2.0, -2.0])) == "saddle"
    assert stationary_kind(zero, np.diag([2.0, 0.0])) == "flat"
    assert stationary_kind([1.0, 0.0], np.eye(2)) == "not stationary"


@pytest.mark.mission("OPT-28")
def test_more_starts_are_never_worse():
    def run(start):
        found = minimize(wells, start)
        return found.x, found.fun

    starts = [[-1.5], [-0.5], [0.7], [2.0]]
    values = [multi_start(run, starts[: k + 1]) for k in range(4)]
    assert [one.value for one in values] == [min(run(np.array(s))[1] for s in starts[: k + 1]) for k in range(4)]
    assert values[0].value > values[3].value
    np.testing.assert_array_equal(values[3].history, np.minimum.accumulate([run(np.array(s))[1] for s in starts]))


@pytest.mark.mission("OPT-29")
def test_annealing_accepts_by_metropolis_and_finds_the_deeper_well():
    random = np.random.default_rng(0)
    for rise, temperature in ((0.5, 1.0), (1.0, 0.4)):
        accepted = np.mean(random.random(40_000) < acceptance(rise, temperature))
        assert accepted == pytest.approx(math.exp(-rise / temperature), abs=0.012)
    found = [anneal(wells, [-1.0], seed=seed, steps=1_500).x[0] > 0 for seed in range(100)]
    assert sum(found) >= 95


@pytest.mark.mission("OPT-30")
def test_noise_can_leave_a_shallow_well_and_plain_descent_cannot():
    def gradient(x, rows):
        return wells(x), np.array([4 * x[0] * (x[0] ** 2 - 1) - 0.3])

    def ends(noise, seed):
        return descend(gradient, [-1.0], schedule=Schedule(eta=0.05), stop=Stop(epochs=400), noise=noise, seed=seed).x[
            0
        ]

    assert ends(0.0, 0) < 0
    assert sum(ends(4.0, seed) > 0 for seed in range(20)) > 0


@pytest.mark.mission("OPT-31")
def test_evolution_beats_random_search_on_rastrigin():
    def rastrigin(x):
        return float(10 * len(x) + np.sum(x**2 - 10 * np.cos(2 * np.pi * x)))

    low, high = np.full(4, -5.12), np.full(4, 5.12)
    wins = 0
    for seed in range(5):
        found = evolve(rastrigin, low, high, seed=seed)
        assert (np.diff(found.history) <= 0).all()
        assert found.value == pytest.approx(rastrigin(found.x))
        budget = 40 + 100 * 38
        best = min(rastrigin(x) for x in np.random.default_rng(seed).uniform(low, high, size=(budget, 4)))
        wins += found.value < best
    assert wins == 5

"""Gradient descent: batches, schedules, and update rules against hand computation and PyTorch's formulas."""

import math

import numpy as np
import pytest

from assay.linear_model import LinearRegression, SGDRegressor
from assay.optim.descent import Rule, Schedule, Stop, batches, descend, oscillates, updates_per_epoch
from tests.linear_model.descent_rows import rows_of


def quadratic(curvatures):
    curvatures = np.asarray(curvatures, dtype=float)
    return lambda x, rows: (0.5 * float(x @ (curvatures * x)), curvatures * x)


def least_squares(X, y):
    def gradient(w, rows):
        r = X[rows] @ w - y[rows]
        return float(r @ r) / len(rows), 2 * X[rows].T @ r / len(rows)

    return gradient


# Batches and schedules ----------------------------------------------------------------------------


@pytest.mark.mission("OPT-01")
def test_full_batch_contracts_each_coordinate():
    x, eta = np.array([1.0, -2.0, 3.0]), 0.3
    curvatures = np.array([0.5, 1.0, 4.0])
    found = descend(quadratic(curvatures), x, schedule=Schedule(eta=eta), stop=Stop(epochs=7), keep_path=True)
    np.testing.assert_allclose(found.trace.path[-1], x * (1 - eta * curvatures) ** 7, rtol=1e-12)
    assert (np.diff(found.trace.objective) < 0).all()
    levels = [0.5 * float(curvatures @ (x * (1 - eta * curvatures) ** (2 * k) * x)) for k in range(60)]
    np.testing.assert_allclose(found.trace.objective, levels[:7], rtol=1e-12)
    small = int(np.argmax(-np.diff(levels) <= 1e-3))  # the first epoch that gains no more
    ended = descend(quadratic(curvatures), x, schedule=Schedule(eta=eta), stop=Stop(epochs=60, gain=1e-3))
    assert (ended.reason, len(ended.trace.objective)) == ("gain", small + 2)


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
    still = descend(gradient, w, n_rows=200, batch_size=60, schedule=Schedule(eta=1e-13), stop=Stop(epochs=1))
    size = np.linalg.norm(gradient(w, np.arange(200))[1])  # the last batch has 20 rows
    assert still.trace.gradient[0] == pytest.approx(size, rel=1e-9)
    rates = 0.1 / (1 + 0.02 * (200 * np.arange(1, 301) - 1))  # of the last update of each epoch
    np.testing.assert_allclose(found.trace.rate, rates)
    least = np.mean((X @ exact - y) ** 2)
    assert found.trace.objective[-1] == pytest.approx(least, rel=0.05)
    assert found.trace.gradient[-1] < 0.05
    assert np.isnan(found.trace.validation).all()


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
    steps = np.full(100, 3.0)  # the size of the gradient does not matter
    assert moved(Rule("rms-mean", eps=0.0), steps)[-1] == pytest.approx(-100.0)
    assert moved(Rule("adagrad", eps=0.0), steps)[-1] == pytest.approx(-18.59, abs=0.005)
    path = moved(Rule("rmsprop", memory=0.9, eps=0.0), steps)
    assert path[-1] - path[-2] == pytest.approx(-1.0, abs=1e-4)


@pytest.mark.mission("OPT-09")
def test_the_root_mean_square_by_hand_in_the_interface_and_in_the_compiled_loop():
    """Gradients 3, -1, 2: sigma = 3, sqrt(10/2), sqrt(14/3). The compiled loop on one column of squared errors: w = 0,
    g = -2, sigma = 2, w = 0.5; g = 4, sigma = sqrt(20/2), w = 0.5 - 2/sqrt(10); g = w - 3, sigma from 4, 16 and g^2."""
    by_hand = -0.1 * np.cumsum([1.0, -1 / np.sqrt(5.0), 2 / np.sqrt(14 / 3)])
    np.testing.assert_allclose(moved(Rule("rms-mean", eps=0.0), [3.0, -1.0, 2.0], 0.1), by_hand, rtol=1e-12)
    assert moved(Rule("rms-mean", eps=1.0), [3.0], 0.1) == [pytest.approx(-0.1 * 3 / 4)]
    X, y = np.array([[1.0], [2.0], [1.0]]), np.array([2.0, -1.0, 3.0])
    shared = {"fit_intercept": False, "shuffle": False, "tol": None, "max_iter": 1, "learning_rate": "constant"}
    model = SGDRegressor(alpha=0.0, optimizer="rms-mean", eta0=0.5, **shared).fit(X, y)
    w = 0.5 - 2 / np.sqrt(10.0)
    g = w - 3.0
    assert model.coef_[0] == pytest.approx(w - 0.5 * g / np.sqrt((4 + 16 + g * g) / 3), abs=1e-7)


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


@pytest.mark.mission("OPT-10")
def test_adagrad_by_hand_in_the_interface_and_in_the_compiled_loop():
    """Gradients 3, -1, 2 at the rate 1/10: 3/sqrt(9) = 1, -1/sqrt(10), 2/sqrt(14); numbers by a pocket calculator. A
    constant gradient moves 100 steps by 0.1 sum 1/sqrt(k), k to 100, 18.5896 times the rate."""
    by_hand = [-0.1, -0.0683772234, -0.1218294718]
    np.testing.assert_allclose(moved(Rule("adagrad", eps=1e-10), [3.0, -1.0, 2.0], 0.1), by_hand, atol=5e-11)
    assert moved(Rule("adagrad", eps=1e-10), np.full(100, 7.0), 0.1)[-1] == pytest.approx(-1.85896, abs=5e-6)
    # squared error of one column, no penalty: gradients (w x - y) x
    X, y = np.array([[1.0], [2.0], [1.0]]), np.array([2.0, -1.0, 3.0])
    shared = {"fit_intercept": False, "shuffle": False, "tol": None, "max_iter": 1, "learning_rate": "constant"}
    model = SGDRegressor(alpha=0.0, optimizer="adagrad", eta0=0.5, **shared).fit(X, y)
    # w = 0: g = -2, w = 0.5; g = (1 + 1) 2 = 4, w = 0.5 - 0.5 * 4/sqrt(20) = 0.0527864; g = 0.0527864 - 3 = -2.9472136,
    # sum of squares 28.6860680, w = 0.0527864 + 0.5 * 2.9472136/5.3559377 = 0.3279216
    assert model.coef_[0] == pytest.approx(0.3279216, abs=1e-7)


def test_adagrad_is_pytorchs():
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    A, start = random.normal(size=(5, 5)), random.normal(size=5)
    H = A @ A.T
    weights = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    rule, w = torch.optim.Adagrad([weights], lr=0.3, eps=1e-10), start.copy()
    state = Rule("adagrad", eps=1e-10).start(5)
    for t in range(50):
        rule.zero_grad()
        (0.5 * weights @ torch.tensor(H) @ weights).backward()
        rule.step()
        w = w + Rule("adagrad", eps=1e-10).move(state, H @ w, 0.3, t)
    np.testing.assert_allclose(w, weights.detach().numpy(), rtol=1e-10)


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
        keep_path=True,
    )
    assert abs(found.x[0]) < 0.5
    w, m, v = 1.0, 0.0, 0.0
    for _ in range(300):
        m, v = 0.9 * m + 0.1 * w, 0.999 * v + 0.001 * w * w
        w -= 0.01 / (math.sqrt(v) + 1e-8) * m
    assert found.trace.path[-1, 0] == pytest.approx(w, rel=1e-9)
    w, m, v = 1.0, 0.0, 0.0  # w <- w - eta / sigma * m with m already carrying -eta: uphill
    for _ in range(300):
        m, v = 0.9 * m - 0.01 * w, 0.999 * v + 0.001 * w * w
        w -= 0.01 / (math.sqrt(v) + 1e-8) * m
    assert w > 1.0


@pytest.mark.mission("OPT-33")
def test_each_stopping_rule_fires_and_is_named():
    simple = {"schedule": Schedule(eta=0.5)}
    assert descend(quadratic([1.0]), [1.0], stop=Stop(epochs=5), **simple).reason == "epochs"
    ended = [descend(quadratic([1.0]), [1.0], stop=Stop(**{rule: 1e-3}), **simple) for rule in ("gradient", "change")]
    ended.append(descend(quadratic([1.0]), [1.0], stop=Stop(gain=1e-6), **simple))
    # x = 1/2^k: the gradient is small at k = 10, the step from k = 9, 3/8 4^-k from k = 10
    assert [(one.reason, one.epochs) for one in ended] == [("gradient", 11), ("change", 10), ("gain", 12)]
    slow = {"schedule": Schedule(eta=0.05), "stop": Stop(epochs=50, patience=3, gain=0.1)}
    assert descend(lambda x, r: (float(x[0]), np.ones(1)), [1.0], **slow).epochs == 4  # .05 an epoch is no gain
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

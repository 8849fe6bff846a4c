"""Margins and quadratic programmes of support vector machines as the notes state them, against closed forms and brute
force."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import sklearn.svm as libsvm
from scipy.optimize import minimize, minimize_scalar
from sklearn.exceptions import ConvergenceWarning

from assay import svm
from assay.kernels import Polynomial, PowerSeries, named_kernel
from assay.svm import SVC, LinearSVC
from assay.textbook import svm as textbook
from tests.svm.machine_rows import SIGNS, THREE, beta_of, overlapping, separable


def primal(w, b, X, y, C):
    return 0.5 * w @ w + C * np.maximum(0, 1 - y * (X @ w + b)).sum()


@pytest.mark.mission("KER-01", "KER-02", "KER-03", "KER-04")
def test_distances_and_margins():
    X, y = separable()
    w, b = np.array([2.0, 1.0]), -0.3
    foot = X - ((X @ w + b) / (w @ w))[:, None] * w
    np.testing.assert_allclose(foot @ w + b, 0, atol=1e-12)
    np.testing.assert_allclose(textbook.distances(w, b, X), np.linalg.norm(X - foot, axis=1))
    np.testing.assert_allclose(
        textbook.functional_margins(3 * w, 3 * b, X, y), 3 * textbook.functional_margins(w, b, X, y)
    )
    assert textbook.geometric_margin(5 * w, 5 * b, X, y) == pytest.approx(textbook.geometric_margin(w, b, X, y))
    v, c = textbook.canonical(w, b, X, y)
    assert textbook.functional_margins(v, c, X, y).min() == pytest.approx(1.0, abs=1e-12)
    assert np.array_equal(X @ v + c > 0, X @ w + b > 0)
    with pytest.raises(ValueError, match="does not separate"):
        textbook.canonical(-w, -b, X, y)


@pytest.mark.mission("KER-05", "KER-06", "KER-07")
def test_total_margin_noise_tolerance_and_the_geometric_form():
    X, y = separable()
    model = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    near = textbook.distances(w, b, X)
    total = near[y > 0].min() + near[y < 0].min()
    assert total == pytest.approx(2 / np.linalg.norm(w), rel=1e-6)
    margin = textbook.geometric_margin(w, b, X, y)
    inward = -y[:, None] * w / np.linalg.norm(w)
    assert np.all(y * ((X + 0.999 * margin * inward) @ w + b) > 0)
    assert np.any(y * ((X + 1.001 * margin * inward) @ w + b) < 0)

    def half_width(
        angle,
    ):  # the margin of the best hyperplane with a given direction: max 2 / |w| in geometric form
        values = X @ [np.cos(angle), np.sin(angle)]
        return 0.5 * (values[y > 0].min() - values[y < 0].max())

    angles = np.linspace(0, 2 * np.pi, 20_001)
    best = max(half_width(angle) for angle in angles)
    assert margin == pytest.approx(best, rel=1e-4)
    assert margin >= best - 1e-9


@pytest.mark.mission("KER-08", "KER-10", "KER-11", "KER-13", "KER-14")
@pytest.mark.parametrize("solver", ["smo", "qp-dual", "qp-primal"])
def test_hard_margin_of_three_points(solver):
    model = SVC(C=np.inf, kernel="linear", solver=solver, tol=1e-9).fit(THREE, SIGNS)
    np.testing.assert_allclose(model.coef_, [[0.5, 0.5]], atol=1e-6)
    np.testing.assert_allclose(model.intercept_, [-2.0], atol=1e-6)
    alpha = np.abs(beta_of(model, 3))
    np.testing.assert_allclose(alpha, [0.25, 0.0, 0.25], atol=1e-6)
    w = model.coef_[0]
    assert 0.5 * w @ w == pytest.approx(0.5 * alpha.sum(), abs=1e-6)
    theirs = libsvm.SVC(C=1e10, kernel="linear").fit(THREE, SIGNS)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-3)


@pytest.mark.mission("KER-19")
@pytest.mark.parametrize(
    ("n", "d", "kernel", "dimensions", "route"),
    [
        (60, 2, {"kernel": "linear"}, 2, "qp-primal"),
        (20, 60, {"kernel": "linear"}, 60, "qp-dual"),
        (60, 3, {"kernel": "poly", "degree": 2, "coef0": 1.0}, 10, "qp-primal"),  # 1, x_j, x_j x_k
        (60, 3, {"kernel": "poly", "degree": 3, "coef0": 0.0}, 10, "qp-primal"),  # x_j x_k x_l
        (12, 4, {"kernel": "poly", "degree": 3, "coef0": 1.0}, 35, "qp-dual"),
        (30, 2, {"kernel": "rbf"}, np.inf, "qp-dual"),
    ],
)
def test_the_programme_with_fewer_variables_is_taken_and_predicts_the_same(n, d, kernel, dimensions, route):
    """Primal: d~ + 1 variables and N constraints; dual: N and N + 1; d~ the dimension of the kernel's space."""
    size = svm.problem_size(n, dimensions)
    assert (size.primal, size.dual, size.route) == ((dimensions + 1, n), (n, n + 1), route)
    random = np.random.default_rng(n + d)
    X = random.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=n) > 0, 1, -1)
    if np.isfinite(dimensions) and kernel["kernel"] == "poly":
        explicit = Polynomial(kernel["degree"], 1.0, kernel["coef0"]).features(X)
        assert np.linalg.matrix_rank(explicit @ explicit.T) == min(n, dimensions)
    fresh = random.normal(size=(500, d))
    models = {name: SVC(C=2.0, solver=name, tol=1e-8, **kernel).fit(X, y) for name in ("qp", "qp-primal", "qp-dual")}
    other = "qp-dual" if route == "qp-primal" else "qp-primal"
    np.testing.assert_array_equal(models["qp"].dual_coef_, models[route].dual_coef_)
    assert not np.array_equal(models["qp"].intercept_, models[other].intercept_)  # two programmes, the same machine
    theirs = libsvm.SVC(C=2.0, tol=1e-8, **kernel).fit(X, y)
    for name in ("qp", other):
        np.testing.assert_array_equal(models[name].predict(fresh), theirs.predict(fresh))
        np.testing.assert_allclose(models[name].decision_function(fresh), theirs.decision_function(fresh), atol=1e-4)


@pytest.mark.mission("KER-08")
def test_hard_margin_is_refused_where_the_classes_overlap():
    X, y = overlapping()
    with pytest.raises(ValueError, match="convex hulls of the classes touch"):
        SVC(C=np.inf, kernel="linear").fit(X, y)


@pytest.mark.mission("KER-12", "KER-27")
def test_lagrangian_is_stationary_at_the_solution():
    X, y = overlapping()
    C = 2.0
    model = SVC(C=C, kernel="linear", tol=1e-9).fit(X, y)
    alpha = np.abs(beta_of(model, len(X)))
    w, b = model.coef_[0], model.intercept_[0]
    slack, mu = np.maximum(0, 1 - y * (X @ w + b)), C - alpha

    def value(w, b, slack):
        return textbook.lagrangian(X, y, w, b, alpha, C=C, slack=slack, mu=mu).value

    found = textbook.lagrangian(X, y, w, b, alpha, C=C, slack=slack, mu=mu)
    np.testing.assert_allclose(w, (alpha * y) @ X, atol=1e-9)
    assert abs(alpha @ y) < 1e-9
    np.testing.assert_allclose(found.by_w, 0, atol=1e-9)
    assert abs(found.by_b) < 1e-9
    np.testing.assert_allclose(found.by_slack, 0, atol=1e-12)  # C = alpha + mu
    assert found.value == pytest.approx(primal(w, b, X, y, C), abs=1e-5)
    random = np.random.default_rng(0)
    w, b, slack = w + random.normal(size=2), b + 1.0, slack + random.random(len(X))  # anywhere: slopes by differences
    alpha, mu = alpha + random.random(len(X)), mu + random.random(len(X))
    found, h = textbook.lagrangian(X, y, w, b, alpha, C=C, slack=slack, mu=mu), 1e-5
    for j in range(2):
        step = h * np.eye(2)[j]
        slope = (value(w + step, b, slack) - value(w - step, b, slack)) / (2 * h)
        assert found.by_w[j] == pytest.approx(slope, abs=1e-6)
    assert found.by_b == pytest.approx((value(w, b + h, slack) - value(w, b - h, slack)) / (2 * h), abs=1e-6)
    step = h * np.eye(len(X))[3]
    slope = (value(w, b, slack + step) - value(w, b, slack - step)) / (2 * h)
    assert found.by_slack[3] == pytest.approx(slope, abs=1e-6)
    hard = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(THREE, SIGNS)
    np.testing.assert_allclose(hard.coef_[0], beta_of(hard, 3) @ THREE)
    at = textbook.lagrangian(THREE, SIGNS, hard.coef_[0], hard.intercept_[0], np.abs(beta_of(hard, 3)))
    np.testing.assert_allclose(at.by_w, 0, atol=1e-6)
    assert abs(at.by_b) < 1e-6
    assert at.value == pytest.approx(0.5 * hard.coef_[0] @ hard.coef_[0], abs=1e-6)
    with pytest.raises(ValueError, match="comes with slack"):
        textbook.lagrangian(THREE, SIGNS, hard.coef_[0], 0.0, np.zeros(3), C=1.0)


@pytest.mark.mission("KER-15", "KER-16", "KER-18", "KER-30", "KER-31")
def test_support_vectors_determine_the_machine():
    X, y = separable(3)
    model = SVC(C=np.inf, kernel="linear", tol=1e-10).fit(X, y)
    beta = beta_of(model, len(X))
    values = [y[j] - X[j] @ (beta @ X) for j in model.support_]
    np.testing.assert_allclose(values, model.intercept_[0], atol=1e-7)
    again = SVC(C=np.inf, kernel="linear", tol=1e-10).fit(X[model.support_], y[model.support_])
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-6)
    np.testing.assert_allclose(again.intercept_, model.intercept_, atol=1e-6)
    assert model.n_support_.tolist() == [np.sum(beta[y == side] != 0) for side in (-1, 1)]
    other = np.setdiff1d(np.arange(len(X)), model.support_)[0]
    kept = np.arange(len(X)) != other
    fewer = SVC(C=np.inf, kernel="linear", tol=1e-10).fit(X[kept], y[kept])
    np.testing.assert_allclose(fewer.coef_, model.coef_, atol=1e-6)
    for seed in range(5):
        X, y = overlapping(seed)
        assert np.abs(SVC().fit(X, y).dual_coef_).sum() > 0


@pytest.mark.mission("KER-30")
def test_offset_is_the_middle_of_its_interval_when_all_are_at_the_bound():
    X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    model = SVC(C=0.1, kernel="linear", tol=1e-10).fit(X, y)
    assert np.allclose(np.abs(model.dual_coef_), 0.1)
    assert model.intercept_[0] == pytest.approx(0.0, abs=1e-12)
    w = model.coef_[0]
    here = primal(w, model.intercept_[0], X, y, 0.1)
    best = minimize_scalar(lambda b: primal(w, b, X, y, 0.1), bounds=(-3, 3), method="bounded").fun
    assert here == pytest.approx(best, abs=1e-9)


@pytest.mark.mission("KER-09", "KER-17", "KER-23", "KER-71", "KER-72")
def test_programmes_through_the_origin():
    X, y = separable(1)
    X = X[np.abs(X @ [1.0, 0.5]) > 0.5]
    y = np.sign(X @ [1.0, 0.5])
    c = textbook.margin_through_origin(X @ X.T, y)
    v = c @ X
    values = y * (X @ v)
    assert values.min() == pytest.approx(1.0, abs=1e-6)
    active = values < 1 + 1e-5
    np.testing.assert_allclose(c[~active], 0, atol=1e-5)  # v is a combination of the active rows
    residual = np.linalg.lstsq(X[active].T, v, rcond=None)[0] @ X[active] - v
    np.testing.assert_allclose(residual, 0, atol=1e-9)
    angles = np.linspace(0, 2 * np.pi, 20_001)
    best = max((y * (X @ [np.cos(a), np.sin(a)])).min() for a in angles)
    assert 1 / np.linalg.norm(v) == pytest.approx(best, rel=1e-4)
    kernel, random = Polynomial(2, 1.0, 1.0), np.random.default_rng(0)
    X2, y2 = overlapping(2, 4)
    phi = kernel.features(X2)  # four rows in six dimensions: a minimiser could leave their span, and does not
    explicit = minimize(
        lambda u: 0.5 * u @ u,
        np.ones(6),
        jac=lambda u: u,
        constraints={"type": "ineq", "fun": lambda u: y2 * (phi @ u) - 1, "jac": lambda u: y2[:, None] * phi},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(phi.T @ textbook.margin_through_origin(kernel(X2), y2), explicit.x, atol=1e-5)
    soft, C = textbook.margin_through_origin(X @ X.T, y, C=0.2), 0.2
    u = soft @ X
    value = u @ u + C * np.maximum(0, 1 - y * (X @ u)).sum()
    for _ in range(200):
        other = u + 0.1 * random.normal(size=2)
        assert value <= other @ other + C * np.maximum(0, 1 - y * (X @ other)).sum() + 1e-7
    with pytest.raises(ValueError, match="not positive semidefinite"):
        textbook.margin_through_origin(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1.0, -1.0]))


@pytest.mark.mission("KER-71")
@pytest.mark.parametrize("kernel", [Polynomial(2, 1.0, 1.0), Polynomial(3, 0.5, 1.0), PowerSeries([1.0] * 3)], ids=str)
def test_the_expansion_is_the_machine_without_offset_in_the_explicit_space(kernel):
    random = np.random.default_rng(1)
    X = random.normal(size=(14, 2))
    y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 > 1.5, 1.0, -1.0)
    phi = kernel.features(X)
    c = textbook.margin_through_origin(kernel(X), y)
    explicit = LinearSVC(C=1e6, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=100_000).fit(phi, y)
    v = phi.T @ c
    assert (y * (phi @ v)).min() == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(v, explicit.coef_[0], rtol=1e-3, atol=1e-3 * np.abs(v).max())
    assert v @ v == pytest.approx(explicit.coef_[0] @ explicit.coef_[0], rel=1e-4)
    fresh = random.normal(size=(50, 2))
    scores = explicit.decision_function(kernel.features(fresh))
    np.testing.assert_allclose(kernel(fresh, X) @ c, scores, rtol=1e-2, atol=1e-2)


@pytest.mark.mission("KER-22", "KER-24", "KER-25", "KER-26", "KER-41", "KER-74")
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_all_routes_reach_the_same_optimum(kernel):
    X, y = overlapping(1, 60)
    C = 1.5
    K = named_kernel(kernel, 0.5)(X)
    values = {}
    for solver in ("smo", "qp-dual", "qp-primal", "subgradient"):
        slow = solver == "subgradient"
        with pytest.warns(ConvergenceWarning, match="after 20000 steps") if slow else nullcontext():
            model = SVC(C=C, kernel=kernel, gamma=0.5, solver=solver, tol=1e-6).fit(X, y)
        beta, b = beta_of(model, len(X)), model.intercept_[0]
        slack = np.maximum(0, 1 - y * (K @ beta + b))
        values[solver] = 0.5 * beta @ K @ beta + C * slack.sum()
        dual = np.abs(beta).sum() - 0.5 * beta @ K @ beta
        assert dual <= values["smo"] + 1e-6
        mu = C - np.abs(beta)
        found = model.margins(X, y)
        np.testing.assert_allclose(found.slack, slack, atol=1e-8)
        np.testing.assert_allclose(found.functional / found.geometric, np.sqrt(beta @ K @ beta), rtol=1e-8)
        if solver != "subgradient":
            assert np.all(np.minimum(slack, mu) < 1e-4)
            assert np.array_equal(found.case == "outside", beta == 0)
            assert np.array_equal(found.case == "wrong side", y * (K @ beta + b) < 0)
            assert np.all(mu[found.case == "on the margin"] > 0)
            assert np.all(mu[found.case == "inside"] <= 0)
    for solver in ("qp-dual", "qp-primal"):
        assert values[solver] == pytest.approx(values["smo"], rel=1e-6)
    assert values["subgradient"] == pytest.approx(values["smo"], rel=1e-3)
    theirs = libsvm.SVC(C=C, kernel=kernel, gamma=0.5, tol=1e-7).fit(X, y)
    beta = beta_of(theirs, len(X))
    slack = np.maximum(0, 1 - y * (K @ beta + theirs.intercept_[0]))
    assert values["smo"] == pytest.approx(0.5 * beta @ K @ beta + C * slack.sum(), rel=1e-6)
    random = np.random.default_rng(0)
    for _ in range(200):  # the hinge form, lambda = 1 / (2 C), has its minimum there too: nothing near by is less
        near, b = beta + 0.05 * random.normal(size=60), theirs.intercept_[0] + 0.05 * random.normal()
        hinge_form = np.maximum(0, 1 - y * (K @ near + b)).sum() + near @ K @ near / (2 * C)
        assert hinge_form >= values["smo"] / C * (1 - 1e-6)


@pytest.mark.mission("KER-29")
def test_cases_of_the_optimality_conditions():
    X, y = overlapping(4, 80)
    model = SVC(C=1.0, kernel="linear", tol=1e-8).fit(X, y)
    told = model.margins(X, y)
    np.testing.assert_allclose(told.functional, y * (X @ model.coef_[0] + model.intercept_[0]))
    np.testing.assert_allclose(told.geometric, told.functional / np.linalg.norm(model.coef_[0]))
    assert set(told.case) == {"outside", "on the margin", "inside", "wrong side"}
    assert np.all(told.functional[told.case == "outside"] >= 1 - 1e-6)
    np.testing.assert_allclose(told.functional[told.case == "on the margin"], 1, atol=1e-6)
    assert np.all((told.functional[told.case == "inside"] >= 0) & (told.functional[told.case == "inside"] <= 1 + 1e-6))
    assert np.all(told.functional[told.case == "wrong side"] < 0)
    np.testing.assert_allclose(told.slack, np.maximum(0, 1 - told.functional))


@pytest.mark.parametrize("solver", ["qp-dual", "qp-primal", "subgradient"])
def test_a_reference_solver_has_converged_only_where_the_conditions_of_an_optimum_are_met(solver):
    X, y = overlapping(1, 40)
    for tol in (10.0, 1e-15):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = SVC(solver=solver, kernel="rbf", gamma=0.5, tol=tol).fit(X, y)
        assert (model.fit_status_ == 0) == (model.violation_ <= tol) == (tol > 1)
        assert any("the KKT violation is" in str(one.message) for one in told) == (tol < 1)

"""Quadratic programmes, Lagrangians and duals; formulas of linear models."""

import numpy as np
import pytest
from scipy.optimize import minimize

from assay.optim.constrained import QuadraticProgramme, lagrange_point, rescaled
from assay.optim.descent import check_gradient
from assay.optim.newton import newton
from assay.textbook.linear import hyperplane_margin, likelihood_term, squared_error


def draw(seed, n=4, m=6, equal=0):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n, n))
    inside = rng.normal(size=n)
    A, R = rng.normal(size=(m, n)), rng.normal(size=(equal, n))
    return QuadraticProgramme(
        B @ B.T + 0.1 * np.eye(n), rng.normal(size=n), A, A @ inside - rng.random(m), R, R @ inside
    )


def hard_margin(seed=0):
    """Return 1/2 |w|^2 subject to y (w x + b) >= 1 as a programme in u = (b, w), with its rows."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(20, 2)) + 3 * y[:, None]
    A = y[:, None] * np.column_stack([np.ones(20), X])
    return QuadraticProgramme(np.diag([0.0, 1, 1]), np.zeros(3), A, np.ones(20)), X, y


@pytest.mark.mission("OPT-19", "OPT-20", "OPT-26")
@pytest.mark.parametrize("equal", [0, 2])
@pytest.mark.parametrize("seed", range(5))
def test_quadratic_programmes_against_another_solver(seed, equal):
    problem = draw(seed, equal=equal)
    found = problem.solve()
    assert max(problem.residuals(found.u, found.multipliers, found.equality)) < 1e-8
    constraints = [{"type": "ineq", "fun": lambda u: problem.A @ u - problem.c}]
    constraints += [{"type": "eq", "fun": lambda u: problem.R @ u - problem.v}] if equal else []
    peer = minimize(
        problem.objective,
        np.zeros(4),
        method="SLSQP",
        constraints=constraints,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert problem.objective(found.u) == pytest.approx(peer.fun, abs=1e-6)
    moved = problem.residuals(found.u + 0.01, found.multipliers, found.equality)
    assert moved.stationarity > 1e-3
    assert problem.residuals(found.u, found.multipliers - 1, found.equality).dual > 0.5


@pytest.mark.mission("OPT-19")
def test_problems_that_are_not_convex_or_not_feasible_are_refused():
    with pytest.raises(ValueError, match=r"least eigenvalue is -1"):
        QuadraticProgramme(np.diag([1.0, -1.0]), [0.0, 0.0], np.eye(2), [0.0, 0.0])
    with pytest.raises(ValueError, match="no solution"):
        QuadraticProgramme(np.eye(1), [0.0], [[1.0], [-1.0]], [1.0, 1.0]).solve()


@pytest.mark.mission("OPT-22", "OPT-23", "OPT-24")
def test_the_dual_is_the_least_lagrangian_and_never_above_the_primal():
    problem = draw(7)
    best = problem.solve()
    rng = np.random.default_rng(0)
    for _ in range(1000):
        a = rng.exponential(size=6)
        assert problem.dual(a) <= problem.objective(best.u) + 1e-9
    for _ in range(5):
        a = rng.exponential(size=6)
        numerical = minimize(lambda u: problem.lagrangian(u, a), np.zeros(4), tol=1e-12).fun  # noqa: B023
        assert problem.dual(a) == pytest.approx(numerical, abs=1e-6)
    assert abs(best.gap) < 1e-8
    assert draw(8, equal=1).solve().gap < 1e-8


@pytest.mark.mission("OPT-22", "OPT-25")
def test_hard_margin_lagrangian_hides_the_constraints():
    problem, X, y = hard_margin()
    found = problem.solve()
    w = found.u[1:]
    assert problem.worst_lagrangian(found.u * 1.001) == pytest.approx(0.5 * w @ w, rel=1e-2)
    assert problem.worst_lagrangian(np.zeros(3)) == np.inf
    growing = [problem.lagrangian(np.zeros(3), t * np.ones(20)) for t in (1.0, 10.0, 100.0)]
    assert growing == sorted(growing)
    a = found.multipliers
    closed = a.sum() - 0.5 * np.sum(((a * y) @ X) ** 2)
    balanced = a - (a @ y) / 20 * y
    assert problem.dual(balanced) == pytest.approx(closed, rel=1e-5)
    assert problem.dual(np.arange(20.0)) == -np.inf  # sum of alpha y is not zero: b runs away


@pytest.mark.mission("OPT-21")
def test_multipliers_give_the_top_eigenvector():
    rng = np.random.default_rng(1)
    B = rng.normal(size=(4, 4))
    S = B @ B.T
    values, vectors = np.linalg.eigh(S)
    start = vectors[:, -1] + 0.2 * rng.normal(size=4)
    x, multiplier = lagrange_point(
        lambda x: 2 * S @ x,
        lambda x: 2 * S,
        lambda x: (x @ x - 1, 2 * x, 2 * np.eye(4)),
        start / np.linalg.norm(start),
    )
    assert x @ x == pytest.approx(1, abs=1e-10)
    assert -multiplier == pytest.approx(values[-1], rel=1e-9)
    assert abs(x @ vectors[:, -1]) == pytest.approx(1, abs=1e-9)


@pytest.mark.mission("OPT-32")
def test_rescaling_a_separator_shortens_it_until_the_minimum_is_one():
    problem, X, y = hard_margin(1)
    best = problem.solve().u
    long_w, long_b = 1.7 * best[1:], 1.7 * best[0]
    assert (y * (X @ long_w + long_b)).min() == pytest.approx(1.7, rel=1e-6)
    w, b = rescaled(long_w, long_b, X, y)
    assert (y * (X @ w + b)).min() == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(w) < np.linalg.norm(long_w)
    np.testing.assert_allclose(w, best[1:], rtol=1e-6)
    with pytest.raises(ValueError, match="must separate"):
        rescaled(-w, b, X, y)


@pytest.mark.mission("OPT-16")
def test_newton_needs_one_step_on_a_quadratic():
    rng = np.random.default_rng(2)
    B = rng.normal(size=(5, 5))
    H, g = B @ B.T + np.eye(5), rng.normal(size=5)
    found = newton(
        lambda x: (0.5 * x @ H @ x + g @ x, H @ x + g),
        lambda x: lambda v: np.linalg.solve(H, v),
        np.zeros(5),
        done=lambda x, slope, half: half < 1e-20,
        max_iter=50,
    )
    assert found.n_iter == 1
    np.testing.assert_allclose(found.x, -np.linalg.solve(H, g), rtol=1e-10)


@pytest.mark.mission("LIN-03")
def test_both_derivatives_of_the_squared_error():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=30), rng.normal(size=30)
    at = np.array([0.7, -1.2])
    found = squared_error(x, y, *at)
    assert found.value == pytest.approx(np.sum((0.7 * x - 1.2 - y) ** 2))
    assert found.by_w == pytest.approx(np.sum(2 * x * (0.7 * x - 1.2 - y)))
    assert found.by_b == pytest.approx(np.sum(2 * (0.7 * x - 1.2 - y)))
    assert check_gradient(lambda v: squared_error(x, y, *v).value, np.array([found.by_w, found.by_b]), at) < 1e-6
    line = np.polyfit(x, y, 1)
    assert max(map(abs, squared_error(x, y, *line)[1:])) < 1e-10


@pytest.mark.mission("LIN-14")
def test_the_likelihood_term_is_a_product_of_powers():
    p = np.linspace(0.01, 0.99, 50)
    for y in (0, 1):
        np.testing.assert_allclose(likelihood_term(y, p), p**y * (1 - p) ** (1 - y), rtol=1e-14)


@pytest.mark.mission("LIN-43")
def test_margins_ignore_length_and_show_errors():
    rng = np.random.default_rng(4)
    A = rng.normal(size=(40, 3))
    w = rng.normal(size=3)
    labels = np.sign(A @ w)
    margin = hyperplane_margin(A, labels, w)
    assert margin == pytest.approx(hyperplane_margin(A, labels, 1000 * w), rel=1e-12)
    assert margin == pytest.approx(np.min(np.abs(A @ w)) / np.linalg.norm(w))
    labels[3] = -labels[3]
    assert hyperplane_margin(A, labels, w) < 0 < margin

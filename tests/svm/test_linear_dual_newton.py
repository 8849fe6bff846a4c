"""Newton's step inside a face of the dual: against dense linear algebra; what it never breaks; what it is good for."""

import numpy as np
import pytest
import scipy.sparse as sp

from assay.svm import LinearSVC, LinearSVR, _linear_solvers
from assay.svm._linear_problem import Losses
from assay.svm._linear_solvers import newton_step, packed

FORMS = [np.asarray, sp.csr_matrix]


def problem(linear, seed=0, n=30, d=60):
    """Return losses, the rows (x, s), and dual variables of which some are at an end of their range."""
    random = np.random.default_rng(seed)
    A = np.column_stack([random.normal(size=(n, d)) * (random.random((n, d)) < 0.3), np.full(n, 1.5)])
    losses = Losses(random.normal(size=n), random.uniform(0.5, 2.0, n), False, linear, 0.1, 1.5)
    theta = losses.c * random.uniform(0.3, 0.7, n) * np.sign(random.normal(size=n))
    theta[:5] = 0.0
    if linear:
        theta[5:9] = losses.c[5:9] * np.sign(theta[5:9])
    inside = (theta != 0) & ((np.abs(theta) < losses.c) | (not linear))
    return losses, A, theta, inside


def dual(losses, A, theta):
    kappa = 0.0 if losses.linear else 0.5 / losses.c
    u = theta @ A
    return losses.t @ theta - losses.epsilon * np.abs(theta).sum() - 0.5 * u @ u - 0.5 * theta @ (kappa * theta)


def stepped(form, losses, A, theta, accuracy=0.0, most=500, n_jobs=None):
    theta, u = theta.copy(), theta @ A
    newton_step(packed(form(A[:, :-1])), losses, (A**2).sum(axis=1), theta, u, accuracy, 0.0, most, n_jobs)
    return theta, u


@pytest.mark.mission("KER-25")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("linear", [True, False])
def test_a_step_with_no_bound_in_its_way_solves_the_equations_of_the_face(linear, form):
    losses, A, aim, inside = problem(linear)
    kappa = 0.0 if linear else 0.5 / losses.c
    slopes = A @ (aim @ A) + losses.epsilon * np.sign(aim) + kappa * aim  # with these targets `aim` is the solution
    losses = losses._replace(t=np.where(inside, slopes, losses.t))
    start = np.where(inside, aim * np.random.default_rng(1).uniform(0.8, 1.2, len(aim)), aim)
    found, u = stepped(form, losses, A, start)
    np.testing.assert_allclose(found, aim, rtol=1e-8)
    np.testing.assert_array_equal(found[~inside], start[~inside])
    np.testing.assert_allclose(u, found @ A, atol=1e-10)


@pytest.mark.mission("KER-25")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_a_step_never_lowers_the_dual_nor_leaves_the_range(seed, linear, form):
    n, d = [(30, 60), (60, 20)][seed % 2]  # in the second the equations of a linear loss have no solution
    losses, A, theta, inside = problem(linear, seed, n, d)
    for most in (1, 3, 100):
        found, u = stepped(form, losses, A, theta, most=most)
        assert dual(losses, A, found) >= dual(losses, A, theta)
        assert (found * theta >= 0).all()
        assert not linear or (np.abs(found) <= losses.c).all()
        np.testing.assert_array_equal(found[~inside], theta[~inside])
        np.testing.assert_allclose(u, found @ A, atol=1e-10)


@pytest.mark.mission("KER-25")
def test_threads_do_not_change_a_bit():
    losses, A, theta, _ = problem(False, 0, 3000, 50)
    one, two = (stepped(sp.csr_matrix, losses, A, theta, most=5, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


@pytest.mark.mission("KER-25")
@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR])
def test_steps_reach_the_optimum_of_the_sweeps_in_fewer_of_them(kind, monkeypatch):
    random = np.random.default_rng(0)
    X = sp.random(400, 1000, 0.03, format="csr", random_state=0)
    y = X @ random.normal(size=1000) + 0.3 * random.normal(size=400)
    params = {"C": 10.0, "tol": 1e-5, "random_state": 0, "max_iter": 100_000}
    params |= {"loss": "hinge"} if kind is LinearSVC else {"epsilon": 0.05}
    target = (y > 0).astype(int) if kind is LinearSVC else y
    fast = kind(**params).fit(X, target)
    monkeypatch.setattr(_linear_solvers, "_SLOW", -np.inf)
    slow = kind(**params).fit(X, target)
    assert 2 * fast.n_iter_ < slow.n_iter_
    np.testing.assert_allclose(fast.coef_, slow.coef_, atol=1e-3 * np.abs(slow.coef_).max())


@pytest.mark.mission("KER-25")
def test_sparse_rows_without_an_entry_leave_the_intercept():
    X, y = sp.csr_matrix((6, 300)), np.array([0, 1, 1, 1, 1, 1])
    model = LinearSVC(loss="squared_hinge", tol=1e-7).fit(X, y)
    # b minimises b^2 / 2 + (1 + b)^2 + 5 (1 - b)^2
    assert not model.coef_.any()
    np.testing.assert_allclose(model.intercept_, 8 / 13, atol=1e-6)

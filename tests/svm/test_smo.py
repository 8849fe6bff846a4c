"""Sequential minimal optimisation as the notes state it: its step, its choices, its cache."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from assay.kernels import Gaussian
from assay.svm import SVC
from assay.textbook import svm as textbook
from tests.svm.machine_rows import beta_of, overlapping, separable


@pytest.mark.mission("KER-43", "KER-44", "KER-45", "KER-46")
@pytest.mark.parametrize("seed", range(10))
def test_two_variable_step_minimises_on_the_segment(seed):
    random = np.random.default_rng(seed)
    X, y = overlapping(seed, 10)
    K, C = Gaussian(0.5)(X), 1.0
    alpha = random.uniform(0, C, 10)
    i, j = random.choice(10, 2, replace=False)
    errors = K @ (alpha * y) - y
    low, high = textbook.box_ends(y[i], y[j], alpha[i], alpha[j], C)
    inside = [t for t in np.linspace(0, C, 2001) if -1e-9 <= alpha[i] + y[i] * y[j] * (alpha[j] - t) <= C + 1e-9]
    assert low == pytest.approx(min(inside), abs=1e-3)
    assert high == pytest.approx(max(inside), abs=1e-3)

    def along(t):
        moved = alpha.copy()
        moved[j], moved[i] = t, alpha[i] + y[i] * y[j] * (alpha[j] - t)
        return textbook.dual_objective(K, y, moved)

    new_i, new_j, *_ = textbook.pair_step(K, y, alpha, errors, i, j, C)
    assert y[i] * new_i + y[j] * new_j == pytest.approx(y[i] * alpha[i] + y[j] * alpha[j])
    assert along(new_j) <= along(alpha[j]) + 1e-12
    best = minimize_scalar(along, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    assert along(new_j) <= min(best.fun, along(low), along(high)) + 1e-9


@pytest.mark.mission("KER-45")
def test_a_flat_or_negative_curvature_is_decided_at_the_ends():
    K = np.ones((2, 2))
    y, alpha = np.array([1.0, -1.0]), np.array([0.2, 0.2])
    errors = K @ (alpha * y) - y
    new_i, new_j, _, high, eta = textbook.pair_step(K, y, alpha, errors, 0, 1, 1.0)
    assert eta == 0
    assert new_i == new_j == high


@pytest.mark.mission("KER-47", "KER-48", "KER-51")
def test_error_cache_first_choice_and_falling_objective():
    X, y = overlapping(7, 25)
    K, C = Gaussian(0.4)(X), 2.0
    trace = textbook.smo(K, y, C, tol=1e-7)
    assert trace.converged
    alpha, b = np.zeros(25), 0.0
    previous, largest = 0.0, 0
    for step in trace.steps[:40]:
        errors = K @ (alpha * y) + b - y  # recomputed, not cached
        broken = textbook.violations(y, alpha, errors, C)
        for other in np.flatnonzero(broken > broken[step.i] * (1 + 1e-6) + 1e-9):  # passed over: no partner moves it
            for j in np.delete(np.arange(25), other):
                _, new_j, *_ = textbook.pair_step(K, y, alpha, errors, other, j, C)
                assert abs(new_j - alpha[j]) <= 1e-9 * (1 + alpha[j])
        largest += broken[step.i] >= broken.max() * (1 - 1e-6) - 1e-9
        alpha[step.i], alpha[step.j], b = step.alpha_i, step.alpha_j, step.b
        assert step.objective <= previous + 1e-12
        previous = step.objective
    assert largest >= 0.9 * len(trace.steps[:40])
    first = trace.steps[0]
    assert textbook.violations(y, np.zeros(25), -y, C)[first.i] == 1.0
    fast = SVC(C=C, kernel="rbf", gamma=0.4, tol=1e-8).fit(X, y)
    exact = SVC(C=C, kernel="rbf", gamma=0.4, tol=1e-8, solver="qp-dual").fit(X, y)
    for model in (fast, exact):
        beta = beta_of(model, 25)
        assert -trace.steps[-1].objective == pytest.approx(np.abs(beta).sum() - 0.5 * beta @ K @ beta, rel=1e-6)
        assert trace.b == pytest.approx(model.intercept_[0], abs=1e-4)


@pytest.mark.mission("KER-49", "KER-50")
@pytest.mark.parametrize("rule", ["distance", "change"])
def test_no_partner_that_moves_is_farther_or_changes_faster(rule):
    X, y = overlapping(7, 25)
    K, C = X @ X.T, 2.0
    alpha, b = np.zeros(25), 0.0
    for step in textbook.smo(K, y, C, second=rule, tol=1e-4).steps[:40]:
        errors = K @ (alpha * y) + b - y
        rank = np.sum((X - X[step.i]) ** 2, axis=1) if rule == "distance" else np.abs(errors - errors[step.i])
        for j in np.flatnonzero(rank > rank[step.j] + 1e-9):
            _, new_j, *_ = textbook.pair_step(K, y, alpha, errors, step.i, j, C)
            assert abs(new_j - alpha[j]) <= 1e-9 * (1 + alpha[j])
        alpha[step.i], alpha[step.j], b = step.alpha_i, step.alpha_j, step.b
        for one in (step.i, step.j):
            if 0 < alpha[one] < C:  # b is such that a free row has no error
                assert K[one] @ (alpha * y) + b == pytest.approx(y[one], abs=1e-9)


@pytest.mark.mission("KER-49", "KER-50")
def test_partners_by_distance_and_by_change_reach_the_same_optimum():
    X, y = overlapping(3, 30)
    K = Gaussian(0.6)(X)
    runs = {rule: textbook.smo(K, y, 1.0, second=rule, tol=1e-4) for rule in ("change", "distance", "random")}
    ends = [run.steps[-1].objective for run in runs.values()]
    np.testing.assert_allclose(ends, ends[0], rtol=1e-5)
    randoms = [len(textbook.smo(K, y, 1.0, second="random", tol=1e-4, seed=s).steps) for s in range(5)]
    assert len(runs["change"].steps) < np.mean(randoms)


@pytest.mark.mission("KER-52")
def test_smo_of_the_hard_margin():
    X, y = separable(4, 20)
    trace = textbook.smo(X @ X.T, y, np.inf, tol=1e-8)
    model = SVC(C=np.inf, kernel="linear", tol=1e-9, solver="qp-dual").fit(X, y)
    np.testing.assert_allclose((trace.alpha * y) @ X, model.coef_[0], rtol=1e-4, atol=1e-5)

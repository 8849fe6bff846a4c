"""Derivatives of the logistic loss by finite differences and 60-digit arithmetic, and the Newton steps made of them."""

import decimal
import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

from assay import scan
from assay.linear_model import LogisticRegression
from assay.linear_model._logistic_problem import Problem
from tests.linear_model.logistic_rows import data, objective, peer

# Derivatives ------------------------------------------------------------------------------------------------


def function_of(X, y, C=np.inf, classes=2, intercept=True, weight=None, class_weight=None):
    c = np.ones(classes) if class_weight is None else np.asarray(class_weight)
    return Problem(scan.rows(X, y.astype(np.int64), weight), C, c, intercept, classes)


def numerical_gradient(f, x, step=1e-5):
    basis = np.eye(len(x)) * step
    return np.array([(f(x + e) - f(x - e)) / (2 * step) for e in basis])


@pytest.mark.mission("LIN-15")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [np.inf, 0.3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_gradient_and_hessian_by_finite_differences(classes, C, intercept, weighted):
    X, y, weight = data(9, n=40, d=3, classes=classes)
    s, c = (weight, np.linspace(0.5, 2.0, classes)) if weighted else (None, None)
    problem = function_of(X, y, C, classes, intercept, s, c)
    rng = np.random.default_rng(1)
    size = problem.n_outputs * (3 + intercept)
    for _ in range(3):
        x = rng.normal(size=size)
        value, gradient = problem.value_gradient(x)
        assert value == pytest.approx(objective(X, y, *problem.unpack(x), C, s, c), rel=1e-13)
        assert gradient == pytest.approx(
            numerical_gradient(lambda t: problem.value_gradient(t)[0], x), rel=1e-6, abs=1e-6
        )
        H = np.column_stack([problem._multiply(problem._products(*problem.unpack(x)), e) for e in np.eye(size)])
        slope = np.column_stack(
            [numerical_gradient(lambda t, k=k: problem.value_gradient(t)[1][k], x) for k in range(size)]
        )
        assert pytest.approx(slope, rel=1e-5, abs=1e-5) == H
        assert np.abs(H - H.T).max() < 1e-12
        assert np.linalg.eigvalsh(H).min() > -1e-10  # convex
        if classes == 2:
            g = rng.normal(size=size)
            assert H @ problem.curvature(x)(g) == pytest.approx(g, rel=1e-6, abs=1e-8)
    if np.isinf(C) and not weighted and classes == 2:
        z = X @ x[:3] + (x[3] if intercept else 0.0)
        assert value == pytest.approx(len(y) * log_loss(y, expit(z)), rel=1e-12)
        assert value == pytest.approx(np.sum(-y * z + np.log1p(np.exp(z))), rel=1e-12)


@pytest.mark.mission("LIN-16", "LIN-17")
def test_cross_entropy_of_labels_plus_and_minus_one():
    X, y, _ = data(10, n=60)
    sign = 2 * y - 1
    problem = function_of(X, y, intercept=False)
    rng = np.random.default_rng(0)
    for _ in range(5):
        w = rng.normal(size=4) * 3
        value, gradient = problem.value_gradient(w)
        assert value / 60 == pytest.approx(np.mean(np.log(1 + np.exp(-sign * (X @ w)))), rel=1e-12)
        formula = np.mean((1 / (1 + np.exp(sign * (X @ w))) * -sign)[:, None] * X, axis=0)
        assert gradient / 60 == pytest.approx(formula, rel=1e-11)
        assert formula == pytest.approx(
            numerical_gradient(lambda t: np.mean(np.log(1 + np.exp(-sign * (X @ t)))), w), rel=1e-6, abs=1e-9
        )


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_extreme_scores_neither_overflow_nor_vanish(scale):
    X, y, weight = data(11, n=3_000)
    for s in (None, weight):
        problem = function_of(X, y, weight=s)
        x = np.array([1.0, -2.0, 0.5, 1.0, 0.3]) * scale
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value, gradient = problem.value_gradient(x)
        z = ((X @ x[:4] + x[4]) * (2 * y - 1)).astype(np.longdouble)
        t = np.ones(len(y)) if s is None else s
        exact = np.sum(t * (np.maximum(-z, 0) + np.log1p(np.exp(-np.abs(z)))))
        pull = t * np.where(z > 0, np.exp(-np.abs(z)), 1) / (1 + np.exp(-np.abs(z))) * (1 - 2 * y)
        assert value == pytest.approx(float(exact), rel=1e-13)
        assert gradient[:4] == pytest.approx((pull @ X).astype(float), rel=1e-10, abs=1e-12)


def test_exponential_to_the_last_digit():
    from assay.loops.logistic import exp_of_negative

    rng = np.random.default_rng(0)
    edges = [0.0, -0.0, -1e-300, -(2.0**-53), -np.log(2) / 2, -np.log(2), -1.0, -37.0, -700.0, -708.0]
    t = np.concatenate([edges, -rng.uniform(0, 1, 400), -rng.uniform(0, 40, 400), -rng.uniform(40, 708, 400)])
    out, power = np.empty_like(t), np.empty_like(t)
    exp_of_negative(t, out, power)
    with decimal.localcontext(prec=60):
        exact = [decimal.Decimal(float(v)).exp() for v in t]
        errors = [abs(decimal.Decimal(float(o)) - e) / e for o, e in zip(out, exact)]
    assert max(errors) < decimal.Decimal(2.0**-52)
    assert out[0] == 1.0
    exp_of_negative(np.array([-709.0, -1e6, -np.inf]), out[:3], power[:3])
    assert (out[:3] <= 3.4e-308).all()
    assert (out[:3] > 0).all()


# Newton -----------------------------------------------------------------------------------------------------


@pytest.mark.mission("LIN-19")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("C", [np.inf, 1.0, 100.0])
def test_newton_needs_few_steps(seed, C):
    X, y, _ = data(seed, n=300, spread=1.0)
    model = LogisticRegression(C=C, tol=4e-12).fit(X, y)
    assert model.n_iter_ < 15
    problem = function_of(X, y, C)
    gradient = problem.value_gradient(problem.pack(model.coef_, model.intercept_))[1]
    assert np.linalg.norm(gradient) < 1e-10
    other = peer(C, solver="newton-cholesky").fit(X, y)
    assert model.coef_ == pytest.approx(other.coef_, rel=1e-5)


def test_the_sampled_start_changes_no_optimum():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(201_000, 3))
    y = (X @ [1.0, -1.0, 0.5] + rng.logistic(size=len(X)) > 0.3).astype(int)
    order = np.argsort(y, kind="stable")  # the sample of sorted rows is as good as any other
    one = LogisticRegression(tol=1e-14).fit(X, y)
    two = LogisticRegression(tol=1e-14).fit(X[order], y[order])
    three = LogisticRegression(tol=1e-14, solver="lbfgs").fit(X, y)
    assert one.coef_ == pytest.approx(two.coef_, rel=1e-8)
    assert one.coef_ == pytest.approx(three.coef_, rel=1e-6)

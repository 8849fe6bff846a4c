"""The gap of linear support vector machines: attacks on its rule, judged in rational arithmetic."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.certificate.attacks import assault
from tests.certificate.exact import codes, rational, scores
from tests.certificate.exact_optimum import piecewise
from tests.certificate.forge import Case, claim, draw, gap_params, labels, model, publish, weights


def dual_optimum(A, linear, epsilon, ridge, top):
    """Minimise 1/2 |A' a|^2 - linear a + epsilon sum a + 1/2 sum ridge a^2 over 0 <= a <= top by L-BFGS-B."""
    found = minimize(
        lambda a: (
            0.5 * np.sum((A.T @ a) ** 2) + (epsilon - linear) @ a + 0.5 * ridge @ a**2,
            A @ (A.T @ a) + epsilon - linear + ridge * a,
        ),
        np.zeros(len(A)),
        jac=True,
        bounds=[(0, t if np.isfinite(t) else None) for t in top],
        method="L-BFGS-B",
        options={"maxiter": 100, "ftol": 1e-15, "gtol": 1e-10},
    )
    return np.clip(found.x, 0, top)


def honest(X, y, weight, params, theta, t, coef, intercept, classes):
    """Seal a claim whose value is the gap, computed here in floats."""
    case = Case(
        (claim("duality-gap", 1.0, params=params, witness={"theta": theta}),), model(coef, intercept, classes), X, y
    )
    case = Case(case.claims, case.model, X, y, weight)
    gap = float(exact_gap(case, t))
    return case.with_claim(value=publish(gap) + 1e-10 * (1 + np.abs(theta).sum())).seal()


@cache
def hinge_case(seed, classes=2):
    X = draw(seed)
    y = labels(seed, X, classes) if len(X) >= classes else np.arange(len(X))
    weight, C, s = weights(seed, len(X)), 0.7, float([1.0, 0.0, 2.5][seed % 3])
    class_weight = [None, [0.5, 2.0, 1.5][:classes]][seed // 2 % 2]
    k = seed % classes if classes > 2 else 1
    t = np.where(y == k, 1.0, -1.0)
    if class_weight is not None and classes > 2:  # the rest has the factor 1
        class_weight = [weight if j == k else 1.0 for j, weight in enumerate(class_weight)]
    params = gap_params(["hinge", "squared-hinge"][seed % 2], C, 1.0, s > 0, class_weight=class_weight, column=s)
    params["dual"] = "witness"
    if classes > 2:
        params["class"] = k
    c = costs(y, weight, params)
    top = c if params["loss"] == "hinge" else np.where(c > 0, np.inf, 0.0)
    extended = np.column_stack([X, np.full(len(X), s)])
    ridge = np.zeros(len(X)) if params["loss"] == "hinge" else 0.5 / np.maximum(c, 1e-9)
    theta = t * dual_optimum(t[:, None] * extended, np.ones(len(X)), 0.0, ridge, top)
    u = theta @ extended
    coef, intercept = np.zeros((1 if classes == 2 else classes, X.shape[1])), np.zeros(1 if classes == 2 else classes)
    row = 0 if classes == 2 else k
    coef[row], intercept[row] = u[:-1], s * u[-1]
    return honest(X, y, weight, params, theta, t, coef, intercept, list(range(classes)))


@cache
def l1_case(seed):
    """The model of the L2 penalty, whose gap is not small, with its slopes shortened to |v_j| <= 1."""
    base = hinge_case(2 * seed + 1)
    params, theta = {**base.claim.params, "penalty": {"L1": 1.0}}, base.claim.witness["theta"]
    X = np.column_stack([base.X, np.full(len(base.X), params["column"])])
    theta = theta * min(1.0, (1 - 1e-12) / np.abs(theta @ X).max())
    t = np.where(base.y == 1, 1.0, -1.0)
    return honest(base.X, base.y, base.weight, params, theta, t, base.model.coef_, base.model.intercept_, [0, 1])


@cache
def insensitive_case(seed):
    X = draw(seed)
    y = X[:, 0] - 0.5 * X[:, -1] + np.random.default_rng(seed).normal(size=len(X))
    weight, C, s, epsilon = weights(seed, len(X)), 0.4, float([1.0, 0.0, 2.5][seed % 3]), [0.0, 0.3][seed // 3 % 2]
    loss = ["epsilon-insensitive", "squared-epsilon-insensitive"][seed % 2]
    params = gap_params(loss, C, 1.0, s > 0, loss_params={"epsilon": epsilon}, column=s, dual="witness")
    c = C * (np.ones(len(X)) if weight is None else weight)
    extended = np.column_stack([X, np.full(len(X), s)])
    A, squared = np.vstack([extended, -extended]), loss.startswith("squared")
    ridge = np.tile(0.5 / np.maximum(c, 1e-9), 2) if squared else np.zeros(2 * len(X))
    top = np.tile(np.where(c > 0, np.inf, 0.0) if squared else c, 2)
    both = dual_optimum(A, np.concatenate([y, -y]), epsilon, ridge, top)
    theta = both[: len(X)] - both[len(X) :]
    theta = theta if squared else np.clip(theta, -c, c)
    u = theta @ extended
    return honest(X, y, weight, params, theta, y, u[:-1], s * u[-1], None)


def costs(y, weight, params):
    given = params.get("class_weight")
    factor = np.ones(len(y)) if given is None else np.array(given)[y]
    return params["C"] * (np.ones(len(y)) if weight is None else weight) * factor


def exact_gap(case, t):
    """P - D from their definitions, in rationals."""
    params, theta = case.claim.params, rational(case.claim.witness["theta"])
    output, c, s = params.get("class", 0), rational(case_costs(case)), Fraction(float(params["column"]))
    l1, l2 = (Fraction(params["penalty"].get(name, 0.0)) for name in ("L1", "L2"))
    w = rational(np.atleast_2d(case.model.coef_))[output]
    b = rational(np.atleast_1d(case.model.intercept_))[output]
    u = [*w, b / s] if s else w
    columns = list(zip(*([*row, s] if s else row for row in rational(case.X))))
    v = [sum(x * d for x, d in zip(column, theta)) for column in columns]
    if not l2 and max(map(abs, v)) > l1:  # the dual vector is shortened until it is feasible
        factor = l1 / max(map(abs, v))
        theta, v = [d * factor for d in theta], [b * factor for b in v]
    beyond = [max(abs(b) - l1, Fraction(0)) for b in v]
    conjugate = sum(b * b for b in beyond) / (2 * l2) if l2 else Fraction(0)
    penalty = sum(l1 * abs(a) + l2 * a * a / 2 - a * b for a, b in zip(u, v)) + conjugate
    f = [row[output] for row in scores(case)]
    brackets = [
        a * piecewise(params["loss"], y, score, d / a, params["loss_params"])
        for a, y, score, d in zip(c, rational(t), f, theta)
        if a
    ]
    return penalty + sum(brackets)


def case_costs(case):
    params = case.claim.params
    y = np.array(codes(case)) if hasattr(case.model, "classes_") else case.y
    return costs(y, case.weight, params)


def truth(case):
    """Is the claim proved at its number, its dual vector being inside its box and the model without a stray
    intercept?"""
    params, theta, c = case.claim.params, case.claim.witness["theta"], case_costs(case)
    output = params.get("class", 0)
    if not params["intercept"] and np.atleast_1d(case.model.intercept_)[output] != 0:
        return False
    labelled = hasattr(case.model, "classes_")
    t = np.where(np.array(codes(case)) == params.get("class", 1), 1.0, -1.0) if labelled else case.y
    inside = np.all(theta * t >= 0) if labelled else True
    if not params["loss"].startswith("squared"):
        inside = inside and np.all(np.abs(theta) <= c)
    inside = inside and np.all(theta[c == 0] == 0)
    return bool(inside) and exact_gap(case, t) <= Fraction(case.claim.value)


CASES = {
    "two classes": hinge_case,
    "l1": l1_case,
    "three classes": lambda seed: hinge_case(seed, 3),
    "numbers": insensitive_case,
}


@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_is_accepted(name):
    accepted = assault(CASES[name], truth, 12, seed=0)
    assert sum(accepted.values()) > 0


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(12))
def test_honest_claims_hold_and_are_tight(name, seed):
    case = CASES[name](seed)
    assert truth(case)
    report = case.verify()
    assert report.holds, report.reason
    assert report.verdicts[-1].measured >= float(exact_gap_of(case))


def exact_gap_of(case):
    labelled = hasattr(case.model, "classes_")
    t = np.where(np.array(codes(case)) == case.claim.params.get("class", 1), 1.0, -1.0) if labelled else case.y
    return exact_gap(case, t)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"loss": "perceptron"}, "loss must be one of"),
        ({"penalty": "l1"}, "penalty must name L1 and L2"),
        ({"penalty": {"L0": 1.0}}, "penalty must name L1 and L2"),
        ({"penalty": {"L1": 0.0}}, "without a penalty"),
        ({"C": 0.0}, "C"),
        ({"column": -1.0}, "column"),
        ({"intercept": False}, "a column belongs to an intercept"),
        ({"class_weight": [1.0, 1.0, 1.0]}, "class_weight must list 2 numbers"),
    ],
)
def test_malformed_problems_are_rejected(change, reason):
    case = hinge_case(0)
    report = case.with_claim(params=dict(case.claim.params) | change).seal().verify()
    assert not report.holds
    assert reason in report.reason


def test_a_dual_vector_outside_its_box_is_rejected():
    case = hinge_case(0)
    theta = case.claim.witness["theta"].copy()
    theta[np.argmax(np.abs(theta))] *= 10.0
    report = case.with_claim(witness={"theta": theta}, value=1e6).seal().verify()
    assert not report.holds
    assert "leaves its box" in report.reason

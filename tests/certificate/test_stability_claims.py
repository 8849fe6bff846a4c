"""Uniform stability (stability.uniform): the formula again by hand, forgeries, and where it does not apply."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import assay
from assay.kernel_model import KernelLogisticRegression
from assay.linear_model import LogisticRegression, Perceptron
from assay.svm import LinearSVC


@cache
def certified():
    """Few rows say nothing: the bound needs some thousands, a strong penalty and a smooth kernel."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    X = (3.0 * (2 * y - 1) + 0.3 * rng.normal(size=3000))[:, None]
    model = KernelLogisticRegression(kernel="rbf", gamma=0.03, C=1e-4, fit_intercept=False).fit(X, y)
    return model, X, y, model.certify(X, y, delta=0.2)


def test_the_formula_again():
    model, X, y, certificate = certified()
    assert assay.verify(certificate, model, X, y).holds
    claim, gap = certificate.find("stability.uniform"), certificate.find("kernel-logistic.gap").value
    z, n = model.decision_function(X) * (2 * y - 1), len(X)

    def bound(rho):
        change, width = 2 * 1e-4 / rho, math.sqrt(math.log(21 / float(claim.delta)) / (2 * n))
        return np.clip(1 - z / rho, 0, 1).mean() + change + (2 * n * change + 1) * width + 2 * math.sqrt(2 * gap) / rho

    assert claim.value == pytest.approx(min(bound(2.0**-e) for e in range(21)), abs=1e-6)
    assert claim.value < 0.95


@pytest.mark.parametrize(
    "change",
    [
        {"value": 0.999},
        {"rho": 2.0**-3},
        {"rho": 0.3},
        {"rho": 2.0**-21},
        {"rows": 2999},
        {"intercept": True},
        {"delta": "0.0001"},
    ],
    ids=str,
)
def test_forgeries_are_refused(change):
    model, X, y, certificate = certified()
    claims = []
    for claim in certificate.claims:
        if claim.name == "stability.uniform" and "value" in change:
            claims.append(replace(claim, value=change["value"] * claim.value))
        elif claim.name == "stability.uniform" and "delta" in change:
            claims.append(replace(claim, **change))
        elif claim.name == "stability.uniform":
            claims.append(replace(claim, params={**claim.params, **change}))
        else:
            claims.append(claim)
    assert not assay.verify(replace(certificate, claims=tuple(claims)), model, X, y).holds


def test_it_falls_with_the_gap_it_builds_on():
    model, X, y, certificate = certified()
    params = certificate["kernel-logistic.gap"].params
    for other in ({"value": 0.0}, {"params": {**params, "loss": "squared"}}, {"params": {**params, "intercept": True}}):
        claims = [replace(one, **other) if one.name == "kernel-duality-gap" else one for one in certificate.claims]
        report = assay.verify(replace(certificate, claims=tuple(claims)), model, X, y)
        verdicts = {claim.name: verdict for claim, verdict in zip(claims, report.verdicts)}
        assert not verdicts["stability.uniform"].holds


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "intercept"),
        ({"fit_intercept": False, "kernel": "linear"}, "length"),
        ({"fit_intercept": False, "gamma": "scale"}, "gamma"),
        ({"fit_intercept": False, "gamma": 0.1, "class_weight": "balanced"}, "advance"),
    ],
)
def test_where_it_does_not_apply_it_says_why(options, word):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    certificate = KernelLogisticRegression(**({"kernel": "rbf", "gamma": 0.1} | options)).fit(X, y).certify(X, y)
    assert word in next(gap.reason for gap in certificate.not_applicable if gap.name == "stability.uniform")


def test_few_rows_say_nothing():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    model = KernelLogisticRegression(kernel="rbf", gamma=0.1, fit_intercept=False).fit(X, y)
    assert "stability.uniform" in {name for name, _ in model.certify(X, y).unreported}


# Rows in a ball -----------------------------------------------------------------------------------------------


def on_the_circle(n=4000):
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 2 * math.pi, n)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    return X, ((X[:, 0] > 0) ^ (rng.random(n) < 0.05)).astype(int)


@cache
def in_ball(intercept):
    X, y = on_the_circle()
    model = LinearSVC(loss="hinge", C=1e-4, fit_intercept=intercept, intercept_scaling=0.1).fit(X, y)
    return model, X, y, model.certify(X, y, radius=1.01)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_formula_in_a_ball(intercept):
    model, X, y, certificate = in_ball(intercept)
    assert assay.verify(certificate, model, X, y).holds
    claim, gap = certificate.find("stability.ball"), certificate.find("linear-svm.gap").value
    z, n, square = model.decision_function(X) * (2 * y - 1), len(X), 1.01**2 + 0.01 * intercept

    def bound(rho):
        change, width = 2e-4 * square / rho, math.sqrt(math.log(41 / float(claim.delta)) / (2 * n))
        ramp, away = np.clip(1 - z / rho, 0, 1).mean(), 2 * math.sqrt(2 * gap * square) / rho
        return ramp + change + (2 * n * change + 1) * width + away

    assert claim.value == pytest.approx(min(bound(2.0**e) for e in range(-30, 11)), abs=1e-6)
    assert claim.value < 0.9


@pytest.mark.parametrize(
    "change",
    [
        {"radius": 0.99},
        {"radius": 1.0},
        {"rho": 0.3},
        {"rho": 2.0**-4},
        {"gap": "multinomial.gap"},
        {"intercept": True},
    ],
    ids=str,
)
def test_forgeries_in_a_ball_are_refused(change):
    model, X, y, certificate = in_ball(False)
    claims = [
        replace(one, params={**one.params, **change}) if one.name == "stability.ball" else one
        for one in certificate.claims
    ]
    report = assay.verify(replace(certificate, claims=tuple(claims)), model, X, y)
    assert not report.holds


@pytest.mark.parametrize(
    "change",
    [{"penalty": {"L2": 2.0}}, {"penalty": {"L1": 0.1, "L2": 1.0}}, {"loss": "squared-hinge"}, {"column": 0.0}],
    ids=str,
)
def test_a_ball_needs_the_problem_it_was_proved_for(change):
    """The gap holds at a large value, whatever the problem; a steep loss, penalty or free intercept is refused."""
    model, X, y, certificate = in_ball(True)
    gap = certificate["linear-svm.gap"]
    claims = [
        replace(one, value=1e6, params={**gap.params, **change}) if one is gap else one for one in certificate.claims
    ]
    report = assay.verify(replace(certificate, claims=tuple(claims)), model, X, y)
    verdicts = {claim.name: verdict for claim, verdict in zip(claims, report.verdicts)}
    assert verdicts["duality-gap"].holds, verdicts["duality-gap"]
    assert not verdicts["stability.ball"].holds


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (LogisticRegression(), "free intercept"),
        (LogisticRegression(fit_intercept=False, class_weight="balanced"), "fixed in advance"),
        (LinearSVC(), "slope of other losses"),
        (LinearSVC(penalty="l1"), "slope of other losses"),
    ],
    ids=str,
)
def test_where_a_ball_does_not_help_it_says_why(model, word):
    X, y = on_the_circle(200)
    certificate = model.fit(X, y).certify(X, y, radius=1.01)
    assert word in {one.name: one.reason for one in certificate.not_applicable}["stability.ball"]


def test_the_radius_is_asked_for_and_believed_only_if_no_row_is_longer():
    X, y = on_the_circle(200)
    model = LogisticRegression(fit_intercept=False).fit(X, y)
    assert "pass radius=" in {one.name: one.reason for one in model.certify(X, y).not_applicable}["stability.ball"]
    short = model.certify(X, y, radius=0.5)
    assert "longer than the radius" in {one.name: one.reason for one in short.not_applicable}["stability.ball"]
    with pytest.raises(ValueError, match="radius must be a finite number > 0"):
        model.certify(X, y, radius=-1.0)
    with pytest.raises(ValueError, match="radius is for"):
        Perceptron(max_iter=1000).fit([[0.0], [1.0]], [0, 1]).certify([[0.0], [1.0]], [0, 1], radius=2.0)


def test_one_row_moves_the_optimum_no_farther_than_the_theorem_says():
    """|w - w'| <= 2 C r for the hinge loss, each of twenty rows replaced by the worst of some others."""
    X, y = on_the_circle(200)
    C, far = 0.01, 0.0
    base = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-10).fit(X, y).coef_[0]
    for i in range(20):
        for label in (0, 1):
            Z, t = X.copy(), y.copy()
            Z[i], t[i] = -X[i], label
            far = max(
                far,
                np.linalg.norm(LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-10).fit(Z, t).coef_[0] - base),
            )
    assert 0.5 * C < far <= 2 * C * (1 + 1e-6)

"""Gaps against rationals, 60 digits and the true distance to the optimum: never below, hardly above."""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from assay.checker.rules.losses import LOSSES
from tests.certificate import exact, exact_optimum, forge, optimum_cases
from tests.certificate.cases import CASES

SEEDS = range(100)


def measured(case: forge.Case) -> float:
    report = case.with_claim(value=1e100).verify()
    assert report.holds, report.reason
    return report.verdicts[-1].measured


def compare(case: forge.Case, truth: Fraction | Decimal, scale: float, least: Fraction | Decimal | None = None) -> None:
    """The checker's number is at least `least` (the exact gap unless said otherwise), and hardly above the
    exact gap."""
    found = measured(case)
    assert Fraction(found) >= Fraction(truth if least is None else least)
    assert found <= float(truth) * (1 + 1e-9) + 1e-10 * max(1.0, scale)


def size(case: forge.Case) -> float:
    return float(np.abs(case.X).max() ** 2)


# Without a witness the dual vector is what the checker computes, in floats; the number it finds may then
# differ in the last digits from the exact gap at the exact slopes, but never falls below the true distance to
# the optimum.


@pytest.mark.parametrize("seed", SEEDS)
def test_ridge(seed):
    case = optimum_cases.ridge_case(seed)
    compare(case, exact_optimum.ridge_gap(case), size(case), exact_optimum.ridge_excess(case))


@pytest.mark.parametrize("seed", SEEDS)
def test_logistic(seed):
    case = optimum_cases.logistic_case(seed)
    compare(case, exact_optimum.logistic_gap(case), size(case), exact_optimum.logistic_excess(case))


@pytest.mark.parametrize("seed", range(40))
def test_multinomial(seed):
    case = optimum_cases.logistic_case(seed, 3)
    compare(case, exact_optimum.multinomial_gap(case), size(case), exact_optimum.logistic_excess(case))


@pytest.mark.parametrize("seed", [0, 2, 3, 5, 7, 8])
def test_no_gap_is_left_at_the_optimum(seed):
    """The slack of the checker itself stays below 1e-12 on well-scaled rows."""
    ridge = optimum_cases.ridge_case(seed)
    params = ridge.claim.params
    W, b = optimum_cases.ridge_fit(ridge.X, ridge.y, ridge.weight, params["penalty"]["L2"], params["intercept"])
    assert measured(replace(ridge, model=forge.model(W, b), sealed=None)) < 1e-12
    for classes, most in ((2, 1e-12), (3, 1e-9)):
        case = optimum_cases.logistic_case(seed, classes)
        params, y = case.claim.params, np.array(exact.codes(case))
        c = params["C"] * (np.ones(len(y)) if case.weight is None else case.weight)
        c = c * (1.0 if params["class_weight"] is None else np.array(params["class_weight"])[y])
        W, b = optimum_cases.logistic_fit(case.X, y, c, params["intercept"], classes)
        assert measured(replace(case, model=forge.model(W, b, case.model.classes_), sealed=None)) < most


@pytest.mark.parametrize("scale", [1.0, 50.0, 3000.0])
@pytest.mark.parametrize("name", ["duality-gap logistic", "multinomial.gap"])
def test_scores_far_from_zero_stay_sound(name, scale):
    """Weights far off the optimum: scores reach hundreds, the gap is huge, and its bound still holds and is
    close."""
    case = CASES[name](1)
    case = replace(
        case,
        model=forge.model(case.model.coef_ * scale + 0.1, case.model.intercept_, case.model.classes_),
        sealed=None,
    )
    truth = exact_optimum.logistic_gap(case) if name != "multinomial.gap" else exact_optimum.multinomial_gap(case)
    found = measured(case)
    assert found >= float(truth) * (1 - 1e-9)
    assert found <= float(truth) * 1.02 + 1e-9


LOSS_PARAMS = {"huber": {"kappa": 0.7}, "quantile": {"level": 0.3}} | {
    name: {"epsilon": 0.2} for name in ("epsilon-insensitive", "squared-epsilon-insensitive")
}
TRANSCENDENTAL = ("logistic", "poisson", "exponential")
PENALTIES = [{"L2": 0.5}, {"L1": 0.4}, {"L1": 0.3, "L2": 0.2}]


def generic_case(seed: int, loss: str, penalty: dict, intercept: bool) -> forge.Case:
    """An arbitrary model and an arbitrary feasible dual vector: the gap is large and must be exact."""
    rng = np.random.default_rng([seed, len(loss), len(penalty), intercept])
    X = forge.draw(seed, n=12)
    labels = LOSSES[loss].labels
    y = rng.integers(0, 2, len(X)) if labels else rng.standard_normal(len(X)).round(3)
    params = LOSS_PARAMS.get(loss, {})
    target = np.where(y == 1, 1.0, -1.0) if labels else y
    low, high = (-2.0, 2.0) if LOSSES[loss].box is None else LOSSES[loss].box(target, **params)
    low, high = (
        np.broadcast_to(np.maximum(low, -2.0), y.shape),
        np.broadcast_to(np.minimum(high, 2.0), y.shape),
    )
    weight = rng.choice([0.0, 1.0, 1.75], len(X))
    scale = 0.75
    theta = (
        scale
        * weight
        * np.where(
            rng.random(len(X)) < 0.3,
            rng.choice([0, 1], len(X)) * high,
            low + rng.random(len(X)) * (high - low),
        )
    )
    fitted = forge.model(
        rng.standard_normal((1, X.shape[1])) * (rng.random(X.shape[1]) < 0.8),
        rng.standard_normal() * intercept,
        [0, 1] if labels else None,
    )
    stated = {"loss": loss, "loss_params": params, "penalty": penalty, "intercept": intercept, "C": scale}
    stated |= {"column": 0.0, "dual": "witness"}
    stated |= {"class_weight": None} if labels else {}
    claim = forge.claim("duality-gap", 1.0, params=stated, witness={"theta": theta})
    return forge.Case((claim,), fitted, X, y, weight).seal()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("loss", [name for name in LOSSES if name not in TRANSCENDENTAL])
def test_every_loss_and_penalty_against_rationals(loss, penalty, intercept):
    for seed in range(8):
        case = generic_case(seed, loss, penalty, intercept)
        compare(case, exact_optimum.generic_gap(case), size(case))


def test_poisson_against_sixty_digits():
    from decimal import localcontext

    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((10, 2)), rng.poisson(2.0, 10).astype(float)
    w, theta = np.array([[0.3, -0.2]]), y - np.exp(rng.standard_normal(10))
    theta = np.where(y == 0, np.minimum(theta, 0.0), theta)
    stated = forge.gap_params("poisson", 1.0, 1.0, False, dual="witness")
    case = forge.Case(
        (forge.claim("duality-gap", 1.0, params=stated, witness={"theta": theta}),), forge.model(w, 0.0), X, y
    ).seal()
    with localcontext(prec=60):
        f = [exact.decimal(row[0]) for row in exact.scores(case)]
        a = [exact.decimal(Fraction(float(v)) - Fraction(float(t))) for v, t in zip(y, theta)]
        v = exact.combine(case, [exact.decimal(Fraction(float(t))) for t in theta])
        gap = sum((p * (p.ln() - s) - p if p > 0 else 0) + s.exp() for p, s in zip(a, f))
        gap += sum((p - exact.decimal(Fraction(float(q)))) ** 2 for p, q in zip(v, w[0])) / 2
    compare(case, gap, 1.0)


def test_default_dual_is_the_slope():
    """Without a witness the slopes of the loss are used; naming them as the witness gives the same number."""
    ridge = optimum_cases.ridge_case(1)
    weight = np.ones(len(ridge.X)) if ridge.weight is None else ridge.weight
    theta = weight * (ridge.y - ridge.X @ np.ravel(ridge.model.coef_) - ridge.model.intercept_[0])
    params = ridge.claim.params | {"dual": "witness"}
    named = replace(ridge, sealed=None).with_claim(params=params, witness={"theta": theta})
    assert measured(named) == pytest.approx(measured(ridge), rel=1e-9)


def test_targets_that_leave_a_dual_vector_no_room_are_refused():
    """tau <= y binds the dual vectors of the Poisson loss: a negative y would be left by shrinking tau."""
    X, y = np.array([[1.0], [2.0], [3.0]]), np.array([-1.0, 2.0, 1.0])
    for penalty, intercept in (({"L1": 0.1}, False), ({"L2": 1.0}, True)):
        stated = forge.gap_params("poisson", 1.0, 1.0, intercept, penalty=penalty, dual="witness")
        gap = forge.claim("duality-gap", 100.0, params=stated, witness={"theta": np.array([-1.5, 1.0, 0.5])})
        report = forge.Case((gap,), forge.model([[0.1]], 0.0), X, y).seal().verify()
        assert "cannot have such targets" in report.reason


@pytest.mark.parametrize("seed", range(30))
def test_least_squares_form_a(seed):
    case = optimum_cases.least_squares_case(seed)
    intercept = case.claim.params["intercept"]
    Z = exact.rational(np.hstack([case.X, np.ones((len(case.X), 1))]) if intercept else case.X)
    c, r = exact.row_costs(case), [Fraction(float(y)) - s[0] for y, s in zip(case.y, exact.scores(case))]
    g = [sum((a * b * row[j] for a, b, row in zip(c, r, Z)), Fraction(0)) for j in range(len(Z[0]))]
    gram = [
        [sum((a * row[i] * row[j] for a, row in zip(c, Z)), Fraction(0)) for j in range(len(g))] for i in range(len(g))
    ]
    excess = sum(a * b for a, b in zip(g, exact.solve(gram, g))) / 2  # exactly P - min P
    assert Fraction(measured(case)) >= excess
    assert not case.with_claim(params=dict(case.claim.params, mu=case.claim.params["mu"] * 2.1)).verify().holds


@pytest.mark.parametrize("seed", range(12))
def test_form_b_bounds_the_gain_within_the_radius(seed):
    case = optimum_cases.stationary_case(seed)
    found, rng = measured(case), np.random.default_rng(seed)
    radius, shape = case.claim.params["radius"], case.model.coef_.shape

    def value(W, b):
        names = case.model.classes_.tolist()
        y, s = np.array([names.index(v) for v in case.y]), case.X @ W.T + b
        c = np.ones(len(y)) if case.weight is None else case.weight
        weights = case.claim.params["class_weight"]
        c = c * (1.0 if weights is None else np.array(weights)[y])
        s = np.hstack([np.zeros_like(s), s]) if len(names) == 2 else s
        return float(c @ (np.logaddexp.reduce(s, axis=1) - s[np.arange(len(y)), y]))

    here = value(case.model.coef_, case.model.intercept_)
    for _ in range(50):
        step = rng.standard_normal((shape[0], shape[1] + case.claim.params["intercept"]))
        step *= radius / np.linalg.norm(step)
        b = case.model.intercept_ + (step[:, -1] if case.claim.params["intercept"] else 0.0)
        assert here - value(case.model.coef_ + step[:, : shape[1]], b) <= found + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_enclosure_contains_the_optimum(seed):
    case = optimum_cases.enclosure_case(seed)
    assert case.verify().holds
    params = case.claims[0].params
    y = np.array(exact.codes(case))
    c = params["C"] * (np.ones(len(y)) if case.weight is None else case.weight)
    c = c * (1.0 if params["class_weight"] is None else np.array(params["class_weight"])[y])
    W, _ = optimum_cases.logistic_fit(case.X, y, c, False, 2)
    assert np.linalg.norm(W - case.model.coef_) <= case.verify().verdicts[-1].measured + 1e-6
    assert not case.with_claim(params=dict(case.claim.params, strength=1.01)).verify().holds
    assert not case.with_claim(params=dict(case.claim.params, fixed_rows=len(y) + 1)).verify().holds
    assert not case.with_claim(value=case.verify().verdicts[-1].measured * (1 - 1e-9)).verify().holds


def test_the_box_is_exact_to_the_last_bit():
    case = optimum_cases.hinge_case(3)
    theta = case.claim.witness["theta"]
    at = int(np.argmax(np.abs(theta)))
    top = theta.copy()
    top[at] = math.copysign(0.5, theta[at])
    assert "box" not in case.with_claim(witness={"theta": top}, value=10.0).verify().reason
    top[at] = math.nextafter(top[at], math.copysign(1.0, theta[at]))
    assert "box" in case.with_claim(witness={"theta": top}, value=10.0).verify().reason

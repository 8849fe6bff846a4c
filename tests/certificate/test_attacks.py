"""Attacks on the checker: it may refuse what is true, never accept what is false."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.certificate import count_cases, exact_optimum, forge, optimum_cases, truths
from tests.certificate.attacks import assault, operators
from tests.certificate.cases import CASES


def attack(name: str, mutants: int, seed: int) -> None:
    accepted = assault(CASES[name], truths.truth, mutants, seed)
    assert set(accepted) <= {operator for operator, _, _ in operators()}
    assert sum(accepted.values()) > 0, "every mutant was refused: the attack no longer reaches the rules"


@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_is_accepted(name):
    attack(name, 12, seed=0)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_among_two_hundred_per_operator(name):
    attack(name, 200, seed=1)


@pytest.mark.parametrize("name", CASES)
def test_the_oracle_agrees_with_the_forge(name, long):
    """The oracle calls every honest case true; otherwise the attacks would prove nothing."""
    for seed in range(12 if long else 3):
        assert truths.truth(CASES[name](seed))


# Constants --------------------------------------------------------------------------------------------------
# Each formula with its constants as parameters, written once more. A constant off by ten percent in the
# direction that makes the number smaller must be refused; in the other direction the number is larger and
# still true.


def bernstein(case, two_in_log, two, seven, three, one):
    losses, m, clip, delta = clipped_losses(case)
    log = math.log(two_in_log / delta)
    return losses.mean() + math.sqrt(two * losses.var(ddof=1) * log / m) + seven * clip * log / (three * (m - one))


def clipped_losses(case):
    X, y = case.holdout
    losses = np.minimum(np.abs(y - X @ case.model.coef_ - case.model.intercept_[0]), case.claim.params["clip"])
    return losses, len(losses), case.claim.params["clip"], float(case.claim.delta)


def clopper_pearson(case, plus, share):
    k, m = case.claim.params["errors"], case.claim.params["rows"]
    return stats.beta.ppf(1 - share * float(case.claim.delta), k + plus, m - k)


def ridge(case, half, twice):
    params, X = case.claim.params, case.X
    s = np.ones(len(X)) if case.weight is None else case.weight
    r = case.y.reshape(len(X), -1) - (X @ case.model.coef_.reshape(-1, X.shape[1]).T + case.model.intercept_)
    mean = (s @ r) / s.sum() if params["intercept"] else 0 * r[0]
    alpha = params["penalty"]["L2"]
    gap = X.T @ ((r - mean) * s[:, None]) - alpha * case.model.coef_.reshape(-1, X.shape[1]).T
    return half * s.sum() * (mean**2).sum() + (gap**2).sum() / (twice * alpha)


def enclosure(case, two):
    return math.sqrt(two * float(exact_optimum.logistic_gap(replace(case, claims=case.claims[:1]))))


def novikoff(case, two):
    return (case.claim.params["radius"] / case.claim.params["margin"]) ** two


def ghost(case, growth_factor, ghost_rows, middle):
    params, n = case.claim.params, len(case.X)
    ways = count_cases.growth(params["class"], int((1 + ghost_rows) * n)) * growth_factor / 2
    K = count_cases.ghost_threshold(params["errors"], n, ways, float(case.claim.delta))
    return stats.beta.ppf(middle, K - params["errors"], 4 * n - (K - params["errors"]) + 1), K


CONSTANTS = [
    ("holdout.empirical-bernstein", bernstein, (2.0, 2.0, 7.0, 3.0, 1.0)),
    ("holdout.binomial", clopper_pearson, (1.0, 1.0)),
    ("duality-gap ridge", ridge, (0.5, 2.0)),
    ("solution.enclosure", enclosure, (2.0,)),
    ("perceptron.mistakes", novikoff, (2.0,)),
]


@pytest.mark.parametrize(("name", "formula", "constants"), CONSTANTS, ids=[row[0] for row in CONSTANTS])
def test_constants_off_by_ten_percent_are_noticed(name, formula, constants):
    seed = next(s for s in range(100) if fits_constants(CASES[name](s), formula, constants))
    case = CASES[name](seed)
    right = float(formula(case, *constants))
    assert case.with_claim(value=right * (1 + 1e-7) + 1e-9).verify().holds
    for i in range(len(constants)):
        for factor in (0.9, 1.1):
            wrong = float(formula(case, *constants[:i], constants[i] * factor, *constants[i + 1 :]))
            if wrong < right * (1 - 1e-6):
                assert not case.with_claim(value=wrong).verify().holds, (name, i, factor)
            else:
                assert case.with_claim(value=wrong * (1 + 1e-9)).verify().holds, (name, i, factor)


def fits_constants(case, formula, constants):
    """An upper claim on which every constant matters."""
    if case.claim.direction != "upper":
        return False
    right = float(formula(case, *constants))
    moved = [float(formula(case, *constants[:i], c * 1.1, *constants[i + 1 :])) for i, c in enumerate(constants)]
    return right > 1e-4 and all(abs(value - right) > 2e-5 * right for value in moved)


def test_constants_of_the_ghost_sample_are_noticed():
    case = count_cases.vc_case(1, n=200)
    params = case.claim.params
    value, K = ghost(case, 2.0, 4.0, 0.5)
    assert case.with_claim(value=float(value) + 1e-9, params=params | {"K": K}).verify().holds
    lower, _ = ghost(case, 2.0, 4.0, 0.45)
    assert not case.with_claim(value=float(lower), params=params | {"K": K}).verify().holds
    fewer, K_fewer = ghost(case, 0.02, 4.0, 0.5)  # a growth function a hundred times too small
    assert K_fewer < K
    assert not case.with_claim(value=float(fewer) + 1e-9, params=params | {"K": K_fewer}).verify().holds


# Rounding ---------------------------------------------------------------------------------------------------


def test_margins_and_duals_one_bit_from_their_border():
    """Hinge margins at 1 and duals at C, one unit in the last place to either side: never below the rational
    gap."""
    rng = np.random.default_rng(0)
    for trial in range(100):
        X = np.ldexp(rng.integers(-8, 9, size=(6, 2)).astype(float), int(rng.integers(-3, 4)))
        X += X * rng.integers(-1, 2, size=X.shape) * 2.0**-52
        y, C = rng.integers(0, 2, 6), 0.1
        alpha = np.array([math.nextafter(C, 0.0), C, 0.0, C / 3, C, 5e-17])
        w = np.array([[1.0 + 2.0**-52, -1.0]])
        params = forge.gap_params("hinge", C, 1.0, bool(trial % 2), class_weight=None, dual="witness")
        witness = {"theta": alpha * np.where(y == 1, 1.0, -1.0)}
        stated = forge.claim("duality-gap", 1e9, params=params, witness=witness)
        case = forge.Case((stated,), forge.model(w, 0.25 * (trial % 2), [0, 1]), X, y).seal()
        report = case.verify()
        assert report.holds, report.reason
        assert Fraction(report.verdicts[0].measured) >= exact_optimum.generic_gap(case)


def test_rows_that_cancel_catastrophically():
    """Pairs (x, -x (1 + 2^-52)) make sums vanish in floats: the bound must still cover the exact gap."""
    rng = np.random.default_rng(1)
    for trial in range(60):
        half = rng.standard_normal((5, 3)) * 10.0 ** rng.integers(-6, 7, size=3)
        X = np.vstack([half, -half * (1 + 2.0**-52)])
        w = rng.standard_normal(3)
        y = X @ w * (1 + 2.0**-51 * rng.standard_normal(10))
        params = forge.gap_params("squared", 1.0, float(10.0 ** rng.integers(-6, 3)), bool(trial % 2))
        case = forge.Case((forge.claim("duality-gap", 1e30, params=params),), forge.model(w, 0.0), X, y).seal()
        assert Fraction(case.verify().verdicts[0].measured) >= exact_optimum.ridge_excess(case)


@pytest.mark.parametrize("scale", [1e-149, 1e-75, 1e75, 1e149])
def test_extreme_but_allowed_magnitudes(scale):
    """At the ends of the allowed range nothing over- or underflows into a false acceptance."""
    for seed in range(10):
        case = optimum_cases.ridge_case(5 * seed)
        X = case.X * scale
        W = case.model.coef_ * np.clip(1 / scale, 1e-149, 1e149)
        forged = replace(case, X=X, model=forge.model(W, case.model.intercept_), sealed=None)
        report = forged.with_claim(value=1e100).verify()
        if report.holds:
            assert Fraction(report.verdicts[0].measured) >= exact_optimum.ridge_excess(forged)


def test_hostile_records_do_not_take_long():
    """Huge integers, sets and exponents are turned away before anything is computed with them."""
    import time

    for name, change in (
        ("vc", {"class": {"class": "halfspaces", "d": 10**15, "bias": True}}),
        ("vc", {"K": 2**53}),
        ("holdout.binomial", {"errors": 2**53}),
    ):
        case = CASES[name](1)
        started = time.process_time()
        case.with_claim(params=case.claim.params | change).verify()
        assert time.process_time() - started < 5

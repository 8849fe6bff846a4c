"""Attacks on claims about networks: mutants by operators that know networks, rounding, malformed shapes."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

import assay
from assay.checker.families.network import read_network
from assay.checker.record import Rejected
from assay.neural_network import MLPClassifier, MLPRegressor
from tests.certificate import attacks, forge, network_forge
from tests.certificate.network_forge import CASES, truth


def changed(model, rng):
    """Return another network: a weight, the unit, the order of layers or of classes."""
    other = deepcopy(model)
    which = rng.integers(5)
    if which == 0:
        other.network_weights_[rng.integers(other.network_weights_.size)] += rng.choice([1e-13, 1.0, -1e-3])
    elif which == 1:
        other.network_weights_ = other.network_weights_ * (1 + 10.0 ** -rng.uniform(0, 14))
    elif which == 2:
        other.network_codes_[0] = rng.integers(-1, 5)
    elif which == 3:
        other.network_sizes_ = rng.permutation(other.network_sizes_)
    elif hasattr(other, "classes_"):
        other.classes_ = other.classes_[::-1].copy()
    return other


TABLES = attacks.tables(changed)


def attack(name, mutants, seed):
    accepted = attacks.assault(CASES[name], truth, mutants, seed, TABLES)
    assert sum(accepted.values()) > 0, "every mutant was refused: the attack no longer reaches the rules"


@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_is_accepted(name):
    attack(name, 12, seed=0)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_among_two_hundred_per_operator(name):
    attack(name, 200, seed=1)


@pytest.mark.parametrize("name", CASES)
def test_honest_cases_are_true_and_accepted(name):
    for seed in range(12):
        case = CASES[name](seed)
        assert truth(case)
        report = case.verify()
        assert report.holds, report.reason


@pytest.mark.parametrize("name", [name for name in CASES if "errors" not in name and name != "hold-out"])
def test_the_bound_is_never_below_the_exact_length(name):
    for seed in range(24):
        case = CASES[name](seed)
        exact = network_forge.gradient_length(case)
        measured = case.verify().verdicts[0].measured
        assert exact <= measured <= exact * (1 + 1e-9) + 1e-8  # columns up to 1e5, saturated units


def test_constants_of_the_objective_are_noticed():
    """A share or decay ten percent off changes the length; where it makes it smaller the old value is refused."""
    seed = next(s for s in range(30) if CASES["squared error"](s).claim.params["decay"] > 0)
    case = CASES["squared error"](seed)
    for name in ("share", "decay"):
        for factor in (0.5, 2.0):
            other = case.with_claim(params=case.claim.params | {name: case.claim.params[name] * factor})
            assert other.verify().holds == truth(other)


def test_units_at_their_kink_take_any_slope():
    """A ReLU whose sum is exactly zero: the bound covers slope 0 and slope 1."""
    model = network_forge.network(np.random.default_rng(0), (1, 1, 1), "relu")
    model.network_weights_ = np.array([1.0, 3.0, 0.0, 0.0])  # f = 3 max(x, 0)
    X, y = np.array([[1.0], [-1.0], [0.0], [0.0]]), np.array([3.0, 0.0, 5.0, 5.0])
    params = {"loss": "squared", "share": 1.0, "decay": 0.0, "intercept_decay": 0.0}
    case = forge.Case((forge.claim("network.gradient", 1e3, params=params),), model, X, y)
    # by the hidden intercept: -(5 + 5) * 3 / 4 with slope 1; by the output intercept -10/4; by the rest 0
    assert case.verify().verdicts[0].measured == pytest.approx(np.hypot(7.5, 2.5), rel=1e-9)
    assert not case.with_claim(value=2.6).verify().holds  # true with slope 0 alone


def test_saturated_units_and_large_scores():
    """Scores up to 1e5, where exponentials under- and overflow: never a false number, at most a refusal."""
    for seed in range(12):
        for kind, loss in (("two", "log"), ("three", "log"), ("two", "squared"), ("number", "squared")):
            case = network_forge.gradient_case(kind, loss)(seed)
            model = deepcopy(case.model)
            model.network_weights_ = model.network_weights_ * 300.0
            big = replace(case, model=model, sealed=None).with_claim(value=1e100)
            report = big.verify()
            if report.holds:
                assert report.verdicts[0].measured >= network_forge.gradient_length(big) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("sizes", "weights", "codes", "classes", "message"),
    [
        ([2], [1.0], [0, 0], None, "at least two numbers of units"),
        ([2, 0], [1.0], [0, 0], None, "at least two numbers of units"),
        ([2, 1.5], [1.0], [0, 0], None, "at least two numbers of units"),
        ([2, 1], [1.0, 2.0], [0, 0], None, "has 2 numbers"),
        ([2.0**40, 2.0**40], [1.0], [0, 0], None, "beyond 2"),
        ([2, 1], [1.0, 2.0, 3.0], [4, 0], None, "network_codes_ must be"),
        ([2, 1], [1.0, 2.0, 3.0], [0, 2], None, "network_codes_ must be"),
        ([2, 1], [1.0, 2.0, 3.0], [0, 0], ("a", "b", "c"), "does not tell 3 classes apart"),
        ([2, 1], [1.0, 2.0, 3.0], [0, 1], ("a", "b"), "does not tell 2 classes apart"),
    ],
)
def test_malformed_networks_are_rejected(sizes, weights, codes, classes, message):
    with pytest.raises(Rejected, match=message):
        read_network(np.array(sizes, float), np.array(weights), np.array(codes, float), classes)


def test_rows_on_the_border_count_against_every_claim():
    """A ReLU network whose score is exactly zero on a row: an error for an upper bound, none for a lower one."""
    model = network_forge.network(np.random.default_rng(0), (1, 1, 1), "relu", classes=2)
    model.network_weights_ = np.array([1.0, 1.0, 0.0, -0.1])
    X, y = np.array([[0.1], [0.2], [0.0]]), np.array([1, 1, 0])
    params = {"set": "train", "rows": 3, "loss": "zero-one", "low": 0}
    case = forge.Case((forge.claim("train.errors", 1.0, params=params),), model, X, y)
    report = case.verify()
    assert report.holds, report.reason
    assert not case.with_claim(value=0.0).verify().holds
    assert not case.with_claim(params=params | {"low": 1}).verify().holds


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("unit", network_forge.UNITS)
@pytest.mark.parametrize("single", [False, True], ids=["double", "single"])
def test_certificates_of_learners_hold(unit, single):
    """Whatever was trained, in whichever precision and however badly: what the learner says is accepted and true."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * [1e-3, 1.0, 10.0, 1e4]
    X = X.astype(np.float32) if single else X
    y = np.digitize(X[:, 1] + X[:, 2] ** 2 / 50, [0.5, 2.0])
    train, held = slice(0, 200), slice(200, 300)
    for labels, options in ((y, {"scores": True, "coverage": 0.9}), (y > 0, {"scores": True})):
        for solver in ("adam", "lbfgs"):
            model = MLPClassifier((6, 5), unit, solver=solver, max_iter=30, random_state=0).fit(X[train], labels[train])
            certificate = model.certify(X[train], labels[train], holdout=(X[held], labels[held]), **options)
            report = assay.verify(certificate, model, X[train], labels[train], holdout=(X[held], labels[held]))
            assert report.holds, report.reason
            wrong = int(np.sum(model.predict(X[held].astype(float)) != labels[held]))
            assert certificate.find("holdout.binomial").params["errors"] == wrong
    target = X[:, 1].astype(float) ** 2
    model = MLPRegressor(hidden_layer_sizes=8, activation=unit, max_iter=30, random_state=0).fit(
        X[train], target[train]
    )
    certificate = model.certify(X[train], target[train], holdout=(X[held], target[held]), clip=5.0, coverage=0.8)
    assert assay.verify(certificate, model, X[train], target[train], holdout=(X[held], target[held])).holds
    assert {claim.name for claim in certificate.claims} >= {"train.errors", "network.gradient"}


@pytest.mark.filterwarnings("ignore")
def test_capacity_says_why_there_is_no_bound():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = MLPClassifier(3, max_iter=5).fit(X, X[:, 0] > 0)
    reason = next(gap.reason for gap in model.certify(X, X[:, 0] > 0).not_applicable if gap.name == "vc")
    assert "finite VC dimension" in reason
    assert "Evaluate on a hold-out set" in reason

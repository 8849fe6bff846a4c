"""Certificates of boosted votes: margins, the largest margin there can be, the size of the class."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_iris

import assay
from assay.ensemble import AdaBoostClassifier, LPBoost


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


MODELS = [
    AdaBoostClassifier(n_estimators=3, stump="error"),
    AdaBoostClassifier(n_estimators=30, learning_rate=0.5),
    AdaBoostClassifier(n_estimators=10, how="resample", random_state=0),
    LPBoost(nu=0.1, n_estimators=10),
    LPBoost(nu=0.0, n_estimators=10),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_claims_are_made_and_checked(model):
    X, y = load_breast_cancer(return_X_y=True)
    fitted(model, X, y)
    certificate = model.certify(X, y)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    made = {claim.name for claim in certificate.claims} | {one.name for one in certificate.not_applicable}
    assert made >= {"boosting.margin-duality", "vc", "margin.boosting"}
    assert {claim.direction for claim in certificate.claims if claim.name == "boosting.margin-duality"} >= {"upper"}


def all_stumps(X):
    """Return the votes of all stumps with the larger side positive, (rows, stumps), and the constant one."""
    found = [np.ones(len(X))]
    for column in X.T:
        found += [np.where(column <= t, 1.0, -1.0) for t in np.unique(column)[:-1]]
    return np.column_stack(found)


def best_margin(X, sign, cap):
    """Solve for the largest soft margin over votes of all stumps, by one linear programme."""
    H = sign[:, None] * all_stumps(X)
    H = np.column_stack([H, -H])
    n, T = H.shape
    # variables: a (T), rho, slack (n); maximise rho - cap sum slack
    A = np.column_stack([-H, np.ones(n), -np.eye(n)])
    cost = np.concatenate([np.zeros(T), [-1.0], np.full(n, cap)])
    bounds = [(0, None)] * T + [(None, None)] + [(0, None)] * n
    found = linprog(cost, A, np.zeros(n), np.append(np.ones(T), np.zeros(n + 1))[None], [1.0], bounds)
    return -found.fun


@pytest.mark.parametrize("nu", [0.0, 0.2])
def test_the_bracket_holds_the_largest_margin_and_closes(nu):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    model = fitted(LPBoost(nu=nu, n_estimators=300, tol=1e-7), X, y)
    claims = {c.direction: c.value for c in model.certify(X, y).claims if c.name == "boosting.margin-duality"}
    truth = best_margin(X, 2.0 * y - 1, 1.0 if nu == 0 else 1 / (nu * 30))
    assert claims["lower"] <= truth + 1e-9
    assert claims["upper"] >= truth - 1e-9
    assert claims["upper"] - claims["lower"] < 1e-5
    boosted = fitted(AdaBoostClassifier(n_estimators=200, stump="error"), X, y)
    bracket = {c.direction: c.value for c in boosted.certify(X, y).claims if c.name == "boosting.margin-duality"}
    smallest = best_margin(X, 2.0 * y - 1, 1.0)
    assert bracket.get("lower", 0.0) <= smallest + 1e-9 <= bracket["upper"] + 2e-9


def test_why_it_is_not_made():
    X, y = load_iris(return_X_y=True)
    reasons = {one.name: one.reason for one in fitted(AdaBoostClassifier(), X, y).certify(X, y).not_applicable}
    assert "more than two classes" in reasons["boosting.margin-duality"]
    assert "more than two classes" in reasons["margin.boosting"]
    weight = np.linspace(0.5, 1.5, 100)
    model = AdaBoostClassifier(n_estimators=3).fit(X[:100], y[:100], weight)
    reasons = {o.name: o.reason for o in model.certify(X[:100], y[:100], sample_weight=weight).not_applicable}
    assert "Row weights" in reasons["margin.boosting"]


REPETITIONS = 60


@cache
def outcomes():
    """Boost three stumps on a noisy step, whose risk is known, and many on noise, where it is 1/2."""
    found = []
    for i in range(REPETITIONS):
        rng = np.random.default_rng([30, i])
        x, coin = rng.random((3000, 1)), rng.integers(0, 2, 3000)
        y = ((x[:, 0] > 0.4) ^ (rng.random(3000) < 0.05)).astype(int)
        model = fitted(AdaBoostClassifier(n_estimators=3, stump="error", n_jobs=1), x, y)
        grid = (np.arange(20_000) + 0.5)[:, None] / 20_000
        risk = 0.05 + 0.9 * np.mean(model.predict(grid) != (grid[:, 0] > 0.4)) - 0.0005
        noise = fitted(AdaBoostClassifier(n_estimators=5, n_jobs=1), x, coin)
        found.append(
            [risk, *(least(model, x, y, d) for d in (0.05, 0.2)), *(least(noise, x, coin, d) for d in (0.05, 0.2))]
        )
    return np.array(found)


def least(model, X, y, delta):
    return min((claim.value for claim in model.certify(X, y, delta=delta).claims if not claim.is_fact), default=1.0)


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_certificates_of_votes_keep_their_promise(delta):
    found, at = outcomes(), [0.05, 0.2].index(delta)
    allowed = binom.isf(1e-6, REPETITIONS, delta)
    assert np.sum(found[:, 1 + at] < found[:, 0]) <= allowed
    assert np.sum(found[:, 3 + at] < 0.5) <= allowed
    assert np.mean(found[:, 1 + at] < 0.5) >= 0.5


def test_margins_without_the_price_of_the_class_are_caught():
    """Control: on coin labels the mean ramp alone, taken for a bound, is below the risk of 1/2."""
    broken = 0
    for i in range(20):
        rng = np.random.default_rng([31, i])
        X, y = rng.random((60, 5)), rng.integers(0, 2, 60)
        model = fitted(AdaBoostClassifier(n_estimators=60, stump="error"), X, y)
        broken += np.clip(1 - model.margins_ / 2**-4, 0, 1).mean() < 0.5
    assert broken > binom.isf(1e-6, 20, 0.05)

"""Certificates of stumps by random signs: which trees have them, what they say, and whether the promise holds."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_iris

import assay
from assay.scan import rows
from assay.theory import rademacher
from assay.tree import C45, CART, ID3, DecisionTreeClassifier
from assay.tree._claims import stump_statement

STUMPS = [
    DecisionTreeClassifier(max_depth=1),
    DecisionTreeClassifier(max_leaf_nodes=2, criterion="entropy"),
    DecisionTreeClassifier(max_depth=1, max_features=2, splitter="random", random_state=0),
    CART(max_depth=1, pruning=None),
    ID3(max_depth=1),
    C45(max_depth=1),
]


def reasons(certificate):
    return {one.name: one.reason for one in certificate.not_applicable}


@pytest.mark.parametrize("model", STUMPS, ids=lambda model: repr(model)[:60])
def test_stumps_state_the_bound_and_the_checker_agrees(model):
    X, y = load_breast_cancer(return_X_y=True)
    X, n = X[:, :6], len(y)
    certificate = model.fit(X, y).certify(X, y)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    claim = certificate.find("rademacher.empirical")
    drawn = rademacher.signs(16, n, 0).astype(int)
    largest = np.abs(drawn.sum(axis=1))
    for column in X.T:
        for t in column:
            largest = np.maximum(largest, np.abs(drawn @ np.where(column <= t, 1, -1)))
    deviation = math.sqrt((9 + 4 / 16) * -math.log(float(claim.delta)) / (2 * n))
    expected = np.mean(model.predict(X) != y) + largest.mean() / n + deviation
    assert claim.value == pytest.approx(expected, abs=2e-9)
    assert "follow 16 draws of random signs" in str(certificate)


def test_larger_trees_do_not_mention_it():
    X, y = load_breast_cancer(return_X_y=True)
    certificate = DecisionTreeClassifier(max_depth=2).fit(X, y).certify(X, y)
    assert "rademacher.empirical" not in {claim.name for claim in certificate.claims} | set(reasons(certificate))


def test_a_larger_tree_that_came_out_with_one_split_does_not_mention_it():
    """What is said must not depend on the size that the rows asked for."""
    X = np.repeat([[0.0], [1.0]], 100, axis=0)
    model = DecisionTreeClassifier().fit(X, X[:, 0] > 0.5)
    assert model.get_n_leaves() == 2
    certificate = model.certify(X, X[:, 0] > 0.5)
    assert "rademacher.empirical" not in {claim.name for claim in certificate.claims} | set(reasons(certificate))


def test_where_it_is_not_said_the_reason_is():
    X, y = load_iris(return_X_y=True)
    stump = DecisionTreeClassifier(max_depth=1)
    assert "two classes" in reasons(stump.fit(X, y).certify(X, y))["rademacher.empirical"]
    two, weight = (y == 2).astype(int), np.arange(1.0, 151.0)
    weighted = stump.fit(X, two, sample_weight=weight).certify(X, two, sample_weight=weight)
    assert "unweighted errors" in reasons(weighted)["rademacher.empirical"]
    codes = np.round(X[:, :1])
    nominal = DecisionTreeClassifier(max_depth=1, nominal=[0]).fit(codes, two).certify(codes, two)
    assert "nominal" in reasons(nominal)["rademacher.empirical"]
    few = stump.fit(X[:12], np.arange(12) % 2).certify(X[:12], np.arange(12) % 2)
    assert "too few" in reasons(few)["rademacher.empirical"]
    assert "rademacher.empirical" in dict(few.unreported)  # computed, so paid for


# Validity -----------------------------------------------------------------------------------------------------

REPETITIONS = 80


@cache
def outcomes():
    """Fit stumps to coin labels, where every classifier has risk 1/2, and to a noisy step; return bounds and risks."""
    coins, step = [], []
    for i in range(REPETITIONS):
        rng = np.random.default_rng([23, i])
        X, y = rng.random((400, 40)), rng.integers(0, 2, 400)
        model = DecisionTreeClassifier(max_depth=1, criterion="entropy", n_jobs=1).fit(X, y)
        coins.append([stated(model, X, y, delta) for delta in (0.05, 0.2)])
        z = ((X[:, 0] > 0.4) ^ (rng.random(400) < 0.05)).astype(int)
        stump = DecisionTreeClassifier(max_depth=1, n_jobs=1).fit(X[:, :2], z)
        assert stump.node_column_[0] == 0
        risk = 0.05 + 0.9 * abs(float(stump.node_threshold_[0]) - 0.4)
        step.append([risk, *(stated(stump, X[:, :2], z, delta) for delta in (0.05, 0.2))])
    return np.array(coins), np.array(step)


def stated(model, X, y, delta):
    """Return the bound at all of delta."""
    (statement,) = stump_statement(model, rows(X, y))
    return statement(str(delta)).value


@pytest.mark.mission("LTH-49")
@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_bounds_of_stumps_keep_their_promise(delta):
    coins, step = outcomes()
    at = [0.05, 0.2].index(delta)
    allowed = binom.isf(1e-6, REPETITIONS, delta)
    assert np.sum(coins[:, at] < 0.5) <= allowed
    assert np.sum(step[:, 1 + at] < step[:, 0]) <= allowed
    assert np.mean(step[:, 1 + at] < 0.5) >= 0.5

"""Certificates of trees: by size, by description, short thresholds; and whether the promises hold."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import beta, binom
from sklearn.datasets import load_breast_cancer, load_iris

import assay
from assay.theory.pac import tree_bits
from assay.theory.vc import ghost_sample_bound
from assay.tree import DecisionTreeClassifier


def bits_of(model):
    nodes = model.nodes_
    return tree_bits(nodes.column, nodes.threshold, nodes.child, model.n_features_in_, len(model.classes_))


@pytest.mark.parametrize("thresholds", ["midpoint", "short"])
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_both_bounds_are_made_and_checked(load, thresholds):
    X, y = load(return_X_y=True)
    model = DecisionTreeClassifier(max_leaf_nodes=4, thresholds=thresholds).fit(X, y)
    certificate = model.certify(X, y)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    errors, n = int(np.sum(model.predict(X) != y)), len(y)
    occam, growth = certificate.find("occam"), certificate.find("vc")
    prior = 2.0 ** -bits_of(model)
    assert occam.value == pytest.approx(beta.isf(float(occam.delta) * prior, errors + 1, n - errors), abs=1e-8)
    d, K, N = X.shape[1], len(model.classes_), 5 * n
    ways = 5 * (d * (N - 1) + 1) ** 3 * K**4  # five shapes of trees with four leaves
    expected = ghost_sample_bound(errors, n, float(np.log(ways)), float(growth.delta) / 20).bound
    assert growth.value == pytest.approx(expected, abs=1e-6)


def test_short_thresholds_change_no_training_prediction_and_cost_fewer_bits():
    X, y = load_breast_cancer(return_X_y=True)
    plain, short = (DecisionTreeClassifier(thresholds=how).fit(X, y) for how in ("midpoint", "short"))
    np.testing.assert_array_equal(plain.apply(X), short.apply(X))
    assert bits_of(short) < 0.5 * bits_of(plain)
    gaps = short.node_threshold_ - plain.node_threshold_
    assert np.count_nonzero(gaps[plain.node_child_ >= 0]) > 0


def test_a_tree_too_large_to_say_anything_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), rng.integers(0, 2, 80)
    certificate = DecisionTreeClassifier().fit(X, y).certify(X, y)
    reasons = {one.name: one.reason for one in certificate.not_applicable}
    assert "bits to describe" in reasons["occam"]
    assert {name for name, _ in certificate.unreported} == {"occam", "vc"}  # computed, so paid for


def test_nominal_splits_are_not_coded():
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 3, size=(60, 2)).astype(float), rng.integers(0, 2, 60)
    certificate = DecisionTreeClassifier(nominal=[0, 1]).fit(X, y).certify(X, y)
    reasons = {one.name: one.reason for one in certificate.not_applicable}
    assert "nominal" in reasons["occam"]
    assert "nominal" in reasons["vc"]


@pytest.mark.parametrize("value", ["shortest", None, 1])
def test_unknown_thresholds_are_refused(value):
    with pytest.raises(ValueError, match="thresholds must be"):
        DecisionTreeClassifier(thresholds=value).fit([[0.0], [1.0]], [0, 1])


def test_short_thresholds_need_complete_numeric_columns():
    with pytest.raises(ValueError, match="without missing values"):
        DecisionTreeClassifier(thresholds="short").fit([[0.0], [np.nan], [1.0]], [0, 1, 1])


# Validity -----------------------------------------------------------------------------------------------------

REPETITIONS = 80


@cache
def outcomes():
    """Grow trees of several sizes on noise, where every classifier has risk 1/2, and on a noisy step."""
    noise, step = [], []
    for i in range(REPETITIONS):
        rng = np.random.default_rng([20, i])
        X, y = rng.random((300, 2)), rng.integers(0, 2, 300)
        model = DecisionTreeClassifier(max_leaf_nodes=int(rng.integers(2, 9)), thresholds="short", n_jobs=1).fit(X, y)
        noise.append([least(model, X, y, delta) for delta in (0.05, 0.2)])
        z = ((X[:, 0] > 0.4) ^ (rng.random(300) < 0.05)).astype(int)
        stump = DecisionTreeClassifier(max_leaf_nodes=2, thresholds="short", n_jobs=1).fit(X[:, :1], z)
        risk = 0.05 + 0.9 * abs(float(stump.node_threshold_[0]) - 0.4)
        step.append([risk, *(least(stump, X[:, :1], z, delta) for delta in (0.05, 0.2))])
    return np.array(noise), np.array(step)


def least(model, X, y, delta):
    return min((claim.value for claim in model.certify(X, y, delta=delta).claims if not claim.is_fact), default=1.0)


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_certificates_of_trees_keep_their_promise(delta):
    noise, step = outcomes()
    at = [0.05, 0.2].index(delta)
    allowed = binom.isf(1e-6, REPETITIONS, delta)
    assert np.sum(noise[:, at] < 0.5) <= allowed
    assert np.sum(step[:, 1 + at] < step[:, 0]) <= allowed
    assert np.mean(step[:, 1 + at] < 0.5) >= 0.5


def test_the_same_without_paying_for_the_choice_of_the_tree_is_caught():
    """Control: the training error of a grown tree, taken for that of a tree fixed in advance."""
    broken = 0
    for i in range(40):
        rng = np.random.default_rng([21, i])
        X, y = rng.random((100, 2)), rng.integers(0, 2, 100)
        wrong = int(np.sum(DecisionTreeClassifier(max_leaf_nodes=8).fit(X, y).predict(X) != y))
        broken += beta.isf(0.05, wrong + 1, 100 - wrong) < 0.5
    assert broken > binom.isf(1e-6, 40, 0.05)

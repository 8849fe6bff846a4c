"""A committee of forests: its vote, its certificate, and whether the promise holds."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

import assay
from assay.ensemble import (
    BaggingClassifier,
    ForestCommitteeClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from assay.ensemble._bootstrap import bag


def forests(model, X, y):
    """Fit the members again, one by one, from their seeds."""
    for seed in model.seeds_.tolist():
        rows = bag(seed, len(y), model.bag_size_, replace=False)
        yield RandomForestClassifier(20, random_state=seed).fit(X[rows], y[rows]), np.setdiff1d(np.arange(len(y)), rows)


def test_the_vote_is_that_of_forests_on_their_own_rows():
    X, y = load_iris(return_X_y=True)
    model = ForestCommitteeClassifier(RandomForestClassifier(20), n_forests=5, max_samples=0.3, random_state=1).fit(
        X, y
    )
    named = np.stack([forest.predict(X) for forest, _ in forests(model, X, y)], axis=1)
    votes = np.stack([(named == k).sum(axis=1) for k in range(3)], axis=1)
    clear = np.sort(votes, axis=1)[:, -1] > np.sort(votes, axis=1)[:, -2]
    np.testing.assert_array_equal(model.predict(X)[clear], votes.argmax(axis=1)[clear])
    assert clear.mean() > 0.9


def test_the_bound_is_the_formula_on_unseen_rows():
    X, y = load_digits(return_X_y=True)
    model = ForestCommitteeClassifier(RandomForestClassifier(20), random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    claim = certificate.find("pac-bayes.vote")
    errors = [np.mean(forest.predict(X[unseen]) != y[unseen]) for forest, unseen in forests(model, X, y)]
    n, r = len(y) - model.bag_size_, 2.0 ** np.arange(-5, 3)
    bounds = 1.5 * (1 - np.exp(-r * np.mean(errors) - np.log(16 / float(claim.delta)) / n)) / (1 - np.exp(-r))
    assert claim.value <= bounds.min() + 1e-8  # another form may be better
    assert claim.value >= np.mean(errors)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason


@pytest.mark.parametrize("n_forests", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "base", [None, RandomForestClassifier(5, min_samples_leaf=4), BaggingClassifier(n_estimators=4)]
)
def test_certificates_are_checked(base, n_forests):
    X, y = load_breast_cancer(return_X_y=True)
    model = ForestCommitteeClassifier(base, n_forests=n_forests, random_state=2).fit(X, y)
    report = assay.verify(model.certify(X, y), model, X, y)
    assert report.holds, report.reason


def test_tighter_than_the_vote_of_the_trees():
    X, y = load_digits(return_X_y=True)
    committee = ForestCommitteeClassifier(random_state=0).fit(X, y).certify(X, y).find("pac-bayes.vote").value
    forest = RandomForestClassifier(100, random_state=0).fit(X, y).certify(X, y).find("pac-bayes.vote").value
    assert committee < 0.15 < 0.4 < forest


def test_a_sample_of_one_class_gives_a_constant_member():
    X, y = np.arange(12.0)[:, None], np.array([0] * 11 + [1])
    model = ForestCommitteeClassifier(max_samples=0.3, random_state=0).fit(X, y)
    assert model.predict([[0.0]])[0] == 0
    assert assay.verify(model.certify(X, y), model, X, y).holds


@pytest.mark.parametrize("base", [HistGradientBoostingClassifier(), 5])
def test_other_members_are_refused(base):
    with pytest.raises(ValueError, match="estimator must be a forest"):
        ForestCommitteeClassifier(base).fit([[0.0], [1.0]], [0, 1])


def test_many_ties_are_counted_by_both_sides():
    """Nine classes and noise: three forests often name three classes, which is a tie and an error."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 2)), rng.integers(0, 9, 900)
    model = ForestCommitteeClassifier(RandomForestClassifier(3), max_samples=0.2, random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    assert certificate.find("train.errors").value >= np.sum(model.predict(X) != y)


def test_without_unseen_rows_nothing_is_said():
    X, y = load_iris(return_X_y=True)
    certificate = ForestCommitteeClassifier(max_samples=1.0).fit(X, y).certify(X, y)
    assert "was fitted to every row" in {one.name: one.reason for one in certificate.not_applicable}["pac-bayes.vote"]


CHANCE = np.array([0.05, 0.95, 0.9, 0.1, 0.05, 0.9, 0.1, 0.95])
REPETITIONS = 60


@cache
def bounds():
    found = []
    for i in range(REPETITIONS):
        rng = np.random.default_rng([50, i])
        x = rng.integers(0, 8, 120)
        y = (rng.random(120) < CHANCE[x]).astype(int)
        model = ForestCommitteeClassifier(RandomForestClassifier(5), max_samples=0.4, random_state=i, n_jobs=1)
        model.fit(x[:, None].astype(float), y)
        guess = model.predict(np.arange(8.0)[:, None])
        risk = np.mean(np.where(guess == 1, 1 - CHANCE, CHANCE))
        values = (model.certify(x[:, None].astype(float), y, delta=d).find("pac-bayes.vote").value for d in (0.05, 0.2))
        found.append([risk, *values])
    return np.array(found)


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_certificates_keep_their_promise(delta):
    risk, *values = bounds().T
    value = values[[0.05, 0.2].index(delta)]
    assert np.sum(value < risk) <= binom.isf(1e-6, REPETITIONS, delta)
    assert np.mean(value < 0.5) >= 0.5

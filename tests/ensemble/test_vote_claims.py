"""Out-of-bag certificates of forests and bagging: what they say, what they refuse to say, and whether they hold."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import assay
from assay.checker.rules.tree_ensembles import drawn
from assay.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from assay.ensemble._bootstrap import bag
from assay.theory.pac_bayes import OutOfBag
from assay.tree import DecisionTreeClassifier


def rows(seed=0, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, ((X[:, 0] > 0) ^ (rng.random(n) < 0.05)).astype(int)


@pytest.mark.parametrize("replace", [True, False])
def test_producer_and_checker_draw_the_same_bags(replace):
    for seed, n, size in ((0, 1, 1), (5, 100, 37), (2**31 - 2, 1001, 900)):
        np.testing.assert_array_equal(np.sort(bag(seed, n, size, replace)), np.sort(drawn(seed, n, size, replace)))


def test_bags_are_fair():
    """Every row is drawn about equally often, with a chi-square statistic in its usual range."""
    counts = np.bincount(np.concatenate([bag(seed, 50, 50) for seed in range(2000)]), minlength=50)
    statistic = ((counts - 2000) ** 2 / 2000).sum()
    assert 20 < statistic < 95  # 49 degrees of freedom: outside with probability below 1e-4
    once = np.concatenate([bag(seed, 50, 20, replace=False) for seed in range(2000)])
    assert 10 < ((np.bincount(once, minlength=50) - 800) ** 2 / 800).sum() < 95


MODELS = [
    RandomForestClassifier(25, random_state=0),
    RandomForestClassifier(25, voting="hard", max_samples=0.2, random_state=0),
    RandomForestClassifier(20, min_samples_leaf=5, max_samples=0.3, random_state=0),
    ExtraTreesClassifier(25, bootstrap=True, random_state=0),
    BaggingClassifier(n_estimators=20, max_samples=0.3, bootstrap=False, random_state=0),
    BaggingClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=15, voting="hard", random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{type(m).__name__}-{m.voting}-{m.max_samples}")
def test_the_bound_is_made_and_checked(model):
    X, y = rows()
    model.fit(X, y)
    certificate = model.certify(X, y)
    claim = certificate.find("pac-bayes.vote")
    assert claim.value < 0.8
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason


def test_the_bound_is_the_formula():
    """The first form at its rate, recomputed from the members' out-of-bag errors."""
    X, y = rows()
    model = RandomForestClassifier(10, voting="hard", max_samples=0.2, random_state=3).fit(X, y)
    claim = model.certify(X, y).find("pac-bayes.vote")
    wrong, out = model.member_votes(X) != y[:, None], model.bags().T == 0
    n = 10 / np.sum(1 / out.sum(axis=0))
    rate = 2.0 ** claim.params["rate"]
    mean = np.mean((wrong & out).sum(axis=0) / out.sum(axis=0))
    assert claim.params["form"] == "first"
    expected = 2 * (1 - np.exp(-rate * mean - np.log(16 / float(claim.delta)) / n)) / (1 - np.exp(-rate))
    assert claim.value == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ExtraTreesClassifier(5), "Every member was fitted to every row"),
        (RandomForestClassifier(5, class_weight="balanced"), "class_weight"),
        (BaggingClassifier(n_estimators=5, out_of_bag="prune"), "pruned or stopped"),
    ],
    ids=["all rows", "class weights", "pruned outside the bag"],
)
def test_why_it_is_not_made(model, words):
    X, y = rows()
    reasons = {one.name: one.reason for one in model.fit(X, y).certify(X, y).not_applicable}
    assert words in reasons["pac-bayes.vote"]


def test_row_weights_are_refused():
    X, y = rows()
    weight = np.linspace(0.5, 1.5, len(y))
    certificate = RandomForestClassifier(5).fit(X, y, weight).certify(X, y, sample_weight=weight)
    assert "Row weights" in {one.name: one.reason for one in certificate.not_applicable}["pac-bayes.vote"]


def test_rows_that_bins_were_taken_from_are_in_every_bag():
    X, y = rows(n=6_000)
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.find("pac-bayes.vote").params["shared"] == 1200
    assert assay.verify(certificate, model, X, y).holds


@pytest.mark.parametrize("n", [300, 6_000])
def test_a_member_depends_on_its_bag_alone(n):
    """Changing the rows outside a tree's bag changes nothing in the tree: what the theorem asks for."""
    X, y = rows(n=n)
    model = RandomForestClassifier(1, random_state=4).fit(X, y)
    outside = model.bags()[0] == 0
    outside[bag(model.bin_seed_, n, model.binned_rows_, replace=False)] = False
    assert outside.sum() > n / 4
    other, labels = X.copy(), y.copy()
    other[outside] = np.random.default_rng(2).normal(size=(outside.sum(), 3)) * 3
    labels[outside] = 1 - labels[outside]
    again = RandomForestClassifier(1, random_state=4).fit(other, labels)
    for name in ("node_column_", "node_threshold_", "node_child_", "node_value_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(again, name))


# Validity -----------------------------------------------------------------------------------------------------

CHANCE = np.array([0.05, 0.95, 0.9, 0.1, 0.05, 0.9, 0.1, 0.95])
REPETITIONS = 60


@cache
def bounds():
    """Return, for many samples from eight cells, the exact risk of a forest and its bounds at two deltas."""
    found = []
    for i in range(REPETITIONS):
        rng = np.random.default_rng([9, i])
        x = rng.integers(0, 8, 200)
        y = (rng.random(200) < CHANCE[x]).astype(int)
        model = RandomForestClassifier(11, voting="hard", max_samples=0.2, n_jobs=1, random_state=i).fit(x[:, None], y)
        guess = model.predict(np.arange(8.0)[:, None])
        risk = np.mean(np.where(guess == 1, 1 - CHANCE, CHANCE))
        found.append([risk, *(model.certify(x[:, None], y, delta=d).find("pac-bayes.vote").value for d in (0.05, 0.2))])
    return np.array(found)


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_certificates_of_forests_keep_their_promise(delta):
    risk, *values = bounds().T
    value = values[[0.05, 0.2].index(delta)]
    assert np.sum(value < risk) <= binom.isf(1e-6, REPETITIONS, delta)
    assert np.mean(value < 0.5) >= 0.5


def test_in_bag_rows_instead_would_break_it():
    """Control: trees that know coin labels by heart, judged on their bags, promise what is false."""
    broken = 0
    for i in range(20):
        rng = np.random.default_rng([10, i])
        X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
        model = RandomForestClassifier(11, voting="hard", n_jobs=1, random_state=i).fit(X, y)
        losses, inside = model.member_votes(X) != y[:, None], model.bags().T > 0
        broken += OutOfBag(11).add(losses.astype(float), inside).bound(0.05, 6 / 11).bound < 0.5
    assert broken > binom.isf(1e-6, 20, 0.05)

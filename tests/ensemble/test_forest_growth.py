"""How the trees of a forest grow: every split is the best one, limits hold, bins part rows, threads change no tree."""

import numpy as np
import pytest
from sklearn import ensemble as peer
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer

from assay.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from assay.ensemble._bootstrap import bag
from assay.ensemble._forest_growth import grow_forest, grow_regression_forest
from assay.scan import rows as as_rows
from assay.tree._predict import leaves
from assay.tree.growth._bins import find_bins
from assay.tree.growth._records import Limits


@pytest.mark.mission("ENS-45")
@pytest.mark.parametrize("make", [RandomForestClassifier, ExtraTreesClassifier])
def test_threads_change_no_tree(make):
    X, y = load_breast_cancer(return_X_y=True)
    one, three = (make(20, random_state=5, n_jobs=k).fit(X, y) for k in (1, 3))
    assert all(np.array_equal(one.trees_[name], three.trees_[name]) for name in one.trees_)


def made_up(n=5_400, seed=0):
    """Return more rows than are fitted without bins, three classes and numbers."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 4)), rng.integers(0, 5, (n, 2))])
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + (X[:, 4] == 2) + 0.5 * rng.normal(size=n)
    return X, np.digitize(score, [-0.5, 0.7]), score


@pytest.mark.mission("ENS-45")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "make", [RandomForestClassifier, ExtraTreesClassifier, RandomForestRegressor, ExtraTreesRegressor]
)
def test_threads_change_no_tree_of_many_rows(make, weighted):
    X, labels, score = made_up()
    y = labels if is_classifier(make()) else score
    weight = np.random.default_rng(1).uniform(0.5, 1.5, len(y)) if weighted else None
    one, two, five = (
        make(6, random_state=5, oob_score=make(6).bootstrap, n_jobs=k).fit(X, y, weight) for k in (1, 2, 5)
    )
    for other in (two, five):
        assert all(np.array_equal(one.trees_[name], other.trees_[name]) for name in one.trees_)
        assert np.array_equal(one.predict(X), other.predict(X))
        if one.bootstrap:
            assert one.oob_score_ == other.oob_score_
    again = make(6, random_state=6).fit(X, y, weight)
    assert not np.array_equal(one.trees_["threshold"], again.trees_["threshold"])


@pytest.mark.parametrize("weighted", [False, True])
def test_every_split_of_a_regression_tree_is_the_best_one(weighted):
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(400, 3)), 1)
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=400) + 100.0
    own = rng.uniform(0.5, 2.0, 400) if weighted else None
    bags = {seed: np.bincount(bag(seed, 400, 400), minlength=400) for seed in (4, 5)}
    binner = find_bins(X, 255, {}, 1)
    limits = Limits(max_features=3, min_samples_leaf=2)
    nodes = grow_regression_forest(as_rows(X), y, own, [binner], [4, 5], bags.__getitem__, limits, 1)

    def error(weight):
        return (weight * (y - np.average(y, weights=weight)) ** 2).sum() if weight.any() else 0.0

    for root, times in zip(nodes.root, bags.values()):
        waiting = [(root, times * (1.0 if own is None else own))]
        while waiting:
            at, here = waiting.pop()
            assert nodes.weight[at] == pytest.approx(here.sum())
            assert nodes.value[at, 0] == pytest.approx(np.average(y, weights=here))
            assert nodes.impurity[at] * nodes.weight[at] == pytest.approx(error(here), abs=1e-9)
            inside, sums = here > 0, []
            for column in X.T:
                for threshold in np.unique(column[inside])[:-1]:
                    left = column <= threshold
                    if min(np.count_nonzero(inside & left), np.count_nonzero(inside & ~left)) >= 2:
                        sums.append(error(here * left) + error(here * ~left))
            if nodes.child[at] < 0:
                assert not sums
                continue
            left = X[:, nodes.column[at]] <= nodes.threshold[at]
            assert error(here * left) + error(here * ~left) == pytest.approx(min(sums), abs=1e-9)
            waiting += [(nodes.child[at], here * left), (nodes.child[at] + 1, here * ~left)]


def test_regression_on_bins_is_as_good_as_scikit_learns():
    X, _, score = made_up(8_000)
    own, other = (
        make(20, random_state=0, n_jobs=2).fit(X[:6_000], score[:6_000]).score(X[6_000:], score[6_000:])
        for make in (RandomForestRegressor, peer.RandomForestRegressor)
    )
    assert own > other - 0.01
    flat = RandomForestRegressor(3, max_leaf_nodes=7, max_depth=3, min_impurity_decrease=1e-3).fit(X, score)
    assert max(np.diff([*flat.nodes_.root, len(flat.nodes_.child)])) <= 13
    constant = RandomForestRegressor(2).fit(X, np.full(len(X), 3.0))
    assert len(constant.nodes_.child) == 2
    assert constant.predict(X[:2]).tolist() == [3.0, 3.0]


def _impurity(times, criterion):
    share = times / times.sum()
    if criterion == "gini":
        return times.sum() * (1 - (share**2).sum())
    return -times.sum() * (share[share > 0] * np.log2(share[share > 0])).sum()


def _falls(X, y, times, K, criterion):
    """Yield column, threshold and fall of impurity times weight, of every threshold between values of every column."""
    totals = np.bincount(y, times, K)
    for f in range(X.shape[1]):
        for threshold in np.unique(X[times > 0, f])[:-1]:
            left = np.bincount(y[X[:, f] <= threshold], times[X[:, f] <= threshold], K)
            sides = (1, totals), (-1, left), (-1, totals - left)
            yield f, threshold, sum(s * _impurity(t, criterion) for s, t in sides)


@pytest.mark.parametrize(("classes", "criterion"), [(2, "gini"), (2, "entropy"), (3, "gini"), (3, "entropy")])
def test_every_split_of_a_tree_is_the_best_one(classes, criterion):
    rng = np.random.default_rng(classes)
    X = np.round(rng.normal(size=(700, 3)), 1)
    y = np.clip((X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=700) > 0).astype(int) + (X[:, 1] > 1), 0, classes - 1)
    bags = {seed: np.bincount(bag(seed, 700, 700), minlength=700) for seed in (4, 5)}
    binner = find_bins(X, 255, {}, 1)
    limits = Limits(max_features=3)
    nodes = grow_forest(as_rows(X), y, [binner], [4, 5], bags.__getitem__, classes, criterion, limits, 1)
    for root, times in zip(nodes.root, bags.values()):
        waiting = [(root, times)]
        while waiting:
            at, here = waiting.pop()
            assert nodes.weight[at] == here.sum()
            assert nodes.value[at] == pytest.approx(np.bincount(y, here, classes) / here.sum())
            assert nodes.impurity[at] * nodes.weight[at] == pytest.approx(
                _impurity(np.bincount(y, here, classes), criterion), abs=1e-9
            )
            if nodes.child[at] < 0:
                assert (nodes.value[at] == 1).any() or not list(_falls(X, y, here, classes, criterion))
                continue
            left = X[:, nodes.column[at]] <= nodes.threshold[at]
            parts = [(nodes.child[at] + 1 - side, np.where(left == side, here, 0)) for side in (1, 0)]
            fall = _impurity(np.bincount(y, here, classes), criterion) - sum(
                _impurity(np.bincount(y, part, classes), criterion) for _, part in parts
            )
            best = max(fall for _, _, fall in _falls(X, y, here, classes, criterion))
            assert fall == pytest.approx(best, abs=1e-9)
            waiting += parts


def test_limits_hold_in_every_leaf():
    X, y = load_breast_cancer(return_X_y=True)
    bags = {seed: np.bincount(bag(seed, len(y), len(y)), minlength=len(y)) for seed in range(5)}
    limits = Limits(min_samples_leaf=7, max_leaves=9, max_depth=4, max_features=5)
    binner = find_bins(X, 255, {}, 1)
    nodes = grow_forest(as_rows(X), y, [binner], range(5), bags.__getitem__, 2, "gini", limits, 1)
    assert nodes.depths().max() == 4
    assert all(n <= 17 for n in np.diff([*nodes.root, len(nodes.child)]))
    reached = leaves(nodes, X, 1)
    for t in range(5):
        rows = np.bincount(reached[bags[t] > 0, t])
        assert rows[rows > 0].min() >= 7


def test_bins_separate_the_rows_they_separated_in_training():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = (X[:, 0] > 0.123).astype(int)
    model = RandomForestClassifier(1, bootstrap=False, max_features=None, max_bins=20).fit(X, y)
    nodes, waiting = model.nodes_, [(0, np.arange(len(X)))]
    assert len(nodes.child) > 1
    while waiting:
        at, here = waiting.pop()
        assert nodes.weight[at] == len(here)
        if nodes.child[at] >= 0:
            left = X[here, nodes.column[at]] <= nodes.threshold[at]
            waiting += [(nodes.child[at], here[left]), (nodes.child[at] + 1, here[~left])]
    exact = RandomForestClassifier(1, bootstrap=False, max_features=None, max_bins=None).fit(X, y)
    assert exact.score(X, y) == 1.0
    assert len(exact.nodes_.child) == 3

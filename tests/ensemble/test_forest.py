"""Forests: bootstrap, out-of-bag quantities by hand, scikit-learn's accuracy, strength and correlation,
threads."""

import numpy as np
import pytest
from sklearn import ensemble as peer
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris

from assay.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from assay.ensemble._bootstrap import bag
from assay.scan import rows as as_rows
from assay.tree._predict import leaves
from assay.tree.growth._bins import find_bins
from assay.tree.growth._forest_hist import grow_forest, grow_regression_forest
from assay.tree.growth._records import Limits
from examples import robust_forest


@pytest.mark.mission("ENS-32")
def test_share_of_distinct_rows():
    for m, share in ((10, 0.6513), (2000, 0.6322)):
        found = np.mean([len(np.unique(bag(seed, m, m))) / m for seed in range(4000 if m == 10 else 100)])
        assert found == pytest.approx(1 - (1 - 1 / m) ** m, abs=0.01)
        assert found == pytest.approx(share, abs=0.01)


@pytest.mark.mission("ENS-33")
def test_out_of_bag_votes_by_hand():
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(40, oob_score=True, voting="hard", random_state=3).fit(X, y)
    votes, bags = model.member_votes(X), model.bags()
    by_hand = np.zeros((len(X), 3))
    for i in range(len(X)):
        for t in range(40):
            if bags[t, i] == 0:
                by_hand[i, votes[i, t]] += 1
    assert np.array_equal(by_hand, model.oob_votes_)
    seen = by_hand.sum(axis=1) > 0
    assert model.oob_score_ == pytest.approx((by_hand[seen].argmax(axis=1) == y[seen]).mean())


@pytest.mark.mission("ENS-33")
def test_out_of_bag_error_is_close_to_the_test_error():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(100, oob_score=True, random_state=0).fit(X[::2], y[::2])
    assert model.oob_score_ == pytest.approx(model.score(X[1::2], y[1::2]), abs=0.03)


@pytest.mark.mission("ENS-37")
@pytest.mark.parametrize("data", [load_iris, load_breast_cancer])
def test_accuracy_of_scikit_learn(data):
    X, y = data(return_X_y=True)
    own = np.mean(
        [RandomForestClassifier(100, random_state=s).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) for s in range(3)]
    )
    other = np.mean(
        [peer.RandomForestClassifier(100, random_state=s).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) for s in range(3)]
    )
    assert own == pytest.approx(other, abs=0.02)


@pytest.mark.parametrize(
    ("make", "other"),
    [(RandomForestRegressor, peer.RandomForestRegressor), (ExtraTreesRegressor, peer.ExtraTreesRegressor)],
)
def test_regression_is_as_good_as_scikit_learns(make, other):
    X, y = load_diabetes(return_X_y=True)
    own, theirs = (
        np.mean([m(100, random_state=s).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) for s in range(3)])
        for m in (make, other)
    )
    assert own > theirs - 0.03


@pytest.mark.mission("ENS-38")
def test_all_columns_without_bootstrap_give_equal_trees():
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(5, bootstrap=False, max_features=None, random_state=0).fit(X, y)
    size = len(model.nodes_.child) // 5
    for t in range(1, 5):
        assert np.array_equal(model.nodes_.threshold[:size], model.nodes_.threshold[t * size : (t + 1) * size])
    logarithm = RandomForestClassifier(5, max_features="log2", random_state=0).fit(X, y)
    two = RandomForestClassifier(5, max_features=2, random_state=0).fit(X, y)  # log2(4) = 2
    assert np.array_equal(logarithm.nodes_.threshold, two.nodes_.threshold)
    one = RandomForestClassifier(5, max_features=1, random_state=0).fit(X, y)
    assert not np.array_equal(one.nodes_.threshold, two.nodes_.threshold)


@pytest.mark.mission("ENS-38")
@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
def test_the_logarithm_of_the_notes_is_as_good_as_the_root_which_is_scikit_learns_default(load):
    """30 columns: 4 against 5; 64 columns: 6 against 8. The default is what scripts written for scikit-learn have."""
    X, y = load(return_X_y=True)
    X, y = X[:900], y[:900]
    d = X.shape[1]
    assert RandomForestClassifier().max_features == "sqrt" == peer.RandomForestClassifier().max_features
    named, counted = (RandomForestClassifier(3, max_features=k, random_state=1) for k in ("log2", int(np.log2(d))))
    assert np.array_equal(named.fit(X, y).nodes_.threshold, counted.fit(X, y).nodes_.threshold)
    scores = {
        k: np.mean(
            [
                RandomForestClassifier(60, max_features=k, random_state=s).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
                for s in range(4)
            ]
        )
        for k in ("log2", "sqrt", None)
    }
    assert abs(scores["log2"] - scores["sqrt"]) < 0.02
    assert scores["log2"] > scores[None] - 0.01  # all columns: bagged trees


@pytest.mark.mission("ENS-39")
def test_trees_are_grown_to_purity():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(50, random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    leaves = model.nodes_.value[model.nodes_.child < 0]
    assert (leaves.max(axis=1) == 1.0).all()


@pytest.mark.mission("ENS-40")
def test_importances():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    y = (X[:, 0] + X[:, 3] > 0).astype(int)
    model = RandomForestClassifier(60, random_state=0).fit(X, y)
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1.0)
    assert set(np.argsort(importances)[-2:]) == {0, 3}
    from sklearn.inspection import permutation_importance

    permuted = permutation_importance(model, X, y, random_state=0, n_repeats=3).importances_mean
    assert set(np.argsort(permuted)[-2:]) == {0, 3}


@pytest.mark.mission("ENS-42")
def test_strength_and_correlation_bound_the_error():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(100, voting="hard", random_state=0).fit(X[::2], y[::2])
    found = model.strength(X[1::2], y[1::2])
    assert found.strength > 0
    assert found.bound >= 1 - model.score(X[1::2], y[1::2])
    curve = [
        RandomForestClassifier(60, max_features=k, random_state=0).fit(X[::2], y[::2]).strength(X[1::2], y[1::2])
        for k in (1, 5, 30)
    ]
    assert curve[0].correlation < curve[-1].correlation


@pytest.mark.mission("ENS-43")
def test_number_of_columns_by_out_of_bag_error():
    X, y = load_breast_cancer(return_X_y=True)
    found = robust_forest.scan_columns(X, y, (1, 2, 4, 8, 16, 30))
    assert found.best == found.columns[int(np.argmin(found.errors))]
    for k, error in zip(found.columns, found.errors):
        forest = RandomForestClassifier(60, max_features=k, oob_score=True, random_state=0).fit(X, y)
        assert 1 - forest.oob_score_ == pytest.approx(error)
    assert found.forest.max_features == found.best
    assert robust_forest.scan_columns(X[:100, :9], y[:100], n_estimators=5).columns == [1, 3, 4, 9]


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
    nodes = model.nodes_
    for at in np.flatnonzero((nodes.child >= 0) & (np.arange(len(nodes.child)) == 0)):
        left = X[:, nodes.column[at]] <= nodes.threshold[at]
        assert nodes.weight[nodes.child[at]] == left.sum()
    exact = RandomForestClassifier(1, bootstrap=False, max_features=None, max_bins=None).fit(X, y)
    assert exact.score(X, y) == 1.0
    assert len(exact.nodes_.child) == 3


# What a forest knows about its columns and rows ------------------------------------------------------------------


def exclusive_or(seed=0, n=800):
    X = np.random.default_rng(seed).integers(0, 2, (n, 5)).astype(float)
    return X, (X[:, 0] != X[:, 2]).astype(int)


@pytest.mark.mission("ENS-40")
def test_permutation_importance_by_hand():
    X, y = exclusive_or()
    model = RandomForestClassifier(15, max_features=None, random_state=0).fit(X, y)
    found = model.permutation_importances(X, y, n_repeats=3, random_state=0)
    assert set(np.argsort(found)[-2:]) == {0, 2}
    # A tree that knows exclusive or is right half of the time when one of the two columns is permuted.
    assert found[[0, 2]] == pytest.approx([0.5, 0.5], abs=0.05)
    assert np.abs(found[[1, 3, 4]]).max() < 0.05
    numbers = RandomForestRegressor(15, max_features=None, random_state=0).fit(X, 4.0 * X[:, 0])
    # Mean squared difference of two independent values: 2 * 16 / 4.
    assert numbers.permutation_importances(X, 4.0 * X[:, 0], random_state=0)[0] == pytest.approx(8.0, abs=0.6)
    with pytest.raises(ValueError, match="the 800 training rows"):
        model.permutation_importances(X[:10], y[:10])
    with pytest.raises(ValueError, match="out-of-bag rows"):
        ExtraTreesClassifier(3, random_state=0).fit(X, y).permutation_importances(X, y)


@pytest.mark.mission("ENS-41")
def test_interactions_of_exclusive_or_are_the_largest():
    X, y = exclusive_or()
    model = RandomForestClassifier(20, max_features=None, random_state=0).fit(X, y)
    shared = model.interactions(X, y, random_state=0)
    assert np.array_equal(shared, shared.T)
    assert np.unravel_index(np.triu(shared).argmax(), shared.shape) == (0, 2)
    assert shared[0, 2] == pytest.approx(0.5, abs=0.08)  # 1/2 + 1/2 alone, 1/2 together
    others = np.triu(np.abs(shared), 1)
    others[0, 2] = 0.0
    assert others.max() < 0.1


@pytest.mark.mission("ENS-41")
def test_columns_that_act_separately_share_nothing():
    X = np.tile([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]], (200, 1)).astype(float)
    y = 3.0 * X[:, 0] + 2.0 * X[:, 1]
    model = RandomForestRegressor(10, max_features=None, random_state=0).fit(X, y)
    shared = model.interactions(X, y, n_repeats=5, random_state=0)
    assert np.abs(shared).max() < 0.35  # of 4.5 + 2 for both columns
    product = RandomForestRegressor(10, max_features=None, random_state=0).fit(X, 6.0 * X[:, 0] * X[:, 1])
    found = product.interactions(X, 6.0 * X[:, 0] * X[:, 1], n_repeats=5, random_state=0)
    # I(0) = I(1) = 36 E[x1 (x0 - x0')^2] = 9; together 2 var = 2 * 36 * 3/16 = 13.5.
    assert found[0, 1] == pytest.approx(4.5, abs=0.9)


@pytest.mark.mission("ENS-42")
def test_strength_and_correlation_by_hand():
    from assay.ensemble._votes import strength_of

    votes = np.array([[0, 0, 1], [1, 1, 1], [0, 1, 2], [2, 2, 2]])
    codes = np.array([0, 1, 0, 1])
    found = strength_of(votes, codes, 3)
    margins = np.array([1 / 3, 1.0, 0.0, -1.0])
    assert found.strength == pytest.approx(margins.mean())
    raw = np.array([[1, 1, -1], [1, 1, 1], [1, -1, 0], [-1, -1, -1]])
    assert found.correlation == pytest.approx(margins.var() / raw.std(axis=0).mean() ** 2)
    s = margins.mean()
    assert found.bound == pytest.approx(found.correlation * (1 - s * s) / (s * s))
    said = np.array([[True, False, True], [True, True, True], [False, False, False], [False, True, True]])
    partly = strength_of(votes, codes, 3, said)
    assert partly.strength == pytest.approx((0.0 + 1.0 - 1.0) / 3)


@pytest.mark.mission("ENS-42")
def test_out_of_bag_strength_is_close_to_that_on_new_rows():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(150, random_state=0).fit(X[::2], y[::2])
    inside, outside = model.strength(X[::2], y[::2], out_of_bag=True), model.strength(X[1::2], y[1::2])
    assert inside.strength == pytest.approx(outside.strength, abs=0.05)
    assert inside.bound > 1 - model.score(X[1::2], y[1::2])


@pytest.mark.mission("ENS-43")
def test_the_number_of_columns_with_the_smallest_out_of_bag_error_is_good_on_new_rows():
    """One column in 12 tells the class: few columns at a node miss it, all columns find it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 12)), rng.integers(0, 2, 400)
    X[:, 5] += 3 * y
    Xn, yn = rng.normal(size=(2000, 12)), rng.integers(0, 2, 2000)
    Xn[:, 5] += 3 * yn
    forests = {
        k: RandomForestClassifier(60, max_features=k, max_depth=2, oob_score=True, random_state=0).fit(X, y)
        for k in (1, 2, 4, 8, 12)
    }
    curve = {k: forest.oob_errors_[-1] for k, forest in forests.items()}
    chosen = min(curve, key=curve.get)
    errors = {k: 1 - forest.score(Xn, yn) for k, forest in forests.items()}
    assert chosen > 1
    assert curve[1] > curve[chosen]
    assert errors[chosen] <= min(errors.values()) + 0.02
    assert all(curve[k] == pytest.approx(errors[k], abs=0.05) for k in (4, 8, 12))


@pytest.mark.mission("ENS-33")
def test_out_of_bag_curve_ends_at_the_score():
    X, y = load_breast_cancer(return_X_y=True)
    for make in (RandomForestClassifier, ExtraTreesClassifier):
        model = make(30, oob_score=True, bootstrap=True, random_state=0).fit(X, y)
        assert model.oob_errors_[-1] == pytest.approx(1 - model.oob_score_)
        assert model.oob_errors_[-1] < model.oob_errors_[0]


# Noise, missing values, names ------------------------------------------------------------------------------------


@pytest.mark.mission("ENS-44")
def test_a_forest_suffers_less_than_a_tree_from_flipped_labels():
    curve = robust_forest.noise_curve(*load_breast_cancer(return_X_y=True), robust_forest.flip_labels, (0.1, 0.2))
    assert all(forest < 0.6 * tree for forest, tree in zip(curve.forest, curve.tree))


@pytest.mark.mission("ENS-44")
def test_a_forest_suffers_less_than_a_tree_from_missing_entries():
    X, y = load_iris(return_X_y=True)
    curve = robust_forest.noise_curve(X, y, robust_forest.lose_entries, (0.1, 0.2), trees=30)
    assert all(forest <= tree for forest, tree in zip(curve.forest, curve.tree))
    assert max(curve.forest) < 0.15


def test_what_is_spoilt_is_the_share_asked_for():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    same, flipped = robust_forest.flip_labels(rng, X, y, 0.2)
    assert same is X
    assert 0.1 < np.mean(flipped != y) < 0.3
    assert set(flipped) == set(y)
    assert 0.15 < np.isnan(robust_forest.lose_entries(rng, X, y, 0.2)[0]).mean() < 0.25


@pytest.mark.parametrize("make", [RandomForestClassifier, ExtraTreesClassifier])
def test_nominal_columns_and_missing_values(make):
    import pandas as pd

    rng = np.random.default_rng(0)
    colour, size = rng.choice(["red", "green", "blue", "grey"], 300), rng.normal(size=300)
    y = np.where(np.isin(colour, ["red", "blue"]) ^ (size > 0), "a", "b")
    size[rng.random(300) < 0.1] = np.nan
    frame = pd.DataFrame({"colour": colour, "size": size, "noise": rng.normal(size=300)})
    known = ~np.isnan(size)
    model = make(40, random_state=0, max_features=None, oob_score=True, bootstrap=True).fit(frame, y)
    assert (model.predict(frame)[known] == y[known]).mean() > 0.98
    codes = frame.assign(colour=pd.Categorical(colour).codes.astype(float)).to_numpy()
    same = make(40, random_state=0, max_features=None, bootstrap=True, nominal=[0]).fit(codes, y)
    assert np.array_equal(same.predict_proba(codes), model.predict_proba(frame))
    assert model.member_votes(frame).shape == (300, 40)
    assert model.oob_score_ > 0.75
    with pytest.raises(ValueError, match="max_leaf_nodes"):
        make(2, max_leaf_nodes=4).fit(frame, y)


def test_one_tree_with_all_columns_is_the_tree_of_the_tree_room():
    from assay.tree import DecisionTreeClassifier

    X, y = load_iris(return_X_y=True)
    X = X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    forest = RandomForestClassifier(1, bootstrap=False, max_features=None).fit(X, y)
    tree = DecisionTreeClassifier().fit(X, y)
    assert np.array_equal(forest.nodes_.threshold, tree.nodes_.threshold)
    assert np.array_equal(forest.predict_proba(X), tree.predict_proba(X))


def test_absolute_error_forests_resist_outliers():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    y = np.round(3 * X[:, 0]) + np.where(rng.random(300) < 0.1, 100.0, 0.0)
    clean = np.round(3 * X[:, 0])
    robust, mean = (
        RandomForestRegressor(20, criterion=c, min_samples_leaf=20, max_features=None, random_state=0).fit(X, y)
        for c in ("absolute_error", "squared_error")
    )
    assert np.abs(robust.predict(X) - clean).mean() < 0.2 * np.abs(mean.predict(X) - clean).mean()
    tree = RandomForestRegressor(1, criterion="absolute_error", bootstrap=False, max_features=None, max_depth=3)
    other = peer.RandomForestRegressor(1, criterion="absolute_error", bootstrap=False, max_depth=3, random_state=0)
    errors = [np.abs(m.fit(X.astype(np.float32), y).predict(X.astype(np.float32)) - y).sum() for m in (tree, other)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)


def test_rows_of_mixed_tables_end_where_the_slow_walk_ends():
    from assay.tree._predict import goes_one_way, mixed_leaves, weighted_values

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 6, 300), rng.normal(size=300), rng.integers(0, 4, 300)]).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) % 2 == (np.nan_to_num(X[:, 1]) > 0)).astype(int)
    seen = X[:, 0] != 3  # a level that no tree has seen is predicted by the node that asks for it
    model = RandomForestClassifier(8, random_state=0, nominal=[0, 2]).fit(X[seen], y[seen])
    nodes, rows = model.nodes_, X.copy()
    rows[:20, 2] = 7.0  # beyond every table
    assert goes_one_way(nodes)
    ends = mixed_leaves(nodes, rows, 2)
    for t, root in enumerate(nodes.root):
        assert np.array_equal(nodes.value[ends[:, t]], weighted_values(nodes, root, rows))
    assert (nodes.child[ends] >= 0).any()


def test_nodes_of_mixed_tables_look_at_as_many_columns_as_asked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = (X[:, 2] > 0).astype(int)
    X[rng.random(X.shape) < 0.05] = np.nan
    for make in (RandomForestClassifier, ExtraTreesClassifier):
        every, one = (make(60, max_features=k, random_state=0).fit(X, y) for k in (None, 1))
        assert (every.nodes_.column[every.nodes_.root] == 2).mean() > 0.7
        drawn = np.bincount(one.nodes_.column[one.nodes_.root], minlength=5)
        assert (drawn > 3).all()  # each column is the one looked at in a fifth of the trees
        assert drawn.max() < 30

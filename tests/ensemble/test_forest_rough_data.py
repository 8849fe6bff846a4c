"""Forests under noise, outliers, missing entries and names of levels: they suffer less than a tree."""

import numpy as np
import pytest
from sklearn import ensemble as peer
from sklearn.datasets import load_breast_cancer, load_iris

from assay.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from examples import robust_forest


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

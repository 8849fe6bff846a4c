"""Our trees as scikit-learn's tools see them: `tree_`, ways down, export, and what a file keeps of it."""

import pickle

import numpy as np
import pytest
import sklearn.tree as scikit
from sklearn.datasets import load_diabetes, load_iris

from assay.persist import load, save
from assay.tree import C45, CART, DecisionTreeClassifier, DecisionTreeRegressor


def noisy():
    """Return rows of two columns and three classes without two splits that are equally good."""
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(300, 2)), 3)
    return X, np.clip(np.round(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=300)), 0, 2).astype(int)


def walked(tree):
    """Return what stands at each node of a scikit-learn tree, from the root down, left before right."""
    found, stack = [], [0]
    while stack:
        at = stack.pop()
        found.append(at)
        if tree.children_left[at] >= 0:
            stack += [tree.children_right[at], tree.children_left[at]]
    names = ("feature", "n_node_samples", "threshold", "impurity", "weighted_n_node_samples")
    return [np.array([getattr(tree, name)[at] for at in found]) for name in names] + [tree.value[found]]


def same(ours, theirs):
    for mine, other in zip(walked(ours), walked(theirs)):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_classifier_has_scikit_learns_tree(criterion, weighted):
    X, y = noisy()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    settings = {"criterion": criterion, "max_depth": 2}
    ours = DecisionTreeClassifier(**settings).fit(X, y, weight)
    theirs = scikit.DecisionTreeClassifier(**settings, random_state=0).fit(X, y, weight)
    same(ours.tree_, theirs.tree_)
    np.testing.assert_allclose(ours.feature_importances_, ours.tree_.compute_feature_importances())


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_regressor_has_scikit_learns_tree(criterion):
    X, y = load_diabetes(return_X_y=True)
    settings = {"criterion": criterion, "max_depth": 3, "min_samples_leaf": 20}
    ours = DecisionTreeRegressor(**settings).fit(X, y)
    theirs = scikit.DecisionTreeRegressor(**settings, random_state=0).fit(X, y)
    same(ours.tree_, theirs.tree_)


def test_ways_down_and_leaves_are_those_of_the_tree():
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    rows = X.astype(np.float32)
    np.testing.assert_array_equal(model.apply(rows), model.tree_.apply(rows))
    difference = model.decision_path(rows) - model.tree_.decision_path(rows)
    assert abs(difference).sum() == 0
    assert model.get_depth() == model.tree_.max_depth
    assert model.get_n_leaves() == model.tree_.n_leaves
    np.testing.assert_array_equal(model.tree_.predict(rows), model.predict_proba(rows))
    assert (model.n_classes_, model.n_outputs_, model.max_features_) == (3, 1, 4)


def test_scikit_learns_tools_read_our_trees():
    X, y = noisy()
    ours = DecisionTreeClassifier(max_depth=2).fit(X, y)
    theirs = scikit.DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    assert scikit.export_text(ours) == scikit.export_text(theirs)
    assert "radius" in scikit.export_graphviz(ours, feature_names=["radius", "texture"])
    assert isinstance(CART(), scikit.DecisionTreeClassifier)
    assert not issubclass(DecisionTreeRegressor, scikit.DecisionTreeClassifier)


def test_a_file_keeps_the_rows_of_weighted_leaves(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=3).fit(X, y, np.linspace(0.1, 2.0, len(y)))
    assert model.tree_.n_node_samples[0] == 150
    assert model.tree_.weighted_n_node_samples[0] == pytest.approx(157.5)
    save(model, tmp_path / "tree.assay")
    same(load(tmp_path / "tree.assay").model.tree_, model.tree_)
    again = pickle.loads(pickle.dumps(model))
    assert "_scikit_tree" not in vars(again)
    same(again.tree_, model.tree_)
    model.fit(X, y)
    assert "leaf_rows_" not in vars(model)
    np.testing.assert_array_equal(model.tree_.n_node_samples, model.tree_.weighted_n_node_samples)


def test_trees_beyond_thresholds_have_no_such_tree():
    X = [[1.0], [2.0], [3.0], [4.0], [None]]
    model = C45().fit(X, ["no", "no", "yes", "yes", "yes"])
    with pytest.raises(AttributeError, match="down one branch"):
        getattr(model, "tree_")  # noqa: B009
    nominal = DecisionTreeClassifier(nominal=[0]).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    assert not hasattr(nominal, "tree_")
    assert not hasattr(DecisionTreeClassifier(), "tree_")
    assert not hasattr(DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0]), "n_classes_")

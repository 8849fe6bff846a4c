"""The leaves that words of bits give are those of a walk from the root, node by node."""

import numpy as np
import pytest

from assay.checker.family import read_model
from assay.checker.record import Refused
from assay.checker.rules import tree_masks
from assay.ensemble import AdaBoostClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from assay.tree import DecisionTreeClassifier


def rows(n, gaps=False):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 5)).round(1)  # rows lie on thresholds, too
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, (np.nan_to_num(X) @ [1, -1, 0.5, 0, 2] + rng.normal(size=n) > 0).astype(int)


def walked(trees, X):
    found = np.empty((len(X), len(trees.root)), dtype=np.int64)
    for i, row in enumerate(X):
        for t, node in enumerate(trees.root):
            while trees.child[node] >= 0:
                x = row[trees.column[node]]
                second = trees.missing[node] if np.isnan(x) else x > trees.threshold[node]
                node = trees.child[node] + int(second)
            found[i, t] = node
    return found


MODELS = {
    "boosting": (HistGradientBoostingRegressor(max_iter=12), True),
    "64 leaves": (HistGradientBoostingRegressor(max_iter=3, max_leaf_nodes=64, min_samples_leaf=1), True),
    "stumps": (AdaBoostClassifier(n_estimators=7), False),
    "forest": (RandomForestClassifier(n_estimators=5, max_leaf_nodes=20, random_state=0), False),
    "leaf alone": (DecisionTreeClassifier(min_samples_leaf=500), False),
}


@pytest.mark.parametrize("table_bytes", [2**22, 2**8])
@pytest.mark.parametrize("name", MODELS)
def test_leaves_are_those_of_a_walk(name, table_bytes, monkeypatch):
    monkeypatch.setattr(tree_masks, "_TABLE_BYTES", table_bytes)
    model, gaps = MODELS[name]
    X, y = rows(900, gaps)
    trees = read_model(model.fit(X, y).stored())
    found = tree_masks.groups(trees)
    assert (len(found) > 1) == (table_bytes == 2**8 and len(trees.root) > 1)
    few = np.concatenate([X[:200], np.full((1, 5), np.inf), np.full((1, 5), -np.inf), -np.zeros((1, 5))])
    assert np.array_equal(tree_masks.leaves(found, few), walked(trees, few))
    assert np.array_equal(trees.leaves(X), tree_masks.leaves(found, X))


def test_trees_with_more_leaves_than_bits_are_walked():
    X, _ = rows(900)
    trees = read_model(DecisionTreeClassifier().fit(X, np.arange(900) % 2).stored())
    assert tree_masks.groups(trees) is None
    assert np.array_equal(trees.leaves(X)[:200], walked(trees, X[:200]))


def test_a_gap_that_no_child_takes_is_refused_however_many_rows():
    X, y = rows(900)
    trees = read_model(RandomForestClassifier(n_estimators=2, max_leaf_nodes=8, random_state=0).fit(X, y).stored())
    trees.missing[trees.child >= 0] = -1
    X[5] = np.nan
    with pytest.raises(Refused):
        trees.leaves(X)

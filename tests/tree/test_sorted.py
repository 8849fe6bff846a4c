"""Trees on columns that are sorted once: the same as by sorting at each node, dense as sparse, within memory."""

import re

import numpy as np
import pytest
import sklearn.tree
from scipy.sparse import csc_array, csr_array, random_array

from assay.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor, _reading
from assay.tree._reading import Read
from assay.tree.growth._exact import compact, encode, grow_exact, grow_general
from assay.tree.growth._records import Limits
from assay.tree.growth._sorted import as_entries, counted_instead, grow_sorted, is_whole, sort_columns

NONE = np.empty(0, dtype=np.int64)
TREE = DecisionTreeRegressor()


def draw(n=300, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 1] = np.where(rng.uniform(size=n) < 0.7, 0.0, X[:, 1])
    X[:, 2] = rng.integers(0, 4, n)
    return X, 8 * X[:, 0] + np.round(np.exp(X[:, 1])) + X[:, 2] ** 2 + rng.uniform(size=n), rng


def assert_same(one, two):
    one, two = compact(one), compact(two)
    for name in ("column", "threshold", "child", "missing"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), name)
    for name in ("value", "weight", "impurity"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-9, err_msg=name)


LIMITS = [
    Limits(),
    Limits(max_depth=3),
    Limits(min_samples_leaf=7),
    Limits(max_leaves=9),
    Limits(min_samples_split=20, min_weight_leaf=6.5),
    Limits(min_decrease=3.0),
    Limits(max_features=2),
]


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "friedman_mse", "poisson"])
@pytest.mark.parametrize("weights", ["none", "whole", "any"])
def test_the_tree_is_that_of_sorting_at_each_node(criterion, limits, weights):
    X, y, rng = draw()
    eighths = np.round(rng.uniform(0, 16, len(y))) / 8
    weight = {"none": None, "whole": rng.poisson(1.0, len(y)) * 1.0, "any": eighths}[weights]
    if classes := criterion in ("gini", "entropy"):
        y = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    else:
        y = np.round(np.abs(y) * 256) / 256  # sums without rounding: equal splits stay equal
    rows = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    n_classes = np.array([3]) if classes else NONE
    wanted = grow_exact(encode(X, 1), y, weight, rows, n_classes, criterion, limits, 7)
    entries = as_entries(sort_columns(Read(TREE, X, y, weight), 1), classes and is_whole(weight))
    assert_same(grow_sorted(entries, y, weight, n_classes, criterion, limits, 7), wanted)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_several_outputs_are_those_of_the_general_way(criterion):
    X, y, rng = draw()
    classes = criterion != "squared_error"
    Y = np.column_stack([y, X[:, 0] * 3 + y % 5])
    thirds = np.column_stack([np.digitize(own, np.quantile(own, [0.4, 0.7])) for own in Y.T])
    Y = thirds if classes else np.round(Y * 64)
    n_classes, weight = np.array([3, 3]) if classes else NONE, rng.poisson(1.0, len(y)) * 1.0
    asked = n_classes, criterion, Limits(max_depth=6), 0
    wanted = grow_general(encode(X, 1), Y, weight, np.flatnonzero(weight), *asked)
    entries = as_entries(sort_columns(Read(TREE, X, Y, weight), 1), classes)
    assert_same(grow_sorted(entries, Y, weight, *asked), wanted)


def test_threads_change_nothing():
    X, y, _ = draw(3_000, 20)
    entries = as_entries(sort_columns(Read(TREE, X, y), 1), False)
    one, two = (grow_sorted(entries, y, None, NONE, "squared_error", Limits(), in_parts=True, n_jobs=k) for k in (1, 2))
    assert_same(one, two)


def test_columns_of_few_values_are_counted():
    X, y, rng = draw(400)
    X = rng.integers(0, 5, X.shape).astype(float)
    codes = counted_instead(sort_columns(Read(TREE, X, y), 1), 400, 1, 0)
    wanted = encode(X, 1)
    for mine, other in zip(codes, wanted):
        np.testing.assert_array_equal(mine, other)
    assert counted_instead(sort_columns(Read(TREE, X, y), 1), 400, 2, 0) is None


@pytest.mark.parametrize("container", [csr_array, csc_array])
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
@pytest.mark.parametrize("given", [{}, {"max_features": 2}, {"max_leaf_nodes": 12}, {"min_samples_leaf": 5}])
def test_sparse_trees_are_dense_ones(container, kind, given):
    X, y, rng = draw()
    X = np.where(rng.uniform(size=X.shape) < 0.3, np.round(X, 1), 0.0)
    y = np.round(y) if kind is DecisionTreeRegressor else (y > 2).astype(int) + (y > 6)
    dense, sparse = (kind(random_state=3, **given).fit(rows, y) for rows in (X, container(X)))
    assert_same(sparse.nodes_, dense.nodes_)
    assert np.array_equal(sparse.predict(container(X)), dense.predict(X))
    assert np.array_equal(sparse.apply(container(X)), dense.apply(X))


def test_sparse_tree_predicts_as_scikit_learns():
    X = random_array((800, 40), density=0.1, format="csr", random_state=np.random.default_rng(0))
    y = (X.toarray()[:, :5].sum(axis=1) > 0.2).astype(int)
    both = DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier
    ours, theirs = (kind(random_state=0, max_depth=6) for kind in both)
    assert np.array_equal(ours.fit(X, y).predict(X), theirs.fit(X, y).predict(X))


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_stored_zeros_and_negative_numbers_are_values(kind):
    X = csr_array((np.array([-1.0, 0.0, 2.0, -3.0]), (np.arange(4), np.zeros(4, dtype=int))), shape=(6, 1))
    y = np.array([0, 1, 0, 0, 1, 1])
    model = kind().fit(X, y)
    assert sorted(model.tree_.threshold[model.tree_.feature >= 0]) == [-0.5, 1.0]
    assert model.predict(X).tolist() == y.tolist()


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier, RandomForestRegressor])
def test_sparse_rows_need_no_dense_copy(kind, monkeypatch):
    monkeypatch.setattr(_reading, "_free_memory", lambda: 0)
    X = random_array((500, 20_000), density=0.001, format="csr", random_state=np.random.default_rng(0))
    y = (np.asarray(X[:, :10_000].sum(axis=1)).ravel() > np.asarray(X[:, 10_000:].sum(axis=1)).ravel()).astype(int)
    model = kind(random_state=0, **({} if kind is DecisionTreeClassifier else {"n_estimators": 3})).fit(X, y)
    assert model.score(X, y) > 0.5
    assert model.apply(X).shape[0] == 500


@pytest.mark.parametrize(
    ("learner", "what"),
    [
        (DecisionTreeRegressor(criterion="absolute_error"), "criterion='absolute_error'"),
        (DecisionTreeClassifier(criterion="gain_ratio"), "criterion='gain_ratio'"),
        (DecisionTreeClassifier(monotonic_cst=[1] * 40), "monotonic_cst"),
        (DecisionTreeClassifier(pruning="cost_complexity"), "pruning='cost_complexity'"),
        (DecisionTreeClassifier(pruning="reduced_error", random_state=0), "pruning='reduced_error'"),
        (DecisionTreeClassifier(thresholds="short"), 'thresholds="short"'),
        (DecisionTreeClassifier(nominal=[0]), "a nominal column"),
        (RandomForestRegressor(2, criterion="absolute_error", random_state=0), "criterion='absolute_error'"),
        (RandomForestClassifier(2, monotonic_cst=[1] * 40, random_state=0), "monotonic_cst"),
        (RandomForestClassifier(9, oob_score=True, random_state=0), "oob_score"),
        (GradientBoostingClassifier(n_estimators=2), "it"),
    ],
)
def test_who_needs_a_dense_copy_that_is_too_large_and_for_what(learner, what, monkeypatch):
    X = random_array((60, 40), density=0.1, format="csr", random_state=np.random.default_rng(0))
    monkeypatch.setattr(_reading, "_free_memory", lambda: 0)
    told = re.escape(f"{type(learner).__name__}: {what} needs a dense copy of sparse rows; 60 x 40 take")
    with pytest.raises(ValueError, match=told):
        learner.fit(X, np.arange(60) % 2)


def test_a_certificate_that_needs_a_dense_copy_says_so(monkeypatch):
    X, y = random_array((60, 40), density=0.1, format="csr", random_state=np.random.default_rng(0)), np.arange(60) % 2
    tree, forest = DecisionTreeClassifier().fit(X, y), RandomForestClassifier(5, random_state=0).fit(X, y)
    monkeypatch.setattr(_reading, "_free_memory", lambda: 0)
    with pytest.raises(ValueError, match="DecisionTreeClassifier: a certificate needs a dense copy"):
        tree.certify(X, y)
    with pytest.raises(ValueError, match="RandomForestClassifier: a certificate needs a dense copy"):
        forest.certify(X, y)
    with pytest.raises(ValueError, match="RandomForestClassifier: a permutation importance needs a dense copy"):
        forest.permutation_importances(X, y)


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_member_of_a_forest_is_that_tree(outputs):
    X, y, _ = draw()
    Y = y if outputs == 1 else np.column_stack([y, X[:, 0]])
    forest = RandomForestRegressor(2, bootstrap=False, max_features=4, random_state=0).fit(X, Y)
    for member, seed in zip(forest.estimators_, forest.seeds_):
        alone = DecisionTreeRegressor(max_features=4, random_state=int(seed)).fit(X, Y)
        assert_same(member.nodes_, alone.nodes_)


@pytest.mark.parametrize("leaf", [1, 4])
def test_drawn_thresholds_of_several_outputs_part_the_rows(leaf):
    X, y, _ = draw()
    Y = np.column_stack([y, X[:, 0]])
    model = DecisionTreeRegressor(splitter="random", min_samples_leaf=leaf, random_state=0).fit(X, Y)
    ends = model.apply(X)
    assert np.bincount(ends)[model.tree_.children_left < 0].min() >= leaf
    means = np.array([Y[ends == end].mean(axis=0) for end in ends])
    np.testing.assert_allclose(model.predict(X), means)

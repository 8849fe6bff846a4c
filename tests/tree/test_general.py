"""Several outputs, missing values, sparse rows, one class: against scikit-learn, brute force and themselves."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn.tree as scikit
from scipy.sparse import csc_array, csr_array

import assay
from assay.base import streams
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor


def rows(seed=0, n=200, gaps=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32).astype(np.float64)
    y = np.abs(X[:, 0] * X[:, 1]) + np.abs(X[:, 2]) + rng.exponential(size=n) + 1.0
    X[rng.uniform(size=X.shape) < gaps] = np.nan
    return X, y


def loss(y, criterion):
    """Return the impurity times weight of some targets (rows, outputs), mean over outputs."""
    if criterion == "absolute_error":
        return np.abs(y - np.median(y, axis=0)).sum() / y.shape[1]
    if criterion == "squared_error":
        return ((y - y.mean(axis=0)) ** 2).sum() / y.shape[1]
    if criterion == "poisson":
        return (y * np.log(y / y.mean(axis=0))).sum() / y.shape[1]
    shares = [np.unique(column, return_counts=True)[1] / len(y) for column in y.T]
    impure = [1 - (p * p).sum() if criterion == "gini" else -(p * np.log2(p)).sum() for p in shares]
    return len(y) * np.mean(impure)


def best_split(X, y, criterion, least=1):
    """Return the smallest loss of two children over all thresholds and both sides of rows without a value."""
    sides = []
    for x in X.T:
        lost = np.isnan(x)
        sides += [(x <= t) | (lost & left) for t in np.unique(x[~lost]) for left in (False, True)]
    sound = [side for side in sides if least <= side.sum() <= len(side) - least]
    return min(loss(y[side], criterion) + loss(y[~side], criterion) for side in sound)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson", "gini", "entropy"])
def test_the_first_split_is_the_best_of_all(criterion, outputs, gaps):
    X, y = rows(3, 60, gaps)
    targets = np.column_stack([y, y[::-1]])[:, :outputs]
    kind = DecisionTreeRegressor
    if criterion in ("gini", "entropy"):
        targets, kind = np.round(targets).astype(int) % 3, DecisionTreeClassifier
    model = kind(criterion=criterion, max_depth=1, min_samples_leaf=4).fit(X, targets)
    tree = model.tree_
    got = (tree.impurity * tree.weighted_n_node_samples)[1:].sum()
    assert got == pytest.approx(best_split(X, targets, criterion, 4), rel=1e-9)
    assert tree.impurity[0] * len(X) == pytest.approx(loss(targets, criterion))
    at = model.apply(X)
    np.testing.assert_array_equal(np.bincount(at, minlength=3)[1:], tree.n_node_samples[1:])


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "gini"])
def test_several_outputs_are_scikit_learns(criterion):
    X, y = rows(1)
    Y = np.column_stack([y, X[:, 1] + 5])
    ours, theirs = DecisionTreeRegressor, scikit.DecisionTreeRegressor
    if criterion == "gini":
        Y, ours, theirs = np.round(Y).astype(int), DecisionTreeClassifier, scikit.DecisionTreeClassifier
    settings = {"criterion": criterion, "max_depth": 3, "min_samples_leaf": 10}
    model, peer = ours(**settings).fit(X, Y), theirs(**settings, random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), peer.predict(X))
    if criterion == "gini":
        for mine, other in zip(model.predict_proba(X), peer.predict_proba(X)):
            np.testing.assert_allclose(mine, other)
        assert [c.tolist() for c in model.classes_] == [c.tolist() for c in peer.classes_]
        assert model.n_classes_.tolist() == peer.n_classes_.tolist()
    assert model.n_outputs_ == 2


@pytest.mark.parametrize("container", [csr_array, csc_array])
def test_sparse_rows_are_dense_ones(container):
    X, y = rows(2)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    model, twin = (DecisionTreeRegressor(max_depth=5).fit(given, y) for given in (X, container(X)))
    np.testing.assert_array_equal(model.predict(X), twin.predict(container(X)))
    with pytest.raises(ValueError, match=r"more than half of the .* that are free"):
        DecisionTreeRegressor(criterion="absolute_error").fit(container((10**7, 10**6)), np.zeros(10**7))


def test_one_class_is_learnt_and_said():
    model = DecisionTreeClassifier().fit([[0.0], [1.0]], ["fig", "fig"])
    assert model.predict([[3.0]]).tolist() == ["fig"]
    assert model.predict_proba([[3.0]]).tolist() == [[1.0]]
    with pytest.raises(ValueError, match="one class"):
        model.certify([[0.0], [1.0]], ["fig", "fig"])


@pytest.mark.parametrize("limit", [2**31, 2**63 - 1, 2**65])
@pytest.mark.parametrize("name", ["max_leaf_nodes", "max_depth", "min_samples_leaf", "min_samples_split"])
def test_numbers_beyond_any_tree_are_no_limit(name, limit):
    X, y = rows(4, 40)
    for model in (DecisionTreeClassifier(random_state=0), DecisionTreeRegressor(splitter="random", random_state=0)):
        model.set_params(**{name: limit}).fit(X, np.round(y))
        assert model.get_n_leaves() == 1 if name.startswith("min") else model.get_n_leaves() > 2


@pytest.mark.parametrize("seed", range(5))
def test_poisson_never_predicts_zero(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 4))
    y = np.where(rng.uniform(size=500) < 0.6, 0.0, rng.exponential(size=500))
    for splitter in ("best", "random"):
        model = DecisionTreeRegressor(criterion="poisson", splitter=splitter, random_state=0)
        assert model.fit(X, y).predict(X).min() > 0
    assert DecisionTreeRegressor(criterion="poisson").fit(np.where(X > 1, np.nan, X), y).predict(X).min() > 0


def test_rows_without_a_value_go_to_the_larger_side_if_none_were_seen():
    X, y = np.arange(9.0)[:, None], np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    model = DecisionTreeClassifier().fit(X, y)
    assert model.predict([[np.nan]]) == [1]
    assert DecisionTreeClassifier().fit(X, 1 - y[::-1]).predict([[np.nan]]) == [0]


def test_values_that_are_missing_alone_part_the_classes():
    X = np.array([[0.0], [0.0], [7.0], [np.nan], [np.nan]])
    model = DecisionTreeClassifier().fit(X, [0, 0, 0, 1, 1])
    assert model.predict([[1e100], [np.nan], [-5.0]]).tolist() == [0, 1, 0]
    assert np.isfinite(model.node_threshold_).all()


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_certificates_of_trees_with_missing_values(kind):
    X, y = rows(5, 120, 0.2)
    y = np.round(y).astype(int) % 3 if kind is DecisionTreeClassifier else y
    model = kind(max_depth=3, random_state=0).fit(X, y)
    assert assay.verify(model.certify(X, y), model, X, y).holds


def test_certificates_and_files_are_about_one_output():
    X, y = rows(6, 30)
    model = DecisionTreeRegressor().fit(X, np.column_stack([y, y]))
    for ask in (lambda: model.certify(X, np.column_stack([y, y])), model.stored):
        with pytest.raises(ValueError, match="about one output"):
            ask()


_LIMITED = """
import resource
import numpy as np
from assay.tree import CART, DecisionTreeClassifier
X, y = np.random.default_rng(0).normal(size=(6000, 1)), np.arange(6000) % 2
DecisionTreeClassifier(n_jobs=1).fit(X[:50], y[:50])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 150_000_000,) * 2)
CART(nominal=[0], n_jobs=1).fit(X, y)  # as many levels as rows
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit of memory is Linux's")
def test_cart_on_a_column_of_many_levels_needs_no_table_of_levels_and_subsets():
    done = subprocess.run([sys.executable, "-c", _LIMITED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-300:]


@pytest.mark.parametrize("more", [{}, {"max_features": 2, "random_state": 0}])
def test_many_classes_are_not_laid_out_for_every_row(more, monkeypatch):
    X, y = rows(7, 300)
    labels = np.argsort(np.argsort(y)) // 2
    wide = DecisionTreeClassifier(max_depth=3, **more).fit(X, labels)
    for room in ("growth._growers", "growth._sorted"):
        monkeypatch.setattr(f"assay.tree.{room}.WIDE", 0)
    narrow = DecisionTreeClassifier(max_depth=3, **more).fit(X, labels)
    np.testing.assert_array_equal(narrow.predict(X), wide.predict(X))
    deep = DecisionTreeClassifier().fit(X, labels)  # more nodes than there was room for at first
    np.testing.assert_array_equal(deep.predict(X), labels)


def test_categories_that_are_numbers_are_read_by_a_tree_of_numbers():
    X = pd.DataFrame({"a": [0, 1, 2, 3] * 5, "b": np.arange(20.0)})
    model = DecisionTreeClassifier().fit(X, X["a"] > 1)
    assert (model.predict(X.astype({"a": "category"})) == (X["a"] > 1)).all()
    with pytest.raises(ValueError, match="fitted on numbers alone"):
        model.predict(X.assign(a="fig"))


def test_a_list_of_texts_is_no_list_of_files(tmp_path):
    with pytest.raises(ValueError, match=r"2D array|convert string|could not convert"):
        DecisionTreeClassifier().fit(["fig", "apple"], [0, 1])
    assert not streams(["fig", "apple"])
    assert streams([str(tmp_path)])
    assert streams(["part-1.parquet", "part-2.parquet"])


@pytest.mark.parametrize("seed", range(12))
def test_equal_splits_go_to_scikit_learns_column_if_there_is_a_seed(seed):
    X = np.repeat(np.arange(10.0)[:, None], 7, axis=1)
    y = np.arange(10) > 4
    kinds = DecisionTreeClassifier, scikit.DecisionTreeClassifier
    ours, theirs = (kind(random_state=seed).fit(X, y) for kind in kinds)
    assert ours.tree_.feature[0] == theirs.tree_.feature[0]
    assert DecisionTreeClassifier().fit(X, y).tree_.feature[0] == 0

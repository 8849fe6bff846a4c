"""Trees for absolute errors: brute force over thresholds with medians from sorting, scikit-learn, weights, limits."""

import numpy as np
import pytest
from sklearn import tree as peer
from sklearn.datasets import load_diabetes

from assay.tree import DecisionTreeRegressor
from assay.tree.growth._absolute import median
from assay.tree.growth._absolute_loops import best_threshold


def deviation(y, w):
    """Return the smallest sum of weighted deviations from one of the values."""
    return min((w * np.abs(y - m)).sum() for m in y)


@pytest.mark.mission("TRE-14")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_every_split_is_the_best_of_its_node(seed, weighted):
    rng = np.random.default_rng(seed)
    X, y = np.round(rng.normal(size=(60, 3)), 1), np.round(rng.normal(size=60), 1)
    w = rng.uniform(0.2, 3, 60) if weighted else np.ones(60)
    nodes = DecisionTreeRegressor(criterion="absolute_error", max_depth=4).fit(X, y, w).nodes_
    inside = {0: np.arange(60)}
    for at in range(len(nodes.child)):
        rows = inside[at]
        assert nodes.impurity[at] * nodes.weight[at] == pytest.approx(deviation(y[rows], w[rows]), abs=1e-9)
        if nodes.child[at] < 0:
            continue
        left = X[rows, nodes.column[at]] <= nodes.threshold[at]
        inside[nodes.child[at]], inside[nodes.child[at] + 1] = rows[left], rows[~left]
        found = sum(deviation(y[rows[side]], w[rows[side]]) for side in (left, ~left))
        best = min(
            sum(deviation(y[rows[side]], w[rows[side]]) for side in (X[rows, f] <= t, X[rows, f] > t))
            for f in range(3)
            for t in np.unique(X[rows, f])[:-1]
        )
        assert found == pytest.approx(best, abs=1e-9)


@pytest.mark.mission("TRE-14")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "more",
    [
        {"max_depth": 1},
        {"max_depth": 4},
        {"max_leaf_nodes": 12},
        {"min_samples_leaf": 20, "max_depth": 6},
        {"min_weight_fraction_leaf": 0.1},
    ],
)
def test_agrees_with_scikit_learn(more, weighted):
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32).astype(np.float64)
    w = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else None
    own = DecisionTreeRegressor(criterion="absolute_error", **more).fit(X, y, w)
    other = peer.DecisionTreeRegressor(criterion="absolute_error", random_state=0, **more).fit(X, y, w)
    assert own.get_n_leaves() == other.get_n_leaves()
    errors = [np.average(np.abs(model.predict(X) - y), weights=w) for model in (own, other)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)
    assert own.nodes_.threshold[0] == pytest.approx(other.tree_.threshold[0], abs=1e-7)


def test_medians():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 8):
        y = rng.normal(size=n)
        assert median(y, np.ones(n)) == pytest.approx(np.median(y))
    y, times = rng.normal(size=9), rng.integers(1, 5, 9)
    assert median(y, times.astype(float)) == pytest.approx(np.median(np.repeat(y, times)))


def test_the_leaf_predicts_its_median_and_outliers_move_nothing():
    X, y = np.arange(9.0)[:, None], np.array([1.0, 1, 2, 2, 2, 8, 8, 9, 9])
    one = DecisionTreeRegressor(criterion="absolute_error", max_depth=1).fit(X, y)
    assert one.predict(X).tolist() == [2.0] * 5 + [8.5] * 4
    y[8] = 1e6
    other = DecisionTreeRegressor(criterion="absolute_error", max_depth=1, min_samples_leaf=2).fit(X, y)
    assert other.predict(X).tolist() == [2.0] * 5 + [8.5] * 4


def test_threads_random_borders_pruning_and_refusals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = np.abs(X[:, 0]) + rng.standard_cauchy(6000)
    make = {"criterion": "absolute_error", "max_depth": 4}
    one, two = (DecisionTreeRegressor(**make, n_jobs=k).fit(X, y) for k in (1, 2))
    assert all(np.array_equal(one.trees_[name], two.trees_[name]) for name in one.trees_)
    drawn = DecisionTreeRegressor(**make, splitter="random", random_state=0).fit(X, y)
    best = np.abs(one.predict(X) - y).sum()
    assert best <= np.abs(drawn.predict(X) - y).sum() < np.abs(y - np.median(y)).sum()
    few = DecisionTreeRegressor(**make, max_features=1, random_state=0).fit(X, y)
    assert len(np.unique(few.nodes_.column)) > 1
    pruned = DecisionTreeRegressor(criterion="absolute_error", pruning="cost_complexity").fit(X[:300], y[:300])
    assert pruned.get_n_leaves() < 50
    with pytest.raises(ValueError, match="nominal columns, gain_ratio and"):
        DecisionTreeRegressor(criterion="absolute_error", nominal=[0]).fit(np.round(X), y)
    y = np.arange(4.0)
    assert best_threshold(np.ones(4), np.arange(4), np.arange(4), y, np.ones(4), 1, 0.0, 0, -np.inf, np.inf, y)[1] == -1

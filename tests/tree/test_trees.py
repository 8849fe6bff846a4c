"""Exact trees against scikit-learn, brute force and themselves; nominal columns, pruning, rules."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn import tree as peer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from assay.tree import C45, CART, ID3, DecisionTreeClassifier, DecisionTreeRegressor, impurity
from assay.tree._pruning import upper_limit


def noisy(seed, n=400, d=5, digits=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32).astype(np.float64)
    if digits is not None:
        X = np.round(X, digits)
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)
    return X, y


def cost(y, w, criterion):
    """Return the weighted impurity of one child; infinite where Poisson's mean would be zero."""
    if criterion in ("gini", "entropy"):
        return w.sum() * impurity(np.bincount(y.astype(int), w, 3), criterion)
    mean = np.average(y, weights=w)
    if criterion == "squared_error":
        return (w * (y - mean) ** 2).sum()
    return (w * (y * np.log(np.where(y > 0, y, 1.0) / mean) - y + mean)).sum() if mean > 0 else np.inf


def brute_force(X, y, weight, criterion):
    """Return the smallest weighted impurity of two children over all columns and thresholds."""
    sides = (X[:, f] <= t for f in range(X.shape[1]) for t in np.unique(X[:, f])[:-1])
    return min((sum(cost(y[s], weight[s], criterion) for s in (side, ~side)) for side in sides), default=np.inf)


@pytest.mark.mission("TRE-12")
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
@pytest.mark.parametrize("seed", range(5))
def test_root_split_is_the_best_of_all(criterion, seed):
    rng = np.random.default_rng(seed)
    X, weight = np.round(rng.normal(size=(40, 3)), 1), rng.integers(1, 4, 40).astype(float)
    y = rng.integers(0, 3, 40)
    make = DecisionTreeClassifier if criterion in ("gini", "entropy") else DecisionTreeRegressor
    model = make(criterion=criterion, max_depth=1).fit(X, y, weight)
    nodes = model.nodes_
    side = X[:, nodes.column[0]] <= nodes.threshold[0]
    here = sum(cost(y[part], weight[part], criterion) for part in (side, ~side))
    assert here == pytest.approx(brute_force(X, y, weight, criterion), rel=1e-12)


@pytest.mark.mission("TRE-12")
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_every_split_is_the_best_of_its_node(criterion):
    X, y = noisy(7, n=150)
    nodes, inside = DecisionTreeClassifier(criterion=criterion).fit(X, y).nodes_, {0: np.arange(150)}
    for at in np.flatnonzero(nodes.child >= 0):
        rows = inside[at]
        left = X[rows, nodes.column[at]] <= nodes.threshold[at]
        inside[nodes.child[at]], inside[nodes.child[at] + 1] = rows[left], rows[~left]
        ones = np.ones(len(rows))
        found = sum(cost(y[rows[part]], ones[part], criterion) for part in (left, ~left))
        assert found == pytest.approx(brute_force(X[rows], y[rows], ones, criterion), abs=1e-9)


@pytest.mark.mission("TRE-12", "TRE-23")
@pytest.mark.parametrize("criterion", ["gini", "entropy", "log_loss"])
@pytest.mark.parametrize(
    "more",
    [{}, {"max_depth": 4}, {"min_samples_leaf": 7}, {"max_leaf_nodes": 9}, {"min_impurity_decrease": 0.01}],
)
def test_classifier_agrees_with_scikit_learn(criterion, more):
    X, y = noisy(0)
    own = DecisionTreeClassifier(criterion=criterion, **more).fit(X, y)
    other = peer.DecisionTreeClassifier(criterion=criterion, random_state=0, **more).fit(X, y)
    assert own.nodes_.column[0] == other.tree_.feature[0]
    assert own.nodes_.threshold[0] == pytest.approx(other.tree_.threshold[0], rel=1e-6)
    assert np.mean(own.predict(X) == other.predict(X)) > 0.9  # ties in small nodes are broken at random there
    assert abs(own.get_n_leaves() - other.get_n_leaves()) <= 5
    assert own.feature_importances_ == pytest.approx(other.feature_importances_, abs=0.06)
    if "max_depth" in more:
        assert own.get_depth() <= 4
    if "max_leaf_nodes" in more:
        assert own.get_n_leaves() == 9
    if "min_samples_leaf" in more:
        assert own.nodes_.weight[own.nodes_.child < 0].min() >= 7


@pytest.mark.mission("TRE-14")
@pytest.mark.filterwarnings("ignore:Value .*friedman_mse")
@pytest.mark.parametrize("criterion", ["squared_error", "friedman_mse"])
def test_regressor_agrees_with_scikit_learn(criterion):
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32).astype(np.float64)
    for depth in (2, 5):
        own = DecisionTreeRegressor(criterion=criterion, max_depth=depth).fit(X, y)
        other = peer.DecisionTreeRegressor(criterion=criterion, max_depth=depth, random_state=0).fit(X, y)
        assert own.predict(X) == pytest.approx(other.predict(X), rel=1e-9)


@pytest.mark.mission("TRE-01")
@pytest.mark.parametrize("seed", range(3))
def test_unpruned_trees_reproduce_consistent_labels(seed):
    X, y = noisy(seed, n=5000)  # large enough for subtrees on threads
    model = DecisionTreeClassifier().fit(X, y)
    assert (model.predict(X) == y).all()
    one = DecisionTreeClassifier(n_jobs=1).fit(X, y)
    assert all(np.array_equal(one.trees_[name], model.trees_[name]) for name in model.trees_)
    assert np.array_equal(model.predict(X), model.classes_[model.nodes_.value[model.apply(X)].argmax(axis=1)])


@pytest.mark.parametrize("digits", [1, None])  # few codes are counted, many are sorted
def test_counting_and_sorting_find_the_general_tree(digits):
    X, y = noisy(3, digits=digits)
    fast = DecisionTreeClassifier(criterion="entropy", max_depth=3).fit(X, y)
    slow = DecisionTreeClassifier(criterion="entropy", max_depth=3, nominal=[5]).fit(
        np.column_stack([X, np.zeros(len(X))]), y
    )
    assert sorted(fast.nodes_.threshold) == pytest.approx(sorted(slow.nodes_.threshold))
    assert np.array_equal(fast.predict(X), slow.predict(np.column_stack([X, np.zeros(len(X))])))


@pytest.mark.mission("TRE-12")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_best_subset_of_levels(classes, seed):
    rng = np.random.default_rng(seed)
    code, y = rng.integers(0, 6, 60), rng.integers(0, classes, 60)
    model = DecisionTreeClassifier(max_depth=1, nominal=[0]).fit(code[:, None].astype(float), y)
    best = min(
        sum(
            part.sum() * impurity(np.bincount(y[part], minlength=classes).astype(float), "gini")
            for part in (side, ~side)
        )
        for r in range(1, 6)
        for side in (np.isin(code, chosen) for chosen in combinations(range(6), r))
    )
    nodes = model.nodes_
    reached = nodes.tables[0][code]
    found = sum(
        (reached == v).sum() * impurity(np.bincount(y[reached == v], minlength=classes).astype(float), "gini")
        for v in (0, 1)
    )
    assert found == pytest.approx(best)


def test_best_subset_for_numbers():
    rng = np.random.default_rng(0)
    code, y = rng.integers(0, 7, 80), rng.normal(size=80)
    y += np.array([0, 3, 1, 3, 0, 1, 3.0])[code]
    model = DecisionTreeRegressor(max_depth=1, nominal=[0]).fit(code[:, None].astype(float), y)
    ones = np.ones(80)
    split = lambda side: sum(cost(y[part], ones[part], "squared_error") for part in (side, ~side))  # noqa: E731
    best = min(split(np.isin(code, chosen)) for r in range(1, 7) for chosen in combinations(range(7), r))
    assert ((y - model.predict(code[:, None].astype(float))) ** 2).sum() == pytest.approx(best)


def test_missing_values_go_where_they_fit():
    X = np.array([[1.0], [2.0], [3.0], [4.0], [np.nan], [np.nan]])
    y = [0, 0, 1, 1, 1, 1]
    model = DecisionTreeClassifier(missing="direction").fit(X, y)
    assert (model.predict(X) == y).all()
    shared = DecisionTreeClassifier(missing="fractional", max_depth=1).fit(X, y)
    assert shared.predict_proba([[np.nan]]).sum() == pytest.approx(1.0)


def test_pessimistic_limit_is_the_binomial_one():
    for errors, n in ((0, 6), (1, 9), (2, 20)):
        p = float(upper_limit(np.array(float(errors)), np.array(float(n)), 0.25))
        assert binom.cdf(errors, n, p) == pytest.approx(0.25)


def test_pessimistic_pruning_shrinks_noise():
    X, y = noisy(5)
    y = np.random.default_rng(0).permutation(y)
    full, cut = C45(pruning=None).fit(X, y), C45().fit(X, y)
    assert cut.get_n_leaves() < full.get_n_leaves()
    assert C45(confidence=0.01).fit(X, y).get_n_leaves() < cut.get_n_leaves()


@pytest.mark.parametrize("data", [load_iris, load_breast_cancer])
def test_cost_complexity_path_is_scikit_learns(data):
    X, y = data(return_X_y=True)
    own = DecisionTreeClassifier().cost_complexity_pruning_path(X, y)
    other = peer.DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X, y)
    if data is load_iris:
        assert own.ccp_alphas == pytest.approx(other.ccp_alphas, abs=1e-12)
        assert own.impurities == pytest.approx(other.impurities, abs=1e-12)
    alpha = own.ccp_alphas[-3]
    model = DecisionTreeClassifier(ccp_alpha=alpha).fit(X, y)
    nodes = model.nodes_
    total = (nodes.impurity * nodes.weight / nodes.weight[0])[nodes.child < 0].sum() + alpha * model.get_n_leaves()
    assert total <= (own.impurities + alpha * own.n_leaves).min() + 1e-12  # no subtree of the path is cheaper
    assert model.get_n_leaves() in own.n_leaves


def test_cart_chooses_a_small_tree_for_noise():
    X, _ = noisy(1, n=300)
    y = np.random.default_rng(2).integers(0, 2, 300)
    assert CART().fit(X, y).get_n_leaves() < 0.6 * DecisionTreeClassifier().fit(X, y).get_n_leaves()
    assert CART().fit(*load_iris(return_X_y=True)).get_n_leaves() >= 3


@pytest.mark.mission("TRE-22")
def test_rules_partition_the_space_and_predict_alike():
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = DecisionTreeClassifier(max_depth=4).fit(frame, y)
    hits = np.zeros(len(X), dtype=int)
    for rule in model.to_rules():
        inside = np.ones(len(X), dtype=bool)
        for condition in rule.conditions:
            name, sign, number = condition.split()
            # conditions are printed to six digits; no value of this table lies that close to a threshold
            inside &= (
                frame[name].to_numpy() <= float(number) if sign == "<=" else frame[name].to_numpy() > float(number)
            )
        hits += inside
        assert (model.predict(frame[inside]) == rule.label).all()
    assert (hits == 1).all()


@pytest.mark.mission("TRE-23")
def test_exports():
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    assert model.to_svg().count("<rect") == len(model.nodes_.child)
    assert model.to_html().count("<li>") == len(model.nodes_.child)
    assert model.to_text().count("\n") + 1 == len(model.nodes_.child) - 1


def test_unseen_levels_are_predicted_by_the_node():
    X = pd.DataFrame({"a": ["u", "v", "u", "v"], "b": ["p", "p", "q", "q"]})
    model = ID3().fit(X, ["x", "y", "x", "x"])
    assert model.predict(pd.DataFrame({"a": ["w"], "b": ["p"]}))[0] == "x"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"criterion": "luck"}, "criterion must be one of"),
        ({"max_depth": 0}, "max_depth must be an integer >= 1"),
        ({"nominal": [7]}, "nominal must list column positions"),
        ({"max_features": "most"}, "max_features must be"),
        ({"min_samples_leaf": 0}, "'min_samples_leaf' parameter must be an int in the range"),
    ],
)
def test_refusals(change, words):
    with pytest.raises(ValueError, match=words):
        DecisionTreeClassifier(**change).fit(*noisy(0))


def test_cost_complexity_needs_memory_for_rows_not_for_rows_times_nodes():
    import tracemalloc

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4_000, 2)), rng.integers(0, 2, 4_000)  # noise: a thousand leaves
    CART().fit(X[:500], y[:500])
    tracemalloc.start()
    CART(n_jobs=1).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6  # a number for each node and row held out would take 8e6

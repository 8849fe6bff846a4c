"""Trees whose values rise or fall with some columns: against scikit-learn's, by their definition, and refusals."""

import numpy as np
import pytest
from sklearn import tree as peer

from assay.tree import CART, DecisionTreeClassifier, DecisionTreeRegressor
from assay.tree.growth._absolute import median

SIGNS = np.array([1, -1, 0, 0])


def against_the_order(seed, n, digits=None):
    """Return rows and numbers that rise and fall with every column, so that constraints bind."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X = (X if digits is None else np.round(X, digits)).astype(np.float32).astype(np.float64)
    return X, np.sin(3 * X[:, 0]) + X[:, 0] / 2 + np.cos(2 * X[:, 1]) + X[:, 2] * X[:, 1] + 0.3 * rng.normal(size=n)


def same_tree(own, other, X):
    """Compare splits node by node, and the values on rows of training and between them."""
    waiting = [(0, 0)]
    while waiting:
        at, there = waiting.pop()
        inner = own.nodes_.child[at] >= 0
        assert inner == (other.tree_.children_left[there] >= 0)
        if inner:
            assert own.nodes_.column[at] == other.tree_.feature[there]
            assert own.nodes_.threshold[at] == pytest.approx(other.tree_.threshold[there], rel=1e-6, abs=1e-7)
            first = own.nodes_.child[at]
            waiting += [(first, other.tree_.children_left[there]), (first + 1, other.tree_.children_right[there])]
    name = "predict_proba" if hasattr(own, "predict_proba") else "predict"
    assert getattr(own, name)(X) == pytest.approx(getattr(other, name)(X), rel=1e-9, abs=1e-12)


def moves(model, X, column):
    """Return how the prediction changes along a grid of the column, the others as in the rows of X."""
    grid = np.linspace(X[:, column].min() - 1, X[:, column].max() + 1, 60)
    wide = np.repeat(X[:, None, :], len(grid), axis=1)
    wide[:, :, column] = grid
    flat = wide.reshape(-1, X.shape[1])
    values = model.predict_proba(flat)[:, 1] if hasattr(model, "predict_proba") else model.predict(flat)
    return np.diff(values.reshape(len(X), len(grid)), axis=1)


@pytest.mark.mission("TRE-14")
@pytest.mark.filterwarnings("ignore:Value .*friedman_mse")
@pytest.mark.parametrize("criterion", ["squared_error", "friedman_mse", "poisson"])
@pytest.mark.parametrize("more", [{}, {"max_leaf_nodes": 12}, {"max_depth": 4}])
@pytest.mark.parametrize("seed", range(3))
def test_regressor_grows_the_tree_of_scikit_learn(criterion, more, seed):
    X, y = against_the_order(seed, 300)
    y, more = y - y.min() + 1, {"min_samples_leaf": 8, **more}  # in small nodes several splits are equally good
    own = DecisionTreeRegressor(criterion=criterion, monotonic_cst=SIGNS, **more).fit(X, y)
    other = peer.DecisionTreeRegressor(criterion=criterion, monotonic_cst=SIGNS, random_state=0, **more).fit(X, y)
    same_tree(own, other, X)
    free = DecisionTreeRegressor(criterion=criterion, **more).fit(X, y)
    assert not np.array_equal(own.predict(X), free.predict(X))


@pytest.mark.mission("TRE-12")
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("digits", [1, None])  # few codes are counted, many are sorted
@pytest.mark.parametrize("seed", range(3))
def test_classifier_grows_the_tree_of_scikit_learn(criterion, digits, seed):
    X, y = against_the_order(seed, 600, digits)
    weight = np.random.default_rng(seed).integers(512, 2048, 600) / 1024  # ties are rare, and all sums exact
    more = {"criterion": criterion, "monotonic_cst": SIGNS, "min_samples_leaf": 15}
    own = DecisionTreeClassifier(**more).fit(X, y > 1, weight)
    same_tree(own, peer.DecisionTreeClassifier(random_state=0, **more).fit(X, y > 1, weight), X)


def worth(y, w, criterion):
    """Return the impurity times weight of a child, and its value."""
    mean = np.average(y, weights=w)
    if criterion == "gini":
        return w.sum() * 2 * mean * (1 - mean), mean
    middle = mean if criterion == "squared_error" else median(y, w)
    gap = np.abs(y - middle)
    return (w * (gap**2 if criterion == "squared_error" else gap)).sum(), middle


@pytest.mark.mission("TRE-12", "TRE-14")
@pytest.mark.parametrize("criterion", ["gini", "squared_error", "absolute_error"])
@pytest.mark.parametrize("seed", range(3))
def test_every_split_is_the_best_that_its_bounds_allow(criterion, seed):
    X, y = against_the_order(seed, 120, 1)
    y = (y > 1).astype(float) if criterion == "gini" else np.round(y, 1)
    w = np.random.default_rng(seed).integers(1, 4, 120).astype(float)
    make = DecisionTreeClassifier if criterion == "gini" else DecisionTreeRegressor
    nodes = make(criterion=criterion, monotonic_cst=SIGNS, min_samples_leaf=4).fit(X, y, w).nodes_
    refused, waiting = 0, [(0, np.arange(120), -np.inf, np.inf)]
    while waiting:
        at, rows, low, high = waiting.pop()
        impurity, value = worth(y[rows], w[rows], criterion)
        assert nodes.value[at, -1] == pytest.approx(min(max(value, low), high), abs=1e-12)
        costs = []
        for f in range(4):
            for t in np.unique(X[rows, f])[:-1]:
                left = X[rows, f] <= t
                (a, left_value), (b, right_value) = (worth(y[rows[s]], w[rows[s]], criterion) for s in (left, ~left))
                inside = all(low - 1e-12 <= v <= high + 1e-12 for v in (left_value, right_value))
                if min(left.sum(), (~left).sum()) >= 4:
                    fits = not SIGNS[f] or (inside and (left_value - right_value) * SIGNS[f] <= 1e-12)
                    refused += not fits
                    costs += [a + b] if fits else []
        if nodes.child[at] < 0:
            assert not costs or impurity < 1e-9 or min(costs) > impurity - 1e-9
            continue
        f, first = nodes.column[at], nodes.child[at]
        left = X[rows, f] <= nodes.threshold[at]
        (a, left_value), (b, right_value) = (worth(y[rows[s]], w[rows[s]], criterion) for s in (left, ~left))
        assert a + b == pytest.approx(min(costs), rel=1e-9, abs=1e-9)
        middle = (left_value + right_value) / 2
        parted = [[low, high], [low, high]]
        if SIGNS[f]:
            upper = int(SIGNS[f] > 0)  # a rising column bounds the left child from above
            parted[0][upper], parted[1][1 - upper] = middle, middle
        waiting += [(first, rows[left], *parted[0]), (first + 1, rows[~left], *parted[1])]
    assert refused > 0


@pytest.mark.mission("TRE-12")
def test_subtrees_on_threads_keep_the_bounds_of_the_top():
    X, y = against_the_order(4, 6000)
    more = {"monotonic_cst": SIGNS, "min_samples_leaf": 20}
    own = DecisionTreeRegressor(**more, n_jobs=2).fit(X, y)
    same_tree(own, peer.DecisionTreeRegressor(random_state=0, **more).fit(X, y), X)
    assert own.get_n_leaves() > 50


@pytest.mark.mission("TRE-12", "TRE-14")
@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize(
    ("make", "more"),
    [
        (DecisionTreeRegressor, {}),
        (DecisionTreeRegressor, {"criterion": "absolute_error", "max_features": 2}),
        (DecisionTreeRegressor, {"pruning": "cost_complexity"}),
        (DecisionTreeClassifier, {}),
        (DecisionTreeClassifier, {"max_features": 2, "class_weight": "balanced"}),
        (DecisionTreeClassifier, {"ccp_alpha": 0.002}),
        (DecisionTreeClassifier, {"pruning": "reduced_error"}),
    ],
)
def test_values_never_move_against_the_sign(splitter, make, more):
    X, y = against_the_order(5, 400)
    y = y if make is DecisionTreeRegressor else y > 1
    model = make(monotonic_cst=SIGNS, splitter=splitter, random_state=0, **more).fit(X, y)
    free = make(splitter=splitter, random_state=0, **more).fit(X, y)
    assert (moves(model, X[:60], 0) >= 0).all()
    assert (moves(model, X[:60], 1) <= 0).all()
    assert (moves(free, X, 0) < 0).any() or (moves(free, X, 1) > 0).any()


@pytest.mark.mission("TRE-12")
def test_signs_of_zero_constrain_nothing():
    X, y = against_the_order(6, 200)
    zero, free = DecisionTreeRegressor(monotonic_cst=[0] * 4).fit(X, y), DecisionTreeRegressor().fit(X, y)
    assert all(np.array_equal(zero.trees_[name], free.trees_[name]) for name in free.trees_)


@pytest.mark.mission("TRE-12")
def test_shares_sum_to_one_and_the_second_class_is_the_one_that_rises():
    X, y = against_the_order(7, 300)
    labels = np.where(y > 1, "high", "low")  # "low" is the second class
    model = DecisionTreeClassifier(monotonic_cst=[-1, 1, 0, 0]).fit(X, labels)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0, abs=1e-15)
    assert (moves(model, X[:60], 0) <= 0).all()
    assert (moves(model, X[:60], 1) >= 0).all()


@pytest.mark.parametrize("signs", [[1, 0], [[1, 0, 0, 0]], [2, 0, 0, 0], [0.5, 0, 0, 0], ["up", 0, 0, 0], 1])
def test_signs_of_another_shape_or_value_are_refused(signs):
    X, y = against_the_order(8, 30)
    with pytest.raises(ValueError, match="must hold -1, 0 or 1 for each of the 4 columns"):
        DecisionTreeRegressor(monotonic_cst=signs).fit(X, y)


def test_what_has_no_order_is_refused():
    X, y = against_the_order(9, 60)
    with pytest.raises(ValueError, match="second of two classes; y has 3"):
        DecisionTreeClassifier(monotonic_cst=SIGNS).fit(X, np.arange(60) % 3)
    gaps = X.copy()
    gaps[3, 2] = np.nan
    for model, rows in (
        (DecisionTreeClassifier(monotonic_cst=SIGNS, missing="fractional"), gaps),
        (DecisionTreeClassifier(monotonic_cst=SIGNS, nominal=[2]), np.round(X)),
        (DecisionTreeClassifier(monotonic_cst=SIGNS, criterion="gain_ratio"), X),
    ):
        with pytest.raises(ValueError, match="needs numeric columns"):
            model.fit(rows, y > 1)
    with pytest.raises(ValueError, match="counts errors by the shares"):
        DecisionTreeClassifier(monotonic_cst=SIGNS, pruning="pessimistic").fit(X, y > 1)
    assert "monotonic_cst" not in CART().get_params()

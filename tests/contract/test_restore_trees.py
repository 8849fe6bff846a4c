"""Trees and their ensembles are their class, their parameters and the arrays of their family: nothing else predicts."""

import numpy as np
import pytest
from sklearn.base import clone

from assay import ensemble, tree
from assay.linear_model import LogisticRegression, Ridge

NODES = (
    "tree_root_",
    "node_column_",
    "node_threshold_",
    "node_table_",
    "node_child_",
    "node_missing_",
    "node_value_",
    "node_weight_",
    "node_impurity_",
    "branch_tables_",
)
COMMON = ("n_features_in_", "classes_")
ENCODING = ("columns_",)
OBLIQUE = ("node_weights_", "node_threshold_", "node_child_", "node_value_")
MEMBERS = ("members_", "member_columns_")

CASES = [
    (tree.DecisionTreeClassifier(), NODES),
    (tree.DecisionTreeClassifier(nominal=[3], split="multiway", missing="fractional"), NODES),
    (tree.DecisionTreeRegressor(criterion="absolute_error", max_depth=4), NODES),
    (tree.ID3(nominal=[3]), NODES),
    (tree.C45(nominal=[3]), NODES),
    (tree.CART(), NODES),
    (tree.ObliqueTreeClassifier(), OBLIQUE),
    (tree.ObliqueTreeClassifier(routing="soft", max_depth=2, max_steps=5), OBLIQUE),
    (ensemble.RandomForestClassifier(5, random_state=0), NODES),
    (ensemble.RandomForestClassifier(5, voting="hard", nominal=[3], random_state=0), NODES),
    (ensemble.RandomForestRegressor(5, random_state=0), NODES),
    (ensemble.ExtraTreesClassifier(5, random_state=0), NODES),
    (ensemble.ExtraTreesRegressor(5, random_state=0), NODES),
    (ensemble.GradientBoostingClassifier(n_estimators=5), (*NODES, "base_score_")),
    (ensemble.GradientBoostingClassifier(n_estimators=5, nominal=[3], loss="exponential"), (*NODES, "base_score_")),
    (ensemble.GradientBoostingRegressor(n_estimators=5, loss="poisson"), (*NODES, "base_score_")),
    (ensemble.AdaBoostClassifier(n_estimators=5), (*NODES, "estimator_weights_")),
    (ensemble.AdaBoostClassifier(LogisticRegression(), n_estimators=3), ("members_", "estimator_weights_")),
    (ensemble.AdaBoostRegressor(n_estimators=5, random_state=0), (*NODES, "estimator_weights_")),
    (ensemble.AdaBoostRegressor(Ridge(), n_estimators=3, random_state=0), ("members_", "estimator_weights_")),
    (ensemble.LPBoost(n_estimators=5, tol=1e-2), (*NODES, "estimator_weights_")),
    (ensemble.BaggingClassifier(n_estimators=4, max_features=2, random_state=0), NODES),
    (ensemble.BaggingClassifier(LogisticRegression(), 4, max_features=2, random_state=0), MEMBERS),
    (ensemble.BaggingRegressor(n_estimators=4, random_state=0), NODES),
    (ensemble.RandomSubspaceClassifier(n_estimators=4, random_state=0), NODES),
    (ensemble.RandomSubspaceRegressor(Ridge(), 4, random_state=0), MEMBERS),
    (ensemble.ForestCommitteeClassifier(random_state=0), (*NODES, "committee_")),
]
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "member_votes")


def drawn(model, n, seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 2)
    X[:, 3] = rng.integers(0, 3, n)
    y = (X[:, 0] + X[:, 3] + 0.3 * rng.normal(size=n) > 1).astype(np.int64)
    holes = getattr(model, "nominal", None) is not None
    X[rng.random(X.shape) < 0.1 * holes] = np.nan
    return X, y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "arrays"), CASES, ids=lambda case: str(case).partition("(")[0][:40])
def test_class_parameters_and_arrays_are_the_whole_model(model, arrays):
    X, y = drawn(model, 150, 0)
    fresh, _ = drawn(model, 400, 1)
    fitted = clone(model).fit(X, y)
    again = clone(model)
    for name in (*arrays, *COMMON, *ENCODING):
        if hasattr(fitted, name):
            setattr(again, name, getattr(fitted, name))
    for method in METHODS:
        if hasattr(fitted, method):
            assert np.array_equal(getattr(fitted, method)(fresh), getattr(again, method)(fresh))
    if "tree_root_" in arrays and hasattr(fitted, "feature_importances_"):
        assert np.array_equal(fitted.feature_importances_, again.feature_importances_)


def test_stumps_of_adaboost_are_made_of_the_arrays():
    X, y = drawn(None, 200, 0)
    model = ensemble.AdaBoostClassifier(n_estimators=8).fit(X, y)
    votes = sum(a * (2.0 * m.predict(X) - 1) for a, m in zip(model.estimator_weights_, model.estimators_, strict=True))
    assert votes == pytest.approx(model.decision_function(X))
    model.node_value_[:] = model.node_value_[:, ::-1]
    assert not np.array_equal(np.sign(votes), np.sign(sum(m.predict(X) - 0.5 for m in model.estimators_)))


@pytest.mark.parametrize("nominal", [None, [3]])
def test_boosting_follows_its_thresholds(nominal):
    """The walk on derived bins is the walk by the node arrays, for values on and beside every threshold."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 4))
    X[:, 3] = rng.integers(0, 5, 3_000)
    X[rng.random(X.shape) < 0.05] = np.nan
    model = ensemble.GradientBoostingRegressor(n_estimators=40, nominal=nominal, random_state=0)
    model.fit(X, np.nan_to_num(X[:, 0] * X[:, 1]) + np.nan_to_num(X[:, 3]))
    edges = model.node_threshold_[(model.node_child_ >= 0) & (model.node_table_ < 0)]
    picked = rng.choice(np.concatenate([edges, np.nextafter(edges, np.inf), [np.nan]]), size=(300, 4))
    picked[:, 3] = rng.integers(0, 5, 300) if nominal else picked[:, 3]
    expected = np.full(300, model.base_score_[0])
    nodes = model.nodes_
    for i, row in enumerate(picked):
        for at in nodes.root:
            while nodes.child[at] >= 0:
                x = row[nodes.column[at]]
                if np.isnan(x):
                    branch = nodes.missing[at]
                elif nodes.table[at] >= 0:
                    branch = nodes.tables[nodes.table[at], int(x)]
                else:
                    branch = int(x > nodes.threshold[at])
                at = nodes.child[at] + branch
            expected[i] += nodes.value[at, 0]
    assert model.predict(picked) == pytest.approx(expected, rel=1e-12)
    many = np.sort(rng.normal(size=len(nodes.child)))  # more thresholds than bins of one byte can tell apart
    model.node_threshold_ = many
    other = tree.DecisionTreeRegressor().restored(nodes._replace(threshold=many), model, 4)
    sums = sum(other.restored(part, model, 4).predict(picked) for part in trees_of(model))
    assert model.predict(picked) == pytest.approx(model.base_score_[0] + sums, rel=1e-12)


def trees_of(model):
    from assay.tree._nodes import tree_at

    return [tree_at(model.nodes_, t) for t in range(len(model.tree_root_))]

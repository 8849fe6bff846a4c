"""Shapley values against their definition over all sets of columns, and against shap."""

import math
from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.svm import LinearSVC as PeerLinearSVC

import assay
from assay.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from assay.explain import shapley
from assay.linear_model import LogisticRegression, PoissonRegressor, Ridge
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor

X, Y = make_classification(200, 4, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
NUMBERS = make_regression(200, 4, noise=5.0, random_state=0)[1]
GAPS = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
TREES = {
    "tree": (DecisionTreeClassifier(max_depth=6, random_state=0), X, Y),
    "numbers": (DecisionTreeRegressor(max_depth=5, random_state=0), X, NUMBERS),
    "forest": (RandomForestClassifier(4, max_depth=4, random_state=0), X, Y),
    "extra": (ExtraTreesRegressor(3, max_depth=4, random_state=0), X, NUMBERS),
    "bagging": (BaggingRegressor(DecisionTreeRegressor(max_depth=3), 3, random_state=0), X, NUMBERS),
    "boosting": (GradientBoostingClassifier(n_estimators=3, random_state=0), X, Y),
    "huber": (GradientBoostingRegressor(n_estimators=3, loss="huber"), X, NUMBERS),
    "histogram": (HistGradientBoostingClassifier(max_iter=3), X, Y),
    "poisson": (HistGradientBoostingRegressor(max_iter=3, loss="poisson"), X, np.abs(NUMBERS)),
    "gaps": (HistGradientBoostingRegressor(max_iter=3), GAPS, NUMBERS),
    "gaps in a tree": (DecisionTreeRegressor(max_depth=4), GAPS, NUMBERS),
}


def by_definition(value, row, columns):
    """Sum over all sets of columns; `value(row, S)` is the mean prediction when those of S are the row's."""
    every = list(chain.from_iterable(combinations(range(columns), k) for k in range(columns + 1)))
    worth = {S: value(row, S) for S in every}
    phi = [0.0] * columns
    for S in every:
        for j in set(range(columns)) - set(S):
            weight = math.factorial(len(S)) * math.factorial(columns - 1 - len(S)) / math.factorial(columns)
            phi[j] = phi[j] + weight * (worth[tuple(sorted({*S, j}))] - worth[S])
    return np.array(phi), worth[()]


def said(model, rows):
    """What is attributed, from the model's own methods."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(rows)).reshape(len(rows), -1)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)
    values = np.asarray(model.predict(rows), dtype=float).reshape(len(rows), -1)
    return np.log(values) if getattr(model, "loss", "") == "poisson" else values


@pytest.mark.parametrize("name", sorted(TREES))
def test_against_a_background_values_are_their_definition(name):
    model, rows, target = TREES[name]
    model.fit(rows, target)
    background, asked = rows[50:57], rows[:3]

    def value(row, S):
        mixed = background.copy()
        mixed[:, list(S)] = row[list(S)]
        return said(model, mixed).mean(axis=0)

    told = shapley(model, asked, background)
    for i, row in enumerate(asked):
        phi, base = by_definition(value, row, 4)
        np.testing.assert_allclose(told.values[i], phi, atol=1e-9)
        np.testing.assert_allclose(told.base, base, atol=1e-9)
    np.testing.assert_allclose(told.predicted, said(model, asked), atol=1e-9)


def down(nodes, at, row, S):
    """The mean of a tree's values when rows lack the columns outside S, by the weights of the training rows."""
    if nodes.child[at] < 0:
        return nodes.value[at]
    column, first = nodes.column[at], nodes.child[at]
    weight = nodes.weight[first : first + 2]
    if column in S and not (math.isnan(row[column]) and nodes.missing[at] < 0):
        side = nodes.missing[at] if math.isnan(row[column]) else int(row[column] > nodes.threshold[at])
        return down(nodes, first + side, row, S)
    return sum(w * down(nodes, first + k, row, S) for k, w in enumerate(weight / weight.sum()))


@pytest.mark.parametrize("name", sorted(TREES))
def test_by_the_weights_of_branches_values_are_their_definition(name):
    model, rows, target = TREES[name]
    model.fit(rows, target)
    nodes, boosted = model.nodes_, hasattr(model, "base_score_")
    told = shapley(model, rows[:3])
    outputs = told.values.shape[2]

    def value(row, S):
        trees = np.array([down(nodes, root, row, set(S)) for root in nodes.root])
        if not boosted:
            return trees.mean(axis=0)
        return model.base_score_ + trees.reshape(-1, outputs).sum(axis=0)

    for i, row in enumerate(rows[:3]):
        phi, base = by_definition(value, row, 4)
        np.testing.assert_allclose(told.values[i], phi, atol=1e-9)
        np.testing.assert_allclose(told.base, base, atol=1e-9)


@pytest.mark.parametrize(
    "model", [Ridge(), LogisticRegression(), PoissonRegressor()], ids=lambda model: type(model).__name__
)
def test_values_of_linear_models_are_their_definition(model):
    target = {"LogisticRegression": Y, "Ridge": NUMBERS}.get(type(model).__name__, np.abs(NUMBERS))
    model.fit(X, target)
    background = X[50:58]

    def value(row, S):
        mixed = background.copy()
        mixed[:, list(S)] = row[list(S)]
        scores = said(model, mixed)
        return (np.log(scores) if isinstance(model, PoissonRegressor) else scores).mean(axis=0)

    told = shapley(model, X[:2], background)
    for i, row in enumerate(X[:2]):
        phi, base = by_definition(value, row, 4)
        np.testing.assert_allclose(told.values[i], phi, atol=1e-9)
        np.testing.assert_allclose(told.base, base, atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [DecisionTreeClassifier(max_depth=4), HistGradientBoostingClassifier(max_iter=5)],
    ids=lambda m: type(m).__name__,
)
def test_levels_and_unknown_ones(model):
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", "z", "x"] * 50), "b": X[:, 0]})
    model.fit(frame, Y > 0)
    asked = frame[:8].assign(a=pd.Categorical(["w", *frame["a"][1:8]]))  # a level that the fit has not met
    background = frame[100:120]

    def value(row, S):
        mixed = background.assign(**{name: [row[name]] * 20 for k, name in enumerate(frame) if k in S})
        return said(model, mixed.astype({"a": "category"})).mean(axis=0)

    told = shapley(model, asked, background)
    for i in range(3):
        phi, base = by_definition(value, asked.iloc[i], 2)
        np.testing.assert_allclose(told.values[i], phi, atol=1e-9)
        np.testing.assert_allclose(told.base, base, atol=1e-9)


@pytest.mark.parametrize("name", ["tree", "forest", "histogram", "huber", "extra"])
def test_shap_says_the_same_of_scikit_learns_form(name):
    shap = pytest.importorskip("shap")
    model, rows, target = TREES[name]
    model.fit(rows, target)
    for form in [model.to_sklearn(), *([model] if name in ("forest", "histogram") else [])]:
        explainer = shap.TreeExplainer(form, feature_perturbation="tree_path_dependent")
        peer = np.asarray(explainer.shap_values(rows[:10], check_additivity=False))
        np.testing.assert_allclose(shapley(model, rows[:10]).values, peer.reshape(10, 4, -1), atol=1e-6)


def test_threads_change_no_bit():
    model = RandomForestClassifier(10, random_state=0).fit(X, Y)
    one, two = (shapley(model, X[:20], X[50:60], n_jobs=k) for k in (1, 2))
    assert all(np.array_equal(first, second) for first, second in zip(one, two))


def test_what_has_no_exact_values_is_refused():
    ridge = Ridge().fit(X, NUMBERS)
    with pytest.raises(ValueError, match="need a background"):
        shapley(ridge, X[:2])
    with pytest.raises(ValueError, match="4 columns"):
        shapley(ridge, X[:2, :3], X)
    with pytest.raises(ValueError, match="at least one row"):
        shapley(ridge, X[:2], X[:0])
    with pytest.raises(ValueError, match="no sum or mean"):
        shapley(AdaBoostClassifier(n_estimators=3).fit(X, Y), X[:2])
    with pytest.raises(ValueError, match="linear models and for models made of trees"):
        shapley(BaggingRegressor(Ridge(), 2).fit(X, NUMBERS), X[:2])
    peer = PeerLinearSVC().fit(X, Y)
    np.testing.assert_allclose(shapley(peer, X[:2], X).predicted, peer.decision_function(X[:2]))


@pytest.mark.parametrize("name", ["Ridge", "RandomForestRegressor", "HistGradientBoostingRegressor"])
def test_columns_of_a_table_have_values_with_all_that_is_encoded_of_them(name):
    random = np.random.default_rng(0)
    age, size, job = random.normal(40, 10, 300), random.normal(size=300), random.choice(["cook", "clerk", "smith"], 300)
    age[random.random(300) < 0.1] = np.nan
    frame = pd.DataFrame({"age": age, "job": job, "size": size})
    target = np.nan_to_num(age, nan=30.0) / 10 + 2 * (job == "cook") * size
    study = assay.learn(frame.assign(y=target), "y", learners=[name], trials=1, workers=0)
    model = study.model
    background, asked = frame[100:110].reset_index(drop=True), frame[:2]

    def value(row, S):
        mixed = background.assign(**{column: [row[column]] * 10 for k, column in enumerate(frame) if k in S})
        return said(model.learner, model.encode(mixed, lenient=True)[0]).mean(axis=0)

    told = shapley(model, asked, background)
    assert [column.name for column in model.columns] == list(frame)
    for i in range(2):
        phi, base = by_definition(value, asked.iloc[i], 3)
        np.testing.assert_allclose(told.values[i], phi, atol=1e-8)
        np.testing.assert_allclose(told.base, base, atol=1e-8)

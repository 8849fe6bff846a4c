"""Figures of trees and ensembles: the numbers behind them by hand, and that every figure draws."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from assay import plot
from assay.ensemble import AdaBoostClassifier, BaggingClassifier, LPBoost, RandomForestClassifier
from assay.linear_model import LinearRegression
from assay.plot import tree_frames as frames
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor, ObliqueTreeClassifier

LI = np.arange(10.0)[:, None], np.array([1, 1, 1, -1, -1, -1, 1, 1, 1, -1])


@pytest.fixture(scope="module")
def forest():
    X, y = load_iris(return_X_y=True)
    return RandomForestClassifier(12, oob_score=True, random_state=0).fit(X, y), X, y


def test_tree_picture_by_hand():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [3.0, 1.0]])
    frame = frames.tree(DecisionTreeClassifier().fit(X, ["a", "b", "b", "c"]))
    leaves = np.flatnonzero(frame["leaf"])
    assert sorted(frame["x"][leaves]) == list(range(len(leaves)))
    assert sorted(frame["text"][i] for i in leaves) == ["a", "b", "c"]
    for parent in {edge[0] for edge in frame["edges"]}:
        ends = [child for at, child, _ in frame["edges"] if at == parent]
        assert frame["x"][parent] == frame["x"][ends].mean()
        assert set(frame["depth"][ends]) == {frame["depth"][parent] + 1}
    conditions = {text for _, _, text in frame["edges"]}
    assert "x1 <= 0.5" in conditions
    assert len(frame["edges"]) == len(frame["x"]) - 1


def test_trees_of_ensembles_and_oblique_trees(forest):
    model, X, y = forest
    for member in (0, 11):
        frame = frames.tree(model, member)
        bounds = np.append(model.nodes_.root, len(model.nodes_.child))
        assert len(frame["x"]) == bounds[member + 1] - bounds[member]
    with pytest.raises(ValueError, match=r"one of 0\.\.11; got 12"):
        frames.tree(model, 12)
    oblique = ObliqueTreeClassifier(max_depth=2).fit(X, y)
    assert frames.tree(oblique)["leaf"].sum() == oblique.get_n_leaves()
    with pytest.raises(ValueError, match="no tree"):
        frames.tree(LinearRegression().fit(X, y))


def test_importance_is_sorted_and_named(forest):
    model = forest[0]
    frame = frames.importance(model, names=list("abcd"), limit=3)
    order = np.argsort(-model.feature_importances_)[:3]
    assert frame["names"] == [list("abcd")[j] for j in order]
    assert frame["values"].tolist() == model.feature_importances_[order].tolist()
    with pytest.raises(ValueError, match="2 names for 4"):
        frames.importance(model, names=["a", "b"])


def test_out_of_bag_curve_is_that_of_the_fit(forest):
    model, X, y = forest
    frame = frames.out_of_bag(model)
    assert frame["error"][-1] == pytest.approx(1 - model.oob_score_)
    assert frame["members"][-1] == 12
    with pytest.raises(ValueError, match="oob_score=True"):
        frames.out_of_bag(RandomForestClassifier(2).fit(X, y))


def test_margins_by_hand(forest):
    boosted = AdaBoostClassifier(n_estimators=3, stump="error").fit(*LI)
    by_hand = np.sort(LI[1] * boosted.decision_function(LI[0]) / 2)  # scikit-learn's scale: from -2 to 2
    assert frames.margins(boosted)["margin"] == pytest.approx(by_hand)
    assert frames.margins(boosted, *LI)["margin"] == pytest.approx(by_hand)
    model, X, y = forest
    votes = model.member_votes(X)
    counts = np.stack([(votes == k).sum(axis=1) for k in range(3)], axis=1) / 12
    expected = [counts[i, y[i]] - max(counts[i, k] for k in range(3) if k != y[i]) for i in range(len(y))]
    assert frames.margins(model, X, y)["margin"] == pytest.approx(np.sort(expected))
    assert frames.margins(LPBoost(nu=0.0).fit(*LI))["margin"][0] == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="pass X and y"):
        frames.margins(model)
    with pytest.raises(ValueError, match="is no vote"):
        frames.margins(DecisionTreeClassifier().fit(X, y), X, y)


def test_row_weights_are_those_of_the_example_of_li():
    model = AdaBoostClassifier(n_estimators=3, stump="error").fit(*LI)
    weights = frames.row_weights(model, *LI)["weights"]
    assert weights[0] == pytest.approx([0.1] * 10)
    assert weights[1] == pytest.approx([0.0714] * 6 + [0.1667] * 3 + [0.0714], abs=1e-4)
    # Li, Statistical Learning Methods, example 8.1: 0.0455 x 3, 0.1667 x 3, 0.1060 x 3, 0.0455
    assert weights[2] == pytest.approx([0.0455] * 3 + [0.1667] * 3 + [0.1061] * 3 + [0.0455], abs=1e-4)
    assert weights[3] == pytest.approx(model.sample_weights_)
    assert weights.sum(axis=1) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="the 10 training rows"):
        frames.row_weights(model, LI[0][:5], LI[1][:5])
    with pytest.raises(ValueError, match="AdaBoostClassifier does"):
        frames.row_weights(LPBoost().fit(*LI), *LI)


@pytest.mark.usefixtures("nothing_shown")
def test_every_figure_draws_and_none_is_shown(forest, tmp_path):
    model, X, y = forest
    boosted = AdaBoostClassifier(n_estimators=8).fit(*load_breast_cancer(return_X_y=True))
    bag = BaggingClassifier(n_estimators=6, oob_score=True, random_state=0).fit(X, y)
    drawn = [
        plot.tree(model, 3),
        plot.tree(DecisionTreeRegressor(max_depth=2).fit(X, y)),
        plot.tree(ObliqueTreeClassifier().fit(X, y)),
        plot.importance(model),
        plot.importance(bag, bag.permutation_importances(X, y, random_state=0)),
        plot.out_of_bag(bag),
        plot.margins(model, X, y),
        plot.row_weights(boosted, *load_breast_cancer(return_X_y=True)),
        plot.boundary(ObliqueTreeClassifier().fit(X[:, :2], y), X[:, :2], y),
        plot.boundary(RandomForestClassifier(5, random_state=0).fit(X[:, 2:], y), X[:, 2:], y),
        model.plot(),
    ]
    for figure in drawn:
        figure.savefig(tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 5_000
        assert all(axes.has_data() for axes in figure.axes)
    rng = np.random.default_rng(0)
    deep = DecisionTreeClassifier().fit(rng.normal(size=(400, 2)), rng.integers(0, 2, 400))
    frame = frames.tree(deep, most=20)
    assert 2 < frame["leaf"].sum() <= 20 < deep.get_n_leaves()
    assert frame["cut"].any()
    assert sorted(child for _, child, _ in frame["edges"]) == list(range(1, len(frame["leaf"])))
    assert sorted(frame["x"][frame["leaf"]]) == list(range(frame["leaf"].sum()))
    assert any("…" in text.get_text() for text in plot.tree(deep).axes[0].texts)

"""Figures of ensembles, rejection and costs show the numbers of the functions that they are about."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from assay.ensemble import RandomForestClassifier, VotingClassifier
from assay.imbalance import CostClassifier
from assay.linear_model import LogisticRegression
from assay.metrics.diversity import MEASURES, kappa_error, pairwise
from assay.multiclass import OneVsOneClassifier, OutputCodeClassifier
from assay.plot import code_matrix, costs, diversity_matrices, kappa_errors, rejection, trees
from assay.tree import DecisionTreeClassifier

pytest.importorskip("matplotlib")
X, Y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


def test_kappa_error_diagram():
    A, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(6, max_depth=2, random_state=0).fit(A, y)
    points = kappa_errors(model, A, y).axes[0].collections[0].get_offsets()
    found = kappa_error(model, A, y)
    assert np.asarray(points) == pytest.approx(np.column_stack([found.kappa, found.error]))


def test_matrices_of_diversity():
    A, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(5, max_depth=2, random_state=0).fit(A, y)
    found = pairwise(model, A, y)
    figure = diversity_matrices(model, A, y)
    panels = [axes for axes in figure.axes if axes.get_xlabel() == "member"]
    assert [axes.get_title().split(",")[0] for axes in panels] == list(MEASURES)
    for axes, name in zip(panels, MEASURES):
        np.testing.assert_array_equal(axes.images[0].get_array().filled(np.nan), getattr(found, name))


def test_code_matrix():
    A, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for model in (OneVsOneClassifier(), OutputCodeClassifier(code="exhaustive")):
        model.fit(A, names)
        axes = code_matrix(model).axes[0]
        assert np.array_equal(axes.images[0].get_array(), model.code_)
        assert [label.get_text() for label in axes.get_yticklabels()] == ["setosa", "versicolor", "virginica"]
    assert f"distance {model.distance_}" in axes.get_title()


@pytest.mark.mission("ENS-49")
def test_error_against_coverage():
    members = [(f"tree{k}", DecisionTreeClassifier(max_depth=2, max_features=3, random_state=k)) for k in range(7)]
    model = VotingClassifier(members, rule="majority").fit(X[:300], Y[:300])
    frame = trees.rejection_frame(model, X[300:], Y[300:])
    assert frame["coverage"][0] == 1
    assert np.all(np.diff(frame["coverage"]) <= 0)
    assert np.all(frame["limit"] >= frame["error"])
    share = model.vote_shares(X[300:]).max(axis=1)
    at = int(np.searchsorted(frame["threshold"], 0.75))
    decided = share > 0.75
    wrong = model.classes_[model.vote_shares(X[300:]).argmax(axis=1)] != Y[300:]
    assert frame["coverage"][at] == pytest.approx(decided.mean())
    assert frame["error"][at] == pytest.approx(wrong[decided].mean())
    axes = rejection(model, X[300:], Y[300:]).axes[0]
    assert np.array_equal(axes.lines[0].get_xdata(), frame["coverage"])


def test_cost_against_threshold_with_its_band():
    model = CostClassifier(LogisticRegression(), [[0, 1], [5, 0]], choose="holdout", random_state=0).fit(
        X[:300], Y[:300]
    )
    axes = costs(model, X[300:], Y[300:]).axes[0]
    curve = model.cost_curve(X[300:], Y[300:])
    assert np.array_equal(axes.lines[0].get_ydata(), curve.cost)
    assert np.array_equal(axes.lines[1].get_ydata(), curve.limit)
    assert axes.lines[2].get_xdata()[0] == model.threshold_

"""Plots: the numbers behind each figure against other computations, and that every figure draws."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import rc_context
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import confusion_matrix
from sklearn.preprocessing import StandardScaler

from assay import plot
from assay.linear_model import LinearRegression, LogisticRegression, Perceptron
from assay.plot import frames


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return LogisticRegression().fit(X, y), X, y


@pytest.fixture(scope="module")
def plane():
    """Two blobs that x0 + x1 = 4 separates, with the nearest rows at distance sqrt(2) on both sides."""
    X = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [3.0, 3.0], [4.0, 3.0], [5.0, 5.0]])
    y = np.array(["a", "a", "a", "b", "b", "b"])
    model = Perceptron().fit(X, y)
    model.coef_, model.intercept_ = np.array([[2.0, 2.0]]), np.array([-8.0])
    return model, X, y


def test_calibration_agrees_with_scikit_learn(cancer):
    model, X, y = cancer
    frame = frames.calibration(model, X, y, bins=8)
    observed, predicted = calibration_curve(y, model.predict_proba(X)[:, 1], n_bins=8)
    np.testing.assert_allclose(frame["observed"], observed, rtol=1e-12)
    np.testing.assert_allclose(frame["predicted"], predicted, rtol=1e-12)
    assert frame["rows"].sum() == len(y)


def test_calibration_of_three_classes_is_that_of_the_predicted_class():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression().fit(X, y)
    frame = frames.calibration(model, X, y, bins=5)
    hits = frame["observed"] @ frame["rows"]
    assert hits == pytest.approx((model.predict(X) == y).sum())
    assert frame["predicted"] @ frame["rows"] == pytest.approx(model.predict_proba(X).max(axis=1).sum())


def test_confusion_agrees_with_scikit_learn(cancer):
    model, X, y = cancer
    np.testing.assert_array_equal(frames.confusion(model, X, y)["counts"], confusion_matrix(y, model.predict(X)))


def test_residuals_of_least_squares_sum_to_zero():
    X, y = load_diabetes(return_X_y=True)
    frame = frames.residuals(LinearRegression().fit(X, y), X, y)
    assert abs(frame["residual"].sum()) < 1e-8 * np.abs(y).sum()
    np.testing.assert_allclose(frame["predicted"] + frame["residual"], y, rtol=1e-12)


def test_coefficients_come_largest_first_with_their_names(cancer):
    model = cancer[0]
    names = [f"column {j}" for j in range(30)]
    frame = frames.coefficients(model, names, limit=5)
    order = sorted(range(30), key=lambda j: -abs(model.coef_[0, j]))[:5]
    assert frame["names"] == [names[j] for j in order]
    np.testing.assert_array_equal(frame["values"][:, 0], model.coef_[0, order])
    with pytest.raises(ValueError, match="2 names for 30 coefficients"):
        frames.coefficients(model, ["a", "b"])


def test_history_is_that_of_the_fit(cancer):
    model = cancer[0]
    frame = frames.history(model)
    assert frame["objective"].tolist() == [step.objective for step in model.history_]
    assert frame["iteration"].tolist() == list(range(1, len(model.history_) + 1))


def test_boundary_and_margin_by_hand(plane):
    """The line x0 + x1 = 4; (1, 1) and (3, 3) are the nearest rows, at distance 2 / sqrt(2)."""
    frame = frames.boundary(*plane)
    np.testing.assert_allclose(frame["normal"], [np.sqrt(0.5)] * 2)
    assert frame["offset"] == pytest.approx(-4 / np.sqrt(2))
    assert frame["margin"] == pytest.approx(2 / np.sqrt(2))
    horizontal, vertical = np.meshgrid(frame["x"], frame["y"])
    np.testing.assert_array_equal(frame["codes"], (horizontal + vertical > 4).astype(int))


def test_margin_lines_when_a_row_is_on_the_wrong_side(plane):
    model, X, y = plane
    frame = frames.boundary(model, X, y[::-1])
    assert frame["margin"] == pytest.approx(1 / np.linalg.norm(model.coef_))


@pytest.mark.usefixtures("nothing_shown")
def test_every_figure_draws_and_none_is_shown(cancer, plane, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    drawn = [
        plot.history(cancer[0]),
        plot.calibration(*cancer),
        plot.confusion(*cancer),
        plot.coefficients(cancer[0]),
        plot.residuals(LinearRegression().fit(X, y), X, y),
        plot.boundary(*plane),
        cancer[0].plot(),
        LinearRegression().fit(X, y).plot(),
    ]
    for figure in drawn:
        figure.savefig(tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 5_000
        assert all(axes.has_data() for axes in figure.axes)


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("label", ["$x_{$", "a$b", "$a$", "<b>", "长" * 40, ""])
def test_labels_are_drawn_as_text(label, plane, tmp_path):
    """Each label stands in the picture twice, sign by sign: nothing is read as mathematics or as a tag."""
    _, X, y = plane
    named = np.where(y == "a", label, label + "!")
    with rc_context({"svg.fonttype": "none"}):
        plot.confusion(Perceptron().fit(X, named), X, named).savefig(tmp_path / "figure.svg")
    drawn = [node.text for node in ElementTree.parse(tmp_path / "figure.svg").iter() if node.tag.endswith("}text")]
    for text in {label, label + "!"} - {""}:
        shown = text if len(text) <= 16 else text[:15] + "…"
        assert drawn.count(shown) == (4 if len(text) > 16 else 2)


def test_what_cannot_be_drawn_says_why(cancer, monkeypatch):
    _, X, y = cancer
    with pytest.raises(ValueError, match="no probabilities"):
        plot.calibration(Perceptron(max_iter=5).fit(X, y), X, y)
    with pytest.raises(ValueError, match="two features"):
        plot.boundary(*cancer)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install"):
        plot.confusion(*cancer)

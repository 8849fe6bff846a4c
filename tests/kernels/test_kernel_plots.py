"""Figures of kernel machines draw what their frames hold; the example runs and says what it should."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

from assay import plot
from assay.decomposition import KernelPCA
from assay.discriminant_analysis import KernelDiscriminantAnalysis, LinearDiscriminantAnalysis
from assay.kernel_model import KernelLogisticRegression, KernelPerceptron
from assay.kernels import Gaussian
from assay.plot import frames
from assay.svm import SVC
from assay.textbook.svm import intertwined_curves
from examples import two_curves


def test_support_vectors_lie_on_the_margin_or_violate_it():
    X, y = make_moons(150, noise=0.2, random_state=0)
    model = SVC(C=1.0, gamma=1.0, tol=1e-6).fit(X, y)
    frame = frames.support_vectors(model, X, y)
    np.testing.assert_array_equal(frame["support"], X[model.support_])
    bounded = np.abs(model.dual_coef_[0]) > 1 - 1e-9
    assert (frame["violated"] <= bounded).all()
    assert frame["violated"].sum() > 0
    assert frame["scores"][3, 5] == pytest.approx(model.decision_function([[frame["x"][5], frame["y"][3]]])[0])
    axes = plot.support_vectors(model, X, y).axes[0]
    assert f"{len(model.support_)} of 150 rows" in axes.get_title()
    assert {"support vector", "inside the margin"} <= {text.get_text() for text in axes.get_legend().get_texts()}


def test_support_vectors_of_more_classes_and_of_none():
    X, y = load_iris(return_X_y=True)
    X = X[:, :2]
    frame = frames.support_vectors(SVC().fit(X, y), X, y, steps=20)
    assert "scores" not in frame
    assert plot.support_vectors(SVC().fit(X, y), X, y).axes
    with pytest.raises(ValueError, match="LinearDiscriminantAnalysis: has no support vectors"):
        plot.support_vectors(LinearDiscriminantAnalysis().fit(X, y), X, y)


def test_gap_against_time():
    X, y = make_moons(150, noise=0.2, random_state=0)
    models = {"logistic": KernelLogisticRegression(C=100.0).fit(X, y), "machine": SVC(C=100.0).fit(X, y)}
    frame = frames.dual_gap(models)
    for name, model in models.items():
        np.testing.assert_array_equal(frame[name]["violation"], [step.violation for step in model.history_])
        assert frame[name]["excess"].min() == 0
        assert (np.diff(frame[name]["seconds"]) >= 0).all()
    lines = plot.dual_gap(models).axes[1].get_lines()
    np.testing.assert_array_equal(lines[0].get_ydata(), frame["logistic"]["violation"])


def test_alphas_are_counted():
    X, y = make_moons(150, noise=0.2, random_state=0)
    model = SVC(C=2.0, gamma=1.0).fit(X, y)
    frame = frames.alphas(model)
    alpha = np.abs(model.dual_coef_[0])
    assert frame["zero"] == 150 - len(model.support_)
    assert frame["bound"] == np.sum(alpha == 2.0)
    assert frame["counts"].sum() == len(alpha)
    assert frame["edges"][-1] == 2.0
    assert f"{frame['zero']} more are zero" in plot.alphas(model).axes[0].get_title()
    free = frames.alphas(KernelPerceptron(gamma=5.0, random_state=0).fit(X, y), n_rows=150)
    assert np.isinf(free["C"])
    assert free["bound"] == 0
    with pytest.raises(ValueError, match="no dual variables"):
        plot.alphas(LinearDiscriminantAnalysis().fit(X, y))


def test_a_model_without_history_or_coefficients_shows_its_dual_variables():
    X, y = make_moons(60, noise=0.2, random_state=0)
    for model in (KernelDiscriminantAnalysis(), KernelPCA(2, kernel="rbf")):
        assert "Dual variables" in model.fit(X, y).plot().axes[0].get_title()


@pytest.mark.mission("KER-91")
def test_kernel_matrix_of_two_curves_is_block_diagonal():
    X, y = intertwined_curves(0.25, 3.0, 60.0)
    mixed = np.random.default_rng(0).permutation(len(y))
    kernel = Gaussian.of_width(0.3)
    frame = frames.kernel_matrix(kernel, X[mixed], y[mixed])
    half = len(y) // 2
    assert frame["borders"].tolist() == [0, half, 2 * half]
    nearest = np.linalg.norm(X[:half, None] - X[None, half:], axis=2).min()
    assert frame["across"][0, 1] == pytest.approx(np.exp(-(nearest**2) / (2 * 0.3**2)), rel=1e-6)
    assert frame["across"].diagonal().tolist() == [1.0, 1.0]
    assert np.all(y[mixed][frame["order"]] == np.repeat([-1.0, 1.0], half))
    assert "largest value between classes" in plot.kernel_matrix(kernel, X, y).axes[0].get_title()


@pytest.mark.mission("KER-90", "KER-76")
def test_example_of_two_curves(capsys, tmp_path):
    two_curves.main(str(tmp_path))
    said = capsys.readouterr().out
    counts = two_curves.errors(*two_curves.spirals(60))
    assert counts.pop("straight line") > 20
    assert set(counts.values()) == {0}
    assert "kernel perceptron: 0 errors on 200 rows, certificate checked" in said
    assert len(list(tmp_path.glob("two_curves_*.png"))) == 4

"""Discriminant analysis as reduction: scikit-learn's subspace, and one column with a threshold."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as Peer
from sklearn.pipeline import make_pipeline

from assay.discriminant_analysis import LinearDiscriminantAnalysis

EXAMPLE = Path(__file__).parents[2] / "examples" / "projection.py"


def programme():
    spec = importlib.util.spec_from_file_location("projection", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.mission("DEC-05")
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_projection_to_classes_less_one_spans_the_peer_subspace(load):
    X, y = load(return_X_y=True)
    ours, peer = LinearDiscriminantAnalysis().fit(X, y), Peer(solver="eigen").fit(X, y)
    found, expected = ours.transform(X), peer.transform(X)
    assert found.shape == expected.shape == (len(X), 2)
    assert np.max(subspace_angles(ours.scalings_, peer.scalings_[:, :2])) < 1e-6
    middle = found - found.mean(axis=0)
    assert np.max(subspace_angles(middle, expected - expected.mean(axis=0))) < 1e-6
    one = LinearDiscriminantAnalysis(n_components=1).fit(X, y)
    np.testing.assert_allclose(one.transform(X), found[:, :1])


@pytest.mark.mission("DEC-06")
@pytest.mark.parametrize("d", [2, 30])
def test_one_column_and_a_threshold_decide_as_the_classifier_does(d):
    module = programme()
    X, y = module.clouds(600, d, seed=5)
    new, truth = module.clouds(2_000, d, seed=6)
    y, truth = np.array(["a", "b"])[y], np.array(["a", "b"])[truth]
    model = LinearDiscriminantAnalysis(n_components=1).fit(X, y)
    cut = module.projection(model)
    sure = np.abs(model.decision_function(new)) > 1e-9
    np.testing.assert_array_equal(cut.predict(new)[sure], model.predict(new)[sure])
    piped = make_pipeline(LinearDiscriminantAnalysis(n_components=1), LinearDiscriminantAnalysis()).fit(X, y)
    assert piped.score(new, truth) == pytest.approx(model.score(new, truth), abs=1e-3)
    assert model.score(new, truth) > 0.85


def test_the_example_runs(capsys):
    programme().main(300, 10)
    assert "the same decision on 1.0000 of them" in capsys.readouterr().out

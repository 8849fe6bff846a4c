"""The page, the example and the figures of nearest neighbours run."""

import doctest
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from assay import plot
from assay.neighbors import KNeighborsClassifier, KNeighborsRegressor
from assay.plot.clusters import neighbor_frame

HOME = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "name",
    [
        "theory.neighbors",
        "metrics.distance",
        "neighbors._k_neighbors",
        "neighbors._lvq",
        "neighbors._radius",
    ],
)
def test_docstring_examples(name):
    outcome = doctest.testmod(import_module(f"assay.{name}"))
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_the_example(tmp_path, capsys):
    space: dict = {"__name__": "example"}
    exec((HOME / "examples" / "nearest.py").read_text(encoding="utf-8"), space)
    space["main"](str(tmp_path / "regions.png"))
    assert (tmp_path / "regions.png").stat().st_size > 1000
    said = capsys.readouterr().out
    assert "training error 0.000" in said  # one neighbour
    assert said.count("certified at most") == 4


def test_figures():
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = KNeighborsRegressor(4).fit(X, X[:, 0])
    frame = neighbor_frame(model)
    assert np.allclose(frame["distance"], np.sort(model.kneighbors()[0][:, -1]))
    assert frame["share"][-1] == 1.0
    assert len(plot.neighbor_distances(model).axes) == 1
    flat = KNeighborsClassifier(3).fit(X[:, :2], X[:, 0] > 0)
    assert flat.plot().axes[0].get_title() == "Decision boundary"
    assert model.plot().axes[0].get_title() == "How near neighbours are"

"""Docstrings, the page about networks, the example and the figures."""

import doctest
import importlib.util
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_moons

from assay import plot
from assay.linear_model import LinearRegression
from assay.neural_network import MLPClassifier, MLPRegressor, hidden_units_by_trial
from assay.plot.networks import loss_frame

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", ["_multilayer_perceptron", "units"])
def test_docstring_examples(name):
    outcome = doctest.testmod(import_module(f"assay.neural_network.{name}"))
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.mark.mission("NNW-15", "NNW-26")
def test_the_example(capsys, tmp_path):
    spec = importlib.util.spec_from_file_location("approximation", ROOT / "examples" / "approximation.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(str(tmp_path / "curves.png"))
    lines = capsys.readouterr().out.splitlines()
    for kind in ("hidden units", "bells"):
        errors = [float(line.split()[-1]) for line in lines if kind in line]
        assert errors == sorted(errors, reverse=True)
        assert len(errors) == 4
        assert errors[-1] < 0.02
    assert (tmp_path / "curves.png").stat().st_size > 0


def test_the_example_of_maps(capsys, tmp_path):
    spec = importlib.util.spec_from_file_location("maps", ROOT / "examples" / "maps.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(str(tmp_path))
    told = capsys.readouterr().out
    assert "100% of L and O stayed" in told
    assert float(told.split("topographic error ")[1].split(",")[0]) < 0.1
    assert float(told.split("probability ")[1].split()[0]) > 0.9
    assert (tmp_path / "map.png").stat().st_size > 0
    assert (tmp_path / "filters.png").stat().st_size > 0


def test_figures(tmp_path):
    X, y = make_moons(120, noise=0.2, random_state=0)
    stopped = MLPClassifier(8, early_stopping=True, max_iter=20, random_state=0).fit(X, y)
    frame = loss_frame(stopped)
    assert frame["loss"].tolist() == stopped.loss_curve_
    assert frame["score"][frame["kept"] - 1] == stopped.best_validation_score_
    plain = MLPRegressor(hidden_layer_sizes=3, max_iter=5, random_state=0).fit(X, y)
    assert set(loss_frame(plain)) == {"epoch", "loss"}
    found = hidden_units_by_trial(MLPClassifier(solver="lbfgs", max_iter=20, random_state=0), X, y, (2, (3, 3)))
    drawn = (plot.loss_curve(stopped), plot.loss_curve(plain), plot.trial(found, "units"), plot.boundary(stopped, X, y))
    for k, figure in enumerate((*drawn, stopped.plot())):
        figure.savefig(tmp_path / f"{k}.png")
        assert (tmp_path / f"{k}.png").stat().st_size > 0
    assert len(drawn[2].axes[0].get_xticks()) == 2
    with pytest.raises(ValueError, match="keeps no loss curve"):
        plot.loss_curve(LinearRegression().fit(X, np.arange(120.0)))

"""The examples of linear models run and say what they should; figures draw what their frames hold."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from assay import plot
from assay.discriminant_analysis import LinearDiscriminantAnalysis
from assay.linear_model import elastic_net_path
from assay.optim.descent import Rule, Schedule, Stop, descend
from assay.plot import frames
from examples import descent_race, linear_separation


@pytest.mark.mission("LIN-54", "LIN-57", "LIN-58", "LIN-59")
def test_separation_example(capsys):
    linear_separation.main()
    said = capsys.readouterr().out
    assert "four quadrants: degree 2, 6 monomials" in said
    updates = [linear_separation.parity_updates(d) for d in range(2, 7)]
    assert updates == sorted(updates)
    assert updates[-1] > 10 * updates[0]


@pytest.mark.mission("OPT-05")
def test_race_example(capsys):
    table = descent_race.batch_sizes(epochs=3)
    assert [row["updates"] for row in table] == [3 * 569, 3 * 72, 3 * 9, 3]
    assert all(np.isfinite(list(row.values())).all() for row in table)
    assert table[0]["accuracy"] > 0.9
    runs = descent_race.race(epochs=5)
    figure = plot.descents(runs)
    lines = figure.axes[0].get_lines()
    assert [line.get_label() for line in lines] == list(runs)
    np.testing.assert_array_equal(lines[0].get_ydata(), runs["plain"].trace.objective)
    assert len(figure.axes) == 2


def test_projection_separates_where_the_model_does():
    X, y = load_iris(return_X_y=True)
    model = LinearDiscriminantAnalysis().fit(X, y)
    frame = frames.projection(model, X, y)
    np.testing.assert_array_equal(frame["points"], model.transform(X))
    assert len(plot.projection(model, X, y).axes[0].collections) == 3
    two = y < 2
    model = LinearDiscriminantAnalysis().fit(X[two], y[two])
    frame = frames.projection(model, X[two], y[two])
    beyond = (frame["points"][:, 0] > frame["threshold"]) == (model.scalings_[:, 0] @ model.coef_[0] > 0)
    np.testing.assert_array_equal(beyond, model.predict(X[two]) == 1)
    assert plot.projection(model, X[two], y[two]).axes


def test_coefficient_paths_and_surfaces():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    path = elastic_net_path(X, X[:, 0] - X[:, 1], n_alphas=20)
    frame = frames.coefficient_path(path)
    assert frame["used"][0] == 0 < frame["used"][-1]
    assert len(plot.coefficient_path(path).axes[0].get_lines()) == 5
    with pytest.raises(ValueError, match="2 names for 5"):
        plot.coefficient_path(path, ["a", "b"])

    def bowl(x):
        return float(x[0] ** 2 + 10 * x[1] ** 2)

    def gradient(x, rows):
        return bowl(x), np.array([2 * x[0], 20 * x[1]])

    runs = {
        name: descend(
            gradient,
            [2.0, 1.0],
            rule=Rule(name),
            schedule=Schedule(eta=0.04),
            stop=Stop(epochs=30),
            keep_path=True,
        )
        for name in ("plain", "momentum")
    }
    frame = frames.surface(bowl, runs)
    assert frame["values"].min() < 0.05
    assert frame["values"][3, 5] == bowl(np.array([frame["x"][5], frame["y"][3]]))
    assert len(plot.surface(bowl, runs).axes[0].get_lines()) == 2
    with pytest.raises(ValueError, match="keep_path"):
        plot.surface(bowl, {"plain": descend(gradient, [2.0, 1.0])})

"""Figures of networks, cascades, maps, filters and ways out of minima: what would be drawn, as data."""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_moons

from assay import plot
from assay.linear_model import LinearRegression
from assay.neural_network import (
    BernoulliRBM,
    CascadeCorrelationClassifier,
    DeepBeliefNetwork,
    ElmanClassifier,
    MLPClassifier,
    RBFClassifier,
    SelfOrganizingMap,
)
from assay.plot import networks

pytestmark = pytest.mark.filterwarnings("ignore")
X, Y = make_moons(60, noise=0.2, random_state=0)
BITS = (X > 0).astype(float)
MODELS = {
    "layers": (MLPClassifier((3, 2), max_iter=5, random_state=0), 2 + 3 + 2 + 1, 6 + 6 + 2),
    "bells": (RBFClassifier(4, random_state=0), 2 + 4 + 1, 8 + 4),
    "recurrent": (ElmanClassifier(3, max_iter=5, random_state=0), 2 + 3 + 1, 6 + 9 + 3),
    "machine": (BernoulliRBM(4, n_iter=1, random_state=0), 2 + 4, 8),
    "stack": (DeepBeliefNetwork((4, 3), n_iter=1, random_state=0), 2 + 4 + 3, 8 + 12),
    "cascade": (CascadeCorrelationClassifier(2, random_state=0), 2 + 2 + 1, 2 + 3 + 4),
}


@cache
def fitted(name):
    return MODELS[name][0].fit(BITS if name in ("machine", "stack") else X, Y)


@pytest.mark.parametrize("name", MODELS)
def test_every_unit_and_every_connection_is_drawn(name, tmp_path):
    model, (_, units, connections) = fitted(name), MODELS[name]
    frame = networks.network_frame(model)
    assert len(frame["x"]) == len(frame["y"]) == units
    assert len(frame["weight"]) == len(frame["start"]) == connections
    assert frame["back"].sum() == (9 if name == "recurrent" else 0)
    plot.network(model).savefig(tmp_path / "network.png")


def test_a_cascade_is_a_staircase_that_lowers_the_residual():
    model = fitted("cascade")
    frame = networks.growth_frame(model)
    assert frame["units"].tolist() == [0, 1, 2]
    assert (np.diff(frame["residual"]) <= 0).all()
    assert np.all(frame["residual"] == model.growth_)
    drawn = networks.network_frame(model)
    assert (drawn["x"][drawn["start"]] < drawn["x"][drawn["end"]]).all()
    assert len(plot.cascade_growth(model).axes) == 2


@pytest.mark.parametrize("grid", ["rectangular", "hexagonal"])
def test_a_map_shows_ridges_between_clusters(grid):
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(m, 0.2, size=(150, 2)) for m in (0, 10)])
    model = SelfOrganizingMap((4, 8), grid=grid).fit(rows)
    frame = networks.u_matrix_frame(model, rows)
    assert frame["rows"].sum() == 300
    empty = frame["rows"] == 0
    assert frame["distance"][empty].mean() > 2 * frame["distance"][~empty].mean()
    assert len(plot.u_matrix(model, rows).axes) == 2


def test_filters_are_the_weights_as_pictures():
    model = BernoulliRBM(5, n_iter=1, random_state=0).fit(np.random.default_rng(0).integers(0, 2, size=(30, 6)))
    assert np.array_equal(networks.filters_frame(model, (2, 3))[1], model.components_[1].reshape(2, 3))
    assert len(plot.filters(model, (2, 3)).axes) >= 5
    with pytest.raises(ValueError, match="no pictures"):
        plot.filters(model, (2, 2))


def test_descent_stays_in_its_minimum_and_the_others_leave_it():
    def wells(w):
        return -np.exp(-0.3 * ((w - 2) @ (w - 2))) - 2 * np.exp(-0.3 * ((w + 2) @ (w + 2)))

    frame = networks.escapes_frame(wells, [2.5, 2.5], [-4, -4], [4, 4])
    ends = {name: wells(path[-1]) for name, path in frame["paths"].items()}
    lowest = frame["values"].min()
    assert ends["descent"] > lowest + 0.5
    assert np.linalg.norm(frame["paths"]["descent"][-1] - 2) < 0.5
    assert all(ends[name] < lowest + 0.05 for name in ("restarts", "annealing", "genetic"))
    assert len(plot.escapes(wells, [2.5, 2.5], [-4, -4], [4, 4]).axes[0].lines) == 4


def test_what_cannot_be_drawn_is_refused():
    line = LinearRegression().fit(X, Y)
    refusals = ((plot.network, "no network"), (plot.cascade_growth, "does not grow"), (plot.u_matrix, "no grid"))
    for draw, word in refusals:
        with pytest.raises(ValueError, match=word):
            draw(line)
    with pytest.raises(ValueError, match="low below high"):
        plot.escapes(lambda w: 0.0, [0, 0], [1, 1], [0, 0])


def test_of_a_wide_layer_the_strongest_units_are_drawn():
    model = MLPClassifier(500, max_iter=1, random_state=0).fit(X, Y)
    frame = networks.network_frame(model)
    pull = np.abs(model.coefs_[0]).sum(axis=0) + np.abs(model.coefs_[1]).sum(axis=1)
    strongest = np.sort(np.argsort(-pull)[:40])
    assert frame["name"][1] == "hidden 1 (40 of 500)"
    drawn = frame["weight"][: X.shape[1] * 40].reshape(X.shape[1], 40)
    np.testing.assert_array_equal(drawn, model.coefs_[0][:, strongest])

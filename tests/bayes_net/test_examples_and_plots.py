"""The page and the example run; the figure draws, and the numbers behind it are right."""

import importlib.util
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from assay import plot
from assay.bayes_net import BayesianNetwork, BayesianNetworkClassifier, read_bif
from assay.plot.bayes_nets import layered, network_frame
from tests.bayes_net.networks import asia, burglary, random_network

ROOT = Path(__file__).parents[2]


@pytest.mark.mission("BAY-34")
def test_the_burglary(capsys, tmp_path):
    spec = importlib.util.spec_from_file_location("burglary", ROOT / "examples" / "burglary.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for mine, its in zip(burglary().tables, module.ALARM.tables):
        assert np.array_equal(mine, its)
    module.main(str(tmp_path / "net.png"))
    printed = capsys.readouterr().out
    assert printed.count("0.28417") == 3
    assert "exactly the counts of the 50000 training rows" in printed
    assert "checked: True" in printed
    assert (tmp_path / "net.png").stat().st_size > 1_000


def test_a_node_stands_below_its_parents_and_on_no_other():
    for net in (asia(), random_network(12, 0)):
        frame = network_frame(net)
        assert {(net.names[a], net.names[b]) for a, b in frame["edges"]} == set(net.edges)
        for parent, child in frame["edges"]:
            assert frame["depth"][parent] < frame["depth"][child]
        assert len({*zip(frame["x"], frame["depth"])}) == len(net.names)


@pytest.mark.parametrize("name", ["asia", "child", "alarm", "insurance"])
@pytest.mark.parametrize("tables", [True, False])
def test_no_edge_passes_behind_a_node_and_none_overlaps_another(name, tables):
    net = read_bif(Path(__file__).parent / "published" / f"{name}.bif")
    frame = network_frame(net, tables)
    x, depth, width = frame["x"], frame["depth"], frame["width"]
    for level in range(depth.max() + 1):
        here = np.flatnonzero(depth == level)
        here = here[x[here].argsort()]
        assert np.all(np.diff(x[here]) >= (width[here][1:] + width[here][:-1]) / 2)
    for (parent, child), route in zip(frame["edges"], frame["routes"]):
        assert len(route) == depth[child] - depth[parent] + 1
        assert (route[0], route[-1]) == (x[parent], x[child])
        for level, at in enumerate(route[1:-1], depth[parent] + 1):
            assert np.all(np.abs(x - at)[depth == level] >= width[depth == level] / 2 + 0.1)


def test_a_tree_is_drawn_without_crossings():
    """Between two layers edges cross if they start in one order and end in the other."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        parents = [()] + [(int(rng.integers(0, i)),) for i in range(1, 25)]
        layout = layered(parents, range(25), np.full(25, 0.8))
        edges = [(layout.layer[a[0]], layout.x[a[0]], layout.x[i]) for i, a in enumerate(parents) if a]
        for one, other in combinations(edges, 2):
            if one[0] == other[0]:
                assert (one[1] - other[1]) * (one[2] - other[2]) >= 0


def test_tables_are_written_out():
    frame = network_frame(burglary())
    assert frame["table"][3] == ["alarm   yes    no", "  yes   0.9   0.1", "   no  0.05  0.95"]
    figure = plot.dependency_graph(burglary())
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert {*burglary().names} <= texts
    assert "\n".join(frame["table"][3]) in texts
    bare = {text.get_text() for text in plot.dependency_graph(burglary(), tables=False).axes[0].texts}
    assert bare == {*burglary().names, ""}


def test_fitted_models_are_drawn_as_networks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    for model in (BayesianNetwork().fit(X), BayesianNetworkClassifier().fit(X, X[:, 0] > 0)):
        assert {*model.network_.names} <= {text.get_text() for text in model.plot().axes[0].texts}
    with pytest.raises(ValueError, match="too many to read"):
        plot.dependency_graph(random_network(81, 0))

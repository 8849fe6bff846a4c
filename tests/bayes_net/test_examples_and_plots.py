"""The page and the example run; the figure draws, and the numbers behind it are right."""

import doctest
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from assay import plot
from assay.bayes_net import BayesianNetwork, BayesianNetworkClassifier
from assay.plot.bayes_nets import network_frame
from tests.bayes_net.networks import asia, burglary, random_network

ROOT = Path(__file__).parents[2]


def test_the_page_runs():
    outcome = doctest.testfile(str(ROOT / "docs" / "bayes_nets.md"), module_relative=False)
    assert outcome.attempted > 20
    assert outcome.failed == 0


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

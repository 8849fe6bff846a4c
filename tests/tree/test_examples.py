"""The example programmes about trees and ensembles run and show what they say."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def programme(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.mission("TRE-20")
def test_oblique_trees(capsys, tmp_path):
    module = programme("oblique_trees")
    found = module.compare(*module.stripes())
    leaves, error = found.pop("columns")
    assert all(fewer < leaves and better < error for fewer, better in found.values())
    module.main(str(tmp_path / "thresholds.png"))
    assert "leaves" in capsys.readouterr().out
    assert (tmp_path / "thresholds.png").exists()


def test_margins(capsys):
    programme("margins").main()
    assert "no vote of stumps has more than" in capsys.readouterr().out


@pytest.mark.mission("ENS-41")
def test_forest(capsys):
    programme("forest").main()
    assert "acting together: x0 and x1" in capsys.readouterr().out


def test_pruning_before_and_after(capsys):
    """Stopping early misses what only helps together; cutting back does not."""
    module = programme("pruning")
    runs = [module.compare(seed=seed) for seed in range(3)]
    assert all(run["pre-pruned"].leaves < run["post-pruned"].leaves < run["whole"].leaves for run in runs)
    assert all(run["pre-pruned"].error > 0.3 > run["whole"].error > run["post-pruned"].error for run in runs)
    assert all(one.seconds > 0 for run in runs for one in run.values())
    assert all(run["whole"].training == 0 < run["post-pruned"].training for run in runs)
    module.main()
    assert "post-pruned" in capsys.readouterr().out

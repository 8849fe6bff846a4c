"""The pages and examples about hidden variables run; the figures draw, and the numbers behind them are right."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from assay import plot
from assay.decomposition import LatentDirichletAllocation
from assay.hmm import CategoricalHMM, GaussianHMM
from assay.plot.clusters import states_frame, words_frame

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["hmm.md", "topics.md"])
def test_the_page_runs(page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), flags=re.DOTALL)
    assert len(blocks) >= 2
    exec(compile("\n".join(blocks), page, "exec"), {})  # blocks go on where those before end


def example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.mission("LAT-16", "LAT-18")
def test_boxes_and_balls(capsys):
    module = example("boxes_and_balls")
    assert module.by_enumeration(module.boxes(), [0, 1, 0]) == pytest.approx(0.130218)
    module.main()
    printed = capsys.readouterr().out
    assert "p(red, white, red) = 0.130218; over all 27 paths 0.130218" in printed
    assert "best path (3, 3, 3) with probability 0.0147" in printed


@pytest.mark.mission("LAT-21")
def test_topics_of_texts(capsys):
    module = example("topics")
    texts, _ = module.corpus()
    found = {frozenset(words) for words in module.mixed(texts, 3)[2]}
    for own in module.TOPICS.values():
        assert any(words <= set(own.split()) for words in found)
    module.main()
    assert "variational lower bound" in capsys.readouterr().out


def test_states_of_sequences():
    X = np.concatenate([np.zeros(10), np.full(10, 9.0)])[:, None] + 0.1 * np.sin(np.arange(20))[:, None]
    model = GaussianHMM(2, random_state=0).fit(X, lengths=[5, 15])
    frame = states_frame(model, X, [5, 15])
    assert np.array_equal(frame["states"], model.predict(X, [5, 15]))
    assert frame["probabilities"].sum(axis=1) == pytest.approx(1.0)
    assert frame["ends"].tolist() == [5, 20]
    figure = plot.state_sequence(model, X, [5, 15])
    assert len(figure.axes) == 2
    assert len(figure.axes[1].collections) == 2
    assert np.asarray(figure.axes[0].collections[0].get_offsets())[:, 1] == pytest.approx(X[:, 0])


def test_steps_of_the_chain():
    model = CategoricalHMM(2, random_state=0, n_iter=1).fit([[0], [1], [0], [1], [1]])
    figure = plot.transitions(model)
    assert np.asarray(figure.axes[0].images[0].get_array()) == pytest.approx(model.transmat_)
    assert len(model.plot().axes) == 1


def test_words_of_topics():
    X = np.array([[4, 3, 0, 0], [2, 5, 0, 0], [0, 0, 3, 4], [0, 0, 5, 2]])
    model = LatentDirichletAllocation(2, random_state=0).fit(X)
    frame = words_frame(model, list("abcd"), top=2)
    assert {frozenset(words) for words in frame["words"]} == {frozenset("ab"), frozenset("cd")}
    assert frame["probabilities"][0, 0] == pytest.approx(model.topics_[0].max())
    assert frame["shares"].sum() == pytest.approx(1.0)
    figure = plot.topic_words(model, list("abcd"), top=2)
    heights = [bar.get_width() for bar in figure.axes[0].patches]
    assert heights == sorted(heights, reverse=True)

"""The page and the examples about Bayes run; the figures draw, and the numbers behind them are right."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from assay import naive_bayes as nb
from assay import plot
from assay.plot.bayes_nets import tables_frame
from tests.tree.melons import melons

ROOT = Path(__file__).parents[2]


def example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.mission("BAY-12")
def test_the_melon_by_hand(capsys, tmp_path):
    module = example("melon_by_hand")
    found = module.by_hand(*module.melons(), 0)
    assert found["yes"] == pytest.approx(0.0524, abs=5e-5)
    assert found["no"] == pytest.approx(6.86e-5, abs=5e-8)
    module.main(str(tmp_path / "melon.png"))
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split(": ", 1)[1] == printed[1].split(": ", 1)[1]
    assert (tmp_path / "melon.png").stat().st_size > 1_000


@pytest.mark.mission("BAY-13", "BAY-16")
def test_the_filter_of_messages(capsys):
    module = example("message_filter")
    model, erred, seen = module.watch(200)
    once = nb.MultinomialNB().fit(module.WORDS.transform([text for text, _ in seen]), [kind for _, kind in seen])
    assert np.array_equal(model.feature_count_, once.feature_count_)
    assert np.mean(erred[-100:]) < 0.2
    texts = ["train late today", "free prize now", "dinner and a film"]
    assert module.ranked("which film", texts)[0] == "dinner and a film"
    module.main()
    assert "the certificate holds" in capsys.readouterr().out


class TestFigures:
    def test_shares_and_densities_are_those_of_the_model(self):
        X, y = melons(continuous=True)
        model = nb.MixedNB().fit(X, y)
        frames = tables_frame(model, [0, 6])
        own = X[y == "是"]
        share = (np.sum(own["色泽"] == "乌黑") + 1) / (len(own) + 3)
        assert frames[0].shares[1][frames[0].levels.index("乌黑")] == pytest.approx(share)
        assert frames[1].shares[1] == pytest.approx(norm.pdf(frames[1].at, own["密度"].mean(), own["密度"].std(ddof=0)))
        assert len(plot.tables(model, [0, 6]).axes) == 2

    @pytest.mark.parametrize("learner", [nb.OneDependence, nb.SPODE, nb.TAN, nb.AODE, nb.A2DE, nb.MixedNB])
    def test_every_learner_draws(self, learner):
        X, y = melons(continuous=True)
        X = X[["色泽", "密度", "触感"]]
        figure = learner().fit(X, y).plot()
        assert len(figure.axes) == 3
        if learner is not nb.MixedNB:
            frames = tables_frame(learner().fit(X, y))
            assert all(np.allclose(frame.shares.sum(axis=1), 1) for frame in frames)
            assert frames[1].levels[0] == "less"

    @pytest.mark.parametrize("learner", [nb.MultinomialNB, nb.BernoulliNB, nb.ComplementNB, nb.CategoricalNB])
    def test_words_and_levels(self, learner):
        X, y = np.array([[2, 0, 1], [1, 0, 0], [0, 3, 1], [0, 1, 1]]), ["ham", "ham", "spam", "spam"]
        figure = learner().fit(X, y).plot()
        assert figure.axes[0].get_legend() is not None

    def test_numbers(self):
        X, y = melons(continuous=True)
        assert len(nb.GaussianNB().fit(X[["密度", "含糖率"]], y).plot().axes) == 2

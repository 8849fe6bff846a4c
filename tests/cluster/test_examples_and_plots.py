"""The examples and the page about clusters run; the figures draw, and the numbers behind them are right."""

import doctest
import importlib.util
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from assay import plot
from assay.cluster import KMeans, sweep
from assay.decomposition import PCA, TruncatedSVD
from assay.metrics import silhouette_samples
from assay.plot import frames

ROOT = Path(__file__).parents[2]
MODULES = (
    "cluster._n_clusters",
    "metrics._clusterings",
    "theory.rademacher",
)


def programme(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def heaps():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(place, 0.5, size=(40, 2)) for place in ((0, 0), (5, 0), (0, 5))])


@pytest.mark.mission("CLU-20")
def test_an_image_in_few_colours(capsys):
    module = programme("image_colours")
    image = module.picture(40)
    for k in (2, 5, 16):
        small, model = module.compress(image, k)
        decoded = small.decoded()
        assert decoded.shape == image.shape
        assert len(np.unique(decoded.reshape(-1, 3), axis=0)) <= k
        error = np.mean(np.sum((image - decoded) ** 2, axis=2))
        assert error == pytest.approx(model.inertia_ / 1600)
    assert small.bits() == 8 * 16 * 3 + 1600 * 4
    module.main()
    assert "no 32 colours have" in capsys.readouterr().out


@pytest.mark.mission("CLU-21")
def test_topics_are_separated_and_their_words_are_the_right_ones(capsys):
    module = programme("topics")
    texts, topic = module.corpus()
    labels, words = module.clustered(texts, 3)
    for k in range(3):
        own = topic[labels == k]
        assert len(set(own)) == 1
        name = list(module.TOPICS)[own[0]]
        assert set(words[k]) <= set(module.TOPICS[name].split())
    module.main()
    assert "100% kitchen" in capsys.readouterr().out


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    outcome = doctest.testmod(import_module(f"assay.{name}"))
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_numbers_of_the_figures():
    X = heaps()
    model = KMeans(3, random_state=0).fit(X)
    frame = frames.clusters(model, X[:, ::-1] * 0 + X, columns=(1, 0))
    assert np.array_equal(frame["x"], X[:, ::-1])
    assert np.array_equal(frame["label"], model.labels_)
    assert np.array_equal(frame["centers"], model.cluster_centers_[:, ::-1])
    widths = frames.silhouettes(X, model.labels_)
    assert np.array_equal(np.sort(widths["width"]), np.sort(silhouette_samples(X, model.labels_)))
    assert np.all(np.diff(widths["label"]) >= 0)
    assert frames.explained_variance(PCA().fit(X))["total"][-1] == pytest.approx(1)
    choice = frames.cluster_choice(sweep(X, range(1, 6), model=KMeans(n_init=3, random_state=0)))
    assert (choice["elbow"], choice["widest"]) == (3, 3)
    assert frames.cluster_choice(sweep(X, [1], model=KMeans(random_state=0)))["widest"] is None
    with pytest.raises(ValueError, match="two of the 2 columns"):
        frames.clusters(model, X, columns=(0, 2))


def test_figures_draw(tmp_path):
    X = heaps()
    model = KMeans(3, random_state=0).fit(X)
    figures = [
        plot.clusters(model, X),
        plot.silhouettes(X, model.labels_),
        plot.cluster_choice(sweep(X, range(1, 6), model=KMeans(random_state=0))),
        plot.explained_variance(PCA().fit(X)),
        model.plot(),
        PCA().fit(X).plot(),
        TruncatedSVD(1).fit(X).plot(),
    ]
    for k, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{k}.png")
        assert (tmp_path / f"{k}.png").stat().st_size > 3000

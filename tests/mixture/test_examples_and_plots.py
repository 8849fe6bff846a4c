"""The example and the page about mixtures run; the figures draw, and the numbers behind them are right."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from assay import plot
from assay.mixture import GaussianDensity, GaussianMixture, GaussianMixtureClassifier, HistogramDensity
from assay.plot.clusters import density_frame
from tests.mixture.melons import MELONS

ROOT = Path(__file__).parents[2]


@pytest.mark.mission("LAT-10")
def test_the_melons(capsys, tmp_path):
    spec = importlib.util.spec_from_file_location("melons", ROOT / "examples" / "melons.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert np.array_equal(module.MELONS, MELONS)
    assert module.fitted(1).weights_.round(3).tolist() == [0.361, 0.323, 0.316]
    module.main(str(tmp_path / "melons.png"))
    printed = capsys.readouterr().out
    assert "1 steps:" in printed
    assert "near a fixed point of EM" in printed
    assert (tmp_path / "melons.png").stat().st_size > 1_000


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_ellipses_lie_at_two_standard_deviations(kind):
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(MELONS)
    for mean, border, S in zip(
        model.means_, plot.ellipses(model), model.components_.each(model.covariances_), strict=True
    ):
        apart = border - mean
        assert np.einsum("ij,ij->i", apart @ np.linalg.inv(S), apart) == pytest.approx(4.0)
    assert len(plot.components(model, MELONS).axes[0].lines) == 2


def test_the_density_drawn_is_the_density():
    model = GaussianMixture(3, random_state=0).fit(MELONS)
    frame = density_frame(model, MELONS, points=300)
    cell = np.prod([axis[1] - axis[0] for axis in frame["axes"]])
    assert 0.9 < frame["density"].sum() * cell <= 1.01
    plot.density(model, MELONS)
    one = GaussianDensity().fit(MELONS[:, :1])
    line = plot.density(one, MELONS[:, :1]).axes[0].lines[0]
    assert line.get_ydata() == pytest.approx(np.exp(one.score_samples(line.get_xdata()[:, None])))
    with pytest.raises(ValueError, match="density: needs rows of one or two columns"):
        plot.density(model, np.zeros((3, 3)))


def test_every_model_draws_itself():
    y = np.repeat(["a", "b"], 15)
    for model in (
        GaussianMixture(2, random_state=0).fit(MELONS),
        GaussianDensity().fit(MELONS),
        HistogramDensity(bins=5).fit(MELONS),
        GaussianMixtureClassifier().fit(MELONS, y),
    ):
        assert model.plot().axes
    plot.components(GaussianMixtureClassifier(2, random_state=0).fit(MELONS, y), MELONS)

"""Every learner draws itself: after the fit, and after it was saved and loaded."""

import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import assay
from tests.contract.test_contract import LEARNERS, ready

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("nothing_stays_open")]


@pytest.fixture
def nothing_stays_open():
    yield
    pyplot.close("all")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("model", LEARNERS, ids=lambda model: type(model).__name__)
def test_a_learner_draws_itself_with_no_data(model, tmp_path):
    fresh = ready(model)
    assay.save(fresh, tmp_path / "model.assay")
    for one in (fresh, assay.load(tmp_path / "model.assay").model):
        figure = one.plot()
        assert isinstance(figure, Figure)
        assert all(axes.has_data() or axes.texts for axes in figure.axes if axes.get_visible())
        figure.savefig(tmp_path / "figure.png", dpi=40)

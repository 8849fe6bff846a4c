"""The page about combining learners and its example run and show what they say."""

import doctest
from pathlib import Path

import pytest

from tests.tree.test_examples import programme

PAGE = Path(__file__).parents[2] / "docs" / "combining.md"


@pytest.mark.filterwarnings("ignore")
def test_the_page_about_combining():
    outcome = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert outcome.attempted > 30
    assert outcome.failed == 0


@pytest.mark.mission("ENS-71")
def test_boosting_lowers_the_bias_and_bagging_the_variance():
    found = programme("combining").parts(runs=25)
    assert found["boosted stumps"].bias2 < 0.7 * found["stump"].bias2
    assert found["bagged deep trees"].variance < 0.7 * found["deep tree"].variance


@pytest.mark.mission("ENS-72")
def test_the_average_of_networks_in_different_minima_is_no_worse_than_their_mean():
    alone, together = programme("combining").networks()
    assert alone.max() > 1.2 * alone.min()
    assert together <= alone.mean()
    assert together < alone.max()


def test_a_vote_that_rejects(capsys, tmp_path):
    module = programme("combining")
    model, certificate, held = module.committee()
    assert 0.5 < model.coverage(held[0]) < 1
    assert certificate.find("selective.fixed").value < 0.3

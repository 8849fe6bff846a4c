"""The examples in the docstrings of functions, and on the page about linear models, run and print what they say."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

MODULES = (
    "datasets.linear",
    "discriminant_analysis._bayes",
    "discriminant_analysis._scatter",
    "linear_model._elastic_net",
    "linear_model._formulas",
    "linear_model._glm",
    "linear_model._perceptron_trace",
    "optim.constrained",
    "optim.descent",
    "optim.search",
    "preprocessing._augment",
    "preprocessing._polynomial",
)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    outcome = doctest.testmod(import_module(f"assay.{name}"))
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_the_page_about_linear_models():
    page = Path(__file__).parents[2] / "docs" / "linear.md"
    outcome = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert outcome.attempted > 20
    assert outcome.failed == 0

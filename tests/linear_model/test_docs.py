"""The examples in docstrings, and on the pages about linear models and scikit-learn, run and print what they say."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

MODULES = (
    "datasets.worked",
    "textbook.decision",
    "discriminant_analysis._scatter",
    "linear_model._elastic_net",
    "textbook.linear",
    "linear_model._glm",
    "linear_model._perceptron",
    "optim.constrained",
    "optim.descent",
    "preprocessing._transforms",
)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    outcome = doctest.testmod(import_module(f"assay.{name}"))
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.mark.parametrize(("name", "least"), [("linear.md", 20), ("from_scikit_learn.md", 5)])
def test_the_pages(name, least):
    page = Path(__file__).parents[2] / "docs" / name
    outcome = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert outcome.attempted > least
    assert outcome.failed == 0

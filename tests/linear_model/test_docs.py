"""The examples in docstrings, and on the pages about linear models and scikit-learn, run and print what they say."""

import doctest
from importlib import import_module

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

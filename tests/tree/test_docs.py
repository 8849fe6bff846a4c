"""The examples in the docstrings of functions, and on the page about trees, run and print what they say."""

import doctest
from importlib import import_module

import pytest

MODULES = (
    "ensemble._adaboost_regressor",
    "ensemble._lpboost",
    "tree.growth._absolute",
    "tree.growth._nominal",
    "tree._oblique",
    "tree._pruning",
)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    outcome = doctest.testmod(import_module(f"assay.{name}"))
    assert outcome.attempted > 0
    assert outcome.failed == 0

"""Every public name has a docstring, and every parameter of a learner and of its methods is described."""

import inspect
import runpy
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import assay

numpydoc = pytest.importorskip("numpydoc.docscrape", reason="numpydoc reads the parameters of docstrings")
DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = runpy.run_path(str(DOCS / "site_reference.py"))
SHARED = runpy.run_path(str(DOCS / "shared_parameters.py"))["SHARED"]
MODULES = [module for module in REFERENCE["modules"]() if module is not assay]


@cache
def described(doc: str | None) -> frozenset[str]:
    """Return the parameters that a docstring describes."""
    found = numpydoc.NumpyDocString(inspect.cleandoc(doc or ""))
    entries = [entry for section in ("Parameters", "Other Parameters") for entry in found[section]]
    return frozenset(name.strip().lstrip("*") for entry in entries for name in entry.name.split(","))


def methods(learner: type) -> Iterator[tuple[str, Callable]]:
    """Yield the public methods and properties of a class that are Assay's own."""
    for name in dir(learner):
        held = inspect.getattr_static(learner, name)
        function = held.fget if isinstance(held, property) else getattr(held, "__func__", held)
        if not name.startswith("_") and inspect.isfunction(function) and function.__module__.startswith("assay"):
            yield name, function


def parameters(function: Callable) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self", "cls"}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_name_has_a_docstring(module):
    found = REFERENCE["names"](module)
    callables = {name: value for name, value in found.items() if inspect.isclass(value) or inspect.isroutine(value)}
    assert [name for name, value in callables.items() if not (inspect.getdoc(value) or "").strip()] == []


@pytest.mark.parametrize("learner", assay.learners(), ids=lambda learner: learner.__name__)
def test_every_parameter_of_a_learner_is_described(learner):
    """By its own docstring, that of a class it is derived from or a learner of its room, or as one that all share."""
    room = [other for other in assay.learners() if other.__module__.split(".")[1] == learner.__module__.split(".")[1]]
    known = set(SHARED).union(*(described(vars(one)["__doc__"]) for one in [*learner.__mro__[:-1], *room]))
    assert parameters(learner) - known == set()


@pytest.mark.parametrize("learner", assay.learners(), ids=lambda learner: learner.__name__)
def test_every_method_of_a_learner_is_described(learner):
    for name, function in methods(learner):
        doc = inspect.getdoc(getattr(learner, name, None)) or inspect.getdoc(function)
        if isinstance(inspect.getattr_static(learner, name), property):
            doc = inspect.getdoc(inspect.getattr_static(learner, name))
        assert doc, f"{learner.__name__}.{name} has no docstring"
        assert parameters(function) - described(doc) - SHARED.keys() == set(), name


def test_a_missing_parameter_is_found():
    assert described("Fit.\n\nParameters\n----------\na, b : int\n    Two.\n") == {"a", "b"}
    assert "alpha" not in described("Fit with alpha.")

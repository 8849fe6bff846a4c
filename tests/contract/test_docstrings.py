"""Every public name has a docstring, in which every parameter is described, and what a function returns."""

import inspect
import runpy
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

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
    entries = [entry for section in ("Parameters", "Other Parameters", "Attributes") for entry in found[section]]
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


def own_callables(module: ModuleType) -> dict[str, Callable]:
    """Return the public classes and functions of a module; learners have a test of their own."""
    learners = set(assay.learners())
    found = REFERENCE["names"](module).items()
    return {
        name: value
        for name, value in found
        if (inspect.isclass(value) or inspect.isroutine(value)) and value not in learners
    }


def has_parameters(value: Callable) -> bool:
    """Tell whether a name is called with parameters of its own: protocols and bare exceptions are not."""
    if not inspect.isclass(value) or "__init__" in vars(value):
        return not getattr(value, "_is_protocol", False)
    return not issubclass(value, BaseException) and not getattr(value, "_is_protocol", False)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_name_has_a_docstring(module):
    found = REFERENCE["names"](module)
    callables = {name: value for name, value in found.items() if inspect.isclass(value) or inspect.isroutine(value)}
    assert [name for name, value in callables.items() if not (inspect.getdoc(value) or "").strip()] == []


def undescribed(value: Callable) -> set[str]:
    """Return the parameters of a function or class that neither it nor a class it is derived from describes."""
    docs = [vars(owner).get("__doc__") for owner in value.__mro__[:-1]] if inspect.isclass(value) else [value.__doc__]
    return parameters(value) - frozenset().union(*map(described, docs))


def undescribed_methods(owner: type) -> dict[str, set[str] | None]:
    """Return the methods and properties without a docstring (None), or with parameters that it does not describe."""
    missing: dict[str, set[str] | None] = {}
    for name, function in methods(owner):
        held = inspect.getattr_static(owner, name)
        doc = inspect.getdoc(held if isinstance(held, property) else getattr(owner, name)) or inspect.getdoc(function)
        if not doc:
            missing[name] = None
        elif lacking := parameters(function) - described(doc) - SHARED.keys():
            missing[name] = lacking
    return missing


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_parameter_of_a_public_name_is_described(module):
    """Those of learners are asked for below: some are described once for all of them."""
    missing = {name: undescribed(value) for name, value in own_callables(module).items() if has_parameters(value)}
    assert {name: names for name, names in missing.items() if names} == {}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_what_a_public_function_returns_is_described(module):
    found = {name: value for name, value in own_callables(module).items() if inspect.isroutine(value)}
    sections = {name: numpydoc.NumpyDocString(inspect.getdoc(value) or "") for name, value in found.items()}
    silent = [name for name, doc in sections.items() if not (doc["Returns"] or doc["Yields"])]
    assert [name for name in silent if found[name].__annotations__.get("return", "None") not in (None, "None")] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_method_of_a_public_class_is_described(module):
    missing = {
        name: undescribed_methods(value) for name, value in own_callables(module).items() if inspect.isclass(value)
    }
    assert {name: names for name, names in missing.items() if names} == {}


def test_a_parameter_without_a_description_is_found():
    def bound(errors: int, n: int) -> float:
        """Return a bound.

        Parameters
        ----------
        errors : int
            Number of errors.
        """

    assert undescribed(bound) == {"n"}


@pytest.mark.parametrize("learner", assay.learners(), ids=lambda learner: learner.__name__)
def test_every_parameter_of_a_learner_is_described(learner):
    """By its own docstring, that of a class it is derived from or a learner of its room, or as one that all share."""
    room = [other for other in assay.learners() if other.__module__.split(".")[1] == learner.__module__.split(".")[1]]
    known = set(SHARED).union(*(described(vars(one)["__doc__"]) for one in [*learner.__mro__[:-1], *room]))
    assert parameters(learner) - known == set()


@pytest.mark.parametrize("learner", assay.learners(), ids=lambda learner: learner.__name__)
def test_every_method_of_a_learner_is_described(learner):
    assert undescribed_methods(learner) == {}


def test_a_missing_parameter_is_found():
    assert described("Fit.\n\nParameters\n----------\na, b : int\n    Two.\n") == {"a", "b"}
    assert "alpha" not in described("Fit with alpha.")

"""A pytest plugin that puts Assay's classes into scikit-learn's public modules, and writes down what each test did.

With ASSAY_DROPIN=off nothing is replaced: what fails then does not count. Otherwise every class that both libraries
have is replaced in the public modules of scikit-learn, and, while its test modules are imported, in the modules that
define it. scikit-learn's own parts are imported before and keep each other, as they do for a user who changes imports
only.
"""

import ast
import importlib
import inspect
import json
import os
import sys
import textwrap
import warnings
from functools import wraps
from pkgutil import walk_packages

import pytest

ON, LOG = os.environ.get("ASSAY_DROPIN", "on") == "on", os.environ["ASSAY_DROPIN_LOG"]
ROOMS = (
    "linear_model", "discriminant_analysis", "svm", "kernel_ridge", "tree", "ensemble", "neighbors", "neural_network",
    "cluster", "decomposition", "mixture", "naive_bayes", "semi_supervised", "multiclass", "calibration", "metrics",
)  # fmt: skip
FUNCTIONS = ("silhouette_samples", "silhouette_score")
made: set[str] = set()
replaced: dict[int, object] = {}
homes: list[tuple[object, str, object]] = []


def pytest_configure(config):
    _import_all("sklearn")
    for room in ROOMS:
        theirs, ours = (importlib.import_module(f"{library}.{room}") for library in ("sklearn", "assay"))
        names = FUNCTIONS if room == "metrics" else [name for name in dir(theirs) if name[0].isupper()]
        for name in names:
            original, new = getattr(theirs, name), getattr(ours, name, None)
            if new is not None and callable(original) and original is not new:
                _replace(theirs, name, original, new)


def _import_all(library):
    package = importlib.import_module(library)
    for module in walk_packages(package.__path__, f"{library}."):
        parts = module.name.split(".")
        if not {"tests", "_build_utils", "conftest", "setup", "__main__", "externals"} & set(parts):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    importlib.import_module(module.name)
            except Exception:  # what needs a library that is not here
                continue


def _replace(module, name, original, new):
    watched = _watched(new if ON else original)
    if not ON:
        return
    replaced[id(original)] = watched
    setattr(module, name, watched)
    home = sys.modules[original.__module__]
    if home is not module:
        homes.append((home, name, original))
        setattr(home, name, watched)


def _watched(kind):
    """Return the class, or a function like this one, that tells when it is used."""
    if not isinstance(kind, type):

        @wraps(kind)
        def call(*args, **options):
            made.add(kind.__name__)
            return kind(*args, **options)

        return call
    build = kind.__init__

    @wraps(build)
    def __init__(self, *args, **options):
        made.add(kind.__name__)
        build(self, *args, **options)

    kind.__init__ = __init__
    if hasattr(kind, "fit"):  # what was made while tests were collected is used where it is fitted
        train = kind.fit

        @wraps(train)
        def fit(self, *args, **options):
            made.add(kind.__name__)
            return train(self, *args, **options)

        kind.fit = fit
    return kind


def pytest_collection_modifyitems(items):
    """Give scikit-learn's private modules back what is theirs; test modules keep what they have."""
    for home, name, original in homes:
        setattr(home, name, original)
    for module in {item.module for item in items if hasattr(item, "module")}:
        for name, value in list(vars(module).items()):
            if id(value) in replaced:
                setattr(module, name, replaced[id(value)])


def private_names(function) -> list[str]:
    """Return the private names of scikit-learn's objects that a test reads."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return []
    found = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and "._" in (node.module or "")
        for alias in node.names
    }
    return sorted(name for name in found | imported if name.startswith("_") and not name.startswith("__"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    made.clear()
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when != "call" and not (report.when == "setup" and not report.passed):
        return
    why = "" if report.passed or call.excinfo is None else f"{call.excinfo.typename}: {call.excinfo.value}"[:300]
    fixtures = [one.func for many in item._fixtureinfo.name2fixturedefs.values() for one in many]
    read = [getattr(item, "function", None), *(one for one in fixtures if one.__module__ == item.module.__name__)]
    private = sorted({name for function in read for name in private_names(function)})
    row = {"test": item.nodeid, "outcome": report.outcome, "made": sorted(made), "private": private, "why": why}
    with open(LOG, "a") as log:
        log.write(json.dumps(row) + "\n")

"""The directory of claims: finds a definition by code or name, for people who read claims and learners that make them.

A family that is not loaded yet is looked for among all of them. No verdict does so: the checker knows the claims of the
core and of the model's family.
"""

from importlib import import_module
from pkgutil import iter_modules

from assay.claims.definitions import Definition, known, register


def definition(code: str) -> Definition | None:
    """Return what the claim with that code says; None if no definition has it."""
    unread = iter(() if code in known else places())
    while code not in known and (place := next(unread, None)):
        register(getattr(import_module(place), "CLAIMS", {}))
    return known.get(code)


def places() -> list[str]:
    """Return the modules in which definitions may stand."""
    found = ["assay.checker.facts", "assay.checker.bounds"]
    package = import_module("assay.checker.families")
    return found + [f"assay.checker.families.{module.name}" for module in iter_modules(package.__path__)]


def codes() -> list[str]:
    """Return the code of every claim that there is."""
    definition("")
    return sorted(known)

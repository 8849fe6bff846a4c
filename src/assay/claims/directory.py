"""The directory of claims: finds a definition by name, for people who read claims and learners that make them.

A family that is not loaded yet is looked for among all of them. No verdict does so: the checker knows the claims of the
core and of the model's family.
"""

from importlib import import_module
from pkgutil import iter_modules

from assay.claims.definitions import Definition, known, names, register


def definition(name: str) -> Definition | None:
    """Return what the claim of that name says; None if no definition has it.

    A file that was read may name claims of families that are not loaded; these are called by their code.
    """
    unread = iter(() if name in known or name in names else places())
    while not (name in known or name in names) and (place := next(unread, None)):
        register(getattr(import_module(place), "CLAIMS", {}))
    return known.get(names.get(name, name))


def code(name: str) -> str:
    """Return the code that the claim of that name has in files; the name itself if no definition has it."""
    result = definition(name)
    return name if result is None else next(code for code, called in names.items() if called == result.name)


def places() -> list[str]:
    """Return the modules in which definitions may stand."""
    results = ["assay.checker.facts", "assay.checker.bounds"]
    package = import_module("assay.checker.families")
    return results + [f"assay.checker.families.{module.name}" for module in iter_modules(package.__path__)]


def codes() -> dict[str, str]:
    """Return the name of every claim that there is, by its code."""
    definition("")
    return dict(sorted(names.items()))

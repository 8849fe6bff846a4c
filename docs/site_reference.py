"""The reference: a page for every room, and one for every public class and function.

The pages are written before Sphinx reads; `names()` is what is public, and the test of docstrings asks it too.
"""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import assay

HERE = Path(__file__).parent
ROOMS = HERE / "reference"
_homes: dict[int, ModuleType] = {}  # the first room that has an object describes it
BY_MODULE = ("theory", "textbook", "optim")  # rooms whose modules are used by their own names


def modules() -> Iterator[ModuleType]:
    """Yield the modules whose names are public: rooms that list them, and modules that are used by their own names."""
    yield assay
    for room in iter_modules(assay.__path__):
        if room.name.startswith("_"):
            continue
        module = import_module(f"assay.{room.name}")
        if hasattr(module, "__all__"):
            yield module
        elif room.name in BY_MODULE:
            inside = [part.name for part in iter_modules(module.__path__) if not part.name.startswith("_")]
            yield from (import_module(f"{module.__name__}.{part}") for part in inside)


def names(module: ModuleType) -> dict[str, object]:
    """Return the public names of a module that are Assay's own; without a list of names, what is defined there."""
    listed = getattr(module, "__all__", None)
    found = {name: getattr(module, name) for name in listed or vars(module) if not name.startswith("_")}
    own = module.__name__ if listed is None else "assay"
    return {
        name: value for name, value in sorted(found.items()) if str(getattr(value, "__module__", "")).startswith(own)
    }


def write() -> None:
    """Write the pages of the rooms; autosummary writes those of classes and functions."""
    ROOMS.mkdir(exist_ok=True)
    _homes.clear()
    for module in modules():
        _write(ROOMS / f"{module.__name__}.rst", "\n".join(_page(module)))
    listed = "\n".join(f"   {module.__name__}" for module in modules())
    tree = f".. toctree::\n\n{listed}\n   claims\n"
    _write(ROOMS / "index.rst", f"{_title('Reference')}\nEvery public name, by room.\n\n{tree}")
    _write(ROOMS / "claims.md", "\n".join(_claims()))


def _write(page: Path, text: str) -> None:
    if not page.exists() or page.read_text(encoding="utf-8") != text:  # else Sphinx reads it again
        page.write_text(text, encoding="utf-8")


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"


def _page(module: ModuleType) -> Iterator[str]:
    """Yield the lines of the page of a room."""
    yield _title(module.__name__)
    yield f".. automodule:: {module.__name__}\n   :no-members:\n"
    yield f".. currentmodule:: {module.__name__}\n"
    found = {name: value for name, value in names(module).items() if _homes.setdefault(id(value), module) is module}
    kinds = {
        "Classes": [name for name, value in found.items() if inspect.isclass(value)],
        "Functions": [name for name, value in found.items() if inspect.isroutine(value)],
    }
    for kind, listed in kinds.items():
        if listed:
            yield f".. rubric:: {kind}\n\n.. autosummary::\n   :toctree: generated"
            yield f"   :template: autosummary/{'class' if kind == 'Classes' else 'function'}.rst\n"
            yield from (f"   {name}" for name in listed)
            yield ""


def _claims() -> Iterator[str]:
    """Yield the lines of the page of claims, made from the definitions that the checker judges by."""
    from assay.checker.spec import definitions

    yield "# Every claim\n"
    yield "Made from the definitions by which the checker judges. A fact is recomputed from the rows and the model, and"
    yield "is true or false of them. A statement about new data holds with a stated confidence, under the assumptions"
    yield "that it lists. [The specification](../specification.md) has the formulas.\n"
    for code, (definition, models) in sorted(definitions().items()):
        yield f"## {definition.name} (`{code}`)\n"
        kind = "A statement about new data" if definition.assumptions else "A fact"
        yield f"{kind}, about {', '.join(f'`{name}`' for name in models) or 'any model'}.\n"
        yield f"{_first(definition.rule)}\n"
        yield f"- Recomputed by: `{definition.rule.__module__}.{definition.rule.__qualname__}`"
        yield f"- Direction: {' or '.join(definition.directions)}"
        yield f"- Assumptions: {', '.join(f'`{name}`' for name in definition.assumptions) or 'none'}\n"


def _first(rule: type) -> str:
    """Return the first sentence of a rule's docstring."""
    return inspect.getdoc(rule).split("\n\n")[0].replace("\n", " ")


def setup(app) -> None:
    write()

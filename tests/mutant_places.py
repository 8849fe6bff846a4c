"""Where the mutants of a row are made, and which lines of these places its tests run."""

import functools
import inspect
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

from tests.mission import row_places
from tests.mutant_operators import Function

_CALLS = 30  # of a function whose lines are noted; later calls seldom run others, and noting costs


class Place(NamedTuple):
    """Code that a row answers for: what lies below a folder or in a file, of a function it and private ones alone, of a
    class without what is public beside it (`others`)."""

    path: str
    function: str = ""
    others: frozenset[str] = frozenset()

    def holds(self, code: CodeType) -> bool:
        first = code.co_qualname.partition(".")[0]
        if not code.co_filename.startswith(self.path) or first in self.others:
            return False
        return not self.function or first == self.function or first.startswith("_")


def places(row: str, source: Path) -> list[Place]:
    """Return where the mutants of a row are made; everywhere if the row names no code."""
    named = (place for place in row_places().get(row, []) if place.startswith("assay."))
    return [place for name in named for place in places_of(name)] or [Place(f"{source}{os.sep}")]


def places_of(name: str) -> list[Place]:
    """Return where the code of a name of the package is; raise if there is no such name."""
    module, _, rest = name, "", ""
    while not find_spec_of(module):
        module, _, last = module.rpartition(".")
        rest = f"{last}.{rest}".rstrip(".")
    found = functools.reduce(getattr, rest.split("."), import_module(module)) if rest else import_module(module)
    if isinstance(found, ModuleType):
        file = str(found.__file__)
        return [Place(file.removesuffix("__init__.py"))]
    if isinstance(found, FunctionType) and "." not in rest:
        return [Place(inspect.getsourcefile(inspect.unwrap(found)) or "", found.__name__)]
    owner = found if isinstance(found, type) else getattr(import_module(module), rest.partition(".")[0])
    line = [one for one in getattr(owner, "__mro__", ()) if one.__module__.startswith("assay.")]
    others = frozenset(getattr(import_module(module), "__all__", ())) - {one.__name__ for one in line}
    room = str(import_module(module).__file__).removesuffix("__init__.py")
    if not line:
        return [Place(room)]  # a table or another object of its module
    if room.endswith(os.sep):
        return [Place(room, others=others)]
    return [Place(str(sys.modules[one.__module__].__file__), others=others) for one in line]


def find_spec_of(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def held(code: CodeType, places: list[Place]) -> bool:
    return "<" not in code.co_qualname and any(one.holds(code) for one in places)


def room_of(file: str) -> str:
    """Return the room that a file of the package is in: its name stays when files are moved within the room."""
    return file.rpartition("/assay/")[2].partition("/")[0].removesuffix(".py")


class Watch:
    """Notes which lines of which functions in some places are run by which test, on all threads."""

    def __init__(self, places: list[Place]) -> None:
        self.places = places
        self.lines: dict[Function, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._test = 0
        self._left: dict[CodeType, int] = {}  # calls to be noted

    def turn(self, test: int) -> None:
        """Begin the next test."""
        self._test = test
        self._left.clear()

    def __enter__(self) -> "Watch":
        threading.settrace(self._called)
        sys.settrace(self._called)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _called(self, frame: FrameType, event: str, arg: Any) -> Callable | None:
        code = frame.f_code
        left = self._left.get(code)
        if left == 0:
            return None
        if left is None:
            left = _CALLS if held(code, self.places) else 0
        self._left[code] = max(left - 1, 0)
        if left == 0:
            return None
        noted, test = self.lines[Function(code.co_filename, code.co_qualname, code.co_firstlineno)], self._test

        def line(frame: FrameType, event: str, arg: Any) -> Callable:
            noted[frame.f_lineno].add(test)
            return line

        return line

"""Names of scikit-learn's module of the same name, handed out by a room that has none of its own for them.

    __getattr__, __dir__ = borrowed(__name__, __all__)

at the end of `assay/tree/__init__.py` makes `assay.tree.plot_tree` scikit-learn's. Its module is imported when the
first such name is asked for. What a room defines itself always comes first.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def borrowed(room: str, own: Iterable[str] = ()) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of the module `room`, "assay.tree", whose own public names are `own`."""
    peer = room.replace("assay", "sklearn", 1)
    public = sorted(own)

    def __getattr__(name: str) -> Any:
        if not name.startswith("_"):
            if _is_module(f"{room}.{name}"):  # `from assay.room import module` asks here first
                return import_module(f"{room}.{name}")
            if name in _public(peer):
                return getattr(import_module(peer), name)
            if _is_module(f"{peer}.{name}"):
                return import_module(f"{peer}.{name}")
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*public, *_public(peer)})

    return __getattr__, __dir__


def _is_module(name: str) -> bool:
    """Tell whether there is a module of this name; one that is no package has none in it."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _public(peer: str) -> frozenset[str]:
    """Return the public names of a module of scikit-learn: those it lists, or those that it defines."""
    module = import_module(peer)
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == peer]
    return frozenset(name for name in listed if not name.startswith("_"))

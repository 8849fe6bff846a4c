"""Stand-ins put into modules, and taken out again."""

import copyreg
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import assay
from assay.patch._stand_in import reduce_theirs, stand_in
from assay.patch._usage import forget

_active: dict[str, tuple[Any, Any]] = {}
"""The names that are patched: scikit-learn's own, and what stands in for it."""


class Patched:
    """What `patch_sklearn` returns: the names that it patched. As a context manager it takes them back at the end.

    Parameters
    ----------
    names : tuple of str
        The names that were patched.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __enter__(self) -> "Patched":
        return self

    def __exit__(self, *error: object) -> None:
        unpatch_sklearn(self.names)

    def __repr__(self) -> str:
        return f"<{len(self.names)} names of scikit-learn are Assay's>"


@cache
def shared_names() -> dict[str, str]:
    """Return the names that both libraries have in a room of one name, with this room.

    Returns
    -------
    dict
        Room of each name.
    """
    import sklearn

    theirs = {iter_module.name for iter_module in iter_modules(sklearn.__path__)}
    results = {}
    for room in sorted(
        iter_module.name
        for iter_module in iter_modules(assay.__path__)
        if iter_module.ispkg and iter_module.name in theirs
    ):
        own, peer = import_module(f"assay.{room}"), import_module(f"sklearn.{room}")
        for name in own.__all__:
            thing = vars(own).get(name)
            if callable(thing) and hasattr(peer, name) and thing.__module__.startswith("assay."):
                results[name] = room
    return results


def patched_names() -> list[str]:
    """Return the names that are patched now."""
    return sorted(_active)


def patch_sklearn(names: Iterable[str] | None = None) -> Patched:
    """Put Assay's classes where scikit-learn has the same names, or those of `names` alone.

    They are replaced in scikit-learn's public modules and in every other module that has imported them, the running
    script included. Returns a context manager that takes back what this call has put there.

    Parameters
    ----------
    names : iterable of str or None
        Names of classes; None: all that both libraries have.

    Returns
    -------
    Patched
        A context manager that takes the names back.

    Examples
    --------
    >>> import sklearn.svm
    >>> with patch_sklearn(["SVC"]):
    ...     hasattr(sklearn.svm.SVC(), "certify")
    True
    >>> hasattr(sklearn.svm.SVC(), "certify")
    False
    """
    wanted = _known(names, shared_names())
    fresh = tuple(name for name in wanted if name not in _active)
    if not _active:
        forget()
    for name in fresh:
        room = shared_names()[name]
        _active[name] = getattr(import_module(f"sklearn.{room}"), name), stand_in(room, name)
        if isinstance(_active[name][0], type):
            copyreg.pickle(_active[name][0], reduce_theirs)  # type: ignore[arg-type]
    _replace([_active[name] for name in fresh])
    return Patched(fresh)


def unpatch_sklearn(names: Iterable[str] | None = None) -> None:
    """Give every module scikit-learn's own classes back, or those of `names` alone. Objects stay what they are.

    Parameters
    ----------
    names : iterable of str or None
        Names of classes; None: all that both libraries have.
    """
    gone = [_active.pop(name) for name in _known(names, _active) if name in _active]
    for old, _ in gone:
        copyreg.dispatch_table.pop(old, None)
    _replace([(new, old) for old, new in gone])


def _known(names: Iterable[str] | None, known: Iterable[str]) -> list[str]:
    """Return the names asked for, all that are known without any; refuse those that the libraries do not share."""
    if names is None:
        return list(known)
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in shared_names():
            near = get_close_matches(str(name), shared_names(), 1)
            raise ValueError(
                f"Assay has no {name!r} for scikit-learn's.{f' Did you mean {near[0]!r}?' if near else ''}"
            )
    return wanted


def _replace(pairs: list[tuple[Any, Any]]) -> None:
    """Put the second of each pair wherever a module has the first, but in Assay and inside scikit-learn."""
    by_identity = {id(old): new for old, new in pairs}
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and not _is_inside(name):
            space = vars(module)
            for key, value in list(space.items()):
                if id(value) in by_identity:
                    space[key] = by_identity[id(value)]


def _is_inside(module: str) -> bool:
    """Tell whether a module is Assay's, or one of scikit-learn's private ones, which keep each other's classes."""
    library, *parts = module.split(".")
    return library == "assay" or (library == "sklearn" and any(part.startswith("_") for part in parts))

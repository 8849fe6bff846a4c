"""Stand-ins put into modules, and taken out again.

The class that stands in a module of scikit-learn: Assay's, which becomes scikit-learn's own where Assay refuses.

An object whose fit is refused changes its class to scikit-learn's, with the same parameters, and is fitted again: from
then on it is an estimator of scikit-learn, in every method, attribute and pickle.

What stand-ins did: fits by either library, their time, and why some fell back.
"""

import copyreg
import logging
import sys
import time
from abc import ABCMeta
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, partial, wraps
from importlib import import_module
from inspect import getattr_static, isfunction
from pkgutil import iter_modules, resolve_name
from types import ModuleType, prepare_class
from typing import Any

import assay
from assay.stored import scikit_parameters

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


FITS = ("fit", "fit_predict", "fit_transform", "partial_fit")
_KEPT = ("_sklearn", "_skl", "_metadata")
"""How the names of attributes begin that scikit-learn sets on objects before `fit`: output, callbacks, routing."""


class StandInType(ABCMeta):
    """The type of stand-ins. Objects of either library's class are instances; a class that is derived from a stand-in
    is derived from scikit-learn's own, whose private methods it may override."""

    ours: type
    theirs: type

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        if not any(isinstance(base, StandInType) for base in bases):
            return super().__new__(cls, name, bases, namespace, **options)
        own = tuple(base.theirs if isinstance(base, StandInType) else base for base in bases)
        log.info("%s: derived from scikit-learn's own class", name)
        return prepare_class(name, own)[0](name, own, namespace, **options)

    def __instancecheck__(cls, instance: Any) -> bool:
        return issubclass(type(instance), (cls.ours, cls.theirs))

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, (cls.ours, cls.theirs))


@cache
def stand_in(room: str, name: str) -> Any:
    """Return what stands in for this name of scikit-learn's room: a class, or a function."""
    ours, theirs = (_of(library, room, name) for library in ("assay", "sklearn"))
    if isfunction(ours):
        return _function(ours, theirs)
    methods = {key: _fitting(key, ours, theirs) for key in FITS if isfunction(getattr_static(ours, key, None))}
    about = {"__module__": ours.__module__, "__qualname__": name, "__doc__": ours.__doc__, "ours": ours}
    more = {"theirs": theirs, "__reduce_ex__": _reduce(room, name, ours), "__setstate__": _set_state(ours, theirs)}
    return StandInType(name, (ours,), {**about, **more, **methods})


def _of(library: str, room: str, name: str) -> Any:
    """Return the library's own class: where it is defined, scikit-learn's is never replaced."""
    thing = getattr(import_module(f"{library}.{room}"), name)
    return thing.theirs if isinstance(thing, StandInType) else thing


def _function(ours: Any, theirs: Any) -> Callable[..., Any]:
    @wraps(theirs)
    def call(*args: Any, **options: Any) -> Any:
        try:
            with used(theirs.__name__):
                return ours(*args, **options)
        except Exception as refusal:
            with fallen_back(theirs.__name__, _reason(refusal)):
                return theirs(*args, **options)

    return call


def _fitting(method: str, ours: Any, theirs: Any) -> Callable[..., Any]:
    """Return the method that fits by `ours`, or by `theirs` if that is refused."""
    fit = getattr(ours, method)

    @wraps(fit)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        before = dict(vars(self))
        try:
            with used(ours.__name__):
                return fit(self, *args, **options)
        except Exception as refusal:
            if is_fitted(before) and (method == "partial_fit" or before.get("warm_start")):
                raise  # what Assay has learnt so far is nothing that scikit-learn could go on with
            kind = type(self)
            _put(self, before)
            state = their_state(self, theirs, before)
            self.__class__ = theirs
            _put(self, state)
            try:
                with fallen_back(ours.__name__, _reason(refusal)):
                    return getattr(theirs, method)(self, *args, **options)
            except Exception:
                self.__class__ = kind
                _put(self, before)
                raise

    return call


def _put(model: Any, state: dict[str, Any]) -> None:
    vars(model).clear()
    vars(model).update(state)


def is_fitted(state: dict[str, Any]) -> bool:
    """Tell whether these attributes are those of a fitted model."""
    return any(name.endswith("_") and not name.startswith("_") for name in state)


def their_state(model: Any, theirs: type, state: dict[str, Any]) -> dict[str, Any]:
    """Return what an estimator of scikit-learn with the same parameters keeps before `fit`."""
    kept = {name: value for name, value in state.items() if name.startswith(_KEPT)}
    return kept | scikit_parameters(model, theirs)


def _reason(refusal: Exception) -> str:
    return f"{type(refusal).__name__}: {' '.join(str(refusal).split())}"[:300]


def _reduce(room: str, name: str, ours: Any) -> Callable[..., Any]:
    """Return how an object is pickled: a fitted one as Assay's, one that is not fitted as a stand-in, which worker
    processes fit as this one would."""

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        if is_fitted(vars(self)):
            return copyreg._reconstructor, (ours, object, None), self.__getstate__()  # type: ignore[attr-defined]
        return _made, (room, name), self.__getstate__()

    return __reduce_ex__


def _made(room: str, name: str) -> Any:
    return object.__new__(stand_in(room, name))


def _set_state(ours: Any, theirs: Any) -> Callable[..., None]:
    """Return how an object takes its state from a pickle: one that scikit-learn has written is its own."""

    def __setstate__(self: Any, state: dict[str, Any]) -> None:
        if "_sklearn_version" in state:
            self.__class__ = theirs
            self.__setstate__(state)
        else:
            ours.__setstate__(self, state)

    return __setstate__


class Unmade:
    """Makes an empty object of scikit-learn's own class, while pickles name the class by its address."""

    def __init__(self, theirs: type) -> None:
        self.theirs = theirs

    def __call__(self) -> Any:
        return object.__new__(self.theirs)

    def __reduce__(self) -> Any:
        return partial, (object.__new__, _Address(self.theirs))


class _Address:
    """What a pickle holds for a class that cannot be found under its own name while another stands there."""

    def __init__(self, theirs: type) -> None:
        self.theirs = theirs

    def __reduce__(self) -> Any:
        return resolve_name, (f"{self.theirs.__module__}:{self.theirs.__qualname__}",)


def reduce_theirs(model: Any) -> Any:
    """Return how an object of scikit-learn's own class is pickled while another class stands under its name."""
    return Unmade(type(model)), (), model.__getstate__()


log = logging.getLogger("assay.patch")


@dataclass
class Usage:
    """What one class, or function, was used for."""

    ours: int = 0
    theirs: int = 0
    seconds: float = 0.0
    their_seconds: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)


_used: dict[str, Usage] = {}


@contextmanager
def used(name: str) -> Iterator[None]:
    """Count one call that Assay answers, and its time, unless it is refused."""
    began = time.perf_counter()
    yield
    usage = _used.setdefault(name, Usage())
    usage.ours += 1
    usage.seconds += time.perf_counter() - began


@contextmanager
def fallen_back(name: str, reason: str) -> Iterator[None]:
    """Count one call that scikit-learn answers, its time, and why; log it."""
    began = time.perf_counter()
    yield
    usage = _used.setdefault(name, Usage())
    usage.theirs += 1
    usage.their_seconds += time.perf_counter() - began
    usage.reasons[reason] += 1
    log.info("%s: scikit-learn's own, because %s", name, reason)


def forget() -> None:
    """Begin to count anew."""
    _used.clear()


@dataclass(frozen=True)
class Report:
    """Names that are patched, and what each was used for since `patch_sklearn`.

    Parameters
    ----------
    patched : tuple of str
        Names that are patched.
    used : dict
        What each class was used for.
    """

    patched: tuple[str, ...]
    used: dict[str, Usage]

    @property
    def fallen_back(self) -> dict[str, dict[str, int]]:
        """The reasons of each class that fell back, with how often."""
        return {name: dict(item.reasons) for name, item in self.used.items() if item.reasons}

    def __str__(self) -> str:
        lines = [f"{len(self.patched)} names of scikit-learn are Assay's: {', '.join(self.patched) or 'none'}."]
        if self.used:
            lines.append(f"{'':32s}{'Assay':>16s}{'scikit-learn':>20s}")
        for name, item in sorted(self.used.items()):
            theirs = f"{item.theirs:6d} in {item.their_seconds:7.3f} s" if item.theirs else ""
            lines.append(f"{name:32s}{item.ours:4d} in {item.seconds:7.3f} s  {theirs}".rstrip())
            lines += [f"    {count} x scikit-learn's own: {reason}" for reason, count in item.reasons.items()]
        return "\n".join(lines)


def report() -> Report:
    """Return what is patched, and what the classes were used for since the first `patch_sklearn`.

    Returns
    -------
    Report
        The names and their use.
    """

    return Report(tuple(patched_names()), dict(_used))

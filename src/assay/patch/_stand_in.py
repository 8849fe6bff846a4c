"""The class that stands in a module of scikit-learn: Assay's, which becomes scikit-learn's own where Assay refuses.

An object whose fit is refused changes its class to scikit-learn's, with the same parameters, and is fitted again: from
then on it is an estimator of scikit-learn, in every method, attribute and pickle.
"""

import copyreg
from abc import ABCMeta
from collections.abc import Callable
from functools import cache, partial, wraps
from importlib import import_module
from inspect import getattr_static, isfunction
from pkgutil import resolve_name
from types import prepare_class
from typing import Any

from assay.patch._usage import fallen_back, log, used
from assay.stored import scikit_parameters

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

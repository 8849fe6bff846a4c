"""The list of learners: every class with a card in the learner rooms."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import assay
from assay.base import Learner
from assay.stored import class_name

_NO_LEARNERS = {
    "checker", "claims", "cli", "data", "datasets", "export", "guarantees", "kernels", "learning", "loops", "losses",
    "metrics", "optim", "patch", "plot", "report", "scan", "study", "studio", "textbook", "theory",
}  # fmt: skip

_registered: dict[str, type[Learner]] = {}


@cache
def rooms() -> tuple[str, ...]:
    """Return the rooms that hold learners: every package of Assay that is not one of the house's own."""
    return tuple(sorted({room.name for room in iter_modules(assay.__path__) if room.ispkg} - _NO_LEARNERS))


def register(learner: type[Learner]) -> type[Learner]:
    """Make a learner known that lives outside the package: it is listed, tried by `assay learn`, and loaded from model
    files."""
    _registered[class_name(learner)] = learner
    return learner


def forget(learner: type[Learner]) -> None:
    """Take back `register`."""
    _registered.pop(class_name(learner), None)


def find(name: str) -> Any:
    """Return the class of that room and name, "linear_model.Ridge", which model files may hold; raise ValueError if
    there is none."""
    if name in _registered:
        return _registered[name]
    room, _, kind = str(name).partition(".")
    result = getattr(import_module(f"assay.{room}"), kind, None) if room in (*rooms(), "learning") else None
    if not isinstance(result, type) or not hasattr(result, "restore"):
        raise ValueError(f"there is no learner {str(name)[:60]!r}.")
    return result


def learners(task: str | None = None) -> list[type[Learner]]:
    """Return every learner, by room and name; with `task`, those of one task ("classify", "regress", ...).

    >>> [learner.__name__ for learner in learners("regress")][:2]
    ['AdaBoostRegressor', 'BaggingRegressor']
    """
    results = [
        member
        for room in rooms()
        for name, member in sorted(vars(import_module(f"assay.{room}")).items())
        if is_learner(member) and member.__name__ == name
    ]
    results += [item for item in _registered.values() if is_learner(item)]
    return [result for result in results if task is None or result.card.task == task]


def is_learner(thing: object) -> bool:
    """Tell whether `thing` is a class that a user can fit: a `Learner` with a card."""
    return isinstance(thing, type) and issubclass(thing, Learner) and hasattr(thing, "card")


def kinds(learner: type[Learner]) -> frozenset[str]:
    """Return what kind of learning it is: "supervised", "unsupervised" or "semi-supervised" (it also reads rows without
    labels); "online" if it learns row by row, "self-supervised" if it hides a part of the rows and predicts it.

    Ensembles are "serial" if each member rests on those before it (boosting), else "parallel": these have `n_jobs`.
    A classifier is "generative" if it models the rows of each class, from which it can draw, else "discriminative".

    >>> from assay.linear_model import SGDClassifier
    >>> sorted(kinds(SGDClassifier))
    ['discriminative', 'online', 'supervised']
    """
    results = {"supervised" if learner.card.task in ("classify", "regress") else "unsupervised"}
    if getattr(learner, "semi_supervised", False):
        results = {"semi-supervised"}
    if getattr(learner, "self_supervised", False):
        results.add("self-supervised")
    if hasattr(learner, "partial_fit") and hasattr(learner(), "partial_fit"):  # of some it depends on the estimator
        results.add("online")
    if learner.card.task == "classify":
        results.add("generative" if hasattr(learner, "sample") else "discriminative")
    if learner.card.ensemble:
        results.add(learner.card.ensemble)
    return frozenset(results)

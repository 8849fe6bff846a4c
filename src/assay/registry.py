"""The list of learners: every class with a card in the learner rooms."""

from importlib import import_module

from assay.base import Learner

LEARNER_ROOMS = (
    "discriminant_analysis",
    "linear_model",
    "kernel_ridge",
    "neural_network",
    "kernel_model",
    "svm",
    "decomposition",
    "mixture",
    "cluster",
    "neighbors",
    "tree",
    "ensemble",
)
"""Rooms that hold learners. A new room is added here; a test notices a learner that is missing."""


def learners(task: str | None = None) -> list[type[Learner]]:
    """Return every learner, by room and name; with `task`, those of one task ("classify", "regress", ...).

    >>> [learner.__name__ for learner in learners("regress")][:2]
    ['ElasticNet', 'GeneralizedLinearRegressor']
    """
    found = [
        member
        for room in LEARNER_ROOMS
        for name, member in sorted(vars(import_module(f"assay.{room}")).items())
        if is_learner(member) and member.__name__ == name
    ]
    return [one for one in found if task is None or one.card.task == task]


def is_learner(thing: object) -> bool:
    """Tell whether `thing` is a class that a user can fit: a `Learner` with a card."""
    return isinstance(thing, type) and issubclass(thing, Learner) and hasattr(thing, "card")


def kinds(learner: type[Learner]) -> frozenset[str]:
    """Return what kind of learning it is: "supervised" or "unsupervised"; "online" if it learns row by row.

    A classifier is "generative" if it models the rows of each class, from which it can draw, else "discriminative".

    >>> from assay.linear_model import SGDClassifier
    >>> sorted(kinds(SGDClassifier))
    ['discriminative', 'online', 'supervised']
    """
    found = {"supervised" if learner.card.task in ("classify", "regress") else "unsupervised"}
    if hasattr(learner, "partial_fit"):
        found.add("online")
    if learner.card.task == "classify":
        found.add("generative" if hasattr(learner, "sample") else "discriminative")
    return frozenset(found)

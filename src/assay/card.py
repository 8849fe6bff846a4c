"""The card of a learner: its model, strategy, algorithm and guarantee."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Card:
    """What a learner is, in four elements.

    Attributes
    ----------
    name, zh : str
        English and Chinese name of the method.
    mission : tuple of str
        Rows of the mission table that the learner answers.
    task : str
        "classify", "regress", "cluster", "transform" or "density".
    model : object
        The hypothesis space, from `assay.theory.spaces`; it knows its capacity.
    strategy : str
        The loss and the regulariser that are minimised.
    algorithm : str
        How the minimum is found.
    guarantee : tuple of str
        Names of the claims that `certify` can make beyond those that every learner of the task has.
    most_rows : int, optional
        Rows up to which `assay learn` tries the learner unasked, where time or memory grow faster than the rows.
    """

    name: str
    zh: str
    mission: tuple[str, ...]
    task: str
    model: Any
    strategy: str
    algorithm: str
    guarantee: tuple[str, ...]
    most_rows: int | None = None

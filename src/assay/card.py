"""The card of a learner: its model, strategy, algorithm and guarantee."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Range:
    """Values of a parameter worth trying: numbers from `low` to `high`, by ratios if `log`, whole if `whole`."""

    low: float
    high: float
    log: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Options:
    """Values of a parameter worth trying, named one by one."""

    values: tuple[Any, ...]


def log(low: float, high: float, *, whole: bool = False) -> Range:
    """Return a range in which equal ratios are equally likely."""
    return Range(low, high, log=True, whole=whole)


def options(*values: Any) -> Options:
    """Return the values themselves."""
    return Options(values)


@dataclass(frozen=True)
class Card:
    """What a learner is, in four elements.

    Attributes
    ----------
    name : str
        The name of the method; catalogues of translations have it in other languages (`assay.messages`).
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
    input : tuple of str
        What it reads beside rows of "numbers": "nominal" columns as codes (which are named in its parameter
        `nominal`), "missing" values as NaN. What it does not read, `assay learn` encodes for it.
    most_rows : int, optional
        Rows up to which `assay learn` tries the learner unasked, where time or memory grow faster than the rows.
    ensemble : str
        "serial" if it has members that rest on those before them, "parallel" if members do not know of each other.
    role : str
        "alone" if `assay learn` tries it unasked, "named" if only where it is named; of what is made of other learners
        what it does with them: "vote", "stack", "threshold", "cost", "target", "reduction" or "sample".
    first : int
        Its place in the list of learners that `assay learn` tries first; 0 if it is tried later.
    light : bool
        Whether it is tried first on many rows too.
    quick : bool
        Whether the first certified answer of a study is its own.
    search : mapping
        Parameters that `assay learn` tunes, each with the values worth trying (`log`, `Range`, `options`).
    begin : function
        Returns the settings that `assay learn` begins with for so many rows, where they are not the learner's own.
    always_tuned : bool
        Whether its settings are tuned although it is not among the best with its own, where a time is asked for.
    """

    name: str
    task: str
    model: Any
    strategy: str
    algorithm: str
    guarantee: tuple[str, ...]
    input: tuple[str, ...] = ("numbers",)
    most_rows: int | None = None
    ensemble: str = ""
    role: str = "alone"
    first: int = 0
    light: bool = False
    quick: bool = False
    search: Mapping[str, Range | Options] = field(default_factory=dict)
    begin: Callable[[int], Mapping[str, Any]] = lambda rows: {}
    always_tuned: bool = False

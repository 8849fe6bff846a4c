"""What a study tells while it runs: small records, the same for a terminal, a web page and a log."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Started:
    """A learner with these settings is being fitted; `what` is "search" or "final"."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    what: str = "search"


@dataclass(frozen=True)
class Finished:
    """A candidate was judged, or left out (`candidate.note` says why)."""

    candidate: Any


@dataclass(frozen=True)
class First:
    """A first certified answer is there, which is no candidate of the search (`learning.study`)."""

    candidate: Any


@dataclass(frozen=True)
class Left:
    """Seconds of the budget that are left (None: no limit), and how many settings were judged."""

    seconds: float | None
    done: int


@dataclass(frozen=True)
class Note:
    """A sentence about the table, which the study keeps; or, `passing`, about what is done now."""

    text: str
    passing: bool = False


Event = Started | Finished | First | Left | Note

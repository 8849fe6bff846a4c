"""Which learners are tried, in which order, and with which settings.

The first list is short and chosen by what the table is; cheap learners come first. Settings are drawn from the ranges
on the learners' cards, by a seed, the learner's name and a number: the same on every machine, whatever ran before.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assay.base import Learner
from assay.card import Options, Range
from assay.messages import Message
from assay.registry import learners as all_learners

TASKS = {"classify": Message("task.classification"), "regress": Message("task.regression")}


def task_named(name: str | None) -> str | None:
    """Return the task that a name means; None stays None.

    >>> task_named("classification"), task_named("regress")
    ('classify', 'regress')
    """
    if name is None or name in TASKS:
        return name
    result = next((task for task, words in TASKS.items() if name == words), None)
    if result is None:
        raise ValueError(Message("task.unknown", given=name))
    return result


_MANY = 30_000  # rows from which the slower half of the first list is not tried unasked


def suitable(
    task: str, names: Sequence[str], without: Sequence[str], rows: int, force: bool
) -> tuple[list[type[Learner]], list[str]]:
    """Return the learners to try first, and which are too slow for so many rows."""
    check_names(task, [*names, *without])
    if names and "all" not in [name.lower() for name in names]:
        known = {kind.__name__.lower(): kind for kind in all_learners(task)}
        first = [known[name.lower()] for name in dict.fromkeys(names)]
    else:
        first = sorted((kind for kind in all_learners(task) if kind.card.first), key=lambda kind: kind.card.first)
        if rows > _MANY:
            first = [kind for kind in first if kind.card.light]
        first += [kind for kind in _alone_of(task) if kind not in first] if names else []
    first = _without(first, without)
    slow = [] if force else [kind for kind in first if too_slow(kind, rows)]
    return [kind for kind in first if kind not in slow], [kind.__name__ for kind in slow]


def others(
    task: str, names: Sequence[str], without: Sequence[str], rows: int, first: Sequence[type[Learner]]
) -> list[type[Learner]]:
    """Return the learners to try if time is left after those of the first list; none where learners are named."""
    if names:
        return []
    return [kind for kind in _without(_alone_of(task), without) if kind not in first and not too_slow(kind, rows)]


def check_names(task: str, names: Sequence[str]) -> None:
    """Refuse names that are no learners for the task."""
    if not names:
        return
    known = {kind.__name__.lower(): kind for kind in all_learners(task)}
    for name in names:
        if name.lower() not in known and name.lower() != "all":
            allowed = [kind.__name__ for kind in known.values()]
            raise ValueError(Message("learner.unknown", name=name, task=TASKS[task], allowed=allowed))


def _without(kinds: Sequence[type[Learner]], without: Sequence[str]) -> list[type[Learner]]:
    left_out = {name.lower() for name in without}
    return [kind for kind in kinds if kind.__name__.lower() not in left_out]


def _alone_of(task: str) -> list[type[Learner]]:
    return [kind for kind in all_learners(task) if _alone(kind)]


def _alone(kind: type[Learner]) -> bool:
    """Tell whether a learner is one that is tried unasked: no wrapper of others, none for rows without labels."""
    return not getattr(kind, "semi_supervised", False) and kind.card.role == "alone"


def in_role(task: str, role: str) -> type[Learner]:
    """Return the learner of a task that does this with others: "vote", "stack", "threshold" or "cost"."""
    return next(kind for kind in all_learners(task) if kind.card.role == role)


def quick(task: str) -> type[Learner]:
    """Return the learner of the first certified answer."""
    return next(kind for kind in all_learners(task) if kind.card.quick)


def too_slow(kind: type[Learner], rows: int) -> bool:
    return kind.card.most_rows is not None and rows > kind.card.most_rows


def tunable(kind: type[Learner]) -> bool:
    return bool(_space(kind))


def drawn(kind: type[Learner], number: int, seed: int) -> dict[str, Any]:
    """Return the settings of that number; the 0th are the learner's own."""
    if number == 0:
        return {}
    random = np.random.default_rng([seed, number, zlib.crc32(kind.__name__.encode())])
    return {name: _value(space, random.random()) for name, space in _space(kind).items()}


def near(kind: type[Learner], settings: Mapping[str, Any], number: int, seed: int) -> dict[str, Any]:
    """Return settings near those of the best one so far."""
    random = np.random.default_rng([seed, 1_000_000 + number, zlib.crc32(kind.__name__.encode())])
    own, results = kind().get_params(deep=False), {}
    for name, space in _space(kind).items():
        value = settings.get(name, own[name])
        if isinstance(space, Options) or isinstance(value, (str, type(None))):
            results[name] = value if random.random() < 0.7 else _value(space, random.random())
            continue
        width = np.log(space.high / space.low) if space.log else space.high - space.low
        step = 0.15 * width * random.normal()
        moved = float(value) * np.exp(step) if space.log else float(value) + step
        results[name] = _whole(space, min(max(moved, space.low), space.high))
    return results


def _space(kind: type[Learner]) -> dict[str, Range | Options]:
    return {name: space for name, space in kind.card.search.items() if name in kind._get_param_names()}


def _value(space: Range | Options, u: float) -> Any:
    if isinstance(space, Options):
        return space.values[int(u * len(space.values))]
    value = space.low * (space.high / space.low) ** u if space.log else space.low + u * (space.high - space.low)
    return _whole(space, value)


def _whole(space: Range, value: float) -> Any:
    return round(value) if space.whole else float(f"{value:.4g}")

"""How many rows for which error; and the cards of the learners."""

import inspect
import math
import sys
from typing import Any

from assay.messages import Message, method
from assay.registry import learners
from assay.theory import plan as theory
from assay.theory.spaces import OfDimension

_ROWS = (30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)


def plan(error: float, width: float, confidence: float, candidates: int, dimension: int) -> dict[str, Any]:
    """Return the hold-out rows for a width, the training rows for a class of some VC dimension, and curves of both."""
    delta = 1 - confidence
    held = theory.holdout_rows(width, delta, error=error, candidates=candidates)
    space = OfDimension(dimension)
    needed = theory.rows_needed(min(width, 0.999 - error), delta, space, training_error=error)
    wrong = [math.ceil(error * n - 1e-9) for n in _ROWS]
    above = [theory.holdout_width(n, delta / candidates, errors=k)[0] for n, k in zip(_ROWS, wrong, strict=True)]
    return {
        "holdout": held._asdict(),
        "training": [[line.theorem, line.value, line.recommended] for line in needed],
        "rows": list(_ROWS),
        "bounds": [min(1.0, k / n + parent) for n, k, parent in zip(_ROWS, wrong, above, strict=True)],
    }


def methods(name: str = "") -> Any:
    """Return every learner's card in short, or one learner's card with the page about it."""
    known = {kind.__name__: kind for kind in learners()}
    if not name:
        cards = {key: kind.card for key, kind in known.items()}
        return [
            {"class": key, "name": card.name, "zh": method(key, card.name, "zh"), "task": card.task}
            for key, card in cards.items()
        ]
    if name not in known:
        raise ValueError(Message("no-learner", name=name[:60]))
    kind = known[name]
    card = kind.card
    module = inspect.cleandoc(sys.modules[kind.__module__].__doc__ or "")
    return {
        "class": name,
        "name": card.name,
        "zh": method(name, card.name, "zh"),
        "task": card.task,
        "model": str(card.model),
        "strategy": card.strategy,
        "algorithm": card.algorithm,
        "guarantee": list(card.guarantee),
        "settings": "",
        "page": module.splitlines(),
        "about": inspect.cleandoc(kind.__doc__ or "").splitlines(),
    }

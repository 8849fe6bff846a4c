"""The lines of a leaderboard as plain data."""

import math
from typing import TYPE_CHECKING, Any

from assay.messages import Message, method, render

if TYPE_CHECKING:
    from assay.learning import Candidate


def row(one: "Candidate") -> dict[str, Any]:
    """Return a line of the leaderboard as plain data."""
    method, chinese = _names(one)
    errors = ("cv", "training_error", "holdout_error", "holdout_metric", "bound", "metric_bound", "seconds")
    settings = ", ".join(f"{name}={value}" for name, value in one.settings.items())
    return {name: _finite(getattr(one, name)) for name in errors} | {
        "name": str(one.name),
        "method": method,
        "zh": chinese,
        "settings": settings[:200],
        "status": one.status,
        "note": one.note,
    }


def _names(one: "Candidate") -> tuple[str, str]:
    """Return the name of a line in English and in Chinese; the model of a fold says so."""
    card = getattr(one.kind, "card", None)
    if card is None:
        return str(one.name), render(one.name, "zh", "page")
    chinese = method(one.kind.__name__, card.name, "zh")
    if isinstance(one.name, Message):
        named = [Message("name.fold", fold=one.name.values["fold"], name=name) for name in (card.name, chinese)]
        return str(named[0]), named[1].render("zh", "page")
    return card.name, chinese


def best_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows, of which further settings of a learner that came to nothing are marked as `more`."""
    seen: set[str] = set()
    marked = []
    for one in rows:
        marked.append(one | {"more": one["status"] == "ranked" and one["name"] in seen})
        seen.add(one["name"])
    return marked


def _finite(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)

"""The lines of a leaderboard as plain data."""

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.learning import Candidate


def row(one: "Candidate") -> dict[str, Any]:
    """Return a line of the leaderboard as plain data."""
    card = getattr(one.kind, "card", None)
    errors = ("cv", "training_error", "holdout_error", "bound", "seconds")
    settings = ", ".join(f"{name}={value}" for name, value in one.settings.items())
    return {name: _finite(getattr(one, name)) for name in errors} | {
        "name": one.name,
        "method": one.name if card is None else card.name,
        "zh": ("基线" if one.status == "baseline" else "") if card is None else card.zh,
        "settings": settings[:200],
        "status": one.status,
        "note": one.note,
    }


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

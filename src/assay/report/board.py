"""The lines of a leaderboard as plain data."""

import math
import re
from typing import TYPE_CHECKING, Any

from assay.messages import method

if TYPE_CHECKING:
    from assay.learning import Candidate


def row(one: "Candidate") -> dict[str, Any]:
    """Return a line of the leaderboard as plain data."""
    method, chinese = _names(one)
    errors = ("cv", "training_error", "holdout_error", "bound", "seconds")
    settings = ", ".join(f"{name}={value}" for name, value in one.settings.items())
    return {name: _finite(getattr(one, name)) for name in errors} | {
        "name": one.name,
        "method": method,
        "zh": chinese,
        "settings": settings[:200],
        "status": one.status,
        "note": one.note,
    }


_FOLD, _JOINED = re.compile(r"Fold (\d+): "), re.compile(r"(Vote|Mean) of (\d+) fold models")


def _names(one: "Candidate") -> tuple[str, str]:
    """Return the name of a line in English and in Chinese; the model of a fold says so."""
    card = getattr(one.kind, "card", None)
    if card is not None:
        fold = _FOLD.match(one.name)
        chinese = method(one.kind.__name__, card.name, "zh")
        return (f"{fold[0]}{card.name}", f"第 {fold[1]} 折：{chinese}") if fold else (card.name, chinese)
    if joined := _JOINED.fullmatch(one.name):
        return one.name, f"{joined[2]} 个折模型的{'投票' if joined[1] == 'Vote' else '平均'}"
    return one.name, "基线" if one.status == "baseline" else ""


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

"""The leaderboard as a figure."""

from typing import Any


def leaderboard(study: Any) -> Any:
    """Return a matplotlib figure: the cross-validated metric of each learner's best settings, the chosen one marked."""
    from matplotlib.figure import Figure

    best: dict[str, Any] = {}
    for candidate in study.candidates:
        if candidate.losses:
            best.setdefault(candidate.name, candidate)
    rows = list(best.values())[::-1]
    figure = Figure(figsize=(7, 1 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    colours = ["tab:blue" if row is study.chosen else "tab:gray" for row in rows]
    axes.barh([row.name for row in rows], [row.cv for row in rows], color=colours)
    axes.set_xlabel(f"{study.metric.name} in cross-validation")
    return figure

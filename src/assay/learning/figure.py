"""The leaderboard as a figure."""

from typing import Any


def leaderboard(study: Any) -> Any:
    """Return a matplotlib figure: the cross-validated metric of each learner's best settings, the chosen one marked."""
    from matplotlib.figure import Figure

    best: dict[str, Any] = {}
    for one in study.candidates:
        if one.losses:
            best.setdefault(one.name, one)
    rows = list(best.values())[::-1]
    figure = Figure(figsize=(7, 1 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    colours = ["tab:blue" if one is study.chosen else "tab:gray" for one in rows]
    axes.barh([one.name for one in rows], [one.cv for one in rows], color=colours)
    axes.set_xlabel(f"{study.metric.name} in cross-validation")
    return figure

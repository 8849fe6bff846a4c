"""The figure of an explanation."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from assay.explain.explanation import Explanation


def draw(explanation: "Explanation") -> Any:
    """Return a matplotlib Figure: importances with limits, subgroups with limits, effects of up to six columns."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("drawing needs matplotlib: pip install 'assay[plot]'.") from None
    shown = list(dict.fromkeys(explanation.effects.get("column", ())))[:6]
    lines = 1 + -(-len(shown) // 3)
    figure = Figure(figsize=(12, 3.4 * lines), layout="constrained")
    grid = figure.add_gridspec(lines, 6)
    _bars(figure.add_subplot(grid[0, :3]), "Loss that shuffling adds", explanation.importance, ["column"], "importance")
    _bars(figure.add_subplot(grid[0, 3:]), "Loss by group", _worst(explanation.subgroups), ["column", "group"], "loss")
    for i, name in enumerate(shown):
        _effect(figure.add_subplot(grid[1 + i // 3, 2 * (i % 3) : 2 * (i % 3) + 2]), explanation, name)
    return figure


def _worst(groups: Any, most: int = 12) -> Any:
    order: Any = np.argsort([-loss for loss in groups["loss"]], kind="stable")[:most] if groups.get("loss") else []
    return {name: [values[i] for i in order] for name, values in groups.items()}


def _bars(axes: Any, title: str, frame: Any, names: list[str], value: str) -> None:
    labels = [" = ".join(str(part)[:24] for part in parts) for parts in zip(*(frame[name] for name in names))][:12]
    at, values = np.arange(len(labels)), np.array(frame[value][: len(labels)], dtype=float)
    low, high = (np.array(frame[end][: len(labels)], dtype=float) for end in ("low", "high"))
    axes.errorbar(values, at, xerr=[np.maximum(values - low, 0), np.maximum(high - values, 0)], fmt="o", capsize=3)
    axes.set_yticks(at, [label.replace("$", r"\$") for label in labels])
    axes.invert_yaxis()
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_title(title)


def _effect(axes: Any, explanation: "Explanation", name: str) -> None:
    frame = explanation.effects
    rows = [i for i, column in enumerate(frame["column"]) if column == name]
    labels = list(dict.fromkeys(frame["class"][i] for i in rows))
    for label in labels[-1:] if len(labels) == 2 else labels[:8]:
        some = [i for i in rows if frame["class"][i] == label]
        values = [frame["value"][i] for i in some]
        numbers = all(isinstance(value, float) for value in values)
        places = values if numbers else list(range(len(values)))
        axes.plot(places, [frame["mean"][i] for i in some], "o-", label=None if label is None else str(label))
        if not numbers:
            axes.set_xticks(places, [str(value)[:14].replace("$", r"\$") for value in values], rotation=45, ha="right")
    if labels != [None]:
        axes.legend(fontsize="small")
    axes.set_title(f"Mean prediction by {name}".replace("$", r"\$"))

"""Figures of Bayesian networks: the graph, each node with its table."""

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.plot.figures import BLUE, GREY, INK, _canvas, _short
from assay.plot.frames import Frame
from assay.plot.layers import layered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NODES = 80
_MOST_ROWS, _MOST_COLUMNS = 9, 5  # of a table that is written out
_LINE = 0.115  # height of a line of a table, in inches


def network_frame(model: Any, tables: bool = True) -> Frame:
    """Return `x`, `width` (inches), `depth`, `name` and `table` (lines of text, empty without `tables`) of each node;
    `edges`, and the `routes` of these, their x in each layer from parent to child.

    A node stands below all its parents; no edge passes behind another node.
    """
    net = getattr(model, "network_", model)
    written = [_table(net, node) if tables else [] for node in range(len(net.names))]
    widths = [
        max(0.3 + 0.085 * len(_short(name, 18)), 0.1 + 0.052 * max(map(len, lines), default=0))
        for name, lines in zip(net.names, written)
    ]
    layout = layered(net.parents, net.order, widths)
    edges = [(one, node) for node, above in enumerate(net.parents) for one in above]
    return {
        "x": layout.x, "depth": layout.layer, "name": list(net.names), "table": written, "edges": edges,
        "routes": layout.routes, "width": np.array(widths),
    }  # fmt: skip


def _table(net: Any, node: int) -> list[str]:
    """Return the table of a node as lines of equal width: parents' states, then probabilities."""
    above = [one for one in net.parents[node] if net.states[one] is not None]
    table = net.tables[node]
    rows = int(np.prod(table.shape[:-1]))
    if rows > _MOST_ROWS or table.shape[-1] > _MOST_COLUMNS:
        return [f"table of {rows} x {table.shape[-1]}"]
    if net.states[node] is None:
        slopes = [_short(net.names[one], 8) for one in net.parents[node] if net.states[one] is None]
        head = ["1", *slopes, "+-"]
    else:
        head = [_short(state, 8) for state in net.states[node]]
    lines = [[*(_short(net.names[one], 8) for one in above), *head]]
    for where in product(*(range(net.sizes[one]) for one in above)):
        states = [_short(net.states[one][i], 8) for one, i in zip(above, where)]
        lines.append([*states, *(f"{value:.3g}" for value in table[where])])
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    return ["  ".join(word.rjust(width) for word, width in zip(line, widths)) for line in lines]


def dependency_graph(model: Any, tables: bool = True) -> "Figure":
    """Draw a network, `Network` or fitted, with parents above children; `tables` writes the small ones below the nodes.

    A row of a table lists the states of the parents, then the probability of each state; of a number its intercept,
    coefficients and standard deviation (+-).
    """
    frame = network_frame(model, tables)
    many, levels = len(frame["name"]), int(frame["depth"].max()) + 1
    if many > _MOST_NODES:
        raise ValueError(f"network: {many} nodes are too many to read; at most {_MOST_NODES}.")
    tall = np.array([_LINE * len(table) for table in frame["table"]])
    room = [0.35 + max(tall[frame["depth"] == level]) for level in range(levels)]
    top = -np.concatenate([[0.0], np.cumsum([one + 0.55 for one in room])])
    x, y = frame["x"], top[frame["depth"]] - 0.16
    passed = [one for route in frame["routes"] for one in route]
    left = min([*(x - frame["width"] / 2), *passed]) - 0.2
    right = max([*(x + frame["width"] / 2), *passed]) + 0.2
    figure, (axes,) = _canvas(1, height=0.6 - top[-1], width=max(4.8, right - left + 0.4))
    for (parent, child), route in zip(frame["edges"], frame["routes"]):
        levels_passed = range(frame["depth"][parent], frame["depth"][child] + 1)
        ends = [(top[k], top[k] - room[k]) for k in levels_passed]
        ends[0] = (0.0, top[frame["depth"][parent]] - 0.34 - tall[parent])
        _draw_edge(axes, route, ends)
    for node, name in enumerate(frame["name"]):
        box = {"boxstyle": "round", "facecolor": BLUE, "edgecolor": BLUE}
        axes.text(x[node], y[node], _short(name, 18), ha="center", va="center", color="white", bbox=box, zorder=3)
        text = "\n".join(frame["table"][node])
        axes.text(
            x[node], y[node] - 0.2, text, ha="center", va="top", fontsize=6, family="monospace", color=INK, zorder=2
        )
    middle, wide = (left + right) / 2, max(right - left, 4.4)
    axes.set(xlim=(middle - wide / 2, middle + wide / 2), ylim=(top[-1] + 0.3, 0.15), xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.grid(visible=False)
    return figure


def _draw_edge(axes: Any, route: list[float], ends: list[tuple[float, float]]) -> None:
    """Draw an edge straight down through each layer that it passes, between their tops and bottoms, and in curves from
    one to the next."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    points, codes = [(route[0], ends[0][1])], [Path.MOVETO]
    for k in range(1, len(route)):
        last, goal = points[-1], (route[k], ends[k][0] + (0.02 if k == len(route) - 1 else 0.0))
        middle = (last[1] + goal[1]) / 2
        points += [(last[0], middle), (goal[0], middle), goal]
        codes += [Path.CURVE4] * 3
        if k < len(route) - 1:
            points.append((route[k], ends[k][1]))
            codes.append(Path.LINETO)
    axes.add_patch(
        FancyArrowPatch(path=Path(points, codes), arrowstyle="-|>", mutation_scale=9, color=GREY, linewidth=1, zorder=1)
    )

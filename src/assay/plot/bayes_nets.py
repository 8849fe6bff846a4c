"""Figures of Bayesian networks: the graph, each node with its table."""

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.plot.figures import BLUE, GREY, INK, _canvas, _short
from assay.plot.frames import Frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NODES = 80
_MOST_ROWS, _MOST_COLUMNS = 9, 5  # of a table that is written out


def network_frame(model: Any, tables: bool = True) -> Frame:
    """Return `x`, `depth`, `name` and `table` (lines of text, empty without `tables`) of each node, and `edges`.

    A node stands below all its parents, and near the middle of them.
    """
    net = getattr(model, "network_", model)
    depth = np.zeros(len(net.names), dtype=int)
    for node in net.order:
        depth[node] = max((depth[one] + 1 for one in net.parents[node]), default=0)
    x = np.zeros(len(net.names))
    for level in range(depth.max() + 1):
        here = np.flatnonzero(depth == level).tolist()
        wished = {node: np.mean([x[one] for one in net.parents[node]]) if net.parents[node] else node for node in here}
        for place, node in enumerate(sorted(here, key=lambda node: (wished[node], node))):
            x[node] = place - (len(here) - 1) / 2
    edges = [(one, node) for node, above in enumerate(net.parents) for one in above]
    written = [_table(net, node) if tables else [] for node in range(len(net.names))]
    return {"x": x, "depth": depth, "name": list(net.names), "table": written, "edges": edges}


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
    widest = int(np.bincount(frame["depth"]).max())
    longest = max([len(line) for table in frame["table"] for line in table], default=10)
    tallest = [
        max([len(table) for table, at in zip(frame["table"], frame["depth"]) if at == level]) for level in range(levels)
    ]
    step = np.concatenate([[0.0], np.cumsum([0.75 + 0.13 * lines for lines in tallest])])
    width = max(1.3, 0.35 + 0.075 * longest)
    figure, (axes,) = _canvas(1, height=0.4 + step[-1], width=max(4.8, width * widest + 0.5))
    x, y = frame["x"] * width, -step[frame["depth"]]
    for parent, child in frame["edges"]:
        axes.annotate(
            "", (x[child], y[child] + 0.16), (x[parent], y[parent] - 0.16), zorder=1,
            arrowprops={"arrowstyle": "-|>", "color": GREY, "linewidth": 1},
        )  # fmt: skip
    for node, name in enumerate(frame["name"]):
        box = {"boxstyle": "round", "facecolor": BLUE, "edgecolor": BLUE}
        axes.text(x[node], y[node], _short(name, 18), ha="center", va="center", color="white", bbox=box, zorder=3)
        text = "\n".join(frame["table"][node])
        back = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85}
        axes.text(
            x[node], y[node] - 0.24, text, ha="center", va="top", fontsize=6, family="monospace", color=INK, bbox=back,
            zorder=2,
        )  # fmt: skip
    axes.set(xlim=(x.min() - width, x.max() + width), ylim=(-step[-1], 0.4), xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.grid(visible=False)
    return figure

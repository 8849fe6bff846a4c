"""Figures of naive Bayes (the distributions of each column) and of Bayesian networks (the graph with its tables).

Nodes of the graph stand in layers, children below parents (Sugiyama, Tagawa and Toda 1981). An edge that passes layers
has a place of its own in each, so that it meets no node there. Layers are ordered by the mean places of neighbours, up
and down, and the order with the fewest crossings is kept; then places move towards their neighbours as far as there is
room.
"""

from collections.abc import Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from assay.plot.figures import BLUE, CLASS_COLOURS, GREY, INK, _canvas, _short
from assay.plot.frames import Frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MOST_PANELS = 4
_MOST_WORDS = 12


class ColumnShares(NamedTuple):
    """What a panel shows: P(level | class) (K, levels) by level, or a density (K, points) over numbers."""

    name: str
    levels: list[str]
    at: np.ndarray
    shares: np.ndarray


def tables_frame(model: Any, columns: Sequence[int] | None = None) -> list[ColumnShares]:
    """Return what each class says of the columns: shares of levels, normal densities of numbers, or of counts the words
    that tell the classes apart most."""
    if hasattr(model, "feature_count_"):
        return [_words(model)]
    names = _names(model)
    chosen = range(min(len(names), _MOST_PANELS)) if columns is None else columns
    shares = model.shares_ if hasattr(model, "shares_") else [_exp(table) for table in model.tables_]
    return [_panel(model, j, names[j], shares[j]) for j in chosen]


def tables(model: Any, columns: Sequence[int] | None = None) -> "Figure":
    """Draw for each class the shares of levels, or the density of numbers, of the columns given (the first four).

    Parameters
    ----------
    model : learner
        Fitted learner.
    columns : sequence of int or None
        Numbers of the columns; None: the first four.

    Returns
    -------
    Figure
        The figure.
    """
    frames = tables_frame(model, columns)
    figure, panels = _canvas(len(frames))
    K = len(model.classes_)
    for axes, frame in zip(panels, frames, strict=True):
        for k, label in enumerate(model.classes_):
            colour = CLASS_COLOURS[k % len(CLASS_COLOURS)]
            if frame.levels:
                places = np.arange(len(frame.levels)) + (k - (K - 1) / 2) * 0.8 / K
                axes.bar(places, frame.shares[k], 0.8 / K, color=colour, label=_short(label))
                axes.set_xticks(range(len(frame.levels)), [_short(level) for level in frame.levels], rotation=45)
            else:
                axes.plot(frame.at, frame.shares[k], color=colour, label=_short(label))
        axes.set(title=_short(frame.name, 30), ylabel="P(value | class)" if frame.levels else "p(value | class)")
    panels[0].legend(frameon=False)
    return figure


def _panel(model: Any, j: int, name: str, shares: np.ndarray | None) -> ColumnShares:
    return _normal(model, j, name) if shares is None else _levels(model, j, name, shares)


def _exp(table: np.ndarray | None) -> np.ndarray | None:
    return None if table is None else np.exp(table)


def _names(model: Any) -> list[str]:
    d = model.n_features_in_
    return [str(name) for name in getattr(model, "feature_names_in_", [f"column {j}" for j in range(d)])]


def _words(model: Any) -> ColumnShares:
    weights, names = model.feature_log_prob_, _names(model)
    finite = np.where(np.isfinite(weights), weights, np.min(weights, where=np.isfinite(weights), initial=0.0))
    best = np.argsort(-np.ptp(finite, axis=0), kind="stable")[:_MOST_WORDS]
    return ColumnShares("columns that tell most", [names[j] for j in best], best, np.exp(-np.abs(finite[:, best])))


def _levels(model: Any, j: int, name: str, shares: np.ndarray) -> ColumnShares:
    column = None if model.columns_ is None else model.columns_[j]
    results = list(column.levels) if column is not None and column.kind != "numeric" else []
    if not results and not hasattr(model, "is_cut_"):
        first = int(np.maximum(model.n_levels_[:j], 0).sum())
        results = [f"{value:g}" for value in model.level_values_[first : first + shares.shape[1]]]
    if not results:
        first = int(model.n_values_[:j].sum())
        values = [f"{value:g}" for value in model.values_[first : first + model.n_values_[j]]]
        results = ["less", *(f">= {value}" for value in values)] if model.is_cut_[j] else values
    results += ["missing"] * (shares.shape[1] - len(results))
    return ColumnShares(name, results, np.arange(len(results)), shares)


def _normal(model: Any, j: int, name: str) -> ColumnShares:
    at = int(np.sum(model.n_levels_[:j] < 0))
    theta, deviation = model.theta_[:, at], np.sqrt(model.var_[:, at])
    x = np.linspace((theta - 3 * deviation).min(), (theta + 3 * deviation).max(), 200)
    apart = (x - theta[:, None]) / deviation[:, None]
    return ColumnShares(name, [], x, np.exp(-0.5 * apart**2) / (np.sqrt(2 * np.pi) * deviation[:, None]))


_SWEEPS = 24
_STEPS = 100
_GAP = 0.25  # between two places of a layer


class Layout(NamedTuple):
    """x and layer of each node; of each edge its x in the layers from parent to child, both among them."""

    x: np.ndarray
    layer: np.ndarray
    routes: list[list[float]]


class _Places(NamedTuple):
    """Nodes, and after them the places of long edges; `up` and `down` are their neighbours in the layers beside."""

    layers: list[list[int]]
    up: list[list[int]]
    down: list[list[int]]
    width: list[float]
    chains: list[list[int]]


def layered(parents: Sequence[Sequence[int]], order: Sequence[int], width: Sequence[float]) -> Layout:
    """Return the layout of a graph; `order` has parents before children, `width` the room that each node takes."""
    layer = _layers(parents, order)
    places = _places(parents, layer, width)
    best, fewest = [list(item) for item in places.layers], _crossings(places.layers, places.down)
    for sweep in range(_SWEEPS):
        _sort(places, downwards=sweep % 2 == 0)
        crossings = _crossings(places.layers, places.down)
        if crossings < fewest:
            best, fewest = [list(item) for item in places.layers], crossings
    x = _spread(places._replace(layers=best))
    return Layout(x[: len(parents)], layer, [[float(x[node]) for node in chain] for chain in places.chains])


def _layers(parents: Sequence[Sequence[int]], order: Sequence[int]) -> np.ndarray:
    """Return the layer of each node: as high as its parents let it, unless it has more children, then near these."""
    result = np.zeros(len(parents), dtype=int)
    children: list[list[int]] = [[] for _ in parents]
    for node in order:
        result[node] = max((result[parent] + 1 for parent in parents[node]), default=0)
        for parent in parents[node]:
            children[parent].append(node)
    for node in reversed(order):
        if len(children[node]) > len(parents[node]):
            result[node] = min(result[child] for child in children[node]) - 1
    return result


def _places(parents: Sequence[Sequence[int]], layer: np.ndarray, width: Sequence[float]) -> _Places:
    layers: list[list[int]] = [np.flatnonzero(layer == k).tolist() for k in range(layer.max(initial=0) + 1)]
    up: list[list[int]] = [[] for _ in parents]
    down: list[list[int]] = [[] for _ in parents]
    result = _Places(layers, up, down, list(width), [])
    for child, above in enumerate(parents):
        for parent in above:
            chain = [parent]
            for k in range(layer[parent] + 1, layer[child]):
                chain.append(len(result.width))
                result.width.append(0.0)
                layers[k].append(chain[-1])
                up.append([])
                down.append([])
            chain.append(child)
            for node, other in pairwise(chain):
                down[node].append(other)
                up[other].append(node)
            result.chains.append(chain)
    return result


def _sort(places: _Places, downwards: bool) -> None:
    """Order each layer by the mean places of the neighbours in the layer before it."""
    layers, near = (places.layers, places.up) if downwards else (places.layers[::-1], places.down)
    for before, here in pairwise(layers):
        at = {node: k for k, node in enumerate(before)}
        own = {node: k for k, node in enumerate(here)}
        mean = {node: np.mean([at[other] for other in near[node]]) if near[node] else own[node] for node in here}
        here.sort(key=lambda node: (mean[node], own[node]))


def _crossings(layers: Sequence[Sequence[int]], down: Sequence[Sequence[int]]) -> int:
    total = 0
    for here, below in pairwise(layers):
        at = {node: k for k, node in enumerate(below)}
        ends = np.array([end for node in here for end in sorted(at[other] for other in down[node])])
        starts = np.array([k for k, node in enumerate(here) for _ in down[node]])
        crossed = (ends[:, None] > ends) & (starts[:, None] < starts)
        total += int(crossed.sum())
    return total


def _spread(places: _Places) -> np.ndarray:
    """Return the x of all places: near their neighbours, in the order of the layer, and so far apart that all fit."""
    x = np.zeros(len(places.width))
    for here in places.layers:
        x[here] = _apart(places, here)
        x[here] -= x[here].mean()
    for sweep in range(_STEPS):
        for here in places.layers if sweep % 2 == 0 else places.layers[::-1]:
            offset = _apart(places, here)
            pulls = [_pull(places, node, x) for node in here]
            wished, weight = (np.array(part) for part in zip(*pulls))
            x[here] = isotonic_regression(wished - offset, weights=weight).x + offset
    return x


def _pull(places: _Places, one: int, x: np.ndarray) -> tuple[float, float]:
    """Return where the neighbours of a place would have it, and how strongly: a long edge should run straight first."""
    near = places.up[one] + places.down[one]
    pulls = [8.0 if places.width[one] == places.width[other] == 0 else 2.0 if places.width[other] == 0 else 1.0
             for other in near]  # fmt: skip
    return (float(np.average(x[near], weights=pulls)), float(sum(pulls))) if near else (float(x[one]), 0.1)


def _apart(places: _Places, here: Sequence[int]) -> np.ndarray:
    """Return how far from the first each place of a layer must stand, at least."""
    width = np.array([places.width[node] for node in here])
    return np.concatenate([[0.0], np.cumsum((width[:-1] + width[1:]) / 2 + _GAP)])


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
    edges = [(parent, node) for node, above in enumerate(net.parents) for parent in above]
    return {
        "x": layout.x, "depth": layout.layer, "name": list(net.names), "table": written, "edges": edges,
        "routes": layout.routes, "width": np.array(widths),
    }  # fmt: skip


def _table(net: Any, node: int) -> list[str]:
    """Return the table of a node as lines of equal width: parents' states, then probabilities."""
    above = [parent for parent in net.parents[node] if net.states[parent] is not None]
    table = net.tables[node]
    rows = int(np.prod(table.shape[:-1]))
    if rows > _MOST_ROWS or table.shape[-1] > _MOST_COLUMNS:
        return [f"table of {rows} x {table.shape[-1]}"]
    if net.states[node] is None:
        slopes = [_short(net.names[parent], 8) for parent in net.parents[node] if net.states[parent] is None]
        head = ["1", *slopes, "+-"]
    else:
        head = [_short(state, 8) for state in net.states[node]]
    lines = [[*(_short(net.names[parent], 8) for parent in above), *head]]
    for where in product(*(range(net.sizes[parent]) for parent in above)):
        states = [_short(net.states[parent][i], 8) for parent, i in zip(above, where)]
        lines.append([*states, *(f"{value:.3g}" for value in table[where])])
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    return ["  ".join(word.rjust(width) for word, width in zip(line, widths)) for line in lines]


def dependency_graph(model: Any, tables: bool = True) -> "Figure":
    """Draw a network, `Network` or fitted, with parents above children; `tables` writes the small ones below the nodes.

    A row of a table lists the states of the parents, then the probability of each state; of a number its intercept,
    coefficients and standard deviation (+-).

    Parameters
    ----------
    model : Network or learner
        The network.
    tables : bool, default=True
        Whether small tables are written below the nodes.

    Returns
    -------
    Figure
        The figure.
    """
    frame = network_frame(model, tables)
    many, levels = len(frame["name"]), int(frame["depth"].max()) + 1
    if many > _MOST_NODES:
        raise ValueError(f"network: {many} nodes are too many to read; at most {_MOST_NODES}.")
    tall = np.array([_LINE * len(table) for table in frame["table"]])
    room = [0.35 + max(tall[frame["depth"] == level]) for level in range(levels)]
    top = -np.concatenate([[0.0], np.cumsum([item + 0.55 for item in room])])
    x, y = frame["x"], top[frame["depth"]] - 0.16
    passed = [item for route in frame["routes"] for item in route]
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

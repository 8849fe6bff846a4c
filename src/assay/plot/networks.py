"""Figures of the other networks: who is connected with whom, cascades as they grow, maps, filters, ways out of
minima.

Figures of networks: how the loss falls, and how the error changes with what was tried.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from assay.base import Diagram
from assay.optim.descent import anneal, evolve
from assay.plot.figures import BLUE, CLASS_COLOURS, GREY, INK, ORANGE, PALE, _canvas
from assay.plot.frames import Frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MOST_DRAWN = 40  # units of a layer that can still be read
_MOST_IN_CASCADE = 400
_GRID = 80  # points along each side of a loss surface


# Diagrams -----------------------------------------------------------------------------------------------------


def network_frame(model: Any) -> Frame:
    """Return `x`, `y` and `layer` of each unit (inputs first), `name` of each layer, and for each connection `start`,
    `end` and `weight`; `back` tells which lead from a layer to itself one step later."""
    check_is_fitted(model)
    layers = model.diagram()
    if layers is None:
        raise ValueError(f"{type(model).__name__}: is no network of units that a diagram shows.")
    if layers.is_cascade:
        return _cascade_frame(model)
    weights, names, back = _strongest(layers)
    sizes = [len(weights[0]), *(W.shape[1] for W in weights)]
    first = np.concatenate([[0], np.cumsum(sizes)])
    start, end, weight, again = [], [], [], []
    for k, W in enumerate(weights):
        i, j = np.indices(W.shape)
        start.append(first[k] + i.ravel())
        end.append(first[k + 1] + j.ravel())
        weight.append(W.ravel())
        again.append(np.zeros(W.size, dtype=bool))
    if back is not None:
        i, j = np.indices(back.shape)
        start.append(first[1] + i.ravel())
        end.append(first[1] + j.ravel())
        weight.append(back.ravel())
        again.append(np.ones(back.size, dtype=bool))
    return {
        "x": np.repeat(np.arange(len(sizes), dtype=float), sizes),
        "y": np.concatenate([(size - 1) / 2 - np.arange(size) for size in sizes]),
        "layer": np.repeat(np.arange(len(sizes)), sizes),
        "name": names,
        "start": np.concatenate(start),
        "end": np.concatenate(end),
        "weight": np.concatenate(weight),
        "back": np.concatenate(again),
    }


def _strongest(layers: Diagram) -> tuple[list[np.ndarray], list[str], np.ndarray | None]:
    """Return the layers with the units of the largest weights where there are too many to be read."""
    weights, names, back = layers.weights, layers.names, layers.back
    pulls = [np.abs(W).sum(axis=1) for W in weights] + [np.zeros(weights[-1].shape[1])]
    for k, W in enumerate(weights):
        pulls[k + 1] = pulls[k + 1] + np.abs(W).sum(axis=0)
    kept = [np.sort(np.argsort(-pull, kind="stable")[:_MOST_DRAWN]) for pull in pulls]
    named = [
        f"{name} ({len(own)} of {len(pull)})" if len(own) < len(pull) else name
        for name, own, pull in zip(names, kept, pulls)
    ]
    shown = [W[np.ix_(kept[k], kept[k + 1])] for k, W in enumerate(weights)]
    return shown, named, None if back is None else back[np.ix_(kept[1], kept[1])]


def _cascade_frame(model: Any) -> Frame:
    """Return a cascade: inputs on the left, each unit a column of its own, a step higher, outputs on the right."""
    H, q = len(model.units_), model.coef_.shape[1]
    d, K = q - H, len(model.coef_)
    if q + K > _MOST_IN_CASCADE:
        raise ValueError(f"network: {q + K} units are too many to be drawn; at most {_MOST_IN_CASCADE}.")
    x = np.concatenate([np.zeros(d), 1.0 + np.arange(H), np.full(K, 1.0 + H)])
    bow = 3 * np.sqrt(1.0 + np.arange(H + 1))  # bent, so that connections do not lie on each other
    y = np.concatenate([-np.arange(d, dtype=float), bow[:H], bow[H] + np.arange(K)])
    start, end, weight = [], [], []
    for k, row in enumerate(model.units_):
        start += list(range(d + k))
        end += [d + k] * (d + k)
        weight += row[: d + k].tolist()
    for o, row in enumerate(model.coef_):
        start += list(range(q))
        end += [q + o] * q
        weight += row.tolist()
    return {
        "x": x,
        "y": y,
        "layer": np.repeat([0, 1, 2], [d, H, K]),
        "name": ["inputs", "frozen units", "outputs"],
        "start": np.array(start, dtype=int),
        "end": np.array(end, dtype=int),
        "weight": np.array(weight),
        "back": np.zeros(len(start), dtype=bool),
    }


def network(model: Any) -> "Figure":
    """Draw the units of a network and their connections: blue pulls up, orange pulls down, wider is stronger.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    frame = network_frame(model)
    figure, (axes,) = _canvas(1)
    _draw_network(axes, frame)
    axes.set_title(f"{type(model).__name__}: {', '.join(frame['name'])}")
    return figure


def _draw_network(axes: "Axes", frame: Frame) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.patches import FancyArrowPatch

    places = np.column_stack([frame["x"], frame["y"]])
    plain = ~frame["back"]
    size = np.abs(frame["weight"])
    width = 0.2 + 2.0 * size / max(float(size.max(initial=0.0)), 1e-300)
    colour = np.where(frame["weight"] >= 0, BLUE, ORANGE)
    lines = np.stack([places[frame["start"][plain]], places[frame["end"][plain]]], axis=1)
    axes.add_collection(LineCollection(list(lines), linewidths=width[plain], colors=colour[plain], alpha=0.5))
    for k in np.flatnonzero(frame["back"]):
        one, two = places[frame["start"][k]], places[frame["end"][k]]
        if np.array_equal(one, two):
            two = two + np.array([0.0, 0.05])
        arc = FancyArrowPatch(
            one, two, connectionstyle="arc3,rad=0.6", arrowstyle="->", linewidth=width[k], color=colour[k], alpha=0.4
        )
        axes.add_patch(arc)
    colours = np.array([GREY, *CLASS_COLOURS])[np.minimum(frame["layer"], len(CLASS_COLOURS))]
    axes.scatter(places[:, 0], places[:, 1], s=60, c=colours, edgecolors=INK, linewidths=0.6, zorder=3)
    axes.set(xticks=[], yticks=[])
    axes.margins(0.12)
    axes.grid(visible=False)
    for side in axes.spines.values():
        side.set_visible(False)


def growth_frame(model: Any) -> Frame:
    """Return `units` (0, 1, ...) and the mean squared `residual` of a cascade with so many."""
    check_is_fitted(model)
    if not len(getattr(model, "growth_", ())):
        raise ValueError(f"{type(model).__name__}: does not grow; it must be a fitted cascade.")
    return {"units": np.arange(len(model.growth_)), "residual": np.array(model.growth_), "kept": len(model.units_)}


def cascade_growth(model: Any) -> "Figure":
    """Draw how the residual of a cascade fell with each unit, and the network that grew.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    frame = growth_frame(model)
    figure, (left, right) = _canvas(2)
    left.plot(frame["units"], frame["residual"], color=BLUE, marker=".")
    left.axvline(frame["kept"], color=GREY, linewidth=1, linestyle="--")
    left.set(xlabel="hidden units", ylabel="mean squared residual", title="Growth")
    left.locator_params(axis="x", integer=True)
    if frame["residual"].min() > 0:
        left.set_yscale("log")
    _draw_network(right, network_frame(model))
    right.set_title(f"{frame['kept']} frozen units")
    return figure


# Maps and filters ---------------------------------------------------------------------------------------------


def u_matrix_frame(model: Any, X: Any = None) -> Frame:
    """Return where cells stand (`x`, `y`), the mean `distance` of their prototypes to those of neighbours, whether
    the grid is `hexagonal`, and with rows X how many `rows` each cell has."""
    check_is_fitted(model)
    if model.figure != "u_matrix":
        raise ValueError(f"{type(model).__name__}: has no grid; it must be a fitted self-organising map.")
    height, width, hexagonal = (int(part) for part in model.grid_)
    r, c = np.divmod(np.arange(height * width), width)
    x, y = (c + 0.5 * (r % 2), r * np.sqrt(0.75)) if hexagonal else (c.astype(float), r.astype(float))
    frame: Frame = {"x": x, "y": y, "distance": model.u_matrix_.ravel(), "hexagonal": bool(hexagonal)}
    if X is not None:
        frame["rows"] = np.bincount(model.cells(X), minlength=height * width)
    return frame


def u_matrix(model: Any, X: Any = None) -> "Figure":
    """Draw the map: dark cells are far from their neighbours, ridges between clusters; dots show how many rows of X a
    cell has.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like or None
        Rows to count; None: none.

    Returns
    -------
    Figure
        The figure.
    """
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import RegularPolygon

    frame = u_matrix_frame(model, X)
    figure, (axes,) = _canvas(1)
    sides, reach, turn = (6, 1 / np.sqrt(3), 0.0) if frame["hexagonal"] else (4, 1 / np.sqrt(2), np.pi / 4)
    cells = [RegularPolygon(at, sides, radius=reach, orientation=turn) for at in zip(frame["x"], frame["y"])]
    drawn = PatchCollection(cells, cmap="bone_r", edgecolors=PALE, linewidths=0.4)
    drawn.set_array(frame["distance"])
    axes.add_collection(drawn)
    if "rows" in frame:
        share = frame["rows"] / max(int(frame["rows"].max()), 1)
        axes.scatter(frame["x"], frame["y"], s=60 * share, color=ORANGE)
    axes.set(xticks=[], yticks=[], aspect="equal", title="Distance of prototypes to their neighbours")
    axes.autoscale_view()
    axes.grid(visible=False)
    figure.colorbar(drawn, ax=axes, shrink=0.8)
    return figure


def filters_frame(model: Any, shape: tuple[int, int], most: int = 36) -> np.ndarray:
    """Return the weights of the first hidden units as pictures, (units, height, width)."""
    check_is_fitted(model)
    W = model.diagram().weights[0].T
    if W.shape[1] != shape[0] * shape[1]:
        raise ValueError(f"filters: rows of {W.shape[1]} columns are no pictures of {shape[0]} x {shape[1]}.")
    return W[:most].reshape(-1, *shape)


def filters(model: Any, shape: tuple[int, int], most: int = 36) -> "Figure":
    """Draw what each hidden unit looks for in rows that are pictures: blue dots that turn it on, orange that turn it
    off.

    Parameters
    ----------
    model : learner
        Fitted learner.
    shape : tuple of int
        Height and width of the pictures.
    most : int, default=36
        Largest number of units drawn.

    Returns
    -------
    Figure
        The figure.
    """
    from matplotlib.colors import LinearSegmentedColormap

    pictures = filters_frame(model, shape, most)
    across = int(np.ceil(np.sqrt(len(pictures))))
    down = int(np.ceil(len(pictures) / across))
    figure, panels = _canvas(across, 0.9 * down, down=down, width=0.9)
    colours = LinearSegmentedColormap.from_list("pull", [ORANGE, "white", BLUE])
    for axes, picture in zip(panels, pictures):
        top = float(np.abs(picture).max()) or 1.0
        axes.imshow(picture, cmap=colours, vmin=-top, vmax=top)
    for axes in panels:
        axes.set_axis_off()
    return figure


# Out of local minima ------------------------------------------------------------------------------------------


def escapes_frame(value: Callable[[np.ndarray], float], start: Any, low: Any, high: Any, seed: int = 0) -> Frame:
    """Return `x`, `y`, `values` of a function of two numbers on a grid over the box, and `paths` by name: how
    "descent" from the start, "restarts" from points of the box, "annealing" and "genetic" search came to ever lower
    values."""
    start, low, high = (np.asarray(part, dtype=np.float64) for part in (start, low, high))
    if not all(part.shape == (2,) for part in (start, low, high)) or np.any(low >= high):
        raise ValueError("escapes: start, low and high must be two numbers each, low below high.")
    x, y = np.linspace(low[0], high[0], _GRID), np.linspace(low[1], high[1], _GRID)
    values = np.array([[value(np.array([a, b])) for a in x] for b in y])
    rng, spread = np.random.default_rng(seed), float(np.ptp(values))
    several = [start, *rng.uniform(low, high, size=(5, 2))]
    ends = [_descent(value, item, high - low) for item in several]
    seen = _Lowest(value)
    anneal(
        seen, start, step=0.1 * float((high - low).max()), hot=0.3 * spread, cold=1e-4 * spread, steps=3000, seed=seed
    )
    bred = _Lowest(value)
    evolve(bred, low, high, size=20, generations=40, seed=seed)
    paths = {
        "descent": ends[0],
        "restarts": min(ends, key=lambda path: value(path[-1])),
        "annealing": np.array(seen.path),
        "genetic": np.array(bred.path),
    }
    return {"x": x, "y": y, "values": values, "paths": paths}


class _Lowest:
    """A function that remembers where it was lower than ever before."""

    def __init__(self, value: Callable[[np.ndarray], float]) -> None:
        self.value, self.least, self.path = value, np.inf, []  # type: ignore[var-annotated]

    def __call__(self, x: np.ndarray) -> float:
        result = float(self.value(x))
        if result < self.least:
            self.least = result
            self.path.append(np.array(x, dtype=np.float64))
        return result


def _descent(value: Callable[[np.ndarray], float], x: np.ndarray, span: np.ndarray) -> np.ndarray:
    """Return the path of steepest descent, gradients by differences, steps halved until they lower the function."""
    path, rate = [x], 0.1 * float(span.max())
    for _ in range(400):
        h = 1e-6 * span
        slope = np.array([(value(x + e) - value(x - e)) / (2 * e.sum()) for e in np.diag(h)])
        length = float(np.linalg.norm(slope))
        while rate > 1e-8 * float(span.max()) and length > 0 and value(x - rate * slope / length) >= value(x):
            rate /= 2
        if rate <= 1e-8 * float(span.max()) or length == 0:
            break
        x, rate = x - rate * slope / length, 1.5 * rate
        path.append(x)
    return np.array(path)


def escapes(value: Callable[[np.ndarray], float], start: Any, low: Any, high: Any, seed: int = 0) -> "Figure":
    """Draw a function of two numbers with the ways of descent, which ends in the nearest minimum, and of restarts,
    annealing and genetic search, which can leave it.

    Parameters
    ----------
    value : callable
        Function of two numbers.
    start : array-like
        Where each search begins.
    low : array-like
        Smallest value of each number.
    high : array-like
        Largest value of each number.
    seed : int, default=0
        Seed of what is drawn at random.

    Returns
    -------
    Figure
        The figure.
    """
    frame = escapes_frame(value, start, low, high, seed)
    figure, (axes,) = _canvas(1)
    axes.contourf(frame["x"], frame["y"], frame["values"], levels=25, cmap="Greys", alpha=0.6)
    for k, (name, path) in enumerate(frame["paths"].items()):
        colour = CLASS_COLOURS[k]
        axes.plot(*path.T, color=colour, linewidth=1, marker=".", markersize=3, label=f"{name}: {value(path[-1]):.3g}")
        axes.scatter(path[-1, 0], path[-1, 1], color=colour, marker="*", s=80, zorder=3)
    axes.set(xlabel="first parameter", ylabel="second parameter", title="Out of local minima")
    axes.legend(frameon=True, fontsize=7)
    return figure


def loss_frame(model: Any) -> Frame:
    """Return `epoch` (1, 2, ...), `loss`, and with early stopping `score` on the rows kept out and `kept`, the epoch
    whose weights the model has."""
    check_is_fitted(model)
    if not len(getattr(model, "loss_curve_", ())):
        raise ValueError(f"{type(model).__name__}: keeps no loss curve; it must be a fitted network.")
    frame: Frame = {"epoch": np.arange(1, len(model.loss_curve_) + 1), "loss": np.array(model.loss_curve_)}
    if getattr(model, "validation_scores_", None):
        frame["score"] = np.array(model.validation_scores_)
        frame["kept"] = int(frame["score"].argmax()) + 1
    return frame


def loss_curve(model: Any) -> "Figure":
    """Draw the loss of each epoch and, with early stopping, the score on the rows kept out and where it was best.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    frame = loss_frame(model)
    figure, (axes,) = _canvas(1)
    lines = axes.plot(frame["epoch"], frame["loss"], color=BLUE, label="loss")
    axes.set(xlabel="epoch", ylabel="loss with penalty", title="Training")
    if (frame["loss"] > 0).all() and frame["loss"].max() > 20 * frame["loss"].min():
        axes.set_yscale("log")
    axes.locator_params(axis="x", integer=True)
    if "score" in frame:
        right = axes.twinx()
        lines += right.plot(frame["epoch"], frame["score"], color=ORANGE, label="score on rows kept out")
        right.axvline(frame["kept"], color=GREY, linewidth=1, linestyle="--")
        right.set_ylabel("score")
        right.grid(visible=False)
        axes.legend(handles=lines, frameon=False)
    return figure


def trial(result: Any, name: str = "value tried") -> "Figure":
    """Draw the error of each value that `hidden_units_by_trial` or `lambda_by_cross_validation` tried, and the best.

    Parameters
    ----------
    result : Trial
        What the function of `neural_network` returned.
    name : str, default="value tried"
        Name of the axis.

    Returns
    -------
    Figure
        The figure.
    """
    figure, (axes,) = _canvas(1)
    at = np.arange(len(result.values))
    axes.plot(at, result.errors, color=BLUE, marker=".")
    best = result.values.index(result.best)
    axes.scatter([best], [result.errors[best]], color=ORANGE, zorder=3, label=f"chosen: {result.best}")
    axes.set_xticks(at, [str(value) for value in result.values])
    axes.set(xlabel=name, ylabel="error", title="Chosen by trial")
    axes.legend(frameon=False)
    return figure

"""Figures of linear models and of descents."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.plot import frames
from assay.plot.figures import CLASS_COLOURS, INK, _canvas, _short

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def projection(model: Any, X: Any, y: Any) -> "Figure":
    """Draw the rows along the first one or two discriminant directions."""
    frame = frames.projection(model, X, y)
    figure, (axes,) = _canvas(1)
    flat = frame["points"].shape[1] == 1
    for k, label in enumerate(frame["classes"]):
        points, colour = frame["points"][frame["labels"] == label], CLASS_COLOURS[k % len(CLASS_COLOURS)]
        if flat:
            axes.hist(points[:, 0], bins=40, color=colour, alpha=0.6, label=_short(label))
        else:
            axes.scatter(points[:, 0], points[:, 1], s=14, color=colour, linewidths=0, label=_short(label))
    if "threshold" in frame:
        axes.axvline(frame["threshold"], color=INK, linewidth=1, label="threshold")
    axes.set(xlabel="first direction", ylabel="rows" if flat else "second direction", title="Projection")
    axes.legend(frameon=False)
    return figure


def mistakes(model: Any) -> "Figure":
    """Draw the share of mistakes among the rows met so far in the one pass of an online learner."""
    frame = frames.mistakes(model)
    figure, (axes,) = _canvas(1)
    axes.plot(frame["rows"], frame["share"], color=CLASS_COLOURS[0])
    axes.hlines(frame["error"], frame["voting"], frame["rows"][-1], color=INK, linewidth=1, label="of those that vote")
    axes.set(xlabel="rows met", ylabel="share of mistakes", title="One pass", ylim=(0, 1.02))
    axes.legend(frameon=False)
    return figure


def votes(model: Any) -> "Figure":
    """Draw how many votes each vector of a voted perceptron has: rows that it met before its first mistake."""
    figure, (axes,) = _canvas(1)
    axes.stairs(model.votes_, color=CLASS_COLOURS[0], fill=True)
    axes.set(xlabel="vector, in the order of the mistakes", ylabel="votes", title=f"{len(model.votes_)} vectors vote")
    return figure


def coefficient_path(path: Any, names: Sequence[str] | None = None, labelled: int = 10) -> "Figure":
    """Draw each coefficient against alpha, and how many are not zero; the largest ones are named."""
    frame = frames.coefficient_path(path, names)
    figure, (left, right) = _canvas(2)
    last = np.argsort(-np.abs(frame["coefs"]).max(axis=1), kind="stable")[:labelled]
    for j, line in enumerate(frame["coefs"]):
        left.plot(frame["alphas"], line, linewidth=1, label=_short(frame["names"][j]) if j in last else None)
    left.set(xscale="log", xlabel="alpha", ylabel="coefficient", title="Coefficients")
    left.legend(frameon=False, fontsize=7)
    right.step(frame["alphas"], frame["used"], color=INK)
    right.set(xscale="log", xlabel="alpha", ylabel="columns in use", title="Size of the model")
    return figure


def descents(runs: Mapping[str, Any]) -> "Figure":
    """Draw the objective of several descents against epochs and against time."""
    figure, (left, right) = _canvas(2)
    for name, one in frames.descents(runs).items():
        left.plot(one["epoch"], one["objective"], linewidth=1, label=name)
        right.plot(one["seconds"], one["objective"], linewidth=1, label=name)
    for axes, unit in ((left, "epoch"), (right, "seconds")):
        axes.set(xlabel=unit, ylabel="objective", title=f"Objective against {unit}")
        axes.set_yscale("log", nonpositive="mask")
    left.legend(frameon=False)
    return figure


def surface(value: Callable[[np.ndarray], float], runs: Mapping[str, Any]) -> "Figure":
    """Draw the paths of descents on the contours of a function of two numbers."""
    frame = frames.surface(value, runs)
    figure, (axes,) = _canvas(1)
    axes.contour(frame["x"], frame["y"], frame["values"], levels=25, linewidths=0.6, cmap="Greys")
    for k, (name, path) in enumerate(frame["paths"].items()):
        axes.plot(
            path[:, 0],
            path[:, 1],
            marker=".",
            markersize=3,
            color=CLASS_COLOURS[k % len(CLASS_COLOURS)],
            label=name,
        )
    axes.set(xlabel="first parameter", ylabel="second parameter", title="Paths of descent")
    axes.legend(frameon=False)
    return figure

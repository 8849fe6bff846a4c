"""Figures of linear models, descents and kernel machines."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.kernels import Kernel
from assay.plot import frames
from assay.plot.figures import BLUE, CLASS_COLOURS, GREY, INK, ORANGE, _canvas, _regions, _short

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def projection(model: Any, X: Any, y: Any) -> "Figure":
    """Draw the rows along the first one or two discriminant directions.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.

    Returns
    -------
    Figure
        The figure.
    """
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
    """Draw the share of mistakes among the rows met so far in the one pass of an online learner.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.mistakes(model)
    figure, (axes,) = _canvas(1)
    axes.plot(frame["rows"], frame["share"], color=CLASS_COLOURS[0])
    axes.hlines(frame["error"], frame["voting"], frame["rows"][-1], color=INK, linewidth=1, label="of those that vote")
    axes.set(xlabel="rows met", ylabel="share of mistakes", title="One pass", ylim=(0, 1.02))
    axes.legend(frameon=False)
    return figure


def votes(model: Any) -> "Figure":
    """Draw how many votes each vector of a voted perceptron has: rows that it met before its first mistake.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    figure, (axes,) = _canvas(1)
    axes.stairs(model.votes_, color=CLASS_COLOURS[0], fill=True)
    axes.set(xlabel="vector, in the order of the mistakes", ylabel="votes", title=f"{len(model.votes_)} vectors vote")
    return figure


def coefficient_path(path: Any, names: Sequence[str] | None = None, labelled: int = 10) -> "Figure":
    """Draw each coefficient against alpha, and how many are not zero; the largest ones are named.

    Parameters
    ----------
    path : ElasticNetPath
        What `linear_model.elastic_net_path` returned.
    names : sequence of str or None
        Names of the columns; None: their numbers.
    labelled : int, default=10
        How many coefficients are named.

    Returns
    -------
    Figure
        The figure.
    """
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
    """Draw the objective of several descents against epochs and against time.

    Parameters
    ----------
    runs : mapping
        Descents by name.

    Returns
    -------
    Figure
        The figure.
    """
    figure, (left, right) = _canvas(2)
    for name, descent in frames.descents(runs).items():
        left.plot(descent["epoch"], descent["objective"], linewidth=1, label=name)
        right.plot(descent["seconds"], descent["objective"], linewidth=1, label=name)
    for axes, unit in ((left, "epoch"), (right, "seconds")):
        axes.set(xlabel=unit, ylabel="objective", title=f"Objective against {unit}")
        axes.set_yscale("log", nonpositive="mask")
    left.legend(frameon=False)
    return figure


def surface(value: Callable[[np.ndarray], float], runs: Mapping[str, Any]) -> "Figure":
    """Draw the paths of descents on the contours of a function of two numbers.

    Parameters
    ----------
    value : callable
        Function of two numbers.
    runs : mapping
        Descents by name, with their paths.

    Returns
    -------
    Figure
        The figure.
    """
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


def support_vectors(model: Any, X: Any, y: Any) -> "Figure":
    """Draw rows of two features, the boundary, for two classes the margins f = -1 and f = +1, and the support vectors:
    a ring for one on the margin, a filled one for one that violates it.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.support_vectors(model, X, y)
    figure, axes = _regions(frame, X, y, s=14, linewidths=0)
    if "scores" in frame:
        lines: Any = {"linestyles": ["--", "-", "--"], "linewidths": [1, 1.5, 1]}
        axes.contour(frame["x"], frame["y"], frame["scores"], levels=[-1.0, 0.0, 1.0], colors=INK, **lines)
    for violated, width, label in ((False, 0.8, "support vector"), (True, 1.8, "inside the margin")):
        points = frame["support"][frame["violated"] == violated]
        if len(points):
            axes.scatter(
                points[:, 0], points[:, 1], s=50, facecolors="none", edgecolors=INK, linewidths=width, label=label
            )
    names = getattr(model, "feature_names_in_", ("x0", "x1"))
    axes.grid(visible=False)
    share = f"{len(frame['support'])} of {len(X)} rows are support vectors"
    axes.set(xlabel=_short(names[0], 28), ylabel=_short(names[1], 28), title=share)
    axes.legend(framealpha=0.9, fontsize=7, loc="upper right")
    return figure


def dual_gap(models: Mapping[str, Any]) -> "Figure":
    """Draw, against time, how far each fit was from the objective it reached and from optimality.

    Parameters
    ----------
    models : mapping
        Fitted learners by name.

    Returns
    -------
    Figure
        The figure.
    """
    figure, (left, right) = _canvas(2)
    for k, (name, item) in enumerate(frames.dual_gap(models).items()):
        colour = CLASS_COLOURS[k % len(CLASS_COLOURS)]
        left.plot(item["seconds"], item["excess"], color=colour, marker=".", markersize=3, linewidth=1, label=name)
        right.plot(item["seconds"], item["violation"], color=colour, marker=".", markersize=3, linewidth=1, label=name)
    left.set(xlabel="seconds", ylabel="objective - lowest objective", title="Objective")
    right.set(xlabel="seconds", ylabel="gap or violation", title="Distance from optimality")
    for axes in (left, right):
        axes.set_yscale("symlog", linthresh=1e-12)
        axes.set_ylim(bottom=0)
    left.legend(frameon=False)
    return figure


def alphas(model: Any, n_rows: int | None = None) -> "Figure":
    """Draw the histogram of the dual variables of the support vectors, and how many rows have none or are at C.

    Parameters
    ----------
    model : learner
        Fitted learner.
    n_rows : int or None
        Number of training rows; None: the rows without a multiplier are not counted.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.alphas(model, n_rows)
    figure, (axes,) = _canvas(1)
    axes.stairs(frame["counts"], frame["edges"], fill=True, color=BLUE)
    if np.isfinite(frame["C"]):
        axes.axvline(frame["C"], color=ORANGE, linewidth=1, label=f"C = {frame['C']:g} ({frame['bound']:,} rows)")
        axes.legend(frameon=False)
    axes.set(xlabel="alpha", ylabel="support vectors", title=f"Dual variables ({frame['zero']:,} more are zero)")
    return figure


def kernel_matrix(kernel: Kernel, X: Any, y: Any) -> "Figure":
    """Draw the Gram matrix with rows ordered by class: classes that a kernel tells apart are blocks on the diagonal.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.kernel_matrix(kernel, X, y)
    figure, (axes,) = _canvas(1, height=4.4)
    shown = axes.imshow(frame["gram"], cmap="Blues", interpolation="nearest", rasterized=True)
    figure.colorbar(shown, ax=axes, shrink=0.8)
    for border in frame["borders"][1:-1] - 0.5:
        axes.axhline(border, color=GREY, linewidth=1)
        axes.axvline(border, color=GREY, linewidth=1)
    middles = (frame["borders"][1:] + frame["borders"][:-1] - 1) / 2
    labels = [_short(label) for label in frame["classes"]]
    axes.set_xticks(middles, labels)
    axes.set_yticks(middles, labels)
    axes.grid(visible=False)
    apart = frame["across"][~np.eye(len(labels), dtype=bool)]
    largest = f"largest value between classes {apart.max():.2g}" if len(apart) else ""
    axes.set(title=largest, xlabel="rows by class", ylabel="rows by class")
    return figure

"""Figures of any model and of learning theory, and the style that all figures share."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from assay.claims.claim import Certificate
from assay.plot import frames
from assay.textbook.concepts import VersionSpace
from assay.theory.plan import Hoped
from assay.theory.rademacher import Suprema
from assay.theory.spaces import Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


INK, BLUE, ORANGE, GREY, PALE = "#1f2933", "#2f6690", "#d1602f", "#8a949e", "#e4e8ec"
CLASS_COLOURS = (BLUE, ORANGE, "#3a7d44", "#8e5ea2", "#b8952f", "#4aa3a2", "#a13d63", "#5b6770")


def history(model: Any) -> "Figure":
    """Draw the objective and the violation (gap or gradient) of each iteration of the fit.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.history(model)
    figure, (left, right) = _canvas(2)
    marks = "." if len(frame["iteration"]) < 60 else ""
    left.plot(frame["iteration"], frame["objective"], color=BLUE, marker=marks)
    left.set(xlabel="iteration", ylabel="objective", title="What is minimised")
    right.plot(frame["iteration"], frame["violation"], color=ORANGE, marker=marks)
    right.set(xlabel="iteration", ylabel="violation", title="Distance from optimality")
    if (frame["violation"] > 0).any():
        right.set_yscale("log", nonpositive="mask")
    for axes in (left, right):
        axes.locator_params(axis="x", integer=True)
    return figure


def calibration(model: Any, X: Any, y: Any, bins: int = 10) -> "Figure":
    """Draw how often an event happened against the probability given to it.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.
    bins : int, default=10
        Number of bins of the probability.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.calibration(model, X, y, bins)
    figure, (axes,) = _canvas(1)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", label="perfect")
    axes.plot(frame["predicted"], frame["observed"], color=BLUE, linewidth=1)
    size = 20 + 180 * frame["rows"] / frame["rows"].max()
    axes.scatter(frame["predicted"], frame["observed"], s=size, color=BLUE, zorder=3, label="rows (size: how many)")
    axes.set(
        xlabel="predicted probability",
        ylabel="observed share",
        title="Calibration",
        xlim=(-0.05, 1.05),
        ylim=(-0.05, 1.05),
    )
    axes.legend(frameon=False, loc="upper left")
    return figure


def confusion(model: Any, X: Any, y: Any) -> "Figure":
    """Draw the confusion matrix: true classes down, predicted classes across.

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
    frame = frames.confusion(model, X, y)
    counts, labels = frame["counts"], [_short(label) for label in frame["labels"]]
    figure, (axes,) = _canvas(1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    if len(labels) <= 15:
        for (i, j), count in np.ndenumerate(counts):
            axes.text(j, i, f"{count:,}", ha="center", va="center", color="white" if shares[i, j] > 0.5 else INK)
    ticks = np.arange(len(labels))
    axes.set_xticks(ticks, labels, rotation=45 if max(map(len, labels)) > 6 else 0)
    axes.set_yticks(ticks, labels)
    axes.grid(visible=False)
    axes.set(xlabel="predicted", ylabel="true", title="Confusion")
    return figure


def residuals(model: Any, X: Any, y: Any) -> "Figure":
    """Draw observed minus predicted values against predicted ones, and their distribution.

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
    frame = frames.residuals(model, X, y)
    figure, (left, right) = _canvas(2)
    alpha = min(1.0, max(0.05, 300 / len(frame["residual"])))
    left.scatter(frame["predicted"], frame["residual"], s=12, color=BLUE, alpha=alpha, linewidths=0)
    left.axhline(0, color=INK, linewidth=1)
    left.set(xlabel="predicted", ylabel="observed - predicted", title="Residuals")
    right.hist(frame["residual"], bins="sqrt" if len(frame["residual"]) < 10_000 else 100, color=BLUE)
    right.set(xlabel="observed - predicted", ylabel="rows", title="How they are spread")
    return figure


def coefficients(model: Any, names: Sequence[str] | None = None, limit: int = 20) -> "Figure":
    """Draw the largest coefficients as bars.

    Parameters
    ----------
    model : learner
        Fitted learner.
    names : sequence of str or None
        Names of the columns; None: those of the fit, or their numbers.
    limit : int, default=20
        Largest number of bars.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.coefficients(model, names, limit)
    values, outputs = frame["values"], frame["outputs"]
    figure, (axes,) = _canvas(1, height=1.2 + 0.28 * len(values))
    width = 0.8 / values.shape[1]
    at = np.arange(len(values))
    for k in range(values.shape[1]):
        colour = CLASS_COLOURS[k % len(CLASS_COLOURS)]
        axes.barh(at + (k - (values.shape[1] - 1) / 2) * width, values[:, k], width, color=colour, label=outputs[k])
    axes.axvline(0, color=INK, linewidth=1)
    axes.set_yticks(at, [_short(name, 28) for name in frame["names"]])
    axes.margins(y=0.02)
    axes.invert_yaxis()
    shown = f"{len(values)} largest of {frame['all']}" if len(values) < frame["all"] else "all"
    axes.set(xlabel="coefficient", title=f"Coefficients ({shown})")
    if any(outputs):
        axes.legend(frameon=False)
    return figure


def boundary(model: Any, X: Any, y: Any) -> "Figure":
    """Draw the rows of two features, the regions of each class, and the margin of a linear separator.

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
    frame = frames.boundary(model, X, y)
    figure, axes = _regions(frame, X, y, s=18, edgecolors="white", linewidths=0.5)
    if "normal" in frame:
        horizontal, vertical = np.meshgrid(frame["x"], frame["y"])
        score = frame["normal"][0] * horizontal + frame["normal"][1] * vertical + frame["offset"]
        levels = [-frame["margin"], 0.0, frame["margin"]]
        axes.contour(
            horizontal,
            vertical,
            score,
            levels=levels,
            colors=INK,
            linestyles=["--", "-", "--"],
            linewidths=[1, 1.5, 1],
        )
    names = getattr(model, "feature_names_in_", ("x0", "x1"))
    axes.grid(visible=False)
    axes.set(xlabel=_short(names[0], 28), ylabel=_short(names[1], 28), title="Decision boundary")
    axes.legend(framealpha=0.9)
    return figure


def _regions(frame: dict[str, Any], X: Any, y: Any, **marks: Any) -> tuple["Figure", "Axes"]:
    """Return a figure of the regions in which each class is predicted, and of the rows of each class as `marks`."""
    from matplotlib.colors import ListedColormap

    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    figure, (axes,) = _canvas(1)
    colours = [CLASS_COLOURS[k % len(CLASS_COLOURS)] for k in range(len(frame["classes"]))]
    axes.pcolormesh(
        frame["x"], frame["y"], frame["codes"], cmap=ListedColormap(colours), alpha=0.15, vmin=-0.5,
        vmax=len(colours) - 0.5, shading="nearest", rasterized=True,
    )  # fmt: skip
    for label, colour in zip(frame["classes"], colours, strict=True):
        mine = y == label
        axes.scatter(X[mine, 0], X[mine, 1], color=colour, label=_short(label), **marks)
    return figure, axes


def bounds(
    space: Space,
    rows: Sequence[int] | None = None,
    *,
    delta: float = 0.05,
    training_error: float = 0.0,
    hoped: Hoped | None = None,
) -> "Figure":
    """Draw the error that each theorem guarantees for a space, and for what is `hoped` for of a model, against the
    number of rows.

    Parameters
    ----------
    space : Space
        Hypothesis space.
    rows : sequence of int or None
        Numbers of rows; None: a range that shows where the bounds say something.
    delta : float, default=0.05
        Probability with which the limits may fail.
    training_error : float, default=0.0
        Share of training errors.
    hoped : Hoped or None
        Margins or compression hoped for; None: nothing.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.bounds(space, rows, delta=delta, training_error=training_error, hoped=hoped)
    figure, (axes,) = _canvas(1, width=6.4)
    for k, (theorem, values) in enumerate(frame["bounds"].items()):
        axes.plot(frame["rows"], values, color=CLASS_COLOURS[k % len(CLASS_COLOURS)], label=theorem)
    axes.axhline(frame["training_error"], color=GREY, linewidth=1, linestyle="--", label="training error")
    axes.set_xscale("log")
    axes.set(
        xlabel="rows",
        ylabel=f"error at most ({100 * (1 - delta):g} % confidence)",
        title=_short(space, 60),
        ylim=(-0.02, 1.02),
    )
    axes.legend(framealpha=0.9, fontsize=7, loc="upper right")
    return figure


def shattering(space: Space, points: ArrayLike) -> "Figure":
    """Draw every labelling of a few points with a hypothesis that makes it; a red frame: there is none.

    Parameters
    ----------
    space : Space
        Hypothesis space.
    points : array-like
        Points of the plane, at most a few.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.shattering(space, points)
    count = len(frame["labels"])
    across = min(8, count)
    down = -(-count // across)
    figure, panels = _canvas(across, height=1.5 * down + 0.5, down=down, width=1.5)
    from matplotlib.colors import ListedColormap

    for axes, labels, made, region in zip(panels, frame["labels"], frame["made"], frame["regions"], strict=True):
        if region.any():
            axes.pcolormesh(
                frame["x"], frame["y"], region, cmap=ListedColormap([BLUE, ORANGE]), alpha=0.15, vmin=-1,
                vmax=1, shading="nearest", rasterized=True,
            )  # fmt: skip
        colours = np.where(labels > 0, ORANGE, BLUE)
        axes.scatter(frame["points"][:, 0], frame["points"][:, 1], s=30, color=colours, edgecolors="white", zorder=3)
        axes.grid(visible=False)
        axes.set(xticks=[], yticks=[], xlim=frame["x"][[0, -1]], ylim=frame["y"][[0, -1]])
        for spine in axes.spines.values():
            spine.set(visible=True, color=GREY if made else "#b3261e", linewidth=1 if made else 2.5)
    figure.suptitle(f"{_short(space, 60)}: {frame['made'].sum()} of {count} labellings", fontsize=9)
    return figure


def rademacher(suprema: Suprema, draws: int = 200, *, seed: int = 0, delta: float = 0.05) -> "Figure":
    """Draw the estimated Rademacher complexity and its interval as sign vectors are added.

    Parameters
    ----------
    suprema : Suprema
        The class on given rows.
    draws : int, default=200
        Number of sign vectors.
    seed : int, default=0
        Seed of what is drawn at random.
    delta : float, default=0.05
        Probability with which the limits may fail.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.rademacher(suprema, draws, seed=seed, delta=delta)
    figure, (axes,) = _canvas(1)
    if np.isfinite(frame["upper"]).all():
        axes.fill_between(frame["draws"], frame["lower"], frame["upper"], color=PALE, label="interval")
    else:
        axes.plot(frame["draws"], frame["lower"], color=GREY, label="lower limit")
    axes.plot(frame["draws"], frame["value"], color=BLUE, marker=".", label="estimate")
    axes.set_xscale("log")
    axes.set(xlabel="sign vectors drawn", ylabel="complexity", title="Empirical Rademacher complexity")
    axes.legend(frameon=False)
    return figure


def default(model: Any) -> "Figure":
    """Draw what a fitted model shows without data: the figure that its class names.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    from assay import plot

    draw: Callable[[Any], Figure] = getattr(plot, model.figure)
    return draw(model)


def histogram(model: Any) -> "Figure":
    """Draw how many rows lie in each bin of each column of a histogram.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    figure, panels = _canvas(min(len(model.edges_), 4))
    for j, axes in enumerate(panels):
        axes.stairs(
            np.bincount(model.cells_[:, j], weights=model.counts_, minlength=model.edges_.shape[1] - 1),
            model.edges_[j],
            color=BLUE,
        )
        axes.set(xlabel=f"column {j}", ylabel="rows", title="Histogram")
    return figure


def _canvas(
    panels: int, height: float = 3.6, *, down: int = 1, width: float = 4.8
) -> tuple["Figure", "Sequence[Axes]"]:
    """Return an empty figure with `down` rows of panels side by side; it belongs to no window."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("assay.plot needs matplotlib, which is not installed: pip install 'assay[plot]'.") from None
    style: dict[Any, Any] = {
        "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": GREY, "axes.labelcolor": INK,
        "axes.grid": True, "grid.color": PALE, "axes.axisbelow": True, "xtick.color": INK, "ytick.color": INK,
        "font.size": 9,
    }  # fmt: skip
    with rc_context(style):
        figure = Figure(figsize=(width * panels, height), layout="constrained")
        axes = figure.subplots(down, panels, squeeze=False).ravel().tolist()
    return figure, axes


def _short(label: Any, length: int = 16) -> str:
    """Return a label as text: cut if long, its dollar signs kept from being read as mathematics."""
    text = str(label).replace("$", r"\$")
    return text if len(text) <= length else text[: length - 1] + "…"


def learning_curve(frame: Mapping[str, np.ndarray]) -> "Figure":
    """Draw training error, held-out error and each bound against the number of rows, from a `LearningCurve`.

    Parameters
    ----------
    frame : mapping
        What `LearningCurve` returned.

    Returns
    -------
    Figure
        The figure.
    """
    figure, (axes,) = _canvas(1, width=6.4)
    axes.plot(frame["rows"], frame["training error"], color=GREY, marker=".", label="training error")
    axes.plot(frame["rows"], frame["held-out error"], color=INK, marker=".", label="held-out error")
    bounds = [name for name in frame if name not in ("rows", "training error", "held-out error")]
    for k, name in enumerate(bounds):
        axes.plot(frame["rows"], frame[name], color=CLASS_COLOURS[k % 8], marker=".", label=f"at most, by {name}")
    axes.set_xscale("log")
    axes.set(xlabel="training rows", ylabel="error rate", title="What is seen and what is proved", ylim=(-0.02, 1.02))
    axes.legend(framealpha=0.9, fontsize=7)
    return figure


def tightness(certificates: Mapping[str, Certificate], errors: Mapping[str, float] | None = None) -> "Figure":
    """Draw every bound of the error rate in some certificates, a line for each, beside the error on test rows.

    Parameters
    ----------
    certificates : mapping
        Certificates by name.
    errors : mapping or None
        Error rate on test rows by name; None: not drawn.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.tightness(certificates, errors)
    places = np.arange(len(frame["names"]))
    figure, (axes,) = _canvas(1, height=0.35 * len(places) + 1.6, width=6.4)
    for k, kind in enumerate(frame["kinds"]):
        axes.scatter(frame["bounds"][:, k], places, color=CLASS_COLOURS[k % 8], s=24, label=kind)
    known = np.isfinite(frame["errors"])
    axes.scatter(frame["errors"][known], places[known], color=INK, marker="|", s=120, label="test error")
    axes.set(xlabel="error rate at most", xlim=(-0.02, 1.02), title="Bounds and truth", ylim=(-0.7, len(places) - 0.3))
    axes.set_yticks(places, [_short(name, 32) for name in frame["names"]])
    axes.invert_yaxis()
    axes.legend(framealpha=0.9, fontsize=7)
    return figure


def version_space(space: VersionSpace, rows: ArrayLike, labels: Sequence[int]) -> "Figure":
    """Draw how observing rows of the plane empties a version space, and where the hypotheses left disagree.

    Parameters
    ----------
    space : VersionSpace
        The version space.
    rows : array-like
        Rows of the plane, in the order in which they are observed.
    labels : sequence of int
        Their labels.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.version_space(space, rows, labels)
    figure, (left, right) = _canvas(2)
    left.step(np.arange(len(frame["sizes"])), frame["sizes"], where="post", color=BLUE)
    left.set(xlabel="rows seen", ylabel="hypotheses left", title="Elimination")
    left.locator_params(axis="x", integer=True)
    shade = right.pcolormesh(
        frame["x"], frame["y"], frame["share"], cmap="RdBu_r", vmin=0, vmax=1, shading="nearest", rasterized=True
    )
    figure.colorbar(shade, ax=right, label="share of them that say +1")
    colours = np.where(np.asarray(labels) > 0, ORANGE, BLUE)
    right.scatter(frame["rows"][:, 0], frame["rows"][:, 1], color=colours, edgecolors="white", s=36, zorder=3)
    right.set(title=f"{frame['sizes'][-1]} hypotheses left", xlabel="first column", ylabel="second column")
    right.grid(visible=False)
    return figure


def surrogate_losses(margins: ArrayLike | None = None) -> "Figure":
    """Draw the losses of the margin that stand for the 0/1 loss: hinge, exponential, logistic, squared.

    Parameters
    ----------
    margins : array-like or None
        Margins; None: a grid around 0.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.surrogate_losses(margins)
    figure, (axes,) = _canvas(1, width=6.4)
    for k, (name, values) in enumerate(frame["losses"].items()):
        style = {"color": INK, "linewidth": 1.8} if name == "0/1" else {"color": CLASS_COLOURS[(k - 1) % 8]}
        axes.plot(frame["margin"], values, label=name, **style)
    axes.set(xlabel="margin y f(x)", ylabel="loss", title="Surrogate losses", ylim=(-0.1, 4.0))
    axes.legend(framealpha=0.9, fontsize=7)
    return figure


def structural_risk(errors: ArrayLike, dimensions: ArrayLike, rows: int, delta: float = 0.05) -> "Figure":
    """Draw empirical risk, confidence and their sum against the VC dimension of nested classes.

    Parameters
    ----------
    errors : array-like
        Training errors of each class.
    dimensions : array-like
        VC dimension of each class.
    rows : int
        Number of training rows.
    delta : float, default=0.05
        Probability with which the limits may fail.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.structural_risk(errors, dimensions, rows, delta)
    figure, (axes,) = _canvas(1, width=6.4)
    axes.plot(frame["dimension"], frame["empirical"], color=BLUE, marker=".", label="empirical risk")
    axes.plot(frame["dimension"], frame["confidence"], color=ORANGE, marker=".", label="confidence")
    axes.plot(frame["dimension"], frame["bound"], color=INK, marker=".", label="bound of the risk: their sum")
    axes.axvline(frame["dimension"][frame["best"]], color=GREY, linestyle="--", linewidth=1, label="least bound")
    axes.set(xlabel="VC dimension", ylabel="error rate", title=f"Structural risk, {rows} rows")
    axes.legend(framealpha=0.9, fontsize=7)
    return figure


def information_curve(joint: ArrayLike, **options: Any) -> "Figure":
    """Draw what a summary Z keeps about Y against what it keeps about X, as compression gets cheaper.

    Parameters
    ----------
    joint : array-like
        P(x, y), a row for each x.
    **options : object
        As of `theory.bottleneck.information_curve`.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.information_curve(joint, **options)
    figure, (axes,) = _canvas(1)
    axes.axhline(frame["relevance_limit"], color=GREY, linestyle="--", linewidth=1, label="I(X;Y), all there is")
    axes.axvline(frame["compression_limit"], color=PALE, linewidth=1)
    axes.plot(frame["compression"], frame["relevance"], color=BLUE, marker=".", label="information bottleneck")
    axes.set(xlabel="I(X;Z), nats", ylabel="I(Z;Y), nats", title="Information curve")
    axes.legend(frameon=False, fontsize=7, loc="lower right")
    return figure

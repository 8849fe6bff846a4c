"""Figures of learning theory beside bounds, shattering and complexity: curves, version spaces, tightness."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from assay.claims.claim import Certificate
from assay.plot import theory_frames as frames
from assay.plot.figures import BLUE, CLASS_COLOURS, GREY, INK, ORANGE, PALE, _canvas, _short
from assay.textbook.concepts import VersionSpace

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def learning_curve(frame: Mapping[str, np.ndarray]) -> "Figure":
    """Draw training error, held-out error and each bound against the number of rows, from a `LearningCurve`."""
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
    """Draw every bound of the error rate in some certificates, a line for each, beside the error on test rows."""
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
    """Draw how observing rows of the plane empties a version space, and where the hypotheses left disagree."""
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
    """Draw the losses of the margin that stand for the 0/1 loss: hinge, exponential, logistic, squared."""
    frame = frames.surrogate_losses(margins)
    figure, (axes,) = _canvas(1, width=6.4)
    for k, (name, values) in enumerate(frame["losses"].items()):
        style = {"color": INK, "linewidth": 1.8} if name == "0/1" else {"color": CLASS_COLOURS[(k - 1) % 8]}
        axes.plot(frame["margin"], values, label=name, **style)
    axes.set(xlabel="margin y f(x)", ylabel="loss", title="Surrogate losses", ylim=(-0.1, 4.0))
    axes.legend(framealpha=0.9, fontsize=7)
    return figure


def structural_risk(errors: ArrayLike, dimensions: ArrayLike, rows: int, delta: float = 0.05) -> "Figure":
    """Draw empirical risk, confidence and their sum against the VC dimension of nested classes."""
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
    """Draw what a summary Z keeps about Y against what it keeps about X, as compression gets cheaper."""
    frame = frames.information_curve(joint, **options)
    figure, (axes,) = _canvas(1)
    axes.axhline(frame["relevance_limit"], color=GREY, linestyle="--", linewidth=1, label="I(X;Y), all there is")
    axes.axvline(frame["compression_limit"], color=PALE, linewidth=1)
    axes.plot(frame["compression"], frame["relevance"], color=BLUE, marker=".", label="information bottleneck")
    axes.set(xlabel="I(X;Z), nats", ylabel="I(Z;Y), nats", title="Information curve")
    axes.legend(frameon=False, fontsize=7, loc="lower right")
    return figure

"""Figures of clusterings and decompositions."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from assay.plot import cluster_frames as frames
from assay.plot.figures import BLUE, CLASS_COLOURS, GREY, INK, ORANGE, _canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_PROTOTYPES = 40


def clusters(model: Any, X: Any, columns: tuple[int, int] = (0, 1)) -> "Figure":
    """Draw the rows in two columns, coloured by cluster, and the centres."""
    frame = frames.clusters(model, X, columns)
    figure, (axes,) = _canvas(1)
    colours = np.array(CLASS_COLOURS)[frame["label"] % len(CLASS_COLOURS)]
    axes.scatter(frame["x"][:, 0], frame["x"][:, 1], c=colours, s=9, linewidths=0)
    middle = frame["centers"]
    axes.scatter(middle[:, 0], middle[:, 1], c="white", s=110, marker="X", edgecolors=INK, linewidths=1.5, zorder=3)
    axes.set(xlabel=f"column {columns[0]}", ylabel=f"column {columns[1]}", title=f"{len(frame['centers'])} clusters")
    return figure


def prototypes_frame(model: Any) -> np.ndarray:
    """Return the prototypes, (k, columns), each column from 0 (the least among them) to 1 (the largest)."""
    check_is_fitted(model)
    found = np.asarray(model.prototypes_, dtype=np.float64)
    low, span = found.min(axis=0), np.ptp(found, axis=0)
    return (found - low) / np.where(span > 0, span, 1.0)


def prototypes(model: Any) -> "Figure":
    """Draw each prototype as a line over the columns, every column between its least and largest prototype."""
    shares = prototypes_frame(model)
    figure, (axes,) = _canvas(1)
    for k, line in enumerate(shares[:_MOST_PROTOTYPES]):
        axes.plot(line, color=CLASS_COLOURS[k % len(CLASS_COLOURS)], marker="." if len(line) < 40 else "", label=str(k))
    if len(shares) <= len(CLASS_COLOURS):
        axes.legend(frameon=False, title="prototype")
    axes.locator_params(axis="x", integer=True)
    shown = f"{_MOST_PROTOTYPES} of " if len(shares) > _MOST_PROTOTYPES else ""
    axes.set(xlabel="column", ylabel="least to largest prototype", title=f"{shown}{len(shares)} prototypes")
    return figure


def cluster_choice(found: Any) -> "Figure":
    """Draw RMSSTD and the average silhouette width of a `cluster.sweep` against the number of clusters."""
    frame = frames.cluster_choice(found)
    figure, (left, right) = _canvas(2)
    for axes, name, best, title in (
        (left, "rmsstd", frame["elbow"], "RMSSTD: the elbow"),
        (right, "silhouette", frame["widest"], "Average silhouette width: the largest"),
    ):
        axes.plot(frame["k"], frame[name], color=BLUE, marker="o", markersize=4)
        if best is not None:
            axes.axvline(best, color=ORANGE, linewidth=1)
            title += f" is at {best}"
        axes.set(xlabel="number of clusters", title=title)
    return figure


def silhouettes(X: Any, labels: Any) -> "Figure":
    """Draw the silhouette of each row, cluster by cluster, and their mean."""
    frame = frames.silhouettes(X, labels)
    figure, (axes,) = _canvas(1)
    names, codes = np.unique(frame["label"], return_inverse=True)
    at = np.arange(len(codes)) + 0.02 * len(codes) * codes  # a gap between clusters
    axes.barh(at, frame["width"], height=1.0, color=np.array(CLASS_COLOURS)[codes % len(CLASS_COLOURS)])
    axes.axvline(frame["mean"], color=INK, linewidth=1, linestyle="--")
    axes.set_yticks([at[codes == k].mean() for k in range(len(names))], [str(name) for name in names])
    axes.invert_yaxis()
    axes.set(xlabel="silhouette", title=f"Average silhouette width {frame['mean']:.3f}")
    return figure


def loadings(model: Any, most: int = 6) -> "Figure":
    """Draw the entries of the first components over the columns: what each new column is made of."""
    check_is_fitted(model)
    figure, (axes,) = _canvas(1)
    shares = getattr(model, "explained_variance_ratio_", None)
    for k, line in enumerate(model.components_[:most]):
        share = "" if shares is None else f", {shares[k]:.0%} of the variance"
        axes.plot(line, color=CLASS_COLOURS[k], marker="." if len(line) < 40 else "", label=f"component {k}{share}")
    axes.axhline(0, color=INK, linewidth=1)
    axes.locator_params(axis="x", integer=True)
    axes.set(xlabel="column", ylabel="entry", title=f"{min(most, len(model.components_))} of {len(model.components_)}")
    axes.legend(frameon=False)
    return figure


def explained_variance(model: Any) -> "Figure":
    """Draw the share of the variance that each component of a PCA explains, and their sum."""
    frame = frames.explained_variance(model)
    figure, (axes,) = _canvas(1)
    axes.bar(frame["component"], frame["ratio"], color=BLUE, label="each")
    axes.plot(frame["component"], frame["total"], color=ORANGE, marker="o", markersize=4, label="together")
    axes.axhline(1.0, color=GREY, linewidth=1)
    axes.set(xlabel="component", ylabel="share of the variance", ylim=(0, 1.05), title="Explained variance")
    axes.legend(frameon=False)
    return figure

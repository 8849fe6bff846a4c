"""Figures of clusterings and decompositions."""

from typing import TYPE_CHECKING, Any

import numpy as np

from assay.plot import cluster_frames as frames
from assay.plot.figures import BLUE, CLASS_COLOURS, GREY, INK, ORANGE, _canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

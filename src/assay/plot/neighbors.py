"""Figures of nearest-neighbour models, and of labels that spread over a graph of neighbours."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from assay.plot.figures import BLUE, _canvas, boundary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 20_000  # rows whose neighbours are looked up for a figure


def neighbor_frame(model: Any) -> dict[str, np.ndarray]:
    """Return `distance`, sorted: how far the k-th nearest other row is from each training row (from a sample of many),
    and `share`, the share of the rows for which it is no farther."""
    rows = np.arange(0, model.n_samples_fit_, -(-model.n_samples_fit_ // _MOST))
    k = min(model.n_neighbors, model.n_samples_fit_ - 1)
    distance, index = model.kneighbors(model.fit_X_[rows], k + 1)
    itself = (index == rows[:, None]).any(axis=1)
    far = np.sort(np.where(itself, distance[:, -1], distance[:, -2]))
    return {"distance": far, "share": np.arange(1, len(far) + 1) / len(far)}


def neighbor_distances(model: Any) -> "Figure":
    """Draw how far the k-th nearest other row is, over the training rows: where the votes come from. A classifier of
    two columns is drawn by its regions."""
    if hasattr(model, "fit_y_") and is_classifier(model) and model.fit_X_.shape[1] == 2 and model.fit_y_.ndim == 1:
        return boundary(model, model.fit_X_, model.classes_[model.fit_y_])
    frame = neighbor_frame(model)
    figure, (axes,) = _canvas(1)
    axes.plot(frame["distance"], frame["share"], color=BLUE)
    axes.set(
        xlabel=f"distance to neighbour {model.n_neighbors}", ylabel="share of the rows", title="How near neighbours are"
    )
    return figure


def neighbor_counts(model: Any) -> "Figure":
    """Draw how many training rows lie within the radius of each training row, itself included."""
    rows = np.arange(0, model.n_samples_fit_, -(-model.n_samples_fit_ // _MOST))
    counts = [len(found) for found in model.radius_neighbors(model.fit_X_[rows], return_distance=False)]
    figure, (axes,) = _canvas(1)
    axes.hist(counts, bins=min(50, max(counts)), color=BLUE)
    axes.set(xlabel=f"rows within {model.radius:g}", ylabel="rows", title="How many vote")
    return figure


def label_certainty(model: Any) -> "Figure":
    """Draw the largest share of a class in the labels that have spread to each row, sorted: 1 is sure."""
    sure = np.sort(model.label_distributions_.max(axis=1))[::-1]
    figure, (axes,) = _canvas(1)
    axes.plot(np.arange(1, len(sure) + 1) / len(sure), sure, color=BLUE)
    axes.set(xlabel="share of the rows", ylabel="share of the likeliest class", title="How sure the labels are")
    axes.set_ylim(0, 1.02)
    return figure

"""Figures of nearest-neighbour models."""

from typing import TYPE_CHECKING, Any

import numpy as np

from assay.plot.figures import BLUE, _canvas

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
    """Draw how far the k-th nearest other row is, over the training rows: where the votes come from."""
    frame = neighbor_frame(model)
    figure, (axes,) = _canvas(1)
    axes.plot(frame["distance"], frame["share"], color=BLUE)
    axes.set(
        xlabel=f"distance to neighbour {model.n_neighbors}", ylabel="share of the rows", title="How near neighbours are"
    )
    return figure

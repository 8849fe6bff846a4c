"""The numbers behind the figures of clusterings and decompositions, as dictionaries of arrays."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from assay.metrics import silhouette_samples
from assay.plot.frames import Frame


def clusters(model: Any, X: Any, columns: tuple[int, int] = (0, 1)) -> Frame:
    """Return `x` (n, 2), two columns of the rows, the `label` of each row, and `centers` (k, 2)."""
    check_is_fitted(model)
    X, at = np.asarray(X, dtype=np.float64), list(columns)
    if X.ndim != 2 or len(at) != 2 or not all(0 <= j < X.shape[1] for j in at):
        raise ValueError(f"clusters: columns must be two of the {X.shape[-1]} columns of X; got {columns!r}.")
    return {"x": X[:, at], "label": model.predict(X), "centers": model.cluster_centers_[:, at]}


def cluster_choice(found: Any) -> Frame:
    """Return the curves of a `cluster.Sweep`: `k`, `rmsstd`, `silhouette`, and the k that each of them chooses."""
    consecutive = len(found.ks) >= 3 and bool(np.all(np.diff(found.ks) == 1))
    widest = None if np.isnan(found.silhouette).all() else found.widest
    return {
        "k": found.ks,
        "rmsstd": found.rmsstd,
        "silhouette": found.silhouette,
        "elbow": found.elbow if consecutive else None,
        "widest": widest,
    }


def silhouettes(X: Any, labels: Any) -> Frame:
    """Return the silhouette `width` of each row, by cluster and falling within it, and the `label` beside it."""
    labels = np.asarray(labels)
    width = silhouette_samples(X, labels)
    order = np.lexsort((-width, labels))
    return {"width": width[order], "label": labels[order], "mean": float(width.mean())}


def explained_variance(model: Any) -> Frame:
    """Return the `ratio` of the variance that each component explains, and the `total` up to it."""
    check_is_fitted(model)
    ratio = np.asarray(model.explained_variance_ratio_)
    return {"component": np.arange(1, len(ratio) + 1), "ratio": ratio, "total": np.cumsum(ratio)}

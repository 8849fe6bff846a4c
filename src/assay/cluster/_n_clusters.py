"""How many clusters: k-means for each k, with the curves by which one is chosen."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from assay.cluster._kmeans import KMeans
from assay.metrics import rmsstd, silhouette_score


class Sweep(NamedTuple):
    """Clusterings of the same rows, one for each number of clusters."""

    ks: np.ndarray
    models: tuple[KMeans, ...]
    inertia: np.ndarray  # sum of squared distances to the centres
    rmsstd: np.ndarray  # root of the pooled variance per column; NaN for k = n
    silhouette: np.ndarray  # average silhouette width; NaN for k = 1 and k = n

    @property
    def elbow(self) -> int:
        """The k after which RMSSTD stops falling fast: its second difference is largest there."""
        if len(self.ks) < 3 or np.any(np.diff(self.ks) != 1):
            raise ValueError("elbow: needs at least three consecutive numbers of clusters.")
        return int(self.ks[1 + np.nanargmax(np.diff(self.rmsstd, 2))])

    @property
    def widest(self) -> int:
        """The k with the largest average silhouette width."""
        if np.isnan(self.silhouette).all():
            raise ValueError("widest: needs a number of clusters from 2 to n - 1.")
        return int(self.ks[np.nanargmax(self.silhouette)])


def sweep(X: Any, ks: Iterable[int] = range(1, 11), *, model: KMeans | None = None) -> Sweep:
    """Return k-means clusterings of the rows X (n, d) for each k of `ks`; `model` gives the other parameters.

    >>> import numpy as np
    >>> from assay.cluster import KMeans, sweep
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(place, 0.3, size=(50, 2)) for place in (0, 4, 8)])
    >>> found = sweep(X, range(1, 7), model=KMeans(random_state=0, n_init=5))
    >>> found.elbow, found.widest
    (3, 3)
    """
    X = np.asarray(X, dtype=np.float64)
    model = KMeans() if model is None else model
    numbers = np.array(sorted({int(k) for k in ks}))
    if not len(numbers):
        raise ValueError("sweep: ks must hold at least one number of clusters to try; got none.")
    models = tuple(clone(model).set_params(n_clusters=int(k)).fit(X) for k in numbers)
    labels = [one.labels_ for one in models]
    found = [len(np.unique(own)) for own in labels]
    spread = [rmsstd(X, own) if k < len(X) else np.nan for k, own in zip(found, labels)]
    width = [silhouette_score(X, own) if 2 <= k < len(X) else np.nan for k, own in zip(found, labels)]
    return Sweep(numbers, models, np.array([one.inertia_ for one in models]), np.array(spread), np.array(width))

"""How many clusters: k-means for each k, with the curves by which one is chosen.

    gap(k) = mean over references of ln W*_k - ln W_k,   W_k the cost of k-means, W*_k that of rows without clusters
    BIC(k) = -2 L_k + p ln n,   L_k = sum_j n_j ln(n_j / n) - (n d / 2) (ln(2 pi s^2) + 1),   s^2 = W_k / (n d)

The references are drawn evenly from the box that the rows fill along their principal axes; the first k whose gap is
not below the next one less its error is chosen (Tibshirani, Walther & Hastie 2001). BIC is that of round Gaussians of
one variance, to each of which its rows belong for certain: k - 1 shares, k d coordinates, one variance.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from assay.cluster._kmeans import KMeans
from assay.fitlog import part_of_a_fit
from assay.metrics import rmsstd, silhouette_score


class Sweep(NamedTuple):
    """Clusterings of the same rows, one for each number of clusters.

    Parameters
    ----------
    ks : ndarray
        Numbers of clusters.
    models : tuple of KMeans
        The clustering of each.
    inertia : ndarray
        Sum of squared distances to the centres.
    rmsstd : ndarray
        Root of the pooled variance.
    silhouette : ndarray
        Average silhouette width.
    bic : ndarray
        Bayesian information criterion.
    gap : ndarray
        Gap statistic.
    gap_error : ndarray
        Its standard error.
    """

    ks: np.ndarray
    models: tuple[KMeans, ...]
    inertia: np.ndarray  # sum of squared distances to the centres
    rmsstd: np.ndarray  # root of the pooled variance per column; NaN for k = n
    silhouette: np.ndarray  # average silhouette width; NaN for k = 1 and k = n
    bic: np.ndarray  # of round Gaussians; NaN where rows lie on their centres
    gap: np.ndarray  # NaN without references, and where rows lie on their centres
    gap_error: np.ndarray  # standard deviation over references, times sqrt(1 + 1 / references)

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

    @property
    def least_bic(self) -> int:
        """The k with the smallest BIC."""
        if np.isnan(self.bic).all():
            raise ValueError("least_bic: every row lies on its centre, whatever the number of clusters.")
        return int(self.ks[np.nanargmin(self.bic)])

    @property
    def first_gap(self) -> int:
        """The first k whose gap is at least the next one's less its error; the last if there is none."""
        if np.isnan(self.gap).any():
            raise ValueError("first_gap: needs references, and rows that do not lie on their centres.")
        enough = self.gap[:-1] >= (self.gap - self.gap_error)[1:]
        return int(self.ks[np.argmax(enough)] if enough.any() else self.ks[-1])


def sweep(
    X: Any,
    ks: Iterable[int] = range(1, 11),
    *,
    model: KMeans | None = None,
    references: int = 0,
    random_state: Any = None,
) -> Sweep:
    """Return k-means clusterings of the rows X (n, d) for each k of `ks`; `model` gives the other parameters.

    `references` tables without clusters, drawn by `random_state`, are clustered as often for the gap statistic.

    Parameters
    ----------
    X : array-like
        Rows.
    ks : iterable of int, default=range(1, 11)
        Numbers of clusters.
    model : KMeans or None
        k-means with the other parameters; None: the defaults.
    references : int, default=0
        Number of tables without clusters for the gap statistic; 0: it is not computed.
    random_state : int, RandomState or None
        Seed of what is drawn.

    Returns
    -------
    Sweep
        The clusterings and their scores.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.cluster import KMeans, sweep
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(place, 0.3, size=(50, 2)) for place in ((0, 0), (4, 0), (0, 4))])
    >>> found = sweep(X, range(1, 7), model=KMeans(random_state=0, n_init=5), references=10, random_state=0)
    >>> found.elbow, found.widest, found.least_bic, found.first_gap
    (3, 3, 3, 3)
    """
    X = np.asarray(X, dtype=np.float64)
    model = KMeans() if model is None else model
    numbers = np.array(sorted({int(k) for k in ks}))
    if not len(numbers):
        raise ValueError("sweep: ks must hold at least one number of clusters to try; got none.")
    if isinstance(references, bool) or not isinstance(references, (int, np.integer)) or references < 0:
        raise ValueError(f"sweep: references must be a whole number >= 0; got {references!r}.")
    models = _fitted(model, X, numbers)
    inertia = np.array([item.inertia_ for item in models])
    labels = [item.labels_ for item in models]
    results = [len(np.unique(own)) for own in labels]
    spread = [rmsstd(X, own) if k < len(X) else np.nan for k, own in zip(results, labels)]
    width = [silhouette_score(X, own) if 2 <= k < len(X) else np.nan for k, own in zip(results, labels)]
    bic = [spherical_bic(item.inertia_, np.bincount(item.labels_), X.shape[1]) for item in models]
    gap = _gaps(model, X, numbers, inertia, references, random_state)
    return Sweep(numbers, models, inertia, np.array(spread), np.array(width), np.array(bic), *gap)


def _fitted(model: KMeans, X: np.ndarray, numbers: np.ndarray) -> tuple[KMeans, ...]:
    with part_of_a_fit():
        return tuple(clone(model).set_params(n_clusters=int(k)).fit(X) for k in numbers)


def spherical_bic(inertia: float, sizes: np.ndarray, d: int) -> float:
    """Return BIC of round Gaussians of one variance around the centres of clusters of these sizes; smaller is better.

    >>> abs(spherical_bic(12.0, np.array([6]), 1) - 6 * (math.log(4 * math.pi) + 1) - 2 * math.log(6)) < 1e-9
    True
    """
    n, k = int(sizes.sum()), len(sizes)
    if not inertia > 0:
        return np.nan
    full = sizes[sizes > 0]
    log_likelihood = float(full @ np.log(full / n)) - n * d / 2 * (np.log(2 * np.pi * inertia / (n * d)) + 1)
    return -2 * float(log_likelihood) + (k - 1 + k * d + 1) * math.log(n)


def _gaps(
    model: KMeans, X: np.ndarray, numbers: np.ndarray, inertia: np.ndarray, references: int, random_state: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gap statistic for each number of clusters, and its error."""
    if not references or not np.all(inertia > 0):
        return np.full(len(numbers), np.nan), np.full(len(numbers), np.nan)
    random, center = check_random_state(random_state), X.mean(axis=0)
    axes = np.linalg.svd(X - center, full_matrices=False)[2]
    turned = (X - center) @ axes.T
    low, high, logs = turned.min(axis=0), turned.max(axis=0), np.empty((references, len(numbers)))
    for b in range(references):
        drawn = random.uniform(low, high, size=turned.shape) @ axes + center
        logs[b] = np.log([item.inertia_ for item in _fitted(model, drawn, numbers)])
    return logs.mean(axis=0) - np.log(inertia), logs.std(axis=0) * np.sqrt(1 + 1 / references)

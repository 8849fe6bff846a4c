"""Sizes of clusters and distances between them, and the indices made of these; Euclidean distances.

avg(C)   mean distance of two rows of C (0 for one row)      diam(C)  the largest
d_min(C, D)  the smallest distance of a row of C and a row of D      d_cen(C, D)  the distance of their means
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from assay.scan import thread_map

_BLOCK = 1024  # rows whose distances to all others are held at once


class ClusterGeometry(NamedTuple):
    """For k clusters, in the order of their sorted labels."""

    labels: np.ndarray  # (k,)
    sizes: np.ndarray  # (k,)
    means: np.ndarray  # (k, d)
    avg: np.ndarray  # (k,) mean distance of two rows
    diam: np.ndarray  # (k,) largest distance of two rows
    to_mean: np.ndarray  # (k,) mean distance of a row to the cluster's mean
    d_min: np.ndarray  # (k, k) smallest distance of a row of one and a row of the other; 0 on the diagonal
    d_cen: np.ndarray  # (k, k) distance of the means


def read(X: ArrayLike, labels: ArrayLike) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the rows, the distinct labels in order, and each row's position among them."""
    rows, own = check_array(X, dtype=np.float64), column_or_1d(labels)
    check_consistent_length(rows, own)
    names, codes = np.unique(own, return_inverse=True)
    return rows, names, codes


def cluster_geometry(X: Any, labels: ArrayLike, *, n_jobs: int | None = None) -> ClusterGeometry:
    """Return sizes of the clusters and distances between them; n^2 distances, a block at a time.

    >>> found = cluster_geometry([[0.0], [2.0], [10.0]], [0, 0, 1])
    >>> found.avg, found.diam, found.d_min[0, 1], found.d_cen[0, 1]
    (array([2., 0.]), array([2., 0.]), np.float64(8.0), np.float64(9.0))
    """
    X, names, codes = read(X, labels)
    k, order = len(names), np.argsort(codes, kind="stable")
    X, codes = X[order], codes[order]  # clusters lie in one piece
    starts = np.searchsorted(codes, np.arange(k))
    sizes = np.bincount(codes)
    means = np.add.reduceat(X, starts) / sizes[:, None]
    sums, most, least = np.zeros(k), np.zeros(k), np.full((k, k), np.inf)

    def block(start: int) -> tuple[Any, Any, Any]:
        own = codes[start : start + _BLOCK]
        apart, rows = cdist(X[start : start + _BLOCK], X), np.arange(len(own))
        nearest = np.minimum.reduceat(apart, starts, axis=1)
        return (
            np.add.reduceat(apart, starts, axis=1)[rows, own],
            np.maximum.reduceat(apart, starts, axis=1)[rows, own],
            nearest,
        )

    for start, (total, far, near) in zip(
        range(0, len(X), _BLOCK), thread_map(block, range(0, len(X), _BLOCK), n_jobs=n_jobs)
    ):
        own = codes[start : start + _BLOCK]
        sums += np.bincount(own, weights=total, minlength=k)
        np.maximum.at(most, own, far)
        np.minimum.at(least, own, near)
    pairs = sizes * (sizes - 1)
    avg = np.divide(sums, pairs, out=np.zeros(k), where=pairs > 0)
    to_mean = np.bincount(codes, weights=np.linalg.norm(X - means[codes], axis=1)) / sizes
    return ClusterGeometry(
        names, sizes, means, avg, most, to_mean, np.where(np.eye(k) > 0, 0.0, least), cdist(means, means)
    )


def davies_bouldin(X: Any, labels: ArrayLike, *, spread: str = "pairs", n_jobs: int | None = None) -> float:
    """Return the mean over clusters of max_j (s_i + s_j) / d_cen(i, j); smaller is better.

    `spread` is s: "pairs", the mean distance of two rows of a cluster, or "centroid", the mean distance to the
    cluster's mean, as Davies and Bouldin have it. The second is `sklearn.metrics.davies_bouldin_score`, and the two
    differ.

    >>> float(davies_bouldin([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]))
    0.4
    """
    if spread not in ("pairs", "centroid"):
        raise ValueError(f"davies_bouldin: spread must be 'pairs' or 'centroid'; got {spread!r}.")
    found = _two_or_more(cluster_geometry(X, labels, n_jobs=n_jobs), "davies_bouldin")
    s = found.avg if spread == "pairs" else found.to_mean
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (s[:, None] + s[None, :]) / found.d_cen
    np.fill_diagonal(ratio, -np.inf)
    return float(np.mean(np.nan_to_num(ratio.max(axis=1), nan=0.0)))


def dunn(X: Any, labels: ArrayLike, *, n_jobs: int | None = None) -> float:
    """Return the smallest distance between clusters over the largest diameter; larger is better.

    >>> float(dunn([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]))
    4.0
    """
    found = _two_or_more(cluster_geometry(X, labels, n_jobs=n_jobs), "dunn")
    if found.diam.max() == 0:
        raise ValueError(
            "dunn: every cluster is a single point, so the largest diameter is 0 and the index is not defined."
        )
    between = found.d_min[~np.eye(len(found.sizes), dtype=bool)]
    return float(between.min() / found.diam.max())


def _two_or_more(found: ClusterGeometry, name: str) -> ClusterGeometry:
    if len(found.sizes) < 2:
        raise ValueError(f"{name}: needs at least 2 clusters; the labels name one.")
    return found


def mean_similarities(X: Any, labels: ArrayLike, *, n_jobs: int | None = None) -> tuple[float, float]:
    """Return the mean of 1 / (1 + distance) over pairs of rows inside clusters, and over pairs of different clusters.

    >>> mean_similarities([[0.0], [0.0], [1.0]], ["a", "a", "b"])
    (1.0, 0.5)
    """
    X, _, codes = read(X, labels)

    def block(start: int) -> tuple[float, float]:
        similar = 1.0 / (1.0 + cdist(X[start : start + _BLOCK], X))
        same = codes[start : start + _BLOCK, None] == codes[None, :]
        return float(similar[same].sum()), float(similar[~same].sum())

    inside, between = np.sum(thread_map(block, range(0, len(X), _BLOCK), n_jobs=n_jobs), axis=0)
    sizes = np.bincount(codes)
    pairs, all_pairs = int(np.sum(sizes * (sizes - 1))), len(X) * (len(X) - 1)
    if not 0 < pairs < all_pairs:
        raise ValueError("mean_similarities: needs two rows in one cluster and two rows in different ones.")
    return float((inside - len(X)) / pairs), float(between / (all_pairs - pairs))


def rmsstd(X: Any, labels: ArrayLike, *, per_column: bool = True) -> float:
    """Return the root of the pooled variance: sqrt(sum of squared distances to the cluster means / (P (n - k))).

    P is the number of columns, or 1 with per_column=False; n > k is needed.

    >>> rmsstd([[0.0, 0.0], [2.0, 0.0], [10.0, 0.0]], [0, 0, 1])
    1.0
    """
    X, names, codes = read(X, labels)
    n, k = len(X), len(names)
    if n <= k:
        raise ValueError(f"rmsstd: needs more rows than clusters (n - k divides); got {n} rows in {k} clusters.")
    means = np.array([np.bincount(codes, weights=column) for column in X.T]).T / np.bincount(codes)[:, None]
    return float(np.sqrt(np.sum((X - means[codes]) ** 2) / ((X.shape[1] if per_column else 1) * (n - k))))

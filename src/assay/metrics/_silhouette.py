"""The silhouette of each row: how much nearer it is to its own cluster than to the next one.

    s(i) = (b - a) / max(a, b),  a the mean distance to the other rows of the own cluster, b the least mean distance to
    a cluster it is not in; 0 for a row alone in its cluster, and where a = b = 0.

n^2 distances by matrix products, summed per cluster by a second product, a block of rows on each thread.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from assay.metrics._geometry import read
from assay.scan import thread_map

_ENTRIES = 2**22  # distances held by one thread


def silhouette_samples(X: Any, labels: ArrayLike, *, n_jobs: int | None = None) -> np.ndarray:
    """Return the silhouette of each row, in [-1, 1]; Euclidean distances.

    >>> silhouette_samples([[0.0], [1.0], [10.0]], [0, 0, 1]).round(3)
    array([0.9  , 0.889, 0.   ])
    """
    X, names, codes = read(X, labels)
    k, n = len(names), len(X)
    if not 2 <= k < n:
        raise ValueError(f"silhouette: the number of clusters must be from 2 to n - 1 = {n - 1}; the labels name {k}.")
    X = X - X.mean(axis=0)
    sizes, length = np.bincount(codes), np.einsum("ij,ij->i", X, X)
    member = np.zeros((n, k))
    member[np.arange(n), codes] = 1.0
    step = max(1, _ENTRIES // n)

    def block(start: int) -> np.ndarray:
        rows = slice(start, min(start + step, n))
        apart = X[rows] @ X.T
        apart *= -2.0
        apart += length[rows, None]
        apart += length
        np.maximum(apart, 0.0, out=apart)
        apart[np.arange(rows.stop - start), np.arange(start, rows.stop)] = 0.0
        np.sqrt(apart, out=apart)
        return apart @ member

    sums = np.concatenate(thread_map(block, range(0, n, step), n_jobs=n_jobs))
    own = (np.arange(n), codes)
    a = sums[own] / np.maximum(sizes[codes] - 1, 1)
    means = sums / sizes
    means[own] = np.inf
    b = means.min(axis=1)
    most = np.maximum(a, b)
    s = np.divide(b - a, most, out=np.zeros(n), where=most > 0)
    return np.where(sizes[codes] > 1, s, 0.0)


def silhouette_score(X: Any, labels: ArrayLike, *, n_jobs: int | None = None) -> float:
    """Return the average silhouette width, the mean over all rows.

    >>> round(silhouette_score([[0.0], [1.0], [10.0]], [0, 0, 1]), 3)
    0.596
    """
    return float(silhouette_samples(X, labels, n_jobs=n_jobs).mean())

"""The silhouette of each row: how much nearer it is to its own cluster than to the next one.

    s(i) = (b - a) / max(a, b),  a the mean distance to the other rows of the own cluster, b the least mean distance to
    a cluster it is not in; 0 for a row alone in its cluster, and where a = b = 0.

Rows are sorted by cluster and cut into stretches. A pair of stretches is one tile of n^2 / 2 distances, from a matrix
product; each distance is added to the sums of both its rows at once, and none is kept.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.metrics._geometry import read
from assay.scan import thread_map

_STRETCH = 384  # rows: a tile of doubles stays in the second cache


def silhouette_samples(X: Any, labels: ArrayLike, *, n_jobs: int | None = None) -> np.ndarray:
    """Return the silhouette of each row, in [-1, 1]; Euclidean distances.

    >>> silhouette_samples([[0.0], [1.0], [10.0]], [0, 0, 1]).round(3)
    array([0.9  , 0.889, 0.   ])
    """
    X, names, codes = read(X, labels)
    k, n = len(names), len(X)
    if not 2 <= k < n:
        raise ValueError(f"silhouette: the number of clusters must be from 2 to n - 1 = {n - 1}; the labels name {k}.")
    order = np.argsort(codes, kind="stable")
    sums, sizes = np.empty((n, k)), np.bincount(codes)
    sums[order] = _sums_to_clusters(X[order] - X.mean(axis=0), codes[order], k, n_jobs)
    own = (np.arange(n), codes)
    a = sums[own] / np.maximum(sizes[codes] - 1, 1)
    sums /= sizes
    sums[own] = np.inf
    b = sums.min(axis=1)
    most = np.maximum(a, b)
    s = np.divide(b - a, most, out=np.zeros(n), where=most > 0)
    return np.where(sizes[codes] > 1, s, 0.0)


class _Stretch(NamedTuple):
    """Rows of one side of a tile: which they are, the first cluster among them, and where each of theirs begins."""

    rows: slice
    first: int
    starts: np.ndarray
    piece: np.ndarray


def _stretch(codes: np.ndarray, start: int) -> _Stretch:
    own = codes[start : start + _STRETCH]
    first = int(own[0])
    starts = np.searchsorted(own, np.arange(first, int(own[-1]) + 2))
    return _Stretch(slice(start, start + len(own)), first, starts, own - first)


def _sums_to_clusters(X: np.ndarray, codes: np.ndarray, k: int, n_jobs: int | None) -> np.ndarray:
    """Return the sum of the distances of each row to the rows of each cluster, (n, k); rows are sorted by cluster."""
    from assay.metrics._silhouette_loop import add_tile

    n, length = len(X), np.einsum("ij,ij->i", X, X)
    stretches = [_stretch(codes, start) for start in range(0, n, _STRETCH)]

    def from_here(at: int) -> tuple[np.ndarray, np.ndarray]:
        left = stretches[at]
        to_rows = np.zeros((len(left.piece), k))
        later, room = [], np.empty(_STRETCH * _STRETCH)  # fresh pages for each tile would cost more than its products
        for right in stretches[at:]:
            shape = len(left.piece), len(right.piece)
            products = np.matmul(X[left.rows], X[right.rows].T, out=room[: shape[0] * shape[1]].reshape(shape))
            if right is left:
                np.fill_diagonal(products, length[left.rows])  # a row is at distance 0 from itself
            to_columns = np.zeros((len(left.starts) - 1, products.shape[1]))
            add_tile(
                products,
                length[left.rows],
                length[right.rows],
                left.piece,
                right.starts,
                right.first,
                to_rows,
                to_columns,
            )
            later.append(to_columns)
        return to_rows, np.concatenate([later[0][:, :0], *later[1:]], axis=1).T

    sums = np.zeros((n, k))
    for left, (to_rows, to_columns) in zip(stretches, thread_map(from_here, range(len(stretches)), n_jobs=n_jobs)):
        sums[left.rows] += to_rows
        sums[left.rows.stop :, left.first : left.first + to_columns.shape[1]] += to_columns
    return sums


def silhouette_score(X: Any, labels: ArrayLike, *, n_jobs: int | None = None) -> float:
    """Return the average silhouette width, the mean over all rows.

    >>> round(silhouette_score([[0.0], [1.0], [10.0]], [0, 0, 1]), 3)
    0.596
    """
    return float(silhouette_samples(X, labels, n_jobs=n_jobs).mean())

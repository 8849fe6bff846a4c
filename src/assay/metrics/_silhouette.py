"""The silhouette of each row: how much nearer it is to its own cluster than to the next one.

    s(i) = (b - a) / max(a, b),  a the mean distance to the other rows of the own cluster, b the least mean distance to
    a cluster it is not in; 0 for a row alone in its cluster, and where a = b = 0.

Rows are sorted by cluster and cut into stretches. A pair of stretches is one tile of n^2 / 2 distances, from a matrix
product; each distance is added to the sums of both its rows at once, and none is kept. Other distances are made a
stretch of rows at a time.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_X_y

from assay.scan import thread_map

_STRETCH = 384  # rows: a tile of doubles stays in the second cache
_DISTANCES = 2**23  # of one stretch against all rows


def silhouette_samples(
    X: Any,
    labels: ArrayLike,
    *,
    metric: str | Callable[..., float] = "euclidean",
    n_jobs: int | None = None,
    **kwds: Any,
) -> np.ndarray:
    """Return the silhouette of each row, in [-1, 1].

    Parameters
    ----------
    X : (n, d), or (n, n) distances; dense or sparse
    labels : (n,)
    metric : str or function of two rows
        A name that `sklearn.metrics.pairwise_distances` knows, or "precomputed": X holds the distances, with zeros on
        its diagonal.
    n_jobs : int or None
        Threads; None uses all cores.
    **kwds
        Parameters of the metric.

    >>> silhouette_samples([[0.0], [1.0], [10.0]], [0, 0, 1]).round(3)
    array([0.9  , 0.889, 0.   ])
    """
    X, own_labels = check_X_y(X, labels, accept_sparse="csr")
    names, codes = np.unique(own_labels, return_inverse=True)
    k, n = len(names), X.shape[0]
    if not 2 <= k < n:
        raise ValueError(
            f"silhouette: Number of labels is {k}. Valid values are 2 to n_samples - 1 (inclusive), here {n - 1}."
        )
    sizes, own = np.bincount(codes), (np.arange(n), codes)
    if metric == "euclidean" and not kwds and not issparse(X):
        order, sums = np.argsort(codes, kind="stable"), np.empty((n, k))
        X = X.astype(np.float64, copy=False)
        sums[order] = _sums_to_clusters(X[order] - X.mean(axis=0), codes[order], k, n_jobs)
    else:
        sums = _sums_of_distances(X, codes, k, metric, kwds, n_jobs)
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


def _sums_of_distances(
    X: Any, codes: np.ndarray, k: int, metric: Any, kwds: dict[str, Any], n_jobs: int | None
) -> np.ndarray:
    """Return the sum of the distances of each row to the rows of each cluster, (n, k), for any metric."""
    n = len(codes)
    member = csr_array((np.ones(n), (np.arange(n), codes)), shape=(n, k))
    if metric == "precomputed":
        if X.shape != (n, n):
            raise ValueError(f"silhouette: the precomputed distances must be ({n}, {n}); got {X.shape}.")
        allowed = 100 * np.finfo(X.dtype).eps if X.dtype.kind == "f" else 0.0
        if np.any(np.abs(X.diagonal()) > allowed):
            raise ValueError(
                "silhouette: the precomputed distance matrix contains non-zero elements on the diagonal; a row is at "
                "distance 0 from itself. Use np.fill_diagonal(X, 0)."
            )
        sums = X @ member
        return sums.toarray() if issparse(sums) else np.asarray(sums, dtype=np.float64)
    X = X.astype(np.float64) if X.dtype == np.float32 else X
    stretch = max(1, _DISTANCES // n)

    def from_here(start: int) -> np.ndarray:
        apart = pairwise_distances(X[start : start + stretch], X, metric=metric, **kwds)
        rows = np.arange(len(apart))
        apart[rows, start + rows] = 0.0  # a row is at distance 0 from itself
        return apart @ member

    return np.concatenate(thread_map(from_here, range(0, n, stretch), n_jobs=n_jobs))


def silhouette_score(
    X: Any,
    labels: ArrayLike,
    *,
    metric: str | Callable[..., float] = "euclidean",
    sample_size: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    **kwds: Any,
) -> float:
    """Return the average silhouette width, the mean over all rows, or over `sample_size` rows drawn by `random_state`
    and their distances to each other; the other parameters are those of `silhouette_samples`.

    >>> round(silhouette_score([[0.0], [1.0], [10.0]], [0, 0, 1]), 3)
    0.596
    """
    if sample_size is not None:
        rows, known = check_X_y(X, labels, accept_sparse=["csc", "csr"])
        drawn = check_random_state(random_state).permutation(rows.shape[0])[:sample_size]
        X, labels = (rows[drawn][:, drawn] if metric == "precomputed" else rows[drawn]), known[drawn]
    return float(silhouette_samples(X, labels, metric=metric, n_jobs=n_jobs, **kwds).mean())

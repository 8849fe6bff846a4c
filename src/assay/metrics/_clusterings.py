"""Scores of clusterings: by sizes of clusters and Euclidean distances between them, against another partition of the
same rows, pair by pair, and by silhouettes; and of maps, by how well they keep near what is near.

avg(C)   mean distance of two rows of C (0 for one row)      diam(C)  the largest
d_min(C, D)  the smallest distance of a row of C and a row of D      d_cen(C, D)  the distance of their means

The silhouette of a row is how much nearer it is to its own cluster than to the next one.

    s(i) = (b - a) / max(a, b),  a the mean distance to the other rows of the own cluster, b the least mean distance to
    a cluster it is not in; 0 for a row alone in its cluster, and where a = b = 0.

Rows are sorted by cluster and cut into stretches. A pair of stretches is one tile of n^2 / 2 distances, from a matrix
product; each distance is added to the sums of both its rows at once, and none is kept. Other distances are made a
stretch of rows at a time.

Scores of classifiers on hold-out rows have limits that hold for new data. Of the m_k rows that are predicted as class
k, and of the n_k rows of class k, c_k are correct:

    precision  P_k = c_k / m_k        recall  R_k = c_k / n_k        F1_k = 2 / (1 / P_k + 1 / R_k)

Given m_k, c_k is binomial with the precision on new data, and given n_k with the recall there, so that both have the
limits of Clopper and Pearson, and F1, which grows with both, has limits that follow. All hold simultaneously with
probability 1 - delta: each of the 4 K ends fails with probability at most delta / (4 K).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from scipy.spatial.distance import cdist, pdist
from scipy.stats import spearmanr
from sklearn.metrics import pairwise_distances
from sklearn.metrics.cluster import pair_confusion_matrix
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import check_X_y, column_or_1d

from assay.scan import thread_map
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper

_BLOCK = 1024  # rows whose distances to all others are held at once
_STRETCH = 384  # rows: a tile of doubles stays in the second cache
_DISTANCES = 2**23  # of one stretch against all rows


class ClusterGeometry(NamedTuple):
    """For k clusters, in the order of their sorted labels.

    Parameters
    ----------
    labels : ndarray
        Labels of the clusters, (k,).
    sizes : ndarray
        Number of rows, (k,).
    means : ndarray
        Means, (k, d).
    avg : ndarray
        Mean distance of two rows, (k,).
    diam : ndarray
        Largest distance of two rows, (k,).
    to_mean : ndarray
        Mean distance of a row to the mean, (k,).
    d_min : ndarray
        Smallest distance of rows of two clusters, (k, k).
    d_cen : ndarray
        Distance of the means, (k, k).
    """

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

    Parameters
    ----------
    X : array-like
        Rows.
    labels : array-like
        Cluster of each row.
    n_jobs : int or None
        Number of threads. The result does not depend on it.

    Returns
    -------
    ClusterGeometry
        Sizes and distances.

    Examples
    --------
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
    differ. Clusters with rows apart and one mean are not told apart at all: the index is infinite (scikit-learn leaves
    such pairs out). Clusters that are the same single point have no ratio, and their pair is left out.

    Parameters
    ----------
    X : array-like
        Rows.
    labels : array-like
        Cluster of each row.
    spread : str, default="pairs"
        "pairs": mean distance of two rows; "centroid": mean distance to the mean.
    n_jobs : int or None
        Number of threads. The result does not depend on it.

    Returns
    -------
    float
        The index.

    Examples
    --------
    >>> float(davies_bouldin([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]))
    0.4
    """
    if spread not in ("pairs", "centroid"):
        raise ValueError(f"davies_bouldin: spread must be 'pairs' or 'centroid'; got {spread!r}.")
    result = _two_or_more(cluster_geometry(X, labels, n_jobs=n_jobs), "davies_bouldin")
    s = result.avg if spread == "pairs" else result.to_mean
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (s[:, None] + s[None, :]) / result.d_cen
    ratio[np.isnan(ratio)] = 0.0
    return float(ratio.max(axis=1, where=~np.eye(len(s), dtype=bool), initial=0.0).mean())


def dunn(X: Any, labels: ArrayLike, *, n_jobs: int | None = None) -> float:
    """Return the smallest distance between clusters over the largest diameter; larger is better.

    Parameters
    ----------
    X : array-like
        Rows.
    labels : array-like
        Cluster of each row.
    n_jobs : int or None
        Number of threads. The result does not depend on it.

    Returns
    -------
    float
        The index.

    Examples
    --------
    >>> float(dunn([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]))
    4.0
    """
    result = _two_or_more(cluster_geometry(X, labels, n_jobs=n_jobs), "dunn")
    if result.diam.max() == 0:
        raise ValueError(
            "dunn: every cluster is a single point, so the largest diameter is 0 and the index is not defined."
        )
    between = result.d_min[~np.eye(len(result.sizes), dtype=bool)]
    return float(between.min() / result.diam.max())


def _two_or_more(result: ClusterGeometry, name: str) -> ClusterGeometry:
    if len(result.sizes) < 2:
        raise ValueError(f"{name}: needs at least 2 clusters; the labels name one.")
    return result


def mean_similarities(X: Any, labels: ArrayLike, *, n_jobs: int | None = None) -> tuple[float, float]:
    """Return the mean of 1 / (1 + distance) over pairs of rows inside clusters, and over pairs of different clusters.

    Parameters
    ----------
    X : array-like
        Rows.
    labels : array-like
        Cluster of each row.
    n_jobs : int or None
        Number of threads. The result does not depend on it.

    Returns
    -------
    tuple of float
        Mean inside clusters, and between them.

    Examples
    --------
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

    Parameters
    ----------
    X : array-like
        Rows.
    labels : array-like
        Cluster of each row.
    per_column : bool, default=True
        Whether the sum is divided by the number of columns.

    Returns
    -------
    float
        The root mean square.

    Examples
    --------
    >>> rmsstd([[0.0, 0.0], [2.0, 0.0], [10.0, 0.0]], [0, 0, 1])
    1.0
    """
    X, names, codes = read(X, labels)
    n, k = len(X), len(names)
    if n <= k:
        raise ValueError(f"rmsstd: needs more rows than clusters (n - k divides); got {n} rows in {k} clusters.")
    means = np.array([np.bincount(codes, weights=column) for column in X.T]).T / np.bincount(codes)[:, None]
    return float(np.sqrt(np.sum((X - means[codes]) ** 2) / ((X.shape[1] if per_column else 1) * (n - k))))


class PairCounts(NamedTuple):
    """Pairs of rows that are together in both partitions, in the first alone, in the second alone, in neither.

    Parameters
    ----------
    both : int
        Pairs together in both.
    first : int
        Pairs together in the first alone.
    second : int
        Pairs together in the second alone.
    neither : int
        Pairs together in neither.
    """

    both: int
    first: int
    second: int
    neither: int


def pair_counts(first: ArrayLike, second: ArrayLike) -> PairCounts:
    """Return how many of the n (n - 1) / 2 pairs of rows are together in which partition; labels are only names.

    Parameters
    ----------
    first, second : array-like
        The two partitions: a label for each row.

    Returns
    -------
    PairCounts
        Numbers of pairs.

    Examples
    --------
    >>> pair_counts([0, 0, 1, 1], [0, 0, 0, 1])
    PairCounts(both=1, first=1, second=2, neither=2)
    """
    (neither, second_alone), (first_alone, both) = (pair_confusion_matrix(first, second) // 2).tolist()
    return PairCounts(both, first_alone, second_alone, neither)


def jaccard(first: ArrayLike, second: ArrayLike) -> float:
    """Return the Jaccard coefficient a / (a + b + c): of the pairs together in one partition, the share together in
    both.

    It is 1 for equal partitions, also when no two rows are together in either.

    Parameters
    ----------
    first, second : array-like
        The two partitions: a label for each row.

    Returns
    -------
    float
        The coefficient.

    Examples
    --------
    >>> jaccard([0, 0, 1, 1], ["x", "x", "x", "y"])
    0.25
    """
    counts = pair_counts(first, second)
    together = counts.both + counts.first + counts.second
    return counts.both / together if together else 1.0


def fowlkes_mallows(first: ArrayLike, second: ArrayLike) -> float:
    """Return the Fowlkes-Mallows index sqrt(a / (a + b) * a / (a + c)); 0 when no pair is together in both.

    Parameters
    ----------
    first, second : array-like
        The two partitions: a label for each row.

    Returns
    -------
    float
        The index.

    Examples
    --------
    >>> round(fowlkes_mallows([0, 0, 1, 1], [0, 0, 0, 1]), 6)
    0.408248
    """
    a, b, c, _ = pair_counts(first, second)
    return math.sqrt(a / (a + b) * (a / (a + c))) if a else 0.0


def rand_index(first: ArrayLike, second: ArrayLike) -> float:
    """Return the Rand index 2 (a + d) / (n (n - 1)), the share of pairs on which the partitions agree; 1 for one row.

    Parameters
    ----------
    first, second : array-like
        The two partitions: a label for each row.

    Returns
    -------
    float
        The index.

    Examples
    --------
    >>> rand_index([0, 0, 1, 1], [0, 0, 0, 1])
    0.5
    """
    counts = pair_counts(first, second)
    return (counts.both + counts.neither) / sum(counts) if sum(counts) else 1.0


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
    X : array-like of shape (n, d), or (n, n)
        Rows, dense or sparse, or distances.
    labels : array-like of shape (n,)
        Cluster of each row.
    metric : str or function of two rows
        A name that `sklearn.metrics.pairwise_distances` knows, or "precomputed": X holds the distances, with zeros on
        its diagonal.
    n_jobs : int or None
        Threads; None uses all cores.
    **kwds
        Parameters of the metric.

    Returns
    -------
    ndarray
        Silhouette of each row.

    Examples
    --------
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

    Parameters
    ----------
    X : array-like
        Rows.
    labels : array-like
        Cluster of each row.
    metric : str or callable, default="euclidean"
        As of `silhouette_samples`.
    sample_size : int or None
        Number of rows drawn; None: all.
    random_state : int, RandomState or None
        Seed of the choice of rows.
    n_jobs : int or None
        Number of threads. The result does not depend on it.
    **kwds : object
        Further parameters of the metric.

    Returns
    -------
    float
        The mean.

    Examples
    --------
    >>> round(silhouette_score([[0.0], [1.0], [10.0]], [0, 0, 1]), 3)
    0.596
    """
    if sample_size is not None:
        rows, known = check_X_y(X, labels, accept_sparse=["csc", "csr"])
        drawn = check_random_state(random_state).permutation(rows.shape[0])[:sample_size]
        X, labels = (rows[drawn][:, drawn] if metric == "precomputed" else rows[drawn]), known[drawn]
    return float(silhouette_samples(X, labels, metric=metric, n_jobs=n_jobs, **kwds).mean())


def distance_correlation(X: Any, Z: Any, *, max_rows: int = 1000, random_state: Any = 0) -> float:
    """Return Spearman's rank correlation of the distances between rows of X with those between the same rows of Z.

    1: pairs that are farther apart in X are farther apart in Z too; 0: Z tells nothing of it. Of more than `max_rows`
    rows so many are drawn.

    Parameters
    ----------
    X : array-like
        Rows.
    Z : array-like
        The same rows, in other columns.
    max_rows : int, default=1000
        Largest number of rows that is looked at.
    random_state : int, RandomState or None, default=0
        Seed of the choice of rows.

    Returns
    -------
    float
        The correlation.

    Examples
    --------
    >>> distance_correlation([[0.0], [1.0], [3.0]], [[0.0, 0.0], [0.0, 2.0], [0.0, 6.0]])
    1.0
    """
    X, Z = (check_array(part, dtype=np.float64, ensure_min_samples=3) for part in (X, Z))
    check_consistent_length(X, Z)
    if len(X) > max_rows:
        drawn = np.sort(check_random_state(random_state).choice(len(X), max_rows, replace=False))
        X, Z = X[drawn], Z[drawn]
    before, after = pdist(X), pdist(Z)
    if np.ptp(before) == 0 or np.ptp(after) == 0:
        raise ValueError("distance_correlation: all distances of X, or of Z, are equal, so that they have no order.")
    return float(spearmanr(before, after).statistic)


class Limited(NamedTuple):
    """A share that was counted, and limits of the one on new data; NaN, 0 and 1 if there is no row to count.

    Parameters
    ----------
    value : float
        The share.
    low : float
        Lower limit of that on new data.
    high : float
        Upper limit.
    """

    value: float
    low: float
    high: float


class ClassScore(NamedTuple):
    """What is known of one class: how many rows it has, how many are said to be of it, and its scores.

    Parameters
    ----------
    label : object
        The class.
    rows : int
        Number of rows that are of it.
    said : int
        Number of rows that are said to be of it.
    precision : Limited
        Share of the rows said to be of it that are.
    recall : Limited
        Share of its rows that are said to be.
    f1 : Limited
        Harmonic mean of both.
    """

    label: Any
    rows: int
    said: int
    precision: Limited
    recall: Limited
    f1: Limited


def class_scores(y: Any, said: Any, delta: float = 0.05) -> list[ClassScore]:
    """Return precision, recall and F1 of each class, with limits that all hold at once for new data.

    `y` are the true labels of independent rows that had no part in fitting or choosing the classifier, and `said` what
    it says of them. Labels that are neither said nor true have no place.

    Parameters
    ----------
    y : array-like
        True labels.
    said : array-like
        Predicted labels.
    delta : float, default=0.05
        Probability with which some limit may fail.

    Returns
    -------
    list of ClassScore
        The scores of each class.

    Examples
    --------
    >>> found = class_scores(["cat", "cat", "dog", "dog"], ["cat", "dog", "dog", "dog"])
    >>> [(one.label, one.precision.value, one.recall.value) for one in found]
    [('cat', 1.0, 0.5), ('dog', 0.6666666666666666, 1.0)]
    >>> found[0].precision.low < 0.1 < 1.0 == found[0].precision.high
    True
    """
    true, told = np.asarray(y), np.asarray(said)
    if true.shape != told.shape or true.ndim != 1 or not len(true):
        raise ValueError(f"class_scores: needs one label and one answer for each row; got {true.shape}, {told.shape}.")
    labels = np.unique(np.concatenate([true, told]))
    each, results = delta / (4 * len(labels)), []
    for label in labels.tolist():
        own, claimed = true == label, told == label
        right = int(np.sum(own & claimed))
        precision, recall = (_limited(right, int(part.sum()), each) for part in (claimed, own))
        f1 = Limited(*(_f1(p, r) for p, r in zip(precision, recall)))
        results.append(ClassScore(label, int(own.sum()), int(claimed.sum()), precision, recall, f1))
    return results


def _limited(right: int, rows: int, delta: float) -> Limited:
    if not rows:
        return Limited(np.nan, 0.0, 1.0)
    return Limited(right / rows, clopper_pearson_lower(right, rows, delta), clopper_pearson_upper(right, rows, delta))


def _f1(precision: float, recall: float) -> float:
    """Return F1, 0 where either is 0 or nothing was counted, as scikit-learn has it."""
    return 2 / (1 / precision + 1 / recall) if precision > 0 and recall > 0 else 0.0

"""Scatter matrices of labelled rows, and what Fisher's criterion makes of them.

    S_w = sum_k sum_{x in class k} (x - mu_k)(x - mu_k)^T        within classes
    S_b = sum_k n_k (mu_k - mu)(mu_k - mu)^T                     between classes
    S_t = S_w + S_b                                              of all rows

One pass over the rows gives all three. A scatter matrix is the number of rows times a covariance; the two readings
of Fisher's criterion differ unless the classes have equally many rows, so each function says which one it takes.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, pinvh

from assay.data.blocks import Block
from assay.scan import Rows, rows

_CANCELLED = 1e-6  # share of a column's scatter that lies within classes, below which means are taken out row by row
_FEW_CLASSES = 9  # up to here class sums ride along with the second moments


class ClassSums(NamedTuple):
    """Rows per class (K,), class means (K, d) and the scatter within each class (K, d, d) or pooled (1, d,
    d)."""

    counts: np.ndarray
    means: np.ndarray
    within: np.ndarray


class Scatter(NamedTuple):
    """Scatter within classes, between them, and of all rows, each (d, d)."""

    within: np.ndarray
    between: np.ndarray
    total: np.ndarray


def scatter_matrices(X: Any, y: Any) -> Scatter:
    """Return S_w, S_b and S_t of rows X with labels y.

    >>> S = scatter_matrices([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    >>> [matrix.item() for matrix in map(np.round, S)]
    [4.0, 100.0, 104.0]
    """
    source = rows(np.asarray(X, dtype=np.float64), np.asarray(y))
    classes = source.labels()
    sums = class_sums(source.encoded(classes), len(classes))
    mean = sums.counts @ sums.means / sums.counts.sum()
    apart = np.sqrt(sums.counts)[:, None] * (sums.means - mean)
    within, between = sums.within[0], apart.T @ apart
    return Scatter(within, between, within + between)


def between_two_classes(X: Any, y: Any) -> np.ndarray:
    """Return (mu_0 - mu_1)(mu_0 - mu_1)^T of two classes, (d, d), of rank 1: the scatter between classes of Fisher's
    criterion. That of `scatter_matrices` is n_0 n_1 / n times it.

    >>> between_two_classes([[0.0, 0.0], [2.0, 2.0], [1.0, 3.0]], [0, 0, 1]).tolist()
    [[0.0, -0.0], [-0.0, 4.0]]
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    classes = np.unique(y)
    if X.ndim != 2 or len(X) != len(y) or len(classes) != 2:
        raise ValueError(f"between_two_classes: needs rows of two classes; got {X.shape} and {len(classes)} classes.")
    apart = X[y == classes[0]].mean(axis=0) - X[y == classes[1]].mean(axis=0)
    return np.outer(apart, apart)


def fisher_ratio(w: Any, between: np.ndarray, within: np.ndarray) -> float:
    """Return J(w) = (w^T S_b w) / (w^T S_w w), which does not change with the length of w.

    >>> fisher_ratio([2.0], np.array([[9.0]]), np.array([[3.0]]))
    3.0
    """
    w = np.asarray(w, dtype=np.float64)
    return float(w @ between @ w) / float(w @ within @ w)


def fisher_direction(within: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """Return w = S_w^+ (mu_1 - mu_0), the direction of the largest Fisher ratio of two classes.

    S_w^+ is the inverse, or for a singular matrix the pseudo-inverse from its spectral decomposition.
    """
    return pinvh(within) @ np.asarray(difference, dtype=np.float64)


class TraceRatio(NamedTuple):
    """Orthonormal directions (d, k), the trace ratio they reach, and the ratio at each iteration."""

    directions: np.ndarray
    ratio: float
    history: list[float]


def trace_ratio(
    between: np.ndarray, within: np.ndarray, k: int, *, tol: float = 1e-12, max_iter: int = 200
) -> TraceRatio:
    """Maximise tr(W^T S_b W) / tr(W^T S_w W) over W (d, k) with orthonormal columns.

    W holds the k leading eigenvectors of S_b - lambda S_w, with lambda the ratio reached before; lambda
    never falls and
    its fixed point is the maximum (Wang et al. 2007). The eigenvectors of S_w^-1 S_b maximise another
    criterion,
    tr((W^T S_w W)^-1 W^T S_b W).
    """
    ratio, history = 0.0, []
    directions = np.eye(len(within))[:, :k]
    for _ in range(max_iter):
        directions = eigh(between - ratio * within)[1][:, ::-1][:, :k]
        before = ratio
        ratio = float(np.trace(directions.T @ between @ directions) / np.trace(directions.T @ within @ directions))
        history.append(ratio)
        if abs(ratio - before) <= tol * abs(ratio):
            break
    return TraceRatio(directions, ratio, history)


# Sums over rows -----------------------------------------------------------------------------------


def class_sums(source: Rows, n_classes: int, *, apart: bool = False) -> ClassSums:
    """Return counts, means and scatter of rows whose y holds class positions; `apart` keeps each class's
    scatter.

    Pooled scatter takes one pass: total second moments minus those of the class means. Where that
    subtraction would
    cancel most digits of a column, a second pass takes the class means out of the rows first.
    """
    pilot = next(iter(source.blocks())).X.mean(axis=0)
    counts, sums, moments = source.sum(_pooled, pilot, n_classes)
    shift = sums / np.maximum(counts, 1)[:, None]
    means = pilot + shift
    if apart:
        return ClassSums(counts, means, source.sum(_centred, means, True))
    offsets = np.sqrt(counts)[:, None] * shift
    within = moments - offsets.T @ offsets
    if (np.diag(within) < _CANCELLED * np.diag(moments)).any():
        return ClassSums(counts, means, source.sum(_centred, means, False))
    return ClassSums(counts, means, within[None])


def _pooled(block: Block, pilot: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows per class, sums of x - pilot per class, and second moments of x - pilot."""
    from assay.loops.moments import moments

    d = block.X.shape[1]
    member = np.zeros((len(block.X), n_classes))
    member[np.arange(len(member)), block.y] = 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        if n_classes > _FEW_CLASSES:
            return (
                member.sum(axis=0),
                member.T @ (block.X - pilot),
                moments(block.X, member[:, :0], None, pilot)[:d, :d],
            )
        M = moments(block.X, member[:, 1:].copy(), None, pilot)
    counts, sums = np.append(0.0, M[d, d + 1 :]), np.vstack([np.zeros(d), M[d + 1 :, :d]])
    counts[0], sums[0] = M[d, d] - counts.sum(), M[d, :d] - sums.sum(axis=0)
    return counts, sums, M[:d, :d]


def _centred(block: Block, means: np.ndarray, apart: bool) -> np.ndarray:
    """Return the scatter about the class means: one matrix per class, or their sum."""
    from assay.loops.moments import moments

    d = block.X.shape[1]
    if not apart:
        return moments(block.X - means[block.y], np.empty((len(block.X), 0)), None, np.zeros(d))[None, :d, :d]
    out = np.zeros((len(means), d, d))
    for k in np.unique(block.y):
        own = np.ascontiguousarray(block.X[block.y == k])
        out[k] = moments(own, np.empty((len(own), 0)), None, means[k])[:d, :d]
    return out


def fourth_powers(block: Block, means: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return for each class the sum of |z|^4 over its rows, z = (x - mean) / scale."""
    z = (block.X - means[block.y]) / scale[block.y]
    return np.bincount(block.y, weights=np.einsum("ij,ij->i", z, z) ** 2, minlength=len(means))

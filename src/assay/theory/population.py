"""Risk on new rows of what is learnt without labels: the squared distance to the nearest of k centres, or to a flat.

Rows are independent and lie in the ball of radius R about the origin, |x| <= R, R fixed in advance; never the longest
row that was seen. Both bounds hold for every choice of centres (in the ball) or directions at once, so that the ones
fitted to the rows may be put in. Each is

    mean distance on the rows + 2 complexity + 3 range sqrt(ln(1/delta) / (2n)),

the one-step Rademacher bound (`rademacher.loss_bound`) for losses in [0, range].

k centres. min_j |x - c_j|^2 - |x|^2 = min_j (|c_j|^2 - 2 <x, c_j>), and |x|^2 is the same for all centres. With
random signs s_i, E sup_{|c| <= R} sum s_i (|c|^2 - 2 <x_i, c>) <= R^2 E max(0, sum s_i) + 2 R E |sum s_i x_i| <= R^2
sqrt(n) / 2 + 2 R sqrt(sum |x_i|^2). Since min(a, b) = (a + b - |a - b|) / 2 and |.| contracts, the minimum over k
classes has at most the sum of their complexities: k (2 R sqrt(sum |x|^2) / n + R^2 / (2 sqrt n)). Distances are at
most 4 R^2.

A flat. With P the projection on k directions, |x - P x|^2 = |x|^2 - <P, x x'>, and for A = sum s_i x_i x_i' / n,
sup_P <P, A> <= sqrt(k) |A|_F, whose mean is at most sqrt(k sum |x|^4) / n. The projection I - P on d - k directions
gives the same with d - k, trace A having mean 0. Distances are at most R^2.

A flat whose point m is fitted too (PCA: the mean, which lies in the ball). With Q = I - P and b = Q m, |b| <= R, |Q
(x - m)|^2 = <Q, x x'> - 2 <x, b> + |b|^2: the complexities of a flat and of one centre add. Distances are at most 4
R^2.

Compare Biau, Devroye and Lugosi 2008; Shawe-Taylor, Williams, Cristianini and Kandola 2005.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from assay.theory import _checks as check


def kmeans_bound(X: ArrayLike, cost: float, k: int, radius: float, delta: float) -> float:
    """Return the bound of E min_j |x - c_j|^2 from its mean `cost` over the rows X, for all such centres.

    cost + 2k (2R sqrt(sum |x_i|^2)/n + R^2/(2 sqrt(n))) + 12 R^2 sqrt(ln(1/delta)/(2n)); at most 4R^2.
    """
    squares, most = _squares(X, radius), 4.0 * radius * radius
    cost = check.number("cost", cost, low=0.0, high=most)
    bound = clustering_bound(cost, math.fsum(squares), squares.size, check.whole("k", k), radius, delta)
    return min(most, bound)


def subspace_bound(X: ArrayLike, cost: float, k: int, radius: float, delta: float) -> float:
    """Return the bound of E |x - Px|^2 from its mean `cost` over the rows X, for all projections P of rank k.

    cost + 2 sqrt(min(k, d-k) sum |x_i|^4)/n + 3 R^2 sqrt(ln(1/delta)/(2n)); at most R^2.
    """
    squares, d = _squares(X, radius), np.asarray(X).shape[1]
    if check.whole("k", k, low=0) > d:
        raise ValueError(f"k must be at most the number of features {d}; got {k}.")
    cost = check.number("cost", cost, low=0.0, high=radius * radius)
    sums = (math.fsum(squares), math.fsum(squares * squares))
    return min(radius * radius, projection_bound(cost, *sums, squares.size, k, d, radius, delta, fitted=False))


def _squares(X: ArrayLike, radius: float) -> np.ndarray:
    check.positive("radius", radius)
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(f"X must be a non-empty two-dimensional array; got shape {rows.shape}.")
    squares = (rows * rows).sum(axis=1)
    if not np.all(squares <= radius * radius * (1.0 + 1e-12)):
        raise ValueError(f"row {int(np.argmax(squares))} has a norm above the promised radius {radius:g}.")
    return squares


def clustering_bound(mean: float, squares: float, n: int, k: int, radius: float, delta: float) -> float:
    """Return the bound for k centres; `mean` is the mean distance of the n rows, `squares` the sum of |x|^2.

    >>> round(clustering_bound(0.1, 3_000.0, 10_000, 3, 1.0, 0.05), 3)
    0.343
    """
    R = check.positive("radius", radius, why="rows lie in a ball of that radius")
    complexity = k * (2 * R * math.sqrt(squares) / n + R * R / (2 * math.sqrt(n)))
    return check.enlarge(mean + 2 * complexity + _deviation(4 * R * R, n, delta))


def projection_bound(
    mean: float, squares: float, fourth: float, n: int, k: int, d: int, radius: float, delta: float, *, fitted: bool
) -> float:
    """Return the bound for a flat of k dimensions in d; `fourth` is the sum of |x|^4, `fitted` if its point is too.

    >>> round(projection_bound(0.1, 3_000.0, 2_000.0, 10_000, 2, 20, 1.0, 0.05, fitted=False), 3)
    0.149
    """
    R = check.positive("radius", radius, why="rows lie in a ball of that radius")
    complexity = math.sqrt(min(k, d - k) * fourth) / n
    if fitted:
        complexity += 2 * R * math.sqrt(squares) / n + R * R / (2 * math.sqrt(n))
    return check.enlarge(mean + 2 * complexity + _deviation((4 if fitted else 1) * R * R, n, delta))


def _deviation(most: float, n: int, delta: float) -> float:
    return 3 * most * math.sqrt(-math.log(check.failure(delta)) / (2 * n))

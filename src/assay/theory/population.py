"""Risk on new rows of what is learnt without labels: k-means centres and principal subspaces.

Both are one-step Rademacher bounds for all centres or subspaces at once, given |x| <= R for every possible
row. The centre of a principal subspace is fixed in advance (the sample mean would be part of what is
learnt). Compare Biau, Devroye and Lugosi 2008. The minimum of k classes has at most the sum of their
complexities; the projections of rank k have <P, A> <= sqrt(k) |A|_F.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from assay.theory import _checks as check


def _squares(X: ArrayLike, radius: float) -> np.ndarray:
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(f"X must be a non-empty two-dimensional array; got shape {rows.shape}.")
    squares = (rows * rows).sum(axis=1)
    if not np.all(squares <= radius * radius * (1.0 + 1e-12)):
        raise ValueError(f"row {int(np.argmax(squares))} has a norm above the promised radius {radius:g}.")
    return squares


def kmeans_bound(X: ArrayLike, cost: float, k: int, radius: float, delta: float) -> float:
    """Return the bound of E min_j |x - c_j|^2 from its mean `cost` over the rows, for all such centres.

    cost + 2k (2R sqrt(sum |x_i|^2)/n + R^2/sqrt(n)) + 12 R^2 sqrt(ln(1/delta)/(2n)); at most 4R^2.
    """
    radius, k = check.positive("radius", radius), check.whole("k", k)
    squares, most = _squares(X, radius), 4.0 * radius * radius
    n, cost = squares.size, check.number("cost", cost, low=0.0, high=most)
    size = 2.0 * radius * math.sqrt(math.fsum(squares)) / n + radius * radius / math.sqrt(n)
    last = 3.0 * most * math.sqrt(-math.log(check.failure(delta)) / (2.0 * n))
    return min(most, check.enlarge(cost + 2.0 * k * size + last))


def subspace_bound(X: ArrayLike, cost: float, k: int, radius: float, delta: float) -> float:
    """Return the bound of E |x - Px|^2 from its mean `cost` over the rows, for all projections P of rank k.

    cost + 2 sqrt(min(k, d-k) sum |x_i|^4)/n + 3 R^2 sqrt(ln(1/delta)/(2n)); at most R^2.
    """
    radius = check.positive("radius", radius)
    squares, d = _squares(X, radius), np.asarray(X).shape[1]
    if check.whole("k", k, low=0) > d:
        raise ValueError(f"k must be at most the number of features {d}; got {k}.")
    n, cost = squares.size, check.number("cost", cost, low=0.0, high=radius * radius)
    size = math.sqrt(min(k, d - k) * math.fsum(squares * squares)) / n
    last = 3.0 * radius * radius * math.sqrt(-math.log(check.failure(delta)) / (2.0 * n))
    return min(radius * radius, check.enlarge(cost + 2.0 * size + last))

"""The mean squared distance of new rows to the nearest of k centres, or to a flat of k dimensions.

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

from assay.theory import _checks as check


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

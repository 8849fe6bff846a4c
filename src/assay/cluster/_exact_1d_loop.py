"""k-means on a line by dynamic programming, compiled.

With values sorted, clusters are intervals: best(m, j) = min_i best(m - 1, i) + cost(i, j), where cost(i, j) is the sum
of squared distances of values i..j-1 to their mean, from prefix sums. The best i does not fall when j grows (quadrangle
inequality), so that each layer takes n log n steps by halving.
"""

import numpy as np

from assay.jit import compiled


@compiled
def _cost(S0, S1, S2, i, j):
    mass = S0[j] - S0[i]
    if mass <= 0.0:
        return 0.0
    first = S1[j] - S1[i]
    return max(S2[j] - S2[i] - first * first / mass, 0.0)


@compiled
def bucket_optimum(S0: np.ndarray, S1: np.ndarray, S2: np.ndarray, cuttable: np.ndarray, k: int) -> float:
    """Return the least cost of k intervals of buckets, where a bucket that is `cuttable` may be left out between two.

    S0, S1, S2 (buckets + 1,): prefix sums of weight, weight x and weight x^2.
    """
    B = len(cuttable)
    best, begin = np.empty(B + 1), np.empty(B + 1)
    for j in range(B + 1):
        best[j] = _cost(S0, S1, S2, 0, j)
    for _ in range(k - 1):
        for i in range(B + 1):
            begin[i] = min(best[i], best[i - 1]) if i and cuttable[i - 1] else best[i]
        for j in range(B + 1):
            least = np.inf
            for i in range(j + 1):
                if begin[i] < least:
                    least = min(least, begin[i] + _cost(S0, S1, S2, i, j))
            best[j] = least
    return best[B]


@compiled
def line_borders(S0: np.ndarray, S1: np.ndarray, S2: np.ndarray, k: int) -> np.ndarray:
    """Return borders (k + 1,), from 0 to n, of the k intervals of least cost."""
    n = len(S0) - 1
    before, best = np.empty(n + 1), np.empty(n + 1)
    choice = np.zeros((k, n + 1), np.int32)
    for j in range(n + 1):
        best[j] = _cost(S0, S1, S2, 0, j)
    stack = np.empty((2 * 64 + 2, 4), np.int64)
    for m in range(1, k):
        before[:] = best
        stack[0] = 0, n, 0, n
        top = 1
        while top:
            top -= 1
            left, right, low, high = stack[top]
            j = (left + right) // 2
            least, at = np.inf, low
            for i in range(low, min(high, j) + 1):
                value = before[i] + _cost(S0, S1, S2, i, j)
                if value < least:
                    least, at = value, i
            best[j], choice[m, j] = least, at
            if left < j:
                stack[top] = left, j - 1, low, at
                top += 1
            if j < right:
                stack[top] = j + 1, right, at, high
                top += 1
    borders = np.empty(k + 1, np.int64)
    borders[k] = n
    for m in range(k - 1, 0, -1):
        borders[m] = choice[m, borders[m + 1]]
    borders[0] = 0
    return borders

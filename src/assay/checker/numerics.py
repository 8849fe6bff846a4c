"""Arithmetic whose error is bounded: the checker never trusts a float without saying how wrong it can be.

The model is the standard one: every operation is exact up to a factor 1 + e, |e| <= U. It holds because all
nonzero inputs have magnitudes between SMALLEST and LARGEST (checked where data enter), so that no product of
two of them overflows or loses bits to underflow.
"""

import math
from collections.abc import Sequence

import numpy as np

U = 2.0**-53
"""Unit roundoff of binary64."""
SMALLEST, LARGEST = 1e-150, 1e150
UNDERFLOW = 1e-290
"""More than all underflows of one sum together."""
BATCH = 64
"""Rows summed in one dot product; the rest of a long sum is compensated."""


def gamma(k: int | float) -> float:
    """Return k U / (1 - k U), the relative error of a chain of k roundings."""
    return k * U / (1 - k * U)


def above(value, roundings: int = 8):
    """Return an upper bound of a non-negative quantity computed with that many roundings."""
    return value * (1 + gamma(2 * roundings + 4))


def largest(*values: float) -> float:
    """Return the largest of some numbers, and NaN if one is: `max` would pass over it."""
    return float(np.max(values))


def norm_above(vector: np.ndarray) -> float:
    """Return an upper bound of the Euclidean norm."""
    return above(math.sqrt(float(np.sum(np.square(vector)))), vector.size + 4)


class Sums:
    """Sums over rows, column by column, with an error near U^2 times the sum of magnitudes.

    Each block is split on a grid so coarse that the leading parts add without rounding (Rump's extraction);
    block sums are then added with the rounding of each addition carried along (Knuth's TwoSum).
    """

    def __init__(self, columns: int):
        self._total, self._rest = np.zeros(columns), np.zeros(columns)
        self._magnitude, self._rows, self._adds = 0.0, 0, 0

    def add(self, block: np.ndarray) -> None:
        rows = len(block)
        largest = float(np.max(np.abs(block), initial=0.0))
        if largest == 0.0:
            return
        grid = 2.0 ** (math.frexp(largest)[1] + rows.bit_length() + 1)  # at least 2 * rows * largest
        high = (block + grid) - grid
        for part in (high.sum(axis=0), (block - high).sum(axis=0)):
            total = self._total + part
            virtual = total - self._total
            self._rest += (self._total - (total - virtual)) + (part - virtual)
            self._total = total
        self._magnitude += rows * largest
        self._rows, self._adds = max(self._rows, rows), self._adds + 2

    @property
    def value(self) -> np.ndarray:
        return self._total + self._rest

    @property
    def error(self) -> np.ndarray:
        """Bound of |value - exact sum| per column."""
        slip = 8 * ((self._rows + self._adds) * U) ** 2 * self._magnitude
        return above(np.abs(self.value) * U + slip)


class Products:
    """X^T T summed over blocks, with a bound on the error of each entry."""

    def __init__(self, columns: int, vectors: int):
        self.shape = (vectors, columns)
        self._sums = Sums(vectors * columns)
        self._magnitude = np.zeros(self.shape)

    def add(self, X: np.ndarray, T: np.ndarray, largest: np.ndarray, slack: np.ndarray | float = 0.0) -> None:
        """Add X^T T, where column j of X is at most largest[j] and T is off by at most `slack`, summed per
        vector."""
        whole = len(X) - len(X) % BATCH
        stacked = T[:whole].reshape(-1, BATCH, T.shape[1]).transpose(0, 2, 1)
        parts = np.matmul(stacked, X[:whole].reshape(-1, BATCH, X.shape[1])).reshape(-1, self._magnitude.size)
        if whole < len(X):
            parts = np.concatenate([parts, (T[whole:].T @ X[whole:]).reshape(1, -1)])
        self._sums.add(parts)
        weight = gamma(BATCH + 2) * np.abs(T).sum(axis=0) + slack
        self._magnitude += above(np.outer(weight, largest), len(X) + 4)

    @property
    def value(self) -> np.ndarray:
        return self._sums.value.reshape(self.shape)

    @property
    def error(self) -> np.ndarray:
        return above(self._magnitude + self._sums.error.reshape(self.shape), 8) + UNDERFLOW


def entropy_excess(x: np.ndarray) -> np.ndarray:
    """Return (1 + x) ln(1 + x) - x for x >= -1, to a relative error of 1e-13."""
    series, top = np.zeros_like(x), np.max(np.abs(x), initial=0.0)
    for k in range(9 if top > 1e-3 else 5, 1, -1):  # what is left out is below 1e-13 of the sum
        series = (1 / (k * (k - 1)) if k % 2 == 0 else -1 / (k * (k - 1))) + x * series
    result = series * x * x
    if top > 0.01:
        large = np.abs(x) > 0.01
        far = x[large]
        logs = np.log1p(np.maximum(far, -1.0), out=np.zeros_like(far), where=far > -1)
        result[large] = (1 + far) * logs - far
    return result


def excess_above(reference: np.ndarray, distance: np.ndarray, rising: np.ndarray | bool) -> np.ndarray:
    """Return an upper bound of s h(d / s), h(x) = (1 + x) ln(1 + x) - x, for all s >= reference > 0 and |d|
    <= distance.

    `rising` tells where d >= 0 is known; a falling d is at most s in magnitude. Both branches decrease in s
    (h(x) <= x h'(x)); below 1, h(-x) >= h(x) covers an unknown sign, beyond it both branches are taken.
    """
    ratio = distance / reference
    falling_far = ~np.asarray(rising) & (ratio >= 1)
    signed = np.where(rising, ratio, -np.minimum(ratio, 1.0))
    value = reference * entropy_excess(signed)
    if falling_far.any():
        value = np.where(falling_far, np.maximum(distance, reference * entropy_excess(ratio)), value)
    return value * (1 + 2e-13)


def is_psd_after(matrix: np.ndarray, shift: float) -> bool:
    """Tell whether matrix - shift I is positive semidefinite, shift >= 0, proved by an unblocked
    factorisation.

    If Cholesky of B = matrix - (shift + c) I runs to completion, its factor satisfies R'R = B + E with |E| <=
    phi trace(B) in norm, so that c >= phi trace(B) and the rounding of the diagonal prove the claim (Rump
    2006).
    """
    n = len(matrix)
    phi = gamma(n + 2) / (1 - gamma(n + 2))
    lower = matrix.copy()
    lower[np.diag_indices(n)] -= above(shift + (phi + 4 * U) * above(float(np.trace(matrix)), n) + UNDERFLOW)
    for k in range(n):
        pivot = lower[k, k] - lower[k, :k] @ lower[k, :k]
        if not pivot > 0:
            return False
        lower[k, k] = math.sqrt(pivot)
        lower[k + 1 :, k] = (lower[k + 1 :, k] - lower[k + 1 :, :k] @ lower[k, :k]) / lower[k, k]
    return True


def null_signs(columns: Sequence[Sequence[float]]) -> list[int] | None:
    """Return the signs of the vector that spans the null space of these columns; None unless it has dimension
    one.

    Exact: each column is scaled by a power of two to integers, which changes no sign, and eliminated without
    fractions (Bareiss), so that every division below is without remainder.
    """
    rows = [list(row) for row in zip(*map(_integers, columns))]
    previous = 1
    pivots: list[int] = []
    for j in range(len(columns)):
        at = len(pivots)
        result = next((i for i in range(at, len(rows)) if rows[i][j]), None)
        if result is None:
            continue
        rows[at], rows[result] = rows[result], rows[at]
        pivot = rows[at]
        for i, row in enumerate(rows):
            if i != at:
                rows[i] = [(pivot[j] * a - row[j] * b) // previous for a, b in zip(row, pivot)]
        previous = pivot[j]
        pivots.append(j)
    if len(pivots) != len(columns) - 1:
        return None
    free = next(j for j in range(len(columns)) if j not in pivots)
    vector = {j: -rows[i][free] * rows[i][j] for i, j in enumerate(pivots)} | {free: 1}
    return [(vector[j] > 0) - (vector[j] < 0) for j in range(len(columns))]


def _integers(column: Sequence[float]) -> list[int]:
    ratios = [float(value).as_integer_ratio() for value in column]
    common = max(denominator for _, denominator in ratios)
    return [numerator * (common // denominator) for numerator, denominator in ratios]

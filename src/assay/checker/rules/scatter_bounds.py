"""The scatter of rows with bounds of its rounding, its eigenvalues, and rows in a ball: for flats and for centres."""

import math
from fractions import Fraction

import numpy as np

from assay.checker.bounds.error_rate import ln_above
from assay.checker.numerics import UNDERFLOW, Sums, U, above, gamma, norm_above
from assay.checker.record import Refused, Rejected
from assay.checker.rule import View

WIDEST = 2_000
"""Columns up to which the eigenvalues of a matrix are enclosed."""


class Scatter:
    """S = sum of s (x - c)(x - c)' over the rows, and the weighted sum of x - c, with bounds of their errors."""

    def __init__(self, center: np.ndarray):
        if len(center) > WIDEST:
            raise Refused(f"eigenvalues are enclosed up to {WIDEST} columns; there are {len(center)}")
        self.center, self.S = center, np.zeros((len(center), len(center)))
        self.sums, self.weight, self.longest, self.adds = Sums(len(center)), Sums(1), 0, 0
        self.apart = False  # whether a row is not the centre

    def add(self, view: View) -> None:
        moved = view.X - self.center
        self.apart = self.apart or bool(moved.any())
        self.sums.add(moved * view.weight[:, None])
        self.weight.add(view.weight[:, None])
        A = moved * np.sqrt(view.weight)[:, None]
        self.S += A.T @ A
        self.longest, self.adds = max(self.longest, len(A)), self.adds + 1

    @property
    def error(self) -> float:
        """Bound of the error of S in norm: each entry is a sum of products of numbers rounded twice."""
        rounding = gamma(self.longest + self.adds + 24) * above(float(np.trace(self.S)), len(self.S) + 8)
        return rounding + UNDERFLOW if self.apart else 0.0

    def mean_above(self) -> float:
        """Return an upper bound of |sum of s (x - c)|^2 / (sum of s): what S exceeds the scatter about the mean by."""
        off = np.abs(self.sums.value) + self.sums.error + 4 * U * np.abs(self.sums.value)
        rounded = 4 * U * math.sqrt(above(float(np.trace(self.S)))) * math.sqrt(above(self.total))
        return above((norm_above(off) + rounded) ** 2 / (self.total * (1 - 1e-12)), 8)

    @property
    def total(self) -> float:
        return float(self.weight.value[0])


def eigenvalues(A: np.ndarray) -> tuple[np.ndarray, float]:
    """Return numbers, falling, that are within the second result of the eigenvalues of a symmetric matrix.

    With any V and L: |lambda_i - L_i| <= |A - V L V'| + |V'V - I| |L_i| (Weyl, Ostrowski); V and L come from the
    library and are trusted for nothing.
    """
    n = len(A)
    L, V = np.linalg.eigh(A)
    size = above(float(np.linalg.norm(V)) ** 2, n * n + 8)
    top = float(np.max(np.abs(L), initial=0.0))
    eta = float(np.linalg.norm(V.T @ V - np.eye(n))) + gamma(n + 4) * size
    off = float(np.linalg.norm(A - (V * L) @ V.T)) + gamma(2 * n + 16) * size * top + 4 * U * float(np.linalg.norm(A))
    if not eta < 0.5:
        raise Refused("the eigenvectors of a matrix are not orthonormal enough")
    return L[::-1], above(off + eta * top, n * n + 16)


def in_ball(view: View, radius: float) -> np.ndarray:
    """Return upper bounds of the squared lengths of rows without weights, none of which is longer than the radius."""
    if np.any(view.weight != 1):
        raise Rejected("it is about rows without weights")
    squares = np.einsum("ij,ij->i", view.X, view.X)
    d = view.X.shape[1]
    if np.any(squares * (1 - gamma(2 * d + 8)) > radius * radius * (1 + 4 * U)):
        raise Rejected(f"a row is longer than the radius {radius:g}: the assumption is false")
    return above(squares, d + 4)


def deviation(most: float, delta: Fraction, n: int) -> float:
    """Return 3 most sqrt(ln(1 / delta) / (2 n)), rounded up."""
    return above(3.0 * most * math.sqrt(ln_above(1 / delta) / (2 * n)))

"""Scatter matrices with rounding errors, their eigenvalues, and bounds on the mean squared distance of new rows to the
closest of k centres or to a flat.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.spatial.distance import cdist

from assay.checker.bounds.error_rate import ln_above
from assay.checker.numerics import UNDERFLOW, Sums, U, above, gamma, norm_above
from assay.checker.predictors import DistanceModel
from assay.checker.record import Refused, Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.claims.definitions import UNIFORM, Definition
from assay.claims.sentences import distance_risk

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


@dataclass(frozen=True)
class Centroids(DistanceModel):
    """Each row belongs to the nearest of the centres."""

    centers: np.ndarray  # (k, d)

    @property
    def columns(self) -> int:
        return self.centers.shape[1]

    @property
    def width(self) -> int:  # type: ignore[override]
        return len(self.centers)

    def squared_distances(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the squared distance of each row to the nearest centre: a sum of squares of differences."""
        square = cdist(X, self.centers, "sqeuclidean")
        nearest = square.argmin(axis=1)
        least = square[np.arange(len(X)), nearest]
        return least * (1 - gamma(2 * self.columns + 8)) * (least >= UNDERFLOW), self.enlarged(X, least, nearest)

    def enlarged(self, X: np.ndarray, least: np.ndarray, nearest: np.ndarray) -> np.ndarray:
        """Return upper bounds of squared distances; squares that vanished are 0 only for a row that is a centre."""
        high = above(least * (1 + gamma(2 * self.columns + 8)))
        small = np.flatnonzero(least < UNDERFLOW)
        beside = np.any(X[small] != self.centers[nearest[small]], axis=1)
        high[small[beside]] = UNDERFLOW
        return high


class ClusterRule(Rule):
    def prepare(self) -> None:
        if not isinstance(self.model, Centroids):
            raise Rejected("it needs a model that is a set of centres")
        if self.count("clusters", 1) != len(self.model.centers):
            raise Rejected(f"clusters is {self.params['clusters']}; the model has {len(self.model.centers)}")
        self.check_rows()


class ClusterRisk(ClusterRule):
    """kmeans.risk: mean cost of the training rows + 2 k (2 R sqrt(sum |x|^2) / n + R^2 / (2 sqrt n)) + 12 R^2
    sqrt(ln(1/delta) / (2 n)), where |x| <= R for every row, and |c| <= R for every centre."""

    def prepare(self) -> None:
        super().prepare()
        self.R, self.delta = self.number("radius"), exact_decimal(self.claim.delta, "delta")
        if any(norm_above(center) > self.R for center in self.model.centers):
            raise Rejected("a centre lies outside the ball")
        self.sums = Sums(2)

    def block(self, view: View) -> None:
        squares = in_ball(view, self.R)
        self.sums.add(np.stack([self.model.squared_distances(view.X)[1], squares], axis=1))

    def measure(self) -> float:
        k, n, R = len(self.model.centers), self.rows, self.R
        cost, squares = above(self.sums.value + self.sums.error)
        complexity = k * (2 * R * math.sqrt(squares) / n + R * R / (2 * math.sqrt(n)))
        return above(cost / n + 2 * above(complexity) + deviation(4 * R * R, self.delta, n))


RISK = Definition(
    "kmeans.risk",
    ClusterRisk,
    distance_risk("the nearest of the {clusters} centres"),
    (*UNIFORM, "A-SUPP"),
    quantity="mean squared distance",
)

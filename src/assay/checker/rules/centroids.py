"""Rows near the closest of k centres, and the mean squared distance of new rows to these."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from assay.checker.numerics import UNDERFLOW, Sums, above, gamma, norm_above
from assay.checker.predictors import DistanceModel
from assay.checker.record import Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.scatter_bounds import deviation, in_ball
from assay.claims.definitions import UNIFORM, Definition
from assay.claims.sentences import distance_risk


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

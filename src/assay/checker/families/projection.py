"""Rows near a flat (PCA, truncated decompositions): the distance to it, that none is nearer (pca.optimality), new rows
(projection.risk)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.checker.family import NUMBERS, Family, Variant
from assay.checker.numerics import Sums, U, above, gamma, norm_above
from assay.checker.predictors import DistanceModel
from assay.checker.record import Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.centroids import Scatter, deviation, eigenvalues, in_ball
from assay.claims.definitions import UNIFORM, Definition
from assay.claims.sentences import Part, Sentence, distance_risk


@dataclass(frozen=True)
class Projection(DistanceModel):
    """The flat through `center` that the rows of V span; V need be orthonormal only to `slant` = |V V' - I|."""

    V: np.ndarray  # (k, d)
    center: np.ndarray  # (d,)

    @property
    def columns(self) -> int:
        return self.V.shape[1]

    @property
    def slant(self) -> float:
        k, d = self.V.shape
        off = float(np.linalg.norm(self.V @ self.V.T - np.eye(k)))
        return above(off + gamma(d + 4) * above(float(np.sum(self.V**2)), k * d + 8), k * k + 8)

    def squared_distances(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the squared distance of each row to the flat. The point V'V(x - center) lies in it, so that
        the nearest one is not farther, and is itself at most slant |x - center| from that point."""
        k, d = self.V.shape
        moved = X - self.center
        rest = np.sqrt(np.einsum("ij,ij->i", *[moved - (moved @ self.V.T) @ self.V] * 2))
        size = np.sqrt(np.einsum("ij,ij->i", moved, moved))
        slip = above(gamma(4 * (d + k) + 32) * (1 + float(np.sum(self.V**2))) * size, d + 8)
        low = np.maximum(rest * (1 - gamma(d + 8)) - slip - above(self.slant * size, d + 8), 0.0)
        return low * low * (1 - 4 * U), above((above(rest, d + 8) + slip) ** 2)


def read_projection(V: np.ndarray, center: np.ndarray, classes: Any) -> Projection:
    if V.ndim != 2 or not V.shape[1] or center.shape != V.shape[1:] or len(V) > V.shape[1]:
        raise Rejected(
            f"components_ has shape {V.shape} and center_ {center.shape}; they must be (k, d), k <= d, and (d,)"
        )
    return Projection(V, center)


class FlatOptimality(Rule):
    """pca.optimality: the mean squared distance of the rows to the model's flat is at most `value` above that of any
    flat of as many dimensions (through the origin, unless `centred`).

    With S the scatter about the stored centre over n, P the projection and m the mean of the rows: the distance is
    trace S - trace P S, the least one trace S - |c - m|^2 - (sum of the k largest eigenvalues of the scatter about m),
    which are no larger than those of S. trace P S >= trace V S V' / (1 + loss).
    """

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, Projection):
            raise Rejected("it needs a model that is a flat")
        if self.count("components", 0) != len(model.V):
            raise Rejected(f"components is {self.params['components']}; the model has {len(model.V)}")
        self.centred = self.flag("centred")
        if not self.centred and np.any(model.center):
            raise Rejected("a flat through the origin has the centre 0")
        self.check_rows()
        self.scatter = Scatter(model.center)

    def block(self, view: View) -> None:
        if np.any(view.weight != 1):
            raise Rejected("it is about rows without weights")
        self.scatter.add(view)

    def measure(self) -> float:
        S, slack, n, V = self.scatter.S, self.scatter.error, self.rows, self.model.V
        k, loss = len(V), self.model.slant
        if not loss < 0.5:
            raise Rejected("the components are not orthonormal")
        values, off = eigenvalues((S + S.T) / 2)
        best = math.fsum(np.maximum(values[:k], 0.0)) + k * above(off + slack)
        rounding = above(gamma(4 * len(S) + 32) * float(np.sum(V**2)) * float(np.trace(S)), len(S))
        held = (float(np.einsum("ij,jl,il->", V, S, V, optimize=True)) - rounding - k * (1 + loss) * slack) / (1 + loss)
        apart = self.scatter.mean_above() if self.centred else 0.0
        return above(max(best - held, 0.0) + 8 * U * best + apart, k + 16) / n * (1 + 4 * U)


class FlatRisk(Rule):
    """projection.risk: mean squared distance of the training rows to the flat + 2 complexity + deviation, |x| <= R for
    every row.

    Centre 0: complexity sqrt(min(k, d - k) sum |x|^4) / n, losses up to R^2. A fitted centre, which lies in the ball
    too: complexity + 2 R sqrt(sum |x|^2) / n + R^2 / (2 sqrt n), losses up to 4 R^2. Deviation 3 range
    sqrt(ln(1/delta)/(2n)).
    """

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, Projection):
            raise Rejected("it needs a model that is a flat")
        if self.count("components", 0) != len(model.V):
            raise Rejected(f"components is {self.params['components']}; the model has {len(model.V)}")
        self.check_rows()
        self.R, self.delta = self.number("radius"), exact_decimal(self.claim.delta, "delta")
        self.fitted = self.flag("centred")
        if not self.fitted and np.any(model.center):
            raise Rejected("a centre that is not 0 was fitted to the rows")
        if norm_above(model.center) > self.R:
            raise Rejected("the centre lies outside the ball")
        if not model.slant < 0.5:
            raise Rejected("the components are not orthonormal")
        self.sums = [Sums(1) for _ in range(3)]  # their sizes differ widely: R, R^2 and R^4

    def block(self, view: View) -> None:
        squares = in_ball(view, self.R)
        for total, part in zip(self.sums, (self.model.squared_distances(view.X)[1], squares, above(squares * squares))):
            total.add(part[:, None])

    def measure(self) -> float:
        (k, d), n, R = self.model.V.shape, self.rows, self.R
        distance, squares, fourth = (float(above(total.value + total.error)[0]) for total in self.sums)
        complexity = math.sqrt(min(k, d - k) * fourth) / n
        if self.fitted:
            complexity += 2 * R * math.sqrt(squares) / n + R * R / (2 * math.sqrt(n))
        most = (4 if self.fitted else 1) * R * R
        return above(distance / n + 2 * above(complexity) + deviation(most, self.delta, n))


_OPTIMALITY = Sentence(
    {
        "": "No flat {where} {components} dimensions is nearer to the {rows} training rows: their mean squared "
        "distance to this one is at most {value:up} above the least.",
        "centred": "of",
        "origin": "through the origin of",
    },
    lambda value, direction, params: {"where": Part("centred" if params["centred"] else "origin")},
)


CLAIMS = {
    "D18/1": Definition("pca.optimality", FlatOptimality, _OPTIMALITY),
    "P26/2": Definition(
        "projection.risk",
        FlatRisk,
        distance_risk("the flat of {components} dimensions"),
        (*UNIFORM, "A-SUPP"),
        quantity="mean squared distance",
    ),
}


def _variances(array: np.ndarray, model: Any) -> bool:
    return array.shape == (len(model.V),) and bool(np.all(array >= 0))


def _rest(array: np.ndarray, model: Any) -> bool:
    return array.shape == () and bool(array >= 0)


FAMILY = Family(
    "projection",
    {
        "": Variant(
            {"components_": NUMBERS, "center_": NUMBERS},
            read_projection,
            target=False,
            more={"explained_variance_": _variances, "noise_variance_": _rest},
        )
    },
    CLAIMS,
)

"""Prototypes on a grid (self-organising maps): how far the batch map moves them, and how well neighbours stay
neighbours.

Arrays: `prototypes_` (height * width, d), row by row of the grid, and `grid_` (height, width, 0 rectangular or 1
hexagonal). Cell (r, c) stands at (r, c), in a hexagonal grid at (r sqrt(3)/2, c + 1/2 if r is odd). Cells are
neighbours if they stand no farther apart than 1 (hexagonal) or sqrt(2) (rectangular).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import U, above, gamma, largest, norm_above
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.centroids import RISK, Centroids
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence

_MOST_CELLS = 10_000  # of whose pairs a rule holds a number
_LEAST = 1e-6  # of a row: a cell to which the neighbourhoods of all rows add up to less is not moved


@dataclass(frozen=True)
class Lattice(Centroids):
    """Centres that stand on a grid."""

    height: int
    across: int
    hexagonal: bool

    def places(self) -> np.ndarray:
        """Return where each cell stands, (cells, 2)."""
        r, c = np.divmod(np.arange(self.height * self.across), self.across)
        if not self.hexagonal:
            return np.column_stack([r, c]).astype(np.float64)
        return np.column_stack([r * (math.sqrt(3) / 2), c + 0.5 * (r % 2)])

    def nearest_two(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the two cells of the least computed distances, and whether rounding leaves none of them open."""
        square = cdist(X, self.centers, "sqeuclidean")
        ranked = np.argsort(square, axis=1, kind="stable")[:, :3]
        values = np.take_along_axis(square, ranked, axis=1)
        slip = gamma(4 * self.columns + 16) * values[:, -1] + 1e-280
        return ranked[:, 0], ranked[:, 1], np.diff(values, axis=1) > slip[:, None]


def read_lattice(prototypes: np.ndarray, grid: np.ndarray, classes: Any) -> Lattice:
    """Return the map that the arrays describe."""
    if grid.shape != (3,) or np.any(grid[:2] < 1) or grid[2] not in (0, 1) or np.any(grid[:2] > 2**20):
        raise Rejected(f"grid_ must be height, width and 0 or 1; it is {str(grid)[:60]}")
    height, across = int(grid[0]), int(grid[1])
    if prototypes.ndim != 2 or not prototypes.size or len(prototypes) != height * across:
        raise Rejected(f"prototypes_ has shape {prototypes.shape}; the grid has {height} x {across} cells")
    return Lattice(prototypes, height, across, bool(grid[2]))


class MapRule(Rule):
    """What rules about maps share."""

    def prepare(self) -> None:
        if not isinstance(self.model, Lattice):
            raise Rejected("it needs a map")
        if not 2 < len(self.model.centers) <= _MOST_CELLS:
            raise Refused(f"it is checked for 3 to {_MOST_CELLS} cells")
        self.check_rows()


class MapFixedPoint(MapRule):
    """som.fixed-point: no prototype w_j is farther than `value` from m_j = sum_i h(j, c_i) x_i / sum_i h(j, c_i), where
    c_i is the cell nearest to row i and h = exp(-|distance on the grid|^2 / (2 radius^2)), or 1 for c_i alone if radius
    = 0.
    Cells with a denominator below 1e-6 have no m_j. Rows whose nearest cell rounding leaves open count for either."""

    def prepare(self) -> None:
        super().prepare()
        self.radius = self.number("radius", zero=True)
        cells, d = self.model.centers.shape
        self.counts, self.sums, self.sizes = np.zeros(cells), np.zeros((cells, d)), np.zeros((cells, d))
        self.open, self.top = 0, np.zeros(d)

    def block(self, view: View) -> None:
        if not np.all(view.weight == 1):
            raise Rejected("it is about rows of equal weight")
        best, _, sure = self.model.nearest_two(view.X)
        np.add.at(self.counts, best, 1.0)
        np.add.at(self.sums, best, view.X)
        np.add.at(self.sizes, best, np.abs(view.X))
        self.open += int(np.sum(~sure[:, 0]))
        self.top = np.maximum(self.top, view.largest)

    def measure(self) -> float:
        places = self.model.places()
        square = cdist(places, places, "sqeuclidean")
        if self.radius:
            h = np.exp(-square / (2 * self.radius * self.radius))
            slip = above(2 * gamma(16) * square / (2 * self.radius * self.radius) + 32 * U)  # relative, of h
        else:
            h, slip = np.eye(len(square)), np.zeros_like(square)
        cells = len(h)
        mass = h @ self.counts
        mass_error = (h * slip) @ self.counts + gamma(2 * cells + self.rows) * mass + self.open
        worst = 0.0
        for j in np.flatnonzero(mass >= _LEAST):
            mean = h[j] @ self.sums / mass[j]
            if mass[j] <= 2 * mass_error[j]:
                raise Refused("rounding leaves open where too many rows belong")
            off = (h[j] * (slip[j] + gamma(2 * cells + 2 * self.rows))) @ self.sizes + self.open * self.top
            off = above((off + np.abs(mean) * mass_error[j]) / (mass[j] - mass_error[j]), cells + 8)
            off += 8 * U * np.abs(mean)
            worst = largest(worst, norm_above(np.abs(self.model.centers[j] - mean) + off))
        return worst


class Topographic(MapRule):
    """som.topographic-error: of these rows at most the share `value` has a nearest and a second nearest cell that are
    no neighbours; rows whose two nearest cells rounding leaves open are counted."""

    def prepare(self) -> None:
        super().prepare()
        self.broken = 0
        self.reach = (1.0 if self.model.hexagonal else 2.0) + 1e-9

    def block(self, view: View) -> None:
        best, second, sure = self.model.nearest_two(view.X)
        places = self.model.places()
        apart = np.square(places[best] - places[second]).sum(axis=1)
        self.broken += int(np.sum((apart > self.reach) | ~sure.all(axis=1)))

    def measure(self) -> float:
        return self.broken / self.rows


_FIXED_POINT = Sentence.plain(
    "The map rests: the {rows} training rows, weighed by the neighbourhood of radius {radius:g}, move no prototype by "
    "more than {value:up}."
)


_TOPOGRAPHIC = Sentence.plain(
    "The two nearest cells are neighbours on the grid for all but {value:percent} of the {rows} training rows."
)


CLAIMS = {
    "D34/3": Definition("som.fixed-point", MapFixedPoint, _FIXED_POINT),
    "D34/4": Definition("som.topographic-error", Topographic, _TOPOGRAPHIC),
    "P26/1": RISK,
}
FAMILY = Family("lattice", {"": Variant({"prototypes_": NUMBERS, "grid_": WHOLE}, read_lattice, target=False)}, CLAIMS)

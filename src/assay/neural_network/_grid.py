"""The grid of a self-organising map: where cells stand, which are neighbours, and how far a neighbourhood reaches."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

_FADED = 1e-4  # of the winner's step: cells that would move by less stay where they are


@dataclass(frozen=True)
class Grid:
    """Cells in rows; odd rows of a hexagonal grid are shifted by half a cell, and rows are sqrt(3)/2 apart.

    >>> Grid(2, 2, True).places().round(3).tolist()
    [[0.0, 0.0], [0.0, 1.0], [0.866, 0.5], [0.866, 1.5]]
    """

    height: int
    width: int
    hexagonal: bool

    @property
    def cells(self) -> int:
        return self.height * self.width

    def places(self) -> np.ndarray:
        """Return where each cell stands, (cells, 2)."""
        r, c = np.divmod(np.arange(self.cells), self.width)
        if not self.hexagonal:
            return np.column_stack([r, c]).astype(np.float64)
        return np.column_stack([r * (math.sqrt(3) / 2), c + 0.5 * (r % 2)])

    def adjacent(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Tell which pairs of cells are neighbours: the eight around a cell, or six in a hexagonal grid."""
        places = self.places()
        return np.square(places[i] - places[j]).sum(axis=1) <= (1.0 if self.hexagonal else 2.0) + 1e-9

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all pairs of neighbours, each in both orders."""
        r, c = np.divmod(np.arange(self.cells), self.width)
        found = []
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                inside = (r + dr >= 0) & (r + dr < self.height) & (c + dc >= 0) & (c + dc < self.width)
                found.append((np.flatnonzero(inside), ((r + dr) * self.width + c + dc)[inside]))
        i, j = (np.concatenate(part) for part in zip(*found, strict=True))
        kept = (i != j) & self.adjacent(i, j)
        return i[kept], j[kept]

    def neighbourhood(self, radius: float) -> tuple[Any, ...]:
        """Return what the compiled visit wants: shape, shift, factors by rows apart and, (3, 2 width - 1), by columns
        apart less, without and plus half a column, and how many rows and columns they reach."""
        high = math.sqrt(3) / 2 if self.hexagonal else 1.0
        rows = np.arange(self.height) * high
        columns = np.arange(1 - self.width, self.width) + np.array([[-0.5], [0.0], [0.5]])
        if radius > 0:
            by_row, by_column = (np.exp(-np.square(apart) / (2 * radius * radius)) for apart in (rows, columns))
        else:
            by_row, by_column = (rows == 0).astype(float), (columns == 0).astype(float)
        reach = radius * math.sqrt(-2 * math.log(_FADED))
        reach_row, reach_column = int(reach / high), math.ceil(reach + 0.5 * self.hexagonal * (reach > 0))
        shape = np.array([self.height, self.width])
        return shape, int(self.hexagonal), by_row, by_column, reach_row, reach_column

    def means(self, sums: np.ndarray, counts: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
        """Return for each cell the sum over rows of the neighbourhood of their cells, and the mean of the rows under
        it."""
        if radius > 0:
            places = self.places()
            total, mass = np.empty_like(sums), np.empty_like(counts)
            step = max(1, 2**22 // self.cells)
            for start in range(0, self.cells, step):
                part = slice(start, start + step)
                h = np.exp(-cdist(places[part], places, "sqeuclidean") / (2 * radius * radius))
                total[part], mass[part] = h @ sums, h @ counts
        else:
            total, mass = sums, counts
        return mass, total / np.maximum(mass, 1e-300)[:, None]

    def smoothed(
        self, sums: np.ndarray, counts: np.ndarray, radius: float, before: np.ndarray, least: float
    ) -> np.ndarray:
        """Return the prototypes of the batch map; cells that no row reaches stay where they were."""
        mass, means = self.means(sums, counts, radius)
        return np.where((mass >= least)[:, None], means, before)

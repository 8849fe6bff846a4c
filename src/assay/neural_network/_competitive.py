"""Competitive learning: the winner takes all. Of the prototypes only the one nearest to the row moves towards it.

    c = argmin_j |x - w_j|,    w_c <- w_c + eta (x - w_c)

With eta = 1 / (rows that c has won) each prototype is the mean of the rows that it has won so far: online k-means.

Claims: what the prototypes cost, and how far each is from the mean of its rows (kmeans.fixed-point); what any
        prototypes must cost (kmeans.lower-bound); new rows (kmeans.risk, hold-out).
Method: passes over the rows in random order; `partial_fit` goes on with more rows.

`Grid` is that of a self-organising map: where cells stand, which are neighbours, how far a neighbourhood reaches.
"""

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state

from assay.base import fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.cluster._kmeans import Centroids, Voronoi, fixed_point, floor
from assay.params import Count, NameOr, Number, Positive, check, refuse
from assay.scan import Rows

_FADED = 1e-4  # of the winner's step: cells that would move by less stay where they are


@dataclass(eq=False, repr=False)
class CompetitiveLearning(Centroids):
    """Prototypes of which the nearest moves towards each row.

    Parameters
    ----------
    n_prototypes : int
        Number of prototypes, at most the number of rows.
    learning_rate : "count" or float in (0, 1]
        eta: 1 / (rows won so far), with which prototypes come to rest, or a constant, with which they follow the rows.
    max_iter : int
        Passes over the rows.
    tol : float >= 0
        End once no prototype has moved by more than tol times the spread of the rows in a pass.
    init : "sample" or (k, d) array
        First prototypes: rows drawn at random, or as given.
    shuffle : bool
        Whether each pass visits the rows in a new random order.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads of prediction; None uses all cores.

    Attributes
    ----------
    prototypes_ : (k, d), also called `cluster_centers_`
    labels_ : (n,) number of each row's prototype
    wins_ : (k,) rows that each prototype has won
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from assay.neural_network import CompetitiveLearning
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> CompetitiveLearning(2, init=[[2.0], [9.0]]).fit(X).prototypes_.tolist()
    [[0.5], [10.5]]
    """

    card = Card(
        name="Competitive learning",
        task="cluster",
        model=Voronoi(),
        strategy="sum of squared distances to the nearest prototype, one row at a time",
        algorithm="the nearest prototype moves towards the row",
        guarantee=("kmeans.fixed-point", "kmeans.lower-bound", "kmeans.risk"),
    )
    constraints: ClassVar = {
        "n_prototypes": Count(),
        "learning_rate": NameOr(Positive(why="the share of its gap that a prototype moves"), "count"),
        "max_iter": Count(),
        "tol": Number(low=0.0),
        "init": NameOr(None, "sample"),
    }

    n_prototypes: int = 8
    _: KW_ONLY
    learning_rate: Any = "count"
    max_iter: int = 20
    tol: float = 1e-3
    init: Any = "sample"
    shuffle: bool = True
    random_state: Any = None
    n_jobs: int | None = None

    @property
    def prototypes_(self) -> np.ndarray:
        """The prototypes, (k, d)."""
        return self.cluster_centers_

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "CompetitiveLearning":
        """Let prototypes compete for the rows X; y is not used."""
        return self._learn(X, self.max_iter, afresh=True)

    def partial_fit(self, X: Any, y: Any = None) -> "CompetitiveLearning":
        """Visit these rows once, from where the last call ended."""
        return self._learn(X, 1, afresh=not hasattr(self, "cluster_centers_"))

    def _learn(self, X: Any, passes: int, afresh: bool) -> "CompetitiveLearning":
        from assay.neural_network._competitive_loops import visit

        check(self)
        if self.learning_rate != "count" and self.learning_rate > 1:
            raise refuse(
                self,
                f"learning_rate must be at most 1 (the prototype is the row then); got {self.learning_rate!r}.",
            )
        rows = read_rows(self, X, None, reset=afresh)
        require_finite(rows, self)
        data = np.concatenate([block.X for block in rows.blocks()])
        random = check_random_state(self.random_state)
        if afresh:
            self.cluster_centers_ = self._first(data, random)
            self.wins_ = np.zeros(len(self.cluster_centers_))
        spread = float(np.sqrt(np.square(data - data.mean(axis=0)).sum(axis=1).mean()))
        alone = Grid(1, len(self.cluster_centers_), False).neighbourhood(0.0)
        rate = 0.0 if self.learning_rate == "count" else float(self.learning_rate)
        with fit_log(self, passes, X, None) as log, log.keeping():
            for _ in range(passes):
                order = random.permutation(len(data)) if self.shuffle else np.arange(len(data))
                columns, wins = np.ascontiguousarray(self.cluster_centers_.T), self.wins_.copy()
                total = visit(data, order, columns, *alone, rate, wins)
                moved = np.ascontiguousarray(columns.T)
                way = float(np.sqrt(np.square(moved - self.cluster_centers_).sum(axis=1).max())) / (spread or 1.0)
                self.cluster_centers_, self.wins_ = moved, wins
                if log.step(total / len(data), way, cluster_centers_=moved) or way <= self.tol:
                    break
        self.n_iter_ = len(log.history)
        self.labels_ = self._nearest(X)[0]
        return self

    def _first(self, X: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        if isinstance(self.init, str):
            many = min(self.n_prototypes, len(X))
            return X[random.choice(len(X), many, replace=False)].copy()
        given = np.array(self.init, dtype=np.float64)
        if given.shape != (self.n_prototypes, X.shape[1]) or not np.isfinite(given).all():
            raise refuse(
                self, f"init must be finite numbers ({self.n_prototypes}, {X.shape[1]}); got shape {given.shape}."
            )
        return given

    def cells(self, X: Any) -> np.ndarray:
        """Return the number of the nearest prototype of each row."""
        return self.predict(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the cost of the prototypes, and what any prototypes must cost."""
        yield fixed_point(self, rows)
        yield from floor(self, rows)


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
        results = []
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                inside = (r + dr >= 0) & (r + dr < self.height) & (c + dc >= 0) & (c + dc < self.width)
                results.append((np.flatnonzero(inside), ((r + dr) * self.width + c + dc)[inside]))
        i, j = (np.concatenate(part) for part in zip(*results, strict=True))
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

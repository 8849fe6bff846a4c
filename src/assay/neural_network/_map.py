"""Self-organising maps: prototypes on a grid, of which neighbours on the grid become alike.

    c = argmin_j |x - w_j|,    h(j, c) = exp(-|p_j - p_c|^2 / (2 r^2)),    p_j the place of cell j on the grid
    online    w_j <- w_j + eta h(j, c) (x - w_j) for each row x
    batch     w_j <- sum_i h(j, c_i) x_i / sum_i h(j, c_i)

The radius r shrinks, so that the map first unfolds and then settles; r = 0 leaves the winner alone, which is k-means.

Claims: the batch map moves no prototype by more than a stated number (som.fixed-point); for all but a share of the
        rows the two nearest cells are neighbours (som.topographic-error); squared distances of new rows (kmeans.risk,
        hold-out).
Method: Kohonen 1982. The batch map is two sums over rows for each cell: arrays, Parquet files and Dask tables alike.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner, fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.guarantees.evidence import Distances, Evidence
from assay.messages import Message
from assay.neural_network._competitive import Grid
from assay.params import Choice, Count, Maybe, NameOr, Number, Positive, check, refuse
from assay.scan import Rows
from assay.scan.memory import MemoryRows
from assay.theory.rademacher import clustering_bound

_LEAST = 1e-6  # of a row: a cell with less of the neighbourhoods of all rows is not moved
_SAMPLE = 10_000  # rows from which the first plane is drawn
_CHUNK = 256  # rows that are visited with one radius and one rate
_SHARE = 0.5  # of the passes of the batch map in which the radius shrinks; then it waits for rest
_MOST_CELLS = 10_000  # of a map that the checker judges


class Cells:
    """The maps that send a row to the cell of the nearest prototype on a grid."""

    def __str__(self) -> str:
        return "cells of prototypes on a grid"


@dataclass(eq=False, repr=False)
class SelfOrganizingMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learner):
    """A grid of prototypes that keeps neighbours together.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the grid.
    grid : "rectangular" or "hexagonal"
    algorithm : "batch" or "online"
        Means over all rows in each pass, or a step for each row. Rows in files and clusters need "batch".
    radius, radius_end : float >= 0
        Radius of the neighbourhood at the beginning (None: half the longer side) and at the end. 0 and 0 is k-means.
    decay : "geometric" or "linear"
        How the radius shrinks: by a constant factor, or on a line.
    learning_rate, learning_rate_end : float, float
        Online: the step eta at the beginning and the end, between which it falls on a line. learning_rate="count": 1
        / (rows that the winner has won).
    max_iter : int
        Passes over the rows at most. The batch map shrinks its radius in the first half and ends early once it rests.
    tol : float >= 0
        The batch map rests when no prototype moves by more than tol times the spread of the rows.
    init : "plane", "sample" or (cells, d) array
        First prototypes: a grid in the plane of the two largest principal components, rows, or as given.
    random_state : int, RandomState or None
        Draws rows for init="sample", and the order of the rows of the online map.
    n_jobs : int or None
        Threads of the batch map and of prediction; None uses all cores. It changes the time, never a bit of the result.

    Attributes
    ----------
    prototypes_ : (height * width, d), row by row of the grid
    grid_ : height, width, and 0 (rectangular) or 1 (hexagonal)
    n_iter_ : int
    movement_ : float
        The longest way of a prototype in the last pass, relative to the spread of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.neural_network import SelfOrganizingMap
    >>> X = np.random.default_rng(0).uniform(size=(500, 2))
    >>> model = SelfOrganizingMap((6, 6)).fit(X)
    >>> model.transform(X[:1]).shape, model.topographic_error(X) < 0.05
    ((1, 2), True)
    """

    family = "lattice"
    figure = "u_matrix"
    card = Card(
        name="Self-organising map",
        task="transform",
        model=Cells(),
        strategy="none in closed form: squared distances to prototypes, smoothed over the grid",
        algorithm="Kohonen's rule row by row, or the batch map as sums over rows",
        guarantee=("som.fixed-point", "som.topographic-error", "kmeans.risk"),
    )
    constraints: ClassVar = {
        "grid": Choice("rectangular", "hexagonal"),
        "algorithm": Choice("batch", "online"),
        "radius": Maybe(Number(low=0.0)),
        "radius_end": Number(low=0.0),
        "decay": Choice("geometric", "linear"),
        "learning_rate": NameOr(Positive(why="the share of its gap that a prototype moves"), "count"),
        "learning_rate_end": Number(low=0.0, high=1.0),
        "max_iter": Count(),
        "tol": Number(low=0.0),
        "init": NameOr(None, "plane", "sample"),
    }

    shape: Any = (10, 10)
    _: KW_ONLY
    grid: str = "rectangular"
    algorithm: str = "batch"
    radius: float | None = None
    radius_end: float = 1.0
    decay: str = "geometric"
    learning_rate: Any = 0.5
    learning_rate_end: float = 0.02
    max_iter: int = 60
    tol: float = 1e-6
    init: Any = "plane"
    random_state: Any = None
    n_jobs: int | None = None

    _n_features_out = 2

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "SelfOrganizingMap":
        """Unfold the map on the rows X; y is not used."""
        check(self)
        grid = self._made_grid()
        rows = read_rows(self, X, None)
        require_finite(rows, self)
        random = check_random_state(self.random_state)
        moments = rows.sum(_moments)
        spread = math.sqrt(max(float((moments[1] / rows.n_rows - (moments[0] / rows.n_rows) ** 2).sum()), 0.0))
        self.grid_ = np.array([grid.height, grid.width, int(grid.hexagonal)], dtype=np.int64)
        self.prototypes_, self.movement_ = self._first(rows, grid, random), math.inf
        learn = self._online if self.algorithm == "online" else self._batch
        with fit_log(self, self.max_iter, X, None) as log, log.keeping():
            learn(rows, grid, spread, random, log)
        if not np.isfinite(self.prototypes_).all():
            raise refuse(self, f"prototypes left all bounds in pass {len(log.history)}; lower learning_rate.")
        self.n_iter_ = len(log.history)
        return self

    def _made_grid(self) -> Grid:
        given = self.shape
        fits = isinstance(given, (tuple, list, np.ndarray)) and len(given) == 2
        if not fits or not all(isinstance(side, Integral) and int(side) >= 1 for side in given):
            raise refuse(self, f"shape must be two integers >= 1, height and width of the grid; got {given!r}.")
        if self.learning_rate != "count" and self.learning_rate > 1:
            raise refuse(self, f"learning_rate must be at most 1; got {self.learning_rate!r}.")
        if self.radius is not None and self.radius < self.radius_end:
            raise refuse(self, f"radius must be at least radius_end={self.radius_end:g}; got {self.radius!r}.")
        return Grid(int(given[0]), int(given[1]), self.grid == "hexagonal")

    def _radius(self, progress: float) -> float:
        """Return the radius at a share of the way from the first to the last; to 0 there is only a line."""
        first = self.radius if self.radius is not None else max(max(self.grid_[:2]) / 2, self.radius_end)
        if self.decay == "linear" or not self.radius_end:
            return float(first + (self.radius_end - first) * progress)
        return float(first * (self.radius_end / first) ** progress)

    def _first(self, rows: Rows, grid: Grid, random: np.random.RandomState) -> np.ndarray:
        if not isinstance(self.init, str):
            given = np.array(self.init, dtype=np.float64)
            if given.shape != (grid.cells, rows.n_features) or not np.isfinite(given).all():
                raise refuse(
                    self, f"init must be finite numbers ({grid.cells}, {rows.n_features}); got shape {given.shape}."
                )
            return given
        if self.init == "sample":
            chosen = random.choice(rows.n_rows, grid.cells, replace=grid.cells > rows.n_rows)
            numbers, back = np.unique(chosen, return_inverse=True)
            return rows.take(numbers)[back]
        X = np.concatenate([block.X for block in rows.sample(_SAMPLE).blocks()])
        mean = X.mean(axis=0)
        _, sizes, axes = np.linalg.svd(X - mean, full_matrices=False)
        spans = sizes[:2, None] * axes[:2] / math.sqrt(len(X))
        spans = np.where(np.abs(spans) < 1e-140, 0.0, spans)
        at = grid.places() - grid.places().mean(axis=0)
        at = at / np.maximum(np.abs(at).max(axis=0), 1.0)
        order = [1, 0] if grid.height <= grid.width else [0, 1]  # the longer side along the larger spread
        return mean + 1.5 * at[:, order[: len(spans)]] @ spans

    # Training

    def _online(self, rows: Rows, grid: Grid, spread: float, random: np.random.RandomState, log: FitLog) -> None:
        from assay.neural_network._competitive_loops import visit

        if not isinstance(rows, MemoryRows):
            raise refuse(
                self,
                'algorithm="online" visits rows in random order: they must be in memory, or use "batch".',
            )
        X = np.ascontiguousarray(rows.X, dtype=np.float64)
        n, steps = len(X), self.max_iter * len(X)
        columns, wins = np.ascontiguousarray(self.prototypes_.T), np.zeros(grid.cells)
        for turn in range(self.max_iter):
            order, total, before = random.permutation(n), 0.0, columns.copy()
            for start in range(0, n, _CHUNK):
                progress = (turn * n + (start + min(start + _CHUNK, n)) / 2) / steps  # half way
                rate = 0.0
                if self.learning_rate != "count":
                    rate = self.learning_rate + (self.learning_rate_end - self.learning_rate) * progress
                near = grid.neighbourhood(self._radius(progress))
                total += visit(X, order[start : start + _CHUNK], columns, *near, rate, wins)
            if self._told(np.ascontiguousarray(columns.T), before.T, total / n, spread, log):
                break

    def _batch(self, rows: Rows, grid: Grid, spread: float, random: np.random.RandomState, log: FitLog) -> None:
        shrinking = max(int(_SHARE * self.max_iter), 1)
        for turn in range(self.max_iter):
            radius = self._radius(min(turn / shrinking, 1.0))
            before = self.prototypes_
            result = Sums(*rows.sum(_cell_sums, np.ascontiguousarray(before.T)))
            moved = grid.smoothed(result.sums, result.counts, radius, before, _LEAST)
            if self._told(moved, before, float(result.distance) / rows.n_rows, spread, log):
                return
            if turn >= shrinking and self.movement_ <= self.tol:
                return
        if self.max_iter > 1:
            warnings.warn(
                f"SelfOrganizingMap: prototypes still moved by {self.movement_:.3g} of the spread in pass "
                f"{self.max_iter} "
                f"(tol={self.tol:g}). Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _told(self, after: np.ndarray, before: np.ndarray, error: float, spread: float, log: FitLog) -> bool:
        way = float(np.sqrt(np.square(after - before).sum(axis=1).max()))
        self.prototypes_, self.movement_ = after, way / spread if spread > 0 else 0.0
        return log.step(error, self.movement_, prototypes_=after, grid_=self.grid_)

    # Prediction

    @property
    def _own_grid(self) -> Grid:
        return Grid(int(self.grid_[0]), int(self.grid_[1]), bool(self.grid_[2]))

    def _two(self, rows: Rows) -> np.ndarray:
        return np.concatenate(rows.map(_nearest_two, np.ascontiguousarray(self.prototypes_.T)))

    def _known(self, X: Any) -> Rows:
        check_is_fitted(self)
        rows = read_rows(self, X, None, reset=False)
        require_finite(rows, self)
        return rows

    def cells(self, X: Any) -> np.ndarray:
        """Return the number of the nearest prototype of each row, the first of equals."""
        return self._two(self._known(X))[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Return the cell of each row."""
        return self.cells(X)

    def transform(self, X: Any) -> np.ndarray:
        """Return where the cell of each row stands on the grid, (n, 2)."""
        cells = self.cells(X)
        return self._own_grid.places()[cells]

    def inverse_transform(self, places: Any) -> np.ndarray:
        """Return the prototype of the cell nearest to each place on the grid."""
        check_is_fitted(self)
        result = cdist(np.asarray(places, dtype=np.float64), self._own_grid.places(), "sqeuclidean").argmin(axis=1)
        return self.prototypes_[result]

    def quantization_error(self, X: Any) -> float:
        """Return the mean distance of rows to their nearest prototype."""
        rows = self._known(X)
        return float(np.sqrt(np.concatenate(rows.map(_least_squares, self.prototypes_))).mean())

    def topographic_error(self, X: Any) -> float:
        """Return the share of rows whose two nearest cells are no neighbours on the grid."""
        two = self._two(self._known(X))
        return float(np.mean(~self._own_grid.adjacent(two[:, 0], two[:, 1])))

    @property
    def u_matrix_(self) -> np.ndarray:
        """Mean distance of each prototype to those of the neighbouring cells, (height, width): ridges part clusters."""
        grid = self._own_grid
        i, j = grid.pairs()
        apart = np.linalg.norm(self.prototypes_[i] - self.prototypes_[j], axis=1)
        total, many = (np.bincount(i, weights, grid.cells) for weights in (apart, None))
        return (total / np.maximum(many, 1)).reshape(grid.height, grid.width)

    # Certificate

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield how far the batch map would move the prototypes, and how many rows it tears apart."""
        if not 2 < len(self.prototypes_) <= _MOST_CELLS:
            yield NotApplicable("som.fixed-point", Message("why.map-size", most=_MOST_CELLS))
            return
        two = np.concatenate(rows.map(_checked_two, self.prototypes_))
        if self.algorithm == "batch":
            yield self._fixed_point(rows, int((two[:, 2] == 0).sum()))
        else:
            yield NotApplicable("som.fixed-point", Message("why.online-map"))
        torn = ~self._own_grid.adjacent(two[:, 0], two[:, 1]) | (two[:, 3] == 0)
        yield Claim("som.topographic-error", float(torn.mean()), params={"rows": rows.n_rows})

    def _fixed_point(self, rows: Rows, still_open: int) -> Claim:
        result = Sums(*rows.sum(_plain_sums, self.prototypes_))
        mass, mean = self._own_grid.means(result.sums, result.counts, self.radius_end)
        full = mass >= _LEAST * (1 - 1e-9)
        size = self._own_grid.means(result.sizes, result.counts, self.radius_end)[1][full]
        rounding = 64 * (rows.n_rows + 4 * len(mass) + 64) * 2.0**-53 * size
        rounding += 4 * still_open * (rows.largest_entries + size) / np.maximum(mass[full, None] - still_open, 1e-300)
        apart = np.sqrt(np.square(np.abs(self.prototypes_[full] - mean[full]) + rounding).sum(axis=1))
        params = {"rows": rows.n_rows, "radius": float(self.radius_end)}
        return Claim("som.fixed-point", float(apart.max(initial=0.0)) * (1 + 1e-9), params=params)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the squared distance of each row to the nearest prototype."""
        W = self.prototypes_
        yield Distances(_least_squares, (W,), "kmeans.risk", partial(_distance_bound, len(W)))


def _distance_bound(
    k: int, mean: float, sizes: Any, n: int, radius: float, delta: float
) -> tuple[dict[str, Any], float]:
    return {"clusters": k}, clustering_bound(mean, sizes.squares, n, k, radius, delta)


class Sums(NamedTuple):
    """Over rows: their sum and number for each cell, the sum of distances, the sum of magnitudes."""

    sums: np.ndarray
    counts: np.ndarray
    distance: float
    sizes: np.ndarray


def _cell_sums(block: Block, columns: np.ndarray) -> Sums:
    from assay.neural_network._competitive_loops import cell_sums

    sums, counts = np.zeros((columns.shape[1], columns.shape[0])), np.zeros(columns.shape[1])
    return Sums(sums, counts, cell_sums(block.X, columns, sums, counts), np.zeros(0))


def _plain_sums(block: Block, prototypes: np.ndarray) -> Sums:
    """Return the sums by the distances that the checker computes."""
    nearest = cdist(block.X, prototypes, "sqeuclidean").argmin(axis=1)
    sums, sizes = np.zeros(prototypes.shape), np.zeros(prototypes.shape)
    np.add.at(sums, nearest, block.X)
    np.add.at(sizes, nearest, np.abs(block.X))
    return Sums(sums, np.bincount(nearest, minlength=len(prototypes)).astype(float), 0.0, sizes)


def _nearest_two(block: Block, columns: np.ndarray) -> np.ndarray:
    from assay.neural_network._competitive_loops import nearest_two

    result = np.empty((len(block.X), 2), dtype=np.int64)
    nearest_two(block.X, columns, result)
    return result


def _checked_two(block: Block, prototypes: np.ndarray) -> np.ndarray:
    """Return the two nearest cells as the checker computes them, and whether the first, and both, are beyond
    rounding."""
    square = cdist(block.X, prototypes, "sqeuclidean")
    ranked = np.argsort(square, axis=1, kind="stable")[:, :3]
    values = np.take_along_axis(square, ranked, axis=1)
    sure = np.diff(values, axis=1) > ((16 * prototypes.shape[1] + 64) * 2.0**-53 * values[:, -1] + 1e-279)[:, None]
    return np.column_stack([ranked[:, :2], sure[:, 0], sure.all(axis=1)])


def _least_squares(block: Block, prototypes: np.ndarray) -> np.ndarray:
    return cdist(block.X, prototypes, "sqeuclidean").min(axis=1)


def _moments(block: Block) -> tuple[np.ndarray, np.ndarray]:
    return block.X.sum(axis=0), np.square(block.X).sum(axis=0)

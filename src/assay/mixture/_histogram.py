"""Histograms: a density that is constant in each cell of a grid.

    p(x) = (n_cell + alpha) / ((n + alpha cells) volume of the cell),   0 outside the grid

With alpha = 0 it has the largest likelihood among all densities constant on these cells. Only cells that hold rows are
kept, so that many columns cost memory for the rows alone; but their cells soon hold a row or none, and say little.

Claim:  the cells hold exactly the stored numbers of rows.
Method: one pass for the range of the columns, one to count.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.callback import with_callbacks

from assay.base import fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Density, Evidence
from assay.messages import Message
from assay.mixture._density import DensityEstimator, log_likelihood
from assay.params import Number, check, refuse
from assay.scan import Rows

_MOST_CELLS = 2**62
_UNIT = 2.0**-53


@dataclass(eq=False, repr=False)
class HistogramDensity(DensityEstimator):
    """A density estimated by counting rows in the cells of a grid.

    Parameters
    ----------
    bins : int >= 1 or "rice"
        Cells along each column; "rice" is 2 n^(1 / (d + 2)), rounded up.
    bounds : (low, high) or None
        Ends of the grid: two numbers, or two for each column, (2, n_features). None takes the range of the rows. Fixed
        in advance they make the histogram a density of data beyond the rows.
    alpha : float >= 0
        Rows added to each cell, so that empty cells of the grid have a density too.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    edges_ : (n_features, bins + 1)
        Cells are [edge, next edge) along each column; the last one is closed.
    cells_ : (m, n_features)
        Place in the grid of each cell that holds rows, in order.
    counts_ : (m,)
        Weight of the rows in them.

    Examples
    --------
    >>> from assay.mixture import HistogramDensity
    >>> model = HistogramDensity(bins=2, bounds=(0.0, 4.0)).fit([[0.5], [1.0], [1.5], [3.0]])
    >>> import numpy as np
    >>> np.exp(model.score_samples([[1.0], [3.5], [9.0]])).round(6).tolist()
    [0.375, 0.125, 0.0]
    """

    family = "histogram"
    figure = "histogram"
    card = Card(
        name="Histogram",
        task="density",
        model="densities constant on the cells of a grid",
        strategy="log-likelihood of the rows",
        algorithm="counting",
        guarantee=("density.log-likelihood", "histogram.counts"),
    )

    constraints: ClassVar = {"alpha": Number(low=0.0, why="it is a number of rows")}

    _: KW_ONLY
    bins: Any = "rice"
    bounds: Any = None
    alpha: float = 0.0
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "HistogramDensity":
        """Fit to rows X; y is not used."""
        check(self)
        rows = read_rows(self, X, y, sample_weight)
        require_finite(rows, self)
        with fit_log(self, 1, X, None, sample_weight) as log:
            bins = self._bins(rows)
            self.edges_ = self._grid(rows, bins)
            self._count(rows, bins)
            log.step(0.0, 0.0, cells_=self.cells_, counts_=self.counts_)
        return self

    def _bins(self, rows: Rows) -> int:
        n, d = float(rows.sum(_weight)), rows.n_features
        if self.bins == "rice":
            bins = max(1, int(np.ceil(2 * n ** (1 / (d + 2)))))
        elif isinstance(self.bins, (int, np.integer)) and not isinstance(self.bins, bool) and self.bins >= 1:
            bins = int(self.bins)
        else:
            raise refuse(self, f"bins must be an integer >= 1 or 'rice'; got {self.bins!r}.")
        if bins**d > _MOST_CELLS:
            raise refuse(self, f"{bins} bins along each of {d} columns make more than 2^62 cells; use fewer of either.")
        return bins

    def _grid(self, rows: Rows, bins: int) -> np.ndarray:
        if self.bounds is None:
            lows, highs = zip(*rows.map(_range))
            low, high = np.min(lows, axis=0), np.max(highs, axis=0)
            same = low == high
            pad = np.where(same, np.maximum(0.5, np.abs(low) * 1e-6), 0.0)
            low, high = low - pad, high + pad
        else:
            try:
                low, high = (np.broadcast_to(end, rows.n_features).astype(float) for end in self.bounds)
            except (TypeError, ValueError):
                raise refuse(
                    self, f"bounds must be (low, high), numbers or one for each column; got {self.bounds!r}."
                ) from None
        edges = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, bins + 1)
        edges[:, -1] = high
        if not np.isfinite(edges).all() or not (np.diff(edges, axis=1) > 0).all():
            raise refuse(self, "each column needs low < high, far enough apart for its bins; got bounds that are not.")
        return edges

    def _count(self, rows: Rows, bins: int) -> None:
        parts = rows.map(_cells_of_block, self.edges_)
        codes, weights = (np.concatenate(part) for part in zip(*parts))
        if not len(codes):
            raise refuse(self, "no row lies within bounds.")
        known, which = np.unique(codes, return_inverse=True)
        counts = np.bincount(which, weights=weights)
        known, self.counts_ = known[counts > 0], counts[counts > 0]
        self.cells_ = _places(known, bins, len(self.edges_))

    @property
    def alpha_(self) -> np.ndarray:
        """The rows added to each cell, as the checker reads them."""
        return np.array([float(self.alpha)])

    def _log_density(self, X: np.ndarray) -> np.ndarray:
        bins, d = self.edges_.shape[1] - 1, len(self.edges_)
        places, inside = _find(X, self.edges_)
        known, codes = _codes(self.cells_, bins), _codes(places, bins)
        at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        counts = np.where(known[at] == codes, self.counts_[at], 0.0) + self.alpha_[0]
        total = self.counts_.sum() + self.alpha_[0] * float(bins**d)
        widths = np.take_along_axis(np.diff(self.edges_, axis=1), places.T, axis=1)
        with np.errstate(divide="ignore"):
            return np.log(np.where(inside, counts, 0.0) / total) - np.log(widths).sum(axis=0)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return rows drawn from the density, (n_samples, n_features), and the place in `cells_` of each, -1 for a cell
        without rows."""
        random = self._draws(n_samples, random_state)
        bins, d = self.edges_.shape[1] - 1, len(self.edges_)
        spare = self.alpha_[0] * float(bins**d)
        kept = random.uniform(size=int(n_samples)) * (self.counts_.sum() + spare) >= spare
        drawn = random.choice(len(self.counts_), size=int(n_samples), p=self.counts_ / self.counts_.sum())
        places = np.where(kept[:, None], self.cells_[drawn], random.randint(bins, size=(int(n_samples), d)))
        low = np.take_along_axis(self.edges_, places.T, axis=1)
        width = np.take_along_axis(np.diff(self.edges_, axis=1), places.T, axis=1)
        known, codes = _codes(self.cells_, bins), _codes(places, bins)
        at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        X = (low + width * random.uniform(size=low.shape)).T
        return X, np.where(known[at] == codes, at, -1)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the density."""
        widths = float(np.abs(np.log(np.diff(self.edges_))).max(axis=1).sum())
        more = widths + np.log(rows.n_rows + 1) + 64
        yield Density(_bounded, (self._log_density, 4 * (2 * rows.n_features + 64) * _UNIT, more))

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the log-likelihood, and that the counts are those of the rows."""
        outside = int(rows.sum(_outside, self.edges_))
        if outside:
            yield NotApplicable("density.log-likelihood", Message("why.outside-grid", rows=outside))
        else:
            yield log_likelihood(self, rows)
        if rows.has_weight:
            yield NotApplicable("histogram.counts", Message("why.weights.histogram"))
        else:
            yield Claim("histogram.counts", float(outside), params={"rows": rows.n_rows})


def _find(X: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each row's cell (rows, d), the nearest one if it lies outside, and if it lies inside."""
    bins = edges.shape[1] - 1
    places = np.stack([np.searchsorted(e, x, side="right") - 1 for e, x in zip(edges, X.T)], axis=1)
    places = np.where(edges[:, -1] == X, bins - 1, places)
    inside = ((places >= 0) & (places < bins)).all(axis=1)
    return np.clip(places, 0, bins - 1), inside


def _codes(places: np.ndarray, bins: int) -> np.ndarray:
    """Return one integer for each cell: the places as digits."""
    codes = np.zeros(len(places), dtype=np.int64)
    for column in places.T:
        codes = codes * bins + column
    return codes


def _places(codes: np.ndarray, bins: int, d: int) -> np.ndarray:
    places = np.empty((len(codes), d), dtype=np.int64)
    for j in range(d - 1, -1, -1):
        codes, places[:, j] = np.divmod(codes, bins)
    return places


def _cells_of_block(block: Block, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells that rows of the block lie in, and the weight of the rows in each."""
    places, inside = _find(block.X, edges)
    weight = np.ones(len(block.X)) if block.weight is None else block.weight
    codes, which = np.unique(_codes(places[inside], edges.shape[1] - 1), return_inverse=True)
    return codes, np.bincount(which, weights=weight[inside], minlength=len(codes))


def _range(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and largest entry of each column, in rows that have a weight."""
    X = block.X if block.weight is None else block.X[block.weight > 0]
    if not len(X):
        return np.full(block.X.shape[1], np.inf), np.full(block.X.shape[1], -np.inf)
    return X.min(axis=0), X.max(axis=0)


def _weight(block: Block) -> float:
    return float(len(block.X) if block.weight is None else block.weight.sum())


def _outside(block: Block, edges: np.ndarray) -> int:
    return int(np.count_nonzero(~_find(block.X, edges)[1]))


def _bounded(block: Block, log_density: Any, unit: float, more: float) -> tuple[np.ndarray, np.ndarray]:
    """Return ln p(x) of the rows of a block and how far rounding can move it."""
    values = log_density(block.X)
    return values, unit * (np.where(np.isfinite(values), np.abs(values), 0.0) + more)

"""Columns as slots: levels, intervals between cuts of numbers, and gaps, so that values can be counted together."""

from typing import Any, NamedTuple

import numpy as np

from assay.naive_bayes._reading import levels_of
from assay.params import refuse
from assay.scan import Block, Rows

_SAMPLE = 65_536  # rows that the cuts of numbers are taken from
MOST_CELLS = 2**27


class Cells(NamedTuple):
    """How a row becomes slots.

    A column has a slot for each level, or for each interval between its cuts (the upper one at a cut), and one more for
    missing and unknown values if some were missing in `fit`.
    """

    n_values: np.ndarray  # (d,) levels, or cuts
    values: np.ndarray  # (sum,) the levels' numbers, or the cuts; increasing in each column
    is_cut: np.ndarray  # (d,) 1 for a column of numbers
    has_gap: np.ndarray  # (d,) 1 if missing values have a slot

    @property
    def sizes(self) -> np.ndarray:
        """Number of slots of each column."""
        return self.n_values + self.is_cut + self.has_gap

    @property
    def starts(self) -> np.ndarray:
        """First slot of each column, and after the last one their number."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def column(self) -> np.ndarray:
        """The column that each slot belongs to."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def slots(self, X: np.ndarray) -> np.ndarray:
        """Return the slot of each entry, (n, d); -1 for a value without one."""
        from assay.naive_bayes._dependence_loops import slots_of

        first = np.concatenate([[0], np.cumsum(self.n_values)]).astype(np.int64)
        return slots_of(np.ascontiguousarray(X), first, self.values, self.is_cut, self.has_gap, self.starts)


def cells_of(learner: Any, rows: Rows, n_bins: int) -> Cells:
    """Return the slots of the columns: all levels, and of numbers intervals that hold about equally many rows."""
    levels = levels_of(learner, rows)
    drawn: Any = rows.sample(_SAMPLE)
    weight = np.ones(drawn.n_rows) if drawn.weight is None else drawn.weight
    parts = [_cuts(drawn.X[:, j], weight, n_bins) if one is None else one for j, one in enumerate(levels)]
    gaps = np.any(rows.map(_gaps), axis=0)
    is_cut = np.array([one is None for one in levels]).astype(np.int64)
    empty = [j for j, part in enumerate(parts) if not len(part) and not is_cut[j] and not gaps[j]]
    if empty:
        raise refuse(learner, f"column {empty[0]} has no value.")
    lengths = np.array([len(part) for part in parts])
    return Cells(lengths, np.concatenate([np.empty(0), *parts]), is_cut, gaps.astype(np.int64))


def _cuts(x: np.ndarray, weight: np.ndarray, n_bins: int) -> np.ndarray:
    """Return up to n_bins - 1 cuts at quantiles of the values, each above the least value."""
    there = ~np.isnan(x) & (weight > 0)
    x, weight = x[there], weight[there]
    if not len(x):
        return np.empty(0)
    shares = np.arange(1, n_bins) / n_bins
    found = np.unique(np.quantile(x, shares, method="inverted_cdf", weights=weight))
    return found[found > x.min()]


def _gaps(block: Block) -> np.ndarray:
    X = block.X if block.weight is None else block.X[block.weight > 0]
    return np.isnan(X).any(axis=0)


def check_size(learner: Any, cells: int, what: str) -> None:
    """Refuse a table that memory would not hold, with its size."""
    if cells > MOST_CELLS:
        raise refuse(
            learner,
            f"the counts of {what} have {cells:.3g} cells, {8 * cells / 2**30:.1f} GiB; at most {MOST_CELLS} are held. "
            "Use fewer columns or n_bins, or MixedNB.",
        )

"""Input of classifiers that count: frames and arrays as matrices of codes, and columns as slots.

Numbers are kept, levels become their positions, missing values NaN. In a frame or `Table` the types say which columns
are categorical (text, categories, booleans); in an array, `nominal` lists their positions. A level that was not seen in
`fit` counts as missing. A slot is a level, an interval between cut points of a number, or "missing".
"""

import json
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    validate_data,
)

from assay import data, scan
from assay.base import read_rows, streams
from assay.data.columns import KINDS, ColumnType
from assay.params import refuse
from assay.scan import Block, Rows

_SAMPLE = 65_536  # rows that the cuts of numbers are taken from
MOST_CELLS = 2**27


def rows_to_fit(learner: Any, X: Any, y: Any, weight: Any, *, reset: bool = True) -> Rows:
    """Return rows with their labels; with `reset`, remember the types of the columns in `columns_` (None: numbers)."""
    if streams(X, y):
        if reset:
            learner.columns_ = None
        return read_rows(learner, X, y, weight, reset=reset)
    if y is None:
        raise ValueError(f"{type(learner).__name__} requires y to be passed, but the target y is None.")
    matrix = rows_to_read(learner, X, reset=reset)
    y = _check_y(y, multi_output=False, estimator=learner)
    check_consistent_length(matrix, y)
    if weight is not None:
        weight = _check_sample_weight(
            weight, matrix, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=not reset
        )
    return scan.rows(matrix, y, weight, n_jobs=learner.n_jobs)


def rows_to_read(learner: Any, X: Any, *, reset: bool = False) -> np.ndarray:
    """Return a frame, a `Table` or an array as a matrix of doubles."""
    if isinstance(X, data.Table) or _has_types(X):
        return _from_table(learner, X, reset)
    matrix = validate_data(learner, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
    if reset:
        learner.columns_ = None
    elif learner.columns_ is not None and any(column.kind != "numeric" for column in learner.columns_):
        raise refuse(learner, "was fitted to a table with names and levels; got an array of numbers.")
    return matrix


def _from_table(learner: Any, X: Any, reset: bool) -> np.ndarray:
    if not isinstance(X, data.Table):
        _check_feature_names(learner, X, reset=reset)
    elif reset:
        learner.feature_names_in_ = np.asarray(X.names, dtype=object)
    if reset:
        table = X if isinstance(X, data.Table) else data.read(X, exact=True)
        learner.columns_, learner.n_features_in_ = table.schema, len(table.schema)
        return table.matrix()
    if learner.columns_ is None:
        raise refuse(learner, "X has columns of text, but was fitted on numbers alone.")
    table = X if isinstance(X, data.Table) else data.read(X, schema=learner.columns_)
    return table.require_same_columns(learner.columns_)[0].matrix()


def _has_types(X: Any) -> bool:
    """Tell whether X is a frame with a column that is not a plain number."""
    kinds = getattr(X, "dtypes", None)
    if kinds is None or not hasattr(X, "columns"):
        return False
    listed = list(kinds.values) if hasattr(kinds, "values") and not callable(kinds.values) else list(kinds)
    return any(not str(kind).lower().startswith(("int", "uint", "float")) for kind in listed)


def levels_of(learner: Any, rows: Rows) -> list[np.ndarray | None]:
    """Return the increasing values of the levels of each column, None for numbers: the positions of a table's levels,
    the distinct values of columns that `nominal` names."""
    if learner.columns_ is not None:
        return [
            None if column.kind == "numeric" else np.arange(float(len(column.levels))) for column in learner.columns_
        ]
    named = _named(learner, rows.n_features)
    found: list[np.ndarray | None] = [None] * rows.n_features
    if len(named):
        for j, parts in zip(named, zip(*rows.map(_distinct, named))):
            values = np.unique(np.concatenate(parts))
            found[j] = values[~np.isnan(values)]
    return found


def _named(learner: Any, n_features: int) -> np.ndarray:
    positions = learner.nominal
    if isinstance(positions, str) and positions == "all":
        return np.arange(n_features)
    if positions is None or not np.size(positions):
        return np.empty(0, dtype=np.int64)
    at = np.unique(np.asarray(positions))
    if np.ndim(positions) != 1 or at.dtype.kind not in "iu" or at[0] < 0 or at[-1] >= n_features:
        wanted = f"'all', or list column positions from 0 to {n_features - 1}"
        raise refuse(learner, f"nominal must be {wanted}; got {positions!r}.")
    return at


def _distinct(block: Block, named: np.ndarray) -> list[np.ndarray]:
    X = block.X if block.weight is None else block.X[block.weight > 0]
    return [np.unique(X[:, j]) for j in named]


def types_as_text(columns: tuple[ColumnType, ...] | None) -> np.ndarray:
    """Return name, kind and levels of each column as JSON text; empty if all are numbers."""
    return np.array([json.dumps([one.name, one.kind, list(one.levels)]) for one in columns or ()], dtype=str)


def types_of_text(texts: np.ndarray) -> tuple[ColumnType, ...] | None:
    """Return the reverse of `types_as_text`; refuse what it could not have written."""
    found = []
    for text in texts.tolist():
        name, kind, levels = json.loads(text)
        plain = isinstance(levels, list) and all(isinstance(one, str) for one in (name, *levels))
        if kind not in KINDS or not plain:
            raise ValueError("column_types_ must tell name, kind and levels of each column.")
        found.append(ColumnType(name, kind, tuple(levels)))
    return tuple(found) or None


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
        from assay.naive_bayes._loops import slots_of

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

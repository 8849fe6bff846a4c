"""How rows reach a tree: numbers as they are, values of nominal columns as codes, NaN where a value is missing.

A frame says by its types which columns are nominal (text, categories, booleans) or ordered. For an array, `nominal`
lists the positions of columns whose numbers are only names. A value that was not seen in `fit` counts as missing.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    validate_data,
)

from assay import data
from assay.base import Learner
from assay.data.columns import ColumnType
from assay.params import refuse


class Read(NamedTuple):
    """Rows as a learner of this room sees them."""

    X: np.ndarray  # (rows, columns) doubles
    y: np.ndarray
    weight: np.ndarray | None

    def take(self, at: np.ndarray) -> "Read":
        """Return some of the rows."""
        return Read(self.X[at], self.y[at], None if self.weight is None else self.weight[at])


def read_columns(learner: Learner, X: Any, y: Any = None, weight: Any = None, *, reset: bool = False) -> Read:
    """Return checked rows; with `reset`, remember the columns in `columns_` (None if all are numeric)."""
    if reset and y is None:
        raise ValueError(f"{type(learner).__name__} requires y to be passed, but the target y is None.")
    X = _matrix(learner, X, reset)
    if y is None:
        return Read(X, np.empty(0), None)
    numeric = not is_classifier(learner)
    y = _check_y(y, multi_output=False, y_numeric=numeric, estimator=learner)
    check_consistent_length(X, y)
    if weight is not None:
        weight = _check_sample_weight(weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.sum() > 0:
            raise refuse(learner, "the sample weights are all zero; at least one row must count.")
        if reset and not weight.all():  # a row that does not count must not move a border between values either
            counts = np.flatnonzero(weight)
            X, y, weight = X[counts], y[counts], weight[counts]
    return Read(X, np.asarray(y, dtype=np.float64) if numeric else y, weight)


def nominal_levels(learner: Learner) -> dict[int, int]:
    """Return the number of levels of each nominal column, by position."""
    columns: tuple[ColumnType, ...] = learner.columns_ or ()
    return {i: len(column.levels) for i, column in enumerate(columns) if column.kind == "nominal"}


def _matrix(learner: Learner, X: Any, reset: bool) -> np.ndarray:
    if _has_types(X):
        return _from_frame(learner, X, reset)
    X = validate_data(learner, X, reset=reset, dtype=np.float64, ensure_all_finite=_finite(learner))
    if reset:
        learner.columns_ = _declared(learner, X)
    if learner.columns_ is None:
        return X
    return _coded(learner, X)


def _finite(learner: Learner) -> Any:
    return "allow-nan" if get_tags(learner).input_tags.allow_nan else True


def _has_types(X: Any) -> bool:
    """Tell whether X is a frame with a column that is not a plain number."""
    columns = getattr(X, "dtypes", None)
    if columns is None or not hasattr(X, "columns"):
        return False
    kinds = list(columns.items()) if hasattr(columns, "items") else list(zip(X.columns, columns))
    return any(not str(kind).lower().startswith(("int", "uint", "float")) for _, kind in kinds)


def _from_frame(learner: Learner, X: Any, reset: bool) -> np.ndarray:
    _check_feature_names(learner, X, reset=reset)
    if reset:
        table = data.read(X)
        learner.columns_, learner.n_features_in_ = table.schema, len(table.schema)
        return table.matrix()
    if learner.columns_ is None:
        raise refuse(learner, "X has columns of text, but was fitted on numbers alone.")
    return data.read(X, schema=learner.columns_).require_same_columns(learner.columns_)[0].matrix()


def _declared(learner: Learner, X: np.ndarray) -> tuple[ColumnType, ...] | None:
    positions = getattr(learner, "nominal", None)
    if positions is None or not np.size(positions):
        return None
    at = np.asarray(positions)
    if at.ndim != 1 or at.dtype.kind not in "iu" or at.min() < 0 or at.max() >= X.shape[1]:
        raise refuse(learner, f"nominal must list column positions from 0 to {X.shape[1] - 1}; got {positions!r}.")
    chosen = set(at.tolist())
    names = getattr(learner, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
    return tuple(
        ColumnType(str(name), "nominal", tuple(map(repr, np.unique(X[~np.isnan(X[:, i]), i]).tolist())))
        if i in chosen
        else ColumnType(str(name), "numeric")
        for i, name in enumerate(names)
    )


def _coded(learner: Learner, X: np.ndarray) -> np.ndarray:
    """Return X with the numbers of nominal columns replaced by their positions among the levels."""
    X = X.copy()
    for i, column in enumerate(learner.columns_):
        if column.kind == "nominal":
            levels = np.array([float(level) for level in column.levels])
            at = np.searchsorted(levels, X[:, i])
            known = (at < len(levels)) & (levels[np.minimum(at, len(levels) - 1)] == X[:, i])
            X[:, i] = np.where(known, at, np.nan)
    return X

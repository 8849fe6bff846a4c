"""How rows reach a tree: numbers as they are, values of nominal columns as codes, NaN where a value is missing.

A frame says by its types which columns are nominal (text, categories, booleans) or ordered. For an array, `nominal`
lists the positions of columns whose numbers are only names. A value that was not seen in `fit` counts as missing.
"""

import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array, issparse
from sklearn.base import is_classifier
from sklearn.utils import check_array, get_tags
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    _check_y,
    assert_all_finite,
    check_consistent_length,
    validate_data,
)

from assay import data
from assay.base import Learner, label_classes, read_rows, streams
from assay.data.columns import ColumnType
from assay.params import refuse
from assay.scan import Block, Rows, rows_per_block
from assay.scan import rows as rows_of
from assay.scan.memory import MemoryRows

LARGEST = 1e150  # of the numbers whose rounding certificates bound
_DENSE_SHARE = 0.5  # of the free memory that a dense copy of sparse rows may take
_PART = 2**22  # numbers of a part of sparse rows that is made dense


class Read:
    """Rows as a learner of this room sees them.

    learner : who reads them, named where they are refused;  rows : the values, wherever they are kept;
    y : (rows,) or (rows, outputs) numbers or positions of classes;  weight : (rows,) or None
    """

    def __init__(
        self, learner: Any, X: Any, y: np.ndarray, weight: np.ndarray | None = None, n_jobs: int | None = None
    ) -> None:
        self.learner = learner
        self.rows: Rows = rows_of(X, n_jobs=n_jobs)
        self.y, self.weight = y, weight
        self._X: np.ndarray | None = None

    @property
    def X(self) -> np.ndarray:
        """(rows, columns) doubles; rows that are streamed are read into memory, sparse ones copied."""
        return self.dense("it")

    def dense(self, what: str) -> np.ndarray:
        """Return `X`; if sparse rows are too large to be copied, the refusal names `what` needs it."""
        if self._X is None:
            if (sparse := self.sparse) is not None:
                self._X = _as_dense(sparse, self.learner, what)
            elif isinstance(self.rows, MemoryRows):
                self._X = self.rows.X
            else:
                self._X = self.rows.take(np.arange(self.rows.n_rows))
        return self._X

    @property
    def sparse(self) -> Any:
        """Sparse rows, None if they are dense."""
        return self.rows.X if isinstance(self.rows, MemoryRows) and issparse(self.rows.X) else None

    @cached_property
    def by_column(self) -> csc_array:
        """Sparse rows, column by column, without stored zeros."""
        columns = csc_array(self.sparse)
        columns.sum_duplicates()
        columns.eliminate_zeros()
        return columns

    def dense_parts(self) -> Iterator[np.ndarray]:
        """Yield all rows in order as dense ones, sparse rows a part at a time."""
        if (sparse := self.sparse) is None:
            yield self.X
            return
        step = max(1, _PART // max(1, self.rows.n_features))
        yield from (sparse[i : i + step].toarray() for i in range(0, self.rows.n_rows, step))

    @property
    def has_gaps(self) -> bool:
        """Whether a value is missing; sources that are streamed and sparse rows refuse such values."""
        return isinstance(self.rows, MemoryRows) and self.sparse is None and bool(np.isnan(self.X).any())

    @property
    def shown(self) -> tuple[Any, Any]:
        """What callbacks are shown of X and y: nothing, if the rows are streamed."""
        return (self.rows.X, self.y) if isinstance(self.rows, MemoryRows) else (None, None)

    def take(self, at: np.ndarray, what: str = "it") -> "Read":
        """Return some of the rows, as dense ones, which `what` needs."""
        weight = None if self.weight is None else self.weight[at]
        return Read(self.learner, self.dense(what)[at], self.y[at], weight, self.rows.n_jobs)


def read_columns(learner: Learner, X: Any, y: Any = None, weight: Any = None, *, reset: bool = False) -> Read:
    """Return checked rows; with `reset`, remember the columns in `columns_` (None if all are numeric).

    y is numbers for a regressor, else labels; Parquet files, Arrow tables and Dask collections name their columns.
    """
    if y is not None and streams(X, y):
        data = _streamed(learner, X, y, weight, reset)
        data.y = learner.classes_[data.y] if is_classifier(learner) else data.y
        return data
    if reset and y is None:
        raise ValueError(f"{type(learner).__name__} requires y to be passed, but the target y is None.")
    X = _matrix(learner, X, reset)
    if y is None:
        return Read(learner, X, np.empty(0), None, learner.n_jobs)
    numeric = not is_classifier(learner)
    y = _targets(learner, y, numeric)
    check_consistent_length(X, y)
    if weight is not None:
        weight = _check_sample_weight(weight, X, dtype=np.float64, ensure_non_negative=True)
        X, y, weight = _that_count(learner, X, y, weight, reset)
    return Read(learner, X, np.asarray(y, dtype=np.float64) if numeric else y, weight, learner.n_jobs)


def _targets(learner: Learner, y: Any, numeric: bool) -> np.ndarray:
    """Return checked y; of several columns, if the learner reads them, (rows, outputs)."""
    if not get_tags(learner).target_tags.multi_output:
        return _check_y(y, multi_output=False, y_numeric=numeric, estimator=learner)
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y", estimator=learner, ensure_all_finite=False)
    if numeric and y.dtype.kind in "OUS":
        y = y.astype(np.float64)
    assert_all_finite(y, input_name="y", estimator_name=type(learner).__name__)
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _that_count(learner: Learner, X: Any, y: Any, weight: np.ndarray, reset: bool) -> tuple:
    """Return the rows of weight > 0, if the learner is fitted to them: a row that does not count must not move a
    threshold between values either. Who draws rows by their weights (`keeps_rows_of_no_weight`) counts all of them."""
    if not weight.sum() > 0:
        raise refuse(learner, "the sample weights are all zero; at least one row must count.")
    if not reset or weight.all() or getattr(learner, "keeps_rows_of_no_weight", False):
        return X, y, weight
    counts = np.flatnonzero(weight)
    return X.take(counts) if isinstance(X, Rows) else X[counts], y[counts], weight[counts]


def _streamed(learner: Learner, X: Any, y: Any, weight: Any, reset: bool) -> Read:
    """Return rows that are streamed, with y (of a classifier as positions in `classes_`) and the weights, which are
    small, in memory."""
    known = read_rows(learner, X, y, weight, reset=reset)
    if reset:
        learner.columns_ = None
        if np.size(getattr(learner, "nominal", None) or ()):
            raise refuse(learner, "nominal columns of rows that are streamed are not known; encode them.")
        if is_classifier(learner):
            learner.classes_ = label_classes(learner, known)
    known = known.encoded(learner.classes_) if is_classifier(learner) else known
    target, weights = np.empty(known.n_rows, np.int64 if is_classifier(learner) else np.float64), np.ones(known.n_rows)

    def place(start: int, part: tuple) -> None:
        at = slice(start, start + len(part[0]))
        target[at], weights[at] = part[0], 1.0 if part[1] is None else part[1]

    known.collect(place, _beside)
    if not known.has_weight:
        return Read(learner, known, target)
    if weights.min() < 0:
        row = int(weights.argmin())
        raise refuse(learner, f"row weights must be >= 0; row {row} (counted from 0) has a negative one.")
    known, target, weights = _that_count(learner, known, target, weights, reset)
    return Read(learner, known, target, weights, learner.n_jobs)


def _beside(block: Block) -> tuple[Any, np.ndarray | None]:
    return block.y, block.weight


def read_labelled(
    learner: Learner,
    X: Any,
    y: Any,
    weight: Any = None,
    *,
    reset: bool = True,
    one_class: bool = False,
    weigh: bool = True,
) -> Read:
    """Return checked rows with y as positions in `classes_`, which are set (a list of them for several outputs); the
    weights, if `weigh`, with `class_weight`, if the learner has one. `one_class`: whether a single class will do."""
    if y is not None and streams(X, y):
        data = _streamed(learner, X, y, weight, reset)
        labels: Any = learner.classes_[data.y]
    else:
        data = read_columns(learner, X, y, weight, reset=reset)
        labels = data.y
        check_classification_targets(labels)
        outputs = [_coded_labels(learner, column, one_class) for column in np.atleast_2d(labels.T)]
        learner.classes_ = outputs[0][0] if labels.ndim == 1 else [classes for classes, _ in outputs]  # type: ignore
        data.y = outputs[0][1] if labels.ndim == 1 else np.column_stack([codes for _, codes in outputs])
    if weigh and getattr(learner, "class_weight", None) is not None:
        factor = compute_sample_weight(learner.class_weight, labels)
        data.weight = factor if data.weight is None else data.weight * factor
    return data


def _coded_labels(learner: Learner, y: np.ndarray, one_class: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of some labels and the position of each label among them."""
    known: Any = rows_of(np.empty((len(y), 0)), y)
    classes = label_classes(learner, known, least=1 if one_class else 2)
    return classes, np.asarray(known.encoded(classes).y, dtype=np.int64)


def nominal_levels(learner: Learner) -> dict[int, int]:
    """Return the number of levels of each nominal column, by position."""
    columns: tuple[ColumnType, ...] = learner.columns_ or ()
    return {i: len(column.levels) for i, column in enumerate(columns) if column.kind == "nominal"}


def _matrix(learner: Learner, X: Any, reset: bool) -> np.ndarray:
    if _has_types(X):
        return _from_frame(learner, X, reset)
    X = _array(learner, X, reset)
    if reset:
        learner.columns_ = _declared(learner, X)
    if learner.columns_ is None:
        return X
    return _coded(learner, _as_dense(X, learner, "a nominal column") if issparse(X) else X)


def _bounded(X: np.ndarray) -> np.ndarray:
    """Return X with infinite values at the ends of the numbers that models and certificates hold."""
    step = rows_per_block(X.shape[1])
    if any(np.isinf(X[i : i + step]).any() for i in range(0, len(X), step)):
        return np.clip(X, -LARGEST, LARGEST)
    return X


def _array(learner: Learner, X: Any, reset: bool) -> np.ndarray:
    """Return X as doubles; sparse rows as they are if the learner reads them so (`reads_sparse`), or as a dense copy if
    it takes them."""
    tags = get_tags(learner).input_tags
    sparse, infinite = issparse(X), getattr(learner, "takes_infinite", False)
    X = validate_data(
        learner,
        X,
        reset=reset,
        dtype=np.float64,
        accept_sparse=("csr", "csc") if tags.sparse else False,
        ensure_all_finite=False if infinite else "allow-nan" if tags.allow_nan and not sparse else True,
    )
    if not sparse:
        return _bounded(X) if infinite else X
    nominal = bool(np.size(getattr(learner, "nominal", None) or ()))
    if getattr(learner, "reads_sparse", False) and not nominal:
        return X
    return _as_dense(X, learner, "a nominal column" if nominal else "it")


def _as_dense(X: Any, learner: Any, what: str) -> np.ndarray:
    """Return a dense copy of sparse rows, which `what` needs of the learner's, if it fits into memory."""
    needed, free = 8 * X.shape[0] * X.shape[1], _free_memory()
    if needed > _DENSE_SHARE * free:
        raise refuse(
            learner,
            f"{what} needs a dense copy of sparse rows; {X.shape[0]} x {X.shape[1]} take {needed / 1e9:.1f} GB, more "
            f"than half of the {free / 1e9:.1f} GB that are free. Use fewer columns (TruncatedSVD, SelectKBest), or a "
            "linear model, which reads sparse rows as they are.",
        )
    return X.toarray()


def _free_memory() -> int:
    """Return the bytes of memory that are free now, or 4 GB where the system does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4_000_000_000


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
        table = data.read(X, exact=True)
        learner.columns_, learner.n_features_in_ = table.schema, len(table.schema)
        return table.matrix()
    if learner.columns_ is None:
        try:
            return _array(learner, X, reset)  # categories, or true and false, that are numbers
        except (TypeError, ValueError) as error:
            raise refuse(learner, f"X has columns of text, but was fitted on numbers alone ({error}).") from error
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

"""Rows with and without labels: how the missing ones are marked, and what a certificate is about.

An unlabelled row has the label -1, as in scikit-learn, or NaN; where labels are text or objects also the text "-1",
or None. A certificate is about the labelled rows: `certify` leaves the others out, and whoever verifies passes the
labelled rows alone (`labelled_rows`).
"""

from numbers import Number
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing, column_or_1d, get_tags
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_consistent_length, validate_data

from assay import scan
from assay.base import Learner, label_classes, streams
from assay.guarantees.seal import DataSplit
from assay.params import refuse

UNLABELLED = -1
"""The label of a row that has none, and its code among the classes."""


class Given(NamedTuple):
    """Rows as a fit reads them: codes are positions in `classes_`, -1 for rows without a label."""

    X: Any
    codes: np.ndarray
    weight: np.ndarray | None

    @property
    def known(self) -> np.ndarray:
        return self.codes >= 0

    def rows(self, n_jobs: int | None) -> Any:
        """Return the rows to scan, labels as codes."""
        return scan.rows(self.X, self.codes, self.weight, n_jobs=n_jobs)


def labelled(y: Any) -> np.ndarray:
    """Return which of the labels are known.

    Parameters
    ----------
    y : array-like
        Labels; rows without one have -1, None or NaN.

    Returns
    -------
    ndarray
        True where the label is known.

    Examples
    --------
    >>> labelled([0, -1, 1]).tolist(), labelled(["good", None, -1]).tolist()
    ([True, False, True], [True, False, False])
    """
    y = np.asarray(y, dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
    if y.dtype.kind == "O":
        return np.array([not _is_mark(value) for value in y.tolist()], dtype=bool)
    if y.dtype.kind == "U":
        return y != str(UNLABELLED)
    if y.dtype.kind == "f":
        return (y != UNLABELLED) & ~np.isnan(y)
    return np.ones(len(y), dtype=bool) if y.dtype.kind == "b" else y != UNLABELLED


def _is_mark(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":  # pandas' own gap, which compares with nothing
        return True
    if isinstance(value, str):
        return value == str(UNLABELLED)
    number = isinstance(value, Number) and not isinstance(value, bool)
    return number and (value == UNLABELLED or value != value)


def labelled_rows(X: Any, y: Any) -> tuple[Any, Any]:
    """Return the rows that have labels, and these: what certificates of semi-supervised learners are about.

    Parameters
    ----------
    X : array-like
        Rows.
    y : array-like
        Labels; rows without one have -1, None or NaN.

    Returns
    -------
    tuple of object
        Rows and labels.

    Examples
    --------
    >>> labelled_rows([[1.0], [2.0], [3.0]], [1, -1, 0])
    ([[1.0], [3.0]], [1, 0])
    """
    where = np.flatnonzero(labelled(y))
    return _safe_indexing(X, where), _safe_indexing(y, where)


def plain_labels(labels: np.ndarray) -> np.ndarray:
    """Return labels that are numbers in an array of objects, beside marks that are none, as an array of numbers."""
    text = labels.dtype.kind != "O" or any(isinstance(label, str) for label in labels.tolist())
    return labels if text else np.array(labels.tolist())


class SemiSupervised(Learner):
    """Mixin of learners that also read rows without labels."""

    semi_supervised: ClassVar[bool] = True

    def _labels(self, X: Any, y: Any) -> np.ndarray:
        """Return the labels as one column, after checking that there is one for each row."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = np.asarray(y, dtype=object) if _mixed(y) else y
        column = column_or_1d(y, warn=True)
        check_consistent_length(X, column)
        if not labelled(column).any():
            raise refuse(self, "no row has a label (all are marked -1); learning needs rows of at least 2 classes.")
        return column

    def _read(self, X: Any, y: Any, sample_weight: Any = None, *, ensure_min_samples: int = 1) -> Given:
        """Return rows and codes, after scikit-learn's checks; sets `classes_`."""
        if y is not None and streams(X, y):
            raise refuse(self, "rows without labels must be in memory: pass arrays or a frame.")
        column = self._labels(X, y)
        sparse = "csr" if get_tags(self).input_tags.sparse else False
        X = validate_data(self, X, dtype=np.float64, accept_sparse=sparse, ensure_min_samples=ensure_min_samples)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        known = labelled(column)
        labels = plain_labels(column[known])
        self.classes_ = self._classes(labels)
        codes = np.full(len(column), UNLABELLED, dtype=np.int64)
        codes[known] = np.searchsorted(self.classes_, labels)
        return Given(X, codes, sample_weight)

    def _classes(self, labels: np.ndarray) -> np.ndarray:
        return label_classes(self, scan.rows(np.zeros((len(labels), 1)), labels))

    def _cut(self, X: Any, y: Any, sample_weight: Any, holdout: Any) -> DataSplit:
        """Leave out the rows without labels: a certificate is about the others."""
        known = np.ones(1, dtype=bool) if y is None or streams(X, y) else labelled(y)
        if known.all():
            return super()._cut(X, y, sample_weight, holdout)
        if holdout is not None and not (isinstance(holdout, (tuple, list)) and np.ndim(holdout[0]) > 0):
            raise refuse(self, "where rows lack labels, hold-out rows must be given as a pair (X, y), not by number.")
        if _num_samples(X) != len(known):
            raise ValueError(f"{type(self).__name__}: X has {_num_samples(X)} rows, y {len(known)} labels.")
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return super()._cut(*labelled_rows(X, y), weight, holdout)


def _mixed(y: Any) -> bool:
    """Tell whether a list mixes text with other marks, which an array of text would turn into text."""
    return isinstance(y, (list, tuple)) and any(value is None or isinstance(value, str) for value in y)

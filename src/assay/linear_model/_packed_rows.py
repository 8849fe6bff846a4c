"""Rows for sequential loops: compressed sparse rows, or dense rows one after the other."""

from typing import Any, NamedTuple

import numpy as np


class Packed(NamedTuple):
    """Row i is values[starts[i]:starts[i + 1]] in `columns`; no columns are listed when every entry is
    stored."""

    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray


def packed(X: Any) -> Packed:
    """Return the rows of an array or a SciPy CSR matrix; copies only what has the wrong type."""
    if hasattr(X, "indptr"):
        columns = X.indices.astype(np.int32, copy=False)
        return Packed(X.indptr.astype(np.int64), columns, X.data.astype(np.float64, copy=False))
    n, d = X.shape
    values = np.ascontiguousarray(X, dtype=np.float64).reshape(-1)
    return Packed(np.arange(n + 1) * d, np.empty(0, dtype=np.int32), values)

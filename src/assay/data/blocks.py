"""Cutting rows into blocks, in NumPy and on one thread; the checker of certificates reads data through it.

The borders depend on the number of columns alone, never on the machine or the number of threads. This is what
makes every sum over blocks the same to the last bit wherever it is computed.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array, csr_matrix

Matrix: TypeAlias = "np.ndarray | csr_array | csr_matrix"
"""Rows in memory; a sparse row has what is not zero."""
BLOCK_BYTES = 2**20
"""Aim of `rows_per_block`: a block of doubles that stays in a core's cache."""


class Block(NamedTuple):
    """Consecutive rows. The arrays may be views of the data: a statistic reads them and writes none.

    Parameters
    ----------
    X : ndarray
        Rows.
    y : array-like
        Labels or targets, or None.
    weight : ndarray or None
        Weights, or None.
    start : int
        Number of the first row.
    """

    X: np.ndarray
    """(rows, d) float64, C order."""
    y: Any
    """None, or (rows,) or (rows, k) in C order, in the type it came in."""
    weight: np.ndarray | None
    """(rows,) float64."""
    start: int
    """The number of the block's first row, from 0."""


def rows_per_block(n_features: int) -> int:
    """Return how many rows make a block: a power of two from 256 to 65,536, about 1 MiB of doubles.

    Parameters
    ----------
    n_features : int
        Number of columns.

    Returns
    -------
    int
        Number of rows.

    Examples
    --------
    >>> rows_per_block(28)
    4096
    """
    wanted = BLOCK_BYTES // (8 * max(n_features, 1))
    return min(max(1 << (wanted.bit_length() - 1 if wanted else 0), 256), 65_536)


def block(X: Matrix, y: np.ndarray | None, weight: np.ndarray | None, start: int, stop: int) -> Block:
    """Return the rows from start to stop as a block; copy only what is not tidy."""
    return Block(
        _tidy(_dense(X[start:stop]), np.float64),
        None if y is None else _tidy(y[start:stop]),
        None if weight is None else _tidy(weight[start:stop], np.float64), start,
    )  # fmt: skip


def _dense(part: Matrix) -> np.ndarray:
    """Return sparse rows as an array; a block is small, so the whole table is never dense."""
    return part if isinstance(part, np.ndarray) else part.toarray()


def _tidy(values: np.ndarray, dtype: type | None = None) -> np.ndarray:
    """Return the values in C order and aligned: BLAS and NumPy round differently on other layouts."""
    values = np.ascontiguousarray(values, dtype)
    return values if values.flags.aligned else values.copy()


def blocks(X: Matrix, y: np.ndarray | None = None, weight: np.ndarray | None = None) -> Iterator[Block]:
    """Yield the blocks of two-dimensional X, and of y and weight beside it, in order.

    >>> [b.X.shape for b in blocks(np.zeros((10_000, 28)))]
    [(4096, 28), (4096, 28), (1808, 28)]
    """
    step = rows_per_block(X.shape[1])
    for start in range(0, X.shape[0], step):
        yield block(X, y, weight, start, start + step)

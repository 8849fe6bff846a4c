"""Sums of logistic regression over rows with few entries, which are only multiplied with, never made dense.

They are those of `_logistic_sums`, over all rows at once; of two classes and many entries by compiled loops on threads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from assay.data.blocks import Block
from assay.linear_model import _logistic_sums as sums
from assay.scan import Rows, thread_map

Product = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
_FILLED = 0.1  # share of entries up to which products with sparse rows are the faster ones
_COLUMNS = 100  # columns from which they are
_MANY = 100_000  # entries from which loops on threads are worth compiling
_PARTS = 8  # of the rows, whatever the number of threads, so that sums are the same to the bit


def thin_block(rows: Rows) -> Block | None:
    """Return all rows as one block whose X is sparse, or None if they are not thin."""
    X: Any = getattr(rows, "X", None)
    if not sp.issparse(X) or X.shape[1] < _COLUMNS or X.nnz > _FILLED * X.shape[0] * X.shape[1]:
        return None
    return Block(X, rows.y, rows.weight, 0)  # type: ignore[attr-defined]


def value_slopes(
    block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray, n_jobs: int | None = None
) -> sums.Sums:
    """Return sum C_i loss_i, its gradient in W and in b."""
    if len(coef) > 1:
        return sums.multinomial(block, coef, intercept, cost)
    C, sign = sums.costs(block, cost), 2.0 * block.y - 1.0
    if _has_many(block.X):
        from assay.loops.sparse_logistic import loss_slopes

        value, slope, pull = _over_parts(loss_slopes, block.X, n_jobs, coef[0], intercept[0], sign, np.atleast_1d(C))
        return float(value), slope[None, :], np.array([pull])
    z = sign * (block.X @ coef[0] + intercept[0])
    slopes = -C * sign * expit(-z)
    return float(np.sum(C * np.logaddexp(0.0, -z))), (block.X.T @ slopes)[None, :], np.array([slopes.sum()])


def products(
    block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray, n_jobs: int | None = None
) -> Product:
    """Return a function that multiplies the Hessian with (V, v0)."""
    if len(coef) > 1:
        return partial(sums.multinomial_product, block, coef, intercept, cost)
    s = block.X @ coef[0] + intercept[0]
    curvature, transposed = sums.costs(block, cost) * expit(s) * expit(-s), block.X.T

    def product(v: np.ndarray, v0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if _has_many(block.X):
            from assay.loops.sparse_logistic import curved

            found, total = _over_parts(curved, block.X, n_jobs, v[0], v0[0], curvature)
            return found[None, :], np.array([total])
        along = curvature * (block.X @ v[0] + v0[0])
        return (transposed @ along)[None, :], np.array([along.sum()])

    return product


def _has_many(X: Any) -> bool:
    """Tell whether loops over the entries on threads are faster than SciPy's products: each part has its own sums."""
    many = X.nnz >= max(_MANY, 2 * _PARTS * X.shape[1])
    return bool(many and X.format == "csr" and X.dtype == np.float64)


def _over_parts(loop: Any, X: Any, n_jobs: int | None, *arguments: Any) -> tuple[Any, ...]:
    """Return the sums of a loop over all rows, part by part."""
    cuts = [round(k * X.shape[0] / _PARTS) for k in range(_PARTS + 1)]
    columns, ends = (own.view(f"u{own.itemsize}") for own in (X.indices, X.indptr))  # none is asked for its sign
    found = thread_map(
        lambda k: loop(X.data, columns, ends, cuts[k], cuts[k + 1], *arguments), range(_PARTS), n_jobs=n_jobs
    )
    return tuple(sum(parts[1:], parts[0]) for parts in zip(*found))


def total_cost(block: Block, cost: np.ndarray) -> float:
    """Return the sum of all C_i."""
    return float(np.sum(np.broadcast_to(sums.costs(block, cost), block.X.shape[0])))


def squares(block: Block, cost: np.ndarray) -> np.ndarray:
    """Return sum C_i (x^2, 1)."""
    weight = np.broadcast_to(sums.costs(block, cost), block.X.shape[0])
    X: Any = block.X  # sparse
    return np.append(X.power(2).T @ weight, weight.sum())

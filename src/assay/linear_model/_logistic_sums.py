"""Sums of logistic regression over the rows of a block.

Rows with few entries are one block, which is only multiplied with, never made dense; of two classes and many entries
by compiled loops on threads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from assay.data.blocks import Block
from assay.scan import Rows, thread_map
from assay.scan.memory import in_stretches

Sums = tuple[float, np.ndarray, np.ndarray]
Product = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
_FILLED = 0.1  # share of entries up to which products with sparse rows are the faster ones
_COLUMNS = 100  # columns from which they are
_MANY = 100_000  # entries from which loops on threads are worth compiling
_PARTS = 8  # of the rows, whatever the number of threads, so that sums are the same to the bit


def costs(block: Block, cost: np.ndarray) -> np.ndarray | float:
    """Return C_i of the rows; one number if all are equal."""
    if block.weight is None and (cost == cost[0]).all():
        return float(cost[0])
    return cost[block.y] if block.weight is None else cost[block.y] * block.weight


def total_cost(block: Block, cost: np.ndarray) -> float:
    return float(np.sum(np.broadcast_to(costs(block, cost), len(block.X))))


def class_counts(block: Block, n_classes: int) -> np.ndarray:
    """Return the number (weight) of rows of each class."""
    if block.weight is not None and not (block.weight >= 0).all():
        raise ValueError("row weights must be finite and >= 0.")
    return np.bincount(block.y, weights=block.weight, minlength=n_classes).astype(float)


def _compiled_arguments(block: Block, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return block.X, block.y, np.empty(0) if block.weight is None else block.weight, cost


def _binary(block: Block, step: int, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray) -> Sums:
    from assay.loops.logistic import loss_stretch

    value, slope, intercept_slope = loss_stretch(*_compiled_arguments(block, cost), coef[0], intercept[0], step)
    return value, slope[None, :], np.array([intercept_slope])


@in_stretches(_binary)
def binary(block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray) -> Sums:
    """Return sum C_i loss_i, its gradient in w (1, d) and in b (1,)."""
    return _binary(block, len(block.X), coef, intercept, cost)


def _part(block: Block, rows: slice) -> Block:
    return Block(block.X[rows], block.y[rows], None if block.weight is None else block.weight[rows], block.start)


def _binary_hessian(block: Block, step: int, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray) -> np.ndarray:
    from assay.loops.logistic import curvatures, hessian_stretch
    from assay.loops.moments import by_tiles, moments

    if by_tiles(block.X[:step]):
        width = block.X.shape[1] + 1
        return hessian_stretch(*_compiled_arguments(block, cost), coef[0], intercept[0], step)[:width, :width]
    if len(block.X) > step:  # each block by BLAS, and their sum as `hessian_stretch` has it
        middle = len(block.X) // 2
        halves = (_part(block, slice(None, middle)), _part(block, slice(middle, None)))
        first, second = (_binary_hessian(half, step, coef, intercept, cost) for half in halves)
        return first + second
    weight = curvatures(*_compiled_arguments(block, cost), coef[0], intercept[0])
    return moments(block.X, np.empty((len(weight), 0)), weight, np.zeros(block.X.shape[1]))


@in_stretches(_binary_hessian)
def binary_hessian(block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return sum C_i p (1 - p) (x, 1)(x, 1)^T."""
    return _binary_hessian(block, len(block.X), coef, intercept, cost)


def binary_product(
    block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray, v: np.ndarray, v0: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the Hessian times (v, v0)."""
    from assay.loops.logistic import curvatures

    along = curvatures(*_compiled_arguments(block, cost), coef[0], intercept[0]) * (block.X @ v[0] + v0[0])
    return (along @ block.X)[None, :], np.array([along.sum()])


def second_moments(block: Block, cost: np.ndarray) -> np.ndarray:
    """Return sum C_i (x, 1)(x, 1)^T."""
    from assay.loops.moments import moments

    weight = np.broadcast_to(costs(block, cost), len(block.X)).astype(float)
    return moments(block.X, np.empty((len(weight), 0)), weight, np.zeros(block.X.shape[1]))


def squares(block: Block, cost: np.ndarray) -> np.ndarray:
    """Return sum C_i (x^2, 1): the diagonal of `second_moments`."""
    weight = np.broadcast_to(costs(block, cost), len(block.X))
    return np.append(weight @ block.X**2, weight.sum())


def probabilities(block: Block, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return softmax(s) and logsumexp(s) - s_y."""
    s = block.X @ coef.T
    s += intercept
    s -= s.max(axis=1, keepdims=True)
    own = s[np.arange(len(s)), block.y]
    np.exp(s, out=s)
    total = s.sum(axis=1)
    s /= total[:, None]
    return s, np.log(total) - own


def multinomial(block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray) -> Sums:
    """Return sum C_i loss_i, its gradient in W (K, d) and in b (K,)."""
    p, loss = probabilities(block, coef, intercept)
    C = np.broadcast_to(costs(block, cost), len(p))
    p[np.arange(len(p)), block.y] -= 1.0
    p *= C[:, None]
    return float(loss @ C), p.T @ block.X, p.sum(axis=0)


def multinomial_product(
    block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray, v: np.ndarray, v0: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the Hessian times (V, v0): rows C_i (p * u - p <p, u>), u = V x + v0."""
    p, _ = probabilities(block, coef, intercept)
    u = block.X @ v.T + v0
    along = p * (u - (p * u).sum(axis=1, keepdims=True)) * np.broadcast_to(costs(block, cost), len(p))[:, None]
    return along.T @ block.X, along.sum(axis=0)


def errors(block: Block, coef: np.ndarray, intercept: np.ndarray) -> int:
    """Return the number of rows, of those with a weight, that are not strictly on the right side."""
    s = block.X @ coef.T + intercept
    if s.shape[1] == 1:
        wrong = s[:, 0] * (2.0 * block.y - 1.0) <= 0
    else:
        own = s[np.arange(len(s)), block.y]
        s[np.arange(len(s)), block.y] = -np.inf
        wrong = own <= s.max(axis=1)
    return int(np.count_nonzero(wrong if block.weight is None else wrong & (block.weight > 0)))


def largest_score(block: Block, coef: np.ndarray, intercept: np.ndarray) -> float:
    return float(np.abs(block.X @ coef.T + intercept).max())


def largest_norm(block: Block) -> float:
    """Return the largest |x|^2."""
    return float(np.einsum("ij,ij->i", block.X, block.X).max())


def thin_block(rows: Rows) -> Block | None:
    """Return all rows as one block whose X is sparse, or None if they are not thin."""
    X: Any = getattr(rows, "X", None)
    if not sp.issparse(X) or X.shape[1] < _COLUMNS or X.nnz > _FILLED * X.shape[0] * X.shape[1]:
        return None
    return Block(X, rows.y, rows.weight, 0)  # type: ignore[attr-defined]


def sparse_value_slopes(
    block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray, n_jobs: int | None = None
) -> Sums:
    """Return sum C_i loss_i, its gradient in W and in b."""
    if len(coef) > 1:
        return multinomial(block, coef, intercept, cost)
    C, sign = costs(block, cost), 2.0 * block.y - 1.0
    if _has_many(block.X):
        from assay.loops.logistic import loss_slopes

        value, slope, pull = _over_parts(loss_slopes, block.X, n_jobs, coef[0], intercept[0], sign, np.atleast_1d(C))
        return float(value), slope[None, :], np.array([pull])
    z = sign * (block.X @ coef[0] + intercept[0])
    slopes = -C * sign * expit(-z)
    return float(np.sum(C * np.logaddexp(0.0, -z))), (block.X.T @ slopes)[None, :], np.array([slopes.sum()])


def sparse_products(
    block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray, n_jobs: int | None = None
) -> Product:
    """Return a function that multiplies the Hessian with (V, v0)."""
    if len(coef) > 1:
        return partial(multinomial_product, block, coef, intercept, cost)
    s = block.X @ coef[0] + intercept[0]
    curvature, transposed = costs(block, cost) * expit(s) * expit(-s), block.X.T

    def product(v: np.ndarray, v0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if _has_many(block.X):
            from assay.loops.logistic import curved

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


def sparse_total_cost(block: Block, cost: np.ndarray) -> float:
    """Return the sum of all C_i."""
    return float(np.sum(np.broadcast_to(costs(block, cost), block.X.shape[0])))


def sparse_squares(block: Block, cost: np.ndarray) -> np.ndarray:
    """Return sum C_i (x^2, 1)."""
    weight = np.broadcast_to(costs(block, cost), block.X.shape[0])
    X: Any = block.X  # sparse
    return np.append(X.power(2).T @ weight, weight.sum())

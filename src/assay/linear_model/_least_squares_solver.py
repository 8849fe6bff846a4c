"""The minimiser of the squared loss, by the cheapest way that keeps its digits.

One pass sums the second moments of rows and targets, centred near their means, and a Cholesky factor of the
Gram matrix gives the coefficients. The Gram matrix squares the condition number, so its own condition tells
what was lost: up to 1e2 nothing is done, up to 1e6 one step of iterative refinement repairs it. Beyond that a
blockwise QR factorisation tells whether columns depend on each other; if not, the moments are summed again in
twice the precision, and if so, or if that would take too long, a singular value decomposition of the triangle
gives the solution of least norm. Bjorck 1996, ch. 2. Sparse rows of many columns are only multiplied with.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh, lapack
from scipy.optimize import nnls
from scipy.sparse.linalg import LinearOperator, lsqr

from assay import scan
from assay.data.blocks import Block
from assay.scan import Rows
from assay.scan.memory import MemoryRows

_EASY = 1e2  # condition number of the Gram matrix up to which the factor is used as it is
_REFINABLE = 1e6  # ... up to which one refinement step in double precision restores what was lost
_DEPENDENT = 1e-13  # relative distance to the span of the other columns below which a column depends on them
_AFFORDABLE = 2e9  # rows times squared columns up to which moments are summed in twice the precision, some ten seconds
_WIDE = 2_000  # columns of sparse rows from which their second moments are not formed
_THIN, _FEW = 0.05, 200  # share of entries up to which they are not, from so many columns on
_EPS = float(np.finfo(float).eps)


class Options(NamedTuple):
    """Whether there is an intercept, whether coefficients must be >= 0, and precision and limit of steps where the
    minimum is not computed directly."""

    intercept: bool = True
    positive: bool = False
    tol: float = 1e-6
    steps: int | None = None


class Solution(NamedTuple):
    """Coefficients (d, k), intercepts (k,), the rank found, P there, the norm of its gradient, and the singular values
    of the centred rows if they were computed."""

    coef: np.ndarray
    intercept: np.ndarray
    rank: int
    objective: float
    violation: float
    singular: np.ndarray | None = None


def _is_wide(X: Any) -> bool:
    """Tell whether products with sparse rows cost less than their second moments."""
    n, d = X.shape
    return d > _WIDE or (d >= _FEW and X.nnz <= _THIN * n * d)


class _Means(NamedTuple):
    """Where rows and targets are centred (zero without intercept), and the sum of the row weights."""

    x: np.ndarray
    y: np.ndarray
    weight: float

    def vary(self, squares: np.ndarray) -> np.ndarray:
        """Tell which columns, of these sums of squares about the mean, vary by more than rounding does."""
        return squares > self.weight * (8 * _EPS * np.abs(self.x)) ** 2


class _Problem(NamedTuple):
    """Centred second moments: P depends on the rows through these alone."""

    gram: np.ndarray
    cross: np.ndarray
    total: float
    alpha: float


def solve_each(rows: Rows, alpha: Any, options: Options) -> Solution | None:
    """Minimise P for a penalty of each target."""
    if not isinstance(rows, MemoryRows):
        raise ValueError("a penalty for each target needs rows in memory: arrays or a frame.")
    y = np.asarray(rows.y).reshape(rows.n_rows, -1)
    if y.shape[1] != len(alpha):
        raise ValueError(f"Number of targets and number of penalties do not correspond: {len(alpha)} != {y.shape[1]}")
    parts = [scan.rows(rows.X, y[:, [j]], rows.weight, n_jobs=rows.n_jobs) for j in range(y.shape[1])]
    results = [solve(part, float(item), options) for part, item in zip(parts, alpha, strict=True)]
    if any(result is None for result in results):
        return None
    sound = [result for result in results if result is not None]
    return Solution(
        np.hstack([item.coef for item in sound]),
        np.concatenate([np.ravel(item.intercept) for item in sound]),
        min(item.rank for item in sound),
        sum(item.objective for item in sound),
        max(item.violation for item in sound),
    )


def solve(rows: Rows, alpha: float, options: Options) -> Solution | None:
    """Minimise P = 1/2 sum s_i |y_i - W x_i - b|^2 + alpha/2 |W|^2; None if an entry or a square is not
    finite."""
    return Equations(rows, options).solve(alpha)


class Equations:
    """The normal equations of rows and targets: sums over the rows, made once and solved for any number of penalties.

    Rows in memory that are fewer than their columns have the equations of the dual, one for each row.
    """

    def __init__(self, rows: Rows, options: Options) -> None:
        self.rows, self.options = rows, options

    @cached_property
    def start(self) -> np.ndarray:
        return pilot(self.rows, self.options.intercept)

    @cached_property
    def moments(self) -> np.ndarray:
        return np.asarray(self.rows.sum(second_moments, self.start))

    @property
    def means(self) -> "_Means":
        d = self.rows.n_features
        return _means(self.moments[d], self.start, d, self.options.intercept)

    @cached_property
    def kernel(self) -> "Kernel | None":
        """The dual's equations; None if an entry or a square is not finite."""
        return _kernel(self.rows, self.start, self.options.intercept)

    @property
    def is_wide(self) -> bool:
        return isinstance(self.rows, MemoryRows) and self.rows.n_rows <= self.rows.n_features

    def centred(self, alpha: float) -> "_Problem":
        return _centred(self.moments, self.means, alpha, self.options.intercept)

    def solve(self, alpha: float) -> Solution | None:
        """Return the minimiser for one penalty."""
        rows, options = self.rows, self.options
        if isinstance(rows, MemoryRows) and sp.issparse(rows.X) and _is_wide(rows.X) and not options.positive:
            with scan.one_blas_thread():  # its products of vectors are too short for more
                return _by_lsqr(rows, alpha, options)
        if options.positive or (alpha == 0 and rows.n_rows < rows.n_features + options.intercept):
            return self._by_triangle(alpha)
        if alpha > 0 and self.is_wide:
            return None if self.kernel is None else self.kernel.solve(alpha)
        return self._by_moments(alpha) if np.isfinite(self.moments).all() else None

    def _by_triangle(self, alpha: float) -> Solution | None:
        """Return the minimiser >= 0, or the one of least norm."""
        sums = self.rows.sum(_first_moments, self.start)
        if not np.isfinite(sums).all():
            return None
        means = _means(sums, self.start, self.rows.n_features, self.options.intercept)
        triangle = _triangle(self.rows, means, alpha)
        return (_non_negative if self.options.positive else _by_svd)(self.rows, means, triangle, alpha)

    def _by_moments(self, alpha: float) -> Solution | None:
        rows, means, problem = self.rows, self.means, self.centred(alpha)
        scale = powers_of_two(np.sqrt(np.diag(problem.gram) + alpha))
        condition, factor = _factor((problem.gram + alpha * np.eye(len(scale))) * np.outer(scale, scale))
        if factor is not None:
            direct = _by_cholesky(rows, problem, means, scale, factor, refine=condition > _EASY)
            return direct._replace(singular=_singular(problem.gram) if alpha == 0 else None)
        triangle = _triangle(rows, means, alpha)
        if rows.n_rows * rows.n_features**2 <= _AFFORDABLE and _independent(triangle, rows.n_features):
            result = _in_twice_the_precision(rows, means, scale, alpha, self.options.intercept)
            if result is not None:
                return result
        return _by_svd(rows, means, triangle, alpha)


def pilot(rows: Rows, intercept: bool) -> np.ndarray:
    """Return a point (d + k,) near the mean of rows and targets, from the first block; zero without
    intercept."""
    first = next(iter(rows.blocks()))
    beside = np.hstack([first.X, targets(first)])
    with np.errstate(invalid="ignore", over="ignore"):
        return beside.mean(axis=0) if intercept else np.zeros(beside.shape[1])


def powers_of_two(norms: np.ndarray) -> np.ndarray:
    """Return for each column the power of two that brings its norm into [1/2, 1); scaling by it is exact."""
    exponents = np.frexp(norms)[1]
    return np.ldexp(1.0, np.where(norms > 0, -exponents, 0))


def targets(block: Block) -> np.ndarray:
    """Return y as (n, k) doubles."""
    y = block.y
    if y is None or y.dtype.kind not in "fiub":
        raise ValueError(f"the target of a regression must be numbers; got {None if y is None else y.dtype}.")
    return np.ascontiguousarray(y.reshape(len(block.X), -1), dtype=np.float64)


def second_moments(block: Block, start: np.ndarray) -> np.ndarray:
    """Return sum s_i a_i a_i^T, a_i = (x_i, 1, y_i), x_i and y_i less the pilot."""
    from assay.loops.moments import moments

    d = block.X.shape[1]
    with np.errstate(invalid="ignore", over="ignore"):
        return moments(block.X, targets(block) - start[d:], block.weight, start[:d])


def _first_moments(block: Block, start: np.ndarray) -> np.ndarray:
    """Return sum s_i (x_i, 1, y_i), x_i and y_i less the pilot: one row of `second_moments`."""
    d = block.X.shape[1]
    weight = np.ones(len(block.X)) if block.weight is None else block.weight
    with np.errstate(invalid="ignore", over="ignore"):
        return np.concatenate([weight @ (block.X - start[:d]), [weight.sum()], weight @ (targets(block) - start[d:])])


def _means(sums: np.ndarray, start: np.ndarray, d: int, intercept: bool) -> _Means:
    """Return the weighted means from first moments about the pilot."""
    weight = float(sums[d])
    shift = sums / weight if intercept and weight > 0 else np.zeros(len(sums))
    return _Means(start[:d] + shift[:d], start[d:] + shift[d + 1 :], weight)


def _centred(moments: np.ndarray, means: _Means, alpha: float, intercept: bool) -> _Problem:
    """Move the moments from the pilot to the mean; columns that do not vary become zero."""
    d = len(means.x)
    central = moments - np.outer(moments[d], moments[d] / means.weight) if intercept else moments
    live = np.append(means.vary(np.diag(central)[:d]), np.ones(len(central) - d, dtype=bool))
    central = central * np.outer(live, live)
    return _Problem(central[:d, :d], central[:d, d + 1 :], float(np.trace(central[d + 1 :, d + 1 :])), alpha)


def _factor(matrix: np.ndarray) -> tuple[float, tuple[np.ndarray, bool] | None]:
    """Return an estimate of the condition number and a Cholesky factor, None if the matrix is not safely positive
    definite."""
    try:
        factor = cho_factor(matrix)
    except LinAlgError:
        return np.inf, None
    reciprocal, _ = lapack.dpocon(factor[0], np.abs(matrix).sum(axis=0).max(), uplo="U")
    condition = 1.0 / float(reciprocal) if reciprocal > 0 else np.inf
    return condition, factor if condition <= _REFINABLE else None


def _by_cholesky(
    rows: Rows,
    problem: _Problem,
    means: _Means,
    scale: np.ndarray,
    factor: tuple[np.ndarray, bool],
    *,
    refine: bool,
) -> Solution:
    """Solve the normal equations, with one step of refinement if asked."""

    def solved(right: np.ndarray) -> np.ndarray:
        return scale[:, None] * cho_solve(factor, scale[:, None] * right)

    gram, cross, total, alpha = problem
    coef = solved(cross)
    if refine:
        squares, gradient = _at(rows, means, coef, alpha)
        step = solved(gradient)
        left_over = gradient - gram @ step - alpha * step
        squares -= np.sum(step * (gradient + left_over)) + alpha * np.sum(step * (2 * coef + step))
        coef = coef + step
    else:
        left_over = cross - gram @ coef - alpha * coef
        squares = total - np.sum(coef * (cross + left_over)) - alpha * np.sum(coef**2)
    return _solution(means, coef, alpha, len(scale), squares, left_over)


def _at(rows: Rows, means: _Means, coef: np.ndarray, alpha: float) -> tuple[float, np.ndarray]:
    """Return sum s_i r_i^2 and the descent direction of P, both at `coef`, from the rows themselves."""
    squares, cross = rows.sum(_residual_moments, coef, means.x, means.y)
    return float(squares), cross - alpha * coef


def _residual_moments(block: Block, coef: np.ndarray, mean: np.ndarray, mean_y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return sum_i s_i r_i^2 and sum_i s_i (x_i - mean) r_i."""
    centred = block.X - mean
    residual = (targets(block) - mean_y) - centred @ coef
    weighted = residual if block.weight is None else residual * block.weight[:, None]
    return float(np.sum(weighted * residual)), centred.T @ weighted


def _solution(
    means: _Means,
    coef: np.ndarray,
    alpha: float,
    rank: int,
    squares: float,
    gradient: np.ndarray,
    b: Any = None,
) -> Solution:
    intercept = means.y - means.x @ coef if b is None else b
    objective = 0.5 * max(float(squares), 0.0) + 0.5 * alpha * float(np.sum(coef**2))
    return Solution(coef, intercept, rank, objective, float(np.linalg.norm(gradient)))


# More columns than rows ----------------------------------------------------------------------------


class Kernel(NamedTuple):
    """Rows and targets less their means, times the roots of their weights, and the products of all pairs of rows."""

    rows: np.ndarray
    y: np.ndarray
    products: np.ndarray
    means: _Means

    def solve(self, alpha: float) -> Solution | None:
        """Return the minimiser, a combination of the rows: W = A^T (A A^T + alpha)^-1 y."""
        A, y = self.rows, self.y
        condition = float(np.abs(self.products).sum(axis=1).max()) / alpha
        try:
            factor = cho_factor(self.products + alpha * np.eye(len(y))) if condition <= _REFINABLE else None
        except LinAlgError:
            factor = None
        if factor is None:
            U, values, Vt = np.linalg.svd(A, full_matrices=False)
            coef = Vt.T @ ((values / (values**2 + alpha))[:, None] * (U.T @ y))
        else:
            coef = A.T @ cho_solve(factor, y)
        residual = y - A @ coef
        gradient = A.T @ residual - alpha * coef
        if factor is not None and condition > _EASY:
            coef = coef + (gradient - A.T @ cho_solve(factor, A @ gradient)) / alpha
            residual = y - A @ coef
            gradient = A.T @ residual - alpha * coef
        return _solution(self.means, coef, alpha, A.shape[1], float(np.sum(residual**2)), gradient)


def _kernel(rows: Rows, start: np.ndarray, intercept: bool) -> Kernel | None:
    sums = rows.sum(_first_moments, start)
    means = _means(sums, start, rows.n_features, intercept)
    with np.errstate(invalid="ignore", over="ignore"):
        parts = rows.map(_rooted, means.x, means.y)
        A, y = np.vstack([part[0] for part in parts]), np.vstack([part[1] for part in parts])
        A *= means.vary(np.einsum("ij,ij->j", A, A))
        products = A @ A.T
    return Kernel(A, y, products, means) if np.isfinite(sums).all() and np.isfinite(products).all() else None


def _rooted(block: Block, mean: np.ndarray, mean_y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    root = 1.0 if block.weight is None else np.sqrt(block.weight)[:, None]
    return (block.X - mean) * root, (targets(block) - mean_y) * root


# Columns that nearly, or exactly, depend on each other --------------------------------------------


def _triangle(rows: Rows, means: _Means, alpha: float) -> np.ndarray:
    """Return R of the QR factorisation of the centred rows, targets beside them, and of sqrt(alpha) I below
    them."""
    d, k = len(means.x), len(means.y)
    R, *others = rows.map(_block_triangle, means.x, means.y)
    for more in others:
        R = _upper(np.vstack([R, more]))
    R[:, :d] *= means.vary(np.sum(R[:, :d] ** 2, axis=0))
    if alpha > 0:
        R = _upper(np.vstack([R, np.hstack([np.sqrt(alpha) * np.eye(d), np.zeros((d, k))])]))
    return R


def decomposed(rows: Rows, means: _Means) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared singular values of the centred rows and the right singular vectors as columns, from the rows
    themselves and not from their squares."""
    d = len(means.x)
    _, values, Vt = np.linalg.svd(_triangle(rows, means, 0.0)[:, :d], full_matrices=False)
    return values**2, Vt.T


def _upper(A: np.ndarray) -> np.ndarray:
    """Return R of A = Q R."""
    return np.asarray(np.linalg.qr(A, mode="r"))


def _block_triangle(block: Block, mean: np.ndarray, mean_y: np.ndarray) -> np.ndarray:
    A = np.hstack([block.X - mean, targets(block) - mean_y])
    if block.weight is not None:
        A *= np.sqrt(block.weight)[:, None]
    return _upper(A)


def _independent(R: np.ndarray, d: int) -> bool:
    """Tell whether each column keeps a safe distance from the span of those before it."""
    if len(R) < d:
        return False
    return bool((np.abs(np.diag(R)[:d]) > _DEPENDENT * np.linalg.norm(R[:, :d], axis=0)).all())


def _by_svd(rows: Rows, means: _Means, R: np.ndarray, alpha: float) -> Solution | None:
    """Return the minimiser of least norm."""
    d = len(means.x)
    U, values, Vt = np.linalg.svd(R[:, :d], full_matrices=False)
    keep = values > values[0] * max(_DEPENDENT, d * _EPS)
    coef = Vt[keep].T @ ((U[:, keep].T @ R[:, d:]) / values[keep, None])
    squares, gradient = _at(rows, means, coef, alpha)
    result = _solution(means, coef, alpha, int(keep.sum()), squares, gradient) if np.isfinite(squares) else None
    return result._replace(singular=values) if result is not None and alpha == 0 else result


def _singular(gram: np.ndarray) -> np.ndarray:
    """Return the singular values of the rows, largest first, from a Gram matrix that is well conditioned."""
    return np.sqrt(np.maximum(eigvalsh(gram)[::-1], 0.0))


def _non_negative(rows: Rows, means: _Means, R: np.ndarray, alpha: float) -> Solution | None:
    """Return the minimiser with coefficients >= 0 (Lawson and Hanson 1974) from the triangle of the rows."""
    d = len(means.x)
    coef = np.column_stack([nnls(R[:, :d], R[:, j])[0] for j in range(d, R.shape[1])])
    squares, gradient = _at(rows, means, coef, alpha)
    gradient = np.where(coef > 0, gradient, np.maximum(gradient, 0.0))
    return _solution(means, coef, alpha, d, squares, gradient) if np.isfinite(squares) else None


def _by_lsqr(rows: MemoryRows, alpha: float, options: Options) -> Solution | None:
    """Return the minimiser for sparse rows of many columns by the method of Paige and Saunders (1982), which needs
    products with the rows alone; the columns are centred inside the products."""
    X, y = rows.X, np.asarray(rows.y, dtype=np.float64).reshape(rows.n_rows, -1)
    weight = np.ones(len(y)) if rows.weight is None else np.asarray(rows.weight, dtype=np.float64)
    if not (np.isfinite(X.data).all() and np.isfinite(y).all() and np.isfinite(weight).all()):
        return None
    total, root = float(weight.sum()), np.sqrt(weight)
    zero = np.zeros(X.shape[1])
    mean = np.asarray(X.T @ weight).ravel() / total if options.intercept and total > 0 else zero
    mean_y = weight @ y / total if options.intercept and total > 0 else np.zeros(y.shape[1])
    rooted = LinearOperator(
        X.shape,
        matvec=lambda v: root * (X @ np.ravel(v) - mean @ np.ravel(v)),
        rmatvec=lambda u: X.T @ (root * np.ravel(u)) - mean * (root @ np.ravel(u)),
    )
    precision = {"atol": options.tol, "btol": options.tol, "iter_lim": options.steps or 10 * X.shape[1]}
    right = root[:, None] * (y - mean_y)
    coef = np.column_stack([lsqr(rooted, column, damp=np.sqrt(alpha), **precision)[0] for column in right.T])
    means = _Means(mean, mean_y, total)
    residual = right - np.column_stack([rooted @ column for column in coef.T])
    gradient = np.column_stack([rooted.rmatvec(column) for column in residual.T]) - alpha * coef
    return _solution(means, coef, alpha, X.shape[1], float(np.sum(residual**2)), gradient)


def _in_twice_the_precision(
    rows: Rows, means: _Means, scale: np.ndarray, alpha: float, intercept: bool
) -> Solution | None:
    """Solve with moments in twice the precision and two refinement steps; None if columns are dependent."""
    from assay.loops import twofold

    d, k = len(means.x), len(means.y)
    size = d + 1 if intercept else d
    high, low = _twofold_sum(rows.map(_twofold_moments, means.x, scale))
    for j in range(d):
        high[j, j], low[j, j] = twofold.add(high[j, j], low[j, j], alpha * scale[j] ** 2, 0.0)
    R, r = high[:size, :size].copy(), low[:size, :size].copy()
    if twofold.cholesky(R, r, _DEPENDENT**2) < size:
        return None
    beta, rest = np.zeros((d + 1, k)), np.zeros((d + 1, k))
    beta[:size], rest[:size] = high[:size, d + 1 :], low[:size, d + 1 :]
    twofold.solve(R, r, beta[:size], rest[:size])
    penalty = np.append(alpha * scale**2, 0.0)[:size, None]
    for _ in range(2):
        step, small = _twofold_sum(rows.map(_twofold_gradient, means.x, scale, beta, rest))
        step, small = step[:size].copy(), small[:size].copy()
        twofold.accumulate(step, small, -penalty * beta[:size], -penalty * rest[:size])
        twofold.solve(R, r, step, small)
        twofold.accumulate(beta[:size], rest[:size], step, small)
    coef = scale[:, None] * beta[:d]
    b = twofold.offset(beta, rest, means.x * scale) if intercept else None
    squares, gradient = _at(rows, means, coef, alpha)
    return _solution(means, coef, alpha, d, squares, gradient, b)


def _twofold_moments(block: Block, center: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from assay.loops.twofold import twofold_moments_block

    weight = np.empty(0) if block.weight is None else block.weight
    return twofold_moments_block(block.X, targets(block), weight, center, scale)


def _twofold_gradient(block: Block, center: Any, scale: Any, high: Any, low: Any) -> tuple[np.ndarray, np.ndarray]:
    from assay.loops.twofold import twofold_gradient_block

    weight = np.empty(0) if block.weight is None else block.weight
    return twofold_gradient_block(block.X, targets(block), weight, center, scale, high, low)


def _twofold_sum(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    from assay.loops.twofold import accumulate

    high, low = parts[0][0].copy(), parts[0][1].copy()
    for more_high, more_low in parts[1:]:
        accumulate(high, low, more_high, more_low)
    return high, low

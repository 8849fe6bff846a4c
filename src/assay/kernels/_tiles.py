"""Gram matrices: whether they are positive semidefinite, with a witness, and their rows in blocks for solvers.

A symmetric function is a kernel iff its Gram matrix is positive semidefinite on every finite set of points; one
matrix that passes proves nothing about the function, one that fails refutes it.

`Expansion` is a function of the reproducing kernel Hilbert space, a sum of kernel sections; `expand` evaluates such
sums at many rows, in double precision.

`tiles(kernel, X, single)` prepares the rows once; `fill(rows, start, stop, out)` then writes kappa(x_rows,
x_start..stop). Three ways: inner products by BLAS and a compiled transform (linear, polynomial, Gaussian); table
look-up of Hamming distances where all features are 0 or 1; and any kernel through its own `block`.
"""

from typing import Any, NamedTuple

import numpy as np

from assay.kernels._algebra import Gaussian, Kernel, Linear, Polynomial, Precomputed
from assay.scan import thread_map

_SAMPLE = 500  # rows whose Gram matrix is tested
_CELLS = 2_000_000  # kernel values that a thread holds at a time


class IndefiniteKernelWarning(UserWarning):
    """The Gram matrix has a negative eigenvalue: the kernel is no inner product on these rows."""


class Definiteness(NamedTuple):
    """Whether K is positive semidefinite up to rounding, its least eigenvalue, and the witness.

    factor : B with B B' = K up to rounding, when `psd`
    direction : unit vector u with u' K u < 0, when not

    Parameters
    ----------
    psd : bool
        Whether K is positive semidefinite up to rounding.
    least : float
        Its smallest eigenvalue.
    factor : ndarray or None
        B with B B' = K, if it is.
    direction : ndarray or None
        Unit vector u with u' K u < 0, if it is not.
    """

    psd: bool
    least: float
    factor: np.ndarray | None
    direction: np.ndarray | None


def definiteness(K: np.ndarray, tol: float = 1e-10) -> Definiteness:
    """Test a symmetric matrix; eigenvalues above -tol times the largest magnitude count as rounding.

    Parameters
    ----------
    K : ndarray
        A symmetric matrix.
    tol : float, default=1e-10
        Relative size of a negative eigenvalue that counts as rounding.

    Returns
    -------
    Definiteness
        The verdict and its witness.

    Examples
    --------
    >>> definiteness(np.tanh(np.array([[0.0, 0.0], [0.0, 1.0]]) - 0.5)).psd
    False
    """
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"definiteness: K must be square; got shape {K.shape}.")
    scale = float(np.abs(K).max(initial=0.0))
    if np.abs(K - K.T).max(initial=0.0) > 1e-9 * scale:
        raise ValueError("definiteness: K must be symmetric.")
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    least = float(values[0])
    if least >= -tol * max(float(np.abs(values).max()), scale):
        return Definiteness(True, least, vectors * np.sqrt(np.maximum(values, 0.0)), None)
    return Definiteness(False, least, None, vectors[:, 0])


def least_eigenvalue(kernel: Kernel, X: np.ndarray) -> float:
    """Return the least eigenvalue of the Gram matrix of the rows (of at most 500, evenly spaced), 0 if rounding could
    have made it negative, or if kernel values are not finite.

    What is negative for some rows has no positive semidefinite Gram matrix for all of them.
    """
    some = np.unique(np.linspace(0, len(X) - 1, min(len(X), _SAMPLE)).astype(int))
    with np.errstate(all="ignore"):
        K = X[np.ix_(some, some)] if isinstance(kernel, Precomputed) else kernel(X[some])
        K = 0.5 * (K + K.T)
    if not np.isfinite(K).all():
        return 0.0
    result = definiteness(K)
    return 0.0 if result.psd else result.least


def embedding(K: np.ndarray) -> np.ndarray:
    """Return B with B B' = K: row i is an image phi(x_i) of point i. An indefinite K has none and is
    refused.

    Parameters
    ----------
    K : ndarray
        A symmetric matrix.

    Returns
    -------
    ndarray
        An image of each point.

    Raises
    ------
    ValueError
        K is not positive semidefinite.
    """
    result = definiteness(K)
    if result.factor is None:
        raise ValueError(f"embedding: K is not positive semidefinite (least eigenvalue {result.least:.4g}).")
    return result.factor


def find_counterexample(
    kernel: Kernel, n_features: int = 1, n_points: int = 6, trials: int = 200, seed: int = 0
) -> np.ndarray | None:
    """Return points whose Gram matrix is not positive semidefinite, or None if none were found among
    random ones.

    Parameters
    ----------
    kernel : Kernel
        A kernel.
    n_features : int, default=1
        Number of columns of the points.
    n_points : int, default=6
        Number of points.
    trials : int, default=200
        Number of sets of points tried.
    seed : int, default=0
        Seed of what is drawn.

    Returns
    -------
    ndarray or None
        The points, or None.
    """
    random = np.random.default_rng(seed)
    for _ in range(trials):
        points = random.normal(size=(n_points, n_features)) * 10 ** random.uniform(-1, 1)
        if not definiteness(kernel(points)).psd:
            return points
    return None


class Expansion:
    """h = sum_i alpha_i kappa(., x_i), with |h|^2 = alpha' K alpha.

    Parameters
    ----------
    kernel : Kernel
        A kernel.
    points : ndarray
        The rows x_i.
    alpha : ndarray
        Coefficient of each row.

    Examples
    --------
    >>> from assay.kernels import Gaussian
    >>> h = Expansion(Gaussian(0.5), np.array([[0.0], [1.0]]), np.array([1.0, -1.0]))
    >>> section = Expansion(Gaussian(0.5), np.array([[0.3]]), np.array([1.0]))
    >>> bool(np.isclose(h.inner(section), h(np.array([[0.3]]))[0]))
    True
    """

    def __init__(self, kernel: Kernel, points: np.ndarray, alpha: np.ndarray) -> None:
        self.kernel, self.points = kernel, np.asarray(points, dtype=np.float64)
        self.alpha = np.asarray(alpha, dtype=np.float64)
        if self.alpha.shape != (len(self.points),):
            raise ValueError(f"Expansion: alpha must have {len(self.points)} entries; got shape {self.alpha.shape}.")

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return h(x) for each row."""
        return self.kernel(X, self.points) @ self.alpha

    def inner(self, other: "Expansion") -> float:
        """Return <self, other>; both must have the same kernel.

        Parameters
        ----------
        other : Expansion
            The other function.
        """
        if self.kernel != other.kernel:
            raise ValueError("Expansion: the inner product needs two functions of the same kernel.")
        return float(self.alpha @ self.kernel(self.points, other.points) @ other.alpha)

    @property
    def norm(self) -> float:
        """The norm in the kernel's space."""
        return float(np.sqrt(max(self.inner(self), 0.0)))


def expand(
    kernel: Kernel, vectors: np.ndarray, coef: np.ndarray, X: np.ndarray, n_jobs: int | None = None
) -> np.ndarray:
    """Return sum_j coef_kj kappa(vector_j, x_i), (n, k); of a precomputed kernel X holds the values.

    >>> from assay.kernels import Linear
    >>> expand(Linear(), np.array([[1.0], [2.0]]), np.array([[3.0, 1.0]]), np.array([[10.0]]))
    array([[50.]])
    """
    if isinstance(kernel, Precomputed):
        return X @ coef.T
    step = max(1, _CELLS // max(1, len(vectors)))
    starts = range(0, len(X), step)
    parts = thread_map(lambda at: kernel.block(X[at : at + step], vectors) @ coef.T, starts, n_jobs=n_jobs)
    return np.concatenate([np.empty((0, len(coef))), *parts])


_CHEAP = 160  # features up to which an inner product in single precision is cheaper than fresh memory
_STRIP = 256  # rows and vectors of a tile in double precision
_BITS_FROM = 24  # features from which counting bits beats inner products


class Tiles:
    """Kernel values between prepared rows.

    n : number of rows; dtype : float32 or float64; diagonal : kappa(x_i, x_i) in double.
    dear : whether computing a value costs more than writing it to fresh memory.
    """

    dear = True
    n: int
    dtype: Any
    diagonal: np.ndarray

    def fill(self, rows: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Write kappa(x_r, x_c) for r in `rows` and start <= c < stop to out (len(rows), stop - start)."""
        raise NotImplementedError

    def take(self, index: np.ndarray) -> "Tiles":
        """Return the tiles of a subset of the rows."""
        raise NotImplementedError


class ProductTiles(Tiles):
    """Kernels that are a function of <x, z> and of |x|, |z|."""

    def __init__(self, kernel: Kernel, A: np.ndarray, half: np.ndarray, diagonal: np.ndarray) -> None:
        self.kernel, self.A, self.half, self.diagonal = kernel, A, half, diagonal
        self.n, self.dtype = len(A), A.dtype
        self.dear = A.dtype != np.float32 or A.shape[1] > _CHEAP or isinstance(kernel, Polynomial)

    def fill(self, rows: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        np.matmul(self.A[rows], self.A[start:stop].T, out=out)
        if isinstance(self.kernel, Gaussian):
            self._gaussian(out, self.half[rows], self.half[start:stop])
        elif isinstance(self.kernel, Polynomial):
            out += self.dtype.type(self.kernel.coef0)
            np.power(out, self.kernel.degree, out=out)

    def _gaussian(self, out: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
        from assay.kernels._loops import gaussian_double, gaussian_single

        (gaussian_single if self.dtype == np.float32 else gaussian_double)(out, left, right)

    def take(self, index: np.ndarray) -> "ProductTiles":
        return ProductTiles(self.kernel, self.A[index], self.half[index], self.diagonal[index])


class BitTiles(Tiles):
    """Gaussian or linear kernels of features that are all 0 or 1: a table indexed by the Hamming distance."""

    dear = False
    dtype = np.dtype(np.float32)

    def __init__(self, words: np.ndarray, table: np.ndarray, diagonal: np.ndarray) -> None:
        self.words, self.table, self.diagonal = words, table, diagonal
        self.n = words.shape[1]

    def fill(self, rows: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        from assay.kernels._loops import hamming_lookup

        hamming_lookup(np.ascontiguousarray(self.words[:, rows].T), self.words[:, start:stop], self.table, out)

    def take(self, index: np.ndarray) -> "BitTiles":
        return BitTiles(np.ascontiguousarray(self.words[:, index]), self.table, self.diagonal[index])


class GeneralTiles(Tiles):
    """Any kernel, through its own Gram blocks."""

    dtype = np.dtype(np.float64)

    def __init__(self, kernel: Kernel, X: np.ndarray, diagonal: np.ndarray) -> None:
        self.kernel, self.X, self.diagonal = kernel, X, diagonal
        self.n = len(X)

    def fill(self, rows: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        out[:] = self.kernel.block(self.X[rows], self.X[start:stop])

    def take(self, index: np.ndarray) -> "GeneralTiles":
        return GeneralTiles(self.kernel, self.X[index], self.diagonal[index])


class MatrixTiles(Tiles):
    """A Gram matrix that is there already."""

    def __init__(self, gram: np.ndarray) -> None:
        self.gram, self.diagonal = gram, np.diag(gram).astype(np.float64)
        self.n, self.dtype = len(gram), gram.dtype

    def fill(self, rows: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        out[:] = self.gram[rows, start:stop]

    def take(self, index: np.ndarray) -> "MatrixTiles":
        return MatrixTiles(self.gram[np.ix_(index, index)])


def tiles(kernel: Kernel, X: np.ndarray, single: bool) -> Tiles:
    """Return the fastest tiles of this kernel on these rows; in double precision unless `single`."""
    if isinstance(kernel, Gaussian):
        if single and X.shape[1] >= _BITS_FROM and _binary(X):
            return _bit_tiles(kernel, X)
        return _gaussian_tiles(kernel, X, single)
    if isinstance(kernel, (Linear, Polynomial)):
        scale = np.sqrt(kernel.gamma) if isinstance(kernel, Polynomial) else 1.0
        A = np.ascontiguousarray(X * scale, dtype=np.float32 if single else np.float64)
        return ProductTiles(kernel, A, np.zeros(len(A), A.dtype), kernel.diagonal(X))
    return GeneralTiles(kernel, X, kernel.diagonal(X))


def _gaussian_tiles(kernel: Gaussian, X: np.ndarray, single: bool) -> Tiles:
    """Centre and scale, so that -gamma |x - z|^2 = <a, b> - |a|^2 / 2 - |b|^2 / 2 with small norms."""
    A = (X - X.mean(axis=0)) * np.sqrt(2.0 * kernel.gamma)
    half = 0.5 * np.einsum("ij,ij->i", A, A)
    single = single and float(half.max(initial=0.0)) < 2_000.0  # beyond, cancellation would show in the kernel values
    dtype = np.float32 if single else np.float64
    A = np.ascontiguousarray(A, dtype=dtype)
    half = 0.5 * np.einsum("ij,ij->i", A, A, dtype=np.float64)
    return ProductTiles(kernel, A, half.astype(dtype), np.ones(len(A)))


def _binary(X: np.ndarray) -> bool:
    from assay.kernels._loops import only_zero_or_one

    return only_zero_or_one(X)


def _bit_tiles(kernel: Gaussian, X: np.ndarray) -> Tiles:
    from assay.kernels._loops import pack_bits

    words = 2 * -(-X.shape[1] // 128)
    table = np.exp(-kernel.gamma * np.arange(64 * words + 1)).astype(np.float32)
    return BitTiles(pack_bits(X, words), table, np.ones(len(X)))


def double_expansion(kernel: Kernel, vectors: np.ndarray, coef: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return sum_i coef_ki kappa(vector_i, x) in double precision, (n, k); tiles stay in the cache of a core."""
    from assay.kernels._loops import gaussian_double

    total = np.zeros((len(X), len(coef)))
    prepared = _prepared(kernel, vectors, X)
    for at in range(0, len(vectors), _STRIP):
        some = slice(at, at + _STRIP)
        weights = np.ascontiguousarray(coef[:, some].T)
        for first in range(0, len(X), _STRIP):
            here = slice(first, first + _STRIP)
            if prepared is None:
                tile = kernel.block(X[here], vectors[some])
            else:
                A, B, left, right = prepared
                tile = A[here] @ B[some].T
                gaussian_double(tile, left[here], right[some])
            total[here] += tile @ weights
    return total


def _prepared(kernel: Kernel, vectors: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Return rows and vectors such that -gamma |x - v|^2 = <a, b> - |a|^2 / 2 - |b|^2 / 2, with those halves."""
    if not isinstance(kernel, Gaussian) or not len(vectors):
        return None
    centre, scale = vectors.mean(axis=0), np.sqrt(2.0 * kernel.gamma)
    A, B = (X - centre) * scale, (vectors - centre) * scale
    return A, B, 0.5 * np.einsum("ij,ij->i", A, A), 0.5 * np.einsum("ij,ij->i", B, B)


class SingleExpansion:
    """Sums of Gaussian kernel values in single precision, and how far each is from the exact one, at most."""

    def __init__(self, kernel: Gaussian, vectors: np.ndarray, coef: np.ndarray) -> None:
        self.centre, self.scale = vectors.mean(axis=0), np.sqrt(2.0 * kernel.gamma)
        self.B = ((vectors - self.centre) * self.scale).astype(np.float32)
        self.half = 0.5 * np.einsum("ij,ij->i", self.B, self.B, dtype=np.float64)
        self.weights = np.concatenate([coef, np.abs(coef)]).astype(np.float32).T
        self.longest = float(np.sqrt(2 * self.half.max(initial=0.0)))

    def __call__(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return values and errors, (n, k).

        With |a|, |b| the lengths of a moved row and vector, an exponent is off by at most (d + 16) u (|a| + |b|)^2, u
        the unit of single precision; a sum over a strip by its length times u, relative to the sum of magnitudes.
        """
        from assay.kernels._loops import gaussian_single

        with np.errstate(over="ignore", invalid="ignore"):
            A = ((X - self.centre) * self.scale).astype(np.float32)
            half = 0.5 * np.einsum("ij,ij->i", A, A, dtype=np.float64)
            total = np.zeros((len(X), self.weights.shape[1]))
            left, right = half.astype(np.float32), self.half.astype(np.float32)
            for at in range(0, len(self.B), _STRIP):
                some = slice(at, at + _STRIP)
                for first in range(0, len(X), _STRIP):
                    here = slice(first, first + _STRIP)
                    tile = A[here] @ self.B[some].T
                    gaussian_single(tile, left[here], right[some])
                    total[here] += tile @ self.weights[some]
            off = (X.shape[1] + 16) * 2.0**-24 * (np.sqrt(2 * half) + self.longest) ** 2
            slack = np.where(off < 0.1, 1.2 * off + (_STRIP + 32) * 2.0**-24, np.inf)
            k = total.shape[1] // 2
            return total[:, :k], 1.1 * slack[:, None] * total[:, k:] + 1e-30 * np.abs(self.weights[:, k:]).sum(axis=0)

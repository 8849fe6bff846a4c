"""Kernel rows in blocks, as a solver wants them: fast, in single precision where that cannot change the answer.

`tiles(kernel, X, single)` prepares the rows once; `fill(rows, start, stop, out)` then writes kappa(x_rows,
x_start..stop). Three ways: inner products by BLAS and a compiled transform (linear, polynomial, Gaussian); table
look-up of Hamming distances where all features are 0 or 1; and any kernel through its own `block`.
"""

from typing import Any

import numpy as np

from assay.kernels._algebra import Gaussian, Kernel, Linear, Polynomial

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

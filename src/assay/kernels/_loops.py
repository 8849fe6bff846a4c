"""Compiled block functions of kernels: entries from inner products, and inner products of packed bits.

A tile is a small block of the Gram matrix, rows i (left) by columns j (right). Inner products come from BLAS; the
loops here turn them into kernel values in place.
"""

import math

import numpy as np

from assay.jit import bit_count, compiled, reinterpret

_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_ROUND = np.float32(12582912.0)  # 1.5 * 2^23: adding it leaves the nearest integer in the low bits
_LEAST = np.float32(-87.0)  # exp of less is below the smallest normal float
_ZERO, _ONE, _HALF = np.float32(0.0), np.float32(1.0), np.float32(0.5)
# Minimax coefficients of (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2, relative error of exp below 1e-7.
_P5, _P4, _P3, _P2, _P1 = (
    np.float32(1.9875691500e-4),
    np.float32(1.3981999507e-3),
    np.float32(8.3334519073e-3),
    np.float32(4.1665795894e-2),
    np.float32(1.6666665459e-1),
)


@compiled(reduction=True)
def gaussian_single(tile: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Replace a_i . b_j by exp(a_i . b_j - left_i - right_j); left and right hold |a|^2 / 2 and |b|^2 / 2."""
    for i in range(tile.shape[0]):
        row, half = tile[i], left[i]
        for j in range(tile.shape[1]):
            e = min(max(row[j] - half - right[j], _LEAST), _ZERO)
            t = e * _LOG2E + _ROUND
            k = t - _ROUND
            r = (e - k * _LN2_HIGH) - k * _LN2_LOW
            p = _P5 * r + _P4
            p = p * r + _P3
            p = p * r + _P2
            p = p * r + _P1
            p = p * r + _HALF
            p = p * r * r + r + _ONE
            exponent = np.float32(t).view(np.int32) << np.int32(23)
            row[j] = np.int32(np.float32(p).view(np.int32) + exponent).view(np.float32)


_LOG2E_D, _ROUND_D = 1.4426950408889634, 6755399441055744.0  # 1.5 * 2^52


_LN2_HIGH_D, _LN2_LOW_D = 6.93147180369123816490e-01, 1.90821492927058770002e-10


_LEAST_D = -708.0


_TAYLOR = tuple(1.0 / math.factorial(k) for k in range(13, 1, -1))


@compiled(reduction=True)
def gaussian_double(tile: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Do the same in double precision, by Taylor's series to degree 13 on |r| <= ln(2) / 2."""
    a, b, c, d, f, g, h, m, n, o, q, s = _TAYLOR
    for i in range(tile.shape[0]):
        row, half = tile[i], left[i]
        for j in range(tile.shape[1]):
            e = min(max(row[j] - half - right[j], _LEAST_D), 0.0)
            t = e * _LOG2E_D + _ROUND_D
            k = t - _ROUND_D
            r = (e - k * _LN2_HIGH_D) - k * _LN2_LOW_D
            p = (((((a * r + b) * r + c) * r + d) * r + f) * r + g) * r + h
            p = (((((p * r + m) * r + n) * r + o) * r + q) * r + s) * (r * r) + r + 1.0
            row[j] = reinterpret(reinterpret(p) + (reinterpret(t) << 52))


@compiled
def hamming_lookup(left: np.ndarray, right: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Set out[i, j] = table[number of bits in which left[i] and right[:, j] differ].

    left (m, W) and right (W, n) hold 64 features to a word; W is even. Two words at a time, partial counts
    kept beside.
    """
    words, n = right.shape
    count = np.zeros(n, np.uint64)
    for i in range(left.shape[0]):
        row = out[i]
        for w in range(0, words - 2, 2):
            a, b, first, second = left[i, w], left[i, w + 1], right[w], right[w + 1]
            for j in range(n):
                before = count[j] if w else np.uint64(0)
                count[j] = before + bit_count(a ^ first[j]) + bit_count(b ^ second[j])
        a, b, first, second = left[i, words - 2], left[i, words - 1], right[words - 2], right[words - 1]
        if words == 2:
            for j in range(n):
                row[j] = table[bit_count(a ^ first[j]) + bit_count(b ^ second[j])]
        else:
            for j in range(n):
                row[j] = table[count[j] + bit_count(a ^ first[j]) + bit_count(b ^ second[j])]


@compiled
def pack_bits(X: np.ndarray, words: int) -> np.ndarray:
    """Return the non-zero pattern of X as words of 64 bits, (words, n)."""
    packed = np.zeros((words, X.shape[0]), np.uint64)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if X[i, j] != 0.0:
                packed[j // 64, i] |= np.uint64(1) << np.uint64(j % 64)
    return packed


@compiled
def only_zero_or_one(X: np.ndarray) -> bool:
    """Tell whether every entry of X is 0 or 1."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if X[i, j] != 0.0 and X[i, j] != 1.0:
                return False
    return True


@compiled(reduction=True)
def intersections(X: np.ndarray, Z: np.ndarray, out: np.ndarray) -> None:
    """Set out[i, j] to the sum of the smaller entries of row i of X and row j of Z."""
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            total = 0.0
            for k in range(X.shape[1]):
                a, b = X[i, k], Z[j, k]
                total += a if a < b else b
            out[i, j] = total

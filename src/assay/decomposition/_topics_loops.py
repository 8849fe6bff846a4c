"""Compiled passes of latent Dirichlet allocation over documents.

Documents are rows of a sparse table: words (nnz,), counts (nnz,), offsets (documents + 1,). Topics come as B (words,
topics), so that all that one word needs lies together.

    variational   gamma_k = alpha_k + t_k sum_w c_w B_wk / n_w,  n_w = sum_k t_k B_wk,  t_k = exp(digamma(gamma_k))

A common factor of t cancels, so that the digamma of the sum is not needed; exp(digamma) is the series at x + 8 with
its recurrence, a polynomial and a few divisions, which vectorises.
"""

from math import log

import numpy as np

from assay.jit import compiled
from assay.mixture._loops import _add_exponentials


@compiled(reduction=True)
def exp_digamma(gamma: np.ndarray, out: np.ndarray, zero: np.ndarray, waste: np.ndarray) -> None:
    """Write exp(digamma(gamma)); `zero` holds zeros, `waste` is overwritten."""
    k = len(gamma)
    for i in range(k):
        x = gamma[i]
        y = x + 8.0
        v = 1.0 / (y * y)
        tail = 0.003968253968253968 - v * (0.004166666666666667 - v * (0.00757575757575758 - v * 0.021092796092796094))
        series = v * (0.08333333333333333 - v * (0.008333333333333333 - v * tail))
        pairs = (2 * x + 1) / (x * (x + 1)) + (2 * x + 5) / ((x + 2) * (x + 3))
        pairs += (2 * x + 9) / ((x + 4) * (x + 5)) + (2 * x + 13) / ((x + 6) * (x + 7))
        out[i] = -0.5 / y - series - pairs
    _add_exponentials(out, zero, waste, k)
    for i in range(k):
        out[i] *= gamma[i] + 8.0


@compiled(reduction=True)
def _shares(rows: np.ndarray, counts: np.ndarray, t: np.ndarray, n: int, shares: np.ndarray) -> None:
    """Write c_w / n_w of n words, n_w = sum_k t_k rows_wk; four words at a time, to read t once for them."""
    K = len(t)
    whole = n - n % 4
    for p in range(0, whole, 4):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for k in range(K):
            a += t[k] * rows[p, k]
            b += t[k] * rows[p + 1, k]
            c += t[k] * rows[p + 2, k]
            d += t[k] * rows[p + 3, k]
        shares[p], shares[p + 1], shares[p + 2], shares[p + 3] = a, b, c, d
    for p in range(whole, n):
        a = 0.0
        for k in range(K):
            a += t[k] * rows[p, k]
        shares[p] = a
    for p in range(n):
        shares[p] = counts[p] / shares[p]


@compiled(reduction=True)
def _spread(rows: np.ndarray, shares: np.ndarray, n: int, new: np.ndarray) -> None:
    """Write sum_w shares_w rows_wk, four words at a time."""
    K = len(new)
    whole = n - n % 4
    for k in range(K):
        new[k] = 0.0
    for p in range(0, whole, 4):
        a, b, c, d = shares[p], shares[p + 1], shares[p + 2], shares[p + 3]
        for k in range(K):
            new[k] += (a * rows[p, k] + b * rows[p + 1, k]) + (c * rows[p + 2, k] + d * rows[p + 3, k])
    for p in range(whole, n):
        a = shares[p]
        for k in range(K):
            new[k] += a * rows[p, k]


@compiled(reduction=True)
def infer(
    words: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
    B: np.ndarray,
    alpha: np.ndarray,
    low: int,
    high: int,
    gamma: np.ndarray,
    factors: np.ndarray,
    ratios: np.ndarray,
    left: np.ndarray,
    together: int,
    tol: float,
) -> int:
    """Improve gamma (documents, topics) of documents low..high-1 until its mean change is below `tol`, left[d] times at
    most, of which `together` at once; write t (documents, topics) and c_w / n_w (nnz,), and how many times are left.
    Return the steps made, of all documents together. A document of which none are left was written before.

    The rows of B that a document needs are brought together first: its steps read them many times.
    """
    K, longest = B.shape[1], 0
    for d in range(low, high):
        longest = max(longest, offsets[d + 1] - offsets[d])
    zero, waste, new = np.zeros(K), np.zeros(K), np.empty(K)
    rows = np.empty((longest, K))
    steps = 0
    for d in range(low, high):
        if left[d] == 0:
            continue
        own, t = gamma[d], factors[d]
        begin, n = offsets[d], offsets[d + 1] - offsets[d]
        for p in range(n):
            rows[p] = B[words[begin + p]]
        many, shares = counts[begin : begin + n], ratios[begin : begin + n]
        exp_digamma(own, t, zero, waste)
        for _ in range(min(left[d], together)):
            steps += 1
            left[d] -= 1
            _shares(rows, many, t, n, shares)
            _spread(rows, shares, n, new)
            change = 0.0
            for k in range(K):  # by itself: see `loops.logistic.loss_stretch`
                change += abs(alpha[k] + t[k] * new[k] - own[k])
            for k in range(K):
                own[k] = alpha[k] + t[k] * new[k]
            exp_digamma(own, t, zero, waste)
            if change < tol * K:
                left[d] = 0
                break
        _shares(rows, many, t, n, shares)
    return steps


@compiled(reduction=True)
def gather(
    documents: np.ndarray,
    places: np.ndarray,
    offsets: np.ndarray,
    factors: np.ndarray,
    ratios: np.ndarray,
    B: np.ndarray,
    low: int,
    high: int,
    result: np.ndarray,
) -> None:
    """Write expected counts (words, topics) of words low..high-1: B_wk sum_d t_dk c_dw / n_dw, by the columns of the
    table: documents (nnz,), and where each entry stands among the rows."""
    K = B.shape[1]
    for w in range(low, high):
        own = result[w]
        for k in range(K):
            own[k] = 0.0
        for p in range(offsets[w], offsets[w + 1]):
            share, t = ratios[places[p]], factors[documents[p]]
            for k in range(K):
                own[k] += share * t[k]
        for k in range(K):
            own[k] *= B[w, k]


@compiled(reduction=True)
def log_words(
    words: np.ndarray, counts: np.ndarray, offsets: np.ndarray, B: np.ndarray, logs: np.ndarray, low: int, high: int,
    result: np.ndarray,
) -> None:  # fmt: skip
    """Write sum_w c_w ln sum_k exp(logs_dk) B_wk of documents low..high-1; logs (documents, topics)."""
    K = B.shape[1]
    t, zero, waste = np.empty(K), np.empty(K), np.zeros(K)
    for d in range(low, high):
        top = logs[d].max()
        for k in range(K):
            t[k] = logs[d, k]
            zero[k] = top
        _add_exponentials(t, zero, waste, K)
        value = 0.0
        for p in range(offsets[d], offsets[d + 1]):
            row = B[words[p]]
            total = 0.0
            for k in range(K):
                total += t[k] * row[k]
            value += counts[p] * (top + log(total))
        result[d] = value

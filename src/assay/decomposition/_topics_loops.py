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
    most: int,
    tol: float,
) -> int:
    """Improve gamma (documents, topics) of documents low..high-1 until its mean change is below `tol`, `most` times at
    most; write t (documents, topics) and c_w / n_w (nnz,). Return the steps made, of all documents together."""
    K = B.shape[1]
    zero, waste, new = np.zeros(K), np.zeros(K), np.empty(K)
    steps = 0
    for d in range(low, high):
        own, t = gamma[d], factors[d]
        begin, end = offsets[d], offsets[d + 1]
        exp_digamma(own, t, zero, waste)
        for _ in range(most):
            steps += 1
            for k in range(K):
                new[k] = 0.0
            for p in range(begin, end):
                row = B[words[p]]
                total = 0.0
                for k in range(K):
                    total += t[k] * row[k]
                share = counts[p] / total
                for k in range(K):
                    new[k] += share * row[k]
            change = 0.0
            for k in range(K):
                fresh = alpha[k] + t[k] * new[k]
                change += abs(fresh - own[k])
                own[k] = fresh
            exp_digamma(own, t, zero, waste)
            if change < tol * K:
                break
        for p in range(begin, end):
            row = B[words[p]]
            total = 0.0
            for k in range(K):
                total += t[k] * row[k]
            ratios[p] = counts[p] / total
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
    found: np.ndarray,
) -> None:
    """Write expected counts (words, topics) of words low..high-1: B_wk sum_d t_dk c_dw / n_dw, by the columns of the
    table: documents (nnz,), and where each entry stands among the rows."""
    K = B.shape[1]
    for w in range(low, high):
        own = found[w]
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
    found: np.ndarray,
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
        found[d] = value

"""Compiled passes of latent Dirichlet allocation over documents.

Documents are rows of a sparse table: words (nnz,), counts (nnz,), offsets (documents + 1,). Topics come as B (words,
topics), so that all that one word needs lies together.

    variational   gamma_k = alpha + t_k sum_w c_w B_wk / n_w,  n_w = sum_k t_k B_wk,  t_k = exp(digamma(gamma_k))

A common factor of t cancels, so that the digamma of the sum is not needed; exp(digamma) is the series at x + 8 with
its recurrence, a polynomial and a few divisions, which vectorises.

    Gibbs         p(z = k) proportional to (n_dk + alpha) (n_wk + eta) / (n_k + V eta), the word itself left out

n_wk and n_k are those after the last segment of documents, plus what changed within the document itself: documents of
one segment do not depend on each other, nor on who does them, and with one document in a segment the sampler is exact.
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
    alpha: float,
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
                fresh = alpha + t[k] * new[k]
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


@compiled
def _mixed(state: np.uint64) -> np.uint64:
    """Return a well mixed number (splitmix64)."""
    z = state + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def _shares(topics: np.ndarray, own: np.ndarray, size: np.ndarray, share: np.ndarray) -> float:
    """Add a document's topics to `own`, fill own / size into `share`, and return its sum."""
    for k in topics:
        own[k] += 1.0
    total = 0.0
    for k in range(len(own)):
        share[k] = own[k] / size[k]
        total += share[k]
    return total


@compiled
def sweep(
    tokens: np.ndarray,
    offsets: np.ndarray,
    topics: np.ndarray,
    word_topic: np.ndarray,
    listed: np.ndarray,
    lengths: np.ndarray,
    sums: np.ndarray,
    alpha: float,
    eta: float,
    low: int,
    high: int,
    seed: np.uint64,
    first: bool,
) -> None:
    """Draw the topic of each token of documents low..high-1 anew; `topics` is read (unless `first`) and written.

    With s_k = (n_dk + alpha) / (n_k + V eta), a topic has eta s_k + n_wk s_k: the sum of the first is kept up to date,
    the second is summed over the topics that the word has, `listed` (words, topics) by `lengths` (words,). These and
    sums (topics,) stay as they are: a document keeps what it changes. Equal words of a document stand together.
    """
    words, K = word_topic.shape
    share, own, size, p = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    which, counts = np.empty(K, np.int64), np.empty(K)
    for d in range(low, high):
        state = _mixed(seed ^ (np.uint64(d) * np.uint64(0xD1342543DE82EF95)))
        for k in range(K):
            own[k] = alpha
            size[k] = sums[k] + words * eta
        total = _shares(topics[offsets[d] : (offsets[d] if first else offsets[d + 1])], own, size, share)
        word, length = -1, 0
        for i in range(offsets[d], offsets[d + 1]):
            if tokens[i] != word:
                word = tokens[i]
                length = lengths[word]
                for j in range(length):
                    which[j] = listed[word, j]
                    counts[j] = word_topic[word, which[j]]
            if not first:
                k = topics[i]
                own[k] -= 1.0
                size[k] -= 1.0
                fresh = own[k] / size[k]
                total += fresh - share[k]
                share[k] = fresh
                j = 0
                while which[j] != k:
                    j += 1
                counts[j] -= 1.0
            mass = 0.0
            for j in range(length):
                p[j] = counts[j] * share[which[j]]
                mass += p[j]
            state += np.uint64(0x9E3779B97F4A7C15)
            u = (_mixed(state) >> np.uint64(11)) * 1.1102230246251565e-16 * (mass + eta * total)
            if u < mass:
                j = 0
                while j < length - 1 and u >= p[j]:
                    u -= p[j]
                    j += 1
                k = which[j]
            else:
                u = (u - mass) / eta
                k = 0
                while k < K - 1 and u >= share[k]:
                    u -= share[k]
                    k += 1
                j = 0
                while j < length and which[j] != k:
                    j += 1
                if j == length:
                    which[j], counts[j] = k, 0.0
                    length += 1
            topics[i] = k
            counts[j] += 1.0
            own[k] += 1.0
            size[k] += 1.0
            fresh = own[k] / size[k]
            total += fresh - share[k]
            share[k] = fresh


@compiled
def recount(
    tokens: np.ndarray,
    old: np.ndarray,
    new: np.ndarray,
    first: bool,
    counts: np.ndarray,
    listed: np.ndarray,
    lengths: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Move the tokens whose topic changed from one count to another; counts (words, topics), sums (topics,). A topic
    that a word did not have is appended to its list."""
    for i in range(len(tokens)):
        w, k = tokens[i], new[i]
        if not first:
            if old[i] == k:
                continue
            counts[w, old[i]] -= np.float32(1.0)
            sums[old[i]] -= 1.0
        if counts[w, k] == 0:
            j = 0
            while j < lengths[w] and listed[w, j] != k:
                j += 1
            if j == lengths[w]:
                listed[w, j] = k
                lengths[w] += 1
        counts[w, k] += np.float32(1.0)
        sums[k] += 1.0


@compiled
def relist(counts: np.ndarray, listed: np.ndarray, lengths: np.ndarray) -> None:
    """List the topics that each word has, the most frequent first."""
    for w in range(len(counts)):
        n = 0
        for j in range(lengths[w]):
            k = listed[w, j]
            c = counts[w, k]
            if c > 0:
                place = n
                while place > 0 and counts[w, listed[w, place - 1]] < c:
                    listed[w, place] = listed[w, place - 1]
                    place -= 1
                listed[w, place] = k
                n += 1
        lengths[w] = n

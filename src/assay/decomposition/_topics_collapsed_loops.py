"""Compiled passes over documents with theta and beta integrated out: collapsed variational steps, and Gibbs.

    collapsed     g_k proportional to (n_dk + alpha_k) (n_wk + eta) / (n_k + V eta), the word itself left out
    Gibbs         p(z = k) proportional to (n_dk + alpha_k) (n_wk + eta) / (n_k + V eta), the word itself left out

n_wk and n_k are those after the last segment of documents, plus what changed within the document itself: documents of
one segment do not depend on each other, nor on who does them, and with one document in a segment the sampler is exact.
"""

from math import log

import numpy as np

from assay.jit import compiled


@compiled
def _mixed(state: np.uint64) -> np.uint64:
    """Return a well mixed number (splitmix64)."""
    z = state + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def scatter(shares: np.ndarray, seed: np.uint64, low: int, high: int) -> None:
    """Fill rows low..high-1 (entries, topics) with random shares, which sum to 1; a row depends on its number
    alone."""
    K = shares.shape[1]
    for i in range(low, high):
        state = _mixed(seed ^ (np.uint64(i) * np.uint64(0xD1342543DE82EF95)))
        row, total = shares[i], np.float32(0.0)
        for k in range(K):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            u = (np.float32(state >> np.uint64(40)) + np.float32(1.0)) * np.float32(2.0**-24)
            row[k] = u * u * (u * u)  # a few topics stand out: from even shares the first passes hardly move
            total += row[k]
        scale = np.float32(1.0) / total
        for k in range(K):
            row[k] *= scale


@compiled
def gather_shares(
    words: np.ndarray,
    owners: np.ndarray,
    counts: np.ndarray,
    shares: np.ndarray,
    doc_topic: np.ndarray,
    word_topic: np.ndarray,
    low: int,
    high: int,
) -> None:
    """Add the shares of entries low..high-1, times their counts, to those of their documents and words."""
    for i in range(low, high):
        own, row, g, c = doc_topic[owners[i]], word_topic[words[i]], shares[i], counts[i]
        for k in range(len(g)):
            part = c * g[k]
            own[k] += part
            row[k] += part


@compiled(reduction=True)
def collapsed(
    words: np.ndarray,
    owners: np.ndarray,
    counts: np.ndarray,
    shares: np.ndarray,
    doc_topic: np.ndarray,
    word_topic: np.ndarray,
    sums: np.ndarray,
    alpha: np.ndarray,
    eta: float,
    low: int,
    high: int,
) -> float:
    """Renew the shares (entries, topics) of entries low..high-1, and with them n_dk, n_wk and n_k, all float32.

    An entry is a word of a document and its count c. What is left out is one occurrence, min(c, 1) g. Return the
    sum of c ln of the weights' sums, which is ln p(word | all others) but for the length of the document.
    """
    K, more = len(sums), np.float32(eta)
    rest, zero, one = np.float32(len(word_topic) * eta), np.float32(0.0), np.float32(1.0)
    p, logs, product = np.empty(K, np.float32), 0.0, np.float64(1.0)
    for i in range(low, high):
        g, own, row, c = shares[i], doc_topic[owners[i]], word_topic[words[i]], counts[i]
        total, out = zero, min(c, one)
        for k in range(K):
            left = out * g[k]
            a, b, size = own[k] - left, row[k] - left, sums[k] - left
            a = a if a > zero else zero
            b = b if b > zero else zero
            size = size if size > zero else zero
            p[k] = (a + alpha[k]) * (b + more) / (size + rest)
        for k in range(K):  # by itself: see `loops.logistic.loss_stretch`
            total += p[k]
        scale = one / total
        for k in range(K):
            fresh = p[k] * scale
            change = c * (fresh - g[k])
            own[k] += change
            row[k] += change
            sums[k] += change
            g[k] = fresh
        if c == one:
            product *= total
            if product < 1e-200:
                logs += log(product)
                product = np.float64(1.0)
        else:
            logs += c * log(total)
    return logs + log(product)


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
    alpha: np.ndarray,
    eta: float,
    low: int,
    high: int,
    seed: np.uint64,
    first: bool,
) -> None:
    """Draw the topic of each token of documents low..high-1 anew; `topics` is read (unless `first`) and written.

    With s_k = (n_dk + alpha_k) / (n_k + V eta), a topic has eta s_k + n_wk s_k: the sum of the first is kept up to
    date, the second is summed over the topics that the word has, `listed` (words, topics) by `lengths` (words,). These
    and sums (topics,) stay as they are: a document keeps what it changes. Equal words of a document stand together.
    """
    words, K = word_topic.shape
    share, own, size, p = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    which, counts = np.empty(K, np.int64), np.empty(K)
    for d in range(low, high):
        state = _mixed(seed ^ (np.uint64(d) * np.uint64(0xD1342543DE82EF95)))
        for k in range(K):
            own[k] = alpha[k]
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

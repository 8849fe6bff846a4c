"""Documents as the passes of latent Dirichlet allocation read them, and what they sum."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, psi

from assay.scan import thread_map

_PIECE = 64  # documents, and words, of one piece of work

Prior = float | np.ndarray
"""Weights of a Dirichlet distribution: one number for all, or one for each."""


class Columns(NamedTuple):
    """The same entries word by word: the document of each, its place among the rows, and where each word begins."""

    documents: np.ndarray
    places: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True, eq=False)
class Documents:
    """Counts of words, document by document."""

    words: np.ndarray
    counts: np.ndarray
    offsets: np.ndarray
    n_words: int
    n_jobs: int | None = None

    @classmethod
    def of(cls, X: Any, n_jobs: int | None = None) -> "Documents":
        """Return the documents of a table of counts, dense or sparse."""
        X = sp.csr_array(X)
        X.sum_duplicates()
        X.eliminate_zeros()
        return cls(X.indices.astype(np.int64), X.data.astype(np.float64), X.indptr.astype(np.int64), X.shape[1], n_jobs)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum over the entries of each document."""
        owner = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return np.bincount(owner, values, len(self))

    def pieces(self) -> list[tuple[int, int]]:
        return [(low, min(low + _PIECE, len(self))) for low in range(0, len(self), _PIECE)]

    def some(self, low: int, high: int) -> "Documents":
        """Return documents low..high-1."""
        here = slice(self.offsets[low], self.offsets[high])
        offsets = self.offsets[low : high + 1] - self.offsets[low]
        return Documents(self.words[here], self.counts[here], offsets, self.n_words, self.n_jobs)

    def spread(self, number: int) -> "Documents":
        """Return so many documents, evenly spread over all."""
        which = np.linspace(0, len(self) - 1, number).astype(np.int64)
        sizes = np.diff(self.offsets)[which]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        here = np.repeat(self.offsets[which] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Documents(self.words[here], self.counts[here], offsets, self.n_words, self.n_jobs)

    @cached_property
    def columns(self) -> Columns:
        order = np.argsort(self.words, kind="stable")
        documents = np.repeat(np.arange(len(self)), np.diff(self.offsets))[order]
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.words, minlength=self.n_words))])
        return Columns(documents, order, starts.astype(np.int64))

    @cached_property
    def tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """Each word as often as it is counted, and where each document begins."""
        whole = self.counts.astype(np.int64)
        ends = np.concatenate([[0], np.cumsum(whole)])[self.offsets]
        return np.repeat(self.words, whole).astype(np.int32), ends.astype(np.int64)


_TOGETHER = 1000  # steps of a document in one call of the compiled loop


class Inferred(NamedTuple):
    """gamma (documents, topics); t and c_w / n_w at it."""

    gamma: np.ndarray
    factors: np.ndarray
    ratios: np.ndarray
    steps: int


def infer_topics(
    documents: Documents, B: np.ndarray, alpha: Prior, gamma: np.ndarray, most: int, tol: float
) -> Inferred:
    """Improve gamma, in place, for topics B (words, topics)."""
    from assay.decomposition._topics_loops import infer

    prior = np.ascontiguousarray(np.broadcast_to(alpha, B.shape[1]), dtype=np.float64)
    factors, ratios = np.empty_like(gamma), np.empty(len(documents.words))
    left = np.full(len(gamma), most, dtype=np.int64)

    def work(piece: tuple[int, int]) -> int:
        return infer(
            documents.words, documents.counts, documents.offsets, B, prior, *piece, gamma, factors, ratios, left,
            _TOGETHER, tol,
        )  # fmt: skip

    steps = sum(thread_map(work, documents.pieces(), n_jobs=documents.n_jobs))
    while left.any():  # Ctrl-C is heard between two calls
        steps += sum(thread_map(work, documents.pieces(), n_jobs=documents.n_jobs))
    return Inferred(gamma, factors, ratios, steps)


def expected_counts(documents: Documents, B: np.ndarray, found: Inferred) -> np.ndarray:
    """Return how often each word is expected to belong to each topic (words, topics)."""
    from assay.decomposition._topics_loops import gather

    columns, counts = documents.columns, np.empty_like(B)

    def work(piece: tuple[int, int]) -> None:
        gather(*columns, found.factors, found.ratios, B, *piece, counts)

    words = documents.n_words
    pieces = [(low, min(low + _PIECE, words)) for low in range(0, words, _PIECE)]
    thread_map(work, pieces, n_jobs=documents.n_jobs)
    return counts


class WordFactors(NamedTuple):
    """exp(E[ln beta]) (words, topics), each word's divided by its largest, and the logarithms of those (words,)."""

    B: np.ndarray
    logs: np.ndarray


def word_factors(weights: np.ndarray) -> WordFactors:
    """Return the factors of Dirichlet distributions with these weights (topics, words)."""
    logs = psi(weights) - psi(weights.sum(axis=1, keepdims=True))
    top = logs.max(axis=0)
    return WordFactors(np.ascontiguousarray(np.exp(logs - top).T), top)


def plain_factors(topics: np.ndarray) -> WordFactors:
    """Return the factors of topics (topics, words) that are known."""
    return WordFactors(np.ascontiguousarray(topics.T), np.zeros(topics.shape[1]))


def document_bounds(documents: Documents, factors: WordFactors, alpha: Prior, gamma: np.ndarray) -> np.ndarray:
    """Return for each document sum_w c_w ln sum_k exp(E[ln theta_k] + E[ln beta_kw]) - KL(Dirichlet(gamma),
    Dirichlet(alpha))."""
    from assay.decomposition._topics_loops import log_words

    logs = psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))
    found = np.empty(len(documents))

    def work(piece: tuple[int, int]) -> None:
        log_words(documents.words, documents.counts, documents.offsets, factors.B, logs, *piece, found)

    thread_map(work, documents.pieces(), n_jobs=documents.n_jobs)
    if factors.logs.any():
        found += documents.sums(documents.counts * factors.logs[documents.words])
    return found + _dirichlet_terms(gamma, alpha, logs)


def topic_bound(weights: np.ndarray, eta: Prior) -> float:
    """Return -sum_k KL(Dirichlet(weights_k), Dirichlet(eta)), weights (topics, words)."""
    logs = psi(weights) - psi(weights.sum(axis=1, keepdims=True))
    return float(_dirichlet_terms(weights, eta, logs).sum())


def _dirichlet_terms(weights: np.ndarray, prior: Prior, logs: np.ndarray) -> np.ndarray:
    every = np.broadcast_to(prior, weights.shape[1])
    found = ((every - weights) * logs + gammaln(weights)).sum(axis=1) - gammaln(weights.sum(axis=1))
    return found + gammaln(every.sum()) - gammaln(every).sum()

"""Documents of latent Dirichlet allocation, the sums over them, and the quality of topics: coherence, perplexity."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, psi
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

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


def expected_counts(documents: Documents, B: np.ndarray, inferred: Inferred) -> np.ndarray:
    """Return how often each word is expected to belong to each topic (words, topics)."""
    from assay.decomposition._topics_loops import gather

    columns, counts = documents.columns, np.empty_like(B)

    def work(piece: tuple[int, int]) -> None:
        gather(*columns, inferred.factors, inferred.ratios, B, *piece, counts)

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
    result = np.empty(len(documents))

    def work(piece: tuple[int, int]) -> None:
        log_words(documents.words, documents.counts, documents.offsets, factors.B, logs, *piece, result)

    thread_map(work, documents.pieces(), n_jobs=documents.n_jobs)
    if factors.logs.any():
        result += documents.sums(documents.counts * factors.logs[documents.words])
    return result + _dirichlet_terms(gamma, alpha, logs)


def topic_bound(weights: np.ndarray, eta: Prior) -> float:
    """Return -sum_k KL(Dirichlet(weights_k), Dirichlet(eta)), weights (topics, words)."""
    logs = psi(weights) - psi(weights.sum(axis=1, keepdims=True))
    return float(_dirichlet_terms(weights, eta, logs).sum())


def _dirichlet_terms(weights: np.ndarray, prior: Prior, logs: np.ndarray) -> np.ndarray:
    every = np.broadcast_to(prior, weights.shape[1])
    result = ((every - weights) * logs + gammaln(weights)).sum(axis=1) - gammaln(weights.sum(axis=1))
    return result + gammaln(every.sum()) - gammaln(every).sum()


MEASURES = ("u_mass", "npmi", "c_v")
_EPSILON = 1e-12  # added to a share of pairs that c_v takes the logarithm of
_RESAMPLES = 1000


def coherence(together: np.ndarray, n: int, measure: str) -> float:
    """Return how well words go together: together[i, j] of n documents, or windows, have the words i and j."""
    if measure == "c_v":
        return _by_vectors(together, n)
    values = []
    for i in range(1, len(together)):
        for j in range(i):
            alone, other, pair = together[j, j], together[i, i], together[i, j]
            if measure == "u_mass":
                values.append(np.log((pair + 1) / alone) if alone else 0.0)
            elif not pair or not alone or not other:
                values.append(-1.0 if alone and other else 0.0)
            else:
                values.append(1.0 if pair == n else np.log(pair * n / (alone * other)) / -np.log(pair / n))
    return float(np.mean(values)) if values else 0.0


def _by_vectors(together: np.ndarray, n: int) -> float:
    """Return c_v (Roeder, Both and Hinneburg 2015): the mean cosine between the vector of a word, its normalised
    pointwise mutual information with every word of the topic, and the sum of these vectors."""
    share = together / n
    alone = np.diag(share)
    expected = alone[:, None] * alone
    with np.errstate(divide="ignore", invalid="ignore"):
        npmi = np.log((share + _EPSILON) / expected) / -np.log(share + _EPSILON)
    npmi = np.where(expected > 0, npmi, 0.0)
    total = npmi.sum(axis=0)
    sizes = np.linalg.norm(npmi, axis=1) * np.linalg.norm(total)
    return float(np.mean(np.divide(npmi @ total, sizes, out=np.zeros(len(npmi)), where=sizes > 0)))


def windows_together(texts: Iterable[Sequence[int]], places: np.ndarray, window: int) -> tuple[np.ndarray, int]:
    """Return in how many windows of so many words each pair of words stands, and the number of windows.

    `texts` hold numbers of words; `places` says which of the counted words each is, -1 for others. A text that is
    shorter than the window is one window.
    """
    used = int(places.max()) + 1
    together, n = np.zeros((used, used)), 0
    for text in texts:
        at = places[np.asarray(text, dtype=np.intp)]
        many = max(1, len(at) - window + 1)
        n += many
        where = np.flatnonzero(at >= 0)
        if not len(where):
            continue
        words, own = np.unique(at[where], return_inverse=True)
        change = np.zeros((many + 1, len(words)))
        np.add.at(change, (np.maximum(where - window + 1, 0), own), 1.0)
        np.add.at(change, (np.minimum(where + 1, many), own), -1.0)
        there = (np.cumsum(change[:-1], axis=0) > 0).astype(np.float64)
        together[np.ix_(words, words)] += there.T @ there
    return together, n


@dataclass(frozen=True, eq=False)
class TopicNumbers:
    """How well each number of topics foretells words of documents that were kept out.

    Attributes
    ----------
    numbers : (m,)
    loss : (m,)
        Mean of -ln p(hidden word) over all hidden words; exp of it is the perplexity.
    standard_error : (m,)
        Of the loss, from one document to the next.
    behind, behind_error : (m,)
        By how much the loss is larger than the least, and the standard error of that, from the same documents.
    best_share : (m,)
        In what share of bootstrap resamples of the documents the number has the least loss.
    best : int
        The number of least loss.
    chosen : int
        The smallest number whose loss is not larger by more than one standard error of the difference.
    """

    numbers: np.ndarray
    loss: np.ndarray
    standard_error: np.ndarray
    behind: np.ndarray
    behind_error: np.ndarray
    best_share: np.ndarray
    best: int
    chosen: int

    def __repr__(self) -> str:
        lines = [
            f"{k:6d} topics: {loss:.4f} +- {error:.4f} nats a word, best in {share:4.0%} of resamples"
            for k, loss, error, share in zip(self.numbers, self.loss, self.standard_error, self.best_share)
        ]
        return "\n".join([*lines, f"chosen: {self.chosen} (least loss: {self.best})"])


def number_of_topics(model: Any, X: Any, numbers: Sequence[int], *, cv: int = 5, random_state: Any = 0) -> TopicNumbers:
    """Compare numbers of topics by words of documents that a fit has not seen.

    Documents are split into `cv` parts; each is foretold by a model fitted to the others, half of a document's words
    from the other half. All numbers meet the same documents and the same hidden words, so that differences between
    them are much surer than the losses themselves.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Its parameters are used, except `n_components`.
    X : counts of words, (documents, words)
    numbers : numbers of topics to compare
    cv : int >= 2
    random_state : seed of parts, hidden words and resamples

    Returns
    -------
    TopicNumbers
        Loss of each number, and the one chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.decomposition import LatentDirichletAllocation, number_of_topics
    >>> rng = np.random.default_rng(0)
    >>> topics = np.kron(np.eye(3), np.full(4, 0.25))
    >>> X = np.stack([rng.multinomial(40, share @ topics) for share in rng.dirichlet([0.2] * 3, 150)])
    >>> number_of_topics(LatentDirichletAllocation(method="collapsed", max_iter=20), X, [1, 2, 3, 6]).chosen
    3
    """
    sizes = np.array(numbers)
    if sizes.ndim != 1 or not len(sizes) or sizes.dtype.kind not in "iu" or sizes.min() < 1:
        raise ValueError(f"number_of_topics: numbers must be integers >= 1; got {numbers!r}.")
    sizes, random = np.unique(sizes), check_random_state(random_state)
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    logs, hidden = np.zeros((X.shape[0], len(sizes))), np.zeros(X.shape[0])
    for train, test in KFold(cv, shuffle=True, random_state=random.randint(2**31 - 1)).split(np.empty(X.shape[0])):
        seed = random.randint(2**31 - 1)
        for j, size in enumerate(sizes.tolist()):
            fitted = clone(model).set_params(n_components=size, random_state=seed).fit(X[train])
            logs[test, j], hidden[test] = fitted._hidden_words(X[test], 0.5, seed)
    return _compared(sizes, -logs, hidden, random)


def _compared(numbers: np.ndarray, losses: np.ndarray, words: np.ndarray, random: Any) -> TopicNumbers:
    """Return means over words of losses that are sums over documents, (documents, numbers), and how sure they are."""
    total = words.sum()
    loss = losses.sum(axis=0) / total
    best = int(loss.argmin())
    apart = losses - losses[:, [best]]
    behind = apart.sum(axis=0) / total
    error, behind_error = _ratio_error(losses, loss, words), _ratio_error(apart, behind, words)
    resamples = random.multinomial(len(words), np.full(len(words), 1 / len(words)), size=_RESAMPLES)
    winners = ((resamples @ losses) / (resamples @ words)[:, None]).argmin(axis=1)
    share = np.bincount(winners, minlength=len(numbers)) / _RESAMPLES
    chosen = numbers[np.flatnonzero(behind <= behind_error)[0]]
    return TopicNumbers(numbers, loss, error, behind, behind_error, share, int(numbers[best]), int(chosen))


def _ratio_error(sums: np.ndarray, means: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return the standard error of sum over documents / sum of words."""
    n, left = len(words), sums - means * words[:, None]
    return np.sqrt((left**2).sum(axis=0) * n / (n - 1)) / words.sum()

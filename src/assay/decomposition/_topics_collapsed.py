"""Topics with theta and beta integrated out: collapsed variational steps, Gibbs sampling, estimates of the priors."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import gammaln, psi

from assay.decomposition._topics_data import Documents, Prior
from assay.fitlog import FitLog
from assay.params import refuse
from assay.scan import thread_map

MOST_BYTES = 2**32
"""Of the shares that the collapsed method keeps: entries x topics x 4."""

_GROUPS = 8  # of documents, and of words: so many threads can work without two of them touching the same counts
_FEW = 20_000  # entries that are not worth threads
_PIECE = 64  # documents of one piece of a sweep
_SEGMENTS = 32  # of a sweep of Gibbs, after each of which counts are renewed
_LEAST = 1e-5  # of an estimated prior weight
_WARM_PASSES = 12  # collapsed passes before the first sweep of Gibbs
_WARM_BYTES = 2**28  # of the shares that these keep: if all documents need more, some of them are taken
_KEPT = 0.1  # share of the sweeps of Gibbs, the last ones, whose counts are averaged


def run_collapsed(model: Any, documents: Documents, random: np.random.RandomState, log: FitLog) -> None:
    """Fit by collapsed variational passes; set the learner's topics and priors."""
    need = 4 * len(documents.words) * model.n_components
    if need > MOST_BYTES:
        raise refuse(
            model,
            f"method='collapsed' keeps {need / 2**30:.1f} GiB of shares, one for each topic of each entry, and the "
            f"limit is {MOST_BYTES / 2**30:.0f} GiB; take method='gibbs', or the variational method online.",
        )
    chain = Collapsed(documents, *_wanted(model), int(random.randint(2**31 - 1)))
    last = np.inf
    try:
        for _ in range(model.max_iter):
            value = chain.renew()
            model.n_iter_ += 1
            perplexity = float(np.exp(-value))
            if log.watched:
                _keep(model, chain.word_topic)
            _tell(model, "pass", "mean ln p(word | the others)", value)
            stop = log.step(-value, min(abs(last - perplexity), 1e300), components_=model.components_)
            stop |= _due(model) and abs(last - perplexity) < model.perp_tol
            last = perplexity
            if stop:
                break
    finally:
        chain.recount()
        _keep(model, chain.word_topic)


def run_gibbs(model: Any, documents: Documents, random: np.random.RandomState, log: FitLog) -> None:
    """Fit by sweeps of Gibbs, after a few collapsed passes; set the learner's topics and priors."""
    if (documents.counts != np.floor(documents.counts)).any():
        raise refuse(model, "Gibbs sampling draws a topic for each word, so that counts must be whole numbers.")
    seed, wanted = int(random.randint(2**31 - 1)), _wanted(model)
    chain = Gibbs(documents, *wanted, seed, _warm(documents, *wanted, seed))
    kept = max(1, int(np.ceil(_KEPT * model.max_iter)))
    total, count, before = np.zeros(chain.counts.shape), 0, 0.0
    try:
        for step in range(model.max_iter):
            chain.sweep()
            model.n_iter_ += 1
            if model.optimize_interval and model.n_iter_ % model.optimize_interval == 0:
                chain.estimate_priors()
                model.doc_topic_prior_, model.topic_word_prior_ = chain.alpha, chain.eta
            if step >= model.max_iter - kept:
                total, count = total + chain.counts, count + 1
            if log.watched:
                _keep(model, total / count if count else chain.counts)
            value = chain.log_joint() / max(documents.total, 1.0)
            _tell(model, "sweep", "log-likelihood per word", value)
            if log.step(-value, abs(value - before), components_=model.components_):
                break
            before = value
    finally:
        _keep(model, total / count if count else chain.counts)


def _warm(documents: Documents, topics: int, alpha: Prior, eta: float, seed: int) -> np.ndarray:
    """Return expected counts (words, topics) after a few collapsed passes over as many documents as fit."""
    share = _WARM_BYTES / max(4 * len(documents.words) * topics, 1)
    some = documents if share >= 1 else documents.spread(max(1, int(share * len(documents))))
    chain = Collapsed(some, topics, alpha, eta, seed)
    for _ in range(_WARM_PASSES):
        chain.renew()
    return chain.word_topic


def _wanted(model: Any) -> tuple[int, Prior, float]:
    return model.n_components, model.doc_topic_prior_, model.topic_word_prior_


def _keep(model: Any, counts: np.ndarray) -> None:
    """Give the learner the topics that these counts (words, topics) say."""
    model.components_ = np.ascontiguousarray(model.topic_word_prior_ + counts.T, dtype=np.float64)


def _due(model: Any) -> bool:
    return model.evaluate_every > 0 and model.n_iter_ % model.evaluate_every == 0


def _tell(model: Any, step: str, what: str, value: float) -> None:
    if model.verbose:
        print(f"{step}: {model.n_iter_} of max_iter: {model.max_iter}, {what}: {value:.6f}")


class Collapsed:
    """The share of each topic in every entry, and their sums; renewed by passes.

    Documents and words are in groups. In turn t, group i of the documents meets group (i + t) of the words: no two of
    these touch the same n_dk or n_wk, so that they are done side by side; n_k is summed after each turn.
    """

    def __init__(self, documents: Documents, topics: int, alpha: Prior, eta: float, seed: int):
        from assay.decomposition._topics_collapsed_loops import scatter

        self.documents, self.eta, self.lengths = documents, eta, documents.sums(documents.counts)
        self.alpha = np.array(np.broadcast_to(alpha, topics), dtype=np.float64)
        entries = len(documents.words)
        self.groups = 1 if entries < _FEW else _GROUPS
        tiles = self._tiles()
        order = np.argsort(tiles, kind="stable")
        owner = np.repeat(np.arange(len(documents), dtype=np.int32), np.diff(documents.offsets))
        self.words, self.owners = documents.words[order].astype(np.int32), owner[order]
        self.counts = documents.counts[order].astype(np.float32)
        self.cuts = np.concatenate([[0], np.cumsum(np.bincount(tiles, minlength=self.groups**2))])
        self.shares = np.empty((entries, topics), np.float32)
        self.doc_topic = np.zeros((len(documents), topics), np.float32)
        self.word_topic = np.zeros((documents.n_words, topics), np.float32)
        self._each_tile(lambda low, high: scatter(self.shares, np.uint64(seed), low, high))
        self.recount()

    def _tiles(self) -> np.ndarray:
        """Return for each entry the group of its document, times their number, plus the group of its word."""
        documents, groups = self.documents, self.groups
        sizes = np.bincount(documents.words, minlength=documents.n_words)
        word_group = np.empty(documents.n_words, np.int16)
        word_group[np.argsort(-sizes, kind="stable")] = np.arange(documents.n_words) % groups
        ends = documents.offsets[1:]
        group = np.minimum((ends - 1) * groups // max(len(documents.words), 1), groups - 1)
        return (np.repeat(group, np.diff(documents.offsets)) * groups + word_group[documents.words]).astype(np.int16)

    def _each_tile(self, work: Callable[[int, int], Any]) -> None:
        """Do work(low, high) on each tile, turn by turn, side by side within one."""
        for turn in range(self.groups):
            thread_map(lambda span: work(*span), self._turn(turn), n_jobs=self.documents.n_jobs)

    def _turn(self, turn: int) -> list[tuple[int, int]]:
        """Return where the entries of each tile of this turn begin and end."""
        tiles = [i * self.groups + (i + turn) % self.groups for i in range(self.groups)]
        return [(int(self.cuts[tile]), int(self.cuts[tile + 1])) for tile in tiles]

    def recount(self) -> None:
        """Sum the shares anew, so that rounding does not build up."""
        from assay.decomposition._topics_collapsed_loops import gather_shares

        self.doc_topic[:], self.word_topic[:] = 0, 0
        self._each_tile(
            lambda low, high: gather_shares(
                self.words, self.owners, self.counts, self.shares, self.doc_topic, self.word_topic, low, high
            )
        )
        self.sums = self.word_topic.sum(axis=0, dtype=np.float64)

    def renew(self) -> float:
        """Make one pass; return the mean of ln p(word | all other words)."""
        from assay.decomposition._topics_collapsed_loops import collapsed

        alpha, logs = self.alpha.astype(np.float32), 0.0

        def work(span: tuple[int, int]) -> tuple[float, np.ndarray]:
            sums = before.copy()
            tables = (self.shares, self.doc_topic, self.word_topic, sums, alpha, self.eta)
            return collapsed(self.words, self.owners, self.counts, *tables, *span), sums

        for turn in range(self.groups):
            before = self.sums.astype(np.float32)
            for part, sums in thread_map(work, self._turn(turn), n_jobs=self.documents.n_jobs):
                logs += part
                self.sums += sums - before
        others = np.maximum(self.lengths - 1, 0) + self.alpha.sum()
        return float(logs - self.lengths @ np.log(others)) / max(self.documents.total, 1.0)


class Gibbs:
    """The topic of every token, and how often each word belongs to each topic; renewed by sweeps.

    The topics start as a table of counts (words, topics) makes them probable, or, if there is none, at random.
    """

    def __init__(
        self, documents: Documents, topics: int, alpha: Prior, eta: float, seed: int, table: np.ndarray | None = None
    ):
        self.documents, self.eta, self.seed, self.sweeps = documents, eta, seed, 0
        self.alpha = np.array(np.broadcast_to(alpha, topics), dtype=np.float64)
        self.tokens, self.offsets = documents.tokens
        self.topics = np.random.default_rng(seed).integers(topics, size=len(self.tokens), dtype=np.int32)
        self.counts, self.sums = np.zeros((documents.n_words, topics), np.float32), np.zeros(topics)
        self.listed, self.lengths = np.zeros(self.counts.shape, np.int32), np.zeros(documents.n_words, np.int64)
        if table is not None:
            self._start(table)
        self._recount(slice(None), self.topics, first=True)

    def _start(self, table: np.ndarray) -> None:
        """Draw each topic once, given this table and the document's earlier topics."""
        self.counts[:], self.sums[:] = table, table.sum(axis=0)
        self.listed[:], self.lengths[:] = np.arange(len(self.alpha), dtype=np.int32), len(self.alpha)
        self._relist()
        self._draw(0, len(self.documents), self._seed(), first=True)
        self.counts[:], self.sums[:], self.lengths[:] = 0, 0, 0

    def _seed(self) -> np.uint64:
        return np.random.SeedSequence([self.seed, self.sweeps]).generate_state(1, np.uint64)[0]

    def _draw(self, low: int, high: int, seed: np.uint64, *, first: bool = False) -> None:
        from assay.decomposition._topics_collapsed_loops import sweep

        model = (self.counts, self.listed, self.lengths, self.sums, self.alpha, self.eta)

        def work(start: int) -> None:
            sweep(self.tokens, self.offsets, self.topics, *model, start, min(start + _PIECE, high), seed, first)

        thread_map(work, range(low, high, _PIECE), n_jobs=self.documents.n_jobs)

    def _recount(self, here: slice, before: np.ndarray, *, first: bool = False) -> None:
        from assay.decomposition._topics_collapsed_loops import recount

        tables = (self.counts, self.listed, self.lengths, self.sums)
        recount(self.tokens[here], before, self.topics[here], first, *tables)

    def _relist(self) -> None:
        from assay.decomposition._topics_collapsed_loops import relist

        relist(self.counts, self.listed, self.lengths)

    def sweep(self) -> None:
        """Draw all topics anew, segment by segment of documents."""
        self.sweeps += 1
        seed, n = self._seed(), len(self.documents)
        for low, high in pairwise(np.linspace(0, n, min(n, _SEGMENTS) + 1).astype(int).tolist()):
            here = slice(self.offsets[low], self.offsets[high])
            before = self.topics[here].copy()
            self._draw(low, high, seed)
            self._recount(here, before)
        self._relist()

    def estimate_priors(self) -> None:
        """Set alpha and eta to those that fit the counts."""
        K = len(self.alpha)
        owner = np.repeat(np.arange(len(self.documents)), np.diff(self.offsets))
        doc_topic = np.bincount(owner * K + self.topics, minlength=len(self.documents) * K).reshape(-1, K)
        self.alpha, self.eta = estimated(doc_topic, self.counts, self.alpha, self.eta)

    def log_joint(self) -> float:
        """Return ln p(words | topics), beta integrated out."""
        words, topics = self.counts.shape
        there = self.counts[self.counts > 0].astype(np.float64)
        result = gammaln(there + self.eta).sum() - len(there) * gammaln(self.eta)
        return float(result + topics * gammaln(words * self.eta) - gammaln(self.sums + words * self.eta).sum())


def estimated(
    doc_topic: np.ndarray, word_topic: np.ndarray, alpha: np.ndarray, eta: float, steps: int = 10
) -> tuple[np.ndarray, float]:
    """Return alpha (topics,) and eta after steps of Minka's fixed point, none of which makes the counts less probable.

        alpha_k <- alpha_k sum_d (psi(n_dk + alpha_k) - psi(alpha_k)) / sum_d (psi(n_d + A) - psi(A)),   A = sum alpha

    and eta likewise, one for all words; doc_topic (documents, topics), word_topic (words, topics).
    """
    lengths, sums, words = doc_topic.sum(axis=1), word_topic.sum(axis=0, dtype=np.float64), len(word_topic)
    if not lengths.any():
        return alpha, eta
    there = word_topic[word_topic > 0].astype(np.float64)
    for _ in range(steps):
        total = alpha.sum()
        above = (psi(doc_topic + alpha) - psi(alpha)).sum(axis=0)
        alpha = np.maximum(alpha * above / (psi(lengths + total) - psi(total)).sum(), _LEAST)
        top = (psi(there + eta) - psi(eta)).sum()
        eta = max(float(eta * top / (words * (psi(sums + words * eta) - psi(words * eta)).sum())), _LEAST)
    return alpha, eta

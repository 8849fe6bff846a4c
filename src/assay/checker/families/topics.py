"""Latent Dirichlet allocation.

Arrays: `components_` (topics, words) > 0, weights of the Dirichlet distribution of each topic's words;
`doc_topic_prior_` alpha, one number > 0 or one for each topic; `topic_word_prior_` eta, one number > 0. The log-density
of a document (a row of counts) is taken from below: by the topics' means beta and gamma after 40 steps from
gamma_k = alpha + n / topics,

    sum_w c_w ln sum_k exp(e_k) beta_kw - KL(Dirichlet(gamma), Dirichlet(alpha)) <= ln p(document),  e_k = E[ln theta_k]

which holds whatever gamma is, so that its own rounding does not matter. Digamma and log-gamma are SciPy's, taken to be
right to 1e-13 of 1 + their size.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, psi

from assay.checker.family import NUMBERS, Family, Variant
from assay.checker.numerics import U, above
from assay.checker.predictors import DensityModel
from assay.checker.record import Refused, Rejected, signed
from assay.checker.rule import Rule, View
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence, with_digits

_STEPS = 40
_ROUNDING = 1e-12  # of a bound, as a share of the sizes of its terms
_PART = 512  # documents at a time
MOST_WORK = 2e9
"""Entries x topics x steps x steps of documents that are made again at most."""


@dataclass(frozen=True)
class Topics(DensityModel):
    """Dirichlet weights of the topics, and both priors."""

    weights: np.ndarray
    alpha: np.ndarray
    eta: float

    @property
    def columns(self) -> int:
        return self.weights.shape[1]

    def log_bounds(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        beta = (self.weights / self.weights.sum(axis=1, keepdims=True)).T
        values, sizes = np.zeros(len(X)), np.zeros(len(X))
        for part in range(0, len(X), _PART):
            here = slice(part, part + _PART)
            some = Counts(X[here], beta, np.zeros(self.columns))
            gamma = some.improved(some.flat(self.alpha), self.alpha, _STEPS)
            values[here], sizes[here] = some.bounds(gamma, self.alpha)
        slack = _ROUNDING * (1 + sizes)
        return values - slack, values + slack


class Counts:
    """Some documents and topics beta (words, topics), to be multiplied by exp(shift) (words,)."""

    def __init__(self, X: Any, beta: np.ndarray, shift: np.ndarray):
        self.X, self.beta, self.shift = sp.csr_array(X), beta, shift
        if np.any(self.X.data < 0):
            raise Rejected("a document has a negative count")
        self.owner = np.repeat(np.arange(self.X.shape[0]), np.diff(self.X.indptr))
        self.words, self.counts = self.X.indices, self.X.data.astype(np.float64)

    def flat(self, alpha: np.ndarray) -> np.ndarray:
        sizes, topics = np.bincount(self.owner, self.counts, self.X.shape[0]), self.beta.shape[1]
        return alpha + (sizes / topics)[:, None]

    def totals(self, factors: np.ndarray) -> np.ndarray:
        """Return sum_k t_dk beta_wk of each entry."""
        return np.einsum("ij,ij->i", factors[self.owner], self.beta[self.words])

    def improved(self, gamma: np.ndarray, alpha: np.ndarray, steps: int, tol: float = -1.0) -> np.ndarray:
        """Return gamma after so many steps, those documents resting whose mean change was below `tol`."""
        active = np.ones(len(gamma), dtype=bool)
        for _ in range(steps):
            t = np.exp(psi(gamma) - psi(gamma.sum(axis=1, keepdims=True)))
            new = alpha + t * self.spread(t)
            change = np.abs(new - gamma).mean(axis=1)
            gamma = np.where(active[:, None], new, gamma)
            active &= change >= tol
            if not active.any():
                break
        return gamma

    def spread(self, t: np.ndarray) -> np.ndarray:
        """Return sum_w c_w beta_wk / n_w (documents, topics)."""
        ratios = self.counts / np.maximum(self.totals(t), 1e-300)
        return sp.csr_array((ratios, self.words, self.X.indptr), shape=self.X.shape) @ self.beta

    def word_counts(self, gamma: np.ndarray) -> np.ndarray:
        """Return how often each word is expected to belong to each topic (topics, words)."""
        t = np.exp(psi(gamma) - psi(gamma.sum(axis=1, keepdims=True)))
        ratios = self.counts / np.maximum(self.totals(t), 1e-300)
        return (sp.csr_array((ratios, self.words, self.X.indptr), shape=self.X.shape).T @ t * self.beta).T

    def bounds(self, gamma: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bound of each document at gamma, and the size of its terms."""
        logs = psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))
        top = logs.max(axis=1, keepdims=True)
        words = np.log(self.totals(np.exp(logs - top))) + (top[self.owner, 0] + self.shift[self.words])
        if not np.isfinite(words).all():
            raise Refused("underflow leaves the probability of a word open")
        n = len(gamma)
        value, size = (np.bincount(self.owner, self.counts * item, n) for item in (words, 2 * np.abs(words) + 1))
        more, rest = dirichlet_terms(gamma, alpha, logs)
        return value + more, size + rest


def dirichlet_terms(weights: np.ndarray, prior: np.ndarray, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return -KL(Dirichlet(weights), Dirichlet(prior)) of each row, and the size of its terms; prior one per column."""
    total, whole, parts = weights.sum(axis=1), float(gammaln(prior.sum())), gammaln(prior)
    terms = (prior - weights) * logs, gammaln(weights)
    value = sum(term.sum(axis=1) for term in terms) - gammaln(total) + whole - parts.sum()
    size = sum(np.abs(term).sum(axis=1) for term in terms) + np.abs(gammaln(total)) + abs(whole)
    return value, size + np.abs(parts).sum() + len(prior) + weights.sum(axis=1)


def read_topics(weights: np.ndarray, alpha: np.ndarray, eta: np.ndarray, classes: None) -> Topics:
    """Return the model that these arrays define."""
    if weights.ndim != 2 or not weights.size or alpha.shape not in ((), (len(weights),)) or eta.ndim:
        raise Rejected(f"components_ has shape {weights.shape}, the priors {alpha.shape} and {eta.shape}")
    if not (weights > 0).all() or not (alpha > 0).all() or not eta > 0:
        raise Rejected("weights of topics and priors must be above 0")
    return Topics(weights, np.broadcast_to(alpha, len(weights)), float(eta))


class TopicRule(Rule):
    """A rule about the bound of all documents: at weights of the topics, and gamma of the documents."""

    model: Topics

    def prepare(self) -> None:
        if not isinstance(self.model, Topics):
            raise Rejected("it needs a model of topics")
        self.parts, self.words = list[Any](), 0.0

    def block(self, view: View) -> None:
        for low in range(0, len(view.X), _PART):
            self.parts.append(sp.csr_array(view.X[low : low + _PART]))
        self.words += math.fsum(view.X.sum(axis=1))

    def documents(self, weights: np.ndarray) -> Iterator[Counts]:
        if not self.words > 0:
            raise Rejected("the documents have no words")
        logs = psi(weights) - psi(weights.sum(axis=1, keepdims=True))
        top = logs.max(axis=0)
        for part in self.parts:
            self.context.clock.check()
            yield Counts(part, np.exp(logs - top).T, top)

    def topics(self, weights: np.ndarray) -> tuple[float, float]:
        """Return the part of the topics in the bound, and the size of its terms."""
        logs = psi(weights) - psi(weights.sum(axis=1, keepdims=True))
        value, size = dirichlet_terms(weights, np.full(weights.shape[1], self.model.eta), logs)
        return math.fsum(value), math.fsum(size)


class Bound(TopicRule):
    """topics.bound: the lower bound of ln p(documents) at the model's topics, over the number of words, is within
    `value` of `center`."""

    def prepare(self) -> None:
        super().prepare()
        self.center = signed(self.param("center"), "center")

    def measure(self) -> float:
        total, size = self.topics(self.model.weights)
        for some in self.documents(self.model.weights):
            gamma = some.improved(some.flat(self.model.alpha), self.model.alpha, _STEPS)
            values, sizes = some.bounds(gamma, self.model.alpha)
            total, size = total + math.fsum(values), size + math.fsum(sizes)
        result, slack = total / self.words, _ROUNDING * (1 + size) / self.words
        return float(above(abs(result - self.center) + slack + 4 * U * abs(self.center)))


class Monotone(TopicRule):
    """topics.monotone: `steps` batch steps from the listed start reach the model, none of which lowers the bound per
    word by more than `value`. Each document is improved from where it is and from ones, until its mean change is below
    `doc_tol` or `doc_steps` times, and keeps the better. The steps are made again here, in binary64."""

    def prepare(self) -> None:
        super().prepare()
        self.steps, self.distance = self.count("steps", 1), self.number("distance")
        self.inner, self.tol = self.count("doc_steps", 1), self.number("doc_tol", zero=True)
        self.start = self.witness("start", *self.model.weights.shape)
        if not (self.start > 0).all():
            raise Rejected("weights of the start must be above 0")

    def measure(self) -> float:
        entries = sum(part.nnz + part.shape[0] for part in self.parts)
        if entries * len(self.start) * self.steps * self.inner > MOST_WORK:
            raise Refused("so many steps on so many documents are not made again")
        weights, fall, before = self.start, 0.0, -math.inf
        gammas = [np.ones((part.shape[0], len(weights))) for part in self.parts]
        for _ in range(self.steps):
            (total, size), counts = self.topics(weights), np.zeros_like(weights)
            for i, some in enumerate(self.documents(weights)):
                gammas[i], values, sizes = self._better(some, gammas[i])
                total, size = total + math.fsum(values), size + math.fsum(sizes)
                counts += some.word_counts(gammas[i])
            fall = max(fall, before - (total - _ROUNDING * (1 + size)))
            before, weights = total + _ROUNDING * (1 + size), self.model.eta + counts
        apart = float(np.max(np.abs(weights / self.model.weights - 1)))
        if not apart <= self.distance:
            raise Rejected(f"the steps from the listed start end {apart:.3g} away from the model")
        return float(above(max(fall, 0.0) / self.words))

    def _better(self, some: Counts, gamma: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        alpha, tol = self.model.alpha, self.tol if self.tol > 0 else -1.0
        ends = [some.improved(item, alpha, self.inner, tol) for item in (gamma, np.ones_like(gamma))]
        (old, old_size), (new, new_size) = (some.bounds(end, alpha) for end in ends)
        better = new > old
        return np.where(better[:, None], ends[1], ends[0]), np.maximum(new, old), np.where(better, new_size, old_size)


_BOUND = Sentence(
    {
        "": "The variational lower bound of ln p of the training documents is {shown} nats per word, to within "
        "{within:up1}."
    },
    with_digits,
)


_MONOTONE = Sentence.plain(
    "Of {steps} batch steps from the listed start (at most {doc_steps} for each document, until its mean change is "
    "below {doc_tol:g}), which end within a share {distance:up1} of the topics, none lowers the bound by more than "
    "{value:up1} nats per word."
)


CLAIMS = {
    "D51/1": Definition("topics.bound", Bound, _BOUND),
    "D51/2": Definition("topics.monotone", Monotone, _MONOTONE),
}
FAMILY = Family(
    "topics",
    {
        "": Variant(
            {"components_": NUMBERS, "doc_topic_prior_": NUMBERS, "topic_word_prior_": NUMBERS},
            read_topics,
            target=False,
        )
    },
    CLAIMS,
)

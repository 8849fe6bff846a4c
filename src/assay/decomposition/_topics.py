"""Latent Dirichlet allocation: documents as mixtures of topics.

    theta_d ~ Dirichlet(alpha)      the topics of document d
    beta_k  ~ Dirichlet(eta)        the words of topic k
    each word of d: a topic k from theta_d, then a word from beta_k

    maximise over Dirichlet distributions q of theta, beta  E[ln p(words, theta, topics, beta)] - E[ln q] <= ln p(words)

Claims: that lower bound of ln p of the documents, recomputed; that no step of the batch method lowered it (small
        problems); bounds of the mean of -ln p over new documents.
Method: coordinate ascent in the variational parameters, batch or online (Hoffman, Blei and Bach 2010). In a batch each
        document starts afresh and where it was, and keeps the better, so that the bound never falls. Or, with theta
        and beta integrated out, the shares of the topics in each word given those of all others (Asuncion, Welling,
        Smyth and Teh 2009), or topics drawn so: collapsed Gibbs sampling (Griffiths and Steyvers 2004).
"""

import numbers
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner, fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.decomposition._topics_data import (
    MEASURES,
    Documents,
    Inferred,
    Prior,
    WordFactors,
    coherence,
    document_bounds,
    expected_counts,
    infer_topics,
    plain_factors,
    topic_bound,
    windows_together,
    word_factors,
)
from assay.fitlog import FitLog
from assay.guarantees.evidence import Density, Evidence
from assay.guarantees.ledger import FIT_NOT_KEPT
from assay.messages import Message
from assay.optim.duality import outward
from assay.params import Choice, Count, Maybe, Number, Positive, check, refuse
from assay.scan import Rows, one_blas_thread
from assay.scan.memory import MemoryRows

_MOST_WORK = 3e7  # entries x topics x steps that are worth making again
_AGREE = 1e-5  # two runs that end farther apart were near a saddle


def facts(model: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield the claims topics.bound about a fitted model on the documents it was fitted to."""
    documents = model._documents(_every_row(rows))
    if not documents.total > 0:
        yield NotApplicable("topics.bound", Message("why.no-words"))
        return
    result = log_densities(documents, word_factors(model.components_), model.doc_topic_prior_).sum()
    center = float(result + topic_bound(model.components_, model.topic_word_prior_)) / documents.total
    slack = 1e-8 * (1 + abs(center) + model.components_.size / documents.total)
    yield Claim("topics.bound", outward(slack), params={"center": center})
    yield _monotone(model, documents, rows)


def _every_row(rows: Rows) -> Any:
    return rows.X if isinstance(rows, MemoryRows) else np.concatenate([b.X for b in rows.blocks()])


def _monotone(model: Any, documents: Documents, rows: Rows) -> Claim | NotApplicable:
    """Return that no step of the batch method lowered the bound; the run is made again from nearly the same start."""
    if model.method != "variational" or model.learning_method != "batch":
        return NotApplicable("topics.monotone", Message("why.batch-only"))
    if model._from_file or model.start_ is None:
        return NotApplicable("topics.monotone", FIT_NOT_KEPT)
    steps = model.n_iter_
    if not steps:
        return NotApplicable("topics.monotone", Message("why.no-step"))
    work = (len(documents.words) + len(documents)) * model.n_components * steps * model.max_doc_update_iter
    if work > _MOST_WORK:
        return NotApplicable("topics.monotone", Message("why.documents-cost", steps=steps))
    again, fall = _again(model, documents, steps)
    distance = float(np.max(np.abs(again / model.components_ - 1)))
    if not distance < _AGREE:
        return NotApplicable("topics.monotone", Message("why.saddle"))
    params = {
        "steps": int(steps),
        "distance": outward(100 * distance + 1e-6),
        "doc_steps": int(model.max_doc_update_iter),
        "doc_tol": float(model.mean_change_tol),
    }
    value = outward(fall + 1e-8 * (1 + model.components_.size / documents.total))
    return Claim("topics.monotone", value, params=params, witness={"start": model.start_})


def _again(model: Any, documents: Documents, steps: int) -> tuple[np.ndarray, float]:
    """Return the topics of a run from a start that differs by less than anybody can tell, and the largest fall."""
    other = clone(model)
    other.doc_topic_prior_, other.topic_word_prior_ = model.doc_topic_prior_, model.topic_word_prior_
    moved = 1 + 1e-12 * np.cos(np.arange(model.start_.size)).reshape(model.start_.shape)
    other.components_, other.n_iter_, other.n_batch_iter_ = model.start_ * moved, 0, 1
    log = _Values()
    other.set_params(max_iter=steps, evaluate_every=-1, verbose=0)._run_batch(documents, log)
    return other.components_, max(0.0, float(np.max(np.diff(log.values), initial=0.0)))


class _Values:
    """A log that keeps the objective of each step."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def step(self, objective: float, violation: float, **fitted: Any) -> bool:
        self.values.append(objective)
        return False


def density(model: Any) -> Density:
    """Return ln p of documents, from below, as evidence."""
    return Density(_of_block, (model.topics_, model.doc_topic_prior_))


def _of_block(block: Block, topics: np.ndarray, alpha: Prior) -> tuple[np.ndarray, np.ndarray]:
    documents = Documents.of(block.X, 1)
    values = log_densities(documents, plain_factors(topics), alpha)
    sizes = np.asarray(block.X.sum(axis=1)).ravel()
    return values, 1e-9 * (1 + np.abs(values) + sizes + len(topics))


DOC_STEPS = 40
"""Steps that the bound of a document takes; as many as the checker makes."""


@dataclass(eq=False, repr=False)
class LatentDirichletAllocation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learner):
    """Topics of documents: latent Dirichlet allocation.

    Parameters
    ----------
    n_components : int >= 1
        Number of topics.
    method : "variational", "collapsed" or "gibbs"
        Coordinate ascent on a lower bound of the likelihood; collapsed variational passes, the fastest way to good
        topics (`max_iter` of 20 to 50), which keep entries x n_components x 4 bytes; or collapsed Gibbs sampling,
        which needs whole counts: `max_iter` are its sweeps, of which the last tenth is averaged.
    doc_topic_prior, topic_word_prior : float > 0, or None
        alpha and eta; None is 1 / n_components. With `optimize_interval`, what is started from.
    optimize_interval : int >= 0
        Gibbs: if above 0, alpha (one for each topic) and eta are estimated after each so many sweeps, by Minka's fixed
        point of the likelihood of the counts. The other methods spread a word over more topics than it has, so that
        their counts would lead to too large an alpha.
    learning_method : "batch" or "online"
        Variational: all documents for each step, or `batch_size` of them.
    learning_decay, learning_offset : float
        Online: step n weighs (learning_offset + n)^-learning_decay.
    max_iter : int >= 1
        Passes over the documents.
    batch_size : int >= 1
    evaluate_every : int
        If above 0, the perplexity is computed so often, and the fit ends when it falls by less than `perp_tol`.
    total_samples : float > 0
        Number of documents that `partial_fit` will see.
    perp_tol : float >= 0
    mean_change_tol : float > 0, max_doc_update_iter : int from 1 to 100,000
        A document's topics are improved until the mean change of its parameters is below the one, or so many times.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.
    verbose : int
    random_state : int, RandomState or None

    Attributes
    ----------
    components_ (n_components, words)
        Weights of the Dirichlet distribution of each topic's words; with Gibbs, mean counts plus eta.
    topics_ (n_components, words)
        Their means: the probability of each word in each topic.
    doc_topic_prior_, topic_word_prior_ : float
        alpha and eta; alpha is an array (n_components,) if it was estimated.
    bound_ : float
        Perplexity of the training documents at the end, from the variational bound.
    n_iter_, n_batch_iter_ : int

    An empty document has the topics of the prior. One topic is a table of frequencies.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.decomposition import LatentDirichletAllocation
    >>> X = np.array([[4, 3, 0, 0], [2, 5, 0, 0], [0, 0, 3, 4], [0, 0, 5, 2]])
    >>> model = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> topics = model.transform(X).argmax(axis=1)
    >>> bool(topics[0] == topics[1] != topics[2] == topics[3])
    True
    """

    card = Card(
        name="Latent Dirichlet allocation",
        task="density",
        model="mixtures of topics, which are distributions of words",
        strategy="variational lower bound of the log-likelihood, or the posterior given the words",
        algorithm="coordinate ascent, batch or online; collapsed variational passes; collapsed Gibbs sampling",
        guarantee=("topics.bound", "topics.monotone", "holdout.betting"),
    )
    family = "topics"
    figure = "topic_words"

    constraints: ClassVar = {
        "n_components": Count(),
        "method": Choice("variational", "collapsed", "gibbs"),
        "doc_topic_prior": Maybe(Positive()),
        "topic_word_prior": Maybe(Positive()),
        "optimize_interval": Count(low=0),
        "learning_method": Choice("batch", "online"),
        "learning_decay": Number(low=0.0, high=1.0),
        "learning_offset": Number(low=1.0),
        "max_iter": Count(low=0),
        "batch_size": Count(),
        "evaluate_every": Count(low=-1),
        "total_samples": Positive(),
        "perp_tol": Number(low=0.0),
        "mean_change_tol": Number(low=0.0),
        "max_doc_update_iter": Count(high=100_000),
    }

    n_components: int = 10
    _: KW_ONLY
    method: str = "variational"
    doc_topic_prior: float | None = None
    topic_word_prior: float | None = None
    optimize_interval: int = 0
    learning_method: str = "batch"
    learning_decay: float = 0.7
    learning_offset: float = 10.0
    max_iter: int = 10
    batch_size: int = 128
    evaluate_every: int = -1
    total_samples: float = 1e6
    perp_tol: float = 1e-1
    mean_change_tol: float = 1e-3
    max_doc_update_iter: int = 100
    n_jobs: int | None = None
    verbose: int = 0
    random_state: Any = None

    if TYPE_CHECKING:
        components_: np.ndarray
        doc_topic_prior_: Prior
        topic_word_prior_: float

    # Fitting ------------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "LatentDirichletAllocation":
        """Fit to a table of counts, documents by words, dense or sparse; y is not used."""
        check(self)
        if self.optimize_interval and self.method != "gibbs":
            raise refuse(self, "optimize_interval estimates priors from drawn topics: take method='gibbs'.")
        documents = self._read(X, reset=True)
        random = self._begin(documents.n_words)
        with fit_log(self, self.max_iter, X, None) as log, one_blas_thread():
            try:
                self._run(documents, random, log)
            except KeyboardInterrupt:
                log.stopped = True
                text = f"{type(self).__name__}: interrupted after {self.n_iter_} passes; the topics are those reached."
                warnings.warn(text, ConvergenceWarning, stacklevel=2)
            if not log.history:
                log.step(0.0, 0.0, components_=self.components_)
        self.bound_ = self._perplexity(documents, self._infer(documents).gamma)
        return self

    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None) -> "LatentDirichletAllocation":
        """Improve the topics by one step for each `batch_size` of these documents, of `total_samples` altogether."""
        check(self)
        if self.method != "variational":
            raise refuse(self, "partial_fit is for the variational method; the others need all documents at once.")
        first = not hasattr(self, "components_")
        documents = self._read(X, reset=first)
        if first:
            self._begin(documents.n_words)
        with fit_log(self, 1, X, None) as log, one_blas_thread():
            self._pass_online(documents, self.total_samples)
            log.step(0.0, 0.0, components_=self.components_)
        return self

    def _read(self, X: Any, *, reset: bool) -> Documents:
        rows = read_rows(self, X, None, reset=reset)
        require_finite(rows, self)
        return self._documents(_every_row(rows))

    def _documents(self, X: Any) -> Documents:
        documents = Documents.of(X, self.n_jobs)
        if documents.counts.size and documents.counts.min() < 0:
            raise ValueError(f"Negative values in data passed to {type(self).__name__}: words are counted.")
        return documents

    def _begin(self, n_words: int) -> np.random.RandomState:
        """Set the priors and the topics that the fit starts from, drawn as scikit-learn draws them."""
        share = 1.0 / self.n_components
        self.doc_topic_prior_ = share if self.doc_topic_prior is None else float(self.doc_topic_prior)
        self.topic_word_prior_ = share if self.topic_word_prior is None else float(self.topic_word_prior)
        self.random_state_ = random = check_random_state(self.random_state)
        self.components_ = random.gamma(100.0, 0.01, (self.n_components, n_words))
        self.n_batch_iter_, self.n_iter_ = 1, 0
        self.start_: np.ndarray | None = None
        return random

    def _run(self, documents: Documents, random: np.random.RandomState, log: FitLog) -> None:
        if self.method == "variational":
            (self._run_batch if self.learning_method == "batch" else self._run_online)(documents, log)
            return
        from assay.decomposition._topics_collapsed import run_collapsed, run_gibbs

        (run_gibbs if self.method == "gibbs" else run_collapsed)(self, documents, random, log)

    def _run_batch(self, documents: Documents, log: FitLog) -> None:
        self.start_ = self.components_
        gamma = np.ones((len(documents), self.n_components))
        last, before = np.inf, -np.inf
        for _ in range(self.max_iter):
            factors = word_factors(self.components_)
            if self.n_iter_:
                result, documents_bound = self._better(documents, factors, gamma)
            else:  # where documents are is the fresh start
                result = self._improve(documents, factors.B, gamma)
                documents_bound = float(document_bounds(documents, factors, self.doc_topic_prior_, gamma).sum())
            value = documents_bound + topic_bound(self.components_, self.topic_word_prior_)
            value /= max(documents.total, 1.0)
            self.components_ = self.topic_word_prior_ + expected_counts(documents, factors.B, result).T
            self.n_iter_ += 1
            self.n_batch_iter_ += 1
            gain, before = value - before, value
            asked = self.evaluate_every > 0 and self.n_iter_ % self.evaluate_every == 0
            perplexity = float(np.exp(-value))
            if self.verbose:
                more = f", perplexity: {perplexity:.4f}" if asked else ""
                print(f"iteration: {self.n_iter_} of max_iter: {self.max_iter}, bound per word: {value:.6f}{more}")
            stop = log.step(-value, abs(gain) if np.isfinite(gain) else abs(value), components_=self.components_)
            if asked:
                stop |= abs(last - perplexity) < self.perp_tol
                last = perplexity
            if stop:
                break

    def _run_online(self, documents: Documents, log: FitLog) -> None:
        last = np.inf
        for _ in range(self.max_iter):
            self._pass_online(documents, len(documents))
            self.n_iter_ += 1
            value = self._bound(documents, self._infer(documents).gamma) / max(documents.total, 1.0)
            if self.verbose:
                print(f"iteration: {self.n_iter_} of max_iter: {self.max_iter}, bound per word: {value:.6f}")
            perplexity = float(np.exp(-value))
            stop = log.step(-value, min(abs(last - perplexity), 1e300), components_=self.components_)
            stop |= self.evaluate_every > 0 and abs(last - perplexity) < self.perp_tol
            last = perplexity
            if stop:
                break

    def _pass_online(self, documents: Documents, total: float) -> None:
        for low in range(0, len(documents), self.batch_size):
            some = documents.some(low, min(low + self.batch_size, len(documents)))
            B = word_factors(self.components_).B
            result = self._improve(some, B, np.ones((len(some), self.n_components)))
            weight = (self.learning_offset + self.n_batch_iter_) ** -self.learning_decay
            counts = expected_counts(some, B, result).T * (total / len(some))
            self.components_ = (1 - weight) * self.components_ + weight * (self.topic_word_prior_ + counts)
            self.n_batch_iter_ += 1

    def _better(self, documents: Documents, factors: WordFactors, gamma: np.ndarray) -> tuple[Inferred, float]:
        """Improve gamma from where it is, and from a fresh start; keep in place what is better for each document."""
        result, fresh = (self._improve(documents, factors.B, item) for item in (gamma, np.ones_like(gamma)))
        old, new = (document_bounds(documents, factors, self.doc_topic_prior_, item.gamma) for item in (result, fresh))
        better = new > old
        gamma[better], result.factors[better] = fresh.gamma[better], fresh.factors[better]
        entries = np.repeat(better, np.diff(documents.offsets))
        result.ratios[entries] = fresh.ratios[entries]
        return result, float(np.where(better, new, old).sum())

    def _improve(self, documents: Documents, B: np.ndarray, gamma: np.ndarray) -> Inferred:
        tol = self.mean_change_tol if self.mean_change_tol > 0 else -1.0
        return infer_topics(documents, B, self.doc_topic_prior_, gamma, self.max_doc_update_iter, tol)

    # Answers ------------------------------------------------------------------------------------------------------

    @property
    def topics_(self) -> np.ndarray:
        """The probability of each word in each topic (n_components, words)."""
        return self.components_ / self.components_.sum(axis=1, keepdims=True)

    @property
    def exp_dirichlet_component_(self) -> np.ndarray:
        """exp(E[ln beta]) (n_components, words), by which topics of documents are inferred."""
        factors = word_factors(self.components_)
        return factors.B.T * np.exp(factors.logs)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def _asked(self, X: Any) -> Documents:
        check_is_fitted(self)
        return self._documents(validate_data(self, X, reset=False, dtype=np.float64, accept_sparse="csr"))

    def _infer(self, documents: Documents) -> Inferred:
        gamma = np.ones((len(documents), self.n_components))
        return self._improve(documents, word_factors(self.components_).B, gamma)

    def transform(self, X: Any, *, normalize: bool = True) -> np.ndarray:
        """Return the topics of each document (documents, n_components): shares, or Dirichlet weights with
        `normalize=False`."""
        gamma = self._infer(self._asked(X)).gamma
        return gamma / gamma.sum(axis=1, keepdims=True) if normalize else gamma

    def fit_transform(self, X: Any, y: Any = None, *, normalize: bool = True) -> np.ndarray:
        """Fit, and return the topics of each document."""
        return self.fit(X, y).transform(X, normalize=normalize)

    def _bound(self, documents: Documents, gamma: np.ndarray, share: float = 1.0) -> float:
        factors = word_factors(self.components_)
        result = document_bounds(documents, factors, self.doc_topic_prior_, gamma).sum() * share
        return float(result + topic_bound(self.components_, self.topic_word_prior_))

    def _perplexity(self, documents: Documents, gamma: np.ndarray, share: float = 1.0) -> float:
        words = max(documents.total * share, 1.0)
        return float(np.exp(-self._bound(documents, gamma, share) / words))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the variational lower bound of ln p(X), topics and documents together."""
        documents = self._asked(X)
        return self._bound(documents, self._infer(documents).gamma)

    def perplexity(self, X: Any, sub_sampling: bool = False) -> float:
        """Return exp(-bound / words); with `sub_sampling`, X is a part of `total_samples` documents."""
        documents = self._asked(X)
        share = self.total_samples / len(documents) if sub_sampling else 1.0
        return self._perplexity(documents, self._infer(documents).gamma, share)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return a lower bound of ln p of each document under `topics_`, its own topics integrated out."""
        documents = self._asked(X)
        return log_densities(documents, plain_factors(self.topics_), self.doc_topic_prior_)

    def heldout_perplexity(self, X: Any, *, share: float = 0.5, random_state: Any = 0) -> float:
        """Return the perplexity of words that were hidden from the inference of their document's topics.

        Each word of a document is hidden with probability 1 - share: exp(-mean ln p(hidden word | the others)).
        """
        logs, hidden = self._hidden_words(X, share, random_state)
        if not hidden.sum():
            raise refuse(self, "no word was hidden: pass more words, or a smaller share.")
        return float(np.exp(-logs.sum() / hidden.sum()))

    def _hidden_words(self, X: Any, share: float, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum of ln p of the hidden words of each document, and their number."""
        documents, random = self._asked(X), check_random_state(random_state)
        seen = random.binomial(documents.counts.astype(np.int64), share).astype(np.float64)
        hidden = documents.counts.astype(np.int64) - seen
        part = Documents(documents.words, seen, documents.offsets, documents.n_words, self.n_jobs)
        gamma = self._infer(part).gamma
        theta, topics = gamma / gamma.sum(axis=1, keepdims=True), self.topics_.T
        owner = np.repeat(np.arange(len(documents)), np.diff(documents.offsets))
        logs = np.empty(len(owner))
        for low in range(0, len(owner), 65_536):
            here = slice(low, low + 65_536)
            logs[here] = np.log(np.einsum("ij,ij->i", theta[owner[here]], topics[documents.words[here]]))
        counted = (np.bincount(owner, weights, minlength=len(documents)) for weights in (hidden * logs, hidden))
        return tuple(counted)  # type: ignore[return-value]

    def words(self, names: Sequence[str] | None = None, *, top: int = 10) -> list[list[str]]:
        """Return the `top` most probable words of each topic, by `names` or by the columns' own."""
        names = self._names(names)
        return [[names[j] for j in row] for row in np.argsort(-self.topics_, axis=1, kind="stable")[:, :top]]

    def coherence(
        self,
        X: Any,
        *,
        top: int = 10,
        measure: str = "u_mass",
        texts: Any = None,
        names: Sequence[str] | None = None,
        window: int = 110,
    ) -> np.ndarray:
        """Return how often the `top` words of each topic stand in the same documents of X, or windows of `texts`.

        "u_mass": mean over pairs of ln((D(v, w) + 1) / D(w)), w the more probable; "npmi": mean over pairs of
        ln(p(v, w) / (p(v) p(w))) / -ln p(v, w), from -1 to 1. Pairs with a word that X does not have count as 0. "c_v":
        mean cosine of the words' vectors of such numbers with their sum, from 0 to 1, which agrees best with people.

        Texts are lists of words, of `names` or of the columns' own, in order; X is then not read, and a window of so
        many words takes the place of a document. Published values of c_v are of windows of 110 words.
        """
        if measure not in MEASURES:
            raise refuse(self, f"measure must be one of {', '.join(map(repr, MEASURES))}; got {measure!r}.")
        best = np.argsort(-self.topics_, axis=1, kind="stable")[:, :top]
        places = np.full(self.n_features_in_, -1)
        used = np.unique(best)
        places[used] = np.arange(len(used))
        if texts is None:
            documents = self._asked(X)
            there, n = np.zeros((len(documents), len(used))), len(documents)
            owner, kept = np.repeat(np.arange(n), np.diff(documents.offsets)), places[documents.words] >= 0
            there[owner[kept], places[documents.words[kept]]] = 1.0
            together = there.T @ there
        else:
            number = {word: j for j, word in enumerate(self._names(names))}
            unknown = len(number)  # stands in the window, and is no word of the model
            coded = ([number.get(str(word), unknown) for word in text] for text in texts)
            together, n = windows_together(coded, np.append(places, -1), int(window))
        return np.array([coherence(together[np.ix_(places[row], places[row])], n, measure) for row in best])

    def _names(self, names: Sequence[str] | None) -> list[str]:
        check_is_fitted(self)
        if names is None:
            names = getattr(self, "feature_names_in_", [str(j) for j in range(self.n_features_in_)])
        if len(names) != self.n_features_in_:
            raise refuse(self, f"names must be {self.n_features_in_}, one for each word; got {len(names)}.")
        return [str(name) for name in names]

    # Certificates -------------------------------------------------------------------------------------------------

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:

        yield from facts(self, rows)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:

        yield density(self)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        rows = super()._known_rows(X, y, sample_weight)
        self._documents(_every_row(rows))
        return rows

    def _derive(self) -> None:
        if self.components_.shape[0] != self.n_components:
            raise refuse(self, "n_components is not the number of topics.")
        for name in () if self.optimize_interval else ("doc_topic_prior", "topic_word_prior"):
            given, used = getattr(self, name), getattr(self, f"{name}_")
            wanted = 1.0 / self.n_components if given is None else given
            if not isinstance(wanted, numbers.Real) or float(used) != float(wanted):
                raise refuse(self, "the priors are not those of the parameters.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = tags.input_tags.sparse = True
        return tags


def log_densities(documents: Documents, factors: WordFactors, alpha: Prior) -> np.ndarray:
    """Return the lower bound of ln p of each document after DOC_STEPS steps."""
    K = factors.B.shape[1]
    gamma = np.broadcast_to(alpha, K) + documents.sums(documents.counts)[:, None] / K
    infer_topics(documents, factors.B, alpha, gamma, DOC_STEPS, -1.0)
    return document_bounds(documents, factors, alpha, gamma)

"""How good topics are: whether their words stand together, and how many topics hold-out words ask for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

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

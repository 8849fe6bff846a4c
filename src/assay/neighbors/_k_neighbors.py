"""k nearest neighbours: the label that most of the k nearest training rows have, or the mean of their targets.

    votes_c(x) = sum over the k nearest rows i of w_i 1[y_i = c],   w_i = 1, or 1 / distance
    f(x)       = sum over the k nearest rows i of w_i y_i / sum of w_i

Nothing is minimised: the rows are the model. Of rows at the same distance the ones that come first count as nearer.

Claims: training errors, or the mean squared error, with near-ties decided in exact arithmetic; the listed neighbours of
        some rows are the nearest ones (knn.neighbors); the number of rows whose label has no majority among their k
        nearest other rows (knn.loo-errors), and from it the error rate on new data of this very model (knn.loo;
        `assay.theory.neighbors` has the proof). The class has infinite VC dimension, so its size says nothing.
Method: `_search`.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from assay.base import label_classes, streams
from assay.card import Card, log, options
from assay.claims.claim import Claim, NotApplicable
from assay.claims.model import StoredModel
from assay.data.blocks import Block
from assay.guarantees.evidence import Evidence, Predictions, Tally, Votes
from assay.guarantees.ledger import Statement, Vacuous, error_rate
from assay.messages import Message
from assay.neighbors._base import KeptRows, Neighbors, VoteWeights, neighbor_weights, without
from assay.neighbors._search import nearest
from assay.params import refuse
from assay.scan import Rows
from assay.theory.neighbors import loo_bound, majority
from assay.theory.spaces import Space, Unbounded

_ROUNDING = 2.0**-44  # of a weighted mean, relative to its largest term; the checker bounds its own
_LISTED = 64  # rows whose neighbours a certificate lists
_CHECKED = ("euclidean", "manhattan", "chebyshev")


class NearestRows:
    """The family of classifiers by k nearest rows, which depend on every row and shatter sets of any size."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        return Unbounded("labels of nearest training rows, of which any number can be given any labels")

    def __str__(self) -> str:
        return "labels of the k nearest training rows"


class LabelColumns(ClassifierMixin, KeptRows):
    """Rows kept with their labels, one column or several."""

    classes_: Any
    fit_y_: np.ndarray

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Any:
        """Keep the rows X and their labels y, one column or several."""
        if not streams(X, y) and np.asarray(y).shape[1:] > (1,):
            rows = self._read(X, y, multi_output=True)
            labels = np.asarray(self._keep(rows, X, y))
            parts = [np.unique(column, return_inverse=True) for column in labels.T]
            self.classes_ = [classes for classes, _ in parts]
            self.fit_y_ = np.stack([codes for _, codes in parts], axis=1)
            return self
        rows = self._read(X, y)
        self.classes_ = label_classes(self, rows, least=1)
        self.fit_y_ = np.asarray(self._keep(rows.encoded(self.classes_), X, y), dtype=np.int64)
        return self

    @property
    def outputs_2d_(self) -> bool:
        """Whether there are several columns of labels."""
        return self.fit_y_.ndim == 2

    def stored(self) -> StoredModel:
        """Return this fitted model as plain data."""
        if hasattr(self, "fit_y_") and self.outputs_2d_:
            raise refuse(self, "a model of several targets cannot be saved; fit one for each column of y.")
        return super().stored()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


@dataclass(eq=False, repr=False)
class KNeighborsClassifier(LabelColumns, Neighbors):
    """Classification by the vote of the k nearest training rows.

    Parameters
    ----------
    n_neighbors : int
        k, the number of voters.
    weights : "uniform", "distance" or a function of an array of distances
        Weight of each voter: 1, the inverse of its distance, or what the function returns.
    algorithm : "auto", "brute", "kd_tree" or "ball_tree"
        How to search: products of matrices ("brute"), a tree of boxes (either name), or whichever a sample of the
        queries says is faster. All find the same neighbours.
    leaf_size : int
        Rows that a part of the tree may hold, at most 32.
    p : float > 0
        Order of the Minkowski distance; below 1 it is no metric, and all distances are computed.
    metric : str, distance of `assay.metrics.distance`, or function of two rows
        "minkowski", "euclidean", "manhattan", "chebyshev", "cosine", "precomputed" (X holds distances to the training
        rows), or any name that `sklearn.metrics.pairwise_distances` knows.
    metric_params : dict, optional
        For "minkowski" `w`, the weights of the columns; for other metrics what they take.
    n_jobs : int or None
        Threads; None uses all cores. The number changes no neighbour.

    Attributes
    ----------
    classes_
    fit_X_ : (n, n_features), fit_y_ : (n,) or (n, columns of y)
        The training rows and the positions of their labels in `classes_`, which is a list if y has several columns.

    Examples
    --------
    >>> from assay.neighbors import KNeighborsClassifier
    >>> model = KNeighborsClassifier(n_neighbors=3).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict([[1.1]]), model.predict_proba([[0.9]])
    (array([0]), array([[0.66666667, 0.33333333]]))
    >>> distance, row = model.kneighbors([[2.9]], n_neighbors=2)
    >>> distance.round(3), row
    (array([[0.1, 0.9]]), array([[3, 2]]))
    """

    further_loops = ({"algorithm": "brute"}, {"algorithm": "kd_tree"})
    card = Card(
        name="k nearest neighbours",
        task="classify",
        model=NearestRows(),
        strategy="none: the vote of the k nearest training rows",
        algorithm="single-precision products ranked again in double, or a tree of boxes",
        guarantee=("knn.neighbors", "knn.loo-errors", "knn.loo"),
        most_rows=50_000,
        search={"n_neighbors": log(1, 50, whole=True), "weights": options("uniform", "distance"), "p": options(1, 2)},
        first=4,
    )
    family = "neighbors.classifier"

    constraints: ClassVar = {"weights": VoteWeights()}

    _: KW_ONLY
    weights: Any = "uniform"

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with most votes, the first of equals, for each row (and column of y)."""
        votes = self._votes(X)
        if self.outputs_2d_:
            columns = zip(self.classes_, votes)
            return np.stack([classes[part.argmax(axis=1)] for classes, part in columns], axis=1)
        return self.classes_[votes.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Any:
        """Return the share of the votes of each class; a list of these if y had several columns."""
        votes = self._votes(X)
        if self.outputs_2d_:
            return [part / part.sum(axis=1, keepdims=True) for part in votes]
        return votes / votes.sum(axis=1, keepdims=True)

    def _votes(self, X: Any) -> Any:
        check_is_fitted(self)
        distance, index = self.kneighbors(X)
        weights = neighbor_weights(self, self.weights, distance)
        if self.outputs_2d_:
            columns = zip(self.classes_, self.fit_y_.T)
            return [count_votes(codes[index], weights, len(classes)) for classes, codes in columns]
        return count_votes(self.fit_y_[index], weights, len(self.classes_))

    # What the checker reads, and what is told to it

    @property
    def neighbor_numbers_(self) -> np.ndarray:
        """k, the number of the distance (0 Euclidean, 1 Manhattan, 2 Chebyshev) and of the weights (0 equal, 1 inverse
        distance), as the checker reads them; -1 for what it does not have."""
        known = ("euclidean", "manhattan", "chebyshev"), ("uniform", "distance")
        given = self.effective_metric_, "uniform" if self.weights is None else self.weights
        codes = [
            names.index(item) if isinstance(item, str) and item in names else -1 for names, item in zip(known, given)
        ]
        return np.array([self.n_neighbors, *codes])

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        reason = why_not(self)
        if reason:
            raise refuse(self, reason)
        return super()._known_rows(X, y, sample_weight)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predicted classes."""
        yield Votes(codes_of_block, (self,))
        yield Tally(_tally, (self,))

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the neighbours of some rows, and the number of rows without a majority when left out."""
        yield from neighbor_facts(self, rows)
        yield from vote_facts(self, rows)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield the error rate on new data from the rows left out one at a time."""
        yield loo_statement(self, rows)


def count_votes(codes: np.ndarray, weights: np.ndarray | None, n_classes: int) -> np.ndarray:
    """Return the sum of the weights of each class in each row of codes (rows, k)."""
    votes, rows = np.zeros((len(codes), n_classes)), np.arange(len(codes))
    for j in range(codes.shape[1]):
        votes[rows, codes[:, j]] += 1.0 if weights is None else weights[:, j]
    return votes


@dataclass(eq=False, repr=False)
class KNeighborsRegressor(RegressorMixin, Neighbors):
    """Regression by the mean of the k nearest training rows.

    Parameters
    ----------
    n_neighbors, weights, algorithm, leaf_size, p, metric, metric_params, n_jobs
        As in `KNeighborsClassifier`.

    Attributes
    ----------
    fit_X_ : (n, n_features), fit_y_ : (n,) or (n, n_targets)
        The training rows and their targets.

    Examples
    --------
    >>> from assay.neighbors import KNeighborsRegressor
    >>> model = KNeighborsRegressor(n_neighbors=2).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0])
    >>> model.predict([[1.4]])
    array([2.5])
    """

    further_loops = ({"algorithm": "brute"}, {"algorithm": "kd_tree"})
    card = Card(
        name="k nearest neighbours regression",
        task="regress",
        model=NearestRows(),
        strategy="none: the mean of the k nearest training rows",
        algorithm="single-precision products ranked again in double, or a tree of boxes",
        guarantee=("knn.neighbors",),
        most_rows=50_000,
        search={"n_neighbors": log(1, 50, whole=True), "weights": options("uniform", "distance"), "p": options(1, 2)},
        first=3,
    )
    family = "neighbors.regressor"

    constraints: ClassVar = {"weights": VoteWeights()}

    _: KW_ONLY
    weights: Any = "uniform"

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "KNeighborsRegressor":
        """Keep the rows X and their targets y, one column or several."""
        rows = self._read(X, y)
        self.fit_y_ = np.array(self._keep(rows, X, y), dtype=np.float64)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean target of the k nearest rows, weighted if `weights` says so."""
        check_is_fitted(self)
        distance, index = self.kneighbors(X)
        return self._means(distance, index)

    def _means(self, distance: np.ndarray, index: np.ndarray) -> np.ndarray:
        weights, targets = neighbor_weights(self, self.weights, distance), self.fit_y_[index]
        if weights is None:
            return targets.mean(axis=1)
        shares = weights / weights.sum(axis=1, keepdims=True)
        return np.einsum("ij,ij...->i...", shares, targets)

    neighbor_numbers_ = KNeighborsClassifier.neighbor_numbers_

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        reason = why_not(self)
        if reason:
            raise refuse(self, reason)
        return super()._known_rows(X, y, sample_weight)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions."""
        yield Predictions(_predicted, (self,))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the neighbours of some rows."""
        yield from neighbor_facts(self, rows)


def _predicted(block: Block, learner: KNeighborsRegressor) -> tuple[np.ndarray, np.ndarray]:
    """Return the predictions of a block and how far rounding can move them: the neighbours are those of the checker."""
    size = np.abs(learner.fit_y_.reshape(learner.n_samples_fit_, -1)).max(axis=0)
    distance, index = learner._nearest(np.ascontiguousarray(block.X), int(learner.n_neighbors))
    means = learner._means(distance, index).reshape(len(index), -1)
    gap = np.abs(np.asarray(block.y).reshape(means.shape) - means)
    return means, _ROUNDING * (size + gap)


def why_not(learner: Any) -> str:
    """Return why the checker cannot follow this learner, or nothing."""
    metric, k, n = learner.effective_metric_, learner.n_neighbors, learner.n_samples_fit_
    if is_classifier(learner) and learner.outputs_2d_:
        return "certificates are about one target; fit a model for each column of y."
    if is_classifier(learner) and len(learner.classes_) < 2:
        return "a certificate needs two classes; all training rows have one label."
    if hasattr(learner.fit_X_, "tocsr"):
        return "certificates need dense rows: fit it to X.toarray()."
    if k > n:
        return f"n_neighbors = {k} is more than the {n} training rows; lower it."
    if not isinstance(metric, str) or metric not in _CHECKED:
        return f"certificates are about the distances {', '.join(_CHECKED)}; this model has {metric!r}."
    if learner.weights not in ("uniform", "distance", None):
        return "certificates are about weights 'uniform' or 'distance', not about a function."
    return ""


def predicted_codes(learner: Any, Q: np.ndarray) -> np.ndarray:
    """Return the position of the class of each row, as `predict` finds it: the checker ranks by the same distances, bit
    by bit, and adds the same votes in the same order."""
    distance, index = learner._nearest(np.ascontiguousarray(Q), int(learner.n_neighbors))
    weights = neighbor_weights(learner, learner.weights, distance)
    return count_votes(learner.fit_y_[index], weights, len(learner.classes_)).argmax(axis=1)


def codes_of_block(block: Block, learner: Any) -> np.ndarray:
    """Return the position of the class of each row."""
    return predicted_codes(learner, block.X)


def _tally(block: Block, learner: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the votes for each class; inverse distances are rounded, votes that count alike are not."""
    votes = learner._votes(block.X)
    rounded = (
        0.0 if learner.weights in (None, "uniform") else 2.0**-49 * (votes.shape[1] + 8 * learner.n_neighbors + 32)
    )
    return votes, rounded * votes.sum(axis=1)


def _other_neighbors(learner: Any, asked: np.ndarray) -> np.ndarray:
    """Return the row numbers of the k nearest other rows of some training rows."""
    Q, k = np.ascontiguousarray(learner.fit_X_[asked]), int(learner.n_neighbors)
    powers, index = nearest(learner._engine(Q, k), Q, k + 1, learner.n_jobs)
    return without(powers, index, asked)[1]


# Claims -----------------------------------------------------------------------------------------------------
_OTHER_ROWS = Message("why.other-order")


def _same_rows(learner: Any, rows: Rows) -> bool:
    """Tell whether `rows` are the stored ones, in order."""
    at = 0
    for block in rows.blocks():
        part = slice(at, at + len(block.X))
        if not np.array_equal(block.X, learner.fit_X_[part]) or not np.array_equal(block.y, learner.fit_y_[part]):
            return False
        at += len(block.X)
    return at == learner.n_samples_fit_


def neighbor_facts(learner: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield the k nearest other rows of a few rows, evenly spaced among the training rows."""
    k, n = int(learner.n_neighbors), learner.n_samples_fit_
    if n <= k or not _same_rows(learner, rows):
        yield NotApplicable("knn.neighbors", _OTHER_ROWS if n > k else Message("why.more-than-k", k=k))
        return
    asked = np.unique(np.linspace(0, n - 1, min(n, _LISTED)).astype(np.int64))
    witness = {"queries": asked, "neighbors": _other_neighbors(learner, asked)}
    yield Claim("knn.neighbors", float(len(asked)), "lower", {"k": k}, witness=witness)


def why_no_majorities(learner: Any, rows: Rows) -> str:
    """Return why no row can be left out and put to the vote, or nothing."""
    if learner.weights not in ("uniform", None):
        return Message("why.equal-votes")
    if learner.n_samples_fit_ < int(learner.n_neighbors) + 2:
        return Message("why.k-plus-two", rows=learner.n_neighbors + 2)
    return "" if _same_rows(learner, rows) else _OTHER_ROWS


def vote_facts(learner: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield the number of rows whose label has no majority among their k nearest other rows."""
    reason = why_no_majorities(learner, rows)
    if reason:
        yield NotApplicable("knn.loo-errors", reason)
    else:
        k = int(learner.n_neighbors)
        yield Claim("knn.loo-errors", float(lost_rows(learner)), params={"k": k, "rows": learner.n_samples_fit_})


def lost_rows(learner: Any) -> int:
    """Return how many training rows have no majority of their own label among their k nearest other rows."""
    n, k = learner.n_samples_fit_, int(learner.n_neighbors)
    known = ("lost", k)
    if known in learner._made:
        return learner._made[known]
    agree = (learner.fit_y_[_other_neighbors(learner, np.arange(n))] == learner.fit_y_[:, None]).sum(axis=1)
    learner._made[known] = int(np.sum(agree < majority(k)))
    return learner._made[known]


def loo_statement(learner: Any, rows: Rows) -> Any:
    """Return how to state knn.loo: the error rate of this model from the rows left out in turn, or why it is not."""
    reason = why_no_majorities(learner, rows)
    return NotApplicable("knn.loo", reason) if reason else partial(_loo, learner)


def _loo(learner: Any, delta: str) -> Claim | NotApplicable:
    n, k = learner.n_samples_fit_, int(learner.n_neighbors)
    errors = lost_rows(learner)
    bound = loo_bound(errors, n, k, float(delta))
    if bound >= 1:
        return Vacuous("knn.loo", Message("why.few-for-k", rows=n, k=k), delta)
    return error_rate("knn.loo", bound, {"k": k, "errors": errors, "rows": n}, "train", delta)

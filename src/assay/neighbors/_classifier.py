"""k nearest neighbours, classification: the label that most of the k nearest training rows have.

    votes_c(x) = sum over the k nearest rows i of w_i 1[y_i = c],   w_i = 1, or 1 / distance

Nothing is minimised: the rows are the model. Of rows at the same distance the ones that come first count as nearer.

Claims: training errors with near-ties decided in exact arithmetic; the listed neighbours of some rows are the nearest
        ones (knn.neighbors); the number of rows whose label has no majority among their k nearest other rows
        (knn.loo-errors), and from it the error rate on new data of this very model (knn.loo; `assay.theory.neighbors`
        has the proof). The class has infinite VC dimension, so its size says nothing.
Method: `_search`.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from assay.base import label_classes, streams
from assay.card import Card, log, options
from assay.claims.claim import Claim, NotApplicable
from assay.claims.model import StoredModel
from assay.guarantees.evidence import Evidence, Votes
from assay.guarantees.ledger import Statement
from assay.neighbors._base import KeptRows, Neighbors, VoteWeights, neighbor_weights
from assay.neighbors._claims import loo_statement, neighbor_facts, sure_codes, vote_facts, why_not
from assay.params import refuse
from assay.scan import Rows
from assay.theory.spaces import Space, Unbounded


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

    card = Card(
        name="k nearest neighbours",
        zh="k近邻",
        mission=("CLU-03", "CLU-35", "CLU-36"),
        task="classify",
        model=NearestRows(),
        strategy="none: the vote of the k nearest training rows",
        algorithm="single-precision products ranked again in double, or a tree of boxes",
        guarantee=("knn.neighbors", "knn.loo-errors", "knn.loo"),
        most_rows=50_000,
        search={"n_neighbors": log(1, 50, whole=True), "weights": options("uniform", "distance"), "p": options(1, 2)},
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
        codes = [names.index(one) if isinstance(one, str) and one in names else -1 for names, one in zip(known, given)]
        return np.array([self.n_neighbors, *codes])

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        reason = why_not(self)
        if reason:
            raise refuse(self, reason)
        return super()._known_rows(X, y, sample_weight)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predicted classes."""
        yield Votes(sure_codes, (self,))

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

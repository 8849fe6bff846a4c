"""Radius neighbours: the vote, or the mean, of all training rows within a radius; and the search without a target.

    votes_c(x) = sum over rows i with d(x, x_i) <= r of w_i 1[y_i = c],   f(x) = sum w_i y_i / sum w_i

A row without a neighbour within the radius is an outlier.

Claims: training errors, or the mean squared error, and hold-out statements, with rows on the rim decided in exact
        arithmetic. The class has infinite VC dimension, so its size says nothing.
Method: all distances, a block of queries at a time; Euclidean ones by products, those near the radius computed again.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import RegressorMixin, is_classifier
from sklearn.callback import with_callbacks
from sklearn.neighbors._base import RadiusNeighborsMixin
from sklearn.utils.validation import check_is_fitted

from assay.card import Card
from assay.data.blocks import Block
from assay.guarantees.evidence import NOBODY, OPEN, Evidence, Predictions, Tally, Votes
from assay.neighbors._base import KeptRows, Neighbors, VoteWeights, check_mode
from assay.neighbors._k_neighbors import LabelColumns, NearestRows
from assay.params import Number, refuse
from assay.scan import Rows, thread_map

_QUERIES = 256  # a block of queries
_RIM = 1e-9  # relative distance from the radius within which sums are taken in a fixed order
_DEFINED = ("euclidean", "manhattan", "chebyshev")


class Within(NamedTuple):
    """Pairs of queries and training rows: row numbers and distances of all, and where each query's begin."""

    starts: np.ndarray  # (queries + 1,)
    rows: np.ndarray
    distances: np.ndarray

    @property
    def queries(self) -> np.ndarray:
        """The query of each pair."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


class RadiusSearch(RadiusNeighborsMixin):  # so that tools which ask isinstance are answered
    """What learners share that ask all kept rows within a radius; they also are `KeptRows`."""

    radius: float
    fit_X_: Any
    n_jobs: int | None
    n_samples_fit_: int
    effective_metric_: Any
    _made: dict[Any, Any]
    _queries: Any
    _all_distances: Any

    def radius_neighbors(
        self, X: Any = None, radius: Any = None, return_distance: bool = True, sort_results: bool = False
    ) -> Any:
        """Return, for each row, an array of distances to the training rows within the radius and one of their numbers.

        Parameters
        ----------
        X : (n, n_features), or None for the training rows, none of which is then its own neighbour
        radius : float or (n,), optional
            One for all rows, or one each; the learner's own if None.
        return_distance : bool
            Whether to return (distances, row numbers) or the row numbers alone.
        sort_results : bool
            Nearest first; otherwise in order of the training rows.
        """
        check_is_fitted(self)
        if sort_results and not return_distance:
            raise refuse(self, "return_distance must be True if sort_results is.")
        result = self._within(self._queries(X), self.radius if radius is None else radius, X is None)
        distances, rows = np.empty(len(result.starts) - 1, object), np.empty(len(result.starts) - 1, object)
        for i, (low, high) in enumerate(zip(result.starts[:-1], result.starts[1:])):
            order = np.argsort(result.distances[low:high], kind="stable") if sort_results else slice(None)
            distances[i], rows[i] = result.distances[low:high][order], result.rows[low:high][order]
        return (distances, rows) if return_distance else rows

    def radius_neighbors_graph(
        self, X: Any = None, radius: Any = None, mode: str = "connectivity", sort_results: bool = False
    ) -> Any:
        """Return the matrix (queries, training rows) with an entry for each neighbour: 1, or with mode="distance" the
        distance; the entries of a row stand in order of the training rows, or nearest first with `sort_results`."""
        check_is_fitted(self)
        check_mode(self, mode)
        result = self._within(self._queries(X), self.radius if radius is None else radius, X is None)
        if sort_results:
            order = np.lexsort((result.distances, result.queries))
            result = Within(result.starts, result.rows[order], result.distances[order])
        values = np.ones(len(result.rows)) if mode == "connectivity" else result.distances
        return csr_matrix((values, result.rows, result.starts), shape=(len(result.starts) - 1, self.n_samples_fit_))

    def _within(self, Q: Any, radius: Any, leave_out: bool = False) -> Within:
        """Return the pairs within the radius, or within each query's own; with `leave_out` the queries are the training
        rows themselves."""
        n = Q.shape[0]
        radii = np.asarray(radius, dtype=np.float64)
        if radii.shape not in ((), (n,)) or not (radii >= 0).all():
            raise refuse(self, f"radius must be a number >= 0, or one for each of {n} rows; got {radius!r}.")
        radii = np.broadcast_to(radii, (n,))
        cuts = [slice(start, min(start + _QUERIES, n)) for start in range(0, n, _QUERIES)]

        def search(cut: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            query, row, distance = self._block_within(Q[cut], radii[cut])
            if leave_out:
                other = row != query + cut.start
                query, row, distance = query[other], row[other], distance[other]
            return np.bincount(query, minlength=cut.stop - cut.start), row, distance

        counts, rows, distances = (np.concatenate(part) for part in zip(*thread_map(search, cuts, n_jobs=self.n_jobs)))
        return Within(np.append(0, np.cumsum(counts)), rows, distances)

    def _block_within(self, Q: Any, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return query, row and distance of the pairs within the radius."""
        metric = self.effective_metric_
        if isinstance(metric, str) and metric == "euclidean" and not hasattr(self.fit_X_, "tocsr"):
            center, X, lengths = self._centred()
            rows = Q - center
            own = np.einsum("ij,ij->i", rows, rows)
            squares = rows @ X.T
            squares *= -2.0
            squares += lengths
            slack = 1e-12 * (own + lengths.max(initial=0.0))
            query, row = np.nonzero(squares <= (radius * radius * (1 + 1e-12) + slack - own)[:, None])
            distance = np.sqrt(((Q[query] - self.fit_X_[row]) ** 2).sum(axis=1))
            return self._inside(Q, radius, query, row, distance)
        if isinstance(metric, str) and metric == "precomputed" and hasattr(Q, "tocsr"):
            entries = Q.tocoo()  # zeros that are kept are entries too
            near = entries.data <= radius[entries.row]
            return entries.row[near].astype(np.int64), entries.col[near].astype(np.int64), entries.data[near]
        distances = self._all_distances()(Q)
        query, row = np.nonzero(distances <= radius[:, None] * (1 + _RIM))
        return self._inside(Q, radius, query, row, distances[query, row])

    def _inside(self, Q: Any, radius: np.ndarray, query: Any, row: Any, distance: Any) -> tuple[Any, Any, Any]:
        """Return the pairs within the radius. Where rounding could decide, distances are added column by column: which
        rows are within is then the same whatever the machine, and the checker finds the same ones."""
        metric, X = self.effective_metric_, self.fit_X_
        if isinstance(metric, str) and metric in _DEFINED and isinstance(X, np.ndarray) and isinstance(Q, np.ndarray):
            rim = np.flatnonzero(np.abs(distance - radius[query]) <= _RIM * radius[query])
            gaps = np.abs(Q[query[rim]] - X[row[rim]])
            distance[rim] = gaps.max(axis=1) if metric == "chebyshev" else _summed(gaps, metric)
        near = distance <= radius[query]
        return query[near], row[near], distance[near]

    def _centred(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if "centred" not in self._made:
            center = self.fit_X_.mean(axis=0)
            X = self.fit_X_ - center
            self._made["centred"] = center, X, np.einsum("ij,ij->i", X, X)
        return self._made["centred"]


@dataclass(eq=False, repr=False)
class NearestNeighbors(RadiusSearch, Neighbors):
    """The k nearest of the rows it was fitted to, or all within a radius.

    Parameters
    ----------
    radius : float >= 0
        Of `radius_neighbors`.
    n_neighbors, algorithm, leaf_size, metric, p, metric_params, n_jobs
        As in `KNeighborsClassifier`.

    Examples
    --------
    >>> from assay.neighbors import NearestNeighbors
    >>> found = NearestNeighbors(n_neighbors=2).fit([[0.0], [1.0], [3.0]])
    >>> found.kneighbors([[0.8]], return_distance=False), found.kneighbors_graph().toarray()[0]
    (array([[1, 0]]), array([0., 1., 1.]))
    """

    family = "neighbors.rows"

    _: KW_ONLY
    n_neighbors: int = 5
    radius: float = 1.0

    constraints: ClassVar = {"radius": Number(low=0.0)}

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "NearestNeighbors":
        """Keep the rows X; y is not looked at."""
        self._keep(self._read(X, None), X, None)
        return self


def _summed(gaps: np.ndarray, metric: str) -> np.ndarray:
    """Return Euclidean or Manhattan distances from the gaps in each column, added in order."""
    if metric == "euclidean":
        return np.sqrt(np.add.accumulate(gaps * gaps, axis=1)[:, -1])
    return np.add.accumulate(gaps, axis=1)[:, -1]


_ROUNDING = 2.0**-44  # of a weighted mean, relative to its largest term
_CHECKED = ("euclidean", "manhattan", "chebyshev")


class RadiusVotes(RadiusSearch, KeptRows):
    """What both learners share: weights of the rows within the radius, and which these are for certain."""

    figure = "neighbor_counts"
    weights: Any

    def _pair_weights(self, within: Within) -> np.ndarray:
        """Return the weight of each pair; of inverse distances, rows at distance zero outweigh all others."""
        weights = self.weights
        if weights in (None, "uniform"):
            return np.ones(len(within.rows))
        if callable(weights):
            parts = [weights(within.distances[a:b]) for a, b in zip(within.starts[:-1], within.starts[1:])]
            return np.asarray(np.concatenate(parts) if parts else [], dtype=np.float64)
        with np.errstate(divide="ignore"):
            inverse = 1.0 / within.distances
        on_top = np.isinf(inverse)
        touched = np.bincount(within.queries, on_top, minlength=len(within.starts) - 1) > 0
        return np.where(touched[within.queries], on_top, inverse)

    # Certificate

    @property
    def radius_numbers_(self) -> np.ndarray:
        """The radius, the number of the distance and of the weights, as the checker reads them; -1 for others."""
        known = _CHECKED, ("uniform", "distance")
        metric = None if self.metric_params else self.effective_metric_  # weights of columns, say, are not checked
        given = metric, "uniform" if self.weights is None else self.weights
        codes = [
            names.index(item) if isinstance(item, str) and item in names else -1 for names, item in zip(known, given)
        ]
        return np.array([float(self.radius), *map(float, codes)])

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if (self.radius_numbers_ < 0).any():
            raise refuse(
                self, f"certificates are about the distances {', '.join(_CHECKED)} and weights 'uniform' or 'distance'."
            )
        if self.fit_y_.ndim == 2 and is_classifier(self):
            raise refuse(self, "certificates are about one column of labels; fit one for each column of y.")
        if is_classifier(self) and len(self.classes_) < 2:
            raise refuse(self, "a certificate needs two classes; all training rows have one label.")
        if hasattr(self.fit_X_, "tocsr"):
            raise refuse(self, "certificates need dense rows: fit it to X.toarray().")
        return super()._known_rows(X, y, sample_weight)


@dataclass(eq=False, repr=False)
class RadiusNeighborsClassifier(LabelColumns, RadiusVotes):
    """Classification by the vote of all training rows within a radius.

    Parameters
    ----------
    radius : float >= 0
    weights, algorithm, leaf_size, p, metric, metric_params, n_jobs
        As in `KNeighborsClassifier`; all distances are computed, whatever `algorithm` says.
    outlier_label : label, list of labels, "most_frequent" or None
        What a row gets for which nobody votes, as no training row is within the radius or all that are have the
        weight 0: this label (or one for each column of y), the most frequent one, or an error.

    Attributes
    ----------
    classes_
    outlier_label_ : list of a label for each column of y, or None
    fit_X_ : (n, n_features), fit_y_ : (n,) or (n, columns of y)
        The training rows and the positions of their labels in `classes_`, which is a list if y has several columns.

    Examples
    --------
    >>> from assay.neighbors import RadiusNeighborsClassifier
    >>> model = RadiusNeighborsClassifier(radius=1.0, outlier_label=-1)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[0.5], [2.6], [9.0]])
    array([ 0,  1, -1])
    """

    card = Card(
        name="Neighbours within a radius",
        task="classify",
        model=NearestRows(),
        strategy="none: the vote of the training rows within a radius",
        algorithm="all distances, those near the radius in double precision",
        guarantee=(),
        most_rows=0,
        role="named",  # a radius is chosen with the rows in view
    )
    family = "radius.classifier"
    constraints: ClassVar = {"weights": VoteWeights(), "radius": Number(low=0.0)}

    radius: float = 1.0
    _: KW_ONLY
    weights: Any = "uniform"
    outlier_label: Any = None

    def fit(self, X: Any, y: Any = None) -> "RadiusNeighborsClassifier":
        """Keep the rows X and their labels y, one column or several."""
        super().fit(X, y)
        self._check_outlier_label()
        return self

    def _take_arrays(self, arrays: Mapping[str, Any]) -> None:
        super()._take_arrays(arrays)
        self._check_outlier_label()

    def _check_outlier_label(self) -> None:
        if self.outlier_label is None or self._takes_most_frequent:
            return
        given, columns = self.outlier_label, self._label_columns()
        if np.ndim(given) and len(given) != len(columns):
            raise refuse(
                self,
                f"the length of outlier_label, {len(given)}, is inconsistent with the output length, {len(columns)}.",
            )
        for (classes, _), label in zip(columns, self.outlier_label_):
            if np.ndim(label) or np.append(classes, label).dtype != classes.dtype:
                raise TypeError(
                    f"{type(self).__name__}: outlier_label must be one label of the type of y ({classes.dtype}) for "
                    f"each column of y; got {label!r}."
                )

    @property
    def _takes_most_frequent(self) -> bool:
        return isinstance(self.outlier_label, str) and self.outlier_label == "most_frequent"

    def _label_columns(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the classes and the codes of each column of labels."""
        if self.outputs_2d_:
            return list(zip(self.classes_, self.fit_y_.T))
        return [(self.classes_, self.fit_y_)]

    @property
    def outlier_label_(self) -> Any:
        """The label of a row without neighbours, of each column of labels, or None."""
        if self.outlier_label is None:
            return None
        columns = self._label_columns()
        if self._takes_most_frequent:
            return [classes[np.bincount(codes).argmax()] for classes, codes in columns]
        return list(self.outlier_label) if np.ndim(self.outlier_label) else [self.outlier_label] * len(columns)

    @property
    def outlier_code_(self) -> np.ndarray:
        """The position of that label among the classes of each column, -1 if it is none of them, as the checker reads
        it."""
        columns = self._label_columns()
        labels = self.outlier_label_ or [None] * len(columns)
        results = [np.flatnonzero(classes == label) for (classes, _), label in zip(columns, labels)]
        return np.array([int(at[0]) if len(at) else -1 for at in results])

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with most votes, the first of equals, for each row (and column of y); `outlier_label_` where
        nobody votes."""
        results, every = [], self._votes(X)
        for k, ((classes, _), votes) in enumerate(zip(self._label_columns(), every)):
            labels, nobody = classes[votes.argmax(axis=1)], np.flatnonzero(~votes.any(axis=1))
            if len(nobody) and self.outlier_label is None:
                raise refuse(
                    self,
                    f"the neighbors of {len(nobody)} rows, the first at {nobody[0]} (counted from 0), all have the "
                    "weight 0, so that nobody votes: change weights, or give an outlier_label.",
                )
            if len(nobody):
                labels[nobody] = self.outlier_label_[k]
            results.append(labels)
        return np.stack(results, axis=1) if self.outputs_2d_ else results[0]

    def predict_proba(self, X: Any) -> Any:
        """Return the share of the votes of each class, all 0 for an outlier whose label is none of the classes; a list
        of these if y had several columns."""
        votes = self._votes(X)
        totals = [part.sum(axis=1, keepdims=True) for part in votes]
        shares = [part / np.where(total > 0, total, 1.0) for part, total in zip(votes, totals)]
        return shares if self.outputs_2d_ else shares[0]

    def _votes(self, X: Any) -> list[np.ndarray]:
        """Return the votes of each class for each row, of each column of labels."""
        check_is_fitted(self)
        result = self._within(self._queries(X), float(self.radius), X is None)
        lonely = np.flatnonzero(np.diff(result.starts) == 0)
        if len(lonely) and self.outlier_label is None:
            raise refuse(
                self,
                f"No neighbors found for {len(lonely)} rows, the first at {lonely[0]} (counted from 0): raise radius, "
                "or give an outlier_label.",
            )
        votes = [self._counted(result, len(classes), codes) for classes, codes in self._label_columns()]
        for k, (part, code) in enumerate(zip(votes, self.outlier_code_)):
            if code >= 0:
                part[lonely, code] = 1.0
            elif len(lonely):
                warnings.warn(
                    f"{type(self).__name__}: Outlier label {self.outlier_label_[k]!r} is not in training classes; "
                    f"probabilities of {len(lonely)} rows are 0.",
                    stacklevel=3,
                )
        return votes

    def _counted(self, within: Within, k: int, codes: np.ndarray) -> np.ndarray:
        """Return the votes of each of k classes for each query."""
        n = len(within.starts) - 1
        at = within.queries * k + codes[within.rows]
        return np.bincount(at, self._pair_weights(within), minlength=n * k).reshape(n, k)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predicted classes."""
        yield Votes(_sure_codes, (self,))
        yield Tally(_tally, (self,))


def _tally(block: Block, learner: RadiusNeighborsClassifier) -> tuple[np.ndarray, np.ndarray]:
    """Return the votes for each class; nothing is known of an outlier without class."""
    result = learner._within(block.X, float(learner.radius))
    votes, code = learner._counted(result, len(learner.classes_), learner.fit_y_), int(learner.outlier_code_[0])
    if code >= 0:
        votes[~votes.any(axis=1), code] = 1.0
    rounded = 0.0 if learner.weights in (None, "uniform") else 1e-9
    return votes, np.where(votes.any(axis=1), rounded * votes.sum(axis=1), 1.0)


def _sure_codes(block: Block, learner: RadiusNeighborsClassifier) -> np.ndarray:
    """Return the class of each row, the first of equals; NOBODY for outliers without class, OPEN where rounding leaves
    sums of inverse distances so."""
    result = learner._within(block.X, float(learner.radius))
    votes, code = learner._counted(result, len(learner.classes_), learner.fit_y_), int(learner.outlier_code_[0])
    if code >= 0:
        votes[~votes.any(axis=1), code] = 1.0
    best = np.sort(votes, axis=1)
    sure = (learner.weights in (None, "uniform")) | (best[:, -1] - best[:, -2] > 1e-9 * votes.sum(axis=1))
    return np.where(votes.any(axis=1), np.where(sure, votes.argmax(axis=1), OPEN), NOBODY)


@dataclass(eq=False, repr=False)
class RadiusNeighborsRegressor(RegressorMixin, RadiusVotes):
    """Regression by the mean of all training rows within a radius.

    Parameters
    ----------
    radius, weights, algorithm, leaf_size, p, metric, metric_params, n_jobs
        As in `RadiusNeighborsClassifier`.

    Attributes
    ----------
    fit_X_ : (n, n_features), fit_y_ : (n,) or (n, n_targets)
        The training rows and their targets.

    A row that has no training row within the radius gets NaN, with a warning.

    Examples
    --------
    >>> from assay.neighbors import RadiusNeighborsRegressor
    >>> model = RadiusNeighborsRegressor(radius=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0])
    >>> model.predict([[1.4]])
    array([2.5])
    """

    card = Card(
        name="Regression by neighbours within a radius",
        task="regress",
        model=NearestRows(),
        strategy="none: the mean of the training rows within a radius",
        algorithm="all distances, those near the radius in double precision",
        guarantee=(),
        most_rows=0,
        role="named",  # a radius is chosen with the rows in view
    )
    family = "radius.regressor"
    constraints: ClassVar = {"weights": VoteWeights(), "radius": Number(low=0.0)}

    radius: float = 1.0
    _: KW_ONLY
    weights: Any = "uniform"

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "RadiusNeighborsRegressor":
        """Keep the rows X and their targets y, one column or several."""
        rows = self._read(X, y)
        self.fit_y_ = np.array(self._keep(rows, X, y), dtype=np.float64)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean target of the rows within the radius, weighted if `weights` says so."""
        check_is_fitted(self)
        means, alone = self._means(self._within(self._queries(X), float(self.radius), X is None))
        if alone.any():
            warnings.warn(
                f"{type(self).__name__}: One or more samples have no neighbors within specified radius; predicting "
                f"NaN. They are {int(alone.sum())}.",
                stacklevel=2,
            )
        return means

    def _means(self, within: Within) -> tuple[np.ndarray, np.ndarray]:
        """Return the means, NaN where there is none, and where that is."""
        n, targets = len(within.starts) - 1, self.fit_y_.reshape(len(self.fit_y_), -1)
        weights = self._pair_weights(within)
        total = np.bincount(within.queries, weights, minlength=n)
        sums = [np.bincount(within.queries, weights * column[within.rows], minlength=n) for column in targets.T]
        alone = np.diff(within.starts) == 0
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.stack(sums, axis=1) / np.where(alone, np.nan, total)[:, None]
        return means.reshape(n, *self.fit_y_.shape[1:]), alone

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions."""
        yield Predictions(_predicted, (self,))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _predicted(block: Block, learner: RadiusNeighborsRegressor) -> tuple[np.ndarray, np.ndarray]:
    """Return the predictions of a block and how far rounding can move them."""
    result = learner._within(block.X, float(learner.radius))
    stored = learner.fit_y_.reshape(learner.n_samples_fit_, -1)
    means, alone = learner._means(result)
    if alone.any():
        raise refuse(learner, "some rows have no training row within the radius: nothing is predicted for them.")
    means = means.reshape(len(means), -1)
    gap = np.abs(np.asarray(block.y).reshape(means.shape) - means)
    rounding = _ROUNDING * max(1.0, float(np.diff(result.starts).max()) / 256)
    return means, rounding * (np.abs(stored).max(axis=0) + gap)

"""The search alone: the nearest of the stored rows, without a target, or all that are within a radius of a query.

Within a radius all distances are computed, a block of queries at a time. Euclidean distances come out of products;
those that may be within the radius are computed again from the rows.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.callback import with_callbacks
from sklearn.neighbors._base import RadiusNeighborsMixin
from sklearn.utils.validation import check_is_fitted

from assay.neighbors._base import Neighbors, check_mode
from assay.params import Number, refuse
from assay.scan import thread_map

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
        found = self._within(self._queries(X), self.radius if radius is None else radius, X is None)
        distances, rows = np.empty(len(found.starts) - 1, object), np.empty(len(found.starts) - 1, object)
        for i, (low, high) in enumerate(zip(found.starts[:-1], found.starts[1:])):
            order = np.argsort(found.distances[low:high], kind="stable") if sort_results else slice(None)
            distances[i], rows[i] = found.distances[low:high][order], found.rows[low:high][order]
        return (distances, rows) if return_distance else rows

    def radius_neighbors_graph(
        self, X: Any = None, radius: Any = None, mode: str = "connectivity", sort_results: bool = False
    ) -> Any:
        """Return the matrix (queries, training rows) with an entry for each neighbour: 1, or with mode="distance" the
        distance; the entries of a row stand in order of the training rows, or nearest first with `sort_results`."""
        check_is_fitted(self)
        check_mode(self, mode)
        found = self._within(self._queries(X), self.radius if radius is None else radius, X is None)
        if sort_results:
            order = np.lexsort((found.distances, found.queries))
            found = Within(found.starts, found.rows[order], found.distances[order])
        values = np.ones(len(found.rows)) if mode == "connectivity" else found.distances
        return csr_matrix((values, found.rows, found.starts), shape=(len(found.starts) - 1, self.n_samples_fit_))

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

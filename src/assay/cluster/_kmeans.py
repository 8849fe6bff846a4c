"""k-means: centres such that the sum of squared distances of the rows to their nearest centre is small.

    minimise over c_1, ..., c_k    J(c) = sum_i w_i min_j |x_i - c_j|^2

Claims: the cost of the stored centres, and how far each is from the mean of its rows (D20); no k centres at all
        cost less than a stated bound (D21); on new data the mean cost is at most ... (P26, hold-out).
Method: Lloyd's algorithm: nearest centres, then means. The problem has local minima, and it is hard to find the
        best one; a run ends at a point where neither step lowers J.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner, fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.cluster._claims import fixed_point, floor
from assay.cluster._exact_1d import best_centers, line_excess
from assay.cluster._lloyd import Found, descend
from assay.cluster._passes import nearest, passes_of
from assay.cluster._seeding import starting_centers
from assay.data.blocks import Block
from assay.guarantees.evidence import Distances, Evidence
from assay.params import Choice, Count, Flag, Maybe, NameOr, Number, check, refuse
from assay.prototypes import PrototypeMixin
from assay.scan import Rows
from assay.theory.population import clustering_bound


class Voronoi:
    """The maps that send a row to the nearest of k points."""

    def __str__(self) -> str:
        return "cells of the k nearest centres"


class Centroids(PrototypeMixin, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, Learner):
    """What learners share whose clusters are the cells of the nearest centres."""

    family = "centroids"
    figure = "prototypes"
    distance_template = "P26/1"
    cluster_centers_: np.ndarray

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    @property
    def prototypes_(self) -> np.ndarray:
        """The centres."""
        return self.cluster_centers_

    def cells(self, X: Any) -> np.ndarray:
        """Return the number of the centre that is nearest to each row, which is also what `predict` returns."""
        return self.predict(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the number of the centre that is nearest to each row."""
        return self._nearest(X)[0]

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit to rows X and return the number of each row's centre."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        fitted = self.fit(X, **weights)  # type: ignore[attr-defined]
        return fitted.labels_ if hasattr(fitted, "labels_") else fitted.predict(X)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit to rows X and return the distance of each to each centre."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.fit(X, **weights).transform(X)  # type: ignore[attr-defined]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the weighted sum of squared distances of rows to their nearest centre."""
        return -self._nearest(X, sample_weight)[1]

    def _nearest(self, X: Any, sample_weight: Any = None) -> tuple[np.ndarray, float]:
        check_is_fitted(self)
        rows = read_rows(self, X, None, sample_weight, reset=False)
        return nearest(rows, self, self.cluster_centers_)

    def transform(self, X: Any) -> np.ndarray:
        """Return the distance of each row to each centre, (n, k)."""
        check_is_fitted(self)
        rows = read_rows(self, X, None, reset=False)
        require_finite(rows, self)
        return np.concatenate(rows.map(_distances, self.cluster_centers_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # Certificate

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the squared distance of each row to the nearest centre, and the bound of its mean for new rows."""
        centers = self.cluster_centers_
        yield Distances(_least_squares, (centers,), "P26/1", partial(distance_bound, len(centers)))


def warn_of_given_centers(learner: Any, level: int) -> None:
    """Say that starting centres which are given allow one start only."""
    name = type(learner).__name__
    warnings.warn(
        f"{name}: Explicit initial center position passed: performing only one init in {name} instead of "
        f"n_init={learner.n_init}.",
        RuntimeWarning,
        stacklevel=level,
    )


def distance_bound(
    k: int, mean: float, sizes: Any, n: int, radius: float, delta: float
) -> tuple[dict[str, Any], float]:
    """Return parameters and value of the bound of the mean squared distance of new rows."""
    return {"clusters": k}, clustering_bound(mean, sizes.squares, n, k, radius, delta)


def _distances(block: Block, centers: np.ndarray) -> np.ndarray:
    return cdist(block.X, centers)


def _least_squares(block: Block, centers: np.ndarray) -> np.ndarray:
    return cdist(block.X, centers, "sqeuclidean").min(axis=1)


@dataclass(eq=False, repr=False)
class KMeans(Centroids):
    """Clusters around means.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    init : "k-means++", "random", (k, d) array or function
        Starting centres: rows drawn far from each other, rows drawn at random, given, or f(X, k, random_state=...).
    n_init : "auto" or int
        Runs from different starts, of which the best is kept. "auto": 10 for "random" and functions, else 1.
    max_iter : int
        Iterations of one run, at most.
    tol : float >= 0
        A run stops when the squared movement of all centres is at most tol times the mean variance of the columns.
        With 0 it stops when no row changes its centre.
    verbose : int
        1 prints a line for each iteration.
    copy_x : bool
        Accepted, without effect: rows are never written to.
    random_state : int, RandomState or None
    algorithm : "auto", "lloyd", "elkan" or "exact"
        "lloyd" computes every distance in each iteration, n k of them; "elkan" and "auto" leave out those which bounds
        show not to matter. The result is the same. "exact", for rows of one column, finds the best centres of all by
        dynamic programming; nothing is drawn at random then.
    n_jobs : int or None
        Threads; None uses all cores. It changes the time, never a bit of the result.

    Attributes
    ----------
    cluster_centers_ : (k, d)
    labels_ : (n,) number of each row's centre
    inertia_ : float
        Weighted sum of squared distances of the rows to their centres.
    n_iter_ : int
        Iterations of the best run.
    n_distances_ : int
        Distances computed by the best run until it stopped; n k n_iter_ with algorithm="lloyd".

    Examples
    --------
    >>> import numpy as np
    >>> from assay.cluster import KMeans
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[ 1.,  2.],
           [10.,  2.]])
    >>> model.inertia_
    16.0
    """

    card = Card(
        name="k-means",
        zh="k均值聚类",
        mission=("CLU-06", "CLU-07", "CLU-08", "CLU-09", "CLU-10", "CLU-11", "CLU-13", "CLU-15"),
        task="cluster",
        model=Voronoi(),
        strategy="sum of squared distances to the nearest of k centres",
        algorithm="Lloyd's algorithm with bounds from the triangle inequality, single precision checked in double",
        guarantee=("kmeans.fixed-point", "kmeans.lower-bound", "kmeans-1d.optimal", "kmeans.risk"),
    )
    n_iter_: int = field(init=False)
    constraints: ClassVar = {
        "n_clusters": Count(),
        "max_iter": Count(),
        "tol": Number(low=0.0),
        "verbose": Maybe(Count(low=0), True, False),
        "copy_x": Flag,
        "algorithm": Choice("auto", "lloyd", "elkan", "exact"),
        "init": NameOr(None, "k-means++", "random"),
        "n_init": NameOr(Count(), "auto"),
    }

    n_clusters: int = 8
    _: KW_ONLY
    init: Any = "k-means++"
    n_init: Any = "auto"
    max_iter: int = 300
    tol: float = 1e-4
    verbose: int = 0
    random_state: Any = None
    copy_x: bool = True
    algorithm: str = "auto"
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "KMeans":
        """Find centres of the rows X; y is not used."""
        check(self)
        k, runs = self.n_clusters, self._runs()
        rows = read_rows(self, X, y, sample_weight)
        if rows.n_rows < k:
            raise refuse(self, f"n_samples={rows.n_rows} should be >= n_clusters={k}.")
        if self.algorithm == "elkan" and k == 1:
            warnings.warn(
                f"{type(self).__name__}: algorithm='elkan' doesn't make sense for a single cluster.",
                RuntimeWarning,
                stacklevel=3,
            )
        passes = passes_of(rows, self, bounds=self.algorithm != "lloyd")
        random_state = check_random_state(self.random_state)
        best: Found | None = None
        least = self.tol * passes.known.variance
        exact = self.algorithm == "exact"
        if exact and rows.n_features != 1:
            raise refuse(self, f"algorithm='exact' is for rows of one column; X has {rows.n_features}.")
        with fit_log(self, self.max_iter * runs, X, None, sample_weight) as log, log.keeping():
            for _ in range(1 if exact else runs):
                centers = best_centers(rows, k) if exact else starting_centers(self, rows, k, random_state)
                found = descend(passes, centers, self.max_iter, least, log, bool(self.verbose))
                if best is None or found.inertia < best.inertia:
                    best = found._replace(labels=found.labels.copy())
                if log.stopped:
                    break
        if best is None:
            raise KeyboardInterrupt
        return self._keep(best)

    def _runs(self) -> int:
        """Return the number of runs from different starts."""
        named = isinstance(self.init, str)
        if isinstance(self.n_init, str):
            return 10 if callable(self.init) or (named and self.init == "random") else 1
        if named or callable(self.init) or self.n_init == 1:
            return self.n_init
        warn_of_given_centers(self, 5)
        return 1

    def _keep(self, best: Found) -> "KMeans":
        self.cluster_centers_, self.labels_, self.inertia_ = best.centers, best.labels, best.inertia
        self.n_iter_, self.n_distances_ = best.n_iter, best.distances
        distinct = len(np.unique(best.labels))
        if distinct < len(best.centers):
            warnings.warn(
                f"{type(self).__name__}: Number of distinct clusters ({distinct}) found smaller than n_clusters "
                f"({len(best.centers)}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the cost of the centres, and what any centres must cost."""
        yield fixed_point(self, rows)
        yield from floor(self, rows)
        if rows.n_features == 1:
            yield line_excess(self, rows)

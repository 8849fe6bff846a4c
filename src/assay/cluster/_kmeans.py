"""k-means: centres such that the sum of squared distances of the rows to their nearest centre is small.

    minimise over c_1, ..., c_k    J(c) = sum_i w_i min_j |x_i - c_j|^2

Claims: the cost of the stored centres, and how far each is from the mean of its rows (kmeans.fixed-point); no k centres
        at all
        cost less than a stated bound (kmeans.lower-bound); on new data the mean cost is at most ... (kmeans.risk,
        hold-out).
Method: Lloyd's algorithm: nearest centres, then means. The problem has local minima, and it is hard to find the
        best one; a run ends at a point where neither step lowers J.

Of one column it is solved exactly:

Claim:  J is at most `value` above its minimum over all centres (kmeans-1d.optimal): there are no local minima here.
Method: clusters of sorted numbers are intervals; dynamic programming over their borders, each layer by halving,
        O(k n log n). Wang & Song 2011.
"""

import itertools
import math
import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner, fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.cluster._assignment import (
    MemoryPasses,
    SparsePasses,
    StreamedPasses,
    by_blocks,
    sparse_summary,
    starting_centers,
    summary,
)
from assay.data.blocks import Block
from assay.guarantees.evidence import Distances, Evidence
from assay.messages import Message
from assay.optim.duality import outward
from assay.params import Choice, Count, Flag, Maybe, NameOr, Number, check, refuse
from assay.prototypes import PrototypeMixin
from assay.scan import Rows, thread_map
from assay.scan.memory import MemoryRows
from assay.theory.rademacher import clustering_bound

_MOST_CUTS = 2**22  # distinct values times clusters, up to which the checker repeats the programme
_WIDEST = 2_000  # columns up to which the checker encloses eigenvalues
_STEPS = 2**28  # of the programme over buckets, for all columns
_MOST_BUCKETS = 1024
_MOST_ENTRIES = 2**28  # of X that are held at once to be sorted
Passes = MemoryPasses | SparsePasses | StreamedPasses


class Voronoi:
    """The maps that send a row to the nearest of k points."""

    def __str__(self) -> str:
        return "cells of the k nearest centres"


class Centroids(PrototypeMixin, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, Learner):
    """What learners share whose clusters are the cells of the nearest centres."""

    family = "centroids"

    figure = "prototypes"
    cluster_centers_: np.ndarray

    def _scikit_state(self, estimator: Any) -> dict[str, Any]:
        return {"_n_threads": 1}

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
        yield Distances(_least_squares, (centers,), "kmeans.risk", partial(distance_bound, len(centers)))


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


class Found(NamedTuple):
    """Where one run ended."""

    centers: np.ndarray
    labels: np.ndarray
    inertia: float
    n_iter: int
    distances: int
    converged: bool


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

    further_loops = ({"algorithm": "exact"},)
    card = Card(
        name="k-means",
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
        rows = read_rows(self, X, y, sample_weight).kept()
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
                result = descend(passes, centers, self.max_iter, least, log, bool(self.verbose))
                if best is None or result.inertia < best.inertia:
                    best = result._replace(labels=result.labels.copy())
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


def descend(passes: Any, centers: np.ndarray, max_iter: int, tol: float, log: Any, tell: bool = False) -> Found:
    """Alternate from `centers` until no row changes its centre or the squared movement of all is at most `tol`; `tell`
    prints a line for each iteration.

    Ctrl-C ends the run at the means of the last whole iteration.

    The objective that is logged is that of the new means and the rows they are the means of,
    sum w |x - o|^2 - sum_j |sum of w (x - o) over cluster j|^2 / (weight of j), o the mean of all rows.
    """
    passes.begin(centers)
    if tell:
        print("Initialization complete")
    distances, still, n_iter, movement = 0, False, 0, np.inf
    with log.keeping():
        while n_iter < max_iter:
            result = passes.assign(centers)
            distances += result.computed
            moved = _means(passes, centers, result.sums, result.counts)
            movement = float(np.sum((moved - centers) ** 2))
            centers, still, n_iter = moved, result.changed == 0, n_iter + 1
            objective = _objective(passes.known.total, result)
            stop = log.step(objective, movement, **passes_state(centers, n_iter))
            if tell:
                print(f"Iteration {n_iter}, inertia {objective:.6g}.")
            if still or movement <= tol or stop:
                if tell:
                    near = "strict convergence" if still else f"center shift {movement:.6g} within tolerance {tol:.6g}"
                    print(f"Ended at iteration {n_iter}: {near}.")
                break
    if log.stopped:  # perhaps within a pass
        passes.begin(centers)
    if not still or log.stopped:
        passes.assign(centers)
    inertia = passes.inertia(centers)
    return Found(centers, passes.labels, float(inertia), n_iter, distances, still or movement <= tol)


def passes_state(centers: np.ndarray, n_iter: int) -> dict[str, Any]:
    """Return what makes a learner usable in the middle of a run."""
    return {"cluster_centers_": centers, "n_iter_": n_iter}


def _objective(total: float, result: Any) -> float:
    full = result.counts > 0
    return max(total - float(np.sum(np.sum(result.sums[full] ** 2, axis=1) / result.counts[full])), 0.0)


def _means(passes: Any, centers: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean of each cluster. A centre without rows takes over the row that is farthest from its own centre,
    as long as one is away from it; otherwise it stays."""
    empty = np.flatnonzero(counts <= 0)
    if len(empty):
        origin, moved = passes.known.origin, counts > 0
        sums, counts = sums.copy(), counts.copy()
        for j, (square, x, weight, own) in zip(empty, passes.farthest(centers, len(empty))):
            if square > 0 and weight > 0 and counts[own] > weight:
                sums[j], counts[j] = weight * (x - origin), weight
                sums[own] -= sums[j]
                counts[own] -= weight
                moved[j] = True
    else:
        moved = np.ones(len(counts), dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = passes.known.origin + sums / counts[:, None]
    return np.where(moved[:, None], means, centers)


def best_centers(rows: Rows, k: int) -> np.ndarray:
    """Return the k best centres of one column, (k, 1), in increasing order; fewer distinct values repeat the last."""
    from assay.cluster._kmeans_loops import line_borders

    x, w = _values(rows)
    values, at = np.unique(x[w > 0], return_inverse=True)
    mass = np.bincount(at, weights=w[w > 0])
    if len(values) <= k:
        return np.append(values, np.repeat(values[-1], k - len(values)))[:, None]
    middle = np.average(values, weights=mass)
    moved = values - middle
    prefix = [np.append(0.0, np.cumsum(part)) for part in (mass, mass * moved, mass * moved * moved)]
    borders = line_borders(*prefix, k)
    parts = [slice(a, b) for a, b in itertools.pairwise(borders)]
    return np.array([[middle + np.average(moved[part], weights=mass[part])] for part in parts])


def line_excess(learner: Any, rows: Rows) -> Claim | NotApplicable:
    """Return claim kmeans-1d.optimal: how far the cost of the centres is above the least one."""
    x, w = _values(rows)
    k, distinct = len(learner.cluster_centers_), len(np.unique(x))
    if distinct * k > _MOST_CUTS:
        return NotApplicable("kmeans-1d.optimal", Message("why.programme-size", most=_MOST_CUTS))
    known = summary(rows, learner)
    cost, best = (by_blocks(rows, known, centers)[1] for centers in (learner.cluster_centers_, best_centers(rows, k)))
    rounding = cost_rounding(x[w > 0], w[w > 0]) * k * (2 * distinct.bit_length() + 6)
    params = {"clusters": k, "rows": rows.n_rows}
    return Claim("kmeans-1d.optimal", max(cost - best, 0.0) * (1 + 1e-6) + 1e-14 * cost + rounding, params=params)


def cost_rounding(x: np.ndarray, w: np.ndarray) -> float:
    """Return more than the rounding of a cost from running sums: 2 g sum w x^2 + 4 g max|x| sum w |x| (+ 2 g max|x|^2
    sum w unless weights are whole), x about the mean, g = (n + 8) u; twice that, for the checker's own."""
    x = np.abs(x - np.average(x, weights=w))
    largest, first, second = float(x.max()), float(w @ x), float(w @ (x * x))
    error = 2 * second + 4 * largest * first + (0.0 if np.all(w == np.floor(w)) else 2 * largest**2 * float(w.sum()))
    return 2 * 2.3e-16 * (len(x) + 64) * error


def _values(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    parts = rows.map(_column)
    return np.concatenate([x for x, _ in parts]), np.concatenate([w for _, w in parts])


def _column(block: Block) -> tuple[np.ndarray, np.ndarray]:
    weight = np.ones(len(block.X)) if block.weight is None else block.weight
    return block.X[:, 0].copy(), weight.copy()


def fixed_point(learner: Any, rows: Rows) -> Claim:
    """Return claim kmeans.fixed-point: the cost, and how far a centre is from the mean of its rows."""
    centers = learner.cluster_centers_
    passes = StreamedPasses(rows, summary(rows, learner))
    passes.begin(centers)
    result = passes.assign(centers)
    full = result.counts > 0
    means = passes.known.origin + result.sums[full] / result.counts[full, None]
    apart = float(np.max(np.linalg.norm(centers[full] - means, axis=1), initial=0.0))
    rounding = 1e-13 * float(np.linalg.norm(rows.largest_entries))  # of sums in another order
    params = {"clusters": len(centers), "rows": rows.n_rows, "shift": apart * (1 + 1e-9) + rounding}
    return Claim("kmeans.fixed-point", outward(passes.inertia(centers)), params=params)


def floor(learner: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield claim kmeans.lower-bound: the larger of two lower bounds of the cost of any centres."""
    k, d = learner.cluster_centers_.shape
    stated = {"clusters": k, "rows": rows.n_rows}
    bounds = []
    if d <= _WIDEST:
        bounds.append((spectral_bound(rows, learner, k), {"form": "spectral"} | stated))
    buckets = int(min(math.sqrt(_STEPS / (k * d)), _MOST_BUCKETS))
    if rows.n_rows * d <= _MOST_ENTRIES and buckets >= 8:
        bounds.append((axes_bound(rows, k, buckets), {"form": "axes", "buckets": buckets} | stated))
    value, params = max(bounds, key=lambda bound: bound[0], default=(0.0, {}))
    if value > 0:
        yield Claim("kmeans.lower-bound", value * (1 - 1e-9), "lower", params)
    else:
        yield NotApplicable("kmeans.lower-bound", Message("why.zero-cost"))


def spectral_bound(rows: Rows, learner: Any, k: int) -> float:
    """Return trace S - the k - 1 largest eigenvalues of the weighted scatter S about the mean, less rounding."""
    origin = summary(rows, learner).origin
    M = rows.sum(_scatter, origin)
    S = M[:-1, :-1] - np.outer(M[:-1, -1], M[:-1, -1]) / M[-1, -1]
    values = np.linalg.eigvalsh(S)[::-1]
    rounding = 1e-13 * (rows.n_rows / 4096 + len(S)) * len(S) * float(np.trace(S))
    return max(float(np.trace(S) - np.maximum(values[: k - 1], 0.0).sum()) - rounding, 0.0)


def _scatter(block: Block, origin: np.ndarray) -> np.ndarray:
    A = np.column_stack([block.X - origin, np.ones(len(block.X))])
    return A.T @ A if block.weight is None else (A * block.weight[:, None]).T @ A


def axes_bound(rows: Rows, k: int, buckets: int) -> float:
    """Return the sum over columns of what k centres on that column alone must cost, less rounding."""
    parts = rows.map(lambda block: (block.X, block.weight))
    X = np.concatenate([x for x, _ in parts])
    weight = np.ones(len(X)) if parts[0][1] is None else np.concatenate([w for _, w in parts])
    columns = range(X.shape[1])
    result = thread_map(lambda j: _column_bound(X[:, j], weight, k, buckets), columns, n_jobs=rows.n_jobs)
    return float(sum(result))


def _column_bound(column: np.ndarray, weight: np.ndarray, k: int, buckets: int) -> float:
    from assay.cluster._kmeans_loops import bucket_optimum

    order = np.argsort(column, kind="stable")
    order = order[weight[order] > 0]
    x, w = column[order], weight[order]
    x = x - np.average(x, weights=w)
    edges = np.unique(np.linspace(0, len(x), min(buckets, len(x)) + 1).astype(np.int64))
    sums = np.array([np.add.reduceat(part, edges[:-1]) for part in (w, w * x, w * x * x)])
    prefix = np.concatenate([np.zeros((3, 1)), np.cumsum(sums, axis=1)], axis=1)
    cuttable = x[edges[1:] - 1] > x[edges[:-1]]
    return max(bucket_optimum(*prefix, cuttable, k) - k * cost_rounding(x, w), 0.0)


def passes_of(rows: Rows, learner: Any, *, bounds: bool) -> Passes:
    """Return passes over the rows, and with them what is known of the rows; refuse entries that are not finite."""
    if isinstance(rows, MemoryRows):
        if issparse(rows.X):
            return SparsePasses(rows, sparse_summary(rows, learner))
        if isinstance(rows.X, np.ndarray):
            return MemoryPasses(rows, summary(rows, learner), bounds)
    return StreamedPasses(rows, summary(rows, learner))


def nearest(rows: Rows, learner: Any, centers: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the number of each row's nearest centre and the weighted sum of squared distances, in one pass."""
    if not (isinstance(rows, MemoryRows) and issparse(rows.X)):
        return by_blocks(rows, summary(rows, learner), centers)
    passes = SparsePasses(rows, sparse_summary(rows, learner))
    passes.begin(centers)
    passes.label(centers)
    return passes.labels, passes.inertia(centers)

"""k-means by mini-batches: each step looks at a few rows, so that centres are good long before all rows were seen.

    c_j <- (n_j c_j + sum of the batch's rows nearest to c_j) / (n_j + their weight),   n_j the weight c_j has had

so that each centre is the mean of the rows that were its own when they came (Sculley 2010). Centres that had hardly any
rows begin afresh at rows of the batch. Batches are drawn as scikit-learn draws them.

Claims: those of k-means, as they hold here: the cost of the centres and how far each is from the mean of its rows,
        which is not 0 (kmeans.fixed-point); no k centres at all cost less than ... (kmeans.lower-bound); on new data
        the mean cost is at most (kmeans.risk).
Method: a step costs a product of the batch and the centres; the last pass gives each row its nearest centre.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state

from assay.base import fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.cluster._assignment import drawn, starting_centers, summary
from assay.cluster._kmeans import Centroids, Voronoi, fixed_point, floor, line_excess, nearest, warn_of_given_centers
from assay.params import Count, Flag, Maybe, NameOr, Number, check, refuse
from assay.scan import Rows, one_blas_thread
from assay.scan.memory import MemoryRows

_REASSIGN_AFTER = 10  # rows for each centre between two looks for centres that had hardly any


@dataclass(eq=False, repr=False)
class MiniBatchKMeans(Centroids):
    """Clusters around means, learnt from small batches of rows.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    init : "k-means++", "random", (k, d) array or function
        Starting centres, from `init_size` rows drawn at random: far from each other, at random, given, or f(X, k,
        random_state=...).
    max_iter : int
        Batches are drawn until they hold as many rows as so many passes over all rows would.
    batch_size : int
        Rows of a batch.
    verbose : int
        1 prints a line for each step.
    compute_labels : bool
        Whether to give every row its centre at the end, which takes a pass over all rows; without it there are no
        `labels_`, and `inertia_` is estimated from batches.
    random_state : int, RandomState or None
    tol : float >= 0
        Stop when the squared movement of all centres in a step is at most tol times the mean variance of the columns.
        0 leaves that out.
    max_no_improvement : int or None
        Stop after so many batches without a new minimum of the cost, averaged over recent batches.
    init_size : int or None
        Rows from which starting centres are found; None is three batches.
    n_init : "auto" or int
        Starts, of which the one that is best on `init_size` other rows is kept. "auto": 3 for "random" and functions,
        else 1.
    reassignment_ratio : float >= 0
        A centre that has had less than this share of the weight of the largest begins afresh.
    n_jobs : int or None
        Threads of the last pass; None uses all cores. It changes the time, never a bit of the result.

    Attributes
    ----------
    cluster_centers_ : (k, d)
    labels_ : (n,) number of each row's centre
    inertia_ : float
        Weighted sum of squared distances of the rows to their centres.
    n_steps_ : int
        Batches; `n_iter_` as many passes over all rows.
    counts_ : (k,)
        Weight of the rows that each centre has had.

    Rows in files and on clusters come in batches in their own order, pass after pass; so shuffle them when they are
    sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.cluster import MiniBatchKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(place, 0.3, size=(500, 2)) for place in (1, 5)])
    >>> model = MiniBatchKMeans(n_clusters=2, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0).round(1)
    array([[1., 1.],
           [5., 5.]])
    """

    card = Card(
        name="k-means by mini-batches",
        task="cluster",
        model=Voronoi(),
        strategy="sum of squared distances to the nearest of k centres",
        algorithm="means of batches, each centre with a rate of its own",
        guarantee=("kmeans.fixed-point", "kmeans.lower-bound", "kmeans.risk"),
    )
    n_iter_: int = field(init=False)
    constraints: ClassVar = {
        "n_clusters": Count(),
        "max_iter": Count(),
        "batch_size": Count(),
        "verbose": Maybe(Count(low=0), True, False),
        "compute_labels": Flag,
        "tol": Number(low=0.0),
        "max_no_improvement": Maybe(Count(low=0), None),
        "init": NameOr(None, "k-means++", "random"),
        "init_size": Maybe(Count(), None),
        "n_init": NameOr(Count(), "auto"),
        "reassignment_ratio": Number(low=0.0),
    }

    n_clusters: int = 8
    _: KW_ONLY
    init: Any = "k-means++"
    max_iter: int = 100
    batch_size: int = 1024
    verbose: int = 0
    compute_labels: bool = True
    random_state: Any = None
    tol: float = 0.0
    max_no_improvement: int | None = 10
    init_size: int | None = None
    n_init: Any = "auto"
    reassignment_ratio: float = 0.01
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MiniBatchKMeans":
        """Find centres of the rows X; y is not used."""
        check(self)
        rows = read_rows(self, X, y, sample_weight)
        self._enough(rows)
        known = summary(rows, self)
        random = check_random_state(self.random_state)
        size = min(self.batch_size, rows.n_rows)
        steps = max(self.max_iter * rows.n_rows // size, 1)
        with fit_log(self, steps, X, None, sample_weight) as log, one_blas_thread():
            self._start(rows, random)
            watch = _Watch(self, 2.0 * size / (rows.n_rows + 1), self.tol * known.variance)
            with log.keeping():
                for batch, weight in _batches(rows, size, steps, random):
                    before = self.cluster_centers_.copy()
                    cost = self._step(batch, weight, random) / max(float(weight.sum()), 1e-300)
                    moved = float(np.sum((self.cluster_centers_ - before) ** 2))
                    if log.step(cost, moved, cluster_centers_=self.cluster_centers_.copy()) or watch.rests(cost, moved):
                        break
        self.n_steps_ = len(log.history)
        self.n_iter_ = math.ceil(self.n_steps_ * size / rows.n_rows)
        self.__dict__.pop("labels_", None)
        if self.compute_labels:
            self.labels_, self.inertia_ = nearest(rows, self, self.cluster_centers_)
        else:
            self.inertia_ = watch.mean * float(rows.sum(_total_weight))
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MiniBatchKMeans":
        """Take one step with the rows X as its batch; the first call finds starting centres among them."""
        check(self)
        first = not hasattr(self, "cluster_centers_")
        rows = read_rows(self, X, y, sample_weight, reset=first)
        require_finite(rows, self)
        if first or not hasattr(self, "_random"):
            self._random = check_random_state(self.random_state)
        if first:
            self._enough(rows)
            self._start(rows, self._random, partial=True)
            self.n_steps_ = 0
        elif not hasattr(self, "counts_"):
            raise refuse(self, "a loaded model does not keep how many rows its centres had; fit it again.")
        with one_blas_thread():
            table = rows if isinstance(rows, MemoryRows) else drawn(rows, self._random)
            weight = np.ones(table.n_rows) if table.weight is None else np.asarray(table.weight, dtype=np.float64)
            self._step(_dense(table.X), weight, self._random)
        if self.compute_labels:
            self.labels_, self.inertia_ = nearest(rows, self, self.cluster_centers_)
        self.n_steps_ += 1
        return self

    def _enough(self, rows: Rows) -> None:
        if rows.n_rows < self.n_clusters:
            raise refuse(self, f"n_samples={rows.n_rows} should be >= n_clusters={self.n_clusters}.")

    # Start

    def _start(self, rows: Rows, random: np.random.RandomState, partial: bool = False) -> None:
        """Set the starting centres: the best of `n_init` on rows drawn to compare them."""
        table = rows if isinstance(rows, MemoryRows) else drawn(rows, random)
        size = self._init_rows(table.n_rows)
        judged = None if partial else _taken(table, random.randint(0, table.n_rows, size))
        best = np.inf
        for _ in range(1 if partial else self._starts()):
            own = table if size >= table.n_rows else _taken(table, random.randint(0, table.n_rows, size))
            centers = starting_centers(self, own, self.n_clusters, random)
            cost = 0.0 if judged is None else nearest(judged, self, centers)[1]
            if cost < best or not np.isfinite(best):
                best, self.cluster_centers_ = cost, centers
        self.counts_, self._since = np.zeros(self.n_clusters), 0

    def _init_rows(self, n: int) -> int:
        size = self.init_size
        if size is None:
            size = 3 * min(self.batch_size, n)
            size = 3 * self.n_clusters if size < self.n_clusters else size
        elif size < self.n_clusters:
            warnings.warn(
                f"{type(self).__name__}: init_size={size} should be larger than n_clusters={self.n_clusters}; "
                f"{3 * self.n_clusters} is used.",
                RuntimeWarning,
                stacklevel=5,
            )
            size = 3 * self.n_clusters
        return min(size, n)

    def _starts(self) -> int:
        named = isinstance(self.init, str)
        if isinstance(self.n_init, str):
            return 3 if callable(self.init) or (named and self.init == "random") else 1
        if named or callable(self.init) or self.n_init == 1:
            return self.n_init
        warn_of_given_centers(self, 6)
        return 1

    # Steps

    def _step(self, batch: np.ndarray, weight: np.ndarray, random: np.random.RandomState) -> float:
        """Move the centres towards the rows of a batch; return the weighted cost of these before."""
        from assay.cluster._kmeans_loops import absorb

        self._since += len(batch)
        shift = self.cluster_centers_.mean(axis=0)  # about which products lose no digits
        moved, centers = batch - shift, self.cluster_centers_ - shift
        lengths = np.einsum("ij,ij->i", centers, centers)
        labels = np.empty(len(batch), dtype=np.int32)
        afresh = bool((self.counts_ == 0).any()) or self._since >= _REASSIGN_AFTER * self.n_clusters
        cost = float(absorb(moved, weight, moved @ centers.T, lengths, centers, self.counts_, labels))
        self.cluster_centers_ = centers + shift
        if afresh:
            self._since = 0
            self._reassign(batch, random)
        return cost

    def _reassign(self, batch: np.ndarray, random: np.random.RandomState) -> None:
        """Let centres that had hardly any rows begin afresh at rows of the batch, half of which may be used up."""
        counts, most = self.counts_, int(0.5 * len(batch))
        if self.reassignment_ratio == 0:
            return
        poor = counts < self.reassignment_ratio * counts.max()
        if poor.sum() > 0.5 * len(batch):
            poor[np.argsort(counts)[most:]] = False
        if poor.any():
            chosen = random.choice(len(batch), replace=False, size=int(poor.sum()))
            self.cluster_centers_[poor] = batch[chosen]
            counts[poor] = counts[~poor].min()

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the cost of the centres and how far they are from means, and what any centres must cost."""
        yield fixed_point(self, rows)
        yield from floor(self, rows)
        if rows.n_features == 1:
            yield line_excess(self, rows)


class _Watch:
    """Tells when a run may end: centres hardly move, or the cost of recent batches has stopped falling."""

    def __init__(self, learner: MiniBatchKMeans, rate: float, tol: float):
        self.learner, self.tol, self.rate = learner, tol, min(rate, 1.0)
        self.mean, self.least, self.idle, self.steps = math.nan, math.inf, 0, 0

    def rests(self, cost: float, moved: float) -> bool:
        """Take note of a step. The first is that of the start, and does not count."""
        self.steps += 1
        if self.learner.verbose:
            print(f"{type(self.learner).__name__}: step {self.steps}, mean squared distance in the batch {cost:.6g}")
        if self.steps == 1:
            return False
        self.mean = cost if self.steps == 2 else self.mean * (1 - self.rate) + cost * self.rate
        if self.tol > 0 and moved <= self.tol:
            return True
        self.idle = 0 if self.mean < self.least else self.idle + 1
        self.least = min(self.least, self.mean)
        allowed = self.learner.max_no_improvement
        return allowed is not None and self.idle >= allowed


def _batches(rows: Rows, size: int, steps: int, random: np.random.RandomState) -> Iterator[tuple[np.ndarray, Any]]:
    """Yield batches of rows and their weights: drawn by weight with equal weights of their own, or in order."""
    if isinstance(rows, MemoryRows):
        weight = np.ones(rows.n_rows) if rows.weight is None else np.asarray(rows.weight, dtype=np.float64)
        until = np.cumsum(weight / weight.sum())
        until /= until[-1]
        ones = np.ones(size)
        for _ in range(steps):
            chosen = np.searchsorted(until, random.random_sample(size), side="right")
            yield _dense(rows.X[chosen]), ones
        return
    made = 0
    while made < steps:
        for block in rows.blocks():
            weight = np.ones(len(block.X)) if block.weight is None else block.weight
            for start in range(0, len(block.X), size):
                yield block.X[start : start + size], weight[start : start + size]
                made += 1
                if made == steps:
                    return


def _taken(table: MemoryRows, chosen: np.ndarray) -> MemoryRows:
    weight = None if table.weight is None else np.asarray(table.weight)[chosen]
    return MemoryRows(_dense(table.X[chosen]), None, weight, n_jobs=table.n_jobs)


def _dense(X: Any) -> np.ndarray:
    return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def _total_weight(block: Any) -> float:
    return float(len(block.X) if block.weight is None else block.weight.sum())

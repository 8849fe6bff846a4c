"""k-medoids: k of the rows themselves such that the sum of distances of all rows to the nearest of them is small.

    minimise over rows m_1, ..., m_k    J(m) = sum_i min_j d(x_i, m_j)      for any distance d

Distances are not squared, and means are not needed: nothing but distances is, and a far row pulls no centre away.

Claims: the cost of the medoids, which are training rows, and how much exchanging one of them for any one of the rows
        could still lower it (medoids.swap); on new data the mean squared distance is at most ... (kmeans.risk,
        hold-out).
Method: exchanges of one medoid for one row while they lower the cost, each candidate compared with all medoids in one
        pass over the rows (FasterPAM, Schubert & Rousseeuw 2021). Distances are held for up to 8,192 rows; of more
        rows they are computed again by blocks, so that no matrix of all pairs is needed.

A candidate takes the place of the best medoid as soon as that lowers the cost. Candidates of a block are compared on
threads with the medoids as they stand, up to the first that is taken; the others are compared again. So exchanges are
those of one candidate after another, whatever the number of threads.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import VALID_METRICS
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner, fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.cluster._kmeans import Voronoi, distance_bound
from assay.data.blocks import Block
from assay.guarantees import evidence
from assay.messages import Message
from assay.params import Count, Kind, Maybe, NameOr, check, refuse
from assay.prototypes import PrototypeMixin
from assay.scan import Rows, one_blas_thread, thread_map

CODES = {"euclidean": 0, "manhattan": 1, "chebyshev": 2}
_NAMES = {"l2": "euclidean", "l1": "manhattan", "cityblock": "manhattan", "infinity": "chebyshev"}
_SCIPY = {"euclidean": "euclidean", "manhattan": "cityblock", "chebyshev": "chebyshev"}
_KEPT = 2**26  # distances that are held at once; more are computed again in each pass
_BLOCK = 2**21  # distances of a block of candidates
_FEW = 2**17  # distances below which threads cost more than they save
_LEAST = 1e-10  # of the cost: a smaller change may be rounding
Between = Callable[[np.ndarray, np.ndarray | None], np.ndarray]
"""Gives, by their numbers, the distances of rows to others; without others, those of all rows to them, (rows, n)."""
_MOST_PAIRS = 2**29  # of candidates and rows; with more rows, evenly spaced ones are candidates
_UNIT = 2.0**-53


class Distances:
    """Distances between numbered rows: stored if there are few, else computed when they are asked for."""

    def __init__(self, n: int, between: Between, n_jobs: int | None, *, stored: bool = True):
        self.n, self.between, self.n_jobs = n, between, n_jobs
        self.step = max(1, min(_BLOCK // n, n))
        self.stored: np.ndarray | None = None
        if stored and n * n <= _KEPT:
            cuts = np.array_split(np.arange(n), -(-n // self.step))
            self.stored = np.concatenate([self._computed(cut) for cut in cuts])

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Return the distances (rows, n) of all rows to some."""
        return self._computed(rows) if self.stored is None else self.stored[rows]

    def _computed(self, rows: np.ndarray) -> np.ndarray:
        if len(rows) * self.n < _FEW:
            return self.between(rows, None)
        parts = np.array_split(rows, min(len(rows), 8))
        return np.concatenate(thread_map(lambda part: self.between(part, None), parts, n_jobs=self.n_jobs))

    def to(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the distances (rows, others)."""
        return self.between(rows, others) if self.stored is None else self.stored[np.ix_(others, rows)].T


class State:
    """Medoids, and for each row its nearest and second nearest one."""

    def __init__(self, distances: Distances, medoids: np.ndarray):
        n, k = distances.n, len(medoids)
        self.distances, self.medoids = distances, np.array(medoids, dtype=np.int64)
        self.near, self.second = np.empty(n), np.empty(n)
        self.owner, self.runner = np.empty(n, np.int32), np.empty(n, np.int32)
        self._unsure = np.empty(n, np.int64)
        step = max(1, _BLOCK // k)
        for start in range(0, n, step):
            self._look(np.arange(start, min(start + step, n)))
        self._weigh()

    def _look(self, rows: np.ndarray) -> None:
        from assay.cluster._search_loops import two_nearest

        apart = self.distances.to(rows, self.medoids)
        two_nearest(apart, rows, self.near, self.second, self.owner, self.runner)

    def _weigh(self) -> None:
        self.cost = float(self.near.sum())
        if len(self.medoids) > 1:
            self.removal = np.bincount(self.owner, self.second - self.near, len(self.medoids))

    def changes(self, apart: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the least change of the cost that each candidate brings, and the medoid it would replace."""
        from assay.cluster._search_loops import best_exchanges

        if len(self.medoids) == 1:  # nobody is second
            return apart.sum(axis=1) - self.cost, np.zeros(len(apart), np.int64)
        change, slot = np.empty(len(apart)), np.empty(len(apart), np.int64)

        def compare(part: slice) -> None:
            best_exchanges(apart[part], self.near, self.second, self.owner, self.removal, change[part], slot[part])

        if apart.size < _FEW:
            compare(slice(None))
        else:
            size = -(-len(apart) // 8)
            cuts = [slice(at, at + size) for at in range(0, len(apart), size)]
            thread_map(compare, cuts, n_jobs=self.distances.n_jobs)
        return change, slot

    def take(self, candidate: int, apart: np.ndarray, slot: int) -> None:
        """Let a candidate take the place of a medoid."""
        from assay.cluster._search_loops import exchange

        self.medoids[slot] = candidate
        m = exchange(apart, slot, self.near, self.second, self.owner, self.runner, self._unsure)
        if m:
            self._look(self._unsure[:m])
        self._weigh()


class Search(NamedTuple):
    """Where a search ended."""

    medoids: np.ndarray
    cost: float
    owner: np.ndarray
    n_iter: int
    n_swaps: int
    converged: bool


@dataclass(eq=False, repr=False)
class KMedoids(PrototypeMixin, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, Learner):
    """Clusters around rows, by any distance.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    metric : str, distance of `assay.metrics.distance`, or function of two rows
        "euclidean", "manhattan", "chebyshev", "cosine", any name that `sklearn.metrics.pairwise_distances` knows, or
        "precomputed": X (n, n) holds in row i the distances of row i to all rows.
    metric_params : dict, optional
        What the metric takes beside two rows.
    init : "k-medoids++", "random" or (k,) row numbers
        First medoids: rows drawn far from each other, rows drawn at random, or given.
    n_init : int
        Runs from different starts, of which the best is kept.
    max_iter : int
        Passes over all candidates in one run, at most.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; None uses all cores. It changes the time, never a bit of the result.

    Attributes
    ----------
    medoid_indices_ : (k,)
        Row numbers of the medoids.
    cluster_centers_ : (k, d)
        The medoids themselves; not there for precomputed distances.
    labels_ : (n,) number of each row's medoid
    inertia_ : float
        Sum of the distances of the rows to their medoids.
    n_iter_, n_swaps_ : int
        Passes over the candidates and exchanges of the best run.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.cluster import KMedoids
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [16, 0]])
    >>> model = KMedoids(n_clusters=2, metric="manhattan", random_state=0).fit(X)
    >>> model.cluster_centers_[model.labels_[[0, 3]]], model.inertia_
    (array([[ 1.,  2.],
           [10.,  2.]]), 14.0)
    """

    figure = "prototypes"
    card = Card(
        name="k-medoids",
        task="cluster",
        model=Voronoi(),
        strategy="sum of distances to the nearest of k rows",
        algorithm="exchanges of medoids and rows (FasterPAM)",
        guarantee=("medoids.swap",),
        most_rows=50_000,
    )
    n_iter_: int = field(init=False)
    constraints: ClassVar = {
        "n_clusters": Count(),
        "init": NameOr(None, "k-medoids++", "random"),
        "n_init": Count(),
        "max_iter": Count(),
        "metric_params": Maybe(Kind(Mapping, "a dict")),
    }

    n_clusters: int = 8
    _: KW_ONLY
    metric: Any = "euclidean"
    metric_params: Any = None
    init: Any = "k-medoids++"
    n_init: int = 1
    max_iter: int = 100
    random_state: Any = None
    n_jobs: int | None = None

    @property
    def family(self) -> str:  # type: ignore[override]
        """Which of the checker's predictors reads the fitted parameters."""
        return "medoids.pairs" if self._is_precomputed else "medoids"

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "KMedoids":
        """Find medoids of the rows X, or of the rows whose distances X holds; y is not used."""
        check(self)
        name = self._named_metric()
        rows = read_rows(self, X, y)
        require_finite(rows, self)
        table = in_memory(rows)
        self._check_table(table)
        random = check_random_state(self.random_state)
        best: Search | None = None
        given = not isinstance(self.init, str)
        with fit_log(self, self.max_iter * self.n_init, X, None) as log, one_blas_thread():
            distances = Distances(len(table), _between(name, self.metric_params or {}, table), self.n_jobs)
            with log.keeping():
                for _ in range(1 if given else self.n_init):
                    start = self._first(distances, random)
                    result = descend(distances, start, self.max_iter, log, partial(self._as_it_stands, table))
                    if best is None or result.cost < best.cost:
                        best = result
                    if log.stopped:
                        break
        if best is None:
            raise KeyboardInterrupt
        self._keep(best, table)
        if not best.converged and not log.stopped:
            warnings.warn(
                f"{type(self).__name__}: exchanges still lowered the cost after max_iter={self.max_iter} passes; raise "
                "it.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _check_table(self, table: np.ndarray) -> None:
        n, k = len(table), self.n_clusters
        if n < k:
            raise refuse(self, f"n_clusters={k} needs as many rows; n_samples={n}.")
        if self._is_precomputed and (table.shape[0] != table.shape[1] or (table < 0).any()):
            raise refuse(self, f"a precomputed X must hold distances >= 0 between all rows; got shape {table.shape}.")

    def _first(self, distances: Distances, random: np.random.RandomState) -> np.ndarray:
        """Return the numbers of the first medoids."""
        n, k = distances.n, self.n_clusters
        if isinstance(self.init, str):
            if self.init == "random":
                return random.choice(n, k, replace=False)
            return drawn_apart(distances, k, random)
        numbers = np.asarray(self.init)
        whole = numbers.dtype.kind in "iu" and numbers.shape == (k,)
        if not whole or len(np.unique(numbers)) < k or numbers.min() < 0 or numbers.max() >= n:
            raise refuse(self, f"init must be {k} distinct row numbers from 0 to {n - 1}; got {self.init!r}.")
        return numbers

    def _as_it_stands(self, table: np.ndarray, state: State) -> dict[str, Any]:
        made = {"medoid_indices_": state.medoids.copy()}
        return made if self._is_precomputed else made | {"cluster_centers_": table[state.medoids]}

    def _keep(self, search: Search, table: np.ndarray) -> None:
        self.medoid_indices_ = search.medoids
        if not self._is_precomputed:
            self.cluster_centers_ = table[search.medoids]
        apart = self._to_medoids(table)
        self.labels_ = apart.argmin(axis=1)
        self.inertia_ = float(apart[np.arange(len(apart)), self.labels_].sum())
        self.n_iter_, self.n_swaps_ = search.n_iter, search.n_swaps

    # Distances

    def _named_metric(self) -> Any:
        """Return the metric by the one name it has here, or the distance or function that was given."""
        metric = self.metric
        if not isinstance(metric, str):
            if callable(metric) or hasattr(metric, "pairwise"):
                return metric
            raise refuse(self, f"metric must be a name, a distance or a function of two rows; got {metric!r}.")
        name = _NAMES.get(metric, metric)
        if name not in VALID_METRICS["brute"]:
            known = ", ".join(sorted(VALID_METRICS["brute"]))
            raise refuse(self, f"metric must be a distance, a function of two rows or one of {known}; got {metric!r}.")
        return name

    def _to_medoids(self, table: np.ndarray) -> np.ndarray:
        """Return the distances (rows, k) to the medoids."""
        if self._is_precomputed:
            return table[:, self.medoid_indices_]
        return pair_distances(self._named_metric(), self.metric_params or {}, table, self.cluster_centers_)

    @property
    def prototypes_(self) -> np.ndarray:
        """The medoids; precomputed distances have none to show."""
        return self.cluster_centers_

    @property
    def _n_features_out(self) -> int:
        return len(self.medoid_indices_ if self._is_precomputed else self.cluster_centers_)

    def transform(self, X: Any) -> np.ndarray:
        """Return the distance of each row to each medoid, (n, k); precomputed distances X (n, n_train) are those to the
        training rows."""
        check_is_fitted(self)
        rows = read_rows(self, X, None, reset=False)
        require_finite(rows, self)
        return np.concatenate(rows.map(_far, self))

    def predict(self, X: Any) -> np.ndarray:
        """Return the number of the medoid that is nearest to each row, the first of equals."""
        return self.transform(X).argmin(axis=1)

    def cells(self, X: Any) -> np.ndarray:
        """Return the number of the nearest medoid by this model's distance, as `predict` does."""
        return self.predict(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of the distances of rows to their nearest medoid."""
        return -float(self.transform(X).min(axis=1).sum())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    # Certificate

    @property
    def distance_code_(self) -> np.ndarray:
        """The number of the distance as the checker reads it: 0 Euclidean, 1 Manhattan, 2 Chebyshev, -1 for others."""
        return np.array([distance_code(self._named_metric(), self.metric_params or {})])

    @property
    def n_pairs_(self) -> np.ndarray:
        """The number of rows that precomputed distances are to, as the checker reads it."""
        return np.array([self.n_features_in_])

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if not self._is_precomputed and self.distance_code_[0] < 0:
            raise refuse(
                self,
                f"certificates are about the distances {', '.join(CODES)} and precomputed ones; this model has "
                f"{self.metric!r}.",
            )
        return super()._known_rows(X, y, sample_weight)

    def evidence(self, rows: Rows) -> Iterator[evidence.Evidence]:
        """Yield the squared distance of each row to its medoid, and for Euclidean ones the bound of its mean."""
        if not self._is_precomputed and self.distance_code_[0] == 0:
            bound = partial(distance_bound, len(self.cluster_centers_))
            yield evidence.Distances(_least_squares, (self,), "kmeans.risk", bound)
        else:
            why = Message("why.euclidean-only")
            yield evidence.Distances(_least_squares, (self,), "kmeans.risk", None, why)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the cost, and how much one exchange could lower it."""
        yield swap_claim(self, rows)


def in_memory(rows: Rows) -> np.ndarray:
    """Return all rows as one array."""
    return np.ascontiguousarray(np.concatenate([block.X for block in rows.blocks()]), dtype=np.float64)


def pair_distances(metric: Any, params: dict[str, Any], A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the distances (rows of A, rows of B)."""
    if isinstance(metric, str) and metric in _SCIPY:
        return cdist(A, B, _SCIPY[metric])
    if hasattr(metric, "pairwise"):
        return np.asarray(metric.pairwise(A, B), dtype=np.float64)
    return np.asarray(pairwise_distances(A, B, metric=metric, **params), dtype=np.float64)


def distance_code(metric: Any, params: dict[str, Any]) -> int:
    """Return the number of a distance that the checker knows, -1 for others."""
    if hasattr(metric, "p") and type(metric).__name__ == "Minkowski" and metric.w is None:
        return {2.0: 0, 1.0: 1, np.inf: 2}.get(metric.p, -1)
    if isinstance(metric, str) and metric == "minkowski" and "w" not in params:
        return {2.0: 0, 1.0: 1, np.inf: 2}.get(float(params.get("p", 2.0)), -1)
    return CODES.get(metric, -1) if isinstance(metric, str) and not params else -1


def _between(metric: Any, params: dict[str, Any], table: np.ndarray) -> Between:
    """Return the function that gives the distances of some rows to others, or to all, by their numbers."""
    if isinstance(metric, str) and metric == "precomputed":
        columns = np.ascontiguousarray(table.T)
        return lambda rows, others: columns[rows] if others is None else table[np.ix_(rows, others)]
    if distance_code(metric, params) != 0:

        def of_any(rows: np.ndarray, others: np.ndarray | None) -> np.ndarray:
            return pair_distances(metric, params, table[rows], table if others is None else table[others])

        return of_any
    X = table - table.mean(axis=0)
    lengths = np.einsum("ij,ij->i", X, X)

    def euclidean(rows: np.ndarray, others: np.ndarray | None) -> np.ndarray:
        from assay.cluster._search_loops import euclidean_block

        if others is not None:
            return cdist(X[rows], X[others])
        products = X[rows] @ X.T
        euclidean_block(products, lengths, rows, X)
        return products

    return euclidean


def _far(block: Block, learner: KMedoids) -> np.ndarray:
    return learner._to_medoids(block.X)


def _least_squares(block: Block, learner: KMedoids) -> np.ndarray:
    return learner._to_medoids(block.X).min(axis=1) ** 2


def descend(distances: Distances, medoids: np.ndarray, max_iter: int, log: Any, fitted: Any) -> Search:
    """Exchange medoids for candidates until no exchange lowers the cost, or `max_iter` passes over all candidates are
    made, or Ctrl-C is pressed. `fitted(state)` is what makes a learner usable as it stands."""
    state, n = State(distances, medoids), distances.n
    looked, idle, swaps = 0, 0, 0
    stop = log.step(state.cost, 0.0, **fitted(state))
    with log.keeping():
        while idle < n and looked < max_iter * n and not stop:
            start = looked % n
            rows = np.arange(start, min(start + min(distances.step, n - idle), n))
            apart, at, few = distances.of(rows), 0, 8
            while at < len(rows) and not stop:
                part = slice(at, at + few)
                change, slot = state.changes(apart[part])
                better = np.flatnonzero(change < -_LEAST * state.cost)
                if not len(better):
                    at, idle, looked = at + len(change), idle + len(change), looked + len(change)
                    few *= 2
                    continue
                first = int(better[0])
                state.take(int(rows[at + first]), apart[at + first], int(slot[first]))
                at, idle, looked, few, swaps = at + first + 1, 0, looked + first + 1, 8, swaps + 1
                stop = log.step(state.cost, -float(change[first]), **fitted(state))
    if log.stopped:  # perhaps in the middle of an exchange
        state, idle = State(distances, state.medoids), 0
    return Search(state.medoids, state.cost, state.owner, -(-looked // n), swaps, idle >= n)


def drawn_apart(distances: Distances, k: int, random: np.random.RandomState) -> np.ndarray:
    """Return k rows drawn one after another with probability proportional to the distance to the nearest row drawn so
    far; of 2 + ln k candidates a step the one that lowers the sum of these most."""
    trials, n = 2 + int(np.log(k)), distances.n
    chosen = [int(random.randint(n))]
    closest = distances.of(np.array(chosen))[0]
    while len(chosen) < k:
        until = np.cumsum(closest)
        if not until[-1] > 0:  # every row lies on one that was drawn
            rest = np.setdiff1d(np.arange(n), chosen)
            return np.append(chosen, random.choice(rest, k - len(chosen), replace=False))
        candidates = np.searchsorted(until, random.uniform(size=trials) * until[-1], side="right")
        near = np.minimum(distances.of(np.minimum(candidates, n - 1)), closest)
        best = int(near.sum(axis=1).argmin())
        chosen.append(int(min(candidates[best], n - 1)))
        closest = near[best]
    return np.array(chosen)


def swap_claim(learner: Any, rows: Rows) -> Claim:
    """Return claim medoids.swap for these rows."""
    table = in_memory(rows)
    n, d = table.shape
    tried = int(min(n, max(1, _MOST_PAIRS // n)))
    candidates = np.unique(np.linspace(0, n - 1, tried).astype(np.int64))
    metric, params = learner._named_metric(), learner.metric_params or {}
    k = learner._n_features_out

    def between(numbers: np.ndarray, others: np.ndarray | None) -> np.ndarray:
        if learner._is_precomputed:
            return table[:, numbers].T if others is None else table[numbers][:, learner.medoid_indices_]
        others_rows = table if others is None else learner.cluster_centers_
        return pair_distances(metric, params, table[numbers], others_rows)

    with one_blas_thread():
        distances = Distances(n, between, learner.n_jobs, stored=False)
        state = State(distances, np.arange(k))
        least = 0.0
        for start in range(0, len(candidates), distances.step):
            change, _ = state.changes(distances.of(candidates[start : start + distances.step]))
            least = min(least, float(change.min()))
    rounding = 16 * (n + 4 * d + 64) * _UNIT
    stated = {"clusters": k, "rows": n, "candidates": tried, "cost": state.cost * (1 + rounding)}
    return Claim("medoids.swap", -least + rounding * (state.cost - least), params=stated)

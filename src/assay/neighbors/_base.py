"""What all nearest-neighbour learners share: the stored rows, the distance, and the search.

Of distances that were computed before and kept as a sparse matrix (`Graph`), only pairs with an entry, zeros among
them, can be neighbours.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import NoneType
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import is_classifier
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import VALID_METRICS, VALID_METRICS_SPARSE, BallTree, KDTree
from sklearn.neighbors._base import KNeighborsMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from assay.base import Learner, fit_log, read_rows, require_finite
from assay.neighbors._search import Boxes, Pairwise, Products, may_use_boxes, nearest, prefers_boxes
from assay.params import Choice, Count, Positive, check, choice, refuse
from assay.scan import Rows
from assay.scan.memory import MemoryRows

CODES = {"euclidean": 0, "manhattan": 1, "chebyshev": 2, "minkowski": 3}
_NAMES = {"l2": "euclidean", "l1": "manhattan", "cityblock": "manhattan", "infinity": "chebyshev"}
_TREES = ("kd_tree", "ball_tree")
_ORDERS = {1.0: "manhattan", 2.0: "euclidean", np.inf: "chebyshev"}
_FORMATS = ("csr", "csc", "coo", "lil")


@dataclass(eq=False, repr=False)
class KeptRows(Learner):
    """Rows kept as they are, and a distance; whatever is asked is answered from them."""

    _: KW_ONLY
    algorithm: str = "auto"
    leaf_size: int = 30
    p: float = 2
    metric: Any = "minkowski"
    metric_params: Any = None
    n_jobs: int | None = None
    fit_X_: Any = field(init=False)  # an array, or a sparse matrix

    constraints: ClassVar = {
        "algorithm": Choice("auto", "brute", "kd_tree", "ball_tree"),
        "leaf_size": Count(),
        "p": Positive(allow_inf=True),
    }

    def _read(self, X: Any, y: Any, multi_output: bool = False) -> Rows:
        """Check the parameters and the rows of `fit`, which may also be those of a tree or another learner."""
        check(self)
        self._named_metric()
        self._check_way()
        if isinstance(X, KeptRows):
            X = X.fit_X_
        elif isinstance(X, (BallTree, KDTree)):
            X = np.asarray(X.data)
        if self._is_precomputed:
            check_graph(self, X)
        rows: Any = read_rows(self, X, y, multi_output=multi_output)
        if self._takes_gaps:
            check_array(rows.X, ensure_all_finite="allow-nan", dtype=np.float64)
        else:
            require_finite(rows, self)
        return rows

    def _check_way(self) -> None:
        """Refuse a tree for a distance that has none, and say what is no metric."""
        metric, params = self.effective_metric_, self.effective_metric_params_
        if "p" in (self.metric_params or {}):
            warnings.warn(
                f"{type(self).__name__}: Parameter p is found in metric_params; the other one, p={self.p!r}, is not "
                "used.",
                SyntaxWarning,
                stacklevel=4,
            )
        semimetric = isinstance(metric, str) and metric == "minkowski" and params["p"] < 1
        if semimetric and self.algorithm in _TREES:
            raise refuse(
                self,
                f'algorithm="{self.algorithm}" does not support 0 < p < 1 for the Minkowski metric. To resolve this '
                'problem either set p >= 1 or algorithm="brute".',
            )
        if semimetric:
            warnings.warn(
                f"{type(self).__name__}: Mind that for 0 < p < 1, Minkowski metrics are not distance metrics. "
                "Continuing the execution with `algorithm='brute'`.",
                UserWarning,
                stacklevel=4,
            )
        if self.algorithm not in _TREES or hasattr(metric, "pairwise"):
            return
        weighted = self.algorithm == "kd_tree" and "w" in params
        named = isinstance(metric, str) and metric in VALID_METRICS[self.algorithm]
        if weighted or not (named or (callable(metric) and self.algorithm == "ball_tree")):
            raise refuse(
                self,
                f"algorithm={self.algorithm!r} does not have the metric {metric!r}{' with weights' * weighted}; "
                "Metric not valid. Set algorithm='auto'.",
            )

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    @property
    def _takes_gaps(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "nan_euclidean"

    @property
    def effective_metric_(self) -> Any:
        """The metric by the one name it has here, or the distance or function that was given."""
        return self._named_metric()[0]

    @property
    def effective_metric_params_(self) -> dict[str, Any]:
        """What the metric takes beside two rows."""
        return self._named_metric()[1]

    def _scikit_state(self, estimator: Any) -> dict[str, Any]:
        """Return what scikit-learn's estimator keeps of the same rows, which are the model."""
        own: Any = getattr(self, "fit_y_", None)
        if hasattr(self, "classes_"):
            lists = isinstance(self.classes_, list)
            own = np.stack([c[k] for c, k in zip(self.classes_, own.T)], axis=1) if lists else self.classes_[own]
        return vars(estimator.fit(self.fit_X_, own))

    @property
    def _fit_X(self) -> Any:
        return self.fit_X_  # scikit-learn's name, which its functions for graphs read

    @property
    def n_samples_fit_(self) -> int:
        """Number of stored rows."""
        return int(self.fit_X_.shape[0])

    def _named_metric(self) -> tuple[Any, dict[str, Any]]:
        """Return the metric by the one name it has here, and its parameters."""
        if not isinstance(self.metric_params, (Mapping, NoneType)):
            raise refuse(self, f"metric_params must be a dict, or None; got {self.metric_params!r}.")
        params = dict(self.metric_params or {})
        if not isinstance(self.metric, str):
            if callable(self.metric) or hasattr(self.metric, "pairwise"):
                return self.metric, params
            raise refuse(self, f"metric must be a name, a distance or a function of two rows; got {self.metric!r}.")
        name = _NAMES.get(self.metric, self.metric)
        if name not in VALID_METRICS["brute"]:
            known = ", ".join(sorted(VALID_METRICS["brute"]))
            raise refuse(self, f"metric must be a distance, a function of two rows or one of {known}; got {name!r}.")
        if name != "minkowski":
            return name, params
        p = float(params.get("p", self.p))
        if not p > 0:
            raise refuse(self, f"metric_params: p must be > 0; got {p:g}.")
        params.pop("p", None)
        if p not in _ORDERS or "w" in params:
            return "minkowski", {"p": p, **params}
        return _ORDERS[p], params

    def _keep(self, rows: Rows, X: Any, y: Any) -> Any:
        """Store the rows, log the fit, and return the targets."""
        with fit_log(self, 1, X, y) as log:
            stored, targets = in_memory(rows)
            if self._is_precomputed and stored.shape[0] != stored.shape[1]:
                raise refuse(self, f"a precomputed X must be square: distances between rows; got {stored.shape}.")
            if issparse(stored):
                self._check_sparse()
                self.fit_X_ = csr_matrix(stored, dtype=np.float64)
            else:
                self.fit_X_ = np.ascontiguousarray(stored, dtype=np.float64)
            self._derive()
            log.step(0.0, 0.0)
        return targets

    def _check_sparse(self) -> None:
        """Refuse a distance that is not computed from sparse rows."""
        metric = self.effective_metric_
        if isinstance(metric, str) and metric not in VALID_METRICS_SPARSE["brute"]:
            known = ", ".join(sorted(VALID_METRICS_SPARSE["brute"]))
            raise refuse(self, f"Metric '{metric}' not valid for sparse input, which has {known}. Use X.toarray().")
        if self.algorithm in _TREES:
            warnings.warn(
                f"{type(self).__name__}: cannot use tree with sparse input: using brute force.",
                UserWarning,
                stacklevel=5,
            )

    def _derive(self) -> None:
        """Forget searches of other rows; a search is made from the stored rows when it is first needed."""
        self._made: dict[Any, Any] = {}  # searches, and what certificates ask for twice

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_made"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._derive()

    def _queries(self, X: Any) -> Any:
        """Return checked queries: an array, or a sparse matrix if the rows are one."""
        if X is None:
            return self.fit_X_
        X = X.X if isinstance(X, MemoryRows) else X
        if self._is_precomputed:
            check_graph(self, X)
        finite = "allow-nan" if self._takes_gaps else True
        Q = validate_data(self, X, dtype=np.float64, reset=False, accept_sparse="csr", ensure_all_finite=finite)
        if issparse(Q) and self.algorithm in _TREES and not issparse(self.fit_X_):
            raise refuse(self, f"sparse queries do not go with algorithm={self.algorithm!r}; use X.toarray().")
        if self._is_precomputed:
            return Q
        if issparse(self.fit_X_):
            return csr_matrix(Q)
        return np.ascontiguousarray(Q.toarray() if issparse(Q) else Q)

    def _all_distances(self) -> Callable[[np.ndarray], np.ndarray]:
        metric, params = self.effective_metric_, self.effective_metric_params_
        if hasattr(metric, "pairwise"):
            return lambda Q: metric.pairwise(Q, self.fit_X_)
        if isinstance(metric, str) and metric == "precomputed":
            return lambda Q: Q
        return lambda Q: pairwise_distances(Q, self.fit_X_, metric=metric, **params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.allow_nan = self._takes_gaps
        return tags


@dataclass(eq=False, repr=False)
class Neighbors(KeptRows, KNeighborsMixin):  # the last so that tools which ask isinstance are answered
    """What is asked of the k nearest rows.

    Of rows at the same distance those that come first in the training rows are nearer.
    """

    figure = "neighbor_distances"
    n_neighbors: int = 5
    _: KW_ONLY

    constraints: ClassVar = {"n_neighbors": Count()}

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Return the distances to the nearest training rows, nearest first, and their row numbers.

        Parameters
        ----------
        X : (n, n_features), or None for the training rows, none of which is then its own neighbour
        n_neighbors : int, optional
            How many; the learner's own number if None.
        return_distance : bool
            Whether to return (distances, row numbers) or the row numbers alone.
        """
        check_is_fitted(self)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            raise refuse(self, f"n_neighbors must be an integer >= 1; got {k!r}.")
        most = self.n_samples_fit_ - (X is None)
        if k > most:
            raise refuse(
                self,
                f"n_neighbors: {k} neighbours are asked for, but n_samples_fit = {self.n_samples_fit_}; expected "
                f"n_neighbors <= {most}.",
            )
        distance, index = self._nearest(self._queries(X), int(k), leave_out=X is None)
        return (distance, index) if return_distance else index

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> csr_matrix:
        """Return the matrix (queries, training rows) with an entry for each neighbour: 1, or with mode="distance" the
        distance."""
        check_mode(self, mode)
        distance, index = self.kneighbors(X, n_neighbors)
        values = np.ones(index.size) if mode == "connectivity" else distance.ravel()
        starts = np.arange(0, index.size + 1, index.shape[1])
        return csr_matrix((values, index.ravel(), starts), shape=(len(index), self.n_samples_fit_))

    def _nearest(self, Q: np.ndarray, k: int, leave_out: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and row numbers; with `leave_out` the queries are the training rows, and none is its own
        neighbour."""
        engine = self._engine(Q, k)
        moved = Q if isinstance(engine, (Graph, Pairwise)) else self._moved(Q)
        powers, index = nearest(engine, moved, k + leave_out, self.n_jobs)
        if leave_out:
            powers, index = without(powers, index, np.arange(Q.shape[0]))
        return engine.distance(powers), index

    def _moved(self, Q: np.ndarray) -> np.ndarray:
        """Return queries in the space in which the distance is the engine's."""
        if self._is_cosine():
            return _unit_rows(Q)
        weights = self._column_factors()
        return Q if weights is None else Q * weights

    def _is_cosine(self) -> bool:
        return isinstance(self.effective_metric_, str) and self.effective_metric_ == "cosine"

    def _column_factors(self) -> np.ndarray | None:
        if not isinstance(self.effective_metric_, str) or self.effective_metric_ != "minkowski":
            return None
        w = self.effective_metric_params_.get("w")
        if w is None:
            return None
        w = np.asarray(w, dtype=np.float64)
        if w.shape != (self.n_features_in_,) or not np.isfinite(w).all() or (w < 0).any():
            raise refuse(self, f"metric_params: w must hold {self.n_features_in_} finite numbers >= 0; got {w!r}.")
        return w ** (1 / self.effective_metric_params_["p"])

    def _engine(self, Q: np.ndarray, k: int) -> Any:
        """Return what searches: products, boxes or all distances; made when first needed."""
        kind = self._kind(Q, k)
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        return self._made[kind]

    def _kind(self, Q: np.ndarray, k: int) -> str:
        metric = self.effective_metric_
        if self._is_precomputed and issparse(Q):
            return "graph"
        if issparse(self.fit_X_) or not isinstance(metric, str) or metric not in (*CODES, "cosine"):
            return "pairwise"
        if metric == "cosine":
            has_zero = not (self.fit_X_.any(axis=1).all() and Q.any(axis=1).all())
            return "pairwise" if has_zero else "products"
        if self._order() < 1:
            return "pairwise"
        euclidean = self._order() == 2.0
        if not euclidean or self.algorithm in ("kd_tree", "ball_tree"):
            return "boxes"
        if self.algorithm == "brute" or not may_use_boxes(self.fit_X_):
            return "products"
        if len(Q) * len(self.fit_X_) < 200_000:
            return "boxes"
        if "boxes" not in self._made:
            self._made["boxes"] = self._make("boxes")
        return "boxes" if prefers_boxes(self._made["boxes"], self._moved(Q), k) else "products"

    def _make(self, kind: str) -> Any:
        if kind == "pairwise":
            return Pairwise(self._all_distances())
        if kind == "graph":
            return Graph(self)
        X = np.ascontiguousarray(self._moved(self.fit_X_))
        if kind == "products":
            return Products(X, halve if self._is_cosine() else np.sqrt)
        metric = {1.0: 1, 2.0: 0, np.inf: 2}.get(self._order(), 3)
        return Boxes(X, metric, self._order(), int(self.leaf_size), self.n_jobs)

    def _order(self) -> float:
        """Return p of the Minkowski distance."""
        named = {"euclidean": 2.0, "cosine": 2.0, "manhattan": 1.0, "chebyshev": np.inf}
        return named.get(self.effective_metric_) or float(self.effective_metric_params_["p"])


def in_memory(rows: Rows) -> tuple[np.ndarray, Any]:
    """Return X and y of all rows."""
    if isinstance(rows, MemoryRows):
        return rows.X, rows.y
    blocks = list(rows.blocks())
    targets = None if blocks[0].y is None else np.concatenate([block.y for block in blocks])
    return np.concatenate([block.X for block in blocks]), targets


def without(powers: np.ndarray, index: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours without row own[i] of each query i; without the last where it is not among them."""
    mine = index == own[:, None]
    mine[~mine.any(axis=1), -1] = True
    shape = (len(index), index.shape[1] - 1)
    return powers[~mine].reshape(shape), index[~mine].reshape(shape)


def neighbor_weights(owner: Any, weights: Any, distance: np.ndarray) -> np.ndarray | None:
    """Return the weight of each neighbour, None if all are equal; rows at distance zero outweigh all others, and rows
    that are all infinitely far weigh the same."""
    if weights in (None, "uniform"):
        return None
    if callable(weights):
        result = np.asarray(weights(distance), dtype=np.float64)
        if not result.any(axis=1).all() and is_classifier(owner):
            raise refuse(
                owner,
                "All neighbors of some sample is getting zero weights. Please modify 'weights' to avoid this case if "
                "you are using a user-defined function.",
            )
        return result
    with np.errstate(divide="ignore"):
        result = 1.0 / distance
    on_top = np.isinf(result)
    result = np.where(on_top.any(axis=1, keepdims=True), on_top, result)
    return np.where(result.any(axis=1, keepdims=True), result, 1.0)


def check_mode(owner: Any, mode: str) -> None:
    """Refuse what is no kind of graph."""
    if mode not in ("connectivity", "distance"):
        raise refuse(owner, f'Unsupported mode, must be one of "connectivity", or "distance" but got "{mode}" instead.')


class VoteWeights:
    """The constraint of `weights`: a known name, or a function of distances."""

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        return value if callable(value) else choice(owner, name, ("uniform", "distance", None))


def halve(squares: np.ndarray) -> np.ndarray:
    """Return 1 - cosine for squared distances between rows of length 1."""
    return squares / 2


def _unit_rows(X: np.ndarray) -> np.ndarray:
    """Return the rows divided by their lengths; first by a power of two, so that no square overflows."""
    X = np.ldexp(X, -np.frexp(np.abs(X).max(axis=1, keepdims=True))[1])
    return X / np.sqrt(np.einsum("ij,ij->i", X, X))[:, None]


def check_graph(owner: Any, D: Any) -> None:
    """Refuse a sparse matrix of distances whose form loses zeros, or that has distances below zero."""
    if not issparse(D):
        return
    if D.format not in _FORMATS:
        raise TypeError(
            f"{type(owner).__name__}: a sparse matrix of distances in {D.format!r} format is not supported due to its "
            f"handling of explicit zeros; use one of {', '.join(_FORMATS)}."
        )
    if D.tocsr().data.min(initial=0.0) < 0:
        raise refuse(owner, "Negative values in data passed to precomputed distance matrix.")


class Graph:
    """Nearest rows by the entries of a sparse matrix (queries, rows)."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def search(self, Q: csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and row numbers (rows, k) of the smallest entries of each row, the first of equal ones."""
        counts = np.diff(Q.indptr)
        if counts.min(initial=k) < k:
            raise refuse(
                self.owner,
                f"{k} neighbors per samples are required, but some samples have only {counts.min()} neighbors in "
                "precomputed graph matrix. Lower n_neighbors, or compute more distances.",
            )
        query = np.repeat(np.arange(Q.shape[0]), counts)
        order = np.lexsort((Q.indices, Q.data, query))
        chosen = order[Q.indptr[:-1, None] + np.arange(k)]
        return Q.data[chosen], Q.indices[chosen].astype(np.int64)

    def distance(self, powers: np.ndarray) -> np.ndarray:
        """Return the distances themselves."""
        return powers

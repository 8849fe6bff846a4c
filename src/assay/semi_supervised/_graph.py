"""Labels spread over a graph (Zhu, Ghahramani and Lafferty 2003; Zhou et al. 2004).

    W_ij = exp(-gamma |x_i - x_j|^2), or 1 if row i is among the k nearest of row j, or j of i, else 0; d_i = sum_j W_ij
    propagation   F_i = Y_i where there is a label, else the mean of F over the neighbours of i
    spreading     F = alpha S F + (1 - alpha) Y,   S_ij = W_ij / sqrt(d_i d_j):  labels may be revised

Claims: how far F is from that fixed point (graph.fixed-point), recomputed from the rows that the model keeps; hold-out
        rows.
Method: the graph of neighbours has at most 2 k n entries, that of the Gaussian kernel n^2; both fixed points are linear
        systems with a positive definite matrix, solved by conjugate gradients for all classes at once.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.spatial.distance import cdist
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.validation import check_is_fitted, validate_data

from assay import scan
from assay.base import fit_log
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Tally, Votes
from assay.messages import Message
from assay.neighbors import NearestNeighbors
from assay.params import Count, Function, NameOr, Number, check, refuse
from assay.scan import Rows
from assay.semi_supervised._labels import SemiSupervised
from assay.stored import StoredModel
from assay.theory.spaces import Unbounded

_LEAST_WEIGHT = 1e-300  # weights below are 0
_CELLS = 2_000_000  # weights held at a time
_LEAST = 1e-140  # shares below are 0: the checker multiplies them
_LOST = 1500  # twice the largest exponent of a weight that is not 0, which multiplies its rounding


class Graphs:
    """The class of labellings by neighbours of stored rows."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Unbounded:
        return Unbounded("classifiers by the nearest of any number of stored rows")

    def __str__(self) -> str:
        return "argmax_c sum of F_ic over stored rows, by their weights"


def neighbour_graph(X: Any, n_neighbors: int, n_jobs: int | None = None) -> csr_array:
    """Return the symmetric graph that joins each row with its k nearest ones, as a sparse matrix of ones.

    Parameters
    ----------
    X : array-like
        Rows.
    n_neighbors : int
        Number of neighbours of each row.
    n_jobs : int or None
        Number of threads. The result does not depend on it.

    Returns
    -------
    csr_array
        The adjacency matrix.

    Examples
    --------
    >>> neighbour_graph([[0.0], [1.0], [5.0]], 1).toarray().astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """
    near = csr_array(NearestNeighbors(n_neighbors=n_neighbors, n_jobs=n_jobs).fit(X).kneighbors_graph())
    return near.maximum(near.T).tocsr()


def graph_kernel(X: Any, n_neighbors: int = 7, ridge: float = 1e-3, n_jobs: int | None = None) -> np.ndarray:
    """Return the Gram matrix (L + ridge I)^-1 of the rows, L the Laplacian of their `neighbour_graph`.

    The squared norm of its space is 1/2 sum_ij w_ij (f_i - f_j)^2 + ridge |f|^2: functions that change between
    neighbours are penalised. With `assay.kernel_model.Kernelized(learner, kernel="precomputed")` a linear learner
    decides by the graph; it knows the rows that the graph was made of, and no others (Smola and Kondor 2003).

    Parameters
    ----------
    X : array-like
        Rows.
    n_neighbors : int, default=7
        Number of neighbours of each row.
    ridge : float, default=0.001
        What is added to the diagonal of the Laplacian.
    n_jobs : int or None
        Number of threads. The result does not depend on it.

    Returns
    -------
    ndarray
        The Gram matrix.

    Examples
    --------
    >>> graph_kernel([[0.0], [1.0]], 1, ridge=1.0).round(4).tolist()
    [[0.6667, 0.3333], [0.3333, 0.6667]]
    """
    graph = neighbour_graph(X, n_neighbors, n_jobs).toarray()
    return np.linalg.inv(np.diag(graph.sum(axis=1) + ridge) - graph)


class GraphLearner(ClassifierMixin, SemiSupervised):
    """What both share: the graph, the solution and prediction."""

    family = "semi.graph"
    figure = "label_certainty"
    constraints: ClassVar = {
        "kernel": NameOr(Function("two sets of rows"), "rbf", "knn"),
        "gamma": Number(low=0.0),
        "n_neighbors": Count(),
        "tol": Number(low=0.0),
        "max_iter": Count(),
    }

    kernel: Any
    gamma: float
    n_neighbors: int
    tol: float
    max_iter: int
    n_jobs: int | None
    X_: Any
    labels_: np.ndarray
    spread_: np.ndarray

    @property
    def _alpha(self) -> float:
        """0 where labels are held."""
        return 0.0

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Any:
        """Spread the labels y, of which -1 stands for none, over the rows X."""
        check(self)
        given = self._read(X, y, ensure_min_samples=2)
        if self.kernel == "knn" and self.n_neighbors >= len(given.codes):
            raise refuse(
                self, f"n_neighbors must be less than the number of rows, n_samples = {len(given.codes)}; got "
                f"{self.n_neighbors}."
            )  # fmt: skip
        self.X_, self.labels_ = given.X if issparse(given.X) else np.ascontiguousarray(given.X), given.codes
        self._derive()  # before the steps, which callbacks may predict with
        with fit_log(self, self.max_iter, X, y) as log, scan.one_blas_thread():
            self._spread(log)
        self.n_iter_ = len(log.history)
        return self

    def _graph(self) -> Any:
        """Return the weights of all pairs, symmetric and without those of a row with itself; sparse or dense."""
        if self.kernel == "knn":
            return neighbour_graph(self.X_, self.n_neighbors, self.n_jobs)
        if self.kernel == "rbf":
            W = gaussian(self.X_, self.X_, self.gamma)
        else:
            W = self.kernel(self.X_, self.X_)
            W = csr_array(W, dtype=np.float64) if issparse(W) else np.array(W, dtype=np.float64)
            n = len(self.labels_)
            if W.shape != (n, n) or not np.min(W.data if issparse(W) else W, initial=0.0) >= 0:
                raise refuse(self, f"kernel must return {n} x {n} numbers >= 0; got shape {W.shape}.")
            W = (W + W.T) / 2
        if issparse(W):
            return csr_array(W - csr_array((W.diagonal(), (np.arange(len(self.labels_)),) * 2), W.shape))
        np.fill_diagonal(W, 0.0)
        return W

    def _spread(self, log: FitLog) -> None:
        S = self._graph()
        degree = np.asarray(S.sum(axis=1)).ravel()
        root = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
        S = (S * root[:, None]) * root
        S = csr_array(S) if issparse(S) else S
        held, Y = self.labels_ >= 0, self._one_hot()
        alpha = self._alpha
        shares = Y[held].mean(axis=0)

        def keep(G: np.ndarray) -> dict[str, np.ndarray]:
            """Return the attributes for a solution in the scaled system."""
            if alpha:
                F = G
            else:
                F = Y.copy()
                F[~held] = root[~held, None] * G
            F = np.where(F > _LEAST, F, 0.0)
            lost = F.sum(axis=1) == 0  # no path leads from here to a label
            F[lost] = 0.0 if alpha else shares
            return {"spread_": F}

        if alpha:
            A, B, start = S, (1 - alpha) * Y, Y
        else:
            A = S[~held][:, ~held]
            scale = np.where(degree > 0, np.sqrt(degree), 0.0)
            B = np.asarray(S[~held][:, held] @ (Y[held] * scale[held, None]))
            start = np.zeros_like(B)
        self._solve(A, alpha or 1.0, B, start, log, keep)

    def _solve(self, S: Any, factor: float, B: np.ndarray, G: np.ndarray, log: FitLog, keep: Any) -> None:
        """Solve (I - factor S) G = B by conjugate gradients, and keep each step."""
        R = B - (G - factor * (S @ G)) if len(G) else B
        P, square = R.copy(), (R * R).sum(axis=0)
        scale = max(float(np.abs(B).max(initial=0.0)), 1e-300)
        left, self.n_iter_ = float(np.abs(R).max(initial=0.0)) / scale, 0
        self._take_arrays(keep(G))
        while True:
            try:
                if left > self.tol and self.n_iter_ < self.max_iter:
                    AP = P - factor * (S @ P)
                    step = square / np.maximum((P * AP).sum(axis=0), 1e-300)
                    G, R = G + step * P, R - step * AP
                    before, square = square, (R * R).sum(axis=0)
                    P = R + square / np.maximum(before, 1e-300) * P
                    left = float(np.abs(R).max()) / scale
                    self.n_iter_ += 1
                fitted = keep(G)
                self._take_arrays(fitted)
                if log.step(left, left, **fitted) or left <= self.tol:
                    return
            except KeyboardInterrupt:
                log.stopped = True
                return
            if self.n_iter_ >= self.max_iter:
                warnings.warn(
                    f"{type(self).__name__}: max_iter={self.max_iter} was reached without convergence. The residual is "
                    f"{left:.2e}; raise max_iter or tol.",
                    ConvergenceWarning,
                    stacklevel=5,
                )
                return

    def _one_hot(self) -> np.ndarray:
        Y = np.zeros((len(self.labels_), len(self.classes_)))
        held = self.labels_ >= 0
        Y[held, self.labels_[held]] = 1.0
        return Y

    @property
    def graph_numbers_(self) -> np.ndarray:
        """k, or 0 for Gaussian weights, alpha and gamma, as the checker reads them."""
        near = self.kernel == "knn"
        return np.array([float(self.n_neighbors) if near else 0.0, self._alpha, 0.0 if near else float(self.gamma)])

    @property
    def fit_X_(self) -> np.ndarray:
        """The rows of the fit, dense."""
        return self.X_.toarray() if issparse(self.X_) else self.X_

    def _take_arrays(self, arrays: Mapping[str, Any]) -> None:
        if "fit_X_" in arrays:
            self.X_ = arrays["fit_X_"]
        super()._take_arrays(arrays)

    @property
    def label_distributions_(self) -> np.ndarray:
        """The share of each class at each row of the fit, (n, n_classes); zeros where no label reaches a row."""
        total = self.spread_.sum(axis=1, keepdims=True)
        return np.divide(self.spread_, total, out=np.zeros_like(self.spread_), where=total > 0)

    @property
    def transduction_(self) -> np.ndarray:
        """The label that spreading gives to each row of the fit."""
        return self.classes_[self.spread_.argmax(axis=1)]

    def _derive(self) -> None:
        """Make the search among the stored rows."""
        if self.kernel == "knn":
            self._search = NearestNeighbors(n_neighbors=self.n_neighbors, n_jobs=self.n_jobs).fit(self.X_)

    def _sums(self, X: Any) -> np.ndarray:
        """Return the sum of the distributions of the stored rows, by their weights."""
        F = self.label_distributions_
        if self.kernel == "knn":
            if not hasattr(self, "_search"):  # the kernel was another one at the fit
                self._derive()
            near = self._search.kneighbors(X, self.n_neighbors, return_distance=False)
            return F[near].sum(axis=1)
        if self.kernel == "rbf":
            step = max(1, _CELLS // len(F))
            parts = [gaussian(X[at : at + step], self.X_, self.gamma) @ F for at in range(0, X.shape[0], step)]
            return np.concatenate(parts) if parts else np.zeros((0, F.shape[1]))
        return np.asarray(self.kernel(self.X_, X).T @ F)

    def _at_the_edge(self, X: np.ndarray) -> np.ndarray:
        """Return which rows have a weight so near to the least one that rounding may decide whether it is 0."""
        nearest = cdist(X, self.fit_X_, "sqeuclidean") * self.gamma + np.log(_LEAST_WEIGHT)
        return (np.abs(nearest) < 1.0).any(axis=1)

    def _asked(self, X: Any) -> Any:
        return validate_data(self, X, reset=False, dtype=np.float64, accept_sparse="csr")

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the mean distribution of the rows of the fit by their weights, (n, n_classes), summing to 1."""
        check_is_fitted(self)
        result = self._sums(self._asked(X))
        total = result.sum(axis=1, keepdims=True)
        return np.where(total > 0, result / np.where(total > 0, total, 1.0), 1.0 / len(self.classes_))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the largest sum over the rows of the fit."""
        check_is_fitted(self)
        best = self._sums(self._asked(X)).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def stored(self) -> StoredModel:
        """Return this fitted model as plain data."""
        self._require_name()
        return super().stored()

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        self._require_name()
        return super()._known_rows(X, y, sample_weight)

    def _require_name(self) -> None:
        if not isinstance(self.kernel, str):
            raise refuse(self, "with a function as kernel there is no certificate and no file; pickle works.")

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the decisions."""
        yield Votes(_decided, (self,))
        yield Tally(_tally, (self,))

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield how far the distributions are from the fixed point."""
        if rows.n_rows != int(np.sum(self.labels_ >= 0)):
            yield NotApplicable("graph.fixed-point", Message("why.other-labelled"))
            return
        W = self._graph()
        degree, F, Y = np.asarray(W.sum(axis=1)).ravel(), self.spread_, self._one_hot()
        far = degree < 1e-280
        if np.any(far & (degree > 0)) or (self.kernel == "rbf" and self._at_the_edge(self.fit_X_[far]).any()):
            yield NotApplicable("graph.fixed-point", Message("why.far-row"))
            return
        alone, total = degree == 0, np.where(degree > 0, degree, 1.0)[:, None]
        if self._alpha:
            root = np.where(alone[:, None], 0.0, 1 / np.sqrt(total))
            mean = root * (W @ (root * F))
            want = self._alpha * mean + (1 - self._alpha) * Y
        else:
            mean = (W @ F) / total
            want = np.where((self.labels_ >= 0)[:, None], Y, np.where(alone[:, None], F, mean))
        k, alpha, gamma = self.graph_numbers_.tolist()
        params = {"rows": rows.n_rows, "stored": len(F), "k": int(k), "alpha": alpha, "gamma": gamma}
        most = degree.max() if k else len(F) + _LOST * (self.X_.shape[1] + 8)
        slack = 1e-14 * (64 + 16 * most) * (1 + max(F.max(), mean.max()) * (np.sqrt(most) if k else 1.0))
        yield Claim("graph.fixed-point", float(np.abs(F - want).max() * (1 + 1e-9) + slack), params=params)


def gaussian(A: Any, B: Any, gamma: float) -> np.ndarray:
    """Return exp(-gamma |a - b|^2) for all pairs of rows, from differences where rows are dense: the squares lose no
    digits.

    >>> gaussian(np.array([[1.0]]), np.array([[0.0], [1.0]]), 2.0).round(4).tolist()
    [[0.1353, 1.0]]
    """
    if issparse(A) or issparse(B):
        return rbf_kernel(A, B, gamma=gamma)
    square = cdist(A, B, "sqeuclidean")
    W = np.exp(np.multiply(square, -gamma, out=square), out=square)
    W[W < _LEAST_WEIGHT] = 0.0
    return W


def _tally(block: Block, model: GraphLearner) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the neighbours' distributions or, with weights, their mean; nothing is known of a row all of
    whose weights have lost their digits."""
    values = model._sums(block.X)
    if model.kernel == "knn":
        return values, np.full(len(values), 1e-13 * model.n_neighbors * len(model.classes_))
    total = values.sum(axis=1)
    loss = 1e-13 * (len(model.labels_) + _LOST * (model.n_features_in_ + 8))
    lost = (total < 2e-280) & ((total > 0) | model._at_the_edge(block.X))
    return values / np.where(total > 0, total, 1.0)[:, None], np.where(lost, 2.0, loss)


def _decided(block: Block, model: GraphLearner) -> np.ndarray:
    """Return the decided class, OPEN where rounding could change it."""
    values = model._sums(block.X)
    ranked = np.partition(values, -2, axis=1)
    lead = ranked[:, -1] - ranked[:, -2]
    near, low = model.kernel == "knn", 1e-280
    loss = model.n_neighbors if near else len(model.labels_) + _LOST * (model.n_features_in_ + 8)
    sure = lead > 1e-13 * loss * (near + values.sum(axis=1))
    if not near:
        top = ranked[:, -1]
        sure = np.where(top < 2 * low, (top == 0) & ~model._at_the_edge(block.X), sure)
    return np.where(sure, values.argmax(axis=1), -1)


@dataclass(eq=False, repr=False)
class LabelPropagation(GraphLearner):
    """Labels held where they are known, and the mean of the neighbours everywhere else.

    Parameters
    ----------
    kernel : "rbf", "knn" or function
        Weights of pairs: exp(-gamma |x - x'|^2); 1 for the nearest rows of each other; or what a function of two sets
        of rows returns, (n, m) numbers >= 0. A function leaves no certificate.
    gamma : float >= 0
        Of "rbf". Its graph holds n^2 numbers.
    n_neighbors : int
        Of "knn": neighbours of each row in the graph, itself not among them, and stored rows that a new row asks.
    tol : float >= 0
        The steps end when the residual is at most tol times the largest right-hand side.
    max_iter : int
        Steps of conjugate gradients.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, n_iter_
    label_distributions_ : (n, n_classes)
        Shares of the classes; they sum to 1.
    transduction_ : (n,)
        Labels of the rows of the fit.
    X_, labels_ : the rows, and the position of their labels in `classes_`, -1 for none
    spread_ : (n, n_classes)
        The fixed point, of which `label_distributions_` are the shares.

    Examples
    --------
    >>> from assay.semi_supervised import LabelPropagation
    >>> X = [[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]
    >>> model = LabelPropagation("knn", n_neighbors=2).fit(X, ["a", None, None, None, None, "b"])
    >>> model.transduction_.tolist(), model.predict([[1.5], [9.0]]).tolist()
    (['a', 'a', 'a', 'b', 'b', 'b'], ['a', 'b'])
    """

    card = Card(
        name="Label propagation",
        task="classify",
        model=Graphs(),
        strategy="sum over edges of |F_i - F_j|^2, labels held",
        algorithm="conjugate gradients on the graph of the rows",
        guarantee=("graph.fixed-point",),
        most_rows=10_000,
    )

    kernel: Any = "rbf"
    _: KW_ONLY
    gamma: float = 20
    n_neighbors: int = 7
    tol: float = 1e-8
    max_iter: int = 1000
    n_jobs: int | None = None


@dataclass(eq=False, repr=False)
class LabelSpreading(GraphLearner):
    """Labels that may be revised: what neighbours say counts alpha, a row's own label 1 - alpha.

    Parameters
    ----------
    kernel, gamma, n_neighbors, tol, max_iter, n_jobs
        As in `LabelPropagation`.
    alpha : float in (0, 1)

    Attributes
    ----------
    classes_, n_iter_, label_distributions_, transduction_, X_, labels_, spread_
        As in `LabelPropagation`.

    Examples
    --------
    >>> from assay.semi_supervised import LabelSpreading
    >>> X = [[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]
    >>> LabelSpreading("knn", n_neighbors=2).fit(X, [0, -1, -1, -1, -1, 1]).transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    card = Card(
        name="Label spreading",
        task="classify",
        model=Graphs(),
        strategy="alpha sum over edges of |F_i/sqrt(d_i) - F_j/sqrt(d_j)|^2 + (1 - alpha) sum of |F_i - Y_i|^2",
        algorithm="conjugate gradients on the graph of the rows",
        guarantee=("graph.fixed-point",),
        most_rows=10_000,
    )
    constraints: ClassVar = {"alpha": Number(low=0.0, high=1.0, open_low=True, open_high=True)}

    kernel: Any = "rbf"
    _: KW_ONLY
    gamma: float = 20
    n_neighbors: int = 7
    alpha: float = 0.2
    tol: float = 1e-8
    max_iter: int = 1000
    n_jobs: int | None = None

    @property
    def _alpha(self) -> float:
        return float(self.alpha)

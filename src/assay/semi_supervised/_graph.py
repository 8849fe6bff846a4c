"""Labels spread over a graph of neighbours (Zhu, Ghahramani and Lafferty 2003; Zhou et al. 2004).

    W_ij = 1 if row i is among the k nearest of row j, or j of i; else 0.   d_i = sum_j W_ij
    propagation   F_i = Y_i where there is a label, else the mean of F over the neighbours of i
    spreading     F = alpha S F + (1 - alpha) Y,   S_ij = W_ij / sqrt(d_i d_j):  labels may be revised

Claims: how far F is from that fixed point (D60), recomputed from the rows that the model keeps; hold-out rows.
Method: the graph has at most 2 k n entries; both fixed points are linear systems with a positive definite matrix,
        solved by conjugate gradients for all classes at once. No matrix of n x n entries is made.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from assay import scan
from assay.base import fit_log
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Votes
from assay.neighbors import NearestNeighbors
from assay.params import Count, Number, Positive, check, refuse
from assay.scan import Rows
from assay.semi_supervised._labels import SemiSupervised
from assay.theory.spaces import Unbounded


class Graphs:
    """The class of labellings by neighbours of stored rows."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Unbounded:
        return Unbounded("classifiers by the nearest of any number of stored rows")

    def __str__(self) -> str:
        return "argmax_c sum of F_ic over the k nearest stored rows"


def neighbour_graph(X: Any, n_neighbors: int, n_jobs: int | None = None) -> csr_array:
    """Return the symmetric graph that joins each row with its k nearest ones, as a sparse matrix of ones.

    >>> neighbour_graph([[0.0], [1.0], [5.0]], 1).toarray().astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """
    near = csr_array(NearestNeighbors(n_neighbors=n_neighbors, n_jobs=n_jobs).fit(X).kneighbors_graph())
    return near.maximum(near.T).tocsr()


class GraphLearner(ClassifierMixin, SemiSupervised):
    """What both share: the graph, the solution and prediction."""

    family = "semi.graph"
    constraints: ClassVar = {"n_neighbors": Count(), "tol": Positive(), "max_iter": Count()}

    n_neighbors: int
    tol: float
    max_iter: int
    n_jobs: int | None
    fit_X_: np.ndarray
    labels_: np.ndarray
    label_distributions_: np.ndarray

    @property
    def _alpha(self) -> float:
        """0 where labels are held."""
        return 0.0

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Any:
        """Spread the labels y, of which -1 stands for none, over the rows X."""
        check(self)
        given = self._read(X, y, ensure_min_samples=2)
        if self.n_neighbors >= len(given.codes):
            raise refuse(
                self, f"n_neighbors must be less than the number of rows, n_samples = {len(given.codes)}; got "
                f"{self.n_neighbors}."
            )  # fmt: skip
        self.fit_X_, self.labels_ = np.ascontiguousarray(given.X), given.codes
        self._derive()  # before the steps, which callbacks may predict with
        with fit_log(self, self.max_iter, X, y) as log, scan.one_blas_thread():
            self._spread(log)
        self.n_iter_ = len(log.history)
        return self

    def _spread(self, log: FitLog) -> None:
        W = neighbour_graph(self.fit_X_, self.n_neighbors, self.n_jobs)
        root = 1.0 / np.sqrt(np.asarray(W.sum(axis=1)).ravel())
        S = (diags_array(root) @ W @ diags_array(root)).tocsr()
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
            F = np.maximum(F, 0.0)
            lost = F.sum(axis=1) == 0  # no path leads from here to a label
            F[lost] = 0.0 if alpha else shares
            return {"label_distributions_": F}

        if alpha:
            A, B, start = S, (1 - alpha) * Y, Y
        else:
            A = S[~held][:, ~held]
            B = np.asarray(S[~held][:, held] @ (Y[held] / root[held, None]))
            start = np.zeros_like(B)
        self._solve(A, alpha or 1.0, B, start, log, keep)

    def _solve(self, S: Any, factor: float, B: np.ndarray, G: np.ndarray, log: FitLog, keep: Any) -> None:
        """Solve (I - factor S) G = B by conjugate gradients, and keep each step."""
        R = B - (G - factor * (S @ G)) if len(G) else B
        P, square = R.copy(), (R * R).sum(axis=0)
        scale, self.n_iter_ = max(float(np.abs(B).max(initial=0.0)), 1e-300), 0
        left = float(np.abs(R).max(initial=0.0)) / scale
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
                    f"{type(self).__name__}: not converged after {self.n_iter_} steps (residual {left:.2e}); raise "
                    "max_iter or tol.",
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
        """k and alpha, as the checker reads them."""
        return np.array([float(self.n_neighbors), self._alpha])

    @property
    def transduction_(self) -> np.ndarray:
        """The label that spreading gives to each row of the fit."""
        return self.classes_[self.label_distributions_.argmax(axis=1)]

    def _derive(self) -> None:
        """Make the search among the stored rows."""
        self._search = NearestNeighbors(n_neighbors=self.n_neighbors, n_jobs=self.n_jobs).fit(self.fit_X_)

    def _sums(self, X: np.ndarray) -> np.ndarray:
        """Return the sum of the distributions of the k nearest stored rows."""
        return self.label_distributions_[self._search.kneighbors(X, return_distance=False)].sum(axis=1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the mean distribution of the k nearest rows of the fit, (n, n_classes), summing to 1."""
        check_is_fitted(self)
        found = self._sums(validate_data(self, X, reset=False, dtype=np.float64))
        total = found.sum(axis=1, keepdims=True)
        return np.where(total > 0, found / np.where(total > 0, total, 1.0), 1.0 / len(self.classes_))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the largest sum over the k nearest rows of the fit."""
        check_is_fitted(self)
        best = self._sums(validate_data(self, X, reset=False, dtype=np.float64)).argmax(axis=1)
        return self.classes_[best]

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the decisions."""
        yield Votes(_decided, (self,))

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield how far the distributions are from the fixed point."""
        if rows.n_rows != int(np.sum(self.labels_ >= 0)):
            yield NotApplicable("D60/1", "These are not the labelled rows of the fit.")
            return
        W = neighbour_graph(self.fit_X_, self.n_neighbors, self.n_jobs)
        degree, F, Y = np.asarray(W.sum(axis=1)).ravel(), self.label_distributions_, self._one_hot()
        if self._alpha:
            root = 1 / np.sqrt(degree)[:, None]
            want = self._alpha * root * (W @ (root * F)) + (1 - self._alpha) * Y
        else:
            want = np.where((self.labels_ >= 0)[:, None], Y, (W @ F) / degree[:, None])
        params = {"rows": rows.n_rows, "stored": len(F), "k": int(self.n_neighbors), "alpha": self._alpha}
        slack = 1e-14 * (64 + 16 * degree.max()) * (1 + F.max() * np.sqrt(degree.max()))
        yield Claim("D60/1", float(np.abs(F - want).max() * (1 + 1e-9) + slack), params=params)


def _decided(block: Block, model: GraphLearner) -> np.ndarray:
    """Return the decided class, OPEN where rounding could change it."""
    values = model._sums(block.X)
    ranked = np.partition(values, -2, axis=1)
    lead = ranked[:, -1] - ranked[:, -2]
    return np.where(lead > 1e-13 * model.n_neighbors * (1 + ranked[:, -1]), values.argmax(axis=1), -1)


@dataclass(eq=False, repr=False)
class LabelPropagation(GraphLearner):
    """Labels held where they are known, and the mean of the neighbours everywhere else.

    Parameters
    ----------
    n_neighbors : int
        Neighbours of each row in the graph, and stored rows that a new row asks.
    tol : float > 0
        The steps end when the residual is at most tol times the largest right-hand side.
    max_iter : int
        Steps of conjugate gradients.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, n_iter_
    label_distributions_ : (n, n_classes)
    transduction_ : (n,)
        Labels of the rows of the fit.
    fit_X_, labels_ : the rows, and the position of their labels in `classes_`, -1 for none

    Examples
    --------
    >>> from assay.semi_supervised import LabelPropagation
    >>> X = [[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]
    >>> model = LabelPropagation(n_neighbors=2).fit(X, ["a", None, None, None, None, "b"])
    >>> model.transduction_.tolist(), model.predict([[1.5], [9.0]]).tolist()
    (['a', 'a', 'a', 'b', 'b', 'b'], ['a', 'b'])
    """

    card = Card(
        name="Label propagation",
        zh="标记传播",
        mission=("CON-40",),
        task="classify",
        model=Graphs(),
        strategy="sum over edges of |F_i - F_j|^2, labels held",
        algorithm="conjugate gradients on the graph of the k nearest rows",
        guarantee=("graph.fixed-point",),
        most_rows=10_000,
    )

    n_neighbors: int = 7
    _: KW_ONLY
    tol: float = 1e-8
    max_iter: int = 1000
    n_jobs: int | None = None


@dataclass(eq=False, repr=False)
class LabelSpreading(GraphLearner):
    """Labels that may be revised: what neighbours say counts alpha, a row's own label 1 - alpha.

    Parameters
    ----------
    n_neighbors, tol, max_iter, n_jobs
        As in `LabelPropagation`.
    alpha : float in (0, 1)

    Attributes
    ----------
    classes_, n_iter_, transduction_, fit_X_, labels_
        As in `LabelPropagation`.
    label_distributions_ : (n, n_classes)
        Not divided by their sums, which are small far from any label.

    Examples
    --------
    >>> from assay.semi_supervised import LabelSpreading
    >>> X = [[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]
    >>> LabelSpreading(n_neighbors=2).fit(X, [0, -1, -1, -1, -1, 1]).transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    card = Card(
        name="Label spreading",
        zh="标记扩散",
        mission=("CON-40",),
        task="classify",
        model=Graphs(),
        strategy="alpha sum over edges of |F_i/sqrt(d_i) - F_j/sqrt(d_j)|^2 + (1 - alpha) sum of |F_i - Y_i|^2",
        algorithm="conjugate gradients on the graph of the k nearest rows",
        guarantee=("graph.fixed-point",),
        most_rows=10_000,
    )
    constraints: ClassVar = {"alpha": Number(low=0.0, high=1.0, open_low=True, open_high=True)}

    n_neighbors: int = 7
    _: KW_ONLY
    alpha: float = 0.2
    tol: float = 1e-8
    max_iter: int = 1000
    n_jobs: int | None = None

    @property
    def _alpha(self) -> float:
        return float(self.alpha)

"""Distances between rows, similarities of histograms, and a check of the axioms of a metric.

A distance is an object with `pairwise(A, B)` -> (rows of A, rows of B) and is called as distance(a, b) for two rows; it
serves as `metric=` of `assay.neighbors`. Columns are *ordered* if their differences mean something (numbers, ordered
levels), else *unordered* (nominal levels, written as numbers): Minkowski distances are for the first, the value
difference metric for the second, `MinkovDM` for both.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from assay.data.table import Table


class Distance:
    """A function of two rows, computed for all pairs of two tables at once."""

    def pairwise(self, A: Any, B: Any) -> np.ndarray:
        """Return the distances (rows of A, rows of B)."""
        raise NotImplementedError

    def __call__(self, a: Any, b: Any) -> float:
        return float(self.pairwise(np.atleast_2d(a), np.atleast_2d(b))[0, 0])


class Minkowski(Distance):
    """(sum_u w_u |a_u - b_u|^p)^(1/p); p = 1 is the Manhattan distance, 2 the Euclidean, infinity the largest gap.

    Parameters
    ----------
    p : float >= 1
        Below 1 it would not be a metric: the triangle inequality fails. `allow_any_order` computes it all the same.
    w : numbers >= 0, optional
        Weights of the columns, all 1 if None. `Weighted` is the form whose weights sum to 1.

    >>> Minkowski(1)([0.0, 0.0], [3.0, 4.0]), Minkowski()([0.0, 0.0], [3.0, 4.0]), Minkowski(np.inf)([0, 0], [3, 4])
    (7.0, 5.0, 4.0)
    """

    def __init__(self, p: float = 2.0, w: Any = None, *, allow_any_order: bool = False) -> None:
        if not p > 0 or (p < 1 and not allow_any_order):
            raise ValueError(f"Minkowski: p must be >= 1 (below 1 the triangle inequality fails); got {p!r}.")
        self.p, self.w = float(p), None if w is None else np.asarray(w, dtype=np.float64)
        if self.w is not None and (self.w.ndim != 1 or not np.isfinite(self.w).all() or (self.w < 0).any()):
            raise ValueError(f"Minkowski: w must hold finite numbers >= 0, one for each column; got {w!r}.")

    def pairwise(self, A: Any, B: Any) -> np.ndarray:
        A, B = _tables(A, B)
        if self.w is not None and len(self.w) != A.shape[1]:
            raise ValueError(f"Minkowski: w has {len(self.w)} weights for {A.shape[1]} columns.")
        if np.isinf(self.p):
            used = slice(None) if self.w is None else self.w > 0
            return cdist(A[:, used], B[:, used], "chebyshev")
        factors = 1.0 if self.w is None else self.w ** (1 / self.p)
        named = {1.0: "cityblock", 2.0: "euclidean"}
        if self.p in named:
            return cdist(A * factors, B * factors, named[self.p])
        return cdist(A * factors, B * factors, "minkowski", p=self.p)


class Weighted(Minkowski):
    """The Minkowski distance with weights w_u >= 0 that sum to 1, so that it is a mean over the columns.

    With n equal weights it is n^(-1/p) times the plain one.

    >>> round(Weighted([0.5, 0.5])([0.0, 0.0], [3.0, 4.0]) * 2**0.5, 12)
    5.0
    """

    def __init__(self, w: Any, p: float = 2.0) -> None:
        super().__init__(p, w)
        total = float(np.sum(np.asarray(w, dtype=np.float64)))
        if abs(total - 1) > 1e-9:
            raise ValueError(f"Weighted: the weights must sum to 1; they sum to {total:g}. Divide by their sum.")


class ValueDifference(Distance):
    """The value difference metric of unordered columns, from how often each value goes with each class or cluster.

        VDM_p(a, b) = sum_u sum_i |m_{u,a,i} / m_{u,a} - m_{u,b,i} / m_{u,b}|^p

    m_{u,a} rows have the value a in column u, m_{u,a,i} of them are of class i. Values with equal shares are at
    distance 0, so it is a pseudo-metric; a value that was not seen has no shares and is refused.

    Parameters
    ----------
    p : float >= 1

    Examples
    --------
    >>> distance = ValueDifference(1).fit([[0], [0], [1], [1], [1]], ["x", "y", "y", "y", "y"])
    >>> distance([0], [1])
    1.0
    """

    def __init__(self, p: float = 2.0) -> None:
        if not (np.isfinite(p) and p >= 1):
            raise ValueError(f"ValueDifference: p must be a finite number >= 1; got {p!r}.")
        self.p = float(p)

    def fit(self, X: Any, y: Any) -> "ValueDifference":
        """Count values and classes in the rows X, whose classes or clusters are y."""
        X, (classes, codes) = np.asarray(X, dtype=np.float64), np.unique(np.asarray(y), return_inverse=True)
        if X.ndim != 2 or len(X) != len(codes):
            raise ValueError(f"ValueDifference: X must be a table with a row for each of {len(codes)} labels.")
        self.classes_, self.values_, self.shares_ = classes, [], []
        for column, values in enumerate(X.T):
            known, place = np.unique(values, return_inverse=True)
            if len(known) > max(20, 0.5 * len(X)):
                warnings.warn(
                    f"ValueDifference: column {column} has {len(known)} values in {len(X)} rows; it looks ordered, and "
                    "shares of so few rows each mean little. Treat it as ordered (Minkowski, MinkovDM).",
                    UserWarning,
                    stacklevel=2,
                )
            counts = np.zeros((len(known), len(classes)))
            np.add.at(counts, (place, codes), 1.0)
            self.values_.append(known)
            self.shares_.append(counts / counts.sum(axis=1, keepdims=True))
        return self

    def powers(self, A: Any, B: Any) -> np.ndarray:
        """Return VDM_p (rows of A, rows of B)."""
        if not hasattr(self, "shares_"):
            raise ValueError("ValueDifference: it is not fitted: call fit(X, y) with rows and their classes first.")
        A, B = _tables(A, B)
        total = np.zeros((len(A), len(B)))
        for column, shares in enumerate(self.shares_):
            between = (np.abs(shares[:, None, :] - shares[None, :, :]) ** self.p).sum(axis=2)
            total += between[np.ix_(self._places(A, column), self._places(B, column))]
        return total

    def pairwise(self, A: Any, B: Any) -> np.ndarray:
        return self.powers(A, B)

    def _places(self, X: np.ndarray, column: int) -> np.ndarray:
        known = self.values_[column]
        place = np.minimum(np.searchsorted(known, X[:, column]), len(known) - 1)
        new = np.flatnonzero(known[place] != X[:, column])
        if len(new):
            raise ValueError(
                f"ValueDifference: column {column} has the value {X[new[0], column]:g}, which no fitted row had; it "
                "has no shares of the classes. Replace it by a known value."
            )
        return place


class MinkovDM(Distance):
    """Minkowski over the ordered columns and value differences over the unordered ones.

        (sum_{ordered u} |a_u - b_u|^p + sum_{unordered u} VDM_p(a_u, b_u))^(1/p)

    Parameters
    ----------
    p : float >= 1
    unordered : sequence of int, optional
        Columns whose values have no order. None: those that a `Table` calls nominal; an array has none.

    Examples
    --------
    >>> distance = MinkovDM(1, unordered=[1]).fit([[0.0, 0], [1.0, 0], [2.0, 1]], [0, 1, 1])
    >>> distance([0.0, 0], [2.0, 1])
    3.0
    """

    def __init__(self, p: float = 2.0, unordered: Sequence[int] | None = None) -> None:
        self.p, self.unordered = Minkowski(p).p, unordered

    def fit(self, X: Any, y: Any) -> "MinkovDM":
        """Find out which columns are unordered, and count their values and the classes y."""
        table, X = (X, X.matrix()) if isinstance(X, Table) else (None, np.asarray(X, dtype=np.float64))
        chosen = self.unordered
        if chosen is None:
            chosen = [] if table is None else table.positions("nominal")
        self.unordered_ = np.asarray(sorted(chosen), dtype=np.int64)
        if len(self.unordered_) and not (self.unordered_[0] >= 0 and self.unordered_[-1] < X.shape[1]):
            raise ValueError(f"MinkovDM: unordered must be columns from 0 to {X.shape[1] - 1}; got {chosen!r}.")
        self.ordered_ = np.setdiff1d(np.arange(X.shape[1]), self.unordered_)
        if table is not None and (wrong := np.intersect1d(self.ordered_, table.positions("nominal"))).size:
            names = ", ".join(table.names[column] for column in wrong)
            warnings.warn(
                f"MinkovDM: the columns {names} are nominal; differences of their levels mean nothing. "
                "List them in unordered.",
                UserWarning,
                stacklevel=2,
            )
        self.values_ = ValueDifference(self.p).fit(X[:, self.unordered_], y)
        return self

    def pairwise(self, A: Any, B: Any) -> np.ndarray:
        if not hasattr(self, "values_"):
            raise ValueError("MinkovDM: it is not fitted: call fit(X, y) with rows and their classes first.")
        A, B = _tables(A, B)
        total = np.zeros((len(A), len(B)))
        for column in self.ordered_:
            total += np.abs(A[:, column, None] - B[None, :, column]) ** self.p
        total += self.values_.powers(A[:, self.unordered_], B[:, self.unordered_])
        return total ** (1 / self.p)


def _tables(A: Any, B: Any) -> tuple[np.ndarray, np.ndarray]:
    A, B = (np.asarray(part, dtype=np.float64) for part in (A, B))
    if A.ndim != 2 or B.ndim != 2 or A.shape[1] != B.shape[1]:
        raise ValueError(f"distance: two tables with the same columns are needed; got shapes {A.shape} and {B.shape}.")
    return A, B


# Similarities -----------------------------------------------------------------------------------------------


def cosine_similarity(a: Any, b: Any) -> float:
    """Return <a, b> / (|a| |b|), for bags of counts between 0 (nothing in common) and 1 (equal shares).

    >>> cosine_similarity([3, 4], [6, 8]), cosine_similarity([1, 0], [0, 3])
    (1.0, 0.0)
    """
    a, b = _histograms(a, b)
    return float(min(1.0, a @ b / (np.linalg.norm(a) * np.linalg.norm(b))))


def histogram_intersection(a: Any, b: Any) -> float:
    """Return sum_u min(a_u, b_u) for two histograms, each divided by its sum: the share that they have in common.

    >>> histogram_intersection([2, 2], [1, 3])
    0.75
    """
    a, b = _histograms(a, b)
    return float(min(1.0, np.minimum(a / a.sum(), b / b.sum()).sum()))


def _histograms(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    a, b = (np.asarray(part, dtype=np.float64) for part in (a, b))
    if a.ndim != 1 or a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError(f"histograms must be two lists of as many finite numbers; got shapes {a.shape}, {b.shape}.")
    if a.min(initial=0.0) < 0 or b.min(initial=0.0) < 0 or not (a.any() and b.any()):
        raise ValueError("histograms must hold numbers >= 0, not all of them 0.")
    return a, b


# The axioms -------------------------------------------------------------------------------------------------


class Axioms(NamedTuple):
    """Which axioms a distance keeps on some points; `counterexample` names points that break the first that fails."""

    non_negative: bool
    identity: bool
    symmetric: bool
    triangle: bool
    counterexample: str

    @property
    def is_metric(self) -> bool:
        """Whether all four hold."""
        return self.non_negative and self.identity and self.symmetric and self.triangle


def axioms(distance: Callable[[Any, Any], float], points: Any, *, tol: float = 1e-12) -> Axioms:
    """Check on a finite set whether d is a metric: d >= 0; d = 0 iff equal; symmetric; d(a, c) <= d(a, b) + d(b, c).

    Parameters
    ----------
    distance : object with `pairwise`, or function of two points
    points : (n, d)
    tol : float
        Rounding that is forgiven, relative to the largest distance.

    Examples
    --------
    >>> axioms(Minkowski(), [[0.0], [1.0], [2.0]]).is_metric
    True
    >>> axioms(lambda a, b: float((a[0] - b[0]) ** 2), [[0.0], [1.0], [2.0]]).counterexample
    'triangle: d(0, 2) = 4 > d(0, 1) + d(1, 2) = 1 + 1'
    """
    points = np.asarray(points, dtype=np.float64)
    if hasattr(distance, "pairwise"):
        D = distance.pairwise(points, points)
    else:
        D = np.array([[distance(a, b) for b in points] for a in points])
    slack = tol * max(float(np.abs(D).max(initial=0.0)), 1e-300)
    same = (points[:, None, :] == points[None, :, :]).all(axis=2)
    broken = {
        "non_negative": -slack > D,
        "identity": np.where(same, np.abs(D) > slack, np.abs(D) <= slack),
        "symmetric": np.abs(D - D.T) > slack,
        "triangle": np.zeros(D.shape, dtype=bool),
    }
    middle = np.zeros(D.shape, dtype=np.int64)
    for b in range(len(points)):
        longer = D[:, b, None] + D[None, b, :] + slack < D
        middle[longer & ~broken["triangle"]] = b
        broken["triangle"] |= longer
    kept = {name: not bad.any() for name, bad in broken.items()}
    return Axioms(**kept, counterexample=_counterexample(D, broken, middle))


def _counterexample(D: np.ndarray, broken: dict[str, np.ndarray], middle: np.ndarray) -> str:
    for name, bad in broken.items():
        if bad.any():
            a, c = (int(i) for i in np.argwhere(bad)[0])
            if name != "triangle":
                return f"{name}: d({a}, {c}) = {D[a, c]:g}, d({c}, {a}) = {D[c, a]:g}"
            b = int(middle[a, c])
            return f"triangle: d({a}, {c}) = {D[a, c]:g} > d({a}, {b}) + d({b}, {c}) = {D[a, b]:g} + {D[b, c]:g}"
    return ""

"""k-means on sparse rows in memory: passes and starting centres whose cost goes with the entries that are not 0."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from assay.base import require_finite
from assay.cluster._assignment import Assigned, Summary
from assay.scan import Rows, thread_map

_MOST_CHUNKS, _LEAST_ROWS = 64, 512  # a chunk is one task of a thread; its size depends on the data alone


def sparse_summary(rows: Any, learner: Any) -> Summary:
    """Return mean, spread and size of sparse rows; refuse entries that are not finite."""
    X, n = _csr(rows.X), rows.n_rows
    weight = np.ones(n) if rows.weight is None else np.asarray(rows.weight, dtype=np.float64)
    if not (np.isfinite(X.data).all() and (weight >= 0).all()):
        require_finite(rows, learner)
    origin = np.asarray(X.sum(axis=0), dtype=np.float64).ravel() / n
    size = float(origin @ origin)
    squares = np.maximum(_squares(X) - 2 * (X @ origin) + size, 0.0)
    longest = float(np.sqrt(squares.max(initial=0.0)))
    variance = float(squares.sum()) / (n * X.shape[1])
    return Summary(origin, 1.0, variance, float(weight @ squares), longest)


def _csr(X: Any) -> csr_array:
    X = csr_array(X)
    return X if X.dtype == np.float64 else X.astype(np.float64)


def _squares(X: csr_array) -> np.ndarray:
    return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()


class SparsePasses:
    """Passes over sparse rows: a product for each entry and centre."""

    def __init__(self, rows: Any, known: Summary):
        from assay.cluster import _sparse_loop

        self.loops, self.rows, self.known = _sparse_loop, rows, known
        self.X = _csr(rows.X)
        n = self.X.shape[0]
        self.weight = np.ones(n) if rows.weight is None else np.ascontiguousarray(rows.weight, np.float64)
        size = max(_LEAST_ROWS, -(-n // _MOST_CHUNKS))
        self.cuts = [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def begin(self, centers: np.ndarray) -> None:
        """Forget what is known of another run."""
        self.labels = np.full(self.X.shape[0], -1, np.int32)
        self.least = np.empty(self.X.shape[0])

    def _each(self, work: Any) -> list[Any]:
        return thread_map(work, self.cuts, n_jobs=self.rows.n_jobs)

    def _part(self, cut: slice) -> tuple[np.ndarray, ...]:
        return self.X.indptr[cut.start : cut.stop + 1], self.X.indices, self.X.data

    def label(self, centers: np.ndarray) -> None:
        """Give each row its nearest centre."""
        columns, halves = np.ascontiguousarray(centers.T), 0.5 * np.einsum("ij,ij->i", centers, centers)

        def one(cut: slice) -> None:
            part = self._part(cut)
            self.loops.nearest_block(*part, columns, halves, self.labels[cut], self.least[cut])

        self._each(one)

    def assign(self, centers: np.ndarray) -> Assigned:
        """Give each row its nearest centre, and sum up the rows of each."""
        before = self.labels.copy()
        self.label(centers)
        n, k = len(before), len(centers)
        belongs = csr_array((self.weight, (self.labels, np.arange(n))), shape=(k, n))
        counts = np.bincount(self.labels, self.weight, k)
        sums = (belongs @ self.X).toarray()
        sums -= counts[:, None] * self.known.origin
        return Assigned(sums, counts, int(np.sum(self.labels != before)), n * k)

    def _own(self, centers: np.ndarray) -> np.ndarray:
        """Return the squared distance of each row to its centre."""
        own, squares = np.empty(len(self.labels)), np.einsum("ij,ij->i", centers, centers)

        def one(cut: slice) -> None:
            self.loops.own_block(*self._part(cut), centers, squares, self.labels[cut], own[cut])

        self._each(one)
        return own

    def inertia(self, centers: np.ndarray) -> float:
        return float(self.weight @ self._own(centers))

    def farthest(self, centers: np.ndarray, count: int) -> list[tuple[float, np.ndarray, float, int]]:
        """Return the rows that are farthest from their centre: squared distance, row, weight, centre."""
        square = self._own(centers)
        far = np.argsort(-square, kind="stable")[:count]
        dense = self.X[far].toarray()
        return [
            (float(square[i]), x, float(self.weight[i]), int(self.labels[i])) for i, x in zip(far, dense, strict=True)
        ]


class SparseSeeding:
    """Squared distance of each row to the nearest centre drawn so far, and sums over it; rows are sparse."""

    def __init__(self, rows: Rows, weight: np.ndarray):
        self.X, self.weight = _csr(rows.X), weight  # type: ignore[attr-defined]
        self.squares = _squares(self.X)
        self.closest = np.full(len(weight), np.inf)

    def _distances(self, rows: np.ndarray) -> np.ndarray:
        """Return the squared distance of every row to some of the rows, (n, rows)."""
        products = self.X @ np.ascontiguousarray(self.X[rows].toarray().T)
        return np.maximum(self.squares[:, None] + self.squares[rows] - 2 * products, 0.0)

    def add(self, row: int) -> float:
        """Take a row as a centre; return the weighted sum of squared distances to the nearest centre."""
        np.minimum(self.closest, self._distances(np.array([row]))[:, 0], out=self.closest)
        self.closest[row] = 0.0
        self.running = np.cumsum(self.weight * self.closest)
        return float(self.running[-1])

    def find(self, values: np.ndarray) -> np.ndarray:
        """Return, for each value, the row at which the running sum of weighted squared distances reaches it."""
        return np.minimum(np.searchsorted(self.running, values), len(self.running) - 1)

    def potentials(self, candidates: np.ndarray) -> np.ndarray:
        """Return what the sum would be after taking each candidate."""
        return self.weight @ np.minimum(self.closest[:, None], self._distances(candidates))

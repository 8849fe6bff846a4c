"""Search for the nearest training rows, exactly: by matrix products in single precision that are ranked again in
double, or by a tree of boxes in few dimensions.

Products: with u = q - m, v = x - m (m the mean row), 1/2 |q - x|^2 = 1/2 |u|^2 + (1/2 |v|^2 - <u, v>). The score in
brackets comes out of one single-precision product and is wrong by at most c (|u| |v| + 1/2 |v|^2), c = (d + 12) 2^-24,
whatever the order of summation. Rows whose score less its error is above the k-th smallest score plus error
are not among the k nearest; the few others are compared in double precision.
Boxes: rows are halved at medians of their widest column; a part is skipped if its box is farther than the k-th
nearest row so far. It is used where a sample of queries says that it looks at few rows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.scan import thread_map

_QUERIES, _TILE = 256, 512  # scores of a block of queries and a tile of rows stay in the cache

_PROBES = 64
_MOST_COLUMNS = 64  # from here on no box is small enough to try
_UNIT = 2.0**-24


class Products:
    """Nearest rows by products: Euclidean distance."""

    def __init__(self, X: np.ndarray, distance: Callable[[np.ndarray], np.ndarray] = np.sqrt) -> None:
        n, d = X.shape
        self.distance = distance
        self.X, self.mean = X, X.mean(axis=0)
        centred = X - self.mean
        norms = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        # Powers of two keep every square within the range of single precision, and change no digit.
        self.scale = 2.0 ** -np.frexp(max(norms.max(), 1e-300))[1]
        self.order = np.argsort(norms, kind="stable")
        centred, norms = centred[self.order] * self.scale, norms[self.order] * self.scale
        self.tiles = np.zeros((-(-n // _TILE), d + 1, _TILE), dtype=np.float32)
        self.largest = np.empty(len(self.tiles))
        for at, start in enumerate(range(0, n, _TILE)):
            part = norms[start : start + _TILE]
            self.tiles[at, :d, : len(part)] = centred[start : start + _TILE].T
            self.tiles[at, d, : len(part)] = 0.5 * part * part
            self.largest[at] = part[-1]

    def search(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return squared distances and row numbers (rows, k) of the nearest rows of one block of queries."""
        from assay.neighbors import _loops

        n, d = Q.shape
        centred = (Q - self.mean) * self.scale
        norms = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        far = norms > 1e9  # beyond single precision beside the training rows: compared one by one
        queries = np.empty((n, d + 1), dtype=np.float32)
        queries[:, :d] = np.where(far[:, None], 0.0, -centred)
        queries[:, d] = 1.0
        heap = np.full((n, k), np.inf, dtype=np.float32)
        found = np.empty((n, 4 * k + 32), dtype=np.int32)
        lower = np.empty(found.shape, dtype=np.float32)
        count = np.where(far, -1, 0).astype(np.int64)
        scores = np.empty((n, _TILE), dtype=np.float32)
        for at, (tile, largest) in enumerate(zip(self.tiles, self.largest)):
            np.matmul(queries, tile, out=scores)
            slack = ((d + 12) * _UNIT * (norms * largest + 0.5 * largest * largest) + 1e-37).astype(np.float32)
            width = min(_TILE, len(self.X) - at * _TILE)
            _loops.keep_near(scores, width, at * _TILE, slack, heap, found, lower, count)
        distance, index = np.empty((n, k)), np.empty((n, k), dtype=np.int64)
        _loops.rank_exactly(Q, self.X, self.order, heap, found, lower, count, distance, index)
        return distance, index


class Boxes:
    """Nearest rows by a tree of boxes: any Minkowski distance."""

    def __init__(self, X: np.ndarray, metric: int = 0, p: float = 2.0, leaf: int = 30) -> None:
        from assay.neighbors import _loops

        n, d = X.shape
        self.metric, self.p = metric, p
        self.levels = int(np.ceil(np.log2(n / leaf))) if n > leaf else 0
        self.order = np.arange(n)
        _loops.split_rows(X, self.order, self.levels)
        self.columns = np.ascontiguousarray(X[self.order].T)
        parts = (1 << (self.levels + 1)) - 1
        self.low, self.high = np.empty((parts, d)), np.empty((parts, d))
        _loops.bound_parts(self.columns, self.levels, self.low, self.high)

    def search(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return powers of distances and row numbers (rows, k) of the nearest rows of one block of queries."""
        distance, index = np.empty((len(Q), k)), np.empty((len(Q), k), dtype=np.int64)
        self._run(Q, distance, index)
        return distance, index

    def distance(self, powers: np.ndarray) -> np.ndarray:
        """Return distances for the powers that the search ranks by."""
        return powers if self.p in (1.0, np.inf) else np.sqrt(powers) if self.p == 2.0 else powers ** (1 / self.p)

    def share_looked_at(self, Q: np.ndarray, k: int) -> float:
        """Return which share of the rows a query looks at, on average."""
        looked = self._run(Q, np.empty((len(Q), k)), np.empty((len(Q), k), dtype=np.int64))
        return looked / (len(Q) * self.columns.shape[1])

    def _run(self, Q: np.ndarray, distance: np.ndarray, index: np.ndarray) -> int:
        from assay.neighbors import _loops

        where = (self.order, self.levels, self.low, self.high, self.metric, self.p)
        return _loops.search_boxes(Q, self.columns, *where, distance, index)


class Pairwise:
    """Nearest rows by all distances: any function distances(Q) -> (queries, rows)."""

    def __init__(self, distances: Callable[[np.ndarray], np.ndarray]) -> None:
        self.distances = distances

    def search(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and row numbers (rows, k) of the nearest rows of one block of queries."""
        from assay.neighbors import _loops

        distance, index = np.empty((len(Q), k)), np.empty((len(Q), k), dtype=np.int64)
        _loops.smallest(np.ascontiguousarray(self.distances(Q), dtype=np.float64), distance, index)
        return distance, index

    def distance(self, powers: np.ndarray) -> np.ndarray:
        return powers


def nearest(engine: Any, Q: np.ndarray, k: int, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return powers of distances and row numbers (queries, k), computed on threads."""
    Q = np.ascontiguousarray(Q)
    size = _QUERIES if isinstance(engine, Products) else max(_QUERIES, min(1024, len(Q) // 16))
    blocks = [Q[start : start + size] for start in range(0, len(Q), size)]
    parts = thread_map(lambda block: engine.search(block, k), blocks, n_jobs=n_jobs)
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def prefers_boxes(boxes: Boxes, Q: np.ndarray, k: int) -> bool:
    """Tell whether a tree of boxes beats products on queries like these: a row costs it about five times as much."""
    d = Q.shape[1]
    share = boxes.share_looked_at(np.ascontiguousarray(Q[:: max(1, len(Q) // _PROBES)][:_PROBES]), k)
    return share * (3.0 + 0.6 * d) < 0.5 + 0.03 * d


def may_use_boxes(X: Any) -> bool:
    """Tell whether there are few enough columns for boxes to be worth a try."""
    return X.shape[1] <= _MOST_COLUMNS

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
from assay.scan.memory import thread_count

_QUERIES = 256  # a block of queries, which pass over the training rows together

_ROOM = 1024  # rows that may be nearest of a query, at least, that are listed: columns of few values have many ties
_PROBES = 16
_MOST_COLUMNS = 20  # from here on no box is small enough to try


class Products:
    """Nearest rows by products: Euclidean distance."""

    def __init__(self, X: np.ndarray, distance: Callable[[np.ndarray], np.ndarray] = np.sqrt) -> None:
        from assay.neighbors._loops import BLOCK, LANES

        n, d = X.shape
        self.distance = distance
        self.X, self.order, self.p = X, np.arange(n), 2.0
        with np.errstate(over="ignore", invalid="ignore"):
            self.mean = X.mean(axis=0)
            centred = X - self.mean
        largest = float(np.abs(centred).max(initial=0.0))
        self.screens = largest < np.inf  # otherwise all rows are compared in double precision
        if not self.screens:
            return
        # Powers of two keep every square within the range of single precision, and change no digit.
        self.scale = np.ldexp(1.0, int(np.clip(-np.frexp(largest)[1] - d.bit_length(), -1000, 1000)))
        centred = centred * self.scale
        norms = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        self.order = np.argsort(norms, kind="stable")
        centred, norms = centred[self.order], norms[self.order]
        self.groups = np.zeros((-(-n // LANES), d + 1, LANES), dtype=np.float32)
        whole = n - n % LANES
        self.groups[: n // LANES, :d] = centred[:whole].reshape(-1, LANES, d).transpose(0, 2, 1)
        self.groups[n // LANES :, :d, : n - whole] = centred[whole:].T
        self.groups[: n // LANES, d] = (0.5 * norms[:whole] ** 2).reshape(-1, LANES)
        self.groups[n // LANES :, d, : n - whole] = 0.5 * norms[whole:] ** 2
        self.largest = np.maximum.reduceat(norms, np.arange(0, n, BLOCK * LANES))

    def search(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return squared distances and row numbers (rows, k) of the nearest rows of one block of queries."""
        from assay.neighbors import _loops

        n, d = Q.shape
        if not self.screens:
            nothing = np.empty((n, 1), np.float32)
            return self._ranked(Q, nothing, nothing.astype(np.int32), nothing, np.full(n, -1), k)
        with np.errstate(over="ignore", invalid="ignore"):
            centred = (Q - self.mean) * self.scale
            norms = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        far = ~(norms <= 1e9)  # beyond single precision beside the training rows: compared one by one
        padded = -(-n // 4) * 4
        queries = np.zeros((padded, d + 1), dtype=np.float32)
        queries[:n, :d] = np.where(far[:, None], 0.0, -centred)
        queries[:n, d] = 1.0
        heap = np.full((padded, k), np.inf, dtype=np.float32)
        result = np.empty((padded, max(4 * k + 32, _ROOM)), dtype=np.int32)
        lower = np.empty(result.shape, dtype=np.float32)
        count = np.full(padded, -1)
        count[:n][~far] = 0
        lengths = np.append(norms, np.zeros(padded - n))
        _loops.screen(queries, lengths, self.groups, self.largest, len(self.X), heap, result, lower, count)
        return self._ranked(Q, heap, result, lower, count, k)

    def _ranked(self, Q: np.ndarray, heap: Any, result: Any, lower: Any, count: Any, k: int) -> Any:
        """Return squared distances in double precision and row numbers of the nearest rows that were not ruled out."""
        from assay.neighbors import _loops

        distance, index = np.empty((len(Q), k)), np.empty((len(Q), k), dtype=np.int64)
        _loops.rank_exactly(Q, self.X, self.order, heap, result, lower, count, distance, index)
        return distance, index


class Boxes:
    """Nearest rows by a tree of boxes: any Minkowski distance."""

    def __init__(
        self, X: np.ndarray, metric: int = 0, p: float = 2.0, leaf: int = 32, n_jobs: int | None = None
    ) -> None:
        from assay.neighbors import _loops

        n, d = X.shape
        self.X, self.metric, self.p, self.n = X, metric, p, n
        self.levels = max(0, int(np.ceil(np.log2(n / min(leaf, _loops.LEAF)))))
        self.order = np.arange(n)
        scratch = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
        many, parts = 1 << self.levels, (1 << (self.levels + 1)) - 1
        self.leaves, self.rows = np.empty((many, d, _loops.LEAF)), np.empty((many, _loops.LEAF), dtype=np.int64)
        self.low, self.high = np.empty((parts, d)), np.empty((parts, d))
        self.column, self.gaps = np.empty(many, dtype=np.int64), np.empty((2, many))
        top = min(self.levels, (thread_count(n_jobs) - 1).bit_length() if n >= 10_000 else 0)
        _loops.split_rows(X, self.order, self.column, *scratch, 0, 0, top)

        def grow(part: int) -> None:
            _loops.split_rows(X, self.order, self.column, *scratch, top, part, self.levels)
            below = self.levels - top
            where = self.leaves, self.rows, self.low, self.high
            _loops.fill_leaves(X, self.order, self.levels, part << below, (part + 1) << below, *where)

        thread_map(grow, range(1 << top), n_jobs=n_jobs)
        _loops.join_boxes(self.levels, self.column, self.low, self.high, *self.gaps)

    def search(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return powers of distances and row numbers (rows, k) of the nearest rows of one block of queries."""
        distance, index = np.empty((len(Q), k)), np.empty((len(Q), k), dtype=np.int64)
        self._run(Q, distance, index)
        return distance, index

    def distance(self, powers: np.ndarray) -> np.ndarray:
        """Return distances for the powers that the search ranks by."""
        return powers if self.p in (1.0, np.inf) else np.sqrt(powers) if self.p == 2.0 else powers ** (1 / self.p)

    def looks_at_few(self, Q: np.ndarray, k: int, share: float) -> bool:
        """Tell whether queries look at no more than a share of the leaves, on average; soon done if they do."""
        many = share * len(self.leaves) * len(Q)
        return self._run(Q, np.empty((len(Q), k)), np.empty((len(Q), k), dtype=np.int64), int(many)) <= many

    def _run(self, Q: np.ndarray, distance: np.ndarray, index: np.ndarray, most: int = 2**62) -> int:
        from assay.neighbors import _loops

        where = (self.n, self.levels, self.column, *self.gaps, self.low, self.high, self.metric, self.p)
        return _loops.search_boxes(Q, self.leaves, self.rows, *where, most, distance, index)


class Pairwise:
    """Nearest rows by all distances: any function distances(Q) -> (queries, rows)."""

    def __init__(self, distances: Callable[[np.ndarray], np.ndarray]) -> None:
        self.distances = distances

    def search(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and row numbers (rows, k) of the nearest rows of one block of queries."""
        from assay.neighbors import _loops

        distance, index = np.empty((Q.shape[0], k)), np.empty((Q.shape[0], k), dtype=np.int64)
        _loops.smallest(np.ascontiguousarray(self.distances(Q), dtype=np.float64), distance, index)
        return distance, index

    def distance(self, powers: np.ndarray) -> np.ndarray:
        return powers


def nearest(engine: Any, Q: np.ndarray, k: int, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return powers of distances and row numbers (queries, k), computed on threads."""
    Q = Q if hasattr(Q, "tocsr") else np.ascontiguousarray(Q)
    n = Q.shape[0]
    size = _QUERIES if isinstance(engine, Products) else max(_QUERIES, min(2048, n // 8))
    blocks = [Q[start : start + size] for start in range(0, n, size)]
    parts = thread_map(lambda block: engine.search(block, k), blocks, n_jobs=n_jobs)
    powers, index = (np.concatenate(part) for part in zip(*parts))
    if isinstance(engine, (Boxes, Products)):
        for at in np.flatnonzero(np.isinf(powers[:, -1])):
            index[at] = _ranked_far(engine.X, engine.p, Q[at], powers[at], index[at])
    return powers, index


def _ranked_far(X: np.ndarray, p: float, q: np.ndarray, powers: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return the row numbers with those whose powers of distances overflow ranked by the distances themselves."""
    near = index[np.isfinite(powers)]
    gaps = np.abs(X / 4 - q / 4)  # differences of any two doubles, without overflow
    gaps[near] = np.inf
    size = gaps.max(axis=1, initial=0.0)
    scale = np.max(size[np.isfinite(size)], initial=0.0)
    shares = gaps / (scale or 1.0)
    distance = shares.max(axis=1) if p == np.inf else np.sum(shares**p, axis=1)
    far = np.argsort(np.where(np.isnan(distance), np.inf, distance), kind="stable")
    return np.append(near, far[: len(index) - len(near)])


def prefers_boxes(boxes: Boxes, Q: np.ndarray, k: int) -> bool:
    """Tell whether a tree of boxes beats products on queries like these, by what a row costs in either."""
    d = Q.shape[1]
    few = np.ascontiguousarray(Q[:: max(1, len(Q) // _PROBES)][:_PROBES])
    return boxes.looks_at_few(few, k, (0.2 + 0.008 * d) / (3.0 + 0.7 * d))


def may_use_boxes(X: Any) -> bool:
    """Tell whether there are few enough columns for boxes to be worth a try."""
    return X.shape[1] <= _MOST_COLUMNS

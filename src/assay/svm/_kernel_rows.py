"""Products with kernel rows: K change, added to F tile by tile.

A tile fits the cache of a core: it is computed, used and, if its rows are likely to be wanted again, written to memory.
Reading a kept row back is faster than computing it, but writing it costs as much as computing it, so only the rows of
variables that are free to move again are kept, for as long as there is room; none is ever thrown out for another.
"""

import numpy as np

from assay.kernels._tiles import MatrixTiles, Tiles
from assay.scan import thread_map

_TILE = (512, 256)  # rows and columns
_STRIP = 4096  # columns of kept rows that are added together
_AUTO = 1500.0  # megabytes; fixed, because the size of working sets, and so the bits of a model, follow from it


def cache_floats(megabytes: float | str, itemsize: int) -> int:
    """Return how many kernel values may be kept: `megabytes`, or with "auto" 1500 of them."""
    return int(1e6 * (_AUTO if megabytes == "auto" else float(megabytes))) // itemsize


class KernelRows:
    """Rows of the kernel matrix of `source`, of which some are kept in `buffer` (all, if it is a matrix already);
    `computed` counts the others."""

    def __init__(self, source: Tiles, buffer: np.ndarray, n_jobs: int | None) -> None:
        self.source, self.n_jobs = source, n_jobs
        self.most = min(len(buffer) // max(source.n, 1), source.n)
        self.rows = buffer[: self.most * source.n].reshape(self.most, source.n)
        self.slot = np.full(source.n, -1)
        self.kept = self.computed = 0
        if isinstance(source, MatrixTiles):
            self.rows, self.slot = source.gram, np.arange(source.n)

    def add(self, F: np.ndarray, moved: np.ndarray, change: np.ndarray, again: np.ndarray) -> None:
        """Add sum_m change_m K[m] to F; `again` marks the rows that are worth keeping."""
        known = self.slot[moved] >= 0
        if known.any():
            add_rows(F, self.rows, self.slot[moved[known]], change[known], self.n_jobs)
        fresh = np.flatnonzero(~known)
        fresh = fresh[np.argsort(~again[fresh], kind="stable")]
        keep = min(int(again[fresh].sum()), self.most - self.kept)
        first = self.kept
        self.slot[moved[fresh[:keep]]] = np.arange(first, first + keep)
        self.kept += keep
        self.computed += len(fresh)
        add_products(self.source, F, moved[fresh], change[fresh], self.n_jobs, keep=self.rows[first : first + keep])


def add_rows(F: np.ndarray, rows: np.ndarray, slots: np.ndarray, change: np.ndarray, n_jobs: int | None) -> None:
    """Add sum_k change_k rows[slots_k] to F; rows may be longer than F."""
    from assay.svm import _smo

    weights, n = change.astype(rows.dtype), len(F)
    thread_map(
        lambda first: _smo.add_rows(F, rows, slots, weights, first, min(first + _STRIP, n)),
        range(0, n, _STRIP),
        n_jobs=n_jobs,
    )


def add_products(
    source: Tiles,
    F: np.ndarray,
    moved: np.ndarray,
    change: np.ndarray,
    n_jobs: int | None,
    *,
    begin: int = 0,
    keep: np.ndarray | None = None,
) -> None:
    """Add sum_m change_m kappa(x_m, x_r) to F[r] for r >= begin, and write the first len(keep) kernel rows there."""
    height, width = _TILE
    weights = change.astype(source.dtype)
    kept = 0 if keep is None else len(keep)

    def add(first: int) -> None:
        last = min(first + width, source.n)
        tile = np.empty((min(height, len(moved)), last - first), source.dtype)
        for at in range(0, len(moved), height):
            some = moved[at : at + height]
            part = tile[: len(some)]
            source.fill(some, first, last, part)
            F[first:last] += weights[at : at + height] @ part
            if keep is not None and at < kept:
                keep[at : at + height, first:last] = part[: kept - at]

    if len(moved):
        thread_map(add, range(begin, source.n, width), n_jobs=n_jobs)


def products(
    source: Tiles, F: np.ndarray, rows: np.ndarray, moved: np.ndarray, change: np.ndarray, n_jobs: int | None
) -> None:
    """Add sum_m change_m kappa(x_m, x_r) to F[r] for r in `rows`."""
    together = source.take(np.concatenate([moved, rows]))
    total = np.zeros(together.n)
    k = len(moved)
    add_products(together, total, np.arange(k), change, n_jobs, begin=k)
    F[rows] += total[k:]

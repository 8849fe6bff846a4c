"""Gram matrices of pairs of classes, whose blocks are computed once for all pairs."""

import numpy as np

from assay.kernels._tiles import MatrixTiles, Tiles
from assay.scan import thread_map

_SHARED_ROWS = 6_000  # rows of a pair of classes up to which the pair's whole Gram matrix is formed


class SharedGram:
    """Gram blocks of classes, computed once for all pairs they are part of, if they fit; else the pair's
    own rows."""

    def __init__(self, source: Tiles, members: list[np.ndarray], room: int, n_jobs: int | None) -> None:
        self.source, self.members = source, members
        sizes = sorted((len(m) for m in members), reverse=True)
        pair = sizes[0] + sizes[1]
        self.whole = pair <= _SHARED_ROWS and sum(size**2 for size in sizes) + 4 * pair**2 <= max(room, 60_000_000)
        if isinstance(source, MatrixTiles):
            self.whole = False
        if self.whole:
            self.own = thread_map(lambda rows: self._block(rows, rows), members, n_jobs=n_jobs)

    def pair(self, i: int, j: int) -> Tiles:
        first, second = self.members[i], self.members[j]
        if not self.whole:
            return self.source.take(np.concatenate([first, second]))
        a, n = len(first), len(first) + len(second)
        gram = np.empty((n, n), self.source.dtype)
        gram[:a, :a], gram[a:, a:] = self.own[i], self.own[j]
        gram[:a, a:] = self._block(first, second)
        gram[a:, :a] = gram[:a, a:].T
        return MatrixTiles(gram)

    def _block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        together = self.source.take(np.concatenate([rows, columns]))
        out = np.empty((len(rows), len(columns)), self.source.dtype)
        for at in range(0, len(rows), 512):
            some = np.arange(at, min(at + 512, len(rows)))
            together.fill(some, len(rows), together.n, out[some[0] : some[-1] + 1])
        return out

"""The Gram matrix of a set of variables that grows: what is there is not computed again."""

from math import isqrt

import numpy as np

from assay.kernels._tiles import Tiles
from assay.scan import thread_map

_TILE = (256, 1024)  # rows and columns that a thread computes at once
_ROOM = 1.08  # row length, in variables at the start: fresh memory is dear
_STALE = 0.5  # share of variables nobody wants from which the matrix is begun anew


class GrowingGram:
    """Kernel values among `members`: values[i, j] = kappa of members i and j.

    values (members, row length) has longer rows than it needs, so that members can be added where it is.
    """

    def __init__(self, room: int, dtype: np.dtype, n_jobs: int | None) -> None:
        self.buffer, self.most, self.n_jobs = np.empty(room, dtype), isqrt(room), n_jobs
        self.forget()

    def forget(self) -> None:
        self.members, self.length = np.empty(0, np.int64), 0

    def hold(self, source: Tiles, wanted: np.ndarray) -> None:
        """Make the wanted variables members (at most `most`), with their kernel values; `small` are their tiles."""
        isin = np.isin(wanted, self.members, assume_unique=True)
        new = wanted[~isin]
        stale = len(self.members) - isin.sum()
        if len(self.members) + len(new) > self.length or stale > _STALE * len(self.members):
            new, self.members = wanted, wanted[:0]
            self.length = min(self.most, int(_ROOM * len(wanted)))
        old = len(self.members)
        self.members = np.concatenate([self.members, new])
        self.values = self.buffer[: len(self.members) * self.length].reshape(-1, self.length)
        self.small = source.take(self.members)
        self._fill(old)

    def _fill(self, old: int) -> None:
        """Compute the values of all pairs of members but the first `old` among themselves."""
        n, (height, width) = len(self.members), _TILE

        def fill(corner: tuple[int, int]) -> None:
            row, column = corner
            rows = np.arange(row, min(row + height, n if row >= old else old))
            stop = min(column + width, n)
            tile = np.empty((len(rows), stop - column), self.values.dtype)
            self.small.fill(rows, column, stop, tile)
            self.values[rows[0] : rows[-1] + 1, column:stop] = tile

        corners = [(r, c) for r in range(0, old, height) for c in range(old, n, width)]
        corners += [(r, c) for r in range(old, n, height) for c in range(0, n, width)]
        thread_map(fill, corners, n_jobs=self.n_jobs)

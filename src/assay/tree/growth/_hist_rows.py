"""Rows in bins while a tree grows on them: which rows each node has, and their sums per bin.

A grower asks for sums and says how a node is divided; it never sees a row. `BinnedRows` are rows on this machine, in
memory or in a file; `_hist_workers` has those of the workers of a cluster.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from assay.scan import thread_map
from assay.tree.growth._bins import Binned, stretches

SIDE_BY_SIDE = 4  # nodes divided together
MOST_ROWS = 2**31  # an entry holds the row number in 31 bits
_LARGE = 200_000  # rows beyond which threads share the columns of one node
_LINE, _CACHED = 64, 16  # columns summed together: of one cache line; those whose sums fit in the first cache

Search = Callable[[int, tuple[int, int]], Any]
"""search(i, columns) of the i-th division, once the sums of these columns are there."""


class Division(NamedTuple):
    """Rows start .. stop - 1 in the order of the leaves are divided by their bin in a column."""

    start: int
    stop: int
    boundary: int  # where those that go right will begin
    column: int
    goes_left: np.ndarray  # (256,)
    small_left: bool
    sums: np.ndarray | None  # (3, columns * 256) for the smaller side; None if nobody needs them

    @property
    def n_rows(self) -> int:
        return self.stop - self.start


class GrowingRows(Protocol):
    """What a grower needs of the rows."""

    n_bins: np.ndarray
    nominal: np.ndarray
    integer: Any  # type of the sums

    def open(self, n: int, sums: np.ndarray) -> None:
        """Set `sums` to those of all n rows of the tree."""

    def divide(self, divisions: list[Division], search: Search) -> list[list[Any]]:
        """Divide nodes, sum their smaller sides, and return what the search finds, stretch by stretch of the
        columns."""


def sum_type(n: int) -> Any:
    """Return an integer type for sums of n hessians, each at most 4095."""
    return np.int32 if n < 2**31 // 4096 else np.int64


class BinnedRows:
    """Rows on this machine.

    entries : (rows,) int64
        Row number and quantised gradient and hessian (see `_hist_loops`), in the order of the leaves of the last tree.
    any_side : whether the side that is summed may be the larger one here
    """

    def __init__(self, binned: Binned, n_jobs: int | None, *, any_side: bool = False):
        n, d = len(binned.rows), len(binned.n_bins)
        if n >= MOST_ROWS:
            raise ValueError(
                f"histogram boosting holds fewer than 2^31 rows on one machine; got {n}. Spread them over the workers "
                "of a Dask cluster, or fit to a sample."
            )
        self.binned, self.n_jobs, self.any_side = binned, n_jobs, any_side
        self.n_bins, self.nominal, self.integer = binned.n_bins, binned.nominal, sum_type(n)
        self.entries = np.empty(n, dtype=np.int64)
        self.boundaries: list[int] = []  # where the right sides of the last divisions begin
        self._scratch = np.empty((n if any_side else n // 2) + SIDE_BY_SIDE, dtype=np.int64)
        self._together, self._apart = stretches(d, _LINE), stretches(d, _CACHED)

    def open(self, n: int, sums: np.ndarray) -> None:
        thread_map(lambda columns: self._sum(0, n, columns, sums), self._apart, n_jobs=self.n_jobs)

    def divide(self, divisions: list[Division], search: Search) -> list[list[Any]]:
        """One thread does all of that for a small node; the columns of a large one are shared out."""
        results: list[list[Any]] = [[] for _ in divisions]
        self.boundaries = [0] * len(divisions)
        large = [i for i, division in enumerate(divisions) if division.n_rows > _LARGE]
        bases = self._bases(divisions)

        def work(i: int) -> None:
            results[i] = self._divide(i, divisions[i], bases[i], i in large, search)

        thread_map(work, sorted(range(len(divisions)), key=lambda i: -divisions[i].n_rows), n_jobs=self.n_jobs)
        tasks = [(i, columns) for i in large if divisions[i].sums is not None for columns in self._apart]

        def work_on(task: tuple[int, tuple[int, int]]) -> Any:
            self._sum_smaller(divisions[task[0]], self.boundaries[task[0]], task[1])
            return search(*task)

        for (i, _), result in zip(tasks, thread_map(work_on, tasks, n_jobs=self.n_jobs)):
            results[i].append(result)
        return results

    def _bases(self, divisions: list[Division]) -> list[int]:
        """Return where the side that is summed waits: it needs one place more than it has rows."""
        bases, share = [0] * len(divisions), 1 if self.any_side else 2
        for spare, i in enumerate(sorted(range(len(divisions)), key=lambda i: divisions[i].start)):
            bases[i] = divisions[i].start // share + spare
        return bases

    def _divide(self, i: int, division: Division, base: int, large: bool, search: Search) -> list[Any]:
        from assay.tree.growth._hist_loops import partition

        start, stop, _, column, goes_left, small_left, wanted = division
        at_once = wanted is not None and not large and len(self._together) == 1
        sums = wanted if at_once else np.empty((3, 0), dtype=self.integer)
        self.boundaries[i] = partition(
            self.binned.rows, self.binned.columns[column], goes_left, small_left, self.entries, self._scratch, base,
            start, stop, sums,
        )  # fmt: skip
        if wanted is None or large:
            return []
        if at_once:
            return [search(i, columns) for columns in self._together]
        results = []
        for columns in self._together:
            self._sum_smaller(division, self.boundaries[i], columns)
            results.append(search(i, columns))
        return results

    def _sum_smaller(self, division: Division, boundary: int, columns: tuple[int, int]) -> None:
        side = (division.start, boundary) if division.small_left else (boundary, division.stop)
        self._sum(*side, columns, division.sums)

    def _sum(self, start: int, stop: int, columns: tuple[int, int], sums: Any) -> None:
        from assay.tree.growth._hist_loops import histogram_rows

        histogram_rows(self.binned.rows, *columns, self.entries, start, stop, sums)

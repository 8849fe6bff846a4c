"""Columns cut into at most 255 bins: edges from a sample of the rows, then one byte for each value.

The bytes are an eighth of the data. They are written block by block, wherever the rows are kept, and lie in memory or,
where they would take too much of it, in a temporary file: a grower reads the rows of a node in ascending order, so
that the file is streamed from disk. Neither changes a bit of a tree.

Which columns a node may be split on: interaction constraints, and a share of the columns drawn at each node.
"""

import os
import tempfile
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from assay.scan import Block, Rows, rows_per_block, thread_map

_SAMPLED = 4  # columns whose sample is held at a time
_IN_MEMORY = 0.25  # share of the memory that bins may take


class Binned(NamedTuple):
    """Bins twice over: rows (rows, columns padded to a multiple of 8) for sums, columns (columns, rows) for partitions,
    which would take a tenth longer on rows; `columns` is empty where nobody needs it."""

    rows: np.ndarray
    columns: np.ndarray
    n_bins: np.ndarray
    nominal: np.ndarray


class Binner(NamedTuple):
    """Edges between bins: column f has n_edges[f] of them, a nominal column as many levels."""

    edges: np.ndarray  # (columns, 255), infinity beyond the last
    n_edges: np.ndarray
    nominal: np.ndarray  # (columns,) 0 or 1

    @property
    def n_bins(self) -> np.ndarray:
        return np.where(self.nominal, self.n_edges, self.n_edges + 1)

    def transform(self, rows: Rows, *, by_column: bool = True) -> Binned:
        """Return the bins of all rows, row by row and, if asked for, column by column too."""
        return self.transform_kinds(rows, None, (by_column,))[0]

    def transform_kinds(self, rows: Rows, kinds: np.ndarray | None, by_column: tuple[bool, ...]) -> list[Binned]:
        """Return the bins of the rows of each kind 1, 2, ... (others are left out; None: all are of kind 1), column by
        column too where asked for; one pass."""
        d, most = rows.n_features, _IN_MEMORY * memory_bytes()
        counts = [rows.n_rows] if kinds is None else [int((kinds == k + 1).sum()) for k in range(len(by_column))]
        shapes = [shape for n, wide in zip(counts, by_column) for shape in ((n, -(-d // 8) * 8), (d if wide else 0, n))]
        placed = _room(shapes, most)
        firsts = None if kinds is None else _first_places(kinds, rows_per_block(d), len(by_column))

        def place(start: int, bins: np.ndarray) -> None:
            from assay.tree.growth._hist_loops import place_block

            if kinds is None or firsts is None:
                place_block(bins, start, *placed)
                return
            own = kinds[start : start + len(bins)]
            for k in range(len(by_column)):
                place_block(bins[own == k + 1], firsts[k, start // rows_per_block(d)], *placed[2 * k : 2 * k + 2])

        rows.collect(place, bins_of, *self)
        return [Binned(placed[2 * k], placed[2 * k + 1], self.n_bins, self.nominal) for k in range(len(by_column))]


def _first_places(kinds: np.ndarray, step: int, n_kinds: int) -> np.ndarray:
    """Return how many rows of each kind lie before each block (kinds, blocks)."""
    starts = np.arange(0, len(kinds), step)
    counts = np.array([np.add.reduceat(kinds == k + 1, starts, dtype=np.int64) for k in range(n_kinds)])
    return np.cumsum(counts, axis=1) - counts


def bins_of(block: Block, edges: np.ndarray, n_edges: np.ndarray, nominal: np.ndarray) -> np.ndarray:
    """Return the bins of a block of rows (rows, columns)."""
    from assay.tree.growth._hist_loops import bin_block

    bins = np.empty(block.X.shape, dtype=np.uint8)
    bin_block(block.X, edges, n_edges, nominal, bins)
    return bins


def _room(shapes: list[tuple[int, int]], most: float) -> list[np.ndarray]:
    """Return arrays of zero bytes; in temporary files, which vanish with them, if they take more than `most` bytes."""
    if sum(a * b for a, b in shapes) <= most:
        return [np.zeros(shape, dtype=np.uint8) for shape in shapes]
    return [_on_disk(shape) if min(shape) else np.zeros(shape, dtype=np.uint8) for shape in shapes]


def _on_disk(shape: tuple[int, int]) -> np.ndarray:
    with tempfile.TemporaryFile() as file:
        return np.asarray(np.memmap(file, dtype=np.uint8, mode="w+", shape=shape))


def memory_bytes() -> float:
    """Return the memory of the machine, or that of the container or what the limit of this process on its data leaves,
    if that is less."""
    whole = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) if hasattr(os, "sysconf") else np.inf
    whole = min(whole, container_bytes())
    try:
        import resource
    except ImportError:  # not every system has limits of this kind
        return whole
    allowed = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if allowed == resource.RLIM_INFINITY:
        return whole
    try:
        used = int(Path("/proc/self/statm").read_text().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        used = 0
    return min(whole, float(max(allowed - used, 0)))


def container_bytes(groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the memory that the control groups of this process (Linux, versions 1 and 2) allow; infinite without."""
    limits = [np.inf]
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return np.inf
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers not in ("", "memory"):
            continue
        top, name = (root, "memory.max") if not controllers else (root / "memory", "memory.limit_in_bytes")
        own = top / path.lstrip("/")
        for folder in (own, *own.parents):  # a group has at most what those around it have
            try:
                limits.append(float((folder / name).read_text()))
            except (OSError, ValueError):  # "max", or no such group in a container's view
                continue
    return min(limits)


def find_bins(
    sample: np.ndarray, max_bins: int, levels: dict[int, int], n_jobs: int | None, shift: float = 0.0
) -> Binner:
    """Return edges half-way between neighbouring values of the sample (rows, columns), or between its quantiles if
    there are too many values; `shift`, between -1/2 and 1/2, moves all quantiles by so many bins."""
    d = sample.shape[1]
    edges, n_edges = np.full((d, 255), np.inf), np.zeros(d, dtype=np.int64)
    nominal = np.zeros(d, dtype=np.uint8)

    def work(columns: tuple[int, int]) -> None:
        part = sample[:, columns[0] : columns[1]].T.copy()
        for f, values in enumerate(part, columns[0]):
            if f in levels:
                nominal[f], n_edges[f] = 1, levels[f]
                continue
            values.sort()  # NaN come last
            result = _edges(values[: len(values) - np.count_nonzero(np.isnan(values))], max_bins, shift)
            n_edges[f] = len(result)
            edges[f, : len(result)] = result

    thread_map(work, stretches(d, _SAMPLED), n_jobs=n_jobs)
    return Binner(edges, n_edges, nominal)


def _edges(ordered: np.ndarray, max_bins: int, shift: float) -> np.ndarray:
    values = ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
    if len(values) <= max_bins:
        return _middle(values[:-1], values[1:])
    places = (np.arange(1, max_bins) + shift) * (len(ordered) - 1) / max_bins
    low = np.floor(places).astype(np.intp)
    return np.unique(_middle(ordered[low], ordered[low + 1]))


def _middle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return numbers m with a <= m < b wherever a < b."""
    m = a / 2 + b / 2
    return np.where((m >= a) & (m < b), m, a)


def stretches(d: int, width: int) -> list[tuple[int, int]]:
    """Return 0 .. d in equal stretches of at most `width`."""
    ends = np.linspace(0, d, -(-d // width) + 1).astype(int).tolist()
    return list(pairwise(ends))


class Allowed:
    """The columns of each node of the trees of one fit.

    Groups of columns may interact: on a way down, all splits are on columns of one group. Of the columns that are left
    a node draws a `share`. The draw depends on the seed, the tree and the rows of the node, so that neither threads nor
    the order in which nodes are worked on change it.
    """

    def __init__(self, n_columns: int, groups: list[set[int]] | None = None, share: float = 1.0, seed: int = 0):
        self.n_columns, self.share, self.seed = n_columns, share, seed
        self.groups = None if groups is None else [np.array(sorted(group), dtype=np.int64) for group in groups]
        self._all = np.ones(n_columns, dtype=np.uint8)

    def open_groups(self, before: Any, column: int) -> Any:
        """Return the groups that are open below a split on `column`; None stands for all of them."""
        if self.groups is None:
            return None
        asked = range(len(self.groups)) if before is None else before
        return [i for i in asked if column in self.groups[i]]

    def columns(self, groups: Any, tree: int, start: int, stop: int) -> np.ndarray:
        """Return 1 for each column that a node may be split on, else 0 (columns,)."""
        if self.groups is None and self.share == 1:
            return self._all
        result = self._all
        if self.groups is not None:
            chosen = self.groups if groups is None else [self.groups[i] for i in groups]
            result = np.zeros(self.n_columns, dtype=np.uint8)
            for group in chosen:
                result[group] = 1
        if self.share == 1:
            return result
        at = np.flatnonzero(result)
        rng = np.random.default_rng((self.seed, tree, start, stop))
        drawn = np.zeros(self.n_columns, dtype=np.uint8)
        drawn[rng.permutation(at)[: max(1, ceil(self.share * len(at)))]] = 1
        return drawn

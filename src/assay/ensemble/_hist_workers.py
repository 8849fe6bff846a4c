"""Boosting on rows that stay on the workers of a cluster: sums of bins travel, rows do not.

Each worker keeps the bins, y, weights, scores, derivatives and entries of its partitions (`WorkerRows`). The client
holds the tree: it adds up the integer sums of the workers, chooses splits and says which. A worker that dies is made
again: bins from its partitions, scores from the trees so far, its place in the current round by the same calls.

Where the rows of a fit of boosting on histograms come from: this machine, or the workers of a cluster.
"""

from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from assay.ensemble._hist_store import TRAINING, VALIDATION, Kept, Leaf, MachineRows, Store, local_store, row_kinds
from assay.ensemble._losses import Loss
from assay.params import refuse
from assay.scan import Block, Rows, rows_per_block, thread_map
from assay.scan.draws import Draw
from assay.tree._nodes import Nodes
from assay.tree._reading import Read
from assay.tree.growth._bins import Binned, Binner, bins_of, stretches
from assay.tree.growth._hist_rows import Division, GrowingRows, Search, sum_type

_SEARCHED = 64  # columns searched together


class BinnedPart(NamedTuple):
    """The rows of one kind of a partition."""

    bins: np.ndarray  # (rows, columns)
    y: np.ndarray
    weight: np.ndarray | None
    counts: np.ndarray  # rows in each of its blocks
    first_block: int


def binned_part(block: Block, binner: Binner, draw: Draw | None, kind: Any) -> list[BinnedPart]:
    """Return the training rows of a partition, and those for validation."""
    n, step = len(block.X), rows_per_block(block.X.shape[1])
    if block.weight is not None and n and block.weight.min() < 0:
        row = block.start + int(block.weight.argmin())
        raise ValueError(f"row weights must be >= 0; row {row} (counted from 0) has a negative one.")
    kinds = row_kinds(n, block.weight, draw, block.start)
    kinds = np.full(n, TRAINING, dtype=np.uint8) if kinds is None else kinds
    bins, y, starts = bins_of(block, *binner), np.asarray(block.y).astype(kind), np.arange(0, n, step)
    parts = []
    for own in (kinds == TRAINING, kinds == VALIDATION):
        weight = None if block.weight is None else block.weight[own]
        counts = np.add.reduceat(own, starts, dtype=np.int64)
        parts.append(BinnedPart(bins[own], y[own], weight, counts, block.start // step))
    return parts


def worker_rows(
    parts: dict[int, list[BinnedPart]], threads: int, loss: Loss, binner: Binner, validates: bool
) -> "WorkerRows":
    """Return the rows of the partitions of a worker."""
    kept = [_joined([part[kind] for part in parts.values()], binner, kind == 0) for kind in range(1 + validates)]
    return WorkerRows(loss, binner, kept, threads, list(parts))


def _joined(parts: list[BinnedPart], binner: Binner, by_column: bool) -> Kept:
    from assay.tree.growth._hist_loops import place_block

    d, ends = len(binner.n_edges), np.cumsum([0, *(len(part.y) for part in parts)])
    n = int(ends[-1])
    rows, columns = np.zeros((n, -(-d // 8) * 8), dtype=np.uint8), np.zeros((d * by_column, n), dtype=np.uint8)
    for start, part in zip(ends, parts):
        place_block(part.bins, start, rows, columns)
    weights = [part.weight for part in parts if part.weight is not None]
    return Kept(
        Binned(rows, columns, binner.n_bins, binner.nominal),
        np.concatenate([part.y for part in parts]),
        np.concatenate(weights) if weights else None,
        np.append(0, np.cumsum(np.concatenate([part.counts for part in parts]))),
        np.concatenate([part.first_block + np.arange(len(part.counts)) for part in parts]),
        [(int(a), int(b), 0) for a, b in pairwise(ends)],
    )


class WorkerRows(MachineRows):
    """The rows of a worker; a node or leaf is named by its place among the rows of all workers."""

    def __init__(self, loss: Loss, binner: Binner, kept: list[Kept], threads: int, numbers: list[int]):
        super().__init__(loss, binner, kept, threads, any_side=True)
        self.numbers, self.n_drawn = numbers, self.training.n_rows
        self.places: dict[Leaf, Leaf] = {}

    def counts(self) -> dict[int, int]:
        """Return the training rows of each partition."""
        runs = self.training.kept.runs
        return {number: stop - start for number, (start, stop, _) in zip(self.numbers, runs)}

    def number(self, firsts: dict[int, int]) -> None:
        """Take the number, among all training rows, of the first one of each partition."""
        runs = self.training.kept.runs
        runs[:] = [(start, stop, firsts[number]) for number, (start, stop, _) in zip(self.numbers, runs)]

    def restore(self, rounds: list[list[Nodes]]) -> None:
        """Add the trees of all rounds to the scores."""
        for trees in rounds:
            for kind in self.parts:
                self.add_trees(kind, trees)

    def draw(self, draw: Draw | None) -> int:
        self.n_drawn = super().draw(draw)
        return self.n_drawn

    def open(self, n: int) -> np.ndarray:
        """Begin a tree on n rows of all workers; return the sums of those that are here."""
        self.places = {(0, n): (0, self.n_drawn)}
        sums = self._sums()
        self.rows.open(self.n_drawn, sums)
        return sums

    def divide(self, orders: list[Division]) -> list[np.ndarray | None]:
        """Divide nodes; return the sums of their smaller sides, where the order has some."""
        divisions = []
        for order in orders:
            start, stop = self.places[order.start, order.stop]
            sums = None if order.sums is None else self._sums()
            divisions.append(order._replace(start=start, stop=stop, boundary=start, sums=sums))
        self.rows.divide(divisions, lambda i, columns: None)
        for order, division, boundary in zip(orders, divisions, self.rows.boundaries):
            self.places[order.start, order.boundary] = division.start, boundary
            self.places[order.boundary, order.stop] = boundary, division.stop
        return [division.sums for division in divisions]

    def leaf_sums(self, k: int, leaves: list[Leaf], scales: tuple[float, float]) -> np.ndarray:
        return super().leaf_sums(k, [self.places[leaf] for leaf in leaves], scales)

    def add_values(self, k: int, leaves: list[Leaf], values: list[float]) -> None:
        super().add_values(k, [self.places[leaf] for leaf in leaves], values)

    def _sums(self) -> np.ndarray:
        return np.empty((3, len(self.rows.n_bins) * 256), dtype=self.rows.integer)


class Workers:
    """The workers of a cluster, which keep the rows."""

    def __init__(self, rows: Rows, loss: Loss, binner: Binner, draw: Draw | None, kind: Any):
        self.pinned = rows.pinned((binned_part, binner, draw, kind), worker_rows, loss, binner, draw is not None)
        counts: dict[int, int] = {}
        for found in self.pinned.each("counts"):
            counts |= found
        ends = np.cumsum([counts[number] for number in sorted(counts)])
        self.n_rows = int(ends[-1])
        self.firsts = {number: int(end) - counts[number] for number, end in zip(sorted(counts), ends)}
        self.pinned.journal.clear()
        self.each("number", self.firsts)
        self.rows: GrowingRows = SpreadRows(self, binner, self.n_rows, rows.n_jobs)

    def each(self, method: str, *arguments: Any) -> list[Any]:
        return self.pinned.each(method, *arguments)


class SpreadRows:
    """What a grower needs of the rows of all workers."""

    def __init__(self, workers: Workers, binner: Binner, n: int, n_jobs: int | None):
        self.workers, self.n_jobs = workers, n_jobs
        self.n_bins, self.nominal, self.integer = binner.n_bins, binner.nominal, sum_type(n)
        self._stretches = stretches(len(self.n_bins), _SEARCHED)

    def open(self, n: int, sums: np.ndarray) -> None:
        sums[:] = 0
        for part in self.workers.each("open", n):
            sums += part

    def divide(self, divisions: list[Division], search: Search) -> list[list[Any]]:
        wanted = [None if division.sums is None else np.empty(0) for division in divisions]
        orders = [division._replace(sums=sums) for division, sums in zip(divisions, wanted)]
        results = self.workers.each("divide", orders)
        result: list[list[Any]] = [[] for _ in divisions]

        def work(i: int) -> None:
            sums = divisions[i].sums
            if sums is not None:
                sums[:] = 0
                for parts in results:
                    np.add(sums, parts[i], out=sums)
                result[i] = [search(i, columns) for columns in self._stretches]

        thread_map(work, range(len(divisions)), n_jobs=self.n_jobs)
        return result


class WorkerStore(Store):
    """The rows of a fit on the workers of a cluster."""

    def __init__(self, loss: Loss, workers: Workers, validates: bool):
        super().__init__(loss, workers, workers.n_rows, validates)
        self.workers = workers
        self.rounds: list[list[Nodes]] = []
        self.base = np.empty(0)

    def begin(self, base: np.ndarray) -> None:
        self.base = base
        super().begin(base)

    def end_round(self, trees: list[Nodes]) -> None:
        """Let the state of a worker follow from the trees so far."""
        self.rounds.append(trees)
        self.workers.pinned.journal[:] = [
            ("number", (self.workers.firsts,)),
            ("begin", (self.base,)),
            ("restore", (self.rounds,)),
            ("slopes", (TRAINING,)),
        ]


def worker_store(learner: Any, loss: Loss, binner: Binner, rows: Rows, draw: Draw | None, kind: Any) -> WorkerStore:
    """Return a store of rows on workers, whose y become of type `kind`."""
    workers = Workers(rows, loss, binner, draw, kind)
    if not workers.n_rows:
        raise refuse(learner, "no row with a weight is left to fit to; use early_stopping=False or other weights.")
    return WorkerStore(loss, workers, draw is not None)


def sampled_on_workers(rows: Rows, numbers: np.ndarray, draw: Draw | None) -> np.ndarray:
    """Return the training rows among those of the given numbers, which ascend."""
    results: dict[int, np.ndarray] = {}
    rows.collect(results.__setitem__, _training_rows, numbers, draw)
    return np.concatenate([results[start] for start in sorted(results)])


def _training_rows(block: Block, numbers: np.ndarray, draw: Draw | None) -> np.ndarray:
    kinds = row_kinds(len(block.X), block.weight, draw, block.start)
    own = np.ones(len(block.X), dtype=bool) if kinds is None else kinds == TRAINING
    first, end = np.searchsorted(numbers, (block.start, block.start + len(block.X)))
    at = numbers[first:end] - block.start
    return block.X[at[own[at]]]


_SAMPLE = 100_000  # rows whose quantiles are the edges of the bins


class Source(Protocol):
    """Rows with y and weights, from which a fit makes its store."""

    n_rows: int
    has_validation: bool  # rows for validation were given

    def draw(self, draw: Draw | None) -> None:
        """Keep the rows that are drawn for validation."""

    def sample(self, seed: int) -> np.ndarray:
        """Return training rows whose quantiles are the edges of the bins; which ones depends on the numbers of the rows
        alone."""

    def store(self, learner: Any, loss: Loss, binner: Binner) -> Store:
        """Return the store of the rows in bins."""

    def shown(self, learner: Any) -> tuple[Any, Any]:
        """Return what callbacks are shown of X and y."""


class LocalSource:
    """Rows in memory, or streamed from files into a store on this machine."""

    def __init__(self, data: Read, given: Read | None):
        self.data, self.given, self.has_validation, self.n_rows = data, given, given is not None, data.rows.n_rows
        self.kinds: np.ndarray | None = None

    def draw(self, draw: Draw | None) -> None:
        self.kinds = row_kinds(self.n_rows, self.data.weight, draw)

    def sample(self, seed: int) -> np.ndarray:
        numbers = sampled_rows(self.n_rows, seed)
        return self.data.rows.take(numbers if self.kinds is None else numbers[self.kinds[numbers] == TRAINING])

    def store(self, learner: Any, loss: Loss, binner: Binner) -> Store:
        return local_store(learner, loss, binner, self.data, self.kinds, self.given)

    def shown(self, learner: Any) -> tuple[Any, Any]:
        return learner._shown(self.data)

    def rows_of(self, kind: int) -> tuple[Read, np.ndarray]:
        """Return the data that have the rows of a kind, and their numbers."""
        if kind == VALIDATION and self.given is not None:
            return self.given, np.arange(self.given.rows.n_rows)
        kinds = self.kinds
        return self.data, np.arange(self.n_rows) if kinds is None else np.flatnonzero(kinds == kind)


class WorkerSource:
    """Rows that stay on the workers of a cluster; y become of type `kind` there."""

    has_validation = False

    def __init__(self, rows: Rows, kind: Any):
        self.rows, self.kind, self.n_rows = rows, kind, rows.n_rows
        self.held: Draw | None = None

    def draw(self, draw: Draw | None) -> None:
        self.held = draw

    def sample(self, seed: int) -> np.ndarray:

        return sampled_on_workers(self.rows, sampled_rows(self.n_rows, seed), self.held)

    def store(self, learner: Any, loss: Loss, binner: Binner) -> Store:

        return worker_store(learner, loss, binner, self.rows, self.held, self.kind)

    def shown(self, learner: Any) -> tuple[Any, Any]:
        return None, None


def sampled_rows(n: int, seed: int) -> np.ndarray:
    """Return the numbers of at most 100,000 of n rows, ascending."""
    if n <= _SAMPLE:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, _SAMPLE, replace=False, shuffle=False))

"""Rows that workers of a cluster keep in memory for many passes: a pass is one message to each worker, and sums come
back. A worker that dies is made again from the graph of its partitions (`scan.pinned`)."""

from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle
import numpy as np

from assay.data.blocks import Block, block, rows_per_block
from assay.scan.memory import on_block, one_blas_thread, thread_map
from assay.scan.source import Rows, Statistic
from assay.scan.total import Node, Total

_SHARE = 0.4  # of the memory of the workers that rows may fill


class WorkerBlocks:
    """The blocks of some partitions, on the worker that has them."""

    def __init__(self, parts: dict[int, Block], threads: int):
        self.threads, self.blocks = threads, [cut for part in parts.values() for cut in _cut(part)]

    def sum(self, packed: bytes) -> dict[Node, Any]:
        """Return the nodes of a total over the blocks."""
        total, (statistic, parameters) = Total(), cloudpickle.loads(packed)

        def one(cut: Block) -> None:
            total.add(cut.start // rows_per_block(cut.X.shape[1]), on_block(statistic, cut, parameters))

        self._each(one)
        return total.nodes()

    def map(self, packed: bytes) -> list[tuple[int, Any]]:
        """Return the first row of each block with what a function gives of it."""
        function, parameters = cloudpickle.loads(packed)
        return self._each(lambda cut: (cut.start, on_block(function, cut, parameters)))

    def _each(self, work: Callable[[Block], Any]) -> list[Any]:
        with one_blas_thread():
            return thread_map(work, self.blocks, n_jobs=self.threads)


def _cut(part: Block) -> Iterator[Block]:
    step = rows_per_block(part.X.shape[1])
    for start in range(0, len(part.X), step):
        cut = block(part.X, part.y, part.weight, start, min(start + step, len(part.X)))
        yield cut._replace(start=part.start + start)


class KeptRows(Rows):
    """The rows of a Dask collection, kept by the workers while this object lives. Sums have the same bits."""

    def __init__(self, rows: Rows):
        self.rows = rows
        self.n_rows, self.n_features, self.n_jobs = rows.n_rows, rows.n_features, rows.n_jobs
        self.feature_names, self.has_y, self.has_weight = rows.feature_names, rows.has_y, rows.has_weight
        self._workers = rows.pinned((_whole,), WorkerBlocks)

    def sum(self, statistic: Statistic, *parameters: Any) -> Any:
        total = Total()
        for nodes in self._call("sum", statistic, parameters):
            total.merge(nodes)
        return total.value()

    def map(self, function: Callable[..., Any], *parameters: Any) -> list[Any]:
        values = [item for results in self._call("map", function, parameters) for item in results]
        return [result for _, result in sorted(values, key=lambda item: item[0])]

    def collect(self, consume: Callable[[int, Any], None], function: Callable[..., Any], *parameters: Any) -> None:
        for results in self._call("map", function, parameters):
            for start, result in results:
                consume(start, result)

    def _call(self, method: str, function: Callable[..., Any], parameters: tuple) -> list[Any]:
        results = self._workers.each(method, cloudpickle.dumps((function, parameters)))
        self._workers.journal.clear()  # blocks stay what they were
        return results

    def blocks(self) -> Iterator[Block]:
        return self.rows.blocks()


def _whole(part: Block) -> Block:
    return part


def kept(rows: Rows) -> Rows:
    """Return rows on workers as rows that these keep, if they fit there beside their source."""
    from distributed import get_client

    workers = get_client().scheduler_info(n_workers=-1)["workers"].values()
    room = [worker["memory_limit"] or np.inf for worker in workers]
    size = 8.0 * rows.n_rows * (rows.n_features + 2)
    return KeptRows(rows) if size <= _SHARE * sum(room) else rows

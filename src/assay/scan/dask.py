"""Dask collections: the statistic goes to the partitions, wherever they are, and only sums come back.

Partitions are cut into the blocks that arrays in memory have, and the total of a partition keeps the place of its
blocks in the whole, so that partitions merge in any order into the bits of memory, whichever worker computed them. When
a worker dies, Dask computes its partitions again from the graph; nothing that is needed exists on one worker alone.
"""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

import cloudpickle
import dask
import numpy as np
from dask.delayed import Delayed, delayed

from assay.data.blocks import Block, block, blocks, rows_per_block
from assay.scan.memory import on_block, one_blas_thread, thread_count
from assay.scan.source import Rows, Statistic, connected
from assay.scan.total import Node, Total

MERGED_AT_ONCE = 8
RETRIES = 2  # of a task that fails by an error, such as a lost connection to the files it reads


class DaskRows(Rows):
    """Rows in partitions, each a task that gives (X, y, weight)."""

    def __init__(self, parts: list[Delayed], lengths: list[int], n_features: int, *, n_jobs: int | None = None):
        step = rows_per_block(n_features)
        self.parts, self.lengths = _in_whole_blocks(parts, lengths, step)
        self.n_rows, self.n_features, self.n_jobs = sum(lengths), n_features, n_jobs
        self._first_rows = [0, *accumulate(self.lengths)][:-1]
        self._first_blocks = [0, *accumulate(-(-length // step) for length in self.lengths)][:-1]

    def sum(self, statistic: Statistic, *parameters: Any) -> Any:
        call = _packed(statistic, parameters)
        totals = [
            delayed(_part_total)(part, call, row, number)
            for part, row, number in zip(self.parts, self._first_rows, self._first_blocks, strict=True)
        ]
        while len(totals) > 1:
            totals = [delayed(_merged)(totals[i : i + MERGED_AT_ONCE]) for i in range(0, len(totals), MERGED_AT_ONCE)]
        total = Total()
        total.merge(self._computed(totals)[0])
        return total.value()

    def map(self, function: Callable[..., Any], *parameters: Any) -> list[Any]:
        call = _packed(function, parameters)
        lists = [delayed(_part_map)(part, call, row) for part, row in zip(self.parts, self._first_rows, strict=True)]
        return [result for results in self._computed(lists) for result in results]

    def collect(self, consume: Callable[[int, Any], None], function: Callable[..., Any], *parameters: Any) -> None:
        call = _packed(_with_start, (function, *parameters))
        lists = [delayed(_part_map)(part, call, row) for part, row in zip(self.parts, self._first_rows, strict=True)]
        for i in range(0, len(lists), MERGED_AT_ONCE):
            for results in self._computed(lists[i : i + MERGED_AT_ONCE]):
                for start, result in results:
                    consume(start, result)

    @property
    def on_workers(self) -> bool:
        return connected()

    def pinned(self, call: tuple, make: Callable[..., Any], *arguments: Any) -> Any:
        from assay.scan.pinned import Pinned

        packed = _packed(call[0], call[1:])
        tasks = [delayed(_on_part)(part, packed, row) for part, row in zip(self.parts, self._first_rows, strict=True)]
        return Pinned(tasks, make, *arguments)

    def blocks(self) -> Iterator[Block]:
        for part, first_row in zip(self.parts, self._first_rows, strict=True):
            yield from _blocks(self._computed([part])[0], first_row)

    def _computed(self, tasks: list[Delayed]) -> list[Any]:
        """Return the results: from the cluster if this process has a client, else from its own threads."""
        if connected():
            return list(dask.compute(*tasks, retries=RETRIES))
        return list(dask.compute(*tasks, scheduler="threads", num_workers=thread_count(self.n_jobs)))


def _in_whole_blocks(parts: list[Delayed], lengths: list[int], step: int) -> tuple[list[Delayed], list[int]]:
    """Return partitions that begin and end at the borders of blocks: rows of a block that two partitions share, fewer
    than `step`, go to the one that has its first row."""
    ends = list(accumulate(lengths))
    n = ends[-1] if ends else 0
    results, sizes = [], []
    for k, (end, length) in enumerate(zip(ends, lengths)):
        start, stop = (min(-(-row // step) * step, n) for row in (end - length, end))
        if start == stop:
            continue
        pieces, other = [], k
        while other < len(parts) and ends[other] - lengths[other] < stop:
            before = ends[other] - lengths[other]
            low, high = max(start - before, 0), min(stop - before, lengths[other])
            if low < high:
                whole = (low, high) == (0, lengths[other])
                pieces.append(parts[other] if whole else delayed(_part_rows)(parts[other], low, high))
            other += 1
        results.append(pieces[0] if len(pieces) == 1 else delayed(_joined_parts)(pieces))
        sizes.append(stop - start)
    return results, sizes


def dask_rows(X: Any, y: Any, weight: Any, *, n_jobs: int | None = None) -> DaskRows:
    """Return the rows of a Dask data frame (y and weight name columns) or array (y and weight arrays)."""
    if hasattr(X, "columns"):
        return _frame_rows(X, y, weight, n_jobs)
    if not hasattr(X, "chunks") or X.ndim != 2:
        raise ValueError(f"rows: X must be a Dask data frame or a Dask array with rows and columns; got {X!r}.")
    return _array_rows(X, y, weight, n_jobs)


def _frame_rows(frame: Any, y: Any, weight: Any, n_jobs: int | None) -> DaskRows:
    names = list(frame.columns)
    for role, name in (("y", y), ("sample_weight", weight)):
        if name is not None and not (isinstance(name, str) and name in names):
            raise ValueError(f"rows: {role} must name a column of the Dask data frame {names}; got {name!r}.")
    features = [name for name in names if name not in (y, weight)]
    for name in features if weight is None else [*features, weight]:
        if getattr(frame.dtypes[name], "kind", "O") not in "fiub":
            raise ValueError(
                f"rows: column {name!r} holds {frame.dtypes[name]}; a sum over rows needs numbers; "
                "encode it (one column for each of its values) or leave it out."
            )
    partitions = frame.to_delayed()
    lengths = dask.compute(*(delayed(len)(part) for part in partitions))
    parts = [delayed(_frame_part)(part, features, y, weight, k) for k, part in enumerate(partitions)]
    rows = DaskRows(parts, list(lengths), len(features), n_jobs=n_jobs)
    rows.feature_names, rows.has_y, rows.has_weight = features, y is not None, weight is not None
    return rows


def _array_rows(X: Any, y: Any, weight: Any, n_jobs: int | None) -> DaskRows:
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    X = X.rechunk({1: -1})
    beside = []
    for role, values in (("y", y), ("sample_weight", weight)):
        if values is None:
            beside.append([None] * X.numblocks[0])
            continue
        if not hasattr(values, "compute_chunk_sizes"):
            raise ValueError(f"rows: with a Dask array X, {role} must be a Dask array; got {type(values).__name__}.")
        values = values.compute_chunk_sizes() if np.isnan(values.shape[0]) else values
        if values.shape[0] != X.shape[0]:
            raise ValueError(
                f"rows: {role} must have one value for each of {X.shape[0]} rows; got shape {values.shape}."
            )
        whole = dict.fromkeys(range(1, values.ndim), -1)
        beside.append(values.rechunk({0: X.chunks[0], **whole}).to_delayed().ravel().tolist())
    tasks = zip(X.to_delayed().ravel(), *beside, strict=True)
    parts = [delayed(_array_part)(*task, k) for k, task in enumerate(tasks)]
    rows = DaskRows(parts, list(X.chunks[0]), X.shape[1], n_jobs=n_jobs)
    rows.has_y, rows.has_weight = y is not None, weight is not None
    return rows


Part = tuple[np.ndarray, np.ndarray | None, np.ndarray | None]


def _part_rows(part: Part, start: int, stop: int) -> Part:
    """Return some rows of a partition, as copies that do not keep all of them."""
    X, y, weight = (None if values is None else np.array(values[start:stop]) for values in part)
    return np.asarray(X), y, weight


def _joined_parts(parts: list[Part]) -> Part:
    X, y, weight = (None if values[0] is None else np.concatenate(values) for values in zip(*parts))
    return np.asarray(X), y, weight


def _frame_part(frame: Any, features: list[str], y: str | None, weight: str | None, number: int) -> Part:
    """Return the partition's columns as arrays, refusing missing and infinite values by their place."""
    if y is not None and frame[y].isna().any():
        _refuse_value(y, int(np.argmax(frame[y].isna())), number)
    X = frame[features].to_numpy(dtype=np.float64, na_value=np.nan)
    return _array_part(
        X,
        None if y is None else frame[y].to_numpy(),
        None if weight is None else frame[weight].to_numpy(dtype=np.float64, na_value=np.nan),
        number,
        features,
    )


def _array_part(X: Any, y: Any, weight: Any, number: int, features: list[str] | None = None) -> Part:
    finite = np.isfinite(X)
    if not finite.all():
        row, column = divmod(int(np.argmin(finite)), X.shape[1])
        _refuse_value(features[column] if features else column, row, number)
    if weight is not None and not (finite := np.isfinite(weight)).all():
        _refuse_value("sample_weight", int(np.argmin(finite)), number)
    return X, y, weight


def _refuse_value(column: str | int, row: int, number: int) -> None:
    raise ValueError(
        f"rows: column {column!r} has a missing or infinite value in row {row} of partition {number} "
        "(both counted from 0); fill it or drop the row first."
    )


def _blocks(part: Part, first_row: int) -> Iterator[Block]:
    for cut in blocks(*part):
        yield cut._replace(start=first_row + cut.start)


def _packed(function: Callable[..., Any], parameters: tuple) -> Delayed:
    """Return the call as bytes: a worker that cannot load it fails in its task, and so says why; it would
    wait for ever if it failed while it fetches the call from another worker."""
    return delayed(cloudpickle.dumps((function, parameters)), traverse=False)


def _part_total(part: Part, call: bytes, first_row: int, first_block: int) -> dict[Node, Any]:
    statistic, parameters = cloudpickle.loads(call)
    total = Total()
    with one_blas_thread():
        for number, block in enumerate(_blocks(part, first_row), start=first_block):
            total.add(number, on_block(statistic, block, parameters))
    return total.nodes()


def _merged(totals: list[dict[Node, Any]]) -> dict[Node, Any]:
    merged = Total()
    for nodes in totals:
        merged.merge(nodes)
    return merged.nodes()


def _part_map(part: Part, call: bytes, first_row: int) -> list[Any]:
    function, parameters = cloudpickle.loads(call)
    with one_blas_thread():
        return [on_block(function, block, parameters) for block in _blocks(part, first_row)]


def _on_part(part: Part, call: bytes, first_row: int) -> Any:
    """Return what a function gives of a whole partition."""
    function, parameters = cloudpickle.loads(call)
    return on_block(function, block(*part, 0, len(part[0]))._replace(start=first_row), parameters)


def _with_start(block: Block, function: Callable[..., Any], *parameters: Any) -> tuple[int, Any]:
    return block.start, function(block, *parameters)

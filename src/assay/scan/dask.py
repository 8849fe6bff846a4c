"""Dask collections: the statistic goes to the partitions, wherever they are, and only sums come back.

Partitions are cut into the blocks that arrays in memory have, and the total of a partition keeps the place of its
blocks in the whole, so that partitions merge in any order into the bits of memory, whichever worker computed them. When
a worker dies, Dask computes its partitions again from the graph; nothing that is needed exists on one worker alone.

Objects on the workers of a Dask cluster, each made of the partitions that lie there, which never leave it.

A method is called on all of them at once, one message for each worker. If a worker dies, what it had is made again on
others, from the graph of its partitions and the calls that its state follows from; results must not depend on which
partitions lie together.
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
from assay.scan.source import Node, Rows, Statistic, Total, connected

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


_RETRIES = 2  # of a task that fails by an error
_PATIENCE = 20.0  # seconds after which a worker that has not answered is looked for
_MOST_LOST = 20  # workers lost in one fit

Call = tuple[str, tuple]
"""The name of a method and its arguments."""


class _Holder:
    """The actor of a worker: an object made of some partitions."""

    def __init__(self, packed: bytes, numbers: list[int], *parts: Any):
        from distributed import get_worker

        make, arguments = cloudpickle.loads(packed)
        self.held = make(dict(zip(numbers, parts)), get_worker().state.nthreads, *arguments)

    def call(self, packed: bytes) -> Any:
        """Make several calls; return what the last one gives."""
        result = None
        for method, arguments in cloudpickle.loads(packed):
            result = getattr(self.held, method)(*arguments)
        return result


class Pinned:
    """One object on each worker that has partitions.

    tasks : the partitions, computed once, where Dask puts them
    make : make({number of a partition: the partition}, threads, *arguments) returns the object of a worker that has so
        many threads
    journal : calls that the state of an object follows from
    """

    def __init__(self, tasks: list[Delayed], make: Callable[..., Any], *arguments: Any):
        from distributed import get_client

        self.client, self.tasks = get_client(), tasks
        self.journal: list[Call] = []
        self._make = cloudpickle.dumps((make, arguments))
        self._lost = 0
        self._holders = self._place(list(range(len(tasks))))

    def each(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method on each object and write it to the journal; return the results in no particular order."""
        call = method, arguments
        packed = cloudpickle.dumps([call])
        waiting = [(numbers, actor, _begun(actor, packed)) for numbers, actor in self._holders]
        self._holders, results = [], []
        for numbers, actor, answer in waiting:
            try:
                results.append(self._answer(actor, answer))
                self._holders.append((numbers, actor))
            except _Lost as error:
                results += self._again(numbers, call, error)
        self.journal.append(call)
        return results

    def _again(self, numbers: list[int], call: Call, error: Exception) -> list[Any]:
        """Make lost objects again elsewhere, and make all calls on them."""
        self._lost += 1
        if self._lost > _MOST_LOST:
            raise RuntimeError(f"{self._lost} workers were lost; see the logs of the cluster.") from error
        packed, results = cloudpickle.dumps([*self.journal, call]), []
        for found, actor in self._place(numbers):
            try:
                results.append(self._answer(actor, _begun(actor, packed)))
                self._holders.append((found, actor))
            except _Lost as again:
                results += self._again(found, call, again)
        return results

    def _place(self, numbers: list[int]) -> list[tuple[list[int], Any]]:
        """Compute partitions, and make an object of those that lie on the same worker."""
        from distributed import wait

        while True:
            futures = dict(zip(numbers, self.client.compute([self.tasks[i] for i in numbers], retries=_RETRIES)))
            wait(list(futures.values()))
            for future in futures.values():
                if future.status == "error":
                    future.result()  # raises what went wrong
            where = self.client.who_has(list(futures.values()))
            lying: dict[str, list[int]] = {}
            for number, future in futures.items():
                lying.setdefault(next(iter(where.get(future.key) or [""])), []).append(number)
            if "" in lying:
                continue  # a worker died since
            made = [
                (own, self.client.submit(
                    _Holder, self._make, own, *(futures[i] for i in own), actor=True, workers=[address],
                    allow_other_workers=True, pure=False,
                ))
                for address, own in lying.items()
            ]  # fmt: skip
            return [(own, future.result()) for own, future in made]

    def _answer(self, actor: Any, answer: Any) -> Any:
        """Wait for the answer of an actor; raise `_Lost` if its worker is gone."""
        if isinstance(answer, Exception):
            raise _Lost from answer
        while True:
            try:
                return answer.result(timeout=_PATIENCE)
            except TimeoutError as error:
                if answer.done():
                    raise _Lost from error
                if actor._address not in self.client.scheduler_info(n_workers=-1)["workers"]:
                    raise _Lost from None
            except OSError as error:
                raise _Lost from error


class _Lost(Exception):
    """The worker of an actor is gone."""


def _begun(actor: Any, packed: bytes) -> Any:
    """Begin a call; return what to wait for, or the error if the actor is known to be lost."""
    try:
        return actor.call(packed)
    except RuntimeError as error:
        return error

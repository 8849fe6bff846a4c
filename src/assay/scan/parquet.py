"""Parquet files and other Arrow data: streamed at each pass, so they may be larger than memory.

Record batches are cut again to the block borders that arrays in memory have, so a sum is the same to the last
bit. The thread that needs a block decodes it while the others compute, so no more blocks exist than threads;
columns are read through small buffers, so the size of a file and of its row groups does not matter.
"""

import threading
from collections.abc import Callable, Generator, Iterator
from glob import glob, has_magic
from itertools import count
from os import fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from assay.data.blocks import Block, rows_per_block
from assay.scan.memory import on_block, one_blas_thread, spread, thread_count
from assay.scan.source import Rows, Statistic, Total

BUFFER_BYTES = 2**16  # read at a time from each column of a file
BLOCKS_PER_READ = 4  # decoding a few blocks at once halves the cost of starting each column


class Piece(NamedTuple):
    """Consecutive rows of one file: where they come from, and the rows."""

    source: str
    row: int
    batch: pa.RecordBatch


class Files:
    """Parquet files, one after the other."""

    def __init__(self, paths: list[str]):
        self.paths, self.name = paths, paths[0]
        self.n_rows = 0
        for path in paths:
            with _opened(path) as file:
                self.n_rows += file.metadata.num_rows
                schema = file.schema_arrow
            if path == paths[0]:
                self.schema = schema
            for name in self.schema.names:
                if name not in schema.names:
                    raise ValueError(f"rows: {path} has no column {name!r}, which {paths[0]} has.")
            for field in schema:
                if field.name in self.schema.names and _kind(field.type) != _kind(self.schema.field(field.name).type):
                    raise ValueError(
                        f"rows: column {field.name!r} is {field.type} in {path} "
                        f"but {self.schema.field(field.name).type} in {paths[0]}; write it with one type."
                    )

    def pieces(self, columns: list[str], size: int, threads: int) -> Iterator[Piece]:
        for path in self.paths:
            with _opened(path) as file:
                row = 0
                for batch in file.iter_batches(size, columns=columns, use_threads=threads > 1):
                    yield Piece(path, row, batch)
                    row += batch.num_rows


class Arrow:
    """An Arrow table or data set."""

    name = "the Arrow data"

    def __init__(self, data: Any):
        self.data, self.schema = data, data.schema
        self.n_rows = data.count_rows() if _lazy(data) else data.num_rows

    def pieces(self, columns: list[str], size: int, threads: int) -> Iterator[Piece]:
        if _lazy(self.data):
            batches = self.data.to_batches(
                columns=columns,
                batch_size=size,
                batch_readahead=2,
                fragment_readahead=1,
                use_threads=threads > 1,
            )
        else:
            batches = self.data.select(columns).to_batches(max_chunksize=size)
        row = 0
        for batch in batches:
            yield Piece(self.name, row, batch)
            row += batch.num_rows


class ArrowRows(Rows):
    """Rows of Parquet files or of Arrow data; y and the weights are columns."""

    feature_names: list[str]

    def __init__(self, source: Files | Arrow, y: str | None, weight: str | None, *, n_jobs: int | None = None):
        self.source, self.y, self.weight, self.n_jobs = source, y, weight, n_jobs
        names = list(source.schema.names)
        for role, name in (("y", y), ("sample_weight", weight)):
            if name is not None and name not in names:
                raise ValueError(f"rows: {role} must name a column; got {name!r}, the columns are {_listed(names)}.")
        self.feature_names = [name for name in names if name not in (y, weight)]
        for name in [*self.feature_names, *([] if weight is None else [weight])]:
            if _kind(source.schema.field(name).type) != "number":
                raise ValueError(
                    f"rows: column {name!r} holds {source.schema.field(name).type}; a sum over rows needs "
                    "numbers; encode it (one column for each of its values) or leave it out."
                )
        self.n_rows, self.n_features = source.n_rows, len(self.feature_names)
        self.has_y, self.has_weight = y is not None, weight is not None
        self._step = rows_per_block(self.n_features)
        self._doubles = pa.schema([(name, pa.float64()) for name in self.feature_names])

    def sum(self, statistic: Statistic, *parameters: Any) -> Any:
        total = Total()
        self._each(lambda i, block: total.add(i, on_block(statistic, block, parameters)))
        return total.value()

    def map(self, function: Callable[..., Any], *parameters: Any) -> list[Any]:
        results: dict[int, Any] = {}

        def keep(i: int, block: Block) -> None:
            results[i] = on_block(function, block, parameters)

        self._each(keep)
        return [results[i] for i in range(len(results))]

    def collect(self, consume: Callable[[int, Any], None], function: Callable[..., Any], *parameters: Any) -> None:
        self._each(lambda _, block: consume(block.start, on_block(function, block, parameters)))

    def blocks(self) -> Iterator[Block]:
        for number, pieces in enumerate(self._stream(threads=1)):
            yield self._block(pieces, number * self._step)

    def _stream(self, threads: int) -> Generator[list[Piece]]:
        columns = [*self.feature_names, *(name for name in (self.y, self.weight) if name is not None)]
        return _cut(self.source.pieces(columns, BLOCKS_PER_READ * self._step, threads), self._step)

    def _each(self, consume: Callable[[int, Block], None]) -> None:
        """Call consume(number, block) for each block, on threads; one thread at a time reads."""
        threads = thread_count(self.n_jobs)
        stream, numbers, reading = self._stream(threads), count(), threading.Lock()

        def work(_: int) -> None:
            with reading:
                number, pieces = next(numbers), next(stream, None)
            if pieces is None:
                raise ValueError(
                    f"rows: {self.source.name} gave fewer rows than the {self.n_rows} it was opened with; "
                    "it was changed or cannot be read to its end."
                )
            consume(number, self._block(pieces, number * self._step))

        with one_blas_thread():
            try:
                spread(work, -(-self.n_rows // self._step), threads)
            finally:
                stream.close()

    def _block(self, pieces: list[Piece], start: int) -> Block:
        y, weight = self.y, self.weight
        return Block(
            _joined([_matrix(piece, self._doubles) for piece in pieces]),
            None if y is None else _joined([_values(piece, y) for piece in pieces]),
            None if weight is None else _joined([_values(piece, weight) for piece in pieces]).astype(np.float64),
            start,
        )


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def parquet_rows(X: Any, y: Any, weight: Any, *, n_jobs: int | None = None) -> ArrowRows:
    """Return the rows of Parquet files (path, pattern, folder, list of paths), an Arrow table or data set."""
    for role, name in (("y", y), ("sample_weight", weight)):
        if name is not None and not isinstance(name, str):
            raise ValueError(f"rows: with Parquet or Arrow data, {role} must name a column; got {type(name).__name__}.")
    if isinstance(X, pa.RecordBatch):
        X = pa.table(X)
    arrow = hasattr(X, "schema")
    return ArrowRows(Arrow(X) if arrow else Files(_paths(X)), y, weight, n_jobs=n_jobs)


def _paths(X: Any) -> list[str]:
    """Return the files that a path, a pattern, a folder or a list of them stands for, each list sorted."""
    if isinstance(X, (list, tuple)):
        return [path for item in X for path in _paths(item)]
    path = fspath(X)
    if Path(path).is_file():
        return [path]
    result = sorted(glob(path) if has_magic(path) else map(str, Path(path).glob("**/*.parquet")))
    if not result:
        what = "no file matches" if has_magic(path) else "no Parquet file at"
        raise FileNotFoundError(f"rows: {what} {path!r}; give a path, a pattern such as 'folder/*.parquet' or a list.")
    return result


def _opened(path: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"rows: {path} cannot be read as Parquet ({error}).") from None


def _cut(pieces: Iterator[Piece], step: int) -> Generator[list[Piece]]:
    """Yield lists of pieces that hold `step` rows each, the last one fewer."""
    block: list[Piece] = []
    wanted = step
    for source, row, batch in pieces:
        at = 0
        while at < batch.num_rows:
            part = batch.slice(at, wanted)
            block.append(Piece(source, row + at, part))
            at += part.num_rows
            wanted -= part.num_rows
            if not wanted:
                yield block
                block, wanted = [], step
    if block:
        yield block


def _matrix(piece: Piece, doubles: pa.Schema) -> np.ndarray:
    """Return the columns named in the schema as rows of doubles; refuse a missing or infinite value."""
    batch = piece.batch.select(doubles.names)
    if any(column.null_count for column in batch.columns):
        for name in doubles.names:
            _values(piece, name)
    if batch.schema.types != doubles.types:
        batch = batch.cast(doubles, safe=False)
    X = batch.to_tensor(row_major=True).to_numpy()
    if not _surely_finite(X):
        for name in doubles.names:
            _values(piece, name)
    return X


def _values(piece: Piece, name: str) -> np.ndarray:
    """Return one column of the piece; refuse a missing or infinite value."""
    column = piece.batch.column(name)
    if column.null_count:
        _refuse_value(piece, name, column.is_null().to_numpy(zero_copy_only=False), "a missing value")
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f" and not _surely_finite(values) and not (finite := np.isfinite(values)).all():
        _refuse_value(piece, name, ~finite, "NaN or infinity")
    return values


def _surely_finite(values: np.ndarray) -> bool:
    """Tell whether the sum is finite, and so every value; a sum that overflows needs a closer look."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(values.sum()))


def _refuse_value(piece: Piece, name: str, bad: np.ndarray, what: str) -> None:
    row = piece.row + int(np.argmax(bad))
    raise ValueError(
        f"rows: column {name!r} of {piece.source} has {what} in row {row} (counted from 0); "
        "fill it or drop the row first."
    )


def _kind(kind: pa.DataType) -> str:
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return "number" if number else "other"


def _lazy(data: Any) -> bool:
    return hasattr(data, "count_rows")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")

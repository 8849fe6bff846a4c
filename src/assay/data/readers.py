"""Reading: any source becomes an Arrow table, and an Arrow column a typed column."""

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from pyarrow import types

from assay.data.columns import Column, ColumnType, Schema
from assay.data.table import Table, listed

MISSING_WORDS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""What counts as a missing value in a CSV file."""


def read(
    source: Any,
    *,
    nominal: Iterable[str] = (),
    ordered: Mapping[str, Sequence[str]] | None = None,
    schema: Schema | None = None,
) -> Table:
    """Return the table in a CSV or Parquet file, an Arrow table, a pandas or polars frame, a dict of columns.

    Text, booleans and categories are nominal, numbers numeric, ordered categories (pandas) and enumerations
    (polars) ordered. `nominal` names further columns whose numbers are only names (such as postal codes);
    `ordered` gives the levels of a column from lowest to highest. With a `schema`, only its columns are read,
    with their kinds; `Table.require_same_columns` then gives them its codes.

    >>> read({"size": ["small", "large"]}, ordered={"size": ["small", "large"]}).matrix()
    array([[0.],
           [1.]])
    """
    wanted = {column.name: column.kind for column in schema or ()}
    levels = dict(ordered or {})
    as_text = {*nominal, *levels, *(name for name, kind in wanted.items() if kind != "numeric")}
    table = arrow_table(source, as_text, None if schema is None else list(wanted))
    return typed(table, as_text, levels, partial=schema is not None)


def chunks(source: Any, size: int, schema: Schema) -> Iterator[Table]:
    """Yield the schema's columns of a source in tables of at most `size` rows; files are streamed."""
    if not isinstance(source, (str, PathLike)):
        table = read(source, schema=schema)
        for start in range(0, table.n_rows, size):
            yield table.take(slice(start, start + size))
        return
    as_text = {column.name for column in schema if column.kind != "numeric"}
    names = [column.name for column in schema]
    for part in arrow_stream(Path(fspath(source)), as_text, names, size):
        yield typed(part, as_text, {}, partial=True)


def arrow_table(source: Any, as_text: Collection[str], only: list[str] | None) -> pa.Table:
    """Return the source as an Arrow table; `as_text` columns of a CSV keep their spelling."""
    if isinstance(source, (str, PathLike)):
        path = _file(source)
        if _is_parquet(path):
            with _parquet(path) as file:
                _require(file.schema_arrow.names, only, path)
                return file.read(columns=only)
        return _csv(path, as_text, only)
    table = _in_memory(source)
    _require(table.column_names, only, "the table")
    return table if only is None else table.select(only)


def arrow_stream(path: Path, as_text: Collection[str], only: list[str], size: int) -> Iterator[pa.Table]:
    """Yield the file in Arrow tables of at most `size` rows."""
    path = _file(path)
    if _is_parquet(path):
        with _parquet(path) as file:
            _require(file.schema_arrow.names, only, path)
            for batch in file.iter_batches(size, columns=only):
                yield pa.table(batch)
        return
    options = _csv_options(path, as_text, only)
    numbers = {name: pa.float64() for name in only if name not in as_text}
    options["convert_options"].column_types = {**options["convert_options"].column_types, **numbers}
    options["read_options"].use_threads = False  # so that Arrow knows the number of a bad row
    try:
        with pyarrow.csv.open_csv(path, **options) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, size):
                    yield pa.table(batch.slice(start, size))
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read as CSV: {error}") from None


def typed(table: pa.Table, as_text: Collection[str], levels: Mapping[str, Sequence[str]], *, partial: bool) -> Table:
    """Return the columns with their types; `partial` allows no rows and columns without values."""
    names = table.column_names
    places = _places(names)
    for name in [*as_text, *levels]:
        if name not in places:
            raise ValueError(f"there is no column {name!r} to read as categories; the columns are {listed(names)}.")
    if not partial and not table.num_rows:
        raise ValueError(f"the table has no rows, only the columns {listed(names)}.")
    return Table(
        _column(name, values, name in as_text, levels.get(name), partial)
        for name, values in zip(names, table.itercolumns(), strict=True)
    )


def _places(names: Sequence[str]) -> dict[str, int]:
    """Return where each column stands; refuse a column without a name, and two with one."""
    places: dict[str, int] = {}
    for i, name in enumerate(names):
        if not name.strip():
            raise ValueError(f"column {i + 1} has no name; give it one in the first line.")
        if name in places:
            raise ValueError(f"two columns are called {name!r} (columns {places[name] + 1} and {i + 1}); rename one.")
        places[name] = i
    return places


_NOT_TEXT = "column {!r} holds bytes that are not UTF-8 text; save the file as UTF-8."


def _column(name: str, values: pa.ChunkedArray, as_text: bool, levels: Sequence[str] | None, partial: bool) -> Column:
    try:
        return _typed_column(name, values, as_text, levels, partial)
    except pa.ArrowException as error:
        raise ValueError(f"column {name!r} holds {values.type}, which cannot be read: {error}") from None
    except UnicodeDecodeError:  # a Parquet file may call bytes text that are none
        raise ValueError(_NOT_TEXT.format(name)) from None


def _typed_column(
    name: str, values: pa.ChunkedArray, as_text: bool, levels: Sequence[str] | None, partial: bool
) -> Column:
    kind, is_ordered = values.type, levels is not None
    if types.is_dictionary(kind):
        if kind.ordered and levels is None and values.num_chunks:
            whole = values.unify_dictionaries().chunk(0).dictionary
            levels, is_ordered = whole.cast(pa.string()).to_pylist(), True
        values = values.cast(kind.value_type)
    if not partial and values.null_count == len(values):
        raise ValueError(f"column {name!r} has no value in any row; leave it out.")
    _refuse_kind(name, values.type)
    number = types.is_integer(values.type) or types.is_floating(values.type) or types.is_decimal(values.type)
    if number and not as_text and not types.is_dictionary(kind):
        return _numeric(name, values, partial)
    if types.is_null(values.type) and not as_text:
        return _numeric(name, values, partial)
    return _coded(name, _text(values), levels, "ordered" if is_ordered else "nominal")


def _numeric(name: str, values: pa.ChunkedArray, partial: bool) -> Column:
    data = values.cast(pa.float64(), safe=False).to_numpy()
    if not data.flags.writeable or not data.flags.owndata:
        data = data.copy()
    if np.isinf(data).any():
        row = int(np.argmax(np.isinf(data)))
        raise ValueError(f"column {name!r} has an infinite value in row {row} (counted from 0); correct it.")
    if not partial and np.isnan(data).all():
        raise ValueError(f"column {name!r} has no value in any row; leave it out.")
    return Column(ColumnType(name, "numeric"), data)


def _coded(name: str, text: pa.ChunkedArray, levels: Sequence[str] | None, kind: str) -> Column:
    if levels is None:
        levels = sorted(pc.unique(text).drop_null().to_pylist())
    codes = pc.index_in(text, value_set=pa.array(levels, pa.string()))
    strange = pc.and_(pc.is_null(codes), pc.is_valid(text)).to_numpy()
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(
            f"column {name!r} has {text[row].as_py()!r} in row {row} (counted from 0), which is not among "
            f"its levels {listed(levels)}; correct it or add the level."
        )
    return Column(ColumnType(name, kind, tuple(levels)), codes.cast(pa.float64()).to_numpy().astype(np.float64))


def _text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if types.is_boolean(values.type):  # spelled as Python and pandas write them to a CSV file
        words = [pa.scalar(word) for word in ("True", "False")]
        return pa.chunked_array([pc.if_else(chunk, *words) for chunk in values.chunks], pa.string())
    if types.is_floating(values.type):  # NaN is a missing name
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    return values.cast(pa.string())


def _refuse_kind(name: str, kind: pa.DataType) -> None:
    if types.is_temporal(kind):
        raise ValueError(
            f"column {name!r} holds dates or times ({kind}), which no method here reads; derive numbers from "
            "it, such as the year, the month or the days since a fixed day, and leave it out."
        )
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        raise ValueError(_NOT_TEXT.format(name))
    if types.is_nested(kind):
        raise ValueError(f"column {name!r} holds {kind}; give each value a column of its own.")


def _in_memory(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    try:
        if isinstance(source, Mapping):
            return pa.table({str(name): pa.array(values, from_pandas=True) for name, values in source.items()})
        frame = nw.from_native(source, eager_only=True)
        if frame.implementation.is_pandas():
            return pa.Table.from_pandas(frame.to_native(), preserve_index=False)
        return frame.to_arrow()
    except pa.ArrowException as error:
        raise ValueError(f"the table cannot be read ({error}); give each column one type and one length.") from None
    except TypeError:
        raise ValueError(
            "a table is a path to a CSV or Parquet file, an Arrow table, a pandas or polars data frame, or a "
            f"dict of columns; got {type(source).__name__}."
        ) from None


def _csv(path: Path, as_text: Collection[str], only: list[str] | None) -> pa.Table:
    options = _csv_options(path, as_text, only)
    try:
        return pyarrow.csv.read_csv(path, **options)
    except pa.ArrowInvalid:
        options["read_options"].use_threads = False  # on one thread Arrow knows the number of the row
    try:
        return pyarrow.csv.read_csv(path, **options)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read as CSV: {error} (the first line is row 1).") from None


def _csv_options(path: Path, as_text: Collection[str], only: list[str] | None) -> dict[str, Any]:
    delimiter, names, size = _header(path)
    _require(names, only, path)
    return {
        "read_options": pyarrow.csv.ReadOptions(block_size=max(2**20, 8 * size)),  # a line must fit in a block
        "parse_options": pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": pyarrow.csv.ConvertOptions(
            null_values=MISSING_WORDS,
            strings_can_be_null=True,
            true_values=[],  # yes/no and true/false stay words, in the file's spelling
            false_values=[],
            include_columns=only,
            column_types=dict.fromkeys(as_text, pa.string()),
        ),
    }


def _header(path: Path) -> tuple[str, list[str], int]:
    """Return the delimiter that the first record has most of (comma, semicolon, tab), the column names, and its length.

    Delimiters and line ends between quotes belong to a name.
    """
    try:
        record = _first_record(path).decode()
        delimiter = max(",;\t", key=_QUOTED.sub("", record).count)
        names = next(csv.reader(io.StringIO(record, newline=""), delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise ValueError(f"{path} does not begin with a line of UTF-8 text; is it a CSV file?") from None
    except (OSError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not any(name.strip() for name in names):
        raise ValueError(f"{path} is empty; its first line must name the columns.")
    return delimiter, names, len(record)


_QUOTED = re.compile(r'(?:^|(?<=[,;\t]))"(?:[^"]|"")*+"')  # quotes are quotes at the beginning of a field
_FIELD = rb'(?:"(?:[^"]|"")*+"[^,;\t\r\n]*+|[^",;\t\r\n][^,;\t\r\n]*+)?'
_RECORD = re.compile(_FIELD + rb"(?:[,;\t]" + _FIELD + rb")*+[\r\n]")
_LONGEST_HEADER = 2**24


def _first_record(path: Path) -> bytes:
    """Return the file up to the first line end that is not between quotes."""
    content = b""
    with pa.input_stream(path) as stream:
        while len(content) < _LONGEST_HEADER:
            more = stream.read(max(2**20, len(content)))
            content = (content + more).removeprefix(codecs.BOM_UTF8)
            record = _RECORD.match(content)
            if record:
                return record.group()
            if not more:
                break
    return content


def _require(names: Sequence[str], only: list[str] | None, where: Any) -> None:
    known = set(names)
    absent = [name for name in only or () if name not in known]
    if absent:
        raise ValueError(
            f"{where} lacks the column{'s' if len(absent) > 1 else ''} {listed(absent)}; it has {listed(names)}."
        )


def _file(source: str | PathLike) -> Path:
    path = Path(fspath(source))
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a CSV or Parquet file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    return path


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


@contextmanager
def _parquet(path: Path) -> Iterator[pyarrow.parquet.ParquetFile]:
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as Parquet ({error}).") from None

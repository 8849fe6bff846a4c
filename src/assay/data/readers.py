"""Reading: any source becomes an Arrow table; `data.kinds` makes typed columns of it."""

import codecs
import csv
import io
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from pyarrow import types

from assay.data.columns import ColumnType, Schema
from assay.data.kinds import Wish, typed
from assay.data.table import Table, listed
from assay.data.written import GAP_SPELLINGS

MISSING_WORDS = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL")
"""What counts as a missing name in a CSV file; `written.GAPS` are what counts as a missing number."""
WIDE = 2000
"""In files of more columns the rarer spellings of a gap are left to `data.written`: Arrow sorts them per column."""
STDIN = "-"
"""The source that is the standard input, a CSV file."""


def read(
    source: Any,
    *,
    nominal: Iterable[str] = (),
    ordered: Mapping[str, Sequence[str]] | None = None,
    drop: Iterable[str] = (),
    schema: Schema | None = None,
    exact: bool = False,
) -> Table:
    """Return the table in a CSV or Parquet file ("-" is stdin), an Arrow table, a pandas or polars frame, a dict.

    Text, booleans and categories are nominal, numbers numeric, ordered categories (pandas) and enumerations (polars)
    ordered. Text that holds numbers (12.3 %, 1,234, $5, 1.234,5), dates or prose is read as such; `Table.summary`
    says how each column was read, and `Table.left_out` which were left out: those without a value, and an index that
    counts the rows. `nominal` names further columns whose numbers are only names (such as postal codes); `ordered`
    gives the levels of a column from lowest to highest; `drop` names columns to leave out.

    With a `schema`, only its columns are read, with their kinds and forms; `Table.require_same_columns` then gives
    them its codes. With `exact`, each column is what its type says, none is left out, and dates are refused.

    >>> read({"size": ["small", "large"]}, ordered={"size": ["small", "large"]}).matrix()
    array([[0.],
           [1.]])
    >>> read({"rate": ["12.5%", "8%", "-"]}).column("rate").data
    array([12.5,  8. ,  nan])
    """
    levels = dict(ordered or {})
    as_text = {*nominal, *levels, *(column.name for column in schema or () if _spelled(column))}
    names = None if schema is None else [column.name for column in schema]
    table = arrow_table(source, as_text, names, set(drop))
    return typed(table, Wish(set(nominal), levels, schema, exact, not _is_csv(source)))


def _spelled(column: ColumnType) -> bool:
    """Tell whether the cells of a CSV file are read as they are spelled."""
    return column.kind != "numeric" or bool(column.written)


def names(source: Any) -> list[str]:
    """Return the names of a source's columns."""
    if not isinstance(source, (str, PathLike)):
        return _in_memory(source).column_names
    place = _file(source)
    if _is_csv(source):
        return _header(place)[1]
    with _parquet(place) as file:
        return list(file.schema_arrow.names)


def chunks(source: Any, size: int, schema: Schema) -> Iterator[Table]:
    """Yield the schema's columns of a source in tables of at most `size` rows; files are streamed."""
    if not isinstance(source, (str, PathLike)):
        table = read(source, schema=schema)
        for start in range(0, table.n_rows, size):
            yield table.take(slice(start, start + size))
        return
    as_text = {column.name for column in schema if _spelled(column)}
    for part in arrow_stream(source, as_text, [column.name for column in schema], size):
        yield typed(part, Wish(schema=schema))


def arrow_table(
    source: Any, as_text: Collection[str], only: list[str] | None, drop: Collection[str] = ()
) -> pa.Table:
    """Return the source as an Arrow table; `as_text` columns of a CSV keep their spelling."""
    if drop:
        only = _without(names(source), drop)
    if isinstance(source, (str, PathLike)):
        place = _file(source)
        if not _is_csv(source):
            with _parquet(place) as file:
                _require(file.schema_arrow.names, only, place)
                return file.read(columns=only)
        return _csv(place, as_text, only)
    table = _in_memory(source)
    _require(table.column_names, only, "the table")
    return table if only is None else table.select(only)


def _without(there: list[str], drop: Collection[str]) -> list[str]:
    for name in drop:
        if name not in there:
            close = get_close_matches(name, there, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise ValueError(f"there is no column {name!r} to leave out{hint} The columns are {listed(there)}.")
    return [name for name in there if name not in drop]


def arrow_stream(source: str | PathLike, as_text: Collection[str], only: list[str], size: int) -> Iterator[pa.Table]:
    """Yield the file in Arrow tables of at most `size` rows."""
    place = _file(source)
    if not _is_csv(source):
        with _parquet(place) as file:
            _require(file.schema_arrow.names, only, place)
            for batch in file.iter_batches(size, columns=only):
                yield pa.table(batch)
        return
    options = _csv_options(place, as_text, only)
    numbers = {name: pa.float64() for name in only if name not in as_text}
    options["convert_options"].column_types = {**options["convert_options"].column_types, **numbers}
    options["read_options"].use_threads = False  # so that Arrow knows the number of a bad row
    try:
        with pyarrow.csv.open_csv(_opened(place), **options) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, size):
                    yield _with_gaps(pa.table(batch.slice(start, size)))
    except pa.ArrowInvalid as error:
        raise ValueError(f"{place} cannot be read as CSV: {error}") from None


def _in_memory(source: Any) -> pa.Table:
    if isinstance(source, Table):
        return source.to_arrow()
    if isinstance(source, pa.Table):
        return source
    try:
        if isinstance(source, Mapping):
            return pa.table({str(name): pa.array(values, from_pandas=True) for name, values in source.items()})
        frame = nw.from_native(source, eager_only=True)
        if frame.implementation.is_pandas():
            table = pa.Table.from_pandas(frame.to_native(), preserve_index=False)
            return table.rename_columns(_named(table.column_names))
        return frame.to_arrow()
    except pa.ArrowException as error:
        raise ValueError(f"the table cannot be read ({error}); give each column one type and one length.") from None
    except TypeError:
        raise ValueError(
            "a table is a path to a CSV or Parquet file, an Arrow table, a pandas or polars data frame, or a "
            f"dict of columns; got {type(source).__name__}."
        ) from None


def _named(names: Sequence[str]) -> list[str]:
    """Return the names; a column without one is called by its place."""
    return [name if name.strip() else f"column {i + 1} (unnamed)" for i, name in enumerate(names)]


def _csv(place: "Place", as_text: Collection[str], only: list[str] | None) -> pa.Table:
    options = _csv_options(place, as_text, only)
    try:
        return _with_gaps(pyarrow.csv.read_csv(_opened(place), **options))
    except pa.ArrowInvalid:
        options["read_options"].use_threads = False  # on one thread Arrow knows the number of the row
    try:
        return _with_gaps(pyarrow.csv.read_csv(_opened(place), **options))
    except pa.ArrowInvalid as error:
        raise ValueError(f"{place} cannot be read as CSV: {error} (the first line is row 1).") from None


def _with_gaps(table: pa.Table) -> pa.Table:
    """Return the table with nothing where text stands for a missing name."""
    if not any(types.is_string(kind) for kind in table.schema.types):
        return table
    gaps, nothing = pa.array(MISSING_WORDS), pa.scalar(None, pa.string())
    columns = [
        pc.if_else(pc.is_in(values, value_set=gaps), nothing, values) if types.is_string(values.type) else values
        for values in table.itercolumns()
    ]
    return pa.table(columns, names=table.column_names)


def _csv_options(place: "Place", as_text: Collection[str], only: list[str] | None) -> dict[str, Any]:
    delimiter, names, size, odd = _header(place)
    _require(names, only, place)
    read = pyarrow.csv.ReadOptions(block_size=max(2**20, 8 * size))  # a line must fit in a block
    if odd:
        read.column_names, read.skip_rows_after_names = names, 1
    return {
        "read_options": read,
        "parse_options": pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": pyarrow.csv.ConvertOptions(
            null_values=GAP_SPELLINGS if len(names) <= WIDE else MISSING_WORDS,  # of numbers; of names: `_with_gaps`
            true_values=[],  # yes/no and true/false stay words, in the file's spelling
            false_values=[],
            include_columns=only,
            column_types=dict.fromkeys(as_text, pa.string()),
        ),
    }


def _header(place: "Place") -> tuple[str, list[str], int, bool]:
    """Return the delimiter that the first record has most of (comma, semicolon, tab), the column names, and its length.

    Delimiters and line ends between quotes belong to a name. The last is whether a column had no name.
    """
    try:
        record = _first_record(place).decode()
        delimiter = max(",;\t", key=_QUOTED.sub("", record).count)
        names = next(csv.reader(io.StringIO(record, newline=""), delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise ValueError(f"{place} does not begin with a line of UTF-8 text; is it a CSV file?") from None
    except (OSError, csv.Error) as error:
        raise ValueError(f"{place} cannot be read: {error}") from None
    if not any(name.strip() for name in names):
        raise ValueError(f"{place} is empty; its first line must name the columns.")
    named = _named(names)
    return delimiter, named, len(record), named != names


_QUOTED = re.compile(r'(?:^|(?<=[,;\t]))"(?:[^"]|"")*+"')  # quotes are quotes at the beginning of a field
_FIELD = rb'(?:"(?:[^"]|"")*+"[^,;\t\r\n]*+|[^",;\t\r\n][^,;\t\r\n]*+)?'
_RECORD = re.compile(_FIELD + rb"(?:[,;\t]" + _FIELD + rb")*+[\r\n]")
_LONGEST_HEADER = 2**24


def _first_record(place: "Place") -> bytes:
    """Return the file up to the first line end that is not between quotes."""
    content = b""
    with _opened(place) as stream:
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


class Stdin:
    """What came through the standard input, which can be read once only."""

    content: bytes | None = None

    def __str__(self) -> str:
        return "the standard input"

    def opened(self) -> pa.NativeFile:
        if Stdin.content is None:
            Stdin.content = sys.stdin.buffer.read()
        return pa.BufferReader(Stdin.content)


Place = Path | Stdin


def _opened(place: Place) -> pa.NativeFile:
    return place.opened() if isinstance(place, Stdin) else pa.input_stream(place)


def _file(source: str | PathLike) -> Place:
    if fspath(source) == STDIN:
        return Stdin()
    path = Path(fspath(source))
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a CSV or Parquet file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    return path


def _is_csv(source: Any) -> bool:
    """Tell whether a source is a file, and no Parquet file."""
    return isinstance(source, (str, PathLike)) and Path(source).suffix.lower() not in (".parquet", ".pq")


@contextmanager
def _parquet(path: Place) -> Iterator[pyarrow.parquet.ParquetFile]:
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as Parquet ({error}).") from None

"""Reading: any source becomes an Arrow table; `data.kinds` makes typed columns of it."""

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypedDict, cast

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
from pyarrow import types

from assay._typing import FileName
from assay.data.columns import Schema
from assay.data.kinds import Wish, check_names
from assay.data.number_formats import GAP_SPELLINGS
from assay.data.places import (
    Content,
    Place,
    form_of,
    is_file,
    opened,
    opened_text,
    parquet_files,
    place_of,
    said_encoding,
)
from assay.data.quotes import Checked
from assay.data.raw import RawTable
from assay.data.records import read_excel, read_json
from assay.data.table import THE_TABLE, Table, lacks, named_source, no_column
from assay.messages import Message

MISSING_WORDS = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL")
"""What counts as a missing name in a CSV file; `number_formats.GAPS` are what counts as a missing number."""
Source: TypeAlias = object
"""A table as users pass it: a file, an Arrow table, a pandas or polars frame, a dict of columns, a `Table`."""
WIDE = 2000
"""In files of more columns the rarer spellings of a gap are left to `data.number_formats`: Arrow sorts them."""


def read(
    source: Source,
    *,
    nominal: Iterable[str] = (),
    ordered: Mapping[str, Sequence[str]] | None = None,
    drop: Iterable[str] = (),
    schema: Schema | None = None,
    exact: bool = False,
) -> Table:
    """Return the table in a file ("-" is stdin), Arrow data, a pandas or polars frame, a dict of columns.

    A folder of Parquet files, or a pattern such as "rows/*.parquet", is read as one file, in the order of their names.
    Files are CSV unless their names say Parquet, Excel (.xlsx), JSON or JSON lines (.jsonl); .gz and .zip are unpacked.

    Text, booleans and categories are nominal, numbers numeric, ordered categories (pandas) and enumerations (polars)
    ordered. Text that holds numbers (12.3 %, 1,234, $5, 1.234,5), dates or prose is read as such; `Table.summary`
    says how each column was read, and `Table.left_out` which were left out: those without a value, and an index that
    counts the rows. `nominal` names further columns whose numbers are only names (such as postal codes); `ordered`
    gives the levels of a column from lowest to highest; `drop` names columns to leave out.

    With a `schema`, only its columns are read, with their kinds, forms and levels, each cell by itself. With `exact`,
    each column is what its type says, none is left out, and dates are refused.

    Parameters
    ----------
    source : path, frame or dict
        A file, Arrow data, a frame, or a dict of columns.
    nominal : iterable of str, default=()
        Names of further columns whose numbers are only names.
    ordered : mapping or None
        Levels of ordered columns, from lowest to highest.
    drop : iterable of str, default=()
        Names of columns to leave out.
    schema : tuple of ColumnType or None
        Types of the columns to read; None: they are found out.
    exact : bool, default=False
        Whether each column is what its type says, and none is left out.

    Returns
    -------
    Table
        The table.

    Examples
    --------
    >>> read({"size": ["small", "large"]}, ordered={"size": ["small", "large"]}).matrix()
    array([[0.],
           [1.]])
    >>> read({"rate": ["12.5%", "8%", "-"]}).column("rate").data
    array([12.5,  8. ,  nan])
    """
    if schema is not None:
        return raw_table(source, only=[column.name for column in schema]).read_as(schema)
    table = raw_table(source, nominal=nominal, ordered=ordered, drop=drop, exact=exact)
    return table.typed()


def raw_table(
    source: Source,
    *,
    nominal: Iterable[str] = (),
    ordered: Mapping[str, Sequence[str]] | None = None,
    drop: Iterable[str] = (),
    only: list[str] | None = None,
    exact: bool = False,
) -> RawTable:
    """Return the cells of a source as they are: text of a CSV file, the types of a frame or a Parquet file.

    What `nominal` and `ordered` say of columns (see `read`) is kept for when they are typed. A `Table` has decided
    already which columns are numbers and how they are written; this is kept, its lists of levels are not.

    Parameters
    ----------
    source : path, frame or dict
        A file, Arrow data, a frame, or a dict of columns.
    nominal : iterable of str, default=()
        Names of further columns whose numbers are only names.
    ordered : mapping or None
        Levels of ordered columns, from lowest to highest.
    drop : iterable of str, default=()
        Names of columns to leave out.
    only : list of str or None
        Names of the columns to read; None: all.
    exact : bool, default=False
        Whether each column is what its type says, and none is left out.

    Returns
    -------
    RawTable
        The cells by column and row.

    Examples
    --------
    >>> rows = raw_table({"job": ["cook", "clerk", "judge"], "age": [31.0, 27.0, None]})
    >>> some = rows.take([0, 1]).typed()
    >>> some.schema[0].levels
    ('clerk', 'cook')
    >>> rows.read_as(some.schema).unknown
    {'job': ['judge']}
    """
    if isinstance(source, RawTable):
        return source if only is None else source.select(only)
    levels = dict(ordered or {})
    forms = {}
    if isinstance(source, Table):
        forms = {item.name: item.written for item in source.schema if item.written}
    as_text = {*nominal, *levels} if exact else None
    table = arrow_table(source, as_text, only, set(drop))
    is_csv = is_file(source) and form_of(source) == "csv"
    wish = Wish(set(nominal), levels, forms, exact=exact, knows_numbers=not is_csv)
    wish = wish.about(table.column_names) if only is not None or isinstance(source, Table) else wish
    check_names(table.column_names, wish)
    note = said_encoding(place_of(source)) if is_file(source) and is_csv else ""
    return RawTable(table, wish, note)


def names(source: Source) -> list[str]:
    """Return the names of a source's columns.

    Parameters
    ----------
    source : path, frame or dict
        A file, Arrow data, a frame, or a dict of columns.

    Returns
    -------
    list of str
        The names.
    """
    if not is_file(source):
        return list(_in_memory(source).column_names)
    place, form = place_of(source), form_of(source)
    if form == "csv":
        return _header(place).names
    if form != "parquet":
        return list(_whole(place, form).column_names)
    with _parquet(place) as file:
        return list(file.schema_arrow.names)


def header_size(source: FileName | Content) -> int:
    """Return how many bytes the first record of a CSV has."""
    return len(_first_record(place_of(source))[1])


def is_streamed(source: Source) -> bool:
    """Tell whether columns and parts of the rows can be read by themselves, however large the source is."""
    return is_file(source) and form_of(source) == "parquet"


def rows_at_once(columns: int) -> int:
    """Return how many rows are read at a time: fewer of wide tables."""
    return max(256, min(65_536, 2**22 // max(columns, 1)))


def chunks(source: Source, size: int, schema: Schema) -> Iterator[Table]:
    """Yield the schema's columns of a source in tables of at most `size` rows; files are streamed.

    Parameters
    ----------
    source : path, frame or dict
        A file, Arrow data, a frame, or a dict of columns.
    size : int
        Largest number of rows of a table.
    schema : tuple of ColumnType
        Types of the columns to read.

    Yields
    ------
    Table
        Tables of the schema's columns.
    """
    for part in raw_chunks(source, size, [column.name for column in schema]):
        yield part.read_as(schema)


def raw_chunks(source: Source, size: int, names: list[str]) -> Iterator[RawTable]:
    """Yield the cells of columns of a source in tables of at most `size` rows; files are streamed.

    Parameters
    ----------
    source : path, frame or dict
        A file, Arrow data, a frame, or a dict of columns.
    size : int
        Largest number of rows of a table.
    names : list of str
        Names of the columns to read.

    Yields
    ------
    RawTable
        Tables of cells.
    """
    if not is_file(source) or form_of(source) not in ("csv", "parquet"):
        table = raw_table(source, only=names)
        for start in range(0, table.n_rows, size):
            yield table.take(np.arange(start, min(start + size, table.n_rows)))
        return
    is_csv = form_of(source) == "csv"
    note = said_encoding(place_of(source)) if is_csv else ""
    for part in arrow_stream(source, names, size):
        yield RawTable(part, Wish(knows_numbers=not is_csv), note)


def arrow_table(
    source: Source, as_text: Collection[str] | None, only: list[str] | None, drop: Collection[str] = ()
) -> pa.Table:
    """Return the source as an Arrow table; `as_text` columns of a CSV (None: all) keep their spelling."""
    if drop:
        only = _without(names(source), drop)
    if not is_file(source):
        return _only(_in_memory(source), only, THE_TABLE)
    place, form = place_of(source), form_of(source)
    if form == "parquet":
        with _parquet(place) as file:
            _require(file.schema_arrow.names, only, place)
            return file.read(only)
    if form == "csv":
        return _csv(place, as_text, only)
    return _only(_whole(place, form), only, place)


def _only(table: pa.Table, only: list[str] | None, where: object) -> pa.Table:
    _require(table.column_names, only, where)
    return table if only is None else table.select(only)


def _whole(place: Place, form: str) -> pa.Table:
    return read_excel(place) if form == "excel" else read_json(place, form == "json lines")


def _without(there: list[str], drop: Collection[str]) -> list[str]:
    for name in drop:
        if name not in there:
            codes = "no-column.drop", "no-column.drop-close"
            raise ValueError(no_column(name, there, get_close_matches(name, there, n=1), codes))
    return [name for name in there if name not in drop]


def arrow_stream(source: FileName | Content, only: list[str], size: int) -> Iterator[pa.Table]:
    """Yield the file in Arrow tables of at most `size` rows; cells of a CSV file are text."""
    place = place_of(source)
    if form_of(source) == "parquet":
        with _parquet(place, in_parts=True) as file:
            _require(file.schema_arrow.names, only, place)
            for batch in file.iter_batches(size, columns=only):
                yield pa.table(batch)
        return
    options = _csv_options(place, None, only)
    options["read_options"].use_threads = False  # so that Arrow knows the number of a bad row
    try:
        with pyarrow.csv.open_csv(_checked(place, options), **options) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, size):
                    yield _with_gaps(pa.table(batch.slice(start, size)))
    except pa.ArrowInvalid as error:
        raise ValueError(Message("file.csv", file=str(place), why=str(error))) from None


def _in_memory(source: Source) -> pa.Table:
    if isinstance(source, Table):
        return source.to_arrow()
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.dataset.Dataset):
        return source.to_table()
    try:
        if isinstance(source, Mapping):
            return pa.table({str(name): pa.array(values, from_pandas=True) for name, values in source.items()})
        frame: nw.DataFrame[Any] = nw.from_native(cast(Any, source), eager_only=True)
        if frame.implementation.is_pandas():
            table = pa.Table.from_pandas(frame.to_native(), preserve_index=False)
            return table.rename_columns(_named(table.column_names))
        return _with_order(frame.to_arrow(), [name for name, kind in frame.schema.items() if kind == nw.Enum])
    except (pa.ArrowException, OverflowError) as error:
        raise ValueError(Message("table.unreadable", why=str(error))) from None
    except TypeError:
        raise ValueError(Message("table.unknown", kind=type(source).__name__)) from None


def _with_order(table: pa.Table, enumerations: Collection[str]) -> pa.Table:
    """Return a table whose enumerations are ordered: not every version of polars says so."""
    for name in enumerations:
        values = table.column(name)
        if not values.type.ordered:
            chunks = [pa.DictionaryArray.from_arrays(c.indices, c.dictionary, ordered=True) for c in values.chunks]
            kind = pa.dictionary(values.type.index_type, values.type.value_type, ordered=True)
            place = table.column_names.index(name)
            table = table.set_column(place, pa.field(name, kind), pa.chunked_array(chunks, kind))
    return table


def _named(names: Sequence[str]) -> list[str]:
    """Return the names; a column without one is called by its place."""
    return [name if name.strip() else f"column {i + 1} (unnamed)" for i, name in enumerate(names)]


def _csv(place: Place, as_text: Collection[str] | None, only: list[str] | None) -> pa.Table:
    options = _csv_options(place, as_text, only)
    try:
        return _with_gaps(pyarrow.csv.read_csv(_checked(place, options), **options))
    except pa.ArrowInvalid:
        options["read_options"].use_threads = False  # on one thread Arrow knows the number of the row
    try:
        return _with_gaps(pyarrow.csv.read_csv(_checked(place, options), **options))
    except pa.ArrowInvalid as error:
        column = re.search(r"CSV column #(\d+).*invalid UTF8", str(error))
        if column is not None:
            name = (only or _header(place).names)[int(column[1])]
            raise ValueError(Message("column.bytes", column=name)) from None
        raise ValueError(Message("file.csv-row", file=str(place), why=str(error))) from None


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


class CsvOptions(TypedDict):
    """How Arrow reads a CSV file."""

    read_options: pyarrow.csv.ReadOptions
    parse_options: pyarrow.csv.ParseOptions
    convert_options: pyarrow.csv.ConvertOptions


def _csv_options(place: Place, as_text: Collection[str] | None, only: list[str] | None) -> CsvOptions:
    delimiter, names, size, odd, skipped = _header(place)
    _require(names, only, place)
    read = pyarrow.csv.ReadOptions(block_size=max(2**20, 8 * size), skip_rows=skipped)  # a line must fit in a block
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
            column_types=dict.fromkeys(names if as_text is None else as_text, pa.string()),
        ),
    }


class Header(NamedTuple):
    """What the first record of a CSV file tells."""

    delimiter: str
    names: list[str]
    size: int
    """How long the record is."""
    odd: bool
    """Whether a column had no name."""
    skipped: int
    """Lines before it."""


def _header(place: Place) -> Header:
    """Return the delimiter that the first record has most of (comma, semicolon, tab), and the column names.

    Delimiters and line ends between quotes belong to a name. A first line `sep=;`, which Excel writes and reads, tells
    the delimiter and is skipped.
    """
    try:
        told, content = _first_record(place)
        record = content.decode()
        delimiter = told or max(",;\t", key=_QUOTED.sub("", record).count)
        names = next(csv.reader(io.StringIO(record, newline=""), delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise ValueError(Message("file.not-text", file=str(place))) from None
    except (OSError, csv.Error) as error:
        raise ValueError(Message("file.unreadable", file=str(place), why=str(error))) from None
    if not any(name.strip() for name in names):
        raise ValueError(Message("file.empty", file=str(place)))
    if "\0" in record:
        raise ValueError(Message("file.nul-names", file=str(place)))
    named = _named(names)
    return Header(delimiter, named, len(record), named != names, int(bool(told)))


_QUOTED = re.compile(r'(?:^|(?<=[,;\t]))"(?:[^"]|"")*+"')  # quotes are quotes at the beginning of a field
_SEPARATOR = re.compile(rb'("?)sep=([\t !#-/:-@[-`{-~])\1[,;\t]*(?:\r\n?|\n)', re.IGNORECASE)
_LONGEST_HEADER = 2**24


def _record(marks: bytes) -> re.Pattern[bytes]:
    """Return what matches a record with its line end, where one of the marks divides its fields."""
    field = rb'(?:"(?:[^"]|"")*+"[^' + marks + rb'\r\n]*+|[^"' + marks + rb"\r\n][^" + marks + rb"\r\n]*+)?"
    return re.compile(field + rb"(?:[" + marks + rb"]" + field + rb")*+[\r\n]")


def _first_record(place: Place) -> tuple[str, bytes]:
    """Return the delimiter, if a line tells it, and what follows up to the first line end not between quotes."""
    content, told, pattern = b"", "", _record(rb",;\t")
    with opened_text(place) as stream:
        while len(content) < _LONGEST_HEADER:
            more = stream.read(max(2**20, len(content)))
            content = (content + more).removeprefix(codecs.BOM_UTF8)
            separator = None if told else _SEPARATOR.match(content)
            if separator:
                told, content = separator[2].decode(), content[separator.end() :]
                pattern = _record(re.escape(separator[2]))
            record = pattern.match(content)
            if record:
                return told, record.group()
            if not more:
                break
    if b'"' in content and not pattern.match(content + b"\n"):
        raise ValueError(Message("file.quote-names", file=str(place)))
    return told, content


def _checked(place: Place, options: CsvOptions) -> Checked:
    """Return the bytes of a CSV file, looked at on their way."""
    delimiter, names, *_ = _header(place)
    return Checked(opened_text(place), place, delimiter, len(names), options["read_options"].block_size)


def _require(names: list[str], only: list[str] | None, where: object) -> None:
    known = set(names)
    absent = [name for name in only or () if name not in known]
    if absent:
        raise ValueError(lacks(where, absent, names))
    twice = [name for name in only or () if names.count(name) > 1] if len(known) < len(names) else []
    if twice:
        raise ValueError(Message("twice", where=named_source(where), name=twice[0]))


class ParquetFiles:
    """Parquet files with the same columns, one after the other, read as one."""

    def __init__(self, files: list[Path], options: dict[str, Any]) -> None:
        self._files, self._options = files, options
        self.schema_arrow = pyarrow.parquet.read_schema(files[0])

    def read(self, columns: list[str] | None) -> pa.Table:
        """Return the columns of all files."""
        return pa.concat_tables([self._of(file).read(columns) for file in self._files])

    def iter_batches(self, size: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the files in batches."""
        for file in self._files:
            yield from self._of(file).iter_batches(size, columns=columns)

    def _of(self, file: Path) -> pyarrow.parquet.ParquetFile:
        return pyarrow.parquet.ParquetFile(file, **self._options)


@contextmanager
def _parquet(path: Place, in_parts: bool = False) -> "Iterator[pyarrow.parquet.ParquetFile | ParquetFiles]":
    """Open a file; to be read in parts, each column through a small buffer, however large its row groups are."""
    options: dict[str, Any] = {"pre_buffer": False, "buffer_size": 2**16} if in_parts else {}
    try:
        if isinstance(path, Path) and (files := parquet_files(path)):
            yield ParquetFiles(files, options)
            return
        with pyarrow.parquet.ParquetFile(path if isinstance(path, Path) else opened(path), **options) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(Message("file.parquet", file=str(path), why=str(error))) from None

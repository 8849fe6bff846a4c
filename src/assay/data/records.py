"""Tables in files that know the types of their cells and are read as a whole: JSON, JSON lines, Excel."""

import json
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import BinaryIO, cast

import pyarrow as pa

from assay.data.kinds import MIXED, as_text
from assay.data.places import ByteStream, Place, opened, opened_text
from assay.messages import Message

_MISSING_PACKAGE = "reading Excel files needs openpyxl: pip install 'assay[excel]'."
_EMPTY_CELLS = 2**21  # cells of a table that may be empty, however few are filled
_FILLED_SHARE = 50  # of so many cells of a larger table, one must be filled
_SHEET_ROWS = 2**20  # rows that a sheet of Excel can have
_PACKED_MOST = 1032  # bytes that deflate makes of one, at most


def from_records(records: Sequence[object], where: object, only: Collection[str] | None = None) -> pa.Table:
    """Return the table of records, each a mapping of column names to cells; a column that one lacks is missing there.

    With `only`, other columns are left out.

    >>> from_records([{"a": 1, "b": "x"}, {"a": 2.5}], "here").to_pydict()
    {'a': [1.0, 2.5], 'b': ['x', None]}
    """
    mappings: list[Mapping[str, object]] = []
    for i, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise ValueError(Message("file.record", file=str(where), row=i))
        mappings.append(record)
    names = dict.fromkeys(str(name) for record in mappings for name in record if only is None or name in only)
    if len(names) * len(mappings) > max(_EMPTY_CELLS, _FILLED_SHARE * sum(map(len, mappings))):
        raise ValueError(Message("file.sparse", file=str(where), rows=len(mappings), columns=len(names)))
    return _table([(name, [record.get(name) for record in mappings]) for name in names])


def _table(columns: Sequence[tuple[str, Sequence[object]]]) -> pa.Table:
    """Return the table; a column of which some cells alone are numbers says so, since all became text."""
    arrays = [cells(values, name) for name, values in columns]
    fields = [
        pa.field(name, array.type, metadata=MIXED if _is_mixed(array, values) else None)
        for array, (name, values) in zip(arrays, columns, strict=True)
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def _is_mixed(array: pa.Array, values: Sequence[object]) -> bool:
    return pa.types.is_string(array.type) and any(type(value) in (int, float) for value in values)


def cells(values: Sequence[object], name: str) -> pa.Array:
    """Return the cells of a column: numbers, dates, durations or truth values where all are, else text, as are whole
    numbers that doubles do not distinguish."""
    kinds = {type(value) for value in values if value is not None}
    if (
        kinds <= {int, float}
        and kinds
        and not any(type(value) is int and 2**53 < abs(value) < 2**1023 for value in values)
    ):
        try:
            return pa.array([float(cell) if isinstance(cell, (int, float)) else None for cell in values], pa.float64())
        except OverflowError:
            raise ValueError(Message("file.digits", column=name)) from None
    if len(kinds) == 1 and kinds <= {bool, datetime, date, time, timedelta}:
        return pa.array(values)
    if kinds & {dict, list}:
        raise ValueError(Message("file.lists", column=name))
    return pa.array([None if value is None else _spelled(value) for value in values], pa.string())


def _spelled(value: object) -> str | None:
    """Return a cell as text; a number as it is spelled in a column of numbers alone, whatever is beside it."""
    if isinstance(value, float):
        text: str | None = as_text(pa.chunked_array([[value]], pa.float64()))[0].as_py()
        return text
    return value.isoformat() if isinstance(value, (datetime, date, time)) else str(value)


def from_json(text: str | bytes) -> object:
    """Return what JSON text holds; a record that has a key twice is refused, of which Python would keep the last.

    >>> from_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    ValueError: a record has the key 'a' twice.
    """
    return json.loads(text, object_pairs_hook=_each_once)


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"a record has the key {twice!r} twice.")
    return record


def read_json(place: Place, lines: bool) -> pa.Table:
    """Return the table of a JSON file: a list of records, or one record a line."""
    with opened_text(place) as stream:
        text = stream.read().decode("utf-8-sig")
    try:
        results = [from_json(line) for line in text.split("\n") if line.strip()] if lines else from_json(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(Message("file.json", file=str(place), why=str(error))) from None
    if isinstance(results, dict):
        results = [results]
    if not isinstance(results, list) or not results:
        raise ValueError(Message("file.records", file=str(place)))
    return from_records(results, place)


def read_excel(place: Place) -> pa.Table:
    """Return the table on the first sheet of a workbook, its first row the names; formulas by their last values."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ImportError(_MISSING_PACKAGE) from None
    with opened(place) as stream:
        try:
            book = load_workbook(stream, read_only=True, data_only=True)
            rows = list(_filled(book.worksheets[0].iter_rows(values_only=True), _unpacked(stream), place))
        except _Sparse as error:
            raise ValueError(error.args[0]) from None
        except Exception as error:  # whatever a damaged workbook makes a ZIP and an XML reader raise
            raise ValueError(Message("file.excel", file=str(place), why=str(error))) from None
    if not rows:
        raise ValueError(Message("file.excel-empty", file=str(place)))
    return _sheet(rows[0], rows[1:])


class _Sparse(Exception):
    """A sheet has far more empty cells than its file has content."""


def _unpacked(stream: ByteStream) -> int:
    """Return how many bytes a workbook has at most when it is unpacked."""
    with zipfile.ZipFile(cast(BinaryIO, stream)) as archive:
        return sum(min(item.file_size, _PACKED_MOST * item.compress_size) for item in archive.infolist())


def _filled(rows: Iterable[Sequence[object]], size: int, where: object) -> Iterator[Sequence[object]]:
    """Yield the rows with a cell that is filled; a row that the sheet leaves out is one and the same object each time.

    A cell takes several bytes of the sheet. One cell far to the right makes thousands of a row, and one far down
    millions of rows, so that both are limited by what the file holds.
    """
    empty: Sequence[object] | None = None
    looked_at, width = 0, 0
    for number, row in enumerate(rows):
        width = max(width, len(row))
        if number >= _SHEET_ROWS or looked_at > max(_EMPTY_CELLS, size):
            raise _Sparse(Message("file.sparse", file=str(where), rows=number, columns=width))
        if row is empty:
            continue
        looked_at += len(row)
        if any(cell is not None for cell in row):
            yield row
        else:
            empty = row


def _sheet(header: Sequence[object], rows: Iterable[Sequence[object]]) -> pa.Table:
    """Return the columns below a header; those without a name and without cells are none."""
    columns = list(zip(*rows, strict=False)) or [()] * len(header)
    kept = [
        (_spelled(name) or f"column {i + 1} (unnamed)", column)
        for i, (name, column) in enumerate(zip(header, columns, strict=False))
        if name is not None or any(cell is not None for cell in column)
    ]
    return _table(kept)

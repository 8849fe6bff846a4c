"""Tables in files that know the types of their cells and are read as a whole: JSON, JSON lines, Excel."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

import pyarrow as pa

from assay.data.kinds import MIXED
from assay.data.places import Place, opened, opened_text
from assay.messages import Message

_MISSING_PACKAGE = "reading Excel files needs openpyxl: pip install 'assay[excel]'."


def from_records(records: Sequence[Any], where: Any) -> pa.Table:
    """Return the table of records, each a mapping of column names to cells; a column that one lacks is missing there.

    >>> from_records([{"a": 1, "b": "x"}, {"a": 2.5}], "here").to_pydict()
    {'a': [1.0, 2.5], 'b': ['x', None]}
    """
    for i, one in enumerate(records):
        if not isinstance(one, Mapping):
            raise ValueError(Message("file.record", file=str(where), row=i))
    names = dict.fromkeys(str(name) for one in records for name in one)
    return _table([(name, [one.get(name) for one in records]) for name in names])


def _table(columns: Sequence[tuple[str, Sequence[Any]]]) -> pa.Table:
    """Return the table; a column of which some cells alone are numbers says so, since all became text."""
    arrays = [cells(values, name) for name, values in columns]
    fields = [
        pa.field(name, array.type, metadata=MIXED if _is_mixed(array, values) else None)
        for array, (name, values) in zip(arrays, columns, strict=True)
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def _is_mixed(array: pa.Array, values: Sequence[Any]) -> bool:
    return pa.types.is_string(array.type) and any(type(one) in (int, float) for one in values)


def cells(values: Sequence[Any], name: str) -> pa.Array:
    """Return the cells of a column: numbers, dates, durations or truth values where all are, else text, as are whole
    numbers that doubles do not distinguish."""
    kinds = {type(one) for one in values if one is not None}
    if kinds <= {int, float} and kinds and not any(type(one) is int and 2**53 < abs(one) < 2**1023 for one in values):
        try:
            return pa.array([None if one is None else float(one) for one in values], pa.float64())
        except OverflowError:
            raise ValueError(Message("file.digits", column=name)) from None
    if len(kinds) == 1 and kinds <= {bool, datetime, date, time, timedelta}:
        return pa.array(values)
    if kinds & {dict, list}:
        raise ValueError(Message("file.lists", column=name))
    return pa.array([None if one is None else _spelled(one) for one in values], pa.string())


def _spelled(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return value.isoformat() if isinstance(value, (datetime, date, time)) else str(value)


def read_json(place: Place, lines: bool) -> pa.Table:
    """Return the table of a JSON file: a list of records, or one record a line."""
    with opened_text(place) as stream:
        text = stream.read().decode("utf-8-sig")
    try:
        found = [json.loads(line) for line in text.splitlines() if line.strip()] if lines else json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(Message("file.json", file=str(place), why=str(error))) from None
    if isinstance(found, dict):
        found = [found]
    if not isinstance(found, list) or not found:
        raise ValueError(Message("file.records", file=str(place)))
    return from_records(found, place)


def read_excel(place: Place) -> pa.Table:
    """Return the table on the first sheet of a workbook, its first row the names; formulas by their last values."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ImportError(_MISSING_PACKAGE) from None
    with opened(place) as stream:
        try:
            book = load_workbook(stream, read_only=True, data_only=True)
            rows = list(book.worksheets[0].iter_rows(values_only=True))
        except Exception as error:  # whatever a damaged workbook makes a ZIP and an XML reader raise
            raise ValueError(Message("file.excel", file=str(place), why=str(error))) from None
    rows = [row for row in rows if any(cell is not None for cell in row)]
    if not rows:
        raise ValueError(Message("file.excel-empty", file=str(place)))
    return _sheet(rows[0], rows[1:])


def _sheet(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Return the columns below a header; those without a name and without cells are none."""
    columns = list(zip(*rows, strict=False)) or [()] * len(header)
    kept = [
        (f"column {i + 1} (unnamed)" if name is None else _spelled(name), column)
        for i, (name, column) in enumerate(zip(header, columns, strict=False))
        if name is not None or any(cell is not None for cell in column)
    ]
    return _table(kept)

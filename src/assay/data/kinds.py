"""An Arrow column becomes a typed column: by a schema, by what the user says of it, or by what its cells hold."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from assay.data import dates, written
from assay.data.columns import MORE_KINDS, Column, ColumnType, Schema
from assay.data.table import Table, fitted, listed
from assay.data.words import is_prose


class Wish(NamedTuple):
    """How the columns of a table are to be read."""

    nominal: Collection[str] = ()
    levels: Mapping[str, Sequence[str]] = {}
    """Levels of ordered columns."""
    schema: Schema | None = None
    """Kinds and forms of columns that a model knows; then there may be no rows, and columns without values."""
    exact: bool = False
    """Each column as its type says, none left out: dates are refused, and text holds names."""
    knows_numbers: bool = True
    """Whether the source could have said which columns are numbers; a CSV file cannot."""


def typed(table: pa.Table, wish: Wish) -> Table:
    """Return the columns with their types; those that say nothing are left out with a sentence."""
    names = table.column_names
    wanted = {column.name: column for column in wish.schema or ()}
    _check_names(names, wish)
    if wish.schema is None and not table.num_rows:
        raise ValueError(f"the table has no rows, only the columns {listed(names)}.")
    columns, left_out = [], {}
    for i, (name, values) in enumerate(zip(names, table.itercolumns(), strict=True)):
        if wish.schema is None and not wish.exact and (why := _says_nothing(name, values, i)):
            left_out[name] = why
        else:
            columns.append(_column(name, values, wish, wanted.get(name)))
    return Table(columns, left_out, n_rows=table.num_rows)


def _check_names(names: Sequence[str], wish: Wish) -> None:
    places: dict[str, int] = {}
    for i, name in enumerate(names):
        if not name.strip():
            raise ValueError(f"column {i + 1} has no name; give it one in the first line.")
        if name in places:
            raise ValueError(f"two columns are called {name!r} (columns {places[name] + 1} and {i + 1}); rename one.")
        places[name] = i
    for name in [*wish.nominal, *wish.levels]:
        if name not in places:
            raise ValueError(f"there is no column {name!r} to read as categories; the columns are {listed(names)}.")


UNNAMED = re.compile(r"column \d+ \(unnamed\)|Unnamed: \d+|__index_level_0__")


def _says_nothing(name: str, values: pa.ChunkedArray, place: int) -> str:
    """Return why a column is left out before it is read; empty if it is not."""
    if values.null_count == len(values):
        return "it has no value in any row."
    if place == 0 and UNNAMED.fullmatch(name) and types.is_integer(values.type) and not values.null_count:
        found = values.to_numpy()
        if np.array_equal(found, np.arange(len(found)) + found[0]) and found[0] in (0, 1):
            return "it has no name and counts the rows; a frame's index was written with it."
    return ""


_NOT_TEXT = "column {!r} holds bytes that are not UTF-8 text; save the file as UTF-8."


def _column(name: str, values: pa.ChunkedArray, wish: Wish, wanted: ColumnType | None) -> Column:
    try:
        if wanted is not None:
            return _as_wanted(values, wanted)
        return _as_told(name, values, wish)
    except pa.ArrowException as error:
        raise ValueError(f"column {name!r} holds {values.type}, which cannot be read: {error}") from None
    except UnicodeDecodeError:  # a Parquet file may call bytes text that are none
        raise ValueError(_NOT_TEXT.format(name)) from None


def _as_wanted(values: pa.ChunkedArray, wanted: ColumnType) -> Column:
    """Return a column of a later table with the kind that the schema gives; levels are its own."""
    name, values = wanted.name, _decoded(values)
    if _is_number(values.type) and wanted.kind == "numeric":
        return _numeric(name, values, wanted.written)
    if types.is_temporal(values.type) and wanted.kind not in ("nominal", "ordered"):
        return fitted(_moments(name, values), wanted)[0]
    _refuse_kind(name, values.type)
    if types.is_null(values.type) and wanted.kind == "numeric":
        return _numeric(name, values, wanted.written)
    coded = _coded(name, _text(values), None, "nominal")
    spelled = wanted.written or wanted.kind in MORE_KINDS
    return fitted(coded, wanted)[0] if spelled else coded


def _as_told(name: str, values: pa.ChunkedArray, wish: Wish) -> Column:
    """Return a column by what the user says of it, else by its type and its cells."""
    levels, categories = wish.levels.get(name), types.is_dictionary(values.type)
    kind = "nominal" if levels is None else "ordered"
    if categories and values.type.ordered and levels is None and values.num_chunks:
        whole = values.unify_dictionaries().chunk(0).dictionary
        levels, kind = whole.cast(pa.string()).to_pylist(), "ordered"
    values = _decoded(values)
    if values.null_count == len(values):
        raise ValueError(f"column {name!r} has no value in any row; leave it out.")
    said = name in wish.nominal or levels is not None
    if types.is_temporal(values.type) and not said and not wish.exact:
        return _moments(name, values)
    _refuse_kind(name, values.type)
    if _is_number(values.type) and not said and not categories:
        return _numeric(name, values)
    is_text = types.is_string(values.type) or types.is_large_string(values.type) or types.is_string_view(values.type)
    if is_text and not said and not categories and not wish.exact:
        return _from_text(name, values, wish.knows_numbers)
    return _coded(name, _text(values), levels, kind)


def _decoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(values.type.value_type) if types.is_dictionary(values.type) else values


def _is_number(kind: pa.DataType) -> bool:
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def _from_text(name: str, values: pa.ChunkedArray, knows_numbers: bool) -> Column:
    """Return a column of text as what it holds: numbers, dates, prose or names."""
    cells = written.cells(values)
    style = written.style_of(cells, typed_as_text=knows_numbers)
    if style is not None:
        read = written.numbers(cells.texts, style)
        kind = ColumnType(name, "numeric", (), tuple(style))
        return Column(kind, _spread(read.numbers, cells.codes), written.note(cells, style, read))
    form = dates.form_of(cells)
    if form is not None:
        read = dates.seconds(cells.texts, form[0])
        bad = int(cells.counts[read.bad].sum())
        said = [f"dates written like {form[0]}", form[1], f"{bad} cells that are no dates are gaps" if bad else ""]
        kind = ColumnType(name, "date", (), (form[0],))
        return Column(kind, _spread(read.numbers, cells.codes), "; ".join(filter(None, said)))
    column = _coded(name, values.cast(pa.string()), None, "nominal")
    if is_prose(column.type.levels, len(values)):
        return Column(ColumnType(name, "text"), column.data, "free text, read as words", column.type.levels)
    return column


def _spread(found: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return for each row what was found for its text; NaN for a row without one."""
    return np.append(found, np.nan)[codes]


def _moments(name: str, values: pa.ChunkedArray) -> Column:
    """Return dates as seconds since 1970, times of day and durations as hours."""
    if types.is_timestamp(values.type) or types.is_date(values.type):
        return Column(ColumnType(name, "date", (), (dates.ISO,)), dates.from_arrow(values))
    unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[values.type.unit]
    whole = values.cast(pa.int32()) if types.is_time32(values.type) else values
    ticks = whole.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy()
    kind = "durations" if types.is_duration(values.type) else "times of the day"
    return Column(ColumnType(name, "numeric", (), (written.CLOCK,)), ticks / unit / 3600.0, f"{kind}, read as hours")


def _numeric(name: str, values: pa.ChunkedArray, form: tuple[str, ...] = ()) -> Column:
    data = values.cast(pa.float64(), safe=False).to_numpy()
    if not data.flags.writeable or not data.flags.owndata:
        data = data.copy()
    if np.isinf(data).any():
        row = int(np.argmax(np.isinf(data)))
        raise ValueError(f"column {name!r} has an infinite value in row {row} (counted from 0); correct it.")
    return Column(ColumnType(name, "numeric", (), form), data)


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
            f"column {name!r} holds dates or times ({kind}), which this method does not read; derive numbers from "
            "it, such as the year, the month or the days since a fixed day, and leave it out."
        )
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        raise ValueError(_NOT_TEXT.format(name))
    if types.is_nested(kind):
        raise ValueError(f"column {name!r} holds {kind}; give each value a column of its own.")

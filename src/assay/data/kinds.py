"""An Arrow column becomes a typed column: by a schema, by what the user says of it, or by what its cells hold."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from assay.data import dates, number_formats
from assay.data.columns import MORE_KINDS, Column, ColumnType, Schema
from assay.data.table import Table, bad_cells_note, fitted, listed, refuse_bad_cells
from assay.data.words import is_prose
from assay.messages import Message

MIXED = {b"cells": b"text and numbers"}
"""What a source that knows types says of a column of text in which some cells were numbers."""


class Wish(NamedTuple):
    """How the columns of a table are to be read."""

    nominal: Collection[str] = ()
    levels: Mapping[str, Sequence[str]] = {}
    """Levels of ordered columns."""
    forms: Mapping[str, tuple[str, ...]] = {}
    """How cells of numbers and dates are written elsewhere, of columns that hold them as such here."""
    schema: Schema | None = None
    """Kinds and forms of columns that a model knows; then there may be no rows, and columns without values."""
    lenient: bool = False
    """Whether a column of which many cells cannot be read as the schema says is read nevertheless, as gaps."""
    exact: bool = False
    """Each column as its type says, none left out: dates are refused, and text holds names."""
    knows_numbers: bool = True
    """Whether the source could have said which columns are numbers; a CSV file cannot."""

    def about(self, names: Collection[str]) -> "Wish":
        """Return what is said of these columns."""
        levels = {name: level for name, level in self.levels.items() if name in names}
        forms = {name: form for name, form in self.forms.items() if name in names}
        return self._replace(nominal={name for name in self.nominal if name in names}, levels=levels, forms=forms)


def typed(table: pa.Table, wish: Wish) -> Table:
    """Return the columns with their types; those that say nothing are left out with a sentence."""
    names = table.column_names
    wanted = {column.name: column for column in wish.schema or ()}
    check_names(names, wish)
    if wish.schema is None and not table.num_rows:
        raise ValueError(Message("no-rows", names=listed(names)))
    columns, left_out = [], {}
    for i, (name, values) in enumerate(zip(names, table.itercolumns(), strict=True)):
        if wish.schema is None and not wish.exact and (why := _says_nothing(name, values, i)):
            left_out[name] = why
        else:
            mixed = table.schema.field(i).metadata == MIXED
            known = wish._replace(knows_numbers=wish.knows_numbers and not mixed)
            columns.append(_column(name, values, known, wanted.get(name)))
    return Table(columns, left_out, n_rows=table.num_rows)


def check_names(names: Sequence[str], wish: Wish) -> None:
    """Refuse columns without a name, two of one name, and wishes about columns that are not there."""
    places: dict[str, int] = {}
    for i, name in enumerate(names):
        if not name.strip():
            raise ValueError(Message("unnamed", place=i + 1))
        if name in places:
            raise ValueError(Message("same-name", name=name, first=places[name] + 1, second=i + 1))
        places[name] = i
    for name in [*wish.nominal, *wish.levels]:
        if name not in places:
            raise ValueError(Message("no-column.nominal", name=name, names=listed(names)))


UNNAMED = re.compile(r"column \d+ \(unnamed\)|Unnamed: \d+|__index_level_0__")


def _says_nothing(name: str, values: pa.ChunkedArray, place: int) -> str:
    """Return why a column is left out before it is read; empty if it is not."""
    if values.null_count == len(values):
        return Message("column.empty")
    if place == 0 and UNNAMED.fullmatch(name) and not values.null_count and _counts_up(values):
        return Message("column.index")
    return ""


def _counts_up(values: pa.ChunkedArray) -> bool:
    """Tell whether these are whole numbers from 0 or more on, each larger than the one before."""
    result = values.to_numpy() if types.is_integer(values.type) else None
    if types.is_string(values.type):
        result = number_formats.plain_numbers(values)
    return result is not None and bool(
        np.all(np.diff(result, prepend=-1.0) >= 1) and np.all(result == np.round(result))
    )


def _column(name: str, values: pa.ChunkedArray, wish: Wish, wanted: ColumnType | None) -> Column:
    try:
        if wanted is not None:
            return _as_wanted(values, wanted, wish.lenient)
        return _as_told(name, values, wish)
    except pa.ArrowException as error:
        raise ValueError(Message("column.unreadable", column=name, kind=str(values.type), why=str(error))) from None
    except UnicodeDecodeError:  # a Parquet file may call bytes text that are none
        raise ValueError(Message("column.bytes", column=name)) from None


def _as_wanted(values: pa.ChunkedArray, wanted: ColumnType, lenient: bool) -> Column:
    """Return a column of a later table with the kind that the schema gives; levels are its own."""
    name, values = wanted.name, decoded(values)
    if is_number(values.type) and wanted.kind == "numeric":
        return _numeric(name, values, wanted.written)
    if types.is_temporal(values.type) and wanted.kind in ("numeric", "date"):
        return _moments_as_wanted(values, wanted)
    _refuse_kind(name, values.type)
    if types.is_null(values.type) and wanted.kind == "numeric":
        return _numeric(name, values, wanted.written)
    if wanted.kind == "numeric":
        return _parsed_numbers(values.cast(pa.string()), wanted, lenient)
    coded = _coded(name, _text(values), None, "nominal")
    return fitted(coded, wanted, lenient)[0] if wanted.kind in MORE_KINDS else coded


def _moments_as_wanted(values: pa.ChunkedArray, wanted: ColumnType) -> Column:
    """Return dates where dates are wanted, times of the day and durations where hours are; refuse what is neither."""
    result = _moments(wanted.name, values)
    hours = wanted.written == (number_formats.CLOCK,)
    if result.type.kind != wanted.kind or (wanted.kind == "numeric" and not hours):
        code = "column.not-dates" if wanted.kind == "date" else "column.not-numbers"
        raise ValueError(Message(code, column=wanted.name, kind=str(values.type)))
    return Column(wanted, result.data, result.note)


def _parsed_numbers(values: pa.ChunkedArray, wanted: ColumnType, lenient: bool) -> Column:
    """Return text as the numbers that it is wanted as."""
    read = number_formats.read_column(values, wanted.written)
    if not lenient:
        refuse_bad_cells(read.bad, values.is_valid().to_numpy(), wanted, lambda row: values[row].as_py())
    return Column(wanted, read.numbers, bad_cells_note(read.bad, "numbers"))


def _as_told(name: str, values: pa.ChunkedArray, wish: Wish) -> Column:
    """Return a column by what the user says of it, else by its type and its cells."""
    levels, categories = wish.levels.get(name), types.is_dictionary(values.type)
    kind = "nominal" if levels is None else "ordered"
    if categories and values.type.ordered and levels is None and values.num_chunks:
        levels, kind = _occurring(values), "ordered"
    values = decoded(values)
    if values.null_count == len(values):
        raise ValueError(Message("column.all-missing", column=name))
    is_nominal = name in wish.nominal or levels is not None
    if types.is_temporal(values.type) and not is_nominal and not wish.exact:
        return _moments(name, values, wish.forms.get(name))
    _refuse_kind(name, values.type)
    if is_number(values.type) and not is_nominal and not categories:
        if not wish.exact and _beyond_doubles(values):
            return replace(_coded(name, _text(values), None, "nominal"), note=number_formats.TOO_LONG)
        return _numeric(name, values, wish.forms.get(name, ()))
    is_text = types.is_string(values.type) or types.is_large_string(values.type) or types.is_string_view(values.type)
    if is_text and not is_nominal and not categories and not wish.exact:
        return _from_text(name, values, wish.knows_numbers)
    return _coded(name, _text(values), levels, kind)


def _occurring(values: pa.ChunkedArray) -> list[str]:
    """Return the categories that these rows have, in their order: whoever made the type may have seen other rows."""
    whole = values.unify_dictionaries().chunk(0).dictionary
    there = set(pc.unique(as_text(values)).to_pylist())
    return [level for level in whole.cast(pa.string()).to_pylist() if level in there]


def decoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of categories as what the categories are; every other column as it is."""
    if not types.is_dictionary(values.type):
        return values
    kind = values.type.value_type
    kind = pa.string() if types.is_string_view(kind) else kind  # Arrow does not decode views
    chunks = [pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(kind)) for chunk in values.chunks]
    return pa.chunked_array([chunk.dictionary_decode() for chunk in chunks], kind)


def is_number(kind: pa.DataType) -> bool:
    """Tell whether an Arrow type holds numbers."""
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def as_doubles(values: pa.ChunkedArray) -> np.ndarray:
    """Return a column of numbers as the doubles nearest to them; NaN for none.

    >>> as_doubles(pa.chunked_array([pa.array(["100000.01"]).cast(pa.decimal128(20, 2))]))
    array([100000.01])
    """
    if types.is_decimal(values.type):
        values = values.cast(pa.string())  # Arrow divides the digits by a power of ten, which rounds twice
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy())


def _beyond_doubles(values: pa.ChunkedArray) -> bool:
    """Tell whether there are whole numbers beyond 2^53, of which doubles would make equal ones of different ones."""
    whole = types.is_integer(values.type) or types.is_decimal(values.type)
    if not whole or values.null_count == len(values):
        return False
    ends = pc.min_max(values)
    largest = max(abs(int(ends["min"].as_py())), abs(int(ends["max"].as_py())))
    if largest <= 2**53 or types.is_integer(values.type):
        return largest > 2**53
    result = pc.unique(values).drop_null().to_pylist()
    return any(abs(item) > 2**53 and item == item.to_integral_value() for item in result)


def _from_text(name: str, values: pa.ChunkedArray, knows_numbers: bool) -> Column:
    """Return a column of text as what it holds: numbers, dates, prose or names."""
    plain = None if knows_numbers else number_formats.plain_numbers(values)
    if plain is not None:
        return Column(ColumnType(name, "numeric"), plain, number_formats.merged(values))
    row = number_formats.infinite_row(values)
    if row is not None:
        raise ValueError(Message("column.infinite", column=name, row=row))
    cells = number_formats.cells(values)
    style = number_formats.style_of(cells, typed_as_text=knows_numbers)
    if style is not None:
        read = number_formats.numbers(cells.texts, style)
        kind = ColumnType(name, "numeric", (), () if style.plain else tuple(style))
        return Column(kind, _spread(read.numbers, cells.codes), number_formats.note(cells, style, read))
    if number_formats.is_clock(cells):
        read = number_formats.read_as(cells.texts, (number_formats.CLOCK,))
        kind = ColumnType(name, "numeric", (), (number_formats.CLOCK,))
        return Column(kind, _spread(read.numbers, cells.codes), Message("read.times"))
    form = dates.form_of(cells)
    if form is not None:
        read = dates.seconds(cells.texts, form[0])
        bad = int(cells.counts[read.bad].sum())
        notes = [Message("read.dates", example=form[0]), form[1], Message("gaps.dates", count=bad) if bad else ""]
        kind = ColumnType(name, "date", (), (form[0],))
        return Column(kind, _spread(read.numbers, cells.codes), number_formats.parts(notes))
    column = _coded(name, values.cast(pa.string()), None, "nominal")
    why = number_formats.why_names(cells)
    if not why and is_prose(column.type.levels, len(values)):
        return Column(ColumnType(name, "text"), column.data, Message("read.text"), column.type.levels)
    return replace(column, note=why)


def _spread(result: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return for each row what was found for its text; NaN for a row without one."""
    values: np.ndarray = np.append(result, np.nan)[codes]
    return values


def _moments(name: str, values: pa.ChunkedArray, form: tuple[str, ...] | None = None) -> Column:
    """Return dates as seconds since 1970, times of day and durations as hours."""
    if types.is_timestamp(values.type) or types.is_date(values.type):
        return Column(ColumnType(name, "date", (), form or (dates.ISO,)), dates.from_arrow(values))
    whole = values.cast(pa.duration("us") if types.is_duration(values.type) else pa.time64("us"), safe=False)
    ticks = whole.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy()
    holds = Message("read.durations") if types.is_duration(values.type) else Message("read.times")
    kind = ColumnType(name, "numeric", (), (number_formats.CLOCK,))
    return Column(kind, ticks / 1e6 / 3600.0, holds)


def _numeric(name: str, values: pa.ChunkedArray, form: tuple[str, ...] = ()) -> Column:
    data = as_doubles(values)
    if not data.flags.writeable or not data.flags.owndata:
        data = data.copy()
    if np.isinf(data).any():
        row = int(np.argmax(np.isinf(data)))
        raise ValueError(Message("column.infinite", column=name, row=row))
    return Column(ColumnType(name, "numeric", (), form), data)


def _coded(name: str, text: pa.ChunkedArray, levels: Sequence[str] | None, kind: str) -> Column:
    if levels is None:
        levels = sorted(pc.unique(text).drop_null().to_pylist())
    codes = pc.index_in(text, value_set=pa.array(levels, pa.string()))
    strange = pc.and_(pc.is_null(codes), pc.is_valid(text)).to_numpy()
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(Message("column.level", column=name, value=text[row].as_py(), row=row, levels=listed(levels)))
    return Column(ColumnType(name, kind, tuple(levels)), codes.cast(pa.float64()).to_numpy().astype(np.float64))


def as_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the cells of a column as they are spelled."""
    return _text(decoded(values))


def _text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if types.is_boolean(values.type):  # spelled as Python and pandas write them to a CSV file
        words = [pa.scalar(word) for word in ("True", "False")]
        return pa.chunked_array([pc.if_else(chunk, *words) for chunk in values.chunks], pa.string())
    if not types.is_floating(values.type):
        return values.cast(pa.string())
    values = values.cast(pa.float32()) if types.is_float16(values.type) else values
    values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)  # NaN is a missing name
    whole = pc.and_(pc.equal(pc.floor(values), values), pc.less_equal(pc.abs(values), float(2**53)))
    digits = pc.if_else(whole, values, pa.scalar(0, values.type)).cast(pa.int64()).cast(pa.string())
    return pc.if_else(whole, digits, values.cast(pa.string()))


def _refuse_kind(name: str, kind: pa.DataType) -> None:
    if types.is_temporal(kind):
        raise ValueError(Message("column.moments", column=name, kind=str(kind)))
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        raise ValueError(Message("column.bytes", column=name))
    if types.is_nested(kind):
        raise ValueError(Message("column.nested", column=name, kind=str(kind)))

"""A table before anything is decided about it: cells as the source holds them.

Kinds, formats and levels of columns are what some rows give (`RawTable.typed`), the training rows; every other row is
read with the schema that came of it (`RawTable.read_as`), hold-out rows and new rows alike. So nothing that turns a row
into numbers can know the row.
"""

import hashlib
from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike
from pyarrow import types

from assay.data import number_formats
from assay.data.columns import ColumnType, Schema
from assay.data.kinds import Wish, as_doubles, as_text, decoded, is_number, typed
from assay.data.table import THE_TABLE, Table, lacks, no_column


class RawTable:
    """Cells by column and row: text, or numbers, dates and categories where the source has such types.

    Parameters
    ----------
    arrow : pyarrow.Table
        The cells.
    wish : Wish
        Which columns are to be nominal, ordered or left out.
    note : str, default=""
        What reading the file did.
    """

    def __init__(self, arrow: pa.Table, wish: Wish, note: str = "") -> None:
        self.arrow, self.wish, self.note = _taken(arrow), wish, note  # what is to be said about the reading

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.arrow.num_rows)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.arrow.column_names)

    def require(self, name: str) -> None:
        """Raise ValueError if there is no such column; say which there are and which is closest.

        Parameters
        ----------
        name : str
            Name of the column.
        """
        if name not in self.names:
            alike = [item for item in self.names if item.lower() == name.lower()]
            close = alike or get_close_matches(name, self.names, n=1)
            raise ValueError(no_column(name, self.names, close))

    def take(self, rows: ArrayLike) -> "RawTable":
        """Return the rows that a mask or a list of row numbers selects."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return RawTable(self.arrow.take(pa.array(chosen, pa.int64())), self.wish, self.note)

    def select(self, names: Sequence[str]) -> "RawTable":
        """Return these columns."""
        known = set(self.names)
        absent = [name for name in names if name not in known]
        if absent:
            raise ValueError(lacks(THE_TABLE, absent, self.names))
        return RawTable(self.arrow.select(list(names)), self.wish.about(set(names)), self.note)

    def without(self, *names: str) -> "RawTable":
        """Return the other columns."""
        left = set(names)
        return self.select([name for name in self.names if name not in left])

    def present(self, name: str) -> np.ndarray:
        """Return (rows,) bool: which cells of a column are there; NaN is not.

        Parameters
        ----------
        name : str
            Name of the column.
        """
        self.require(name)
        return np.asarray(pc.invert(pc.is_null(self.arrow.column(name), nan_is_null=True)).to_numpy())

    def told(self, column: ColumnType) -> np.ndarray:
        """Return (rows,) bool: which cells of a column say anything, be it readable as the column's type or not."""
        there = self.present(column.name)
        if column.kind == "numeric" and not is_number(decoded(self.arrow.column(column.name)).type):
            there &= ~number_formats.spelled_gaps(self.text(column.name).tolist())
        return there

    def text(self, name: str) -> np.ndarray:
        """Return (rows,) object: the cells of a column as text, None for those that are not there.

        Parameters
        ----------
        name : str
            Name of the column.
        """
        self.require(name)
        known = as_text(self.arrow.column(name)).dictionary_encode().unify_dictionaries()  # equal cells are one object
        if not known.num_chunks:
            return np.empty(0, dtype=object)
        words = np.array([*known.chunk(0).dictionary.to_pylist(), None], dtype=object)
        codes = [part.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False) for part in known.chunks]
        return np.asarray(words[np.concatenate(codes)])

    def as_names(self, name: str) -> "RawTable":
        """Return the table with a column whose cells are names, whatever they look like.

        Parameters
        ----------
        name : str
            Name of the column.
        """
        return RawTable(self.arrow, self.wish._replace(nominal={*self.wish.nominal, name}))

    def typed(self) -> Table:
        """Return the columns with the kinds, formats and levels that these rows give; those that say nothing are left
        out with a sentence."""
        return typed(self.arrow, self.wish)

    def read_as(self, schema: Schema, *, lenient: bool = False) -> Table:
        """Return the columns of a schema, with its kinds, formats and levels; each cell is read by itself.

        A cell that cannot be read is a gap; a column of which more than one in twenty cannot is refused, unless
        `lenient`. `Table.unknown` lists the values that are not among the levels.

        Parameters
        ----------
        schema : tuple of ColumnType
            Types of the columns.
        lenient : bool, default=False
            Whether cells that cannot be read are missing, whatever their share.
        """
        result = typed(self.select([column.name for column in schema]).arrow, Wish(schema=schema, lenient=lenient))
        return result.require_same_columns(schema)[0]

    def digest(self) -> str:
        """Return a digest of all cells."""
        result, sink = hashlib.blake2b(digest_size=20), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.arrow.schema) as writer:
            writer.write_table(self.arrow.combine_chunks())
        result.update(sink.getvalue())
        return result.hexdigest()

    def cells(self, name: str, kind: str) -> np.ndarray:
        """Return (rows,) cells of a column that is read as this kind, for who checks: text (object; None where there is
        none) or, where the source has such types and the kind is numeric or date, float64, datetime64, timedelta64.

        Parameters
        ----------
        name : str
            Name of the column.
        kind : str
            Kind that the column is read as.
        """
        self.require(name)
        values = decoded(self.arrow.column(name))
        if kind not in ("numeric", "date"):
            return self.text(name)
        if types.is_timestamp(values.type) or types.is_date(values.type):
            return np.asarray(values.cast(pa.timestamp("us"), safe=False).to_numpy())
        if types.is_time(values.type):
            ticks = values.cast(pa.time64("us"), safe=False).cast(pa.int64())
            return np.asarray(ticks.fill_null(np.iinfo(np.int64).min).to_numpy()).astype("timedelta64[us]")
        if types.is_duration(values.type):
            return np.asarray(values.cast(pa.duration("us"), safe=False).to_numpy())
        if is_number(values.type):
            return as_doubles(values)
        return self.text(name)


def _taken(table: pa.Table) -> pa.Table:
    """Return a table whose rows can be taken: Arrow cannot of views of text, nor of runs."""
    for i, field in enumerate(table.schema):
        if types.is_string_view(field.type):
            table = table.set_column(i, field.with_type(pa.string()), table.column(i).cast(pa.string()))
        elif types.is_run_end_encoded(field.type):
            chunks = [pc.run_end_decode(chunk) for chunk in table.column(i).chunks]
            kind = field.type.value_type
            table = table.set_column(i, field.with_type(kind), pa.chunked_array(chunks, kind))
    return table

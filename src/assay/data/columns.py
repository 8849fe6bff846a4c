"""Columns with a type: numeric, nominal (values without order), ordered (values with one), date, or text (prose).

The data of a column are doubles in every case: the numbers themselves, the position of the value in the column's list
of levels, seconds since the beginning of 1970, or the position of a text among the column's texts; NaN where a value
is missing. A nominal value that is not in the list is a *new level*: its position is the length of the list.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from assay.messages import Message

KINDS = ("numeric", "nominal", "ordered")
"""Kinds that every learner of tables reads; each is one column of doubles."""
MORE_KINDS = ("date", "text")
"""Kinds that an encoding turns into numbers: parts of a date, words of a text."""
NEW_LEVEL = "(new level)"
"""How a value is shown that is not in its column's list of levels."""
LARGEST = 1e150
"""Of the numbers with which a certificate holds; 1 / LARGEST is the least above zero."""


@dataclass(frozen=True)
class ColumnType:
    """Name, kind and levels of a column, and how its cells are written if not as plain numbers or words.

    A nominal or ordered column has levels. `written` belongs to the type so that later tables are read alike: of
    numbers the decimal sign, the sign between groups of digits, what stands before and what after them (see
    `data.number_formats`); of dates the format (`data.dates`).

    Parameters
    ----------
    name : str
        Name of the column.
    kind : str
        "numeric", "nominal", "ordered", "date" or "text".
    levels : tuple of str, default=()
        Levels of a nominal or ordered column.
    written : tuple of str
        How the cells are written, if not as plain numbers or words.
    """

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    written: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Column:
    """A column: its type, one double for each row, what reading it did, and the distinct texts if it is prose.

    Parameters
    ----------
    type : ColumnType
        Name, kind and levels.
    data : ndarray
        One number for each row; of a nominal column the number of its level.
    note : str, default=""
        What reading the column did.
    texts : tuple of str, default=()
        The distinct texts, if it is prose.
    """

    type: ColumnType
    data: np.ndarray
    note: str = ""
    texts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.type.name

    @property
    def missing(self) -> np.ndarray:
        """(rows,) bool."""
        missing: np.ndarray = np.isnan(self.data)
        return missing

    @property
    def unread(self) -> str:
        """What is to be said of cells that became missing values: what is neither number nor date, and numbers beyond
        `LARGEST`; "" if there are none."""
        said: list[str] = []
        if isinstance(self.note, Message):
            codes = [getattr(part, "code", "") for part in self.note.values.get("parts", [self.note])]
            said += [self.note] if not {"gaps.dates", "gaps.numbers", "gaps.words"}.isdisjoint(codes) else []
        count = int(np.count_nonzero(self.extreme()[0]))
        said += [Message("gaps.large", count=count)] if count else []
        return Message("read.parts", parts=said) if len(said) > 1 else (said or [""])[0]

    @property
    def new(self) -> np.ndarray:
        """(rows,) bool: which values are levels that the type does not list."""
        return self.data == len(self.type.levels) if self.type.kind == "nominal" else np.zeros(len(self.data), bool)

    def known(self) -> np.ndarray:
        """Return the data with NaN for new levels."""
        return np.where(self.new, np.nan, self.data) if self.type.kind == "nominal" else self.data

    def values(self) -> np.ndarray:
        """Return the numbers (float64), the dates (datetime64), or levels and texts (object; None where missing)."""
        if self.type.kind == "numeric":
            return self.data
        if self.type.kind == "date":
            whole = np.where(self.missing, 0, np.round(self.data * 1e6)).astype("datetime64[us]")
            return np.where(self.missing, np.datetime64("NaT", "us"), whole)
        words = self.texts if self.type.kind == "text" else (*self.type.levels, NEW_LEVEL)
        levels = np.array([*words, None], dtype=object)
        return levels[np.where(self.missing, len(words), self.data).astype(np.intp)]

    def extreme(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows have a number beyond `LARGEST`, and which one nearer to zero than 1 / `LARGEST`."""
        if self.type.kind != "numeric":
            return (none := np.zeros(len(self.data), dtype=bool)), none
        size = np.abs(self.data)
        return size > LARGEST, (size < 1 / LARGEST) & (size > 0)

    def in_range(self) -> "Column":
        """Return the column with what is beyond `LARGEST` missing, and 0 for what is nearer to zero than its inverse.

        Each cell is judged by itself: what becomes of a row does not depend on any other.
        """
        large, small = self.extreme()
        if not large.any() and not small.any():
            return self
        return Column(self.type, np.where(large, np.nan, np.where(small, 0.0, self.data)), self.note, self.texts)

    def take(self, rows: object) -> "Column":
        """Return the rows that a mask, a slice or a list of row numbers selects."""
        return Column(self.type, self.data[rows], self.note, self.texts)  # type: ignore[call-overload]


Schema = tuple[ColumnType, ...]


def schema_text(schema: Schema | None) -> np.ndarray:
    """Return name, kind and levels of each column as JSON text; empty for None, when all columns are numbers."""
    records = [[column.name, column.kind, list(column.levels)] for column in schema or ()]
    return np.array([json.dumps(record) for record in records], dtype=str)


def schema_from_text(texts: Iterable[str]) -> Schema | None:
    """Return the columns that `schema_text` wrote down; ValueError if the text is no such thing."""
    return tuple(_column_type(text) for text in texts) or None


def _column_type(text: str) -> ColumnType:
    name, kind, levels = json.loads(text)
    if kind not in KINDS or not isinstance(levels, list) or not all(isinstance(item, str) for item in (name, *levels)):
        raise ValueError("column_types_ must tell name, kind and levels of each column.")
    return ColumnType(name, kind, tuple(levels))

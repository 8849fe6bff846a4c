"""Columns with a type: numeric, nominal (values without order) or ordered (values with one).

The data of a column are doubles in every case: the numbers themselves, or the position of the value in the column's
list of levels; NaN where a value is missing.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

KINDS = ("numeric", "nominal", "ordered")


@dataclass(frozen=True)
class ColumnType:
    """Name, kind (numeric, nominal, ordered) and levels of a column; a numeric one has no levels."""

    name: str
    kind: str
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column: its type, and one double for each row (number, or position of the level; NaN if missing)."""

    type: ColumnType
    data: np.ndarray

    @property
    def name(self) -> str:
        return self.type.name

    @property
    def missing(self) -> np.ndarray:
        """(rows,) bool."""
        return np.isnan(self.data)

    def values(self) -> np.ndarray:
        """Return the numbers (float64), or the levels as text (object; None where missing)."""
        if self.type.kind == "numeric":
            return self.data
        levels = np.array([*self.type.levels, None], dtype=object)
        return levels[np.where(self.missing, len(self.type.levels), self.data).astype(np.intp)]


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
    if kind not in KINDS or not isinstance(levels, list) or not all(isinstance(one, str) for one in (name, *levels)):
        raise ValueError("column_types_ must tell name, kind and levels of each column.")
    return ColumnType(name, kind, tuple(levels))

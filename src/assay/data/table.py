"""Tables: named columns of equal length.

`Table.matrix()` is the table as one matrix of doubles: numbers, level positions, NaN where a value is missing. The
`Schema` gives a table read later the same columns and codes.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from assay.data.columns import Column, ColumnType, Schema


class ColumnSummary(NamedTuple):
    name: str
    kind: str
    distinct: int
    missing: int


class Table:
    """Columns of equal length, by name.

    >>> from assay.data import read
    >>> table = read({"age": [31.0, None, 58.0], "job": ["cook", "clerk", "cook"]})
    >>> table.schema[1]
    ColumnType(name='job', kind='nominal', levels=('clerk', 'cook'))
    >>> table.matrix()
    array([[31.,  1.],
           [nan,  0.],
           [58.,  1.]])
    """

    def __init__(self, columns: Iterable[Column]):
        self.columns = {column.name: column for column in columns}
        self.n_rows = len(next(iter(self.columns.values())).data) if self.columns else 0

    @property
    def schema(self) -> Schema:
        return tuple(column.type for column in self.columns.values())

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def column(self, name: str) -> Column:
        """Return the column of this name; if there is none, say which there are and which is closest."""
        if name not in self.columns:
            close = get_close_matches(name, self.names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise ValueError(f"there is no column {name!r}{hint} The columns are {listed(self.names)}.")
        return self.columns[name]

    def positions(self, *kinds: str) -> list[int]:
        """Return where the columns of these kinds stand in `matrix()`."""
        return [i for i, column in enumerate(self.columns.values()) if column.type.kind in kinds]

    def matrix(self) -> np.ndarray:
        """Return (rows, columns) doubles in C order: numbers, and level positions; NaN where missing."""
        if not self.columns:
            return np.empty((self.n_rows, 0))
        return np.stack([column.data for column in self.columns.values()], axis=1)

    def split_target(self, name: str) -> tuple["Table", Column]:
        """Return the table without the target, and the target; refuse a target with missing values."""
        target = self.column(name)
        rows = np.flatnonzero(target.missing)
        if len(rows):
            shown = listed([str(row) for row in rows[:5]] + (["..."] if len(rows) > 5 else []))
            raise ValueError(
                f"the target {name!r} has no value in {len(rows)} of {self.n_rows} rows "
                f"(counted from 0: {shown}); remove these rows, or fill them."
            )
        others = Table(column for column in self.columns.values() if column.name != name)
        if not others.columns:
            raise ValueError(f"there is no column to learn from beside the target {name!r}.")
        return others, target

    def take(self, rows: Any) -> "Table":
        """Return the rows that a mask, a slice or a list of row numbers selects."""
        return Table(Column(column.type, column.data[rows]) for column in self.columns.values())

    def summary(self) -> list[ColumnSummary]:
        """Return name, kind, number of distinct values and of missing values of each column."""
        return [
            ColumnSummary(
                column.name,
                column.type.kind,
                len(np.unique(column.data[~column.missing])),
                int(column.missing.sum()),
            )
            for column in self.columns.values()
        ]

    def require_same_columns(self, schema: Schema) -> tuple["Table", dict[str, list[str]]]:
        """Return the schema's columns, in its order and with its codes, and the values it does not know.

        Other columns are left out. A value that is not among the levels becomes a missing value and is
        listed under its column's name. A column that is absent, or has text for numbers, is refused.
        """
        absent = [wanted.name for wanted in schema if wanted.name not in self.columns]
        if absent:
            raise ValueError(
                f"the table lacks the column{'s' if len(absent) > 1 else ''} {listed(absent)} that the "
                f"model was fitted with; it has {listed(self.names)}."
            )
        fitted = [_fitted(self.columns[wanted.name], wanted) for wanted in schema]
        unknown = {column.name: values for column, values in fitted if values}
        return Table(column for column, _ in fitted), unknown

    def to_arrow(self) -> Any:
        """Return an Arrow table: doubles, and dictionaries of text for nominal and ordered columns."""
        import pyarrow as pa

        def arrow(column: Column) -> Any:
            if column.type.kind == "numeric":
                return pa.array(column.data, from_pandas=True)
            codes = pa.array(np.where(column.missing, 0, column.data).astype(np.int32), mask=column.missing)
            levels = pa.array(column.type.levels, pa.string())
            return pa.DictionaryArray.from_arrays(codes, levels, ordered=column.type.kind == "ordered")

        return pa.table({column.name: arrow(column) for column in self.columns.values()})

    def to_frame(self) -> Any:
        """Return a pandas data frame if pandas is installed, else an Arrow table."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            return self.to_arrow()
        return self.to_arrow().to_pandas()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _fitted(column: Column, wanted: ColumnType) -> tuple[Column, list[str]]:
    """Return the column with the codes of the wanted type, and the values that type does not know."""
    if column.type == wanted:
        return column, []
    if wanted.kind == "numeric":
        rows = np.flatnonzero(~column.missing)
        if len(rows):
            values = column.values()
            row = next((row for row in rows if not _is_number(values[row])), rows[0])
            raise ValueError(f"column {wanted.name!r} must hold numbers; got {values[row]!r} in row {row} (from 0).")
        return Column(wanted, column.data), []
    words: list[str | None]
    if column.type.kind == "numeric":
        numbers, codes = np.unique(column.data, return_inverse=True)
        words = [None if np.isnan(v) else str(int(v) if v.is_integer() else v) for v in numbers.tolist()]
    else:
        words = [*column.type.levels, None]
        codes = np.where(column.missing, len(words) - 1, column.data).astype(np.intp)
    place: dict[str | None, float] = {level: float(i) for i, level in enumerate(wanted.levels)}
    data = np.array([place.get(word, np.nan) for word in words])[codes]
    present = (words[code] for code in np.unique(codes))
    return Column(wanted, data), sorted(word for word in present if word is not None and word not in place)


def listed(names: Sequence[str]) -> str:
    """Return the names with commas, at most twenty of them."""
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")

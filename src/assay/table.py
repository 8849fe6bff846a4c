"""Tables: named columns with a type, read from CSV, Parquet, Arrow, pandas, polars or arrays.

A column is numeric, nominal (values without order) or ordered (values with one). Its data are doubles in
every case: the numbers themselves, or the position of the value in the column's list of levels; NaN where a
value is missing. So `Table.matrix()` feeds scikit-learn's ColumnTransformer without pandas, with
`Table.positions("numeric")` as columns; the `Schema` gives a table read later the same columns and codes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

KINDS = ("numeric", "nominal", "ordered")
MISSING_WORDS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""What counts as a missing value in a CSV file."""


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


class ColumnSummary(NamedTuple):
    name: str
    kind: str
    distinct: int
    missing: int


class Table:
    """Columns of equal length, by name.

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
            raise ValueError(f"there is no column {name!r}{hint} The columns are {_listed(self.names)}.")
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
            shown = _listed([str(row) for row in rows[:5]] + (["..."] if len(rows) > 5 else []))
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
                f"the table lacks the column{'s' if len(absent) > 1 else ''} {_listed(absent)} that the "
                f"model was fitted with; it has {_listed(self.names)}."
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


def _fitted(column: Column, wanted: ColumnType) -> tuple[Column, list[str]]:
    """Return the column with the codes of the wanted type, and the values that type does not know."""
    if column.type == wanted:
        return column, []
    if wanted.kind == "numeric":
        for row in np.flatnonzero(~column.missing):
            got = column.values()[row]
            raise ValueError(f"column {wanted.name!r} must hold numbers; got {got!r} in row {row} (from 0).")
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


def read(
    source: Any,
    *,
    nominal: Iterable[str] = (),
    ordered: Mapping[str, Sequence[str]] | None = None,
    schema: Schema | None = None,
) -> Table:
    """Return the table in a CSV or Parquet file, an Arrow table, a pandas or polars frame, a dict of columns.

    Text, booleans and categories are nominal, numbers numeric, ordered categories (pandas) and enumerations
    (polars) ordered. `nominal` names further columns whose numbers are only names (such as postal codes);
    `ordered` gives the levels of a column from lowest to highest. With a `schema`, only its columns are read,
    with their kinds; `Table.require_same_columns` then gives them its codes.

    >>> read({"size": ["small", "large"]}, ordered={"size": ["small", "large"]}).matrix()
    array([[0.],
           [1.]])
    """
    from assay import _reader

    wanted = {column.name: column.kind for column in schema or ()}
    levels = dict(ordered or {})
    as_text = {*nominal, *levels, *(name for name, kind in wanted.items() if kind != "numeric")}
    table = _reader.arrow_table(source, as_text, None if schema is None else list(wanted))
    return _reader.typed(table, as_text, levels, partial=schema is not None)


def chunks(source: Any, size: int, schema: Schema) -> Iterator[Table]:
    """Yield the schema's columns of a source in tables of at most `size` rows; files are streamed."""
    from assay import _reader

    if not isinstance(source, (str, PathLike)):
        table = read(source, schema=schema)
        for start in range(0, table.n_rows, size):
            yield table.take(slice(start, start + size))
        return
    as_text = {column.name for column in schema if column.kind != "numeric"}
    names = [column.name for column in schema]
    for part in _reader.arrow_stream(Path(fspath(source)), as_text, names, size):
        yield _reader.typed(part, as_text, {}, partial=True)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")

"""Tables: named columns of equal length.

`Table.matrix()` is the table as one matrix of doubles: numbers, level positions, NaN where a value is missing. The
`Schema` gives a table read later the same columns and codes.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.data.columns import MORE_KINDS, NEW_LEVEL, Column, ColumnType, Schema
from assay.messages import Message

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class ColumnSummary(NamedTuple):
    """How a column was read, for people."""

    name: str
    kind: str
    """numeric, nominal, ordered, date, text, or "left out"."""
    distinct: int
    missing: int
    holds: str
    """Lowest and highest number or date, or the commonest values."""
    note: str
    """What was done in reading it."""
    advice: str
    """What to do if that is not what it means."""


class Table:
    """Columns of equal length, by name.

    Parameters
    ----------
    columns : iterable of Column
        The columns.
    left_out : mapping or None
        Columns that were left out, with the reason.
    n_rows : int, default=0
        Number of rows of a table without columns.
    unknown : mapping or None
        New levels of the rows, by column.

    Examples
    --------
    >>> from assay.data import read
    >>> table = read({"age": [31.0, None, 58.0], "job": ["cook", "clerk", "cook"]})
    >>> table.schema[1]
    ColumnType(name='job', kind='nominal', levels=('clerk', 'cook'))
    >>> table.matrix()
    array([[31.,  1.],
           [nan,  0.],
           [58.,  1.]])
    """

    def __init__(
        self,
        columns: Iterable[Column],
        left_out: Mapping[str, str] | None = None,
        n_rows: int = 0,
        unknown: Mapping[str, list[str]] | None = None,
    ):
        self.columns = {column.name: column for column in columns}
        self.n_rows = len(next(iter(self.columns.values())).data) if self.columns else n_rows
        self.left_out = dict(left_out or {})
        """Why columns of the source are not here, by name."""
        self.unknown = dict(unknown or {})
        """Values that were not among the levels of the schema by which the table was read, by column."""

    @property
    def schema(self) -> Schema:
        """The types of the columns."""
        return tuple(column.type for column in self.columns.values())

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    def column(self, name: str) -> Column:
        """Return the column of this name; if there is none, say which there are and which is closest.

        Parameters
        ----------
        name : str
            Name of the column.
        """
        if name not in self.columns:
            alike = [item for item in self.names if item.lower() == name.lower()]
            close = alike or get_close_matches(name, self.names, n=1)
            if name in self.left_out:
                raise ValueError(Message("column.useless", column=name, why=self.left_out[name]))
            raise ValueError(no_column(name, self.names, close))
        return self.columns[name]

    def without(self, *names: str) -> "Table":
        """Return the table without these columns.

        >>> from assay.data import read
        >>> read({"a": [1.0], "b": [2.0]}).without("a").names
        ['b']
        """
        for name in names:
            self.column(name)
        left_out = self.left_out | dict.fromkeys(names, Message("column.dropped"))
        return Table((column for column in self.columns.values() if column.name not in names), left_out, self.n_rows)

    def positions(self, *kinds: str) -> list[int]:
        """Return where the columns of these kinds stand in `matrix()`.

        Parameters
        ----------
        *kinds : str
            Kinds of columns.
        """
        return [i for i, column in enumerate(self.columns.values()) if column.type.kind in kinds]

    def matrix(self) -> np.ndarray:
        """Return (rows, columns) doubles in C order: numbers, and level positions; NaN where a value is missing, or not
        among the levels of its column."""
        if not self.columns:
            return np.empty((self.n_rows, 0))
        for name, kind in (
            (item.name, item.type.kind) for item in self.columns.values() if item.type.kind in MORE_KINDS
        ):
            raise ValueError(Message("column.matrix-dates" if kind == "date" else "column.matrix-text", column=name))
        return np.stack([column.known() for column in self.columns.values()], axis=1)

    def split_target(self, name: str) -> tuple["Table", Column]:
        """Return the table without the target, and the target; refuse a target with missing values.

        Parameters
        ----------
        name : str
            Name of the column.
        """
        target = self.column(name)
        rows = np.flatnonzero(target.missing)
        if len(rows):
            shown = listed([str(row) for row in rows[:5]] + (["..."] if len(rows) > 5 else []))
            counts = {"missing": len(rows), "rows": self.n_rows}
            raise ValueError(Message("target.some-missing", target=name, listed=shown, **counts))
        others = Table((column for column in self.columns.values() if column.name != name), self.left_out)
        if not others.columns:
            raise ValueError(Message("target.alone", target=name))
        return others, target

    def with_target(self, name: str) -> tuple["Table", str]:
        """Return the rows that have a target, and a sentence about those that have none; empty if all have one.

        Parameters
        ----------
        name : str
            Name of the column.
        """
        missing = self.column(name).missing
        if not missing.any():
            return self, ""
        if missing.all():
            raise ValueError(Message("target.empty", target=name))
        return self.take(~missing), Message("target.missing", missing=int(missing.sum()), rows=self.n_rows, target=name)

    def useful(self) -> "Table":
        """Return the columns worth learning from: without those that name each row, and those of a single value."""
        reasons = {column.name: why for column in self.columns.values() if (why := _useless(column, self.n_rows))}
        if len(reasons) == len(self.columns):
            said = [Message("column.why", column=name, why=why) for name, why in [*reasons.items()][:20]]
            raise ValueError(Message("columns.no-use", columns=said))
        kept = (item for item in self.columns.values() if item.name not in reasons)
        return Table(kept, self.left_out | reasons, self.n_rows)

    def take(self, rows: ArrayLike | slice) -> "Table":
        """Return the rows that a mask, a slice or a list of row numbers selects."""
        return Table((column.take(rows) for column in self.columns.values()), self.left_out, unknown=self.unknown)

    def summary(self) -> list[ColumnSummary]:
        """Return how each column was read: kind, values, gaps, what was done, and what to do if it is wrong."""
        here = [_summary(column, self.n_rows) for column in self.columns.values()]
        return here + [ColumnSummary(name, "left out", 0, 0, "", why, "") for name, why in self.left_out.items()]

    def require_same_columns(self, schema: Schema) -> tuple["Table", dict[str, list[str]]]:
        """Return the schema's columns, in its order and with its codes, and the values it does not know.

        Other columns are left out. A value that is not among the levels is listed under its column's name; in a nominal
        column it becomes a new level, in an ordered one a gap. A column that is absent, or has text for numbers, is
        refused.

        Parameters
        ----------
        schema : tuple of ColumnType
            Types of the columns.
        """
        absent = [wanted.name for wanted in schema if wanted.name not in self.columns]
        if absent:
            raise ValueError(Message("lacks.fitted", absent=listed(absent), names=listed(self.names)))
        results = [fitted(self.columns[wanted.name], wanted) for wanted in schema]
        unknown = {name: self.unknown[name] for name in (item.name for item in schema) if name in self.unknown}
        unknown |= {column.name: values for column, values in results if values}
        return Table((column for column, _ in results), n_rows=self.n_rows, unknown=unknown), unknown

    def to_arrow(self) -> "pa.Table":
        """Return an Arrow table: doubles, and dictionaries of text for nominal and ordered columns."""
        import pyarrow as pa

        def arrow(column: Column) -> pa.Array:
            if column.type.kind == "numeric":
                return pa.array(column.data, from_pandas=True)
            if column.type.kind == "date":
                return pa.array(column.values(), pa.timestamp("us"))
            if column.type.kind == "text":
                return pa.array(column.values(), pa.string())
            codes = pa.array(np.where(column.missing, 0, column.data).astype(np.int32), mask=column.missing)
            new = [NEW_LEVEL] if column.new.any() else []
            levels = pa.array([*column.type.levels, *new], pa.string())
            return pa.DictionaryArray.from_arrays(codes, levels, ordered=column.type.kind == "ordered")

        return pa.table({column.name: arrow(column) for column in self.columns.values()})

    def to_frame(self) -> "pd.DataFrame | pa.Table":
        """Return a pandas data frame if pandas is installed, else an Arrow table."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            return self.to_arrow()
        return self.to_arrow().to_pandas()


def fitted(column: Column, wanted: ColumnType, lenient: bool = False) -> tuple[Column, list[str]]:
    """Return the column with kind, form and codes of the wanted type, and the values that type does not know; unless
    `lenient`, one with many cells that cannot be read is refused."""
    if column.type == wanted:
        return column, []
    if column.type.kind == wanted.kind and wanted.kind in ("numeric", "date", "text"):
        return Column(wanted, column.data, column.note, column.texts), []
    if column.missing.all():
        return Column(wanted, column.data), []
    if wanted.kind in ("numeric", "date"):
        return _parsed(column, wanted, lenient), []
    words, codes = _words(column)
    if wanted.kind == "text":
        texts = tuple("" if word is None else word for word in words)
        return Column(wanted, np.where(column.missing, np.nan, codes), column.note, texts), []
    place: dict[str | None, float] = {level: float(i) for i, level in enumerate(wanted.levels)}
    new = float(len(wanted.levels)) if wanted.kind == "nominal" else np.nan  # an order has no place for it
    data = np.array([np.nan if word is None else place.get(word, new) for word in words])[codes]
    present = (words[code] for code in np.unique(codes))
    unknown = sorted(word for word in present if word is not None and word not in place)
    return Column(wanted, data, column.note), unknown


def _words(column: Column) -> tuple[list[str | None], np.ndarray]:
    """Return the distinct values as words, None for a gap, and which of them each row has."""
    if column.type.kind in ("numeric", "date"):
        numbers, codes = np.unique(column.data, return_inverse=True)
        return [None if np.isnan(v) else str(int(v) if v.is_integer() else v) for v in numbers.tolist()], codes
    words = [*(column.texts if column.type.kind == "text" else column.type.levels), None]
    return words, np.where(column.missing, len(words) - 1, column.data).astype(np.intp)


def _parsed(column: Column, wanted: ColumnType, lenient: bool) -> Column:
    """Return a column of text as the numbers or dates that it is wanted as; a few cells may be neither."""
    import pyarrow as pa

    from assay.data import dates, number_formats

    words, codes = _words(column)
    texts = pa.array([word or "" for word in words], pa.string())
    dated = wanted.kind == "date"
    read = dates.seconds(texts, wanted.written[0]) if dated else number_formats.read_as(texts, wanted.written)
    bad = read.bad[codes]
    if not lenient:
        refuse_bad_cells(bad, ~column.missing, wanted, lambda row: words[codes[row]])
    return Column(wanted, read.numbers[codes], bad_cells_note(bad, "dates" if dated else "numbers"))


def refuse_bad_cells(bad: np.ndarray, there: np.ndarray, wanted: ColumnType, cell: Callable[[int], object]) -> None:
    """Refuse a column of which more than one cell in twenty cannot be read as the numbers or dates it should hold."""
    from assay.data.number_formats import BAD_SHARE

    if bad.sum() > BAD_SHARE * there.sum():
        row = int(np.argmax(bad))
        form = Message("column.form", example=written_like(wanted)) if wanted.written else ""
        code = "column.bad-dates" if wanted.kind == "date" else "column.bad-numbers"
        raise ValueError(Message(code, column=wanted.name, form=form, value=cell(row), row=row))


def bad_cells_note(bad: np.ndarray, kind: str) -> str:
    """Return what became of cells that could not be read."""
    return Message("gaps.dates" if kind == "dates" else "gaps.numbers", count=int(bad.sum())) if bad.any() else ""


def written_like(wanted: ColumnType) -> str:
    """Return an example of how the cells of a column are written."""
    from assay.data.number_formats import Style

    return Style(*wanted.written).example() if len(wanted.written) == 4 else wanted.written[0]


_IDENTIFIER = re.compile(r"(?i)(.*[_ -])?(id|uid|uuid|guid|index|key|row|nr|no|number)|.*[a-z]I[dD]")


def _useless(column: Column, n_rows: int) -> str:
    """Return why nothing can be learnt from a column; empty if something could."""
    missing = column.missing
    there = column.data[~missing] if missing.any() else column.data
    kind = column.type.kind
    if not len(there):
        return Message("column.empty")
    if len(there) == n_rows and bool((there == there[0]).all()):
        return Message("column.constant")
    if n_rows <= 20 or len(there) < n_rows or kind not in ("nominal", "numeric"):
        return ""
    named = bool(_IDENTIFIER.fullmatch(column.name)) and bool((there == np.round(there)).all())
    if (kind == "nominal" or named) and len(np.unique(there)) == n_rows:
        return Message("column.identifier")
    return ""


def _summary(column: Column, n_rows: int) -> ColumnSummary:
    there = column.data[~column.missing]
    result, counts = np.unique(there, return_counts=True)
    kind, note = column.type.kind, column.note
    if kind in ("numeric", "date") and len(result):
        ends = Column(column.type, result[[0, -1]]).values()
        holds = " to ".join(f"{end:.6g}" if kind == "numeric" else str(end).removesuffix(".000000") for end in ends)
    else:
        common = result[np.argsort(-counts, kind="stable")[:5]]
        words = Column(column.type, common, texts=column.texts).values()
        holds = listed([word if len(word) <= 30 else f"{word[:29]}…" for word in words])
    return ColumnSummary(
        column.name, kind, len(result), int(column.missing.sum()), holds, note, _advice(column, result, n_rows)
    )


def _advice(column: Column, result: np.ndarray, n_rows: int) -> str:
    """Return what the user may say if a column means something else than what was read."""
    kind, name = column.type.kind, column.name
    if kind == "numeric" and column.type.written:
        return Message("advice.names", name=name)
    if kind == "numeric" and 2 < len(result) <= 20 and bool((result == np.round(result)).all()) and n_rows > 40:
        return Message("advice.codes", name=name)
    if kind == "nominal" and n_rows > 20 and len(result) > 0.5 * n_rows:
        return Message("advice.identifier", name=name)
    if kind == "nominal" and len(result) > 2 and n_rows > 20 and _in_order(column.type.levels):
        return Message("advice.order", name=name)
    return ""


_RANKS = {"low", "small", "short", "never", "none", "poor", "bad", "weak", "little", "cold", "min", "first"}


def _in_order(levels: Sequence[str]) -> bool:
    """Tell whether values look like ranks: they have numbers in them, or words such as low."""
    return any(level.strip().lower() in _RANKS for level in levels) or sum(map(_has_digit, levels)) >= 0.8 * len(levels)


def _has_digit(text: str) -> bool:
    return any(sign.isdigit() for sign in text)


def listed(names: Sequence[str]) -> str:
    """Return the names with commas, at most twenty of them."""
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


THE_TABLE = Message("the-table")


def no_column(
    name: str, names: Sequence[str], close: Sequence[str], codes: tuple[str, str] = ("no-column", "no-column.close")
) -> Message:
    """Return that there is no column of a name, which there are and which is closest."""
    if close:
        return Message(codes[1], name=name, close=close[0], names=listed(names))
    return Message(codes[0], name=name, names=listed(names))


def lacks(where: object, absent: Sequence[str], names: Sequence[str]) -> Message:
    """Return which columns a table lacks, and which it has."""
    code = "lacks.columns" if len(absent) > 1 else "lacks.column"
    return Message(code, where=named_source(where), absent=listed(absent), names=listed(names))


def named_source(where: object) -> str:
    """Return the name of where a table is from."""
    return where if isinstance(where, str) else str(where)

"""The encoding of a table: what turns its columns into the numbers that a learner reads.

It consists of names and numbers alone (`data.plain`), belongs to the model, and is applied by the few lines of
`encode_block`. Everything in it comes from training rows, levels included. Raw rows are doubles: a column for each
number, level (its position in the column's list; the length of the list for a new level) and date (seconds), with NaN
where a value is missing or beyond 1e150; and for each column of text one for every word that is looked for, 1 where the
text has it. Encoded rows have, from left to right and in the order of the table within each part,

    kept columns        x, as it is; a new level is a gap  for learners that read levels and gaps themselves
    numbers             ((x if x is there else fill) - mean) / scale         numeric and ordered columns, parts of dates
                        with fill for x where this is beyond 1e150, and 0 where it is nearer to zero than 1e-150
    gaps                ((0 if x is there else 1) - mean) / scale            numbers that had gaps when it was fitted
    levels              one column for each level with a slot: 1 where x is that level, else 0
    words               x, as it is

Each entry is computed by itself, in double precision and in the order written: first the difference, then the
quotient. So any cut into blocks gives the same bits. Three things have one meaning each, in training and in use:

    a gap               has a slot of its own if training rows have gaps in the column, else all slots are 0
    a rare level        of `MOST_LEVELS` levels or more the commonest have slots of their own, the others share the last
    a new level         one that no training row has: the slot that rare levels share, else all slots are 0
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from assay._typing import Json
from assay.data.blocks import rows_per_block
from assay.data.columns import LARGEST, Column, ColumnType, Schema
from assay.data.table import Table
from assay.data.words import commonest, has_words
from assay.messages import Message

MOST_LEVELS = 100
"""Columns that a nominal column may become."""
DATE_PARTS = ("year", "month", "day", "weekday", "hour", "elapsed days")


class Scaling(NamedTuple):
    """x becomes (x - mean) / scale."""

    mean: float
    scale: float


@dataclass(frozen=True)
class Kept:
    """A column that is handed over as it is."""

    type: ColumnType


@dataclass(frozen=True)
class Numbers:
    """A numeric or ordered column; `gap` scales its column of gaps, if it has one."""

    type: ColumnType
    fill: float
    scaling: Scaling
    gap: Scaling | None


@dataclass(frozen=True)
class Levels:
    """A nominal column: the slot of each level, then that of a new level, then that of a missing value; -1 for none."""

    type: ColumnType
    slots: tuple[int, ...]
    shared: bool
    """Whether the last slot is shared by the rarer levels."""

    @property
    def width(self) -> int:
        return max(self.slots) + 1


@dataclass(frozen=True)
class Dates:
    """A column of dates: the parts of it that are read, each kept or scaled as a number is."""

    type: ColumnType
    parts: tuple[tuple[str, Kept | Numbers], ...]


@dataclass(frozen=True)
class Words:
    """A column of text: the words that are looked for."""

    type: ColumnType
    words: tuple[str, ...]


Part = Kept | Numbers | Levels | Dates | Words


class Arrays(NamedTuple):
    """The encoding as `encode_block` reads it."""

    kept: np.ndarray  # (k,) positions in the raw rows
    kept_levels: np.ndarray  # (k,) number of levels, from which on a position is a new level; infinity for numbers
    numbers: np.ndarray  # (p,) positions in the raw rows
    fill: np.ndarray  # (p,)
    mean: np.ndarray  # (p,)
    scale: np.ndarray  # (p,) > 0
    gaps: np.ndarray  # (g,) positions in the raw rows
    gap_mean: np.ndarray  # (g,)
    gap_scale: np.ndarray  # (g,) > 0
    nominal: np.ndarray  # (q,) positions in the raw rows
    slots: np.ndarray  # slots of the first nominal column's levels, new level and missing value, of the second, ...
    starts: np.ndarray  # (q + 1,) where each nominal column begins in `slots`
    columns: np.ndarray  # (q + 1,) where each begins among the encoded columns; the last is where the words begin
    dates: tuple[tuple[int, str], ...]  # parts of dates, which stand to the right of the raw rows: position and name
    words: np.ndarray  # (w,) positions in the raw rows

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        return int(self.columns[-1]) + len(self.words)


def encode_block(raw: np.ndarray, a: Arrays) -> np.ndarray:
    """Return the encoded rows (n, d) of raw rows (n, columns)."""
    if a.dates:
        from assay.data.dates import part

        raw = np.column_stack([raw, *(part(raw[:, position], name) for position, name in a.dates)])
    out = np.zeros((len(raw), a.width))
    out[:, a.columns[-1] :] = raw[:, a.words]
    end = len(a.kept)
    kept = raw[:, a.kept]
    out[:, :end] = np.where(kept >= a.kept_levels, np.nan, kept)
    numbers = raw[:, a.numbers]
    begin, end = end, end + len(a.numbers)
    out[:, begin:end] = _scaled(np.where(np.isnan(numbers), a.fill, numbers), a)
    out[:, end : end + len(a.gaps)] = (np.isnan(raw[:, a.gaps]) - a.gap_mean) / a.gap_scale
    for position, start, stop, column in zip(a.nominal, a.starts[:-1], a.starts[1:], a.columns[:-1], strict=True):
        codes = raw[:, position]
        slot = a.slots[start + np.where(np.isnan(codes), stop - start - 1, codes).astype(np.intp)]
        rows = np.flatnonzero(slot >= 0)
        out[rows, column + slot[rows]] = 1.0
    return out


def _scaled(numbers: np.ndarray, a: Arrays) -> np.ndarray:
    scaled: np.ndarray = (numbers - a.mean) / a.scale
    size = np.abs(scaled)
    if size.max(initial=0.0) > LARGEST:
        scaled = np.where(size > LARGEST, (a.fill - a.mean) / a.scale, scaled)
    scaled[size < 1 / LARGEST] = 0.0
    return scaled


class Encoding:
    """How a learner's rows are made of a table's columns.

    Parameters
    ----------
    parts : sequence of Part
        The encoding of each column, in order.

    Examples
    --------
    >>> from assay.data import read
    >>> table = read({"age": [20.0, None, 40.0], "job": ["cook", "clerk", "cook"]})
    >>> encoding = Encoding.fit(table)
    >>> encoding.feature_names()
    ['age', 'age missing', 'job = clerk', 'job = cook']
    >>> encoding.apply(table)[:, 2:]
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoding) and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def fit(cls, table: Table, reads: Collection[str] = ("numbers",)) -> "Encoding":
        """Return the encoding that these rows give for a learner that reads numbers, perhaps "nominal", "missing" too.

        The table must have been typed by the very rows that it holds, so that each level of a nominal column occurs.
        Such a column is kept for who reads levels and gaps if it has fewer than `MOST_LEVELS` levels.

        Parameters
        ----------
        table : Table
            The table.
        reads : collection of str, default=("numbers",)
            What the learner reads.
        """
        columns = list(table.columns.values())
        parts: dict[str, Part] = {
            item.name: Words(item.type, _words(item)) for item in columns if item.type.kind == "text"
        }
        parts |= {item.name: _date_part(item, reads) for item in columns if item.type.kind == "date"}
        parts |= {item.name: Kept(item.type) for item in columns if item.name not in parts and _can_stay(item, reads)}
        numbers = [item for item in columns if item.name not in parts and item.type.kind != "nominal"]
        parts |= {part.type.name: part for part in _number_parts(numbers, table.n_rows)}
        return cls([parts.get(column.name) or _level_part(column) for column in columns])

    @property
    def schema(self) -> Schema:
        """The columns of the tables that it reads."""
        return tuple(part.type for part in self.parts)

    def fitting(self, table: Table) -> tuple[Table, dict[str, list[str]]]:
        """Return the table's columns that the encoding reads, and the levels that it does not know, by column.

        No certificate holds with numbers beyond 1e150, or nearer to zero than 1e-150: they count as missing, and as 0.

        Parameters
        ----------
        table : Table
            The table.
        """
        result, unknown = table.require_same_columns(self.schema)
        return Table((column.in_range() for column in result.columns.values()), n_rows=result.n_rows), unknown

    def raw(self, table: Table) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return the table's raw rows, and the levels that the encoding does not know, by column; see `fitting`.

        Equal tables give equal bytes: there is one zero and one NaN.

        Parameters
        ----------
        table : Table
            The table.
        """
        fitting, unknown = self.fitting(table)
        rows = np.empty((fitting.n_rows, self._starts()[-1]))
        for part, start in zip(self.parts, self._starts(), strict=False):
            column = fitting.columns[part.type.name]
            if isinstance(part, Words):
                result = np.vstack([has_words(column.texts, part.words), np.zeros(len(part.words))])
                codes = np.where(column.missing, -1, column.data).astype(np.intp)
                rows[:, start : start + len(part.words)] = result[codes]
            else:
                rows[:, start] = column.data
        rows += 0.0
        rows[np.isnan(rows)] = np.nan
        return rows, unknown

    def apply(self, table: Table) -> np.ndarray:
        """Return the encoded rows (n, d) of a table that has the columns.

        Parameters
        ----------
        table : Table
            The table.
        """
        return self.apply_raw(self.raw(table)[0])

    def apply_raw(self, raw: np.ndarray) -> np.ndarray:
        """Return the encoded rows (n, d) of raw rows.

        Parameters
        ----------
        raw : ndarray
            Raw rows.
        """
        arrays = self.arrays()
        out = np.empty((len(raw), arrays.width))
        step = rows_per_block(out.shape[1])
        for start in range(0, len(raw), step):
            out[start : start + step] = encode_block(raw[start : start + step], arrays)
        return out

    @property
    def raw_width(self) -> int:
        """The number of columns of raw rows."""
        return self._starts()[-1]

    def _starts(self) -> list[int]:
        """Return where each part's raw columns begin; at the end, their number."""
        widths = [len(part.words) if isinstance(part, Words) else 1 for part in self.parts]
        return [int(start) for start in np.cumsum([0, *widths], dtype=np.int64)]

    def spans(self) -> list[slice]:
        """Return where the raw columns of each part stand."""
        starts = self._starts()
        return [slice(start, stop) for start, stop in pairwise(starts)]

    def words(self, name: str) -> tuple[str, ...]:
        """Return the words that are looked for in a column of text.

        Parameters
        ----------
        name : str
            Name of the column.
        """
        return next(part.words for part in self.parts if isinstance(part, Words) and part.type.name == name)

    def _flat(self) -> tuple[list[tuple[int, Kept | Numbers | Levels]], tuple[tuple[int, str], ...]]:
        """Return the parts with their positions in the raw rows, where parts of dates stand to the right; and these."""
        starts = self._starts()
        flat: list[tuple[int, Kept | Numbers | Levels]] = []
        dates: list[tuple[int, str]] = []
        for start, part in zip(starts, self.parts, strict=False):
            if isinstance(part, Dates):
                flat += [(starts[-1] + len(dates) + i, item) for i, (_, item) in enumerate(part.parts)]
                dates += [(start, name) for name, _ in part.parts]
            elif not isinstance(part, Words):
                flat.append((start, part))
        return flat, tuple(dates)

    def nominal(self) -> list[int]:
        """Return which encoded columns are levels of a column that is kept."""
        kept = [part for _, part in self._flat()[0] if isinstance(part, Kept)]
        return [i for i, part in enumerate(kept) if part.type.kind == "nominal"]

    def levels(self) -> dict[int, tuple[str, ...]]:
        """Return the levels of the encoded columns that hold codes as they are."""
        kept = [part for _, part in self._flat()[0] if isinstance(part, Kept)]
        return {i: part.type.levels for i, part in enumerate(kept) if part.type.levels}

    def feature_names(self) -> list[str]:
        """Return the name of each encoded column, as a person would say it."""
        flat = [part for _, part in self._flat()[0]]
        numbers = [part for part in flat if isinstance(part, Numbers)]
        return [
            *(part.type.name for part in flat if isinstance(part, Kept)),
            *(part.type.name for part in numbers),
            *(f"{part.type.name} missing" for part in numbers if part.gap is not None),
            *(name for part in flat if isinstance(part, Levels) for name in _slot_names(part)),
            *(f"{part.type.name} has {word}" for part in self.parts if isinstance(part, Words) for word in part.words),
        ]

    def sources(self) -> list[str]:
        """Return the name of the table's column that each encoded column is made of."""
        owners = [(part.type.name, piece) for part in self.parts for piece in _pieces(part)]
        numbers = [(name, owner) for name, owner in owners if isinstance(owner, Numbers)]
        return [
            *(name for name, owner in owners if isinstance(owner, Kept)),
            *(name for name, _ in numbers),
            *(name for name, number in numbers if number.gap is not None),
            *(name for name, owner in owners if isinstance(owner, Levels) for _ in range(owner.width)),
            *(part.type.name for part in self.parts if isinstance(part, Words) for _ in part.words),
        ]

    def arrays(self) -> Arrays:
        """Return the numbers of the encoding as arrays."""
        flat, dates = self._flat()
        kept = [(i, part) for i, part in flat if isinstance(part, Kept)]
        numbers = [(i, part) for i, part in flat if isinstance(part, Numbers)]
        nominal = [(i, part) for i, part in flat if isinstance(part, Levels)]
        gaps = [(i, part.gap) for i, part in numbers if part.gap is not None]
        left = len(kept) + len(numbers) + len(gaps)
        starts = zip(self._starts(), self.parts, strict=False)
        words = [start + j for start, part in starts if isinstance(part, Words) for j in range(len(part.words))]
        return Arrays(
            _positions(kept),
            np.array([len(part.type.levels) if part.type.kind == "nominal" else np.inf for _, part in kept]),
            _positions(numbers),
            np.array([part.fill for _, part in numbers]),
            np.array([part.scaling.mean for _, part in numbers]),
            np.array([part.scaling.scale for _, part in numbers]),
            _positions(gaps),
            np.array([gap.mean for _, gap in gaps]),
            np.array([gap.scale for _, gap in gaps]),
            _positions(nominal),
            np.array([slot for _, part in nominal for slot in part.slots], dtype=np.int64),
            np.cumsum([0, *(len(part.slots) for _, part in nominal)], dtype=np.int64),
            np.cumsum([left, *(part.width for _, part in nominal)], dtype=np.int64),
            dates,
            np.array(words, dtype=np.int64),
        )

    def plain(self) -> list[Json]:
        """Return the encoding as lists, dicts, text, numbers and booleans, for a file."""
        from assay.data.plain import plain_part

        return [plain_part(part) for part in self.parts]

    @classmethod
    def from_plain(cls, plain: Json) -> "Encoding":
        """Return the encoding that `plain` describes; refuse whatever `fit` could not have made.

        Parameters
        ----------
        plain : Json
            What was written down.
        """
        from assay.data.plain import parts_from_plain

        return cls(parts_from_plain(plain))

    def __getstate__(self) -> dict[str, Json]:
        return {"plain": self.plain()}

    def __setstate__(self, state: dict[str, Json]) -> None:
        self.parts = Encoding.from_plain(state["plain"]).parts


def _pieces(part: Part) -> list[Part]:
    """Return a part as the parts that columns are made of: those of a date, else itself."""
    return [item for _, item in part.parts] if isinstance(part, Dates) else [part]


def _positions(parts: Sequence[tuple[int, object]]) -> np.ndarray:
    return np.array([i for i, _ in parts], dtype=np.int64)


# Fitting


def _can_stay(column: Column, reads: Collection[str]) -> bool:
    if column.type.kind != "nominal":
        return "missing" in reads
    return {"nominal", "missing"} <= set(reads) and len(column.type.levels) < MOST_LEVELS


def _date_part(column: Column, reads: Collection[str]) -> Dates:
    """Return the parts that differ between rows, and the days elapsed, as numbers that are kept or scaled."""
    from assay.data.dates import part

    results = {name: part(column.data, name) for name in DATE_PARTS}
    there = ~column.missing
    varied = [name for name in DATE_PARTS if name == "elapsed days" or len(np.unique(results[name][there])) > 1]
    types = [ColumnType(f"{column.name} {name}", "numeric") for name in varied]
    if "missing" in reads:
        return Dates(column.type, tuple((name, Kept(kind)) for name, kind in zip(varied, types, strict=True)))
    numbers = [Column(kind, results[name]) for name, kind in zip(varied, types, strict=True)]
    return Dates(column.type, tuple(zip(varied, _number_parts(numbers, len(column.data)), strict=True)))


def _words(column: Column) -> tuple[str, ...]:
    counts = np.bincount(column.data[~column.missing].astype(np.intp), minlength=len(column.texts))
    return tuple(commonest(column.texts, counts))


def _number_parts(columns: Sequence[Column], n_rows: int) -> Iterator[Numbers]:
    """Yield mean of what is there as filling, then mean and standard deviation of the filled column."""
    if not columns:
        return
    values = np.stack([column.data for column in columns])
    missing = np.isnan(values)
    there = n_rows - missing.sum(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        fill = np.where(missing, 0.0, values).sum(axis=1) / np.maximum(there, 1)
        np.copyto(values, fill[:, None], where=missing)
        scaled, gaps = _scaling(values), _scaling(missing.astype(np.float64))
    for i, column in enumerate(columns):
        if not np.isfinite((fill[i], *scaled[i])).all():
            raise ValueError(Message("column.too-large", column=column.name))
        gap = Scaling(*gaps[i]) if there[i] < n_rows else None
        yield Numbers(column.type, float(fill[i]), Scaling(*scaled[i]), gap)


def _scaling(values: np.ndarray) -> list[list[float]]:
    """Return mean and standard deviation of each line; 1 for a deviation that is only rounding."""
    n = values.shape[1]
    mean = values.sum(axis=1) / n
    apart = values - mean[:, None]
    variance = ((apart * apart).sum(axis=1) - apart.sum(axis=1) ** 2 / n) / n
    rounding = n * np.finfo(np.float64).eps
    constant = variance <= rounding * variance + (rounding * mean) ** 2
    scale = np.sqrt(np.where(constant, 1.0, variance))
    return [[float(m), float(s)] for m, s in zip(mean, scale, strict=True)]


def _level_part(column: Column) -> Levels:
    """Give slots to the levels, in their order, and to a gap if there is one; the rarest share the last."""
    n = len(column.type.levels)
    counts = np.bincount(np.where(column.missing, n + 1, column.data).astype(np.intp), minlength=n + 2)
    own = np.flatnonzero(counts)
    levels = own[own < n]
    shared = levels[np.argsort(counts[levels], kind="stable")[: max(0, len(own) - (MOST_LEVELS - 1))]]
    shared = shared if len(own) >= MOST_LEVELS else shared[:0]
    own = np.setdiff1d(own, shared)
    slots = np.full(n + 2, -1)
    slots[own] = np.arange(len(own))
    slots[shared] = len(own)
    if len(shared):
        slots[n] = len(own)
    return Levels(column.type, tuple(slots.tolist()), len(shared) > 0)


def _slot_names(part: Levels) -> list[str]:
    words = (*part.type.levels, "new", "missing")
    names = {slot: word for slot, word in zip(part.slots, words, strict=True) if slot >= 0}
    if part.shared:
        names[part.width - 1] = "other"
    return [f"{part.type.name} = {names[slot]}" for slot in range(part.width)]

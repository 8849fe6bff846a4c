"""The encoding of a table: what turns its columns into the numbers that a learner reads.

It consists of names and numbers alone (`plain`), belongs to the model, and is applied by the few lines of
`encode_block`. Raw rows are doubles (n, columns of the table): numbers, and positions of levels in the column's list;
NaN where a value is missing or the level is unknown. Encoded rows have, from left to right and in the order of the
table within each part,

    kept columns        x, as it is                        for learners that read levels and gaps themselves
    numbers             ((x if x is there else fill) - mean) / scale         numeric and ordered columns
    gaps                ((0 if x is there else 1) - mean) / scale            numbers that had gaps when it was fitted
    levels              one column for each level with a slot: 1 where x is that level, else 0

Each entry is computed by itself, in double precision and in the order written: first the difference, then the
quotient. So any cut into blocks gives the same bits. A missing value of a nominal column has a slot if the column had
gaps when the encoding was fitted; a level without a slot gives zeros. Of `MOST_LEVELS` levels or more the commonest
have slots of their own, and the others share the last one.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from assay.data.blocks import rows_per_block
from assay.data.columns import KINDS, Column, ColumnType, Schema
from assay.data.table import Table

MOST_LEVELS = 100
"""Columns that a nominal column may become."""
MOST_COLUMNS = 1_000_000
"""Columns that an encoding may read."""


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
    """A nominal column: the slot of each level, then that of a missing value; -1 for none."""

    type: ColumnType
    slots: tuple[int, ...]
    shared: bool
    """Whether the last slot is shared by the rarer levels."""

    @property
    def width(self) -> int:
        return max(self.slots) + 1


Part = Kept | Numbers | Levels


class Arrays(NamedTuple):
    """The encoding as `encode_block` reads it."""

    kept: np.ndarray  # (k,) positions in the raw rows
    numbers: np.ndarray  # (p,) positions in the raw rows
    fill: np.ndarray  # (p,)
    mean: np.ndarray  # (p,)
    scale: np.ndarray  # (p,) > 0
    gaps: np.ndarray  # (g,) positions in the raw rows
    gap_mean: np.ndarray  # (g,)
    gap_scale: np.ndarray  # (g,) > 0
    nominal: np.ndarray  # (q,) positions in the raw rows
    slots: np.ndarray  # slots of the first nominal column's levels and of its missing value, of the second, ...
    starts: np.ndarray  # (q + 1,) where each nominal column begins in `slots`
    columns: np.ndarray  # (q + 1,) where each begins among the encoded columns; the last is their number


def encode_block(raw: np.ndarray, a: Arrays) -> np.ndarray:
    """Return the encoded rows (n, d) of raw rows (n, columns)."""
    out = np.zeros((len(raw), a.columns[-1]))
    end = len(a.kept)
    out[:, :end] = raw[:, a.kept]
    numbers = raw[:, a.numbers]
    begin, end = end, end + len(a.numbers)
    out[:, begin:end] = (np.where(np.isnan(numbers), a.fill, numbers) - a.mean) / a.scale
    out[:, end : end + len(a.gaps)] = (np.isnan(raw[:, a.gaps]) - a.gap_mean) / a.gap_scale
    for position, start, stop, column in zip(a.nominal, a.starts[:-1], a.starts[1:], a.columns[:-1], strict=True):
        codes = raw[:, position]
        slot = a.slots[start + np.where(np.isnan(codes), stop - start - 1, codes).astype(np.intp)]
        rows = np.flatnonzero(slot >= 0)
        out[rows, column + slot[rows]] = 1.0
    return out


class Encoding:
    """How a learner's rows are made of a table's columns.

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

        A nominal column is kept for who reads it if it has fewer than `MOST_LEVELS` levels and all of them occur.
        """
        columns = list(table.columns.values())
        parts: dict[str, Part] = {column.name: Kept(column.type) for column in columns if _can_stay(column, reads)}
        numbers = [column for column in columns if column.name not in parts and column.type.kind != "nominal"]
        parts |= {part.type.name: part for part in _number_parts(numbers, table.n_rows)}
        return cls([parts.get(column.name) or _level_part(column) for column in columns])

    @property
    def schema(self) -> Schema:
        """The columns of the tables that it reads."""
        return tuple(part.type for part in self.parts)

    def raw(self, table: Table) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return the table's raw rows, and the levels that the encoding does not know, by column.

        Equal tables give equal bytes: there is one zero and one NaN.
        """
        fitting, unknown = table.require_same_columns(self.schema)
        rows = fitting.matrix()
        rows += 0.0
        rows[np.isnan(rows)] = np.nan
        return rows, unknown

    def apply(self, table: Table) -> np.ndarray:
        """Return the encoded rows (n, d) of a table that has the columns."""
        return self.apply_raw(self.raw(table)[0])

    def apply_raw(self, raw: np.ndarray) -> np.ndarray:
        """Return the encoded rows (n, d) of raw rows."""
        arrays = self.arrays()
        out = np.empty((len(raw), arrays.columns[-1]))
        step = rows_per_block(out.shape[1])
        for start in range(0, len(raw), step):
            out[start : start + step] = encode_block(raw[start : start + step], arrays)
        return out

    def nominal(self) -> list[int]:
        """Return which encoded columns are levels of a column that is kept."""
        kept = [part for part in self.parts if isinstance(part, Kept)]
        return [i for i, part in enumerate(kept) if part.type.kind == "nominal"]

    def feature_names(self) -> list[str]:
        """Return the name of each encoded column, as a person would say it."""
        numbers = [part for part in self.parts if isinstance(part, Numbers)]
        return [
            *(part.type.name for part in self.parts if isinstance(part, Kept)),
            *(part.type.name for part in numbers),
            *(f"{part.type.name} missing" for part in numbers if part.gap is not None),
            *(name for part in self.parts if isinstance(part, Levels) for name in _slot_names(part)),
        ]

    def arrays(self) -> Arrays:
        """Return the numbers of the encoding as arrays."""
        kept = [(i, part) for i, part in enumerate(self.parts) if isinstance(part, Kept)]
        numbers = [(i, part) for i, part in enumerate(self.parts) if isinstance(part, Numbers)]
        nominal = [(i, part) for i, part in enumerate(self.parts) if isinstance(part, Levels)]
        gaps = [(i, part.gap) for i, part in numbers if part.gap is not None]
        left = len(kept) + len(numbers) + len(gaps)
        return Arrays(
            _positions(kept),
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
        )

    def plain(self) -> list[dict[str, Any]]:
        """Return the encoding as lists, dicts, text, numbers and booleans, for a file."""
        return [_plain_part(part) for part in self.parts]

    @classmethod
    def from_plain(cls, plain: Any) -> "Encoding":
        """Return the encoding that `plain` describes; refuse whatever `fit` could not have made."""
        if not isinstance(plain, list) or not 0 < len(plain) <= MOST_COLUMNS:
            raise ValueError(f"an encoding is a list of 1 to {MOST_COLUMNS} columns.")
        parts = [_part_from_plain(record) for record in plain]
        if len({part.type.name for part in parts}) != len(parts):
            raise ValueError("two columns of the encoding have one name.")
        return cls(parts)

    def __getstate__(self) -> dict[str, Any]:
        return {"plain": self.plain()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.parts = Encoding.from_plain(state["plain"]).parts


def _positions(parts: Sequence[tuple[int, Any]]) -> np.ndarray:
    return np.array([i for i, _ in parts], dtype=np.int64)


# Fitting


def _can_stay(column: Column, reads: Collection[str]) -> bool:
    if column.type.kind != "nominal":
        return "missing" in reads
    occur = np.unique(column.data[~column.missing])
    few = len(occur) == len(column.type.levels) < MOST_LEVELS
    return "nominal" in reads and few and ("missing" in reads or not column.missing.any())


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
            raise ValueError(f"column {column.name!r} has numbers too large to average; divide them by a constant.")
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
    return np.stack([mean, scale], axis=1).tolist()


def _level_part(column: Column) -> Levels:
    """Give slots to the values that occur, in the order of the levels, a missing one last; the rarest share one."""
    n = len(column.type.levels)
    counts = np.bincount(np.where(column.missing, n, column.data).astype(np.intp), minlength=n + 1)
    own = np.flatnonzero(counts)
    shared: np.ndarray = own[:0]
    if len(own) >= MOST_LEVELS:
        rare = np.argsort(counts[own], kind="stable")[: 1 - MOST_LEVELS]
        shared = own[rare]
        own = np.delete(own, rare)
    slots = np.full(n + 1, -1)
    slots[own] = np.arange(len(own))
    slots[shared] = len(own)
    return Levels(column.type, tuple(slots.tolist()), len(shared) > 0)


def _slot_names(part: Levels) -> list[str]:
    words = (*part.type.levels, "missing")
    names = {slot: word for slot, word in zip(part.slots, words, strict=True) if slot >= 0}
    if part.shared:
        names[part.width - 1] = "other"
    return [f"{part.type.name} = {names[slot]}" for slot in range(part.width)]


# Plain form


def _plain_part(part: Part) -> dict[str, Any]:
    record: dict[str, Any] = {"name": part.type.name, "kind": part.type.kind}
    if part.type.kind != "numeric":
        record["levels"] = list(part.type.levels)
    if isinstance(part, Numbers):
        gap = None if part.gap is None else list(part.gap)
        return record | {"fill": part.fill, "scaling": list(part.scaling), "gap": gap}
    if isinstance(part, Levels):
        return record | {"slots": list(part.slots), "shared": part.shared}
    return record | {"kept": True}


def _part_from_plain(record: Any) -> Part:
    if not isinstance(record, dict):
        raise ValueError("a column of an encoding is a dict.")
    column = _column_type(record)
    fields = {*record} - {"name", "kind", "levels"}
    if fields == {"kept"} and record["kept"] is True:
        return Kept(column)
    if column.kind == "nominal" and fields == {"slots", "shared"}:
        return _levels(column, record)
    if column.kind != "nominal" and fields == {"fill", "scaling", "gap"}:
        gap = None if record["gap"] is None else _pair(record["gap"])
        return Numbers(column, _finite(record["fill"]), _pair(record["scaling"]), gap)
    raise ValueError(f"the encoding of a {column.kind} column has other fields than it may have.")


def _column_type(record: Mapping[str, Any]) -> ColumnType:
    name, kind, levels = record.get("name"), record.get("kind"), record.get("levels", [])
    if not isinstance(name, str) or not name or kind not in KINDS or (kind == "numeric") != ("levels" not in record):
        raise ValueError("a column of an encoding needs a name, a kind, and levels unless it is numeric.")
    if not isinstance(levels, list) or not all(isinstance(level, str) for level in levels):
        raise ValueError("levels of an encoding are a list of text.")
    if len({*levels}) != len(levels):
        raise ValueError("two levels of a column of the encoding have one name.")
    return ColumnType(name, kind, tuple(levels))


def _levels(column: ColumnType, record: Mapping[str, Any]) -> Levels:
    slots, shared = record["slots"], record["shared"]
    if not isinstance(slots, list) or len(slots) != len(column.levels) + 1 or not isinstance(shared, bool):
        raise ValueError("a nominal column of an encoding has a slot for each level and for missing values.")
    if not all(type(slot) is int and -1 <= slot < MOST_LEVELS for slot in slots):
        raise ValueError(f"slots of an encoding are whole numbers from -1 to {MOST_LEVELS - 1}.")
    used = [slot for slot in slots if slot >= 0]
    own = sorted(slot for slot in used if not shared or slot < max(used))
    if not used or own != list(range(max(used) + (not shared))):
        raise ValueError("slots of an encoding are numbered from 0, and only the shared one has several levels.")
    return Levels(column, tuple(slots), shared)


def _finite(number: Any) -> float:
    if type(number) is int and abs(number) < 2**1023:
        number = float(number)
    if type(number) is not float or not math.isfinite(number):
        raise ValueError("numbers of an encoding are finite.")
    return number


def _pair(numbers: Any) -> Scaling:
    if not isinstance(numbers, list) or len(numbers) != 2:
        raise ValueError("a scaling of an encoding is a mean and a scale.")
    mean, scale = map(_finite, numbers)
    if not scale > 0:
        raise ValueError("a scale of an encoding is > 0.")
    return Scaling(mean, scale)

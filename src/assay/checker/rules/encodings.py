"""Models that read a table: an encoding, as plain names and numbers, and a model of the encoded rows.

Parameters: `target` (name, kind, levels of the column that is predicted) and `encoding`, a list with a record for
each column that is read: `name`, `kind`, `levels` if it is nominal or ordered, perhaps `written` (how its cells are
spelled: `checker.reader`), and either `kept`; or, of numbers, `fill`, `scaling` (mean, scale) and
`gap` (mean, scale, or null); or, of levels, `slots` (each level's, then that of a level which is not in the list, then
a missing value's; -1: none) and `shared`; or, of dates, `parts`, each with the name of the `part` and the fields of a
number; or, of text, `words`. One member: the model. Raw rows are doubles: numbers, positions of levels (the length of
the list for one that is not in it), seconds since the beginning of 1970, NaN where no value is; and for each word 1 or
0. Encoded rows have, from left to right, the kept columns (levels that are not in the list as missing), ((x or fill) -
mean) / scale of each number (of fill, where this exceeds 1e150; 0, where it is below 1e-150), ([x is missing] - mean) /
scale of each number with a gap record, a column of zeros and ones for each slot of each nominal column, and the words.

The encoding is empty if the model consists of models of tables (`folded`): then the raw rows are theirs, side by side.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from assay.checker.numerics import LARGEST, SMALLEST
from assay.checker.predictors import Predictor
from assay.checker.record import Rejected, number, signed

_MOST_SLOTS = 100


class Scaled(NamedTuple):
    """(x - mean) / scale of a raw column, or of whether it is missing; `fill` stands for a missing value."""

    column: int
    mean: float
    scale: float
    fill: float


class Slots(NamedTuple):
    """The slot of each position of a raw column, the missing value's last."""

    column: int
    slots: np.ndarray
    width: int


class TableModel(Predictor):
    """What a table model consists of: its encoding, and the model of encoded rows, which is the one that is judged."""

    def __init__(self, parameters: Mapping[str, Any], inner: Predictor):
        if set(parameters) - {"memory"} != {"encoding", "target"}:
            raise Rejected("the parameters of a table model are its encoding, its target and what it remembers")
        self.inner, self.classes = inner, inner.classes
        self.target, self.records = parameters["target"], parameters["encoding"]
        self.kept: list[int] = []
        self.kept_levels: list[float] = []
        self.numbers: list[Scaled] = []
        self.gaps: list[Scaled] = []
        self.nominal: list[Slots] = []
        self.dates: list[tuple[int, str]] = []  # parts of dates are put to the right of the raw rows
        self.words: list[int] = []
        _check_column(parameters["target"], {"name", "kind", "levels", "written"})
        listed = parameters["encoding"]
        if not isinstance(listed, list) or bool(listed) == bool(self.tables):
            raise Rejected("an encoding is a list of columns, and empty if the members read tables by themselves")
        for record in listed:
            _check_column(record, _FIELDS)
        self.raw_columns = sum(_words(record["words"]) if "words" in record else 1 for record in listed)
        place = 0
        for record in listed:
            place = self._read(place, record)
        if len({record["name"] for record in listed}) != len(listed):
            raise Rejected("two columns of the encoding have one name")
        read = {record["name"] for records in (listed, *(table.records for table in self.tables)) for record in records}
        if self.target["name"] in read:
            raise Rejected("the model reads the column that it predicts, so that its hits prove nothing")
        if "memory" in parameters:
            inside = {record["name"]: record for table in reversed(self.tables) for record in table.records}
            _check_memory(parameters["memory"], listed or list(inside.values()), len(self.tables))
        left = len(self.kept) + len(self.numbers) + len(self.gaps)
        if listed and left + sum(part.width for part in self.nominal) + len(self.words) != inner.columns:
            raise Rejected("the encoding makes another number of columns than the model reads")

    @property
    def tables(self) -> list["TableModel"]:
        """The models of tables that the model consists of; none if it has an encoding of its own."""
        return [member.table for member in getattr(self.inner, "table_members", ())]

    @property
    def columns(self) -> int:
        return self.raw_columns or self.inner.columns

    def _read(self, place: int, record: Mapping[str, Any]) -> int:
        """Take the record of the column that begins at a place of the raw rows; return where the next begins."""
        kind, rest = record["kind"], set(record) - {"name", "kind", "levels", "written"}
        if rest == {"words"} and kind == "text":
            self.words += range(place, place + len(record["words"]))
            return place + len(record["words"])
        if rest == {"slots", "shared"} and kind == "nominal":
            self.nominal.append(_slots(place, record["slots"], len(record["levels"])))
        elif rest == {"parts"} and kind == "date":
            self._read_date(place, record["parts"])
        elif kind in _LEVELS or kind == "numeric" or (kind == "date" and rest == {"kept"}):
            self._read_number(place, {name: record[name] for name in rest}, kind, len(record.get("levels", ())))
        else:
            raise Rejected("a column of the encoding has other fields than it may have")
        return place + 1

    def _read_number(self, place: int, fields: Mapping[str, Any], kind: str, levels: int = 0) -> None:
        if set(fields) == {"kept"} and fields["kept"] is True:
            self.kept.append(place)
            self.kept_levels.append(float(levels) if kind == "nominal" else np.inf)
        elif set(fields) == {"fill", "scaling", "gap"} and kind != "nominal":
            self.numbers.append(_scaled(place, fields["scaling"], signed(fields["fill"], "fill")))
            if fields["gap"] is not None:
                self.gaps.append(_scaled(place, fields["gap"], 1.0))
        else:
            raise Rejected("a column of the encoding has other fields than it may have")

    def _read_date(self, place: int, parts: Any) -> None:
        if not isinstance(parts, list) or not parts or not all(isinstance(part, Mapping) for part in parts):
            raise Rejected("a date of the encoding has a list of parts")
        names = [part.get("part") for part in parts]
        if any(name not in _DATE_PARTS for name in names) or len(set(names)) != len(names):
            raise Rejected("a part of a date is unknown, or there twice")
        for name, part in zip(names, parts, strict=True):
            fields = {field: part[field] for field in part if field != "part"}
            self._read_number(self.raw_columns + len(self.dates), fields, "numeric")
            self.dates.append((place, name))

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """Return the encoded rows of raw rows."""
        if not self.records:
            return raw
        if self.dates:
            raw = np.column_stack([raw, *(date_part(raw[:, place], name) for place, name in self.dates)])
        missing = np.isnan(raw)
        kept = raw[:, self.kept]
        parts = [np.where(kept >= np.array(self.kept_levels), np.nan, kept)]
        for item in self.numbers:
            filled = np.where(missing[:, item.column], item.fill, raw[:, item.column])
            parts.append(_in_range((filled - item.mean) / item.scale, (item.fill - item.mean) / item.scale)[:, None])
        parts += [((missing[:, gap.column] - gap.mean) / gap.scale)[:, None] for gap in self.gaps]
        for part in self.nominal:
            codes = np.where(missing[:, part.column], len(part.slots) - 1, raw[:, part.column])
            whole = codes.astype(np.int64)
            if np.any(whole != codes) or np.any((whole < 0) | (whole >= len(part.slots))):
                raise Rejected("a nominal column holds a number that is no position of a level")
            parts.append((part.slots[whole][:, None] == np.arange(part.width)).astype(np.float64))
        result = raw[:, self.words]
        if np.any((result != 0.0) & (result != 1.0)):
            raise Rejected("the column of a word holds a number other than 0 and 1")
        return np.ascontiguousarray(np.hstack([*parts, result]))


def _in_range(values: np.ndarray, otherwise: float) -> np.ndarray:
    """Return the values, `otherwise` for those that are too large to be checked, and 0 for those that are too small."""
    bounded = np.where(np.isfinite(values) & (np.abs(values) > LARGEST), otherwise, values)
    return np.where(np.abs(bounded) < SMALLEST, 0.0, bounded)


_LEVELS = ("nominal", "ordered")
_FIELDS = {"name", "kind", "levels", "written", "kept", "fill", "scaling", "gap", "slots", "shared", "parts", "words"}
_DATE_PARTS = ("year", "month", "day", "weekday", "hour", "elapsed days")
_MOST_WORDS = 200


def date_part(moments: np.ndarray, name: str) -> np.ndarray:
    """Return a part of moments, which are seconds since the beginning of 1970; NaN where there is none.

    Days are counted from the 1st of March of the year 0 in cycles of 400 years, which have 146,097 days; in a year that
    begins in March the months before month m have floor((153 m + 2)/5) days.
    """
    missing = np.isnan(moments)
    at = np.where(missing, 0.0, moments)
    if name == "elapsed days":
        return np.where(missing, np.nan, at / 86_400.0)
    if np.any(np.abs(at) > 1e15):
        raise Rejected("a date is too far away")
    days = np.floor(at / 86_400.0).astype(np.int64)
    cycle, day = np.divmod(days + 719_468, 146_097)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    in_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * in_year + 2) // 153
    result = {
        "year": year + 400 * cycle + (month >= 10),
        "month": np.where(month < 10, month + 3, month - 9),
        "day": in_year - (153 * month + 2) // 5 + 1,
        "weekday": (days + 3) % 7,
        "hour": np.floor((at - days * 86_400.0) / 3600.0),
    }[name]
    return np.where(missing, np.nan, result)


def _words(words: Any) -> int:
    """Return how many words are looked for, after checking that they are different words."""
    if not isinstance(words, list) or len(words) > _MOST_WORDS or not all(isinstance(word, str) for word in words):
        raise Rejected("words of an encoding are a list of text")
    if len(set(words)) != len(words) or not all(word and word == word.casefold() and word.isalnum() for word in words):
        raise Rejected("words of an encoding are different runs of letters and digits, in small letters")
    return len(words)


def _check_memory(memory: Any, listed: Sequence[Mapping[str, Any]], folds: int) -> None:
    """Check the form of what a model remembers of its rows; no claim reads it, and `assay verify` computes it again."""
    if not isinstance(memory, Mapping) or set(memory) - {"folds"} != {"rows", "compared", "sizes", "columns"}:
        raise Rejected("what a table model remembers are sizes of predictions and its columns")
    sizes = memory["sizes"]
    if not _whole([memory["rows"], memory["compared"]], 1) or not isinstance(sizes, list):
        raise Rejected("rows and compared models are whole numbers, and sizes of predictions a list")
    _check_sizes(sizes, memory["rows"])
    if "folds" in memory:
        _check_folds(memory["folds"], memory["rows"], folds)
    if not isinstance(memory["columns"], list) or len(memory["columns"]) != len(listed):
        raise Rejected("a table model remembers each column that it reads")
    for item, column in zip(memory["columns"], listed, strict=True):
        if not isinstance(item, Mapping) or not {"missing"} <= set(item) <= {"missing", "counts", "edges", "rows"}:
            raise Rejected("of a column are remembered its gaps, counts and edges")
        counts, edges = item.get("counts", []), item.get("edges", [])
        if not isinstance(counts, list) or not isinstance(edges, list) or not _whole([*counts, item["missing"]], 0):
            raise Rejected("gaps and counts of a column are whole numbers")
        wanted = len(column["levels"]) if column["kind"] in _LEVELS else len(edges)
        wanted += column["kind"] == "nominal"  # a level that is not in the list is a value of its own
        if len(counts) != wanted or (edges and column["kind"] in _LEVELS) or not _whole([item.get("rows", 1)], 1):
            raise Rejected("a column has a count for each level, and one of numbers for each edge")
        if bool(edges) != ("rows" in item) or ("counts" in item and not counts):
            raise Rejected("rows and counts are remembered of columns that have edges or levels")
        _check_increasing([signed(edge, "edge") for edge in edges])
        _check_increasing(counts if edges else [])
        if edges and counts[-1] != item["rows"]:
            raise Rejected("the last edge of a column is its largest number, at or below which all of its rows lie")


def _check_increasing(values: Sequence[float]) -> None:
    if any(a >= b for a, b in pairwise(values)):
        raise Rejected("edges of a column, and how many rows lie at or below them, increase")


def _check_sizes(sizes: list[Any], rows: int) -> None:
    results = [signed(size, "size") for size in sizes]
    if len(sizes) > rows or min(results, default=0) < 0 or any(a > b for a, b in pairwise(results)):
        raise Rejected("sizes of predictions are in increasing order, and at most one for each row")


def _check_folds(record: Any, rows: int, folds: int) -> None:
    """Check the form of the sizes that models of folds remember of each fold."""
    if not isinstance(record, Mapping) or set(record) != {"seed", "rows", "sizes"} or not _whole([record["seed"]], 0):
        raise Rejected("of folds are remembered their seed, their numbers of rows, and sizes of predictions")
    counts, sizes = record["rows"], record["sizes"]
    if not all(isinstance(item, list) and len(item) == folds for item in (counts, sizes)) or not folds:
        raise Rejected("numbers of rows and sizes are remembered of each fold")
    if not _whole(counts, 1) or sum(counts) != rows or not all(isinstance(size, list) and size for size in sizes):
        raise Rejected("the rows of the folds are all rows, and each fold has sizes")
    for size, count in zip(sizes, counts, strict=True):
        _check_sizes(size, count)


def _whole(values: Sequence[Any], least: int) -> bool:
    return all(type(value) is int and least <= value < 2**53 for value in values)


def _check_column(record: Any, allowed: set[str]) -> None:
    """Check name, kind, levels and spelling of a column's record."""
    if not isinstance(record, Mapping) or not set(record) <= allowed or record.get("kind") not in _KINDS:
        raise Rejected("a column of a table model needs a name and a kind, and has no other fields than it may have")
    levels, written = record.get("levels", []), record.get("written", [])
    if not isinstance(levels, list) or not all(isinstance(level, str) for level in (record.get("name"), *levels)):
        raise Rejected("names and levels of a table's columns are text")
    if not isinstance(written, list) or not all(isinstance(item, str) for item in written):
        raise Rejected("how a column is written is a list of text")
    if len(set(levels)) != len(levels) or (record["kind"] not in _LEVELS and levels):
        raise Rejected("a column has a level twice, or has levels and is neither nominal nor ordered")
    if record["kind"] in _LEVELS and "levels" not in record:
        raise Rejected("a nominal or ordered column has levels")


_KINDS = ("numeric", "nominal", "ordered", "date", "text")


def _scaled(place: int, scaling: Any, fill: float) -> Scaled:
    if not isinstance(scaling, list) or len(scaling) != 2:
        raise Rejected("a scaling is a mean and a scale")
    return Scaled(place, signed(scaling[0], "mean"), number(scaling[1], "scale"), fill)


def _slots(place: int, slots: Any, levels: int) -> Slots:
    sound = isinstance(slots, list) and all(type(slot) is int and -1 <= slot < _MOST_SLOTS for slot in slots)
    if not sound or len(slots) != levels + 2 or set(slots) - {-1} != set(range(max(slots) + 1)):
        raise Rejected("slots are numbered from 0, for each level, for a level not in the list and a missing value")
    return Slots(place, np.array(slots), max(slots) + 1)


def read_table(parameters: Mapping[str, Any], members: list[Predictor], classes: Any) -> TableModel:
    """Return the model after checking its encoding."""
    if len(members) != 1 or isinstance(members[0], TableModel):
        raise Rejected("a table model has one model of encoded rows")
    return TableModel(parameters, members[0])

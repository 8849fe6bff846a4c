"""Models that read a table: an encoding, as plain names and numbers, and a model of the encoded rows.

Parameters: `target` (name, kind, levels of the column that is predicted) and `encoding`, a list with a record for each
column that is read: `name`, `kind`, `levels` unless it is numeric, and either `kept`; or, of numbers, `fill`, `scaling`
(mean, scale) and `gap` (mean, scale, or null); or, of levels, `slots` (each level's, then a missing value's; -1: none)
and `shared`. One member: the model. Raw rows are doubles: numbers, or positions of levels; NaN where no value is.
Encoded rows have, from left to right, the kept columns, ((x or fill) - mean) / scale of each number, ([x is missing] -
mean) / scale of each number with a gap record, and a column of zeros and ones for each slot of each nominal column.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from assay.checker.family import Family, Variant
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
        if set(parameters) != {"encoding", "target"}:
            raise Rejected("the parameters of a table model are its encoding and its target")
        self.inner, self.classes = inner, inner.classes
        self.kept: list[int] = []
        self.numbers: list[Scaled] = []
        self.gaps: list[Scaled] = []
        self.nominal: list[Slots] = []
        _check_column(parameters["target"], {"name", "kind", "levels"})
        listed = parameters["encoding"]
        if not isinstance(listed, list) or not listed:
            raise Rejected("an encoding is a list of columns")
        for place, record in enumerate(listed):
            self._read(place, record)
        self.raw_columns = len(listed)
        if len({record["name"] for record in listed}) != len(listed):
            raise Rejected("two columns of the encoding have one name")
        left = len(self.kept) + len(self.numbers) + len(self.gaps)
        if left + sum(part.width for part in self.nominal) != inner.columns:
            raise Rejected("the encoding makes another number of columns than the model reads")

    @property
    def columns(self) -> int:
        return self.raw_columns

    def _read(self, place: int, record: Any) -> None:
        levels = _check_column(record, {"name", "kind", "levels", "kept", "fill", "scaling", "gap", "slots", "shared"})
        rest = set(record) - {"name", "kind", "levels"}
        if rest == {"kept"} and record["kept"] is True:
            self.kept.append(place)
        elif rest == {"fill", "scaling", "gap"} and record["kind"] != "nominal":
            self.numbers.append(_scaled(place, record["scaling"], signed(record["fill"], "fill")))
            if record["gap"] is not None:
                self.gaps.append(_scaled(place, record["gap"], 1.0))
        elif rest == {"slots", "shared"} and record["kind"] == "nominal":
            self.nominal.append(_slots(place, record["slots"], levels))
        else:
            raise Rejected("a column of the encoding has other fields than it may have")

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """Return the encoded rows of raw rows."""
        missing = np.isnan(raw)
        parts = [raw[:, self.kept]]
        for one in self.numbers:
            filled = np.where(missing[:, one.column], one.fill, raw[:, one.column])
            parts.append(((filled - one.mean) / one.scale)[:, None])
        parts += [((missing[:, one.column] - one.mean) / one.scale)[:, None] for one in self.gaps]
        for part in self.nominal:
            codes = np.where(missing[:, part.column], len(part.slots) - 1, raw[:, part.column])
            whole = codes.astype(np.int64)
            if np.any(whole != codes) or np.any((whole < 0) | (whole >= len(part.slots))):
                raise Rejected("a nominal column holds a number that is no position of a level")
            parts.append((part.slots[whole][:, None] == np.arange(part.width)).astype(np.float64))
        return np.ascontiguousarray(np.hstack(parts))


def _check_column(record: Any, allowed: set[str]) -> int:
    """Return the number of levels of a column's record, after checking its name, kind and levels."""
    if not isinstance(record, Mapping) or not set(record) <= allowed or record.get("kind") not in _KINDS:
        raise Rejected("a column of a table model needs a name and a kind, and has no other fields than it may have")
    levels = record.get("levels", [])
    if not isinstance(levels, list) or not all(isinstance(level, str) for level in (record.get("name"), *levels)):
        raise Rejected("names and levels of a table's columns are text")
    if len(set(levels)) != len(levels) or (record["kind"] == "numeric" and levels):
        raise Rejected("a column has a level twice, or is numeric and has levels")
    return len(levels)


_KINDS = ("numeric", "nominal", "ordered")


def _scaled(place: int, scaling: Any, fill: float) -> Scaled:
    if not isinstance(scaling, list) or len(scaling) != 2:
        raise Rejected("a scaling is a mean and a scale")
    return Scaled(place, signed(scaling[0], "mean"), number(scaling[1], "scale"), fill)


def _slots(place: int, slots: Any, levels: int) -> Slots:
    sound = isinstance(slots, list) and all(type(slot) is int and -1 <= slot < _MOST_SLOTS for slot in slots)
    if not sound or len(slots) != levels + 1 or set(slots) - {-1} != set(range(max(slots) + 1)):
        raise Rejected("slots are numbered from 0, one for each level and one for a missing value")
    return Slots(place, np.array(slots), max(slots) + 1)


def read_table(parameters: Mapping[str, Any], members: list[Predictor], classes: Any) -> TableModel:
    """Return the model after checking its encoding."""
    if len(members) != 1 or isinstance(members[0], TableModel):
        raise Rejected("a table model has one model of encoded rows")
    return TableModel(parameters, members[0])


FAMILY = Family("table", {"": Variant({}, read_table, members=True, parameters=True)})

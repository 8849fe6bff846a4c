"""The plain form of an encoding: lists, dicts, text, numbers, for a file; and the way back, which trusts nothing."""

import math
from collections.abc import Mapping
from typing import TypeGuard

from assay._typing import Json
from assay.data.columns import KINDS, MORE_KINDS, ColumnType
from assay.data.encoding import DATE_PARTS, MOST_LEVELS, Dates, Kept, Levels, Numbers, Part, Scaling, Words
from assay.data.words import MOST_WORDS, words_of

MOST_COLUMNS = 1_000_000
"""Columns that an encoding may read."""


def column_record(column: ColumnType) -> dict[str, Json]:
    """Return name, kind, levels and form of a column as a dict; what it has not is not there."""
    record: dict[str, Json] = {"name": column.name, "kind": column.kind}
    if column.kind in ("nominal", "ordered"):
        record["levels"] = list(column.levels)
    return record | ({"written": list(column.written)} if column.written else {})


def plain_part(part: Part) -> dict[str, Json]:
    """Return a part of an encoding as a dict."""
    record = column_record(part.type)
    if isinstance(part, Dates):
        return record | {"parts": [{"part": name, **_numbers(numbers)} for name, numbers in part.parts]}
    if isinstance(part, Words):
        return record | {"words": list(part.words)}
    if isinstance(part, Levels):
        return record | {"slots": list(part.slots), "shared": part.shared}
    return record | _numbers(part)


def _numbers(part: Kept | Numbers) -> dict[str, Json]:
    if isinstance(part, Kept):
        return {"kept": True}
    return {"fill": part.fill, "scaling": list(part.scaling), "gap": None if part.gap is None else list(part.gap)}


def parts_from_plain(plain: Json) -> list[Part]:
    """Return the parts that `plain` describes; ValueError for whatever `Encoding.fit` could not have made."""
    if not isinstance(plain, list) or not 0 < len(plain) <= MOST_COLUMNS:
        raise ValueError(f"an encoding is a list of 1 to {MOST_COLUMNS} columns.")
    parts = [_part_from_plain(record) for record in plain]
    if len({part.type.name for part in parts}) != len(parts):
        raise ValueError("two columns of the encoding have one name.")
    return parts


def _part_from_plain(record: Json) -> Part:
    if not isinstance(record, dict):
        raise ValueError("a column of an encoding is a dict.")
    column = column_type(record)
    fields = {*record} - {"name", "kind", "levels", "written"}
    if column.kind == "date" and fields == {"parts"}:
        return _dates(column, record["parts"])
    if column.kind == "text" and fields == {"words"}:
        return Words(column, _words(record["words"]))
    if column.kind == "nominal" and fields == {"slots", "shared"}:
        return _levels(column, record)
    if column.kind == "date" and fields == {"kept"} and record["kept"] is True:
        return Kept(column)
    if column.kind in KINDS and (part := _number_part(column, {name: record[name] for name in fields})):
        return part
    raise ValueError(f"the encoding of a {column.kind} column has other fields than it may have.")


def _number_part(column: ColumnType, fields: Mapping[str, Json]) -> Kept | Numbers | None:
    if {*fields} == {"kept"} and fields["kept"] is True:
        return Kept(column)
    if column.kind != "nominal" and {*fields} == {"fill", "scaling", "gap"}:
        gap = None if fields["gap"] is None else _pair(fields["gap"])
        return Numbers(column, _finite(fields["fill"]), _pair(fields["scaling"]), gap)
    return None


def _dates(column: ColumnType, listed: Json) -> Dates:
    records = [record for record in listed if isinstance(record, dict)] if isinstance(listed, list) else []
    if not records or records != listed:
        raise ValueError("a date of an encoding has a list of parts.")
    names = [name for record in records if isinstance(name := record.get("part"), str)]
    if len(names) != len(records) or not {*names} <= {*DATE_PARTS} or len({*names}) != len(names):
        raise ValueError(f"parts of a date of an encoding are some of {', '.join(DATE_PARTS)}.")
    parts = []
    for name, record in zip(names, records, strict=True):
        fields = {field: value for field, value in record.items() if field != "part"}
        part = _number_part(ColumnType(f"{column.name} {name}", "numeric"), fields)
        if part is None:
            raise ValueError("a part of a date of the encoding has other fields than it may have.")
        parts.append((name, part))
    return Dates(column, tuple(parts))


def _words(words: Json) -> tuple[str, ...]:
    sound = _are_texts(words) and len({*words}) == len(words) <= MOST_WORDS
    if not _are_texts(words) or not sound or not all(words_of(word) == [word] for word in words):
        raise ValueError(f"words of an encoding are up to {MOST_WORDS} different words in small letters.")
    return tuple(words)


def _are_texts(values: Json) -> TypeGuard[list[str]]:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def column_type(record: Mapping[str, Json]) -> ColumnType:
    """Return the column that a record describes; ValueError if it describes none."""
    name, kind, levels = record.get("name"), record.get("kind"), record.get("levels", [])
    if not isinstance(name, str) or not name or kind not in (*KINDS, *MORE_KINDS):
        raise ValueError("a column of an encoding needs a name and a kind.")
    if (kind in ("nominal", "ordered")) != ("levels" in record):
        raise ValueError("a column of an encoding has levels if and only if it is nominal or ordered.")
    if not _are_texts(levels):
        raise ValueError("levels of an encoding are a list of text.")
    if len({*levels}) != len(levels):
        raise ValueError("two levels of a column of the encoding have one name.")
    return ColumnType(name, kind, tuple(levels), _written(kind, record))


def _written(kind: str, record: Mapping[str, Json]) -> tuple[str, ...]:
    """Return how the cells of a column are written, if it is a way in which they can be."""
    from assay.data.dates import FORMATS
    from assay.data.number_formats import CLOCK, is_style

    if "written" not in record:
        if kind == "date":
            raise ValueError("a date of an encoding has a form.")
        return ()
    form = record["written"]
    if not _are_texts(form):
        raise ValueError("how a column of an encoding is written is a list of text.")
    if kind == "numeric" and (form == [CLOCK] or is_style(form)):
        return tuple(form)
    if kind == "date" and len(form) == 1 and form[0].split(" %H")[0] in FORMATS:
        return tuple(form)
    raise ValueError("a column of an encoding is written in no way that is known.")


def _levels(column: ColumnType, record: Mapping[str, Json]) -> Levels:
    shared = record["shared"]
    listed = record["slots"] if isinstance(record["slots"], list) else []
    slots = [slot for slot in listed if type(slot) is int and -1 <= slot < MOST_LEVELS]
    if len(listed) != len(column.levels) + 2 or not isinstance(shared, bool):
        raise ValueError("a nominal column of an encoding has a slot for each level, a new level and missing values.")
    if len(slots) != len(listed):
        raise ValueError(f"slots of an encoding are whole numbers from -1 to {MOST_LEVELS - 1}.")
    used = [slot for slot in slots if slot >= 0]
    own = sorted(slot for slot in used if not shared or slot < max(used))
    if not used or own != list(range(max(used) + (not shared))):
        raise ValueError("slots of an encoding are numbered from 0, and only the shared one has several levels.")
    if slots[-2] != (max(used) if shared else -1):
        raise ValueError("a new level of an encoding has the slot that rare levels share, and otherwise none.")
    return Levels(column, tuple(slots), shared)


def _finite(number: Json) -> float:
    if type(number) is int and abs(number) < 2**1023:
        number = float(number)
    if type(number) is not float or not math.isfinite(number):
        raise ValueError("numbers of an encoding are finite.")
    return number


def _pair(numbers: Json) -> Scaling:
    if not isinstance(numbers, list) or len(numbers) != 2:
        raise ValueError("a scaling of an encoding is a mean and a scale.")
    mean, scale = map(_finite, numbers)
    if not scale > 0:
        raise ValueError("a scale of an encoding is > 0.")
    return Scaling(mean, scale)

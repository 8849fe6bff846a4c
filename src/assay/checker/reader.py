"""The checker's own reading of the cells of a table, each by itself, as the record of its column says.

Cells of a column are text (object; None where there is none), numbers (float64; NaN where there is none), dates
(datetime64) or times of the day and durations (timedelta64). Raw rows have for a column

    numeric     the number; hours of a time. Text is read in the column's form `written`: nothing for plain numbers,
                decimal sign, sign between groups of three digits, what may stand before and must stand after them, or
                H:MM. NaN for a gap, for what is no number, and beyond 1e150; 0 nearer to zero than 1e-150
    nominal     the position among the levels, their number if it is not among them, NaN for a gap
    ordered     the position among the levels, NaN if it is not among them
    date        seconds since the beginning of 1970; NaN for a gap and for what is no date
    text        for each word 1 if the text has it, else 0
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

from assay.checker.numerics import LARGEST, SMALLEST
from assay.checker.record import Rejected

_GAPS = frozenset(
    (
        "", "-", "--", "---", "–", "—", ".", "..", "...", "?", "*", "na", "n/a", "n.a.", "n.a", "#n/a", "#na", "<na>",
        "nan", "-nan", "none", "null", "(null)", "nil", "missing", "(missing)", "not available", "#value!", "#div/0!",
        "#ref!", "#num!", "#null!",
    )
)  # fmt: skip
_SPACES = "[ \u00a0\u202f\u2009]"
_BLANK = r"[\t\n\f\r ]"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_PARTS = {
    "%Y": r"(?P<year>\d{4})", "%m": r"(?P<month>\d{1,2})", "%d": r"(?P<day>\d{1,2})", "%H": r"(?P<hour>\d{1,2})",
    "%M": r"(?P<minute>\d{2})", "%S": r"(?P<second>\d{2})", "%b": f"(?P<name>{'|'.join(_MONTHS)})",
    "%B": f"(?P<name>{'|'.join(_LONG_MONTHS)})",
}  # fmt: skip
_ISO = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})(?:[T ](?P<hour>\d{2})(?::(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?P<rest>\.\d{1,9})?)?)?(?P<zone>Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?",
    re.ASCII,
)
_CLOCK = re.compile(r"\s*(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?\s*", re.ASCII)
_SIGNS = {(".", ""), (".", ","), (",", ""), (",", "."), (".", " "), (",", " "), (".", "'")}
_CURRENCY = "[$€£¥₹]"
_BEFORE, _AFTER = re.compile(f"{_CURRENCY}?"), re.compile(rf"(?:[%‰]|{_CURRENCY}|°?[^\W\d_](?:[^\W\d_]|[./]){{0,15}})?")
_DATE_FORM = re.compile("(?=.*%Y)(?=.*%[mbB])(?=.*%d)(?:(%[YmdbBHMS])(?!.*\\1)|[-/., :])+")


def raw_column(record: Mapping[str, Any], cells: np.ndarray) -> np.ndarray:
    """Return the raw columns (rows, width) that the cells of a column give."""
    kind = record["kind"]
    if kind == "text":
        return _each(cells, lambda text: _has_words(text, record["words"]), [0.0] * len(record["words"]))
    if kind in ("nominal", "ordered"):
        return _positions(record["levels"], cells, kind)[:, None]
    values = _numbers(record, cells) if kind == "numeric" else _moments(record, cells)
    if kind == "numeric":
        values = np.where(np.abs(values) > LARGEST, np.nan, np.where(np.abs(values) < SMALLEST, 0.0, values))
    return values[:, None] + 0.0


def raw_rows(records: Sequence[Mapping[str, Any]], cells: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the raw rows of the cells of a table, by column."""
    for record in records:
        if record["name"] not in cells:
            raise Rejected(f"the table has no column {record['name'][:40]!r}")
    return np.hstack([raw_column(record, cells[record["name"]]) for record in records])


def target_of(
    record: Mapping[str, Any], cells: np.ndarray, classes: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have a target that can be read, and the targets of these rows: numbers, or labels as text.

    A number is the label of a class in the way in which the classes are written: 1, or 1.0 beside 0.5. Any other text
    that is no gap is a class that the model does not know.
    """
    if record["kind"] == "numeric":
        values = _numbers(record, cells)
        there = ~np.isnan(values)
        if classes is None:
            return there, values[there]
        if cells.dtype == object:
            there = np.array([cell is not None and not is_gap(cell) for cell in cells.tolist()], dtype=bool)
        label = {float(name): name for name in classes}
        return there, np.array([label.get(value, str(value)) for value in values[there].tolist()], dtype=object)
    there = np.array([cell is not None for cell in cells], dtype=bool)
    return there, cells[there]


def _each(cells: np.ndarray, read: Callable[[str], Any], gap: Any) -> np.ndarray:
    """Return what is read of each text, which is read once; `gap` where there is none."""
    if cells.dtype != object:
        raise Rejected("a column of text holds numbers")
    known: dict[Any, Any] = {None: gap}
    for cell in cells.tolist():
        if cell not in known:
            known[cell] = read(cell)
    return np.array([known[cell] for cell in cells.tolist()], dtype=np.float64).reshape(len(cells), *np.shape(gap))


def _positions(levels: Sequence[str], cells: np.ndarray, kind: str) -> np.ndarray:
    place = {level: float(i) for i, level in enumerate(levels)}
    new = float(len(levels)) if kind == "nominal" else np.nan
    return _each(cells, lambda text: place.get(text, new), np.nan)


def _numbers(record: Mapping[str, Any], cells: np.ndarray) -> np.ndarray:
    if cells.dtype.kind == "m":
        return np.where(np.isnat(cells), np.nan, cells.astype("timedelta64[us]").astype(np.int64) / 1e6 / 3600.0)
    if cells.dtype.kind == "f":
        if np.isinf(cells).any():
            raise Rejected(f"column {record['name'][:40]!r} has an infinite value")
        return cells.astype(np.float64)
    written = record.get("written", [])
    return _each(cells, _hours if written == ["H:MM"] else _in_style(*(written or (".", "", "", ""))), np.nan)


def _in_style(decimal: str, group: str, before: str, after: str) -> Callable[[str], float]:
    """Return what reads numbers of a style; one that could take a digit for a sign would read other numbers."""
    if (decimal, group) not in _SIGNS or not _BEFORE.fullmatch(before) or not _AFTER.fullmatch(after):
        raise Rejected("numbers are not written in such a form")
    apart = {" ": _SPACES, "'": "['’]"}.get(group, re.escape(group))
    whole = rf"(?:[1-9]\d{{0,2}}(?:{apart}\d{{3}})+|\d+)" if group else r"\d+"
    point, first, last = (re.escape(sign) for sign in (decimal, before, after))
    number = rf"(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
    sign = rf"(?:[+-]?{_BLANK}*(?:{first}{_BLANK}*)?|{first}{_BLANK}*[+-]{_BLANK}*)" if before else rf"[+-]?{_BLANK}*"
    ending = rf"{_BLANK}*{last}" if after else ""
    pattern = re.compile(rf"{sign}{number}{ending}" + (rf"|[+-]?0+(?:{point}0*)?" if after else ""), re.ASCII)

    def read(text: str) -> float:
        tidy = text.strip().replace("−", "-")
        if not pattern.fullmatch(tidy):
            return np.nan  # a gap, or no number
        body = tidy.replace(before, "") if before else tidy
        body = body.replace(after, "") if after else body
        body = re.sub(rf"{_BLANK}|{apart}" if group else _BLANK, "", body)
        value = float(body.replace(decimal, "."))
        return value if np.isfinite(value) else np.nan

    return read


def _hours(text: str) -> float:
    result = _CLOCK.fullmatch(text)
    if not result:
        return np.nan
    hours, minutes, seconds = (float(part) for part in result.groups("0"))
    return (hours * 3600 + minutes * 60 + seconds) / 3600


def _moments(record: Mapping[str, Any], cells: np.ndarray) -> np.ndarray:
    if cells.dtype.kind == "M":
        return np.where(np.isnat(cells), np.nan, cells.astype("datetime64[us]").astype(np.int64) / 1e6)
    form = (record.get("written") or ["ISO 8601"])[0]
    return _each(cells, _iso if form == "ISO 8601" else _in_form(form), np.nan)


def _iso(text: str) -> float:
    result = _ISO.fullmatch(text.strip())
    try:
        day = datetime.fromisoformat(result["day"]) if result else None
    except ValueError:
        return np.nan
    if result is None or day is None:
        return np.nan
    hour, minute, second = (int(result[part] or 0) for part in ("hour", "minute", "second"))
    micro = int((result["rest"] or ".0")[1:7].ljust(6, "0"))
    if hour > 23 or minute > 59 or second > 59:
        return np.nan
    whole = ((day.toordinal() - _EPOCH) * 86_400 + hour * 3600 + minute * 60 + second) * 1_000_000 + micro
    return whole / 1e6 - _shift(result["zone"])


def _shift(zone: str | None) -> int:
    """Return the seconds by which a time zone is ahead."""
    if zone in (None, "Z"):
        return 0
    digits = str(zone).replace(":", "")
    seconds = 60 * (int(digits[1:3]) * 60 + int(digits[3:5] or 0))
    return seconds if digits[0] == "+" else -seconds


_EPOCH = date(1970, 1, 1).toordinal()


def _in_form(form: str) -> Callable[[str], float]:
    """Return what reads dates of a form."""
    if not _DATE_FORM.fullmatch(form):
        raise Rejected("dates are not written in such a form")
    parts = re.split("(%[a-zA-Z])", form)
    pattern = re.compile("".join(_PARTS.get(part, re.escape(part)) for part in parts), re.ASCII)

    def read(text: str) -> float:
        result = pattern.fullmatch(text.strip().lower())
        if not result:
            return np.nan
        given = result.groupdict()
        month = _MONTHS.index(given["name"][:3]) + 1 if "name" in given else int(given["month"])
        hour, minute, second = (int(given.get(part) or 0) for part in ("hour", "minute", "second"))
        try:
            day = date(int(given["year"]), month, int(given["day"]))
        except ValueError:
            return np.nan
        if hour > 23 or minute > 59 or second > 59:
            return np.nan
        return (day.toordinal() - _EPOCH) * 86_400.0 + 3600.0 * hour + 60.0 * minute + second

    return read


def _has_words(text: str, words: Sequence[str]) -> list[float]:
    """Return for each word 1 if the text has it: a longest run of letters and digits, in any case."""
    there = words_in(text)
    return [float(word in there) for word in words]


def words_in(text: str) -> set[str]:
    """Return the words of a text."""
    return set("".join(sign if sign.isalnum() else " " for sign in text.casefold()).split())


def is_gap(text: str) -> bool:
    """Tell whether a text stands for a missing number or date."""
    return text.strip().lower() in _GAPS

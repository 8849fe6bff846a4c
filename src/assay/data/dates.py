"""Dates and times: the forms in which they are written, and the parts that an encoding makes of them.

A date is a double: seconds since the beginning of 1970, in UTC where a time zone is known, else as the clock showed.
Its parts are the year, the month (1 to 12), the day of the month, the weekday (0 is Monday), the hour, and the days
elapsed since the beginning of 1970 with their fraction.
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from assay.data.written import BAD_SHARE, GAPS, Cells, Read

PARTS = ("year", "month", "day", "weekday", "hour", "elapsed days")
ISO = "ISO 8601"
FORMATS = (
    ISO, "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%d %b %Y", "%d-%b-%Y", "%b %d, %Y",
    "%d %B %Y", "%B %d, %Y",
)  # fmt: skip
"""Forms of the day; each may be followed by the hours, with minutes and seconds."""
_TIMES = ("", " %H:%M", " %H:%M:%S")
_DAY = 86_400.0
_LIKE = re.compile(r"\D{0,10}\d{1,4}[-/. ]\s?(?:\d{1,2}|[A-Za-z]{3,9})[-/. ,]|[A-Za-z]{3,9}\s\d{1,2},\s?\d{4}")


def seconds(texts: pa.Array, form: str) -> Read:
    """Return texts of this form as seconds since the beginning of 1970."""
    text = pc.utf8_trim_whitespace(texts)
    gap = pc.is_in(pc.utf8_lower(text), value_set=pa.array(GAPS)).to_numpy(zero_copy_only=False)
    if form == ISO:
        found = _iso(text)
    else:
        stamps = pc.strptime(text, format=form, unit="s", error_is_null=True)
        back = pc.strftime(stamps, format=form) if not re.search("%[bB]", form) else None
        found = from_arrow(stamps)
        if back is not None:  # 31.02. would become the 2nd or 3rd of March
            same = pc.equal(_digits(back), _digits(text)).fill_null(False).to_numpy(zero_copy_only=False)
            found = np.where(same, found, np.nan)
    return Read(found, np.isnan(found) & ~gap)


def _digits(text: pa.Array) -> pa.Array:
    """Return the text without the zeros that days and months may begin with."""
    return pc.replace_substring_regex(text, r"\b0(\d)", r"\1")


_ISO_FORM = r"^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}(?::\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?$"


def _iso(text: pa.Array) -> np.ndarray:
    fits = pc.match_substring_regex(text, _ISO_FORM)
    words = pc.if_else(fits, text, pa.scalar(None, pa.string())).to_pylist()
    return np.array([np.nan if word is None else _iso_seconds(word) for word in words], dtype=np.float64)


def _iso_seconds(word: str) -> float:
    moment, zone, shift = re.fullmatch(r"(.{10,}?)(Z|([+-]\d{2}:?\d{0,2}))?", word).groups()  # type: ignore[union-attr]
    try:
        found = np.datetime64(moment.replace(" ", "T"), "us")
    except ValueError:
        return np.nan
    hours = shift.replace(":", "") if zone and shift else "+0000"
    minutes = int(hours[1:3]) * 60 + int(hours[3:5] or 0)
    return float(found.astype(np.int64)) / 1e6 - (60 * minutes if hours[0] == "+" else -60 * minutes)


def from_arrow(values: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Return Arrow dates and times as seconds since the beginning of 1970; NaN for none."""
    stamps = values if types.is_timestamp(values.type) else values.cast(pa.timestamp("ms"))
    unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[stamps.type.unit]
    whole = stamps.cast(pa.int64())
    filled = whole.fill_null(0).to_numpy() if isinstance(whole, pa.ChunkedArray) else whole.fill_null(0).to_numpy(False)
    missing = whole.is_null().to_numpy() if isinstance(whole, pa.ChunkedArray) else whole.is_null().to_numpy(False)
    return np.where(missing, np.nan, filled / unit)


def form_of(column: Cells) -> tuple[str, str] | None:
    """Return the form in which a column of text holds dates, and a doubt about it if there is one; None for none."""
    told = [word for word in column.texts[:200].to_pylist() if word.strip().lower() not in GAPS]
    if len(told) < 2 or sum(bool(_LIKE.match(word.strip())) for word in told) < 0.9 * len(told):
        return None
    fitting = []
    for day in FORMATS:
        for time in _TIMES if day != ISO else ("",):
            read = seconds(column.texts, day + time)
            bad = column.counts[read.bad].sum()
            there = bad + column.counts[~np.isnan(read.numbers)].sum()
            if there > bad and bad <= BAD_SHARE * there:
                fitting.append((int(bad), day + time))
    if not fitting:
        return None
    best = min(fitting, key=lambda one: one[0])
    other = [form for bad, form in fitting if form != best[1] and bad == best[0]]
    doubt = f"days and months could be exchanged ({other[0]})" if other else ""
    return best[1], doubt


def part(moments: np.ndarray, name: str) -> np.ndarray:
    """Return a part of moments (seconds) as doubles; NaN where there is none.

    >>> part(np.array([951_782_400.0]), "day")  # the 29th of February 2000
    array([29.])
    """
    missing = np.isnan(moments)
    at = np.where(missing, 0.0, moments)
    if name == "elapsed days":
        return np.where(missing, np.nan, at / _DAY)
    days = np.floor(at / _DAY).astype(np.int64)
    if name == "weekday":
        found = (days + 3) % 7
    elif name == "hour":
        found = np.floor((at - days * _DAY) / 3600.0).astype(np.int64)
    else:
        date = days.astype("datetime64[D]")
        month = date.astype("datetime64[M]")
        found = {
            "year": lambda: date.astype("datetime64[Y]").astype(np.int64) + 1970,
            "month": lambda: month.astype(np.int64) % 12 + 1,
            "day": lambda: (date - month).astype(np.int64) + 1,
        }[name]()
    return np.where(missing, np.nan, found.astype(np.float64))

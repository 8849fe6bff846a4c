"""Dates and times: the forms in which they are written, and the parts that an encoding makes of them.

A date is a double: seconds since the beginning of 1970, in UTC where a time zone is known, else as the clock showed.
Its parts are the year, the month (1 to 12), the day of the month, the weekday (0 is Monday), the hour, and the days
elapsed since the beginning of 1970 with their fraction.
"""

import re
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assay.data.number_formats import BAD_SHARE, GAPS, Cells, Read
from assay.messages import Message

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
    """Return texts of this form as seconds since the beginning of 1970; days that no month has are no dates."""
    text = pc.utf8_trim_whitespace(texts)
    gap = pc.is_in(pc.utf8_lower(text), value_set=pa.array(GAPS)).to_numpy(zero_copy_only=False)
    result = _iso(text) if form == ISO else _of_form(text, form)
    return Read(result, np.isnan(result) & ~gap)


_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_FIELDS = {
    "%Y": r"(?P<Y>\d{4})", "%m": r"(?P<m>\d{1,2})", "%d": r"(?P<d>\d{1,2})", "%H": r"(?P<H>\d{1,2})",
    "%M": r"(?P<M>\d{2})", "%S": r"(?P<S>\d{2})",
    "%b": f"(?P<b>{'|'.join(name[:3] for name in _MONTHS)})", "%B": f"(?P<b>{'|'.join(_MONTHS)})",
}  # fmt: skip


def _of_form(text: pa.Array, form: str) -> np.ndarray:
    """Return the seconds of texts in a form of `FORMATS`, perhaps with a time; NaN for others."""
    pattern = "".join(_FIELDS.get(part, re.escape(part)) for part in re.split("(%[a-zA-Z])", form))
    parts = pc.extract_regex(pc.utf8_lower(text), f"^{pattern}$")
    names = [field.name for field in parts.type]
    fits = parts.is_valid().to_numpy(zero_copy_only=False)

    def field(name: str, otherwise: int) -> np.ndarray:
        if name not in names:
            return np.full(len(text), otherwise)
        words = pc.struct_field(parts, name)
        if name == "b":
            short = pc.utf8_slice_codeunits(words, 0, 3)
            words = pc.add(pc.index_in(short, value_set=pa.array([item[:3] for item in _MONTHS])), 1)
        return np.asarray(pc.cast(words, pa.int64()).fill_null(otherwise).to_numpy(zero_copy_only=False))

    year, month, day = field("Y", 1970), field("b" if "b" in names else "m", 1), field("d", 1)
    hour, minute, second = field("H", 0), field("M", 0), field("S", 0)
    fits &= (year >= 1) & (month >= 1) & (month <= 12) & (hour < 24) & (minute < 60) & (second < 60)
    first = (12 * (year - 1970) + np.clip(month, 1, 12) - 1).astype("datetime64[M]")
    last = (first + np.timedelta64(1, "M")).astype("datetime64[D]") - first.astype("datetime64[D]")
    fits &= (day >= 1) & (day <= last.astype(np.int64))
    days = first.astype("datetime64[D]").astype(np.int64) + day - 1
    return np.where(fits, days * _DAY + 3600.0 * hour + 60.0 * minute + second, np.nan)


_ISO_FORM = (  # there is no year 0
    r"^(?:[1-9]\d{3}|0[1-9]\d{2}|00[1-9]\d|000[1-9])-\d{2}-\d{2}"
    r"(?:[T ]\d{2}(?::\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?(?:Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?$"
)


def _iso(text: pa.Array) -> np.ndarray:
    fits = pc.match_substring_regex(text, _ISO_FORM)
    words = pc.if_else(fits, text, pa.scalar(None, pa.string())).to_pylist()
    try:  # all at once if all are days that there are; of time zones NumPy says that it does not keep them
        with warnings.catch_warnings(action="ignore"):
            parts = ["NaT" if word is None else word.replace(" ", "T") for word in words]
            whole = np.array(parts, dtype="datetime64[us]")
    except ValueError:
        return np.array([np.nan if word is None else _iso_seconds(word) for word in words], dtype=np.float64)
    return np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / 1e6)


def _iso_seconds(word: str) -> float:
    moment, zone, shift = re.fullmatch(r"(.{10,}?)(Z|([+-]\d{2}:?\d{0,2}))?", word).groups()  # type: ignore[union-attr]
    try:
        result = np.datetime64(moment.replace(" ", "T"), "us")
    except ValueError:
        return np.nan
    hours = shift.replace(":", "") if zone and shift else "+0000"
    minutes = int(hours[1:3]) * 60 + int(hours[3:5] or 0)
    return float(result.astype(np.int64)) / 1e6 - (60 * minutes if hours[0] == "+" else -60 * minutes)


def from_arrow(values: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Return Arrow dates and times as seconds since the beginning of 1970; NaN for none."""
    whole = values.cast(pa.timestamp("us", getattr(values.type, "tz", None)), safe=False).cast(pa.int64())
    filled = whole.fill_null(0).to_numpy() if isinstance(whole, pa.ChunkedArray) else whole.fill_null(0).to_numpy(False)
    missing = whole.is_null().to_numpy() if isinstance(whole, pa.ChunkedArray) else whole.is_null().to_numpy(False)
    return np.where(missing, np.nan, filled / 1e6)


def form_of(column: Cells) -> tuple[str, str] | None:
    """Return the form in which a column of text holds dates, and a doubt about it if there is one; None for none."""
    told = [word for word in column.texts[:200].to_pylist() if word.strip().lower() not in GAPS]
    if len(told) < 2 or sum(bool(_LIKE.match(word.strip())) for word in told) < 0.9 * len(told):
        return None
    fitting = []
    some = column.texts[:2000]
    for day in FORMATS:
        for time in _TIMES if day != ISO else ("",):
            if np.isnan(seconds(some, day + time).numbers).all():
                continue
            read = seconds(column.texts, day + time)
            bad = column.counts[read.bad].sum()
            there = bad + column.counts[~np.isnan(read.numbers)].sum()
            if there > bad and bad <= BAD_SHARE * there:
                fitting.append((int(bad), day + time))
    if not fitting:
        return None
    best = min(fitting, key=lambda item: item[0])
    other = [form for bad, form in fitting if form != best[1] and bad == best[0]]
    doubt = Message("read.doubt", example=other[0]) if other else ""
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
        values = (days + 3) % 7
    elif name == "hour":
        values = np.floor((at - days * _DAY) / 3600.0).astype(np.int64)
    else:
        date = days.astype("datetime64[D]")
        month = date.astype("datetime64[M]")
        values = {
            "year": date.astype("datetime64[Y]").astype(np.int64) + 1970,
            "month": month.astype(np.int64) % 12 + 1,
            "day": (date - month).astype(np.int64) + 1,
        }[name]
    return np.where(missing, np.nan, values.astype(np.float64))

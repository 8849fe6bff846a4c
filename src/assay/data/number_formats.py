"""Numbers as people write them: 12.3 %, 1,234, $5, 1.234,5, and the words that stand for a gap.

How a column is written is decided by all of its cells together. Its style is a decimal sign, a sign between groups of
three digits, what may stand before the digits (a currency) and what must stand after them (a per cent sign, a unit).
The styles of `_SIGNS` are tried, and that of fewest cells that do not fit is taken, the first of equals: so 1,234
beside 5,678 is a thousand, and beside 1,5 a little more than one. Up to one cell in twenty may be no number at all;
these become gaps and are counted. Digits that begin with 0 (00123) and whole numbers beyond 2^53, however they are
written, are names: as numbers, different ones would become equal. 1.1 beside 1.10 may be amounts or versions: they are
read as one number, which is noted.
"""

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assay.messages import Message

GAPS = (
    "", "-", "--", "---", "–", "—", ".", "..", "...", "?", "*", "na", "n/a", "n.a.", "n.a", "#n/a", "#na", "<na>",
    "nan", "-nan", "none", "null", "(null)", "nil", "missing", "(missing)", "not available", "#value!", "#div/0!",
    "#ref!", "#num!", "#null!",
)  # fmt: skip
"""What stands for a missing number, in any case."""
_CASES = (str, str.upper, str.capitalize, str.title)
GAP_SPELLINGS = tuple(dict.fromkeys(spelled(word) for word in GAPS for spelled in _CASES))
BAD_SHARE = 0.05
"""Cells of a column of numbers that may be none."""
MOST_CODES = 20
"""A column of at most so many whole numbers, and some words, holds names rather than numbers."""

CLOCK = "H:MM"
"""The form of a column of times of the day, or of durations, which are read as hours."""

LEADING_ZERO = Message("read.leading-zero")
TOO_LONG = Message("read.too-long")
_PLAIN = r"^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$"
_ONE_PLAIN = re.compile(_PLAIN, re.ASCII)
_FEW = 64  # cells
_PADDED = r"^\s*[+-]?0\d"
_WHOLE = r"^\s*[+-]?\d{16,}(?:\.0*)?\s*$"
_ENDS_IN_ZERO = r"\.\d*[1-9]0+$"

_CURRENCY = "[$€£¥₹]"
_SIGNS = ((".", ""), (".", ","), (",", ""), (",", "."), (".", " "), (",", " "), (".", "'"))
_SPACES = "[ \u00a0\u202f\u2009]"
_AFTER = rf"[%‰]|{_CURRENCY}|°?[^\W\d_](?:[^\W\d_]|[./]){{0,15}}"
_PARTS = re.compile(
    rf"[+\-−]?\s*(?P<before>{_CURRENCY})?\s*[+\-−]?\s*(?:[.,]?\d[\d.,'’ \u00a0\u202f\u2009]*?)(?:[eE][+-]?\d+)?"
    rf"\s*(?P<after>{_AFTER})?"
)


class Style(NamedTuple):
    """How the numbers of a column are written."""

    decimal: str
    group: str
    before: str
    after: str

    @property
    def plain(self) -> bool:
        return self == (".", "", "", "")

    def example(self) -> str:
        """Return a number in this style.

        >>> Style(",", ".", "", "%").example()
        '1.234,5%'
        """
        return f"{self.before}1{self.group}234{self.decimal}5{self.after}"


def is_style(form: Sequence[str]) -> bool:
    """Tell whether these are the fields of a style that `style_of` could have found."""
    if len(form) != 4 or tuple(form[:2]) not in _SIGNS:
        return False
    signs = re.compile(rf"(?:{_CURRENCY})?"), re.compile(rf"(?:{_AFTER})?")
    return all(sign.fullmatch(text) for sign, text in zip(signs, form[2:], strict=True))


class Cells(NamedTuple):
    """The distinct texts of a column, how many rows have each, and which of them each row has (-1: none)."""

    texts: pa.Array
    counts: np.ndarray
    codes: np.ndarray


class Read(NamedTuple):
    """Texts as numbers: NaN for a gap and for what is none; which are none."""

    numbers: np.ndarray
    bad: np.ndarray


def cells(values: pa.ChunkedArray) -> Cells:
    """Return the distinct texts of a column of text."""
    coded = values.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    counts = np.bincount(codes[codes >= 0], minlength=len(coded.dictionary))
    return Cells(coded.dictionary.cast(pa.string()), counts, codes)


def plain_numbers(values: pa.ChunkedArray) -> np.ndarray | None:
    """Return a column of text as numbers, NaN for gaps, if every cell is a plain number or a gap; None otherwise.

    >>> plain_numbers(pa.chunked_array([["1.5", "-", "2e3"]]))
    array([1.5e+00,     nan, 2.0e+03])
    >>> plain_numbers(pa.chunked_array([["0123", "17"]])) is None
    True
    """
    if len(values) <= _FEW:
        return _few_plain_numbers(values.to_pylist())
    values = values.cast(pa.string())
    fits = pc.match_substring_regex(values, _PLAIN)
    others = pc.unique(values.filter(pc.invert(fits)))
    if len(others) and not pc.all(pc.is_in(_tidy(others), value_set=pa.array(GAPS))).as_py():
        return None
    body = values if not len(others) else pc.if_else(fits, values, pa.scalar(None, pa.string()))
    numbers: np.ndarray = pc.cast(body, pa.float64()).to_numpy().astype(np.float64)
    if np.isnan(numbers).all() or np.isinf(numbers).any() or _any(body, _PADDED) or _too_long(body, numbers):
        return None
    return numbers


def _few_plain_numbers(cells: Sequence[str | None]) -> np.ndarray | None:
    """Return the same of few cells, for which calls of Arrow would cost more than the work: tables may be wide."""
    results = []
    for cell in cells:
        if cell is None or cell.strip().lower() in GAPS:
            results.append(np.nan)
        elif not _ONE_PLAIN.fullmatch(cell) or re.match(_PADDED, cell):
            return None
        else:
            results.append(float(cell))
    numbers = np.array(results)
    long = any(abs(number) >= 2**53 and _is_long(cell) for cell, number in zip(cells, results))
    return None if long or np.isnan(numbers).all() or np.isinf(numbers).any() else numbers


def infinite_row(values: pa.ChunkedArray) -> int | None:
    """Return the first row that says infinity in a column of text that else holds plain numbers; None if there is none.

    >>> infinite_row(pa.chunked_array([["1", "-inf"]]))
    1
    """
    said = pc.match_substring_regex(values, r"(?i)^[+-]?inf(?:inity)?$").fill_null(False)
    if not pc.any(said).as_py():
        return None
    others = values.filter(pc.invert(said))
    plain = others.null_count == len(others) or plain_numbers(others) is not None
    return int(np.argmax(said.to_numpy())) if plain else None


def spelled_gaps(texts: Sequence[str | None]) -> np.ndarray:
    """Return which cells hold no number because they say that there is none."""
    return np.array([text is None or text.strip().lower() in GAPS for text in texts], dtype=bool)


def _tidy(texts: pa.Array) -> pa.Array:
    return pc.utf8_lower(pc.utf8_trim_whitespace(texts))


def _any(texts: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _too_long(texts: pa.ChunkedArray, numbers: np.ndarray) -> bool:
    """Tell whether a whole number is beyond 2^53; the texts are plain numbers."""
    if np.nanmax(np.abs(numbers), initial=0.0) < 2**53:  # 2^53 + 1 is read as 2^53
        return False
    return any(map(_is_long, pc.unique(texts.filter(pc.match_substring_regex(texts, _WHOLE))).to_pylist()))


def _is_long(text: str | None) -> bool:
    """Tell whether a text is a whole number beyond 2^53."""
    return bool(re.match(_WHOLE, text or "")) and abs(Decimal(str(text).strip())) > 2**53


def why_names(column: "Cells") -> str:
    """Return why what looks like numbers was read as names; empty if nothing does."""
    looks = pc.match_substring_regex(pc.utf8_trim_whitespace(column.texts), _PLAIN)
    if len(column.texts) and pc.sum(looks).as_py() >= 0.9 * len(column.texts) and _any(column.texts, _PADDED):
        return LEADING_ZERO
    tried = _best_style(column)
    return TOO_LONG if tried is not None and _too_long(tried.bodies, tried.read.numbers) else ""


def merged(values: pa.ChunkedArray | pa.Array) -> str:
    """Return a note on two spellings of a number that differ by zeros at the end, as versions do; empty if none do.

    >>> merged(pa.array(["1.9", "1.1", "1.10"])).values
    {'first': '1.1', 'second': '1.10'}
    >>> merged(pa.array(["1.90", "1.10", "2"]))
    ''
    """
    values = values.cast(pa.string())
    longer = pc.unique(values.filter(pc.ends_with(values, "0")))
    longer = longer.filter(pc.match_substring_regex(longer, _ENDS_IN_ZERO))
    if not len(longer):
        return ""
    shorter = pc.utf8_rtrim(longer, characters="0")
    twice = pc.is_in(shorter, value_set=pc.unique(values.filter(pc.is_in(values, value_set=shorter))))
    if not pc.any(twice).as_py():
        return ""
    at = int(np.argmax(twice.to_numpy(zero_copy_only=False)))
    return Message("read.merged", first=shorter[at].as_py(), second=longer[at].as_py())


def read_column(values: pa.ChunkedArray, form: tuple[str, ...]) -> Read:
    """Return the cells of a column of text as numbers of this form (`ColumnType.written`), each cell by itself."""
    if not form and len(values) <= _FEW:
        few = _few_plain_numbers(values.to_pylist())
        if few is not None:
            return Read(few, np.zeros(len(few), dtype=bool))
    values = values.cast(pa.string())
    if not form and values.null_count == 0 and pc.all(pc.match_substring_regex(values, _PLAIN)).as_py():
        result = pc.cast(values, pa.float64()).to_numpy().astype(np.float64)
        if not np.isinf(result).any():
            return Read(result, np.zeros(len(result), dtype=bool))
    coded = cells(values)
    read = read_as(coded.texts, form)
    return Read(np.append(read.numbers, np.nan)[coded.codes], np.append(read.bad, False)[coded.codes])


def is_clock(column: "Cells") -> bool:
    """Tell whether a column of text holds times of the day or durations, such as 7:30."""
    told = [word for word in column.texts.to_pylist() if word.strip().lower() not in GAPS]
    return len(told) > 1 and all(_CLOCK.fullmatch(word) for word in told)


_CLOCK = re.compile(r"\s*(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?\s*", re.ASCII)


def numbers(texts: pa.Array, style: Style) -> Read:
    """Return the texts as numbers of this style."""
    return _tried(texts, style).read


class _Tried(NamedTuple):
    """Texts read in a style: the numbers, and the same as plain text, None where there is none."""

    style: Style
    read: Read
    bodies: pa.Array


def _tried(texts: pa.Array, style: Style) -> _Tried:
    text = pc.replace_substring(pc.utf8_trim_whitespace(texts), "−", "-")
    gap = pc.is_in(pc.utf8_lower(text), value_set=pa.array(GAPS)).to_numpy(zero_copy_only=False)
    fits = pc.match_substring_regex(text, _pattern(style)).to_numpy(zero_copy_only=False)
    body = pc.if_else(pa.array(fits), text, pa.scalar(None, pa.string()))
    for sign in (style.before, style.after):
        body = pc.replace_substring(body, sign, "") if sign else body
    group = {" ": _SPACES, "'": "['’]"}.get(style.group, re.escape(style.group) if style.group else "")
    body = pc.replace_substring_regex(body, rf"\s|{group}" if group else r"\s", "")
    body = pc.replace_substring(body, style.decimal, ".")
    result = pc.cast(body, pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    large = np.isinf(result)
    return _Tried(style, Read(np.where(large, np.nan, result), ~fits & ~gap | large), body)


def read_as(texts: pa.Array, form: tuple[str, ...]) -> Read:
    """Return the texts as numbers of the form that a column's type tells (`ColumnType.written`)."""
    if form == (CLOCK,):
        return _hours(texts)
    return numbers(texts, Style(*(form or (".", "", "", ""))))


def _hours(texts: pa.Array) -> Read:
    """Return 7:30 or 07:30:15.5 as hours."""
    results = []
    for text in texts.to_pylist():
        match = _CLOCK.fullmatch(text)
        hours, minutes, seconds = match.groups("0") if match else ("nan", "nan", "nan")
        results.append((float(hours) * 3600 + float(minutes) * 60 + float(seconds)) / 3600)
    gap = np.array([text.strip().lower() in GAPS for text in texts.to_pylist()], dtype=bool)
    return Read(np.array(results), np.isnan(results) & ~gap)


def _pattern(style: Style) -> str:
    """Return the regular expression (RE2) of a number; only a zero may lack what stands after numbers."""
    group = {" ": _SPACES, "'": "['’]", "": ""}.get(style.group, re.escape(style.group))
    whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+)" if group else r"\d+"
    decimal = re.escape(style.decimal)
    number = rf"(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][+-]?\d+)?"
    sign = r"[+-]?\s*"
    if style.before:
        sign = rf"(?:[+-]?\s*(?:{re.escape(style.before)}\s*)?|{re.escape(style.before)}\s*[+-]\s*)"
    after = rf"\s*{re.escape(style.after)}" if style.after else ""
    zero = rf"|^[+-]?0+(?:{decimal}0*)?$" if style.after else ""
    return rf"^{sign}{number}{after}${zero}"


def style_of(column: Cells, *, typed_as_text: bool) -> Style | None:
    """Return the style in which a column of text holds numbers; None if it holds none.

    `typed_as_text`: the column comes from a frame or a file that knows numbers, so that somebody made text of these;
    a few whole numbers then stay names, and so do numbers that begin with 0.
    """
    tried = _best_style(column)
    return tried.style if tried is not None and _safe(column, tried, typed_as_text) else None


def _best_style(column: Cells) -> _Tried | None:
    """Return the style of fewest cells that do not fit, and the texts read in it; None if few look like numbers."""
    words = [word.strip() for word in column.texts[:2000].to_pylist()]
    told = [word for word in words if word.lower() not in GAPS]
    matches = [match for word in told if (match := _PARTS.fullmatch(word))]
    if not told or len(matches) < 0.9 * len(told) or _any(column.texts, _PADDED):
        return None
    before = _commonest([match["before"] or "" for match in matches], 0.0)
    some = [match for match in matches if match[0].strip("+-−0.,")] or matches  # a zero needs no sign
    after = _commonest([match["after"] or "" for match in some], 0.9)
    tried = [_tried(column.texts, Style(*signs, before, after)) for signs in _SIGNS]
    return min(tried, key=lambda item: int(column.counts[item.read.bad].sum()))


def _commonest(words: Sequence[str], share: float) -> str:
    """Return the commonest word that is not empty, if it has this share."""
    counts = Counter(filter(None, words)).most_common(1)
    return counts[0][0] if counts and counts[0][1] >= share * len(words) else ""


def _safe(column: Cells, tried: _Tried, typed_as_text: bool) -> bool:
    style, read, bodies = tried
    bad = column.counts[read.bad].sum()
    there = bad + column.counts[~np.isnan(read.numbers)].sum()
    result = np.unique(read.numbers[~np.isnan(read.numbers)])
    many = len(result) > MOST_CODES or bool((result != np.round(result)).any())
    if not len(result) or (not many and (bad or (typed_as_text and style.plain))):
        return False
    if _too_long(bodies, result):
        return False
    return bool(bad <= BAD_SHARE * there)


def note(column: Cells, style: Style, read: Read) -> str:
    """Return in words how a column was read."""
    said: list[str] = [] if style.plain else [Message("read.numbers", example=style.example())]
    gaps = np.flatnonzero(np.isnan(read.numbers) & ~read.bad)
    if len(gaps):
        words = [repr(column.texts[int(i)].as_py()) for i in gaps[:3]]
        said.append(Message("gaps.written", count=int(column.counts[gaps].sum()), words=words))
    bad = np.flatnonzero(read.bad)
    if len(bad):
        words = [repr(column.texts[int(i)].as_py()) for i in bad[:3]]
        said.append(Message("gaps.words", count=int(column.counts[bad].sum()), words=words))
    said.append(merged(_tried(column.texts, style).bodies))
    return parts(said)


def parts(said: Sequence[str]) -> str:
    """Return remarks about a column as one; one alone as it is, and "" of none."""
    kept = [output for output in said if output]
    if len(kept) > 1:
        return Message("read.parts", parts=kept)
    return kept[0] if kept else ""

"""Certificates of models of tables: the checker's own reader of cells, and the encoding derived from the training rows.

Each cell is read by itself, as the record of its column says. Cells of a column are text (object; None where there is
none), numbers (float64; NaN where there is none), dates (datetime64) or times of the day and durations (timedelta64).
Raw rows have for a column

    numeric     the number; hours of a time. Text is read in the column's form `written`: nothing for plain numbers,
                decimal sign, sign between groups of three digits, what may stand before and must stand after them, or
                H:MM. NaN for a gap, for what is no number, and beyond 1e150; 0 nearer to zero than 1e-150
    nominal     the position among the levels, their number if it is not among them, NaN for a gap
    ordered     the position among the levels, NaN if it is not among them
    date        seconds since the beginning of 1970; NaN for a gap and for what is no date
    text        for each word 1 if the text has it, else 0

Whatever turns a row into numbers must be what the training rows give (outside its fold, for the model of a fold): lists
of levels, what stands for a gap, means and scales, parts of dates, words. They are derived again here, field by field.
The kind of a column and the form of its cells are declared by the model's maker, as are columns that are left out and
the levels of an ordered column; of the cells of the training rows at most one in twenty may not fit the form, and of
the target's as many: rows without a target that can be read are not judged, so a false form could hide any of them.

What `predict` makes of the same rows is compared, row by row: raw rows must be equal to those read here, and what it
says must be what the checker's own predictor is sure of.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np

from assay.checker.family import read_model, stored_form
from assay.checker.identity import GROUPS, HOLDOUT, RESERVE, drawn_folds, drawn_order, texts_of
from assay.checker.numerics import LARGEST, SMALLEST, U, gamma
from assay.checker.predictors import Predictor, decided
from assay.checker.record import MALFORMED_INPUT_ERRORS, Refused, Rejected, array
from assay.checker.rule import Clock
from assay.checker.rules.encodings import TableModel, date_part
from assay.checker.verdict import Report
from assay.checker.verify import failed, verify
from assay.claims.claim import Certificate

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
    r"(?::(?P<second>\d{2})(?P<rest>\.\d{1,9})?)?)?(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)
_CLOCK = re.compile(r"\s*(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?\s*", re.ASCII)


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
        return there, np.array([label.get(one, str(one)) for one in values[there].tolist()], dtype=object)
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
    """Return what reads numbers of a style."""
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
    found = _CLOCK.fullmatch(text)
    if not found:
        return np.nan
    hours, minutes, seconds = (float(part) for part in found.groups("0"))
    return (hours * 3600 + minutes * 60 + seconds) / 3600


def _moments(record: Mapping[str, Any], cells: np.ndarray) -> np.ndarray:
    if cells.dtype.kind == "M":
        return np.where(np.isnat(cells), np.nan, cells.astype("datetime64[us]").astype(np.int64) / 1e6)
    form = (record.get("written") or ["ISO 8601"])[0]
    return _each(cells, _iso if form == "ISO 8601" else _in_form(form), np.nan)


def _iso(text: str) -> float:
    found = _ISO.fullmatch(text.strip())
    try:
        day = datetime.fromisoformat(found["day"]) if found else None
    except ValueError:
        return np.nan
    if found is None or day is None:
        return np.nan
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    micro = int((found["rest"] or ".0")[1:7].ljust(6, "0"))
    if hour > 23 or minute > 59 or second > 59:
        return np.nan
    whole = ((day.toordinal() - _EPOCH) * 86_400 + hour * 3600 + minute * 60 + second) * 1_000_000 + micro
    return whole / 1e6 - _shift(found["zone"])


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
    parts = re.split("(%[a-zA-Z])", form)
    pattern = re.compile("".join(_PARTS.get(part, re.escape(part)) for part in parts), re.ASCII)

    def read(text: str) -> float:
        found = pattern.fullmatch(text.strip().lower())
        if not found:
            return np.nan
        given = found.groupdict()
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


_MOST_SLOTS, _MOST_WORDS, _BAD_SHARE = 100, 200, 0.05
_DATE_PARTS = ("year", "month", "day", "weekday", "hour", "elapsed days")
_ROUNDING = gamma(2**11)  # of a mean, relative to that of the sizes: sums are made in pairs, so that n hardly matters
_AT_ONCE = 2**12  # rows whose predictions are compared together
Cells = Mapping[str, np.ndarray]


class Used(NamedTuple):
    """What a model itself makes of the rows of a table: raw rows, and what it predicts."""

    raw: np.ndarray
    said: np.ndarray


def verify_table(
    certificate: Certificate, model: Any, cells: Cells, used: Used | None = None, *, limit: float | None = None
) -> Report:
    """Re-check the certificate of a model of a table from the cells of the table.

    `cells` has an array with one cell for each row for each column that the model reads, its target and the column of
    groups that claims name; see `checker.reader`.
    """
    clock = Clock(limit)
    try:
        table = read_model(stored_form(model))
        if not isinstance(table, TableModel):
            raise Rejected("the model does not read tables; pass its rows")
        target = table.target["name"]
        if target not in cells:
            raise Rejected(f"the table has no column {target[:40]!r}")
        there, y = target_of(table.target, cells[target], table.classes)
        _check_target(there, cells[target])
        rows = {name: np.asarray(column)[there] for name, column in cells.items()}
        own = _own_rows(certificate, rows, len(y))
        rows, y = {name: column[own] for name, column in rows.items()}, y[own]
        _check_groups(certificate, rows, len(y))
        raw = np.hstack([raw_rows(one.records, rows) for one in _tables(table)])
        report = verify(certificate, model, raw, y, columns=rows, limit=limit)
        if any(one.claim == "data.identity" and one.status == "REJECTED" for one in report.verdicts):
            return report  # other rows give other encodings
        for one, train in _training_rows(table, certificate, len(raw)):
            _compare(one.records, {name: column[train] for name, column in rows.items()})
        if report.holds and used is not None:
            _compare_used(table, raw, Used(used.raw[there][own], used.said[there][own]), clock)
        return report
    except (Rejected, Refused, *MALFORMED_INPUT_ERRORS) as error:
        return Report(failed("certificate", error))


def _check_target(there: np.ndarray, cells: np.ndarray) -> None:
    try:
        _check_form(np.where(there, 0.0, np.nan), cells)
    except Rejected as error:
        raise Rejected(f"the target of {int((~there).sum())} of {len(there)} rows cannot be read: {error}") from None


def _compare_used(table: TableModel, raw: np.ndarray, used: Used, clock: Clock) -> None:
    """Reject a model that reads rows otherwise than they are read here, or says something else of them."""
    if not np.array_equal(used.raw, raw, equal_nan=True):
        raise Rejected("the model reads cells of the table otherwise than the checker does")
    for start in range(0, len(raw), _AT_ONCE):
        clock.check()
        here = slice(start, start + _AT_ONCE)
        count = int(np.count_nonzero(_contradicted(table.inner, table.encode(raw[here]), used.said[here])))
        if count:
            raise Rejected(f"of {len(used.said[here])} rows {count} are predicted otherwise than they are judged")


def _contradicted(model: Predictor, X: np.ndarray, said: np.ndarray) -> np.ndarray:
    """Return for which rows something else is said than the checker is sure of."""
    if model.classes is None:
        scores, errors = model.scores(X, np.abs(X).max(axis=0, initial=0.0))
        apart = np.abs(said.reshape(len(X), -1) - scores)
        return ~(apart <= errors + 4 * U * np.abs(scores)).all(axis=1)
    guess, sure = decided(model, X)
    labels = np.array([*model.classes, ""], dtype=object)[np.minimum(guess, len(model.classes))]
    told = np.array([str(one) for one in said.tolist()], dtype=object)
    return sure & (guess < len(model.classes)) & (labels != told)  # a row that is not decided may have any label


def _own_rows(certificate: Certificate, cells: Cells, rows: int) -> np.ndarray:
    """Return the numbers of the rows that a certificate is about: all but those that are kept for later looks.

    Rejected if hold-out rows, or these, are not what the seed draws: of all rows or, with a column of groups, of these;
    or, with a column of times, not the newest. A split with neither is declared, which the verdict says.
    """
    split, looks = certificate.split, certificate.looks or {"reserve": [], "parts": 0}
    kept = array(np.asarray(looks["reserve"], dtype=np.int64), "reserve", (None,), integer=True)
    if split is None or "seed" not in split:
        if len(kept):
            raise Rejected("rows are kept for later looks, but no seed says which")
        if certificate.time is not None:
            _check_newest(certificate, cells, rows)
        return np.arange(rows)
    if certificate.time is not None:
        raise Rejected("hold-out rows are drawn by a seed, or the newest, but not both")
    seed = int(array(split["seed"], "seed", (1,), integer=True)[0])
    held = np.sort(array(split["holdout"], "split of holdout", (None,), integer=True))
    rest = np.setdiff1d(np.arange(rows), kept)
    if not len(held) or held[0] < 0 or held[-1] >= len(rest):
        raise Rejected("the split names rows that the table does not have")
    unit = _units(certificate, cells, rows)
    units = int(unit.max()) + 1
    count = looks["units"] if looks["parts"] else len(np.unique(unit[rest[held]]))
    if count > units:
        raise Rejected(f"{count} hold-out rows or groups were drawn, and the table has {units}")
    drawn = drawn_order(units, seed, GROUPS if certificate.named_columns else HOLDOUT)[:count]
    inside = np.flatnonzero(np.isin(unit, drawn))
    mine, later = inside, inside[:0]
    if looks["parts"]:
        dealt = np.empty(count, dtype=np.int64)
        dealt[drawn_order(count, seed, RESERVE)] = np.arange(count) % looks["parts"]
        part = dealt[np.unique(unit[inside], return_inverse=True)[1]]
        mine, later = inside[part == looks["part"] - 1], inside[part >= looks["part"]]
    if not np.array_equal(mine, rest[held]) or not np.array_equal(later, np.sort(kept)):
        raise Rejected("the hold-out rows are not those that the seed draws")
    return rest


def _check_newest(certificate: Certificate, cells: Cells, rows: int) -> None:
    """Reject hold-out rows that are not all rows from some time on, by the column that the certificate names."""
    record: Mapping[str, Any] = certificate.time or {}
    name, kind, levels = str(record.get("name")), record.get("kind"), record.get("levels")
    if certificate.split is None or name not in cells or kind not in ("numeric", "date", "nominal", "ordered"):
        raise Rejected(f"the newest rows by {name[:40]!r} cannot be told: no such column of times, or no split")
    column = np.asarray(cells[name])
    if kind == "nominal" and levels != sorted({cell for cell in column.tolist() if cell is not None}):
        raise Rejected(f"the names in the column {name[:40]!r} have another order")
    times = raw_column(record, column)[:, 0]
    held = array(certificate.split["holdout"], "split of holdout", (None,), integer=True)
    newest = np.zeros(rows, dtype=bool)
    newest[held[(held >= 0) & (held < rows)]] = True
    if np.isnan(times).any() or newest.all() or not newest.any() or not times[newest].min() > times[~newest].max():
        raise Rejected(f"the hold-out rows are not the newest by the column {name[:40]!r}")


def _check_groups(certificate: Certificate, cells: Cells, rows: int) -> None:
    """Reject hold-out groups that are no new ones: of which training rows have some."""
    if certificate.split is None or not certificate.named_columns:
        return
    unit, held = _units(certificate, cells, rows), np.zeros(rows, dtype=bool)
    held[array(certificate.split["holdout"], "split of holdout", (None,), integer=True)] = True
    if np.intersect1d(unit[held], unit[~held]).size:
        raise Rejected(
            "the hold-out rows are of groups that training rows have, so that they say nothing of new groups"
        )


def _units(certificate: Certificate, cells: Cells, rows: int) -> np.ndarray:
    """Return what is drawn: each row by itself or, with a column of groups, the number of its group."""
    if not certificate.named_columns:
        return np.arange(rows)
    name = certificate.named_columns[0]
    if len(certificate.named_columns) > 1 or name not in cells:
        raise Rejected(f"the table has no column {name[:40]!r}, or claims name several columns of groups")
    return np.unique(texts_of(cells[name]), return_inverse=True)[1]


def _tables(table: TableModel) -> list[TableModel]:
    return table.tables or [table]


def _training_rows(table: TableModel, certificate: Certificate, rows: int) -> Iterator[tuple[TableModel, np.ndarray]]:
    """Yield each model of a table with the numbers of the rows that its encoding was made of."""
    if not table.tables:
        if certificate.split is None:
            raise Rejected("the certificate does not say which rows of the table the model was fitted to")
        train = array(certificate.split["train"], "split of train", (None,), integer=True)
        yield table, np.sort(train)
        return
    fold = _folds_of(certificate, rows)
    for k, one in enumerate(table.tables):
        yield one, np.flatnonzero(fold != k)


def _compare(records: Sequence[Mapping[str, Any]], cells: Cells) -> None:
    """Reject records of columns that training rows do not give."""
    for record in records:
        try:
            _compare_column(record, cells[record["name"]])
        except Rejected as error:
            raise Rejected(
                f"the encoding of column {record['name'][:40]!r} is not what its training rows give: {error}; it may "
                "have been fitted to the hold-out rows as well, or changed afterwards"
            ) from None


def _compare_column(record: Mapping[str, Any], cells: np.ndarray) -> None:
    kind = record["kind"]
    if kind == "text":
        if list(record["words"]) != _commonest_words(cells):
            raise Rejected("other words are the commonest")
        return
    if kind == "nominal" and list(record["levels"]) != sorted({cell for cell in cells.tolist() if cell is not None}):
        raise Rejected("other levels occur")
    raw = raw_column(record, cells)[:, 0]
    if kind in ("numeric", "date"):
        _check_form(raw, cells)
    if "slots" in record:
        if list(record["slots"]) != _slots(raw, len(record["levels"])):
            raise Rejected("levels, or gaps, have other slots")
    elif "parts" in record:
        _compare_parts(record["parts"], raw)
    elif "kept" not in record:
        _compare_numbers(record, raw)


def _check_form(raw: np.ndarray, cells: np.ndarray) -> None:
    """Reject a kind or a form of numbers or dates in which the cells are not written."""
    if cells.dtype != object:
        return
    there = np.array([cell is not None and not is_gap(cell) for cell in cells.tolist()], dtype=bool)
    if np.sum(there & np.isnan(raw)) > _BAD_SHARE * np.sum([cell is not None for cell in cells.tolist()]):
        raise Rejected("the cells are not of the kind, or not written in the form, that it states")


def _compare_numbers(record: Mapping[str, Any], values: np.ndarray) -> None:
    """Reject other numbers than the mean for gaps, mean and standard deviation of the filled column, and of gaps."""
    missing = np.isnan(values)
    there = values[~missing]
    fill = math.fsum(there) / max(len(there), 1)
    slack = _ROUNDING * math.fsum(np.abs(there)) / max(len(there), 1)
    _same(record["fill"], fill, slack, "what stands for a gap")
    _same_scaling(record["scaling"], np.where(missing, fill, values), slack)
    if (record["gap"] is None) == bool(missing.any()):
        raise Rejected("whether there are gaps")
    if record["gap"] is not None:
        _same_scaling(record["gap"], missing.astype(np.float64), _ROUNDING)


def _same_scaling(stated: Sequence[float], values: np.ndarray, slack: float) -> None:
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((values - mean) ** 2) / len(values))
    _same(stated[0], mean, slack, "the mean")
    constant = 2 * len(values) * U * abs(mean)  # the scale of a column whose deviation is only rounding is 1
    if deviation > 2 * constant or (deviation > constant / 2 and stated[1] != 1.0):
        _same(stated[1], deviation, slack + _ROUNDING * deviation, "the scale")
    else:
        _same(stated[1], 1.0, 0.0, "the scale")


def _same(stated: float, found: float, slack: float, what: str) -> None:
    if not abs(stated - found) <= slack:
        raise Rejected(f"{what} is {stated:.17g}, and {found:.17g} in the rows")


def _compare_parts(parts: Sequence[Mapping[str, Any]], moments: np.ndarray) -> None:
    """Reject other parts of dates than those that differ between rows, and the days elapsed."""
    found = {name: date_part(moments, name) for name in _DATE_PARTS}
    varied = [
        name for name in _DATE_PARTS if name == "elapsed days" or len(np.unique(found[name][~np.isnan(moments)])) > 1
    ]
    if [part["part"] for part in parts] != varied:
        raise Rejected("other parts of the dates differ")
    for part in parts:
        if "kept" not in part:
            _compare_numbers(part, found[part["part"]])


def _slots(codes: np.ndarray, levels: int) -> list[int]:
    """Return the slots that rows give the levels, a level not in the list, and a gap."""
    counts = Counter(levels + 1 if math.isnan(code) else int(code) for code in codes.tolist())
    occur = sorted(counts)
    shared: set[int] = set()
    if len(occur) >= _MOST_SLOTS:
        rarest = sorted((one for one in occur if one < levels), key=lambda one: (counts[one], one))
        shared = set(rarest[: len(occur) - _MOST_SLOTS + 1])
    own = [one for one in occur if one not in shared]
    place = {one: i for i, one in enumerate(own)} | dict.fromkeys(shared, len(own))
    slots = [place.get(one, -1) for one in range(levels + 2)]
    slots[levels] = len(own) if shared else -1
    return slots


def _commonest_words(cells: np.ndarray) -> list[str]:
    """Return the words that most rows have, in alphabetical order; one of all rows, or of one, tells nothing."""
    texts = Counter(cell for cell in cells.tolist() if cell is not None)
    rows: Counter[str] = Counter()
    for text, count in texts.items():
        rows.update(dict.fromkeys(words_in(text), count))
    total = sum(texts.values())
    telling = {word: n for word, n in rows.items() if 1 < n < total} or dict(rows)
    return sorted(sorted(telling, key=lambda word: (-telling[word], word))[:_MOST_WORDS])


def _folds_of(certificate: Certificate, rows: int) -> np.ndarray:
    """Return the fold of each row, about which all claims must agree."""
    names = ("rows", "folds", "seed")
    stated = {tuple(one.params[name] for name in names) for one in certificate.claims if {*names} <= {*one.params}}
    if len(stated) != 1:
        raise Rejected("claims are about different folds, or none says which")
    known, folds, seed = stated.pop()
    if not all(type(one) is int for one in (known, folds, seed)) or known != rows or not 2 <= folds <= rows:
        raise Rejected("the folds of the claims are not folds of these rows")
    return drawn_folds(rows, folds, seed)

"""Certificates about a table: its cells are read as the model's records say, and the records compared with the rows.

Whatever turns a row into numbers must be what the training rows give (outside its fold, for the model of a fold): lists
of levels, what stands for a gap, means and scales, parts of dates, words. They are derived again here, field by field.
The kind of a column and the form of its cells are declared by the model's maker, as are columns that are left out and
the levels of an ordered column; of the cells of the training rows at most one in twenty may not fit the form, and of
the target's as many: rows without a target that can be read are not judged, so a false form could hide any of them.

What `predict` makes of the same rows is compared, row by row: raw rows must be equal to those read here, and what it
says must be what the checker's own predictor is sure of.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from assay.checker.family import read_model, stored_form
from assay.checker.identity import GROUPS, HOLDOUT, RESERVE, drawn_folds, drawn_order, texts_of
from assay.checker.numerics import U, gamma
from assay.checker.predictors import Predictor, decided
from assay.checker.reader import is_gap, raw_column, raw_rows, target_of, words_in
from assay.checker.record import MALFORMED_INPUT_ERRORS, Refused, Rejected, array
from assay.checker.rule import Clock
from assay.checker.rules.encodings import TableModel, date_part
from assay.checker.verdict import Report
from assay.checker.verify import failed, verify
from assay.claims.claim import Certificate
from assay.data.blocks import Block

_MOST_SLOTS, _MOST_WORDS, _BAD_SHARE = 100, 200, 0.05
_DATE_PARTS = ("year", "month", "day", "weekday", "hour", "elapsed days")
_ROUNDING = gamma(2**11)  # of a mean, relative to that of the sizes: sums are made in pairs, so that n hardly matters
_AT_ONCE = 2**12  # rows whose predictions are compared together
Cells = Mapping[str, np.ndarray]


class Used(NamedTuple):
    """What a model itself makes of rows of a table: raw rows, and what it predicts."""

    raw: np.ndarray
    said: np.ndarray


class TableCells(Protocol):
    """The cells of a table (`checker.reader`), of which a column or a part of the rows is held at a time."""

    @property
    def names(self) -> Collection[str]:
        """The columns that there are."""

    def column(self, name: str) -> np.ndarray:
        """Return the cells of a column."""

    def parts(self) -> Iterator[tuple[Cells, Callable[[], Used]]]:
        """Yield the rows in parts, in order: cells of the columns that the model reads, and what it makes of them."""


def verify_table(certificate: Certificate, model: Any, cells: TableCells, *, limit: float | None = None) -> Report:
    """Re-check the certificate of a model of a table from the cells of the table: of the columns that the model reads,
    its target, and the columns of groups or times that the certificate names."""
    clock = Clock(limit)
    try:
        table = read_model(stored_form(model))
        if not isinstance(table, TableModel):
            raise Rejected("the model does not read tables; pass its rows")
        target = table.target["name"]
        if target not in cells.names:
            raise Rejected(f"the table has no column {target[:40]!r}")
        column = cells.column(target)
        there, y = target_of(table.target, column, table.classes)
        _check_target(there, column)
        rows = _Chosen(cells, np.flatnonzero(there))
        own = _own_rows(certificate, rows, len(y))
        rows, y = _Chosen(cells, rows.numbers[own]), y[own]
        _check_groups(certificate, rows, len(y))
        stream = _Stream(table, rows, y, clock)
        named = {name: rows[name] for name in certificate.named_columns if name in rows}
        report = verify(_without_origin(certificate), model, stream, columns=named, limit=limit)
        if any(verdict.claim == "data.identity" and verdict.status == "REJECTED" for verdict in report.verdicts):
            return report  # other rows give other encodings
        for item, train in _training_rows(table, certificate, len(y)):
            _compare(item.records, _Chosen(cells, rows.numbers[train]))
        if report.holds and stream.wrong is not None:
            raise stream.wrong
        return report
    except (Rejected, Refused, *MALFORMED_INPUT_ERRORS) as error:
        return Report(failed("certificate", error))


def _without_origin(certificate: Certificate) -> Certificate:
    """Return the certificate without what `_own_rows` has compared: how the hold-out rows came about."""
    split = None if certificate.split is None else {k: v for k, v in certificate.split.items() if k != "seed"}
    return replace(certificate, split=split, time=None, looks=None)


class _Chosen(Mapping[str, np.ndarray]):
    """Columns of some rows of a table, whose numbers ascend."""

    def __init__(self, cells: TableCells, numbers: np.ndarray):
        self.cells, self.numbers = cells, numbers

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.cells.names:
            raise KeyError(name)
        return np.asarray(self.cells.column(name))[self.numbers]

    def __iter__(self) -> Iterator[str]:
        return iter(self.cells.names)

    def __len__(self) -> int:
        return len(self.cells.names)


class _Stream:
    """The rows that a certificate is about, as the checker reads them. What the model makes of them is compared with
    that in the first pass: `wrong` is what differs."""

    def __init__(self, table: TableModel, rows: _Chosen, y: np.ndarray, clock: Clock):
        self.table, self.rows, self.y, self.clock, self.n_rows = table, rows, y, clock, len(y)
        self.wrong: Exception | None = Rejected("not all rows were read")
        self._compared = False

    def blocks(self) -> Iterator[Block]:
        """Yield raw rows with their targets."""
        result, done, first = None, 0, 0
        for cells, used in self.rows.cells.parts():
            raw = np.hstack([raw_rows(table.records, cells) for table in _tables(self.table)])
            stop = int(np.searchsorted(self.rows.numbers, first + len(raw)))
            here, first = self.rows.numbers[done:stop] - first, first + len(raw)
            if not len(here):
                continue
            raw = raw if len(here) == len(raw) else raw[here]
            if not self._compared and result is None:
                result = self._differs(raw, used, here)
            yield Block(raw, self.y[done:stop], None, done)
            done = stop
        if not self._compared and done == len(self.y):
            self._compared, self.wrong = True, result

    def _differs(self, raw: np.ndarray, used: Callable[[], Used], here: np.ndarray) -> Exception | None:
        try:
            own = used()
        except MALFORMED_INPUT_ERRORS as error:
            return Rejected(f"its rows cannot be predicted ({type(error).__name__}: {str(error)[:80]})")
        try:
            _compare_used(self.table, raw, Used(own.raw[here], own.said[here]), self.clock)
        except (Rejected, Refused, *MALFORMED_INPUT_ERRORS) as error:
            return error
        return None


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


def _contradicted(model: Predictor, X: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return for which rows something else is said than the checker is sure of."""
    if model.classes is None:
        scores, errors = model.scores(X, np.abs(X).max(axis=0, initial=0.0))
        apart = np.abs(predicted.reshape(len(X), -1) - scores)
        return ~(apart <= errors + 4 * U * np.abs(scores)).all(axis=1)
    guess, sure = decided(model, X)
    labels = np.array([*model.classes, ""], dtype=object)[np.minimum(guess, len(model.classes))]
    told = np.array([str(output) for output in predicted.tolist()], dtype=object)
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
    """Reject hold-out rows that are not all rows from some time on, by the column that the certificate names. Names are
    sorted: by an order that the certificate could choose, any rows are the newest."""
    record: Mapping[str, Any] = certificate.time or {}
    name, kind, levels = str(record.get("name")), record.get("kind"), record.get("levels")
    if certificate.split is None or name not in cells or kind not in ("numeric", "date", "nominal"):
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
    for k, item in enumerate(table.tables):
        yield item, np.flatnonzero(fold != k)


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


def _same(stated: float, result: float, slack: float, what: str) -> None:
    if not abs(stated - result) <= slack:
        raise Rejected(f"{what} is {stated:.17g}, and {result:.17g} in the rows")


def _compare_parts(parts: Sequence[Mapping[str, Any]], moments: np.ndarray) -> None:
    """Reject other parts of dates than those that differ between rows, and the days elapsed."""
    results = {name: date_part(moments, name) for name in _DATE_PARTS}
    varied = [
        name for name in _DATE_PARTS if name == "elapsed days" or len(np.unique(results[name][~np.isnan(moments)])) > 1
    ]
    if [part["part"] for part in parts] != varied:
        raise Rejected("other parts of the dates differ")
    for part in parts:
        if "kept" not in part:
            _compare_numbers(part, results[part["part"]])


def _slots(codes: np.ndarray, levels: int) -> list[int]:
    """Return the slots that rows give the levels, a level not in the list, and a gap."""
    counts = Counter(levels + 1 if math.isnan(code) else int(code) for code in codes.tolist())
    occur = sorted(counts)
    shared: set[int] = set()
    if len(occur) >= _MOST_SLOTS:
        rarest = sorted((item for item in occur if item < levels), key=lambda item: (counts[item], item))
        shared = set(rarest[: len(occur) - _MOST_SLOTS + 1])
    own = [other_item for other_item in occur if other_item not in shared]
    place = {other_item: i for i, other_item in enumerate(own)} | dict.fromkeys(shared, len(own))
    slots = [place.get(other_item, -1) for other_item in range(levels + 2)]
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
    stated = {
        tuple(claim.params[name] for name in names) for claim in certificate.claims if {*names} <= {*claim.params}
    }
    if len(stated) != 1:
        raise Rejected("claims are about different folds, or none says which")
    known, folds, seed = stated.pop()
    if not all(type(item) is int for item in (known, folds, seed)) or known != rows or not 2 <= folds <= rows:
        raise Rejected("the folds of the claims are not folds of these rows")
    return drawn_folds(rows, folds, seed)

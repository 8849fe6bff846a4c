"""Rows of requests in, answers out: several requests are read and predicted together.

What a request is answered does not depend on what it is answered with: if a cell of the rows read together cannot be
read, or is new to the model, each request is read by itself.
"""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from secrets import token_hex
from typing import Any

import numpy as np

from assay.claims.claim import Certificate
from assay.data import RawTable, Table, raw_table
from assay.data.places import Content
from assay.data.readers import MISSING_WORDS, header_size, names
from assay.data.records import from_json, from_records
from assay.learning import TableModel
from assay.learning.folded import FoldedTable
from assay.serve.memory import LONGEST_HEADER, MOST_COLUMNS, RowCost
from assay.serve.watching import Watch

MOST_KEPT = 100_000
"""Predictions that are kept for outcomes that name them; of older ones, the rows themselves must be sent."""


@dataclass(frozen=True)
class Ask:
    """The body of a request, and what is asked of its rows. `kind` is "predict" or "outcome"."""

    kind: str
    body: bytes
    csv: bool = False
    coverage: float | None = None


class Answers:
    """Answers requests with a model."""

    def __init__(self, model: TableModel, certificate: Certificate | None, watch: Watch) -> None:
        self.model, self.watch = model, watch
        self.classes = model.classes_.tolist() if model.task == "classify" else []
        self.tells_shares = bool(self.classes) and hasattr(model.learner, "predict_proba")
        self._names = [column.name for column in model.columns]
        self._levels = {column.name: frozenset(column.levels) for column in model.columns if column.levels}
        encodings = [member.encoding for member in (model.members if isinstance(model, FoldedTable) else [model])]
        width = sum(member.raw_width + member.arrays().width for member in encodings)
        self._cost = RowCost(len(self._names), width, len(self.classes))
        self._run, self._number = token_hex(4), 0
        self._kept: OrderedDict[str, Any] = OrderedDict()

    def __call__(self, asked: Sequence[Ask]) -> list[dict[str, Any] | Exception]:
        """Return the answer to each request, or why there is none."""
        answers: dict[int, dict[str, Any] | Exception] = {}
        predict: dict[int, Any] = {}
        for i, item in enumerate(asked):
            try:
                if item.kind == "outcome":
                    answers[i] = self._outcome(item)
                else:
                    predict[i] = self._rows(item)
            except ValueError as error:
                answers[i] = error
        read = dict(zip(predict, self._read(list(predict.values())), strict=True))
        good = {i: other_item for i, other_item in read.items() if not isinstance(other_item, Exception)}
        answers |= {i: other_item for i, other_item in read.items() if isinstance(other_item, Exception)}
        if good:
            answers |= self._predicted(asked, good)
        return [answers[i] for i in range(len(asked))]

    def cost(self, ask: Ask) -> int:
        """Return a limit of the bytes that it takes to answer a request."""
        return self._cost.of(ask.body, ask.csv, ask.coverage is not None)

    def _rows(self, ask: Ask) -> list[Any] | RawTable:
        """Return the rows of a request: records of JSON, or a table of CSV."""
        if ask.csv:
            return self._csv(Content(ask.body, "the request"))
        result = _json(ask.body)
        rows = result.get("rows", [result]) if isinstance(result, dict) else result
        if not isinstance(rows, list) or not rows:
            raise ValueError('send a row as an object of columns and values, or {"rows": [...]}.')
        for i, row in enumerate(rows):
            lacking = [name for name in self._names if name not in row] if isinstance(row, dict) else []
            if lacking:
                raise ValueError(
                    f"row {i} (counted from 0) lacks the column {lacking[0]!r}; send null if it is unknown."
                )
        return rows

    def _csv(self, source: Content) -> RawTable:
        """Return the columns of a CSV that the model has; every other costs Arrow a kilobyte."""
        there = names(source) if header_size(source) <= LONGEST_HEADER else []
        if not 0 < len(there) <= MOST_COLUMNS:
            raise ValueError(f"the header has more than {LONGEST_HEADER} bytes or {MOST_COLUMNS} columns.")
        lacking = [name for name in self._names if name not in there]
        if lacking:
            raise ValueError(f"the table lacks the column {lacking[0]!r}.")
        return raw_table(source, only=[name for name in (*self._names, self.model.target.name) if name in there])

    def _table(self, rows: list[Any] | RawTable) -> RawTable:
        """Return a request as a table; words that stand for a gap in a CSV file do so here, unless they are levels."""
        if isinstance(rows, RawTable):
            return rows
        own = {*self._names, self.model.target.name}
        return raw_table(from_records([self._with_gaps(row) for row in rows], "the request", own))

    def _with_gaps(self, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        gaps = {name for name, cell in row.items() if isinstance(cell, str) and cell in MISSING_WORDS}
        return row | {name: None for name in gaps if row[name] not in self._levels.get(name, ())}

    def _read(self, requests: list[list[Any] | RawTable]) -> list[tuple[Table, np.ndarray] | Exception]:
        """Return the columns and the encoded rows of each request."""
        records = [request for request in requests if isinstance(request, list)]
        if len(records) > 1 and len(records) == len(requests):
            together = self._read_one([row for record in records for row in record], lenient=True)
            if not isinstance(together, Exception) and not _is_odd(together[0]):
                return _cut(*together, [len(record) for record in records])
        return [self._read_one(request) for request in requests]

    def _read_one(self, rows: list[Any] | RawTable, lenient: bool = False) -> tuple[Table, np.ndarray] | Exception:
        try:
            return self.model.read_and_encode(self._table(rows), lenient=lenient)
        except ValueError as error:
            return error

    def _predicted(
        self, asked: Sequence[Ask], read: dict[int, tuple[Table, np.ndarray]]
    ) -> dict[int, dict[str, Any] | Exception]:
        """Return the answers to requests that could be read; the learner is called once for all of them, or for each by
        itself if it refuses a row."""
        X = np.vstack([item for _, item in read.values()])
        try:
            predicted = self.model.learner.predict(X)
            shares = self.model.probabilities(X) if self.tells_shares else None
        except ValueError as error:
            if len(read) == 1:
                return dict.fromkeys(read, error)
            alone = [self._predicted(asked, {i: item}) for i, item in read.items()]
            return {i: answer for answers in alone for i, answer in answers.items()}
        results: dict[int, dict[str, Any] | Exception] = {}
        start = 0
        for i, (table, own) in read.items():
            part = slice(start, start := start + len(own))
            self.watch.windows.see(table)
            try:
                more = self._more(own, asked[i].coverage)
            except ValueError as error:
                results[i] = error
                continue
            own_shares = None if shares is None else shares[part]
            results[i] = self._answer(predicted[part], own_shares, more, table)
        return results

    def _answer(
        self, predicted: np.ndarray, shares: np.ndarray | None, more: list[dict[str, Any]], table: Table
    ) -> dict[str, Any]:
        values = predicted.tolist()
        rows = [
            {"id": key, "prediction": value, **extra}
            for key, value, extra in zip(self._keep(values), values, more, strict=True)
        ]
        for row, own in zip(rows, [] if shares is None else shares.tolist(), strict=False):
            row["probabilities"] = dict(zip(map(str, self.classes), own, strict=True))
        notes = [f"column {name!r} has values unknown to the model: {', '.join(values[:5])}"
                 for name, values in table.unknown.items()]  # fmt: skip
        notes += [f"column {column.name!r}: {unread}" for column in table.columns.values() if (unread := column.unread)]
        return {"certificate": self.watch.certificate, "predictions": rows, "notes": notes}

    def _more(self, X: np.ndarray, coverage: float | None) -> list[dict[str, Any]]:
        """Return the set or interval of each row, if one is asked for."""
        if coverage is None:
            return [{}] * len(X)
        if self.classes:
            inside = self.model.sets(X, coverage, self.watch.delta)
            return [{"set": list(compress(self.classes, row))} for row in inside.tolist()]
        low, high = self.model.intervals(X, coverage, self.watch.delta)
        return [{"low": a, "high": b} for a, b in zip(low.tolist(), high.tolist(), strict=True)]

    def _keep(self, values: list[Any]) -> list[str]:
        """Return an identifier for each prediction, by which its outcome can be told."""
        keys = [f"{self._run}-{self._number + i}" for i in range(len(values))]
        self._number += len(values)
        self._kept.update(zip(keys, values, strict=True))
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return keys

    def _outcome(self, ask: Ask) -> dict[str, Any]:
        """Count what came true: of predictions named by their ids, or of rows with the target."""
        result = None if ask.csv else _json(ask.body)
        outcomes = (
            result.get("outcomes", [result] if "outcome" in result else None) if isinstance(result, dict) else None
        )
        if outcomes is None:
            rows = self._table(self._rows(ask))
            rows.require(self.model.target.name)
            predicted, truth = self.model.predict(rows), self.model.labels(rows)
        else:
            predicted, truth = self._named(outcomes)
        self.watch.outcomes(predicted, truth)
        return self.watch.plain()

    def _named(self, outcomes: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return predictions by their ids, each once, and what came true."""
        well = isinstance(outcomes, list) and outcomes and all(isinstance(item, dict) for item in outcomes)
        if not well or not all(item.keys() == {"id", "outcome"} for item in outcomes):
            raise ValueError('send {"outcomes": [{"id": ..., "outcome": ...}]}, or rows with the target.')
        keys = [item["id"] for item in outcomes]
        unknown = [key for key in keys if not isinstance(key, str) or key not in self._kept]
        if unknown or len(set(keys)) < len(keys):
            which = unknown[0] if unknown else Counter(keys).most_common(1)[0][0]
            raise ValueError(
                f"there is no open prediction {which!r}: its outcome was told, or it is older than the last "
                f"{MOST_KEPT} or than this run. Send the row with its target instead."
            )
        truth = self.model.labels(
            from_records([{self.model.target.name: item["outcome"]} for item in outcomes], "outcomes")
        )
        return np.array([self._kept.pop(key) for key in keys]), truth


def _json(body: bytes) -> Any:
    try:
        return from_json(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the request is not JSON: {error}") from None


def _is_odd(table: Table) -> bool:
    """Tell whether something must be said about cells of a table."""
    return bool(table.unknown) or any(column.unread for column in table.columns.values())


def _cut(table: Table, X: np.ndarray, sizes: list[int]) -> list[tuple[Table, np.ndarray] | Exception]:
    """Return the parts that requests have in rows that were read together."""
    spans = [np.arange(start, stop) for start, stop in pairwise(np.cumsum([0, *sizes]).tolist())]
    return [(table.take(span), X[span]) for span in spans]

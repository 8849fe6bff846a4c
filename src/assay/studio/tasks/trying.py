"""A row that a person typed: its prediction, and the nearest change of one column that would alter it.

A table at a glance: types, gaps, histograms, warnings. Large tables are summed up from a sample of their rows.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from assay import datasets, persist
from assay.claims.sentences import outward
from assay.data import Column, RawTable, Table, raw_table
from assay.data.table import ColumnSummary
from assay.learning import TableModel
from assay.learning.suspicions import gives_away
from assay.messages import Message
from assay.studio.child import most_bytes

Values = dict[str, Any]


@lru_cache(maxsize=4)
def _model(file: str) -> TableModel:
    return persist.load(file).model


def predict(
    file: str, values: dict[str, str], columns: list[dict[str, Any]], coverages: list[float], confidence: str
) -> dict[str, Any]:
    """Return prediction, probabilities, prediction sets at each coverage, and what would change the prediction.

    `values` are texts by column, empty for a gap; `columns` are what the study found of them.
    """
    model = _model(file)
    typed = {column["name"]: _value(column, values.get(column["name"], "")) for column in columns}
    X = _encoded(model, {name: [value] for name, value in typed.items()})
    said = model.learner.predict(X)[0]
    results: dict[str, Any] = {"prediction": _text(said), "probabilities": []}
    if model.task == "classify" and hasattr(model.learner, "predict_proba"):
        shares = model.probabilities(X)[0]
        order = np.argsort(-shares, kind="stable")[:20]
        results["probabilities"] = [[_text(model.classes_[k]), float(shares[k])] for k in order]
    delta = (1 - float(confidence)) / max(len(coverages), 1)
    results["sets"] = [[coverage, _inside(model, X, coverage, delta)] for coverage in coverages]
    results["changes"] = _changes(model, typed, said, columns)
    results["outside"] = _outside(typed, columns)
    return results


def _outside(typed: Values, columns: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the numbers that lie outside those of the training rows, with the ends of these."""
    results = []
    for column in columns:
        value, marks = typed[column["name"]], column.get("marks") or ()
        if column["kind"] == "numeric" and value is not None and marks and not marks[0] <= value <= marks[-1]:
            ends = {"low": f"{marks[0]:.6g}", "high": f"{marks[-1]:.6g}"}
            results.append({"column": column["name"], "value": f"{value:.6g}", **ends})
    return results


def _inside(model: TableModel, X: np.ndarray, coverage: float, delta: float) -> str:
    if model.task == "classify":
        inside = np.flatnonzero(model.sets(X, coverage, delta)[0])
        return ", ".join(_text(model.classes_[k]) for k in inside)
    low, high = model.intervals(X, coverage, delta)
    return interval(float(low[0]), float(high[0]))


def interval(low: float, high: float) -> str:
    """Return both ends, rounded outward, with digits enough to tell them apart.

    >>> interval(123456.789, 123456.951), interval(-0.04, 7.0)
    ('123456.789 … 123456.9511', '-0.04001 … 7')
    """
    width, size = high - low, max(abs(low), abs(high))
    digits = min(17, 4 + math.ceil(math.log10(size / width))) if 0 < width < math.inf else 17
    return f"{outward(low, 'lower', digits)} … {outward(high, 'upper', digits)}"


def _encoded(model: TableModel, columns: dict[str, list[Any]]) -> np.ndarray:
    X, unknown = model.encode(columns)
    for name, words in unknown.items():
        raise ValueError(Message("typed.level", text=words[0][:60], column=name))
    return X


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def _value(column: dict[str, Any], text: str) -> Any:
    """Return a typed value as a table has it: a number, text, None for a gap."""
    text = text.strip()
    if not text:
        return None
    if column["kind"] != "numeric":
        return text
    try:
        value = float(text)
    except ValueError:
        raise ValueError(Message("typed.number", column=column["name"], text=text[:60])) from None
    if not np.isfinite(value):
        raise ValueError(Message("typed.finite", column=column["name"], text=text[:60]))
    return value


def _changes(model: TableModel, typed: Values, said: Any, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each column, the nearest value that alters the prediction (a number: by a twentieth), nearest first.

    Numbers are tried at twenty quantiles of the column, and from the nearest that alters it back towards the value
    that was typed; nearness is in interquartile ranges. Levels have no order.
    """
    tried = [
        (column, value)
        for column in columns[:200]
        for value in (column.get("marks", ()) if column["kind"] == "numeric" else column["levels"][:40])
        if value != typed[column["name"]]
    ]
    ask = _Altered(model, typed, said)
    results: dict[str, tuple[float, Any, dict[str, Any]]] = {}
    for (other_item, value), altered in zip(tried, ask([(item["name"], value) for item, value in tried]), strict=True):
        old, name = typed[other_item["name"]], other_item["name"]
        away = abs(value - old) / other_item["spread"] if other_item["kind"] == "numeric" and old is not None else 1.0
        if altered and (name not in results or away < results[name][0]):
            results[name] = (away, value, other_item)
    nearest = []
    for away, value, other_item in sorted(results.values(), key=lambda item: item[0])[:8]:
        name, old, short = other_item["name"], typed[other_item["name"]], value
        if other_item["kind"] == "numeric" and old is not None:
            short = _nearest(old, value, partial(ask.column, name))
            away = abs(short - old) / other_item["spread"]
        nearest.append((away, {"column": name, "to": _text(short), "prediction": ask.prediction(name, short)}))
    return [change for _, change in sorted(nearest, key=lambda item: item[0])]


class _Altered:
    """Tells which changes of one column alter what is predicted of a row (a number: by a twentieth of itself)."""

    def __init__(self, model: TableModel, typed: Values, said: Any) -> None:
        self.model, self.typed, self.said = model, typed, said
        self.limit = 0.05 * max(abs(float(said)), 1e-12) if model.task == "regress" else None

    def _predicted(self, changes: list[tuple[str, Any]]) -> Any:
        rows = [self.typed | {name: value} for name, value in changes]
        columns = {name: [row[name] for row in rows] for name in self.typed}
        return self.model.learner.predict(_encoded(self.model, columns)) if rows else []

    def __call__(self, changes: list[tuple[str, Any]]) -> list[bool]:
        predicted = self._predicted(changes)
        if self.limit is None:
            return [other != self.said for other in predicted]
        return [abs(other - self.said) >= self.limit for other in predicted]

    def column(self, name: str, values: list[float]) -> list[bool]:
        return self([(name, value) for value in values])

    def prediction(self, name: str, value: Any) -> str:
        return _text(self._predicted([(name, value)])[0])


def _nearest(old: float, new: float, altered: Callable[[list[float]], list[bool]]) -> float:
    """Return a value close to where the prediction changes on the way from `old`, where it does not, to `new`, where it
    does, with as few digits as it can have."""
    for _ in range(4):
        between = np.linspace(old, new, 18)[1:].tolist()
        first = next((i for i, other in enumerate(altered(between)) if other), len(between) - 1)
        old, new = ([old, *between])[first], between[first]
    short = [float(f"{new:.{digits}g}") for digits in range(1, 17)]
    allowed = [value for value in short if abs(value - new) <= 0.02 * abs(new)]
    return next((value for value, other in zip(allowed, altered(allowed), strict=True) if other), new)


SAMPLE = 50_000
"""Rows that a summary looks at."""
HEAD, HEAD_COLUMNS, BINS = 8, 40, 16
Source = dict[str, str]


def open_table(source: Source, kinds: dict[str, Any]) -> Table:
    """Return the table of a file or of a bundled name, typed by all of its rows, for a person to look at."""
    return open_raw(source, kinds).typed()


def open_raw(source: Source, kinds: dict[str, Any]) -> RawTable:
    """Return the cells of a file or of a bundled table; `kinds` are the corrections of a person: column -> "nominal",
    "out" to leave it out, or the levels of an ordered column from lowest to highest."""
    nominal, out = ([name for name, kind in kinds.items() if kind == word] for word in ("nominal", "out"))
    ordered = {name: kind for name, kind in kinds.items() if isinstance(kind, list)}
    if "file" in source:
        _refuse_what_cannot_fit(source["file"])
        return raw_table(source["file"], nominal=nominal, ordered=ordered, drop=out)
    return raw_table(datasets.load(source["bundled"]), nominal=nominal, ordered=ordered, drop=out)


def _refuse_what_cannot_fit(file: str) -> None:
    """Refuse a Parquet file that would unpack to more than a quarter of the memory this process may have."""
    if not file.endswith(".parquet"):
        return
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(file)
    except (OSError, ValueError):
        return  # reading it says what is wrong
    if 8 * about.num_rows * about.num_columns > most_bytes() / 4:
        raise ValueError(Message("memory.cells", rows=about.num_rows, columns=about.num_columns))


def look(source: Source, kinds: dict[str, Any], target: str, sample: str) -> dict[str, Any]:
    """Return what the Table page shows; a sample of the rows goes to the file `sample`."""
    table = open_table(source, kinds)
    if not table.columns:
        raise ValueError(Message("no-columns"))
    if target not in table.columns:
        target = datasets.TARGETS.get(source.get("bundled", ""), table.names[-1])
    rng = np.random.default_rng(0)
    rows = np.arange(table.n_rows)
    if table.n_rows > SAMPLE:
        rows = np.sort(rng.choice(table.n_rows, SAMPLE, replace=False))
    seen = table.take(rows)
    wanted = seen.columns[target]
    known, task = ~wanted.missing, _task(wanted)
    said = {item.name: item for item in seen.summary()}
    columns = [_column(column, seen.n_rows, said[column.name]) for column in seen.columns.values()]
    for item, column in zip(columns, seen.columns.values(), strict=True):
        if column.name != target and gives_away(column.take(known), wanted.data[known], task):
            item["warnings"].append("leak")
    left_out = (
        [[other_item.name, other_item.note] for other_item in table.summary() if other_item.kind == "left out"]
        if table.left_out
        else []
    )
    _keep(seen, Path(sample))
    return {
        "rows": table.n_rows,
        "sampled": len(rows) if len(rows) < table.n_rows else 0,
        "columns": columns,
        "target": target,
        "task": task,
        "classes": _shares(wanted),
        "duplicates": _duplicates(seen),
        "head": _head(seen),
        "left_out": left_out,
        "gaps_in_target": int(wanted.missing.sum()),
    }


def _column(column: Column, rows: int, column_summary: ColumnSummary) -> dict[str, Any]:
    there = column.data[~column.missing]
    values, counts = np.unique(there, return_counts=True)
    results: dict[str, Any] = {
        "name": column.name,
        "kind": column.type.kind,
        "missing": int(column.missing.sum()),
        "distinct": len(values),
        "holds": column_summary.holds[:80],
        "notes": [part for part in (column_summary.note, column_summary.advice) if part],
        "histogram": np.sort(counts)[::-1][:BINS].tolist(),
        "warnings": [],
    }
    if column.type.kind in ("numeric", "date"):
        results["histogram"] = _histogram(there)
    if len(values) < 2:
        results["warnings"].append("constant")
    elif len(values) == rows > 20 and (column.type.kind != "numeric" or (there == np.round(there)).all()):
        results["warnings"].append("identifier")
    if rows and results["missing"] > 0.3 * rows:
        results["warnings"].append("gaps")
    return results


def _histogram(there: np.ndarray) -> list[int]:
    finite = there[np.isfinite(there)]
    if not len(finite):
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = float(finite.min()), float(finite.max())
        wide = high > low and math.isfinite(high - low)
        return np.histogram(finite, BINS, (low, high))[0].tolist() if wide else [len(finite)]


def _task(target: Column) -> str:
    values = np.unique(target.data[~target.missing])
    return "regress" if target.type.kind == "numeric" and not _few_whole(values) else "classify"


def _few_whole(values: np.ndarray) -> bool:
    return len(values) <= 20 and bool((values == np.round(values)).all())


def _shares(target: Column) -> list[list[Any]]:
    """Return the classes of a target with their shares, the commonest first; empty for numbers."""
    if _task(target) == "regress":
        return []
    values, counts = np.unique(target.data[~target.missing], return_counts=True)
    names = [f"{v:g}" if target.type.kind == "numeric" else target.type.levels[int(v)] for v in values]
    order = np.argsort(-counts, kind="stable")
    return [[names[i], float(counts[i] / counts.sum())] for i in order[:20]]


def _duplicates(table: Table) -> int:
    """Count rows that another row repeats, among those looked at."""
    weights = np.random.default_rng(1).standard_normal(len(table.columns))
    marks = np.zeros(table.n_rows)
    for weight, column in zip(weights, table.columns.values(), strict=True):
        values = np.where(column.missing, -1.2345, column.data)
        marks += weight * np.unique(values, return_inverse=True)[1]
    return table.n_rows - len(np.unique(marks))


def _head(table: Table) -> dict[str, Any]:
    first = table.take(slice(0, HEAD))
    columns = list(first.columns.values())[:HEAD_COLUMNS]
    cells = [[_cell(value) for value in column.values().tolist()] for column in columns]
    return {"names": [column.name for column in columns], "rows": [list(row) for row in zip(*cells)]}


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:40]


def _keep(table: Table, path: Path) -> None:
    from pyarrow import parquet

    most = min(table.n_rows, 2_000)
    rows = np.sort(np.random.default_rng(2).choice(table.n_rows, most, replace=False))
    parquet.write_table(table.take(rows).to_arrow(), path)

"""A table at a glance: types, gaps, histograms, warnings. Large tables are summed up from a sample of their rows."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from assay import datasets
from assay.data import Column, RawTable, Table, raw_table
from assay.data.table import ColumnSummary
from assay.learning.suspicions import gives_away
from assay.messages import Message
from assay.studio.child import most_bytes

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

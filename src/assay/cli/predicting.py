"""`assay predict`: stream rows in and predictions out."""

import csv
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from assay import data, datasets, persist
from assay.cli.paths import keep_apart
from assay.files import written_whole
from assay.learning import TableModel
from assay.text import shown

ROWS_AT_ONCE = 65_536
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


def predict(model_file: Path, source: str, out: Path | None, safe_csv: bool) -> None:
    """Run the command."""
    if out is not None:
        if out.suffix.lower() not in (".csv", ".parquet"):
            raise ValueError(f"--out must end in .csv or .parquet; got {str(out)!r}.")
        keep_apart([source, model_file], {"--out": out})
    as_csv = out is None or out.suffix.lower() == ".csv"
    if safe_csv and not as_csv:
        raise ValueError("--safe-csv is for CSV; a Parquet file holds no formulas.")
    model = open_model(model_file).model
    parts = _predictions(model, source)
    with using(model_file):
        _write(_without_formulas(parts, safe_csv) if as_csv else parts, out)


def _write(parts: Iterator[np.ndarray], out: Path | None) -> None:
    if out is None:
        if sys.stdout.isatty():
            parts = (np.array([shown(value) for value in part.tolist()]) for part in parts)
        _write_csv(sys.stdout, parts)
        return
    with written_whole(out) as path:
        if out.suffix.lower() == ".parquet":
            _write_parquet(path, parts)
        else:
            with path.open("w", newline="", encoding="utf-8") as file:
                _write_csv(file, parts)


def _without_formulas(parts: Iterator[np.ndarray], safe_csv: bool) -> Iterator[np.ndarray]:
    """Yield the predictions; labels that a spreadsheet would run get an apostrophe, or it is said that they could."""
    told = False
    for part in parts:
        risky = [isinstance(value, str) and value.startswith(FORMULA) for value in part.tolist()]
        if not any(risky):
            yield part
        elif safe_csv:
            yield np.where(risky, np.strings.add("'", part), part)
        else:
            if not told:
                print(
                    "assay: some labels begin with = + - or @, and a spreadsheet would run them as formulas; "
                    "--safe-csv puts ' before them.",
                    file=sys.stderr,
                )
            told = True
            yield part


def open_model(path: Path) -> persist.Saved:
    """Return what a file of `assay learn` holds."""
    try:
        saved = persist.load(path)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}.") from None
    if not isinstance(saved.model, TableModel):
        raise ValueError(
            f"{path} holds a {type(saved.model).__name__} without a table's columns; load it with assay.load."
        )
    return saved


@contextmanager
def using(path: Path) -> Iterator[None]:
    """Say that a file's model is of no use where its parts, each of them sound, do not fit together."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError) as error:
        raise ValueError(f"the model in {path} cannot be used: {type(error).__name__}: {error}") from error


def _predictions(model: TableModel, source: str) -> Iterator[np.ndarray]:
    bundled = source in datasets.TARGETS and not Path(source).exists()
    rows: Any = datasets.load(source).to_arrow() if bundled else source
    told: set[str] = set()
    for part in data.chunks(rows, ROWS_AT_ONCE, model.columns):
        if not part.n_rows:
            continue
        X, unknown = model.encode(part)
        for name, values in unknown.items():
            if name not in told:
                told.add(name)
                message = f"assay: column {name!r} has values unknown to the model: {', '.join(values[:5])}"
                print(shown(message), file=sys.stderr)
        yield model.learner.predict(X)


def _write_csv(file: Any, parts: Iterable[np.ndarray]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["prediction"])
    for part in parts:
        writer.writerows([value] for value in part.tolist())


def _write_parquet(path: Path, parts: Iterable[np.ndarray]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    writer = None
    try:
        for part in parts:
            batch = pa.table({"prediction": pa.array(part.tolist())})
            writer = writer or parquet.ParquetWriter(path, batch.schema)
            writer.write_table(batch)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise ValueError("there are no rows to predict.")

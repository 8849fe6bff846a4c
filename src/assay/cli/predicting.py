"""`assay predict`: stream rows in and predictions out."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from assay import data, datasets, persist
from assay.cli.paths import keep_apart
from assay.cli.spreadsheet import cells
from assay.data.table import listed
from assay.files import written_whole
from assay.guarantees.ledger import before_looks
from assay.learning import TableModel
from assay.learning.memory import FALSE_ALARM, Drift
from assay.text import shown

ROWS_AT_ONCE = 65_536


class Asked(NamedTuple):
    """What is written beside the predictions."""

    proba: bool = False
    sets: float | None = None
    intervals: float | None = None
    threshold: float | None = None


PLAIN = Asked()
Part = dict[str, np.ndarray]
"""Columns of a part of the predictions."""


def predict(model_file: Path, source: str, out: Path | None, raw: bool, asked: Asked = PLAIN) -> None:
    """Run the command."""
    if out is not None:
        if out.suffix.lower() not in (".csv", ".parquet"):
            raise ValueError(f"--out must end in .csv or .parquet; got {str(out)!r}.")
        keep_apart([source, model_file], {"--out": out})
    model, certificate = open_model(model_file)
    _check(model, asked)
    if model.marginal and (asked.sets is not None or asked.intervals is not None):
        _tell(
            "the coverage is marginal: the chance that a new row's answer is inside, over the rows of the table and "
            "the new row together; it is no promise with a confidence for this table."
        )
    delta = 0.05 if certificate is None else before_looks(certificate)
    parts = _predictions(model, source, asked, delta)
    with using(model_file):
        _write(parts, out, raw)


def _check(model: TableModel, asked: Asked) -> None:
    """Refuse before any row is read what the model cannot give."""
    classes = model.task == "classify"
    if not classes and (asked.proba or asked.sets is not None or asked.threshold is not None):
        raise ValueError("--proba, --sets, --threshold are for classes; this model predicts numbers: see --intervals.")
    if classes and asked.intervals is not None:
        raise ValueError("--intervals is for numbers; this model predicts classes: see --sets.")
    if (asked.proba or asked.threshold is not None) and not hasattr(model.learner, "predict_proba"):
        raise ValueError(f"{type(model.learner).__name__} gives no probabilities; --sets uses its scores.")
    if asked.threshold is not None and (len(model.classes_) != 2 or not 0 <= asked.threshold <= 1):
        raise ValueError("--threshold is a probability between 0 and 1, for models of two classes.")


def _write(parts: Iterator[Part], out: Path | None, raw: bool) -> None:
    if out is None:
        _write_csv(sys.stdout, parts, cells(raw, sys.stdout.isatty()))
        return
    with written_whole(out) as path:
        if out.suffix.lower() == ".parquet":
            _write_parquet(path, parts)
        else:
            with path.open("w", newline="", encoding="utf-8") as file:
                _write_csv(file, parts, cells(raw, terminal=False))


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


def _predictions(model: TableModel, source: str, asked: Asked, delta: float) -> Iterator[Part]:
    """Yield the predictions of each part of the rows; at the end say which columns look otherwise than before."""
    bundled = source in datasets.TARGETS and not Path(source).exists()
    rows: Any = datasets.load(source).to_arrow() if bundled else source
    told: set[str] = set()
    drift = None if model.memory is None else Drift(model.memory, [column.name for column in model.columns])
    for part in data.raw_chunks(rows, ROWS_AT_ONCE, [column.name for column in model.columns]):
        if not part.n_rows:
            continue
        if part.note and part.note not in told:
            told.add(part.note)
            _tell(part.note)
        fitting = model.read(part)
        for name, values in fitting.unknown.items():
            if name not in told:
                told.add(name)
                _tell(f"column {name!r} has values unknown to the model: {', '.join(values[:5])}")
        for column in fitting.columns.values():
            if column.note.endswith("are gaps") and column.name not in told:
                told.add(column.name)
                _tell(f"column {column.name!r}: {column.note}")
        if drift is not None:
            drift.see(fitting)
        yield _columns(model, model.encode(part)[0], asked, delta)
    if asked.sets is not None or asked.intervals is not None:
        _tell("sets and intervals are as wide as the model file says; `assay verify` with its table checks that.")
    moved = [] if drift is None else drift.moved()
    if moved:
        _tell(
            f"these rows do not look like those that the model was learnt from, in {listed(moved)}; "
            "what its certificate says is about rows like the old ones. (Rows of one source are said to differ once in "
            f"{round(1 / FALSE_ALARM)} times.)"
        )


def _columns(model: TableModel, X: np.ndarray, asked: Asked, delta: float) -> Part:
    """Return the columns that are asked for, of encoded rows."""
    found = {"prediction": model.learner.predict(X)}
    if asked.threshold is not None:
        second = model.probabilities(X)[:, 1] >= asked.threshold
        found["prediction"] = model.classes_[second.astype(np.intp)]
    if asked.proba:
        values = model.probabilities(X)
        found |= {f"probability of {label}": values[:, j] for j, label in enumerate(model.classes_.tolist())}
    if asked.sets is not None:
        inside = model.sets(X, asked.sets, delta)
        labels = [str(label) for label in model.classes_.tolist()]
        found["set"] = np.array([" | ".join(compress(labels, row)) for row in inside.tolist()])
    if asked.intervals is not None:
        found["low"], found["high"] = model.intervals(X, asked.intervals, delta)
    return found


def _tell(sentence: str) -> None:
    print(shown(f"assay: {sentence}"), file=sys.stderr)


def _write_csv(file: TextIO, parts: Iterable[Part], line: Callable[[Iterable[object]], str]) -> None:
    """Write the parts; the header when the first one is there, so that a failure writes nothing."""
    begun = False
    for part in parts:
        if not begun:
            file.write(line(part))
        begun = True
        file.writelines(map(line, zip(*(values.tolist() for values in part.values()), strict=True)))
    if not begun:
        file.write(line(["prediction"]))


def _write_parquet(path: Path, parts: Iterable[Part]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    writer = None
    try:
        for part in parts:
            batch = pa.table({name: pa.array(values.tolist()) for name, values in part.items()})
            writer = writer or parquet.ParquetWriter(path, batch.schema)
            writer.write_table(batch)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise ValueError("there are no rows to predict.")

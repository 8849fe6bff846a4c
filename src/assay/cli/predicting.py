"""`assay predict`: stream rows in and predictions out."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from assay import data, datasets, persist
from assay.claims.claim import Certificate
from assay.claims.document import digest
from assay.cli.common import keep_apart
from assay.data.kinds import as_text, decoded
from assay.data.readers import rows_at_once
from assay.data.table import listed
from assay.files import written_whole
from assay.guarantees.ledger import before_looks
from assay.learning import TableModel
from assay.learning.memory import FALSE_ALARM, Drift
from assay.text import json_text, shown


class Asked(NamedTuple):
    """What is written beside the predictions; `keep` are columns of the input."""

    proba: bool = False
    sets: float | None = None
    intervals: float | None = None
    threshold: float | None = None
    keep: Sequence[str] = ()


PLAIN = Asked()
Part = dict[str, Any]
"""Columns of a part of the predictions: arrays of NumPy, or of Arrow."""
ALL = "all"
"""Said instead of names, every column of the input is kept."""


class Told:
    """What there is to say about the rows: on standard error as it comes, or kept for JSON."""

    def __init__(self, kept: bool) -> None:
        self.notes: list[str] = []
        self.moved: list[str] = []
        self.rows = 0
        self._kept, self._about = kept, {""}

    def __call__(self, sentence: str, about: str = "") -> None:
        """Say a sentence; about one thing, the first alone."""
        if about and about in self._about:
            return
        self._about.add(about)
        self.notes.append(sentence)
        if not self._kept:
            print(shown(f"assay: {sentence}"), file=sys.stderr)


def predict(
    model_file: Path, source: str, out: Path | None, raw: bool, asked: Asked = PLAIN, as_json: bool = False
) -> bool:
    """Run the command; return whether the rows look like those that the model was learnt from."""
    if out is not None:
        if out.suffix.lower() not in (".csv", ".parquet"):
            raise ValueError(f"--out must end in .csv or .parquet; got {str(out)!r}.")
        keep_apart([source, model_file], {"--out": out})
    model, certificate = open_model(model_file)
    _check(model, asked)
    tell = Told(as_json)
    if model.marginal and (asked.sets is not None or asked.intervals is not None):
        tell(
            "the coverage is marginal: the chance that a new row's answer is inside, over the rows of the table and "
            "the new row together; it is no promise with a confidence for this table."
        )
    delta = 0.05 if certificate is None else before_looks(certificate)
    parts = _predictions(model, source, asked, delta, tell)
    with using(model_file):
        if not as_json:
            _write(parts, out, raw)
        else:
            print(json_text(_record(parts, out, raw, certificate, tell)))
    return not tell.moved


def _record(
    parts: Iterator[Part], out: Path | None, raw: bool, certificate: Certificate | None, tell: Told
) -> dict[str, Any]:
    """Return the predictions, or where they were written, with what there is to say about them."""
    results: dict[str, Any] = {"certificate": None if certificate is None else digest(certificate)}
    if out is not None:
        _write(parts, out, raw)
        results["out"] = str(out)
    else:
        columns = ({name: _listed(values) for name, values in part.items()} for part in parts)
        results["predictions"] = [
            dict(zip(part, row, strict=True)) for part in columns for row in zip(*part.values(), strict=True)
        ]
    return {**results, "rows": tell.rows, "drift": tell.moved, "notes": tell.notes}


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


def _predictions(model: TableModel, source: str, asked: Asked, delta: float, tell: Told) -> Iterator[Part]:
    """Yield the predictions of each part of the rows; at the end say which columns look otherwise than before."""
    bundled = source in datasets.TARGETS and not Path(source).exists()
    rows: Any = datasets.load(source).to_arrow() if bundled else source
    needed = [column.name for column in model.columns]
    keep = _kept(rows, asked.keep)
    drift = None if model.memory is None else Drift(model.memory, needed)
    columns = list(dict.fromkeys([*keep, *needed]))
    for part in data.raw_chunks(rows, rows_at_once(len(columns)), columns):
        if not part.n_rows:
            continue
        if part.note:
            tell(part.note, "the file")
        fitting, X = model.read_and_encode(part)
        for name, values in fitting.unknown.items():
            tell(f"column {name!r} has values unknown to the model: {', '.join(values[:5])}", f"levels of {name}")
        for column in fitting.columns.values():
            if unread := column.unread:
                tell(f"column {column.name!r}: {unread}", f"gaps of {column.name}")
        if drift is not None:
            drift.see(fitting)
        tell.rows += part.n_rows
        result = _columns(model, X, asked, delta)
        if clash := set(keep) & set(result):
            raise ValueError(f"--keep {min(clash)}: a column of the predictions has this name; rename the one kept.")
        yield {name: part.arrow.column(name) for name in keep} | result
    if asked.sets is not None or asked.intervals is not None:
        tell("sets and intervals are as wide as the model file says; `assay verify` with its table checks that.")
    tell.moved = [] if drift is None else drift.moved()
    if tell.moved:
        tell(
            f"these rows do not look like those that the model was learnt from, in {listed(tell.moved)}; "
            "what its certificate says is about rows like the old ones. (Rows of one source are said to differ once in "
            f"{round(1 / FALSE_ALARM)} times.)"
        )


def _kept(rows: Any, keep: Sequence[str]) -> list[str]:
    """Return the columns of the input that are written too."""
    if not keep:
        return []
    known = data.names(rows)
    if list(keep) == [ALL] and ALL not in known:
        return known
    absent = [name for name in keep if name not in known]
    if absent:
        raise ValueError(f"--keep {absent[0]}: there is no such column; the table has {listed(known)}.")
    return list(keep)


def _listed(values: Any) -> list[Any]:
    """Return the values of a column; those of Arrow that are no numbers as they are spelled."""
    if isinstance(values, np.ndarray):
        return values.tolist()
    import pyarrow as pa

    plain = pa.types.is_floating(values.type) or pa.types.is_integer(values.type)
    return values.to_pylist() if plain else as_text(values).to_pylist()


def _columns(model: TableModel, X: np.ndarray, asked: Asked, delta: float) -> Part:
    """Return the columns that are asked for, of encoded rows."""
    results = {"prediction": model.learner.predict(X)}
    if asked.threshold is not None:
        second = model.probabilities(X)[:, 1] >= asked.threshold
        results["prediction"] = model.classes_[second.astype(np.intp)]
    if asked.proba:
        values = model.probabilities(X)
        results |= {f"probability of {label}": values[:, j] for j, label in enumerate(model.classes_.tolist())}
    if asked.sets is not None:
        inside = model.sets(X, asked.sets, delta)
        labels = [str(label) for label in model.classes_.tolist()]
        results["set"] = np.array([" | ".join(compress(labels, row)) for row in inside.tolist()])
    if asked.intervals is not None:
        results["low"], results["high"] = model.intervals(X, asked.intervals, delta)
    return results


def _write_csv(file: TextIO, parts: Iterable[Part], line: Callable[[Iterable[object]], str]) -> None:
    """Write the parts; the header when the first one is there, so that a failure writes nothing."""
    begun = False
    for part in parts:
        if not begun:
            file.write(line(part))
        begun = True
        file.writelines(map(line, zip(*(_cells(values) for values in part.values()), strict=True)))
    if not begun:
        file.write(line(["prediction"]))


def _cells(values: Any) -> list[Any]:
    return ["" if value is None else value for value in _listed(values)]


def _write_parquet(path: Path, parts: Iterable[Part]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    writer = None
    try:
        for part in parts:
            columns = {
                name: pa.array(values.tolist()) if isinstance(values, np.ndarray) else decoded(values)
                for name, values in part.items()
            }
            batch = pa.table(columns)
            writer = writer or parquet.ParquetWriter(path, batch.schema)
            writer.write_table(batch)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise ValueError("there are no rows to predict.")


_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_QUOTED = re.compile(r"""[",;\t\r\n]|^\s|\s$|^$""")  # a semicolon divides cells where a comma is for decimals


def guarded(text: str) -> str:
    """Return text with an apostrophe before it if a spreadsheet would run it.

    >>> guarded("=1+1"), guarded("-1.5"), guarded("it's")
    ("'=1+1", '-1.5', "it's")
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguarded(text: str) -> str:
    """Return the text that `guarded` was given.

    >>> unguarded("'=1+1"), unguarded("''=1+1"), unguarded("'tis")
    ('=1+1', "'=1+1", "'tis")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def cells(raw: bool, terminal: bool) -> Callable[[Iterable[object]], str]:
    """Return what writes a row of CSV: guarded unless `raw`, and on a terminal with escapes for what cannot be seen."""
    known: dict[str, str] = {}

    def written(text: str) -> str:
        result = known.get(text)
        if result is None:
            result = text if raw else guarded(text)
            result = shown(result) if terminal else result
            result = '"' + result.replace('"', '""') + '"' if _QUOTED.search(result) else result
            if len(known) < 10_000:
                known[text] = result
        return result

    return lambda row: ",".join([written(cell) if isinstance(cell, str) else str(cell) for cell in row]) + "\n"

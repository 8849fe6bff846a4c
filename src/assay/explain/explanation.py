"""Explanations of a model on hold-out rows: what each column is worth, what it does, where the errors are.

The loss of a row is 1 for a wrong class, or the absolute error of a number. All shares have Clopper-Pearson limits
that hold together (delta divided by their number); limits of mean losses and of importances are Student's, at the
same division, and approximate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import stats

from assay.data import Column, Encoding, Table
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper

Frame = Mapping[str, Any]
"""Columns by name, of equal length."""
MOST_ROWS = 1000
MOST_COLUMNS = 100
REPEATS = 3
BINS = 10
FEWEST_ROWS = 10


class Model(Protocol):
    """A fitted learner that reads a table (`learning.TableModel`)."""

    encoding: Encoding
    learner: Any

    @property
    def task(self) -> str: ...

    def labels(self, table: Table) -> np.ndarray: ...


@dataclass(frozen=True)
class Explanation:
    """Frames (columns by name) that `frame` turns into a data frame, and `plot` draws.

    importance   column; how much the mean loss grows when the column is shuffled among the rows; low, high
    effects      column, value, and the mean prediction when every row has this value
    calibration  classes: predicted probability, share that happened, rows, low, high
    confusion    classes: true class, and the rows that were given each class
    hardest      rows of the table that were predicted worst
    subgroups    column, group, rows, mean loss, low, high
    """

    importance: Frame
    effects: Frame
    calibration: Frame
    confusion: Frame
    hardest: Frame
    subgroups: Frame

    def frame(self, name: str) -> Any:
        """Return one of the frames as a pandas data frame if pandas is installed, else as an Arrow table."""
        columns = dict(getattr(self, name))
        try:
            import pandas as pd
        except ImportError:
            import pyarrow as pa

            return pa.table(columns)
        return pd.DataFrame(columns)

    def plot(self) -> Any:
        """Return a matplotlib Figure of importances, effects of the most important columns, and subgroups."""
        from assay.explain.drawing import draw

        return draw(self)


def explain(
    model: Model, table: Table, rows: Any, *, columns: Sequence[str] = (), delta: float = 0.05, seed: int = 0
) -> Explanation:
    """Return what a model does on rows of a table that it was not fitted to.

    Parameters
    ----------
    model : what `assay.learn` found, or `assay.load(file).model`.
    table : the table.
    rows : numbers of the rows to look at; those held out.
    columns : columns whose effect is shown; the six most important ones if left out.
    delta : all limits hold together but for this chance.
    """
    seen = np.sort(np.asarray(rows, dtype=np.intp))
    fitting = model.encoding.fitting(table)[0].take(seen)
    y = model.labels(table)[seen]
    raw = model.encoding.raw(fitting)[0]
    view = _View(model, fitting, raw, y, np.random.default_rng(seed))
    importance = _importance(view, delta)
    shown = list(columns) or [importance["column"][i] for i in range(min(6, len(importance["column"])))]
    classes = model.task == "classify"
    return Explanation(
        importance,
        _effects(view, shown),
        _calibration(view, delta) if classes and hasattr(model.learner, "predict_proba") else {},
        _confusion(view) if classes else {},
        _hardest(view, seen),
        _subgroups(view, delta),
    )


class _View:
    """The rows, raw and encoded, and what the model says of them."""

    def __init__(self, model: Model, table: Table, raw: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> None:
        self.model, self.table, self.raw, self.y, self.rng = model, table, raw, y, rng
        self.predicted = self.predict(raw)
        self.loss = self.losses(self.predicted, y)

    def predict(self, raw: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.learner.predict(self.model.encoding.apply_raw(raw)))

    def answers(self, raw: np.ndarray) -> np.ndarray:
        """Return (rows, k): probabilities of the classes, else the class itself as zeros and one, or the number."""
        learner, X = self.model.learner, self.model.encoding.apply_raw(raw)
        if self.model.task != "classify":
            return np.asarray(learner.predict(X), dtype=np.float64).reshape(len(raw), -1)
        if hasattr(learner, "predict_proba"):
            return np.asarray(learner.predict_proba(X))
        return (np.asarray(learner.predict(X))[:, None] == learner.classes_).astype(np.float64)

    def losses(self, predicted: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (predicted != y).astype(np.float64) if self.model.task == "classify" else np.abs(predicted - y)


def _importance(view: _View, delta: float) -> Frame:
    """Shuffle each column several times; a row's growth is the mean over the shuffles."""
    n = min(len(view.raw), MOST_ROWS)
    raw, y, loss = view.raw[:n], view.y[:n], view.loss[:n]
    names = [column.name for column in view.model.encoding.schema][:MOST_COLUMNS]
    spans = view.model.encoding.spans()[:MOST_COLUMNS]
    found = []
    for name, span in zip(names, spans, strict=True):
        growth = np.zeros(n)
        for _ in range(REPEATS):
            moved = raw.copy()
            moved[:, span] = raw[view.rng.permutation(n), span]
            growth += (view.losses(view.predict(moved), y) - loss) / REPEATS
        found.append((name, *_student(growth, delta / len(names))))
    found.sort(key=lambda one: -one[1])
    return _columns(("column", "importance", "low", "high"), found)


def _student(values: np.ndarray, delta: float) -> tuple[float, float, float]:
    """Return the mean and its limits."""
    mean = float(values.mean())
    if len(values) < 2:
        return mean, -np.inf, np.inf
    half = float(stats.t.isf(delta / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Frame:
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _effects(view: _View, shown: Sequence[str]) -> Frame:
    """Partial dependence: the mean prediction when all rows have one value of a column."""
    schema = [column.name for column in view.model.encoding.schema]
    some = view.raw[: min(len(view.raw), 500)]
    labels = view.model.learner.classes_.tolist() if view.model.task == "classify" else [None]
    rows = []
    for name in shown:
        if name not in schema:
            view.table.column(name)  # says which there are
        column, span = view.table.column(name), view.model.encoding.spans()[schema.index(name)]
        for value, cells in _values(column, view, span):
            moved = some.copy()
            moved[:, span] = cells
            means = view.answers(moved).mean(axis=0)
            rows += [(name, value, label, float(mean)) for label, mean in zip(labels, means, strict=True)]
    return _columns(("column", "value", "class", "mean"), rows)


def _values(column: Column, view: _View, span: slice) -> Iterator[tuple[Any, Any]]:
    """Yield values of a column, as a person says them, and their raw cells: quantiles, common levels, single words."""
    there = column.data[~column.missing]
    if column.type.kind == "text":
        words = view.model.encoding.words(column.name)
        share = view.raw[:, span].mean(axis=0)
        for j in np.argsort(-share, kind="stable")[:10]:
            yield words[int(j)], np.eye(len(words))[int(j)]
    elif column.type.kind in ("numeric", "date") and len(there):
        points = np.unique(np.quantile(there, np.linspace(0.02, 0.98, 12), method="nearest"))
        for point, shown in zip(points, Column(column.type, points).values(), strict=True):
            yield (float(point) if column.type.kind == "numeric" else str(shown)[:16]), point
    else:
        found, counts = np.unique(there, return_counts=True)
        for code in np.sort(found[np.argsort(-counts, kind="stable")[:12]]):
            yield column.type.levels[int(code)], code


def _calibration(view: _View, delta: float) -> Frame:
    """Bins of rows by probability: of the second of two classes, else of the predicted class."""
    values, learner = view.answers(view.raw), view.model.learner
    if values.shape[1] == 2:
        said, happened = values[:, 1], view.y == learner.classes_[1]
    else:
        said, happened = values.max(axis=1), view.y == learner.classes_[values.argmax(axis=1)]
    groups = [part for part in np.array_split(np.argsort(said, kind="stable"), BINS) if len(part)]
    rows = []
    for part in groups:
        right = int(happened[part].sum())
        limits = _limits(right, len(part), delta / len(groups))
        rows.append((float(said[part].mean()), right / len(part), len(part), *limits))
    return _columns(("probability", "share", "rows", "low", "high"), rows)


def _limits(k: int, n: int, delta: float) -> tuple[float, float]:
    return clopper_pearson_lower(k, n, delta / 2), clopper_pearson_upper(k, n, delta / 2)


def _confusion(view: _View) -> Frame:
    labels = view.model.learner.classes_.tolist()
    where = {said: view.predicted == said for said in labels}
    counts = {f"said {said}": [int((where[said] & (view.y == true)).sum()) for true in labels] for said in labels}
    return {"true": labels, **counts}


def _hardest(view: _View, seen: np.ndarray, most: int = 20) -> Frame:
    """The rows of largest loss; of classes, those whose true class had the smallest probability."""
    size = view.loss
    if view.model.task == "classify":
        values = view.answers(view.raw)
        size = 1 - values[np.arange(len(values)), np.searchsorted(view.model.learner.classes_, view.y)]
    worst = np.argsort(-size, kind="stable")[:most]
    fields = {"row": seen[worst], "true": view.y[worst], "predicted": view.predicted[worst], "size": size[worst]}
    return {name: values.tolist() for name, values in fields.items()}


def _subgroups(view: _View, delta: float) -> Frame:
    """The mean loss of the rows of each level, and of each quarter of the rows by a number."""
    groups = [
        (column.name, name, rows)
        for column in list(view.table.columns.values())[:MOST_COLUMNS]
        for name, rows in _groups(column)
        if len(rows) >= FEWEST_ROWS
    ]
    found = []
    for column, name, rows in groups:
        loss = view.loss[rows]
        if view.model.task == "classify":
            limits = (float(loss.mean()), *_limits(int(loss.sum()), len(loss), delta / len(groups)))
        else:
            limits = _student(loss, delta / len(groups))
        found.append((column, name, len(rows), *limits))
    return _columns(("column", "group", "rows", "loss", "low", "high"), found)


def _groups(column: Column) -> Iterator[tuple[str, np.ndarray]]:
    there = column.data[~column.missing]
    if column.missing.any():
        yield "missing", np.flatnonzero(column.missing)
    if column.type.kind in ("nominal", "ordered"):
        for code in np.unique(there).astype(np.intp)[:50]:
            yield column.type.levels[code], np.flatnonzero(column.data == code)
    elif column.type.kind != "text" and len(there):
        edges = np.unique(np.quantile(there, [0, 0.25, 0.5, 0.75, 1], method="nearest"))
        ends = Column(column.type, edges).values()
        names = [f"{end:.6g}" if column.type.kind == "numeric" else str(end)[:10] for end in ends]
        for i in range(len(edges) - 1):
            above = column.data >= edges[i] if i == 0 else column.data > edges[i]
            yield f"{names[i]} to {names[i + 1]}", np.flatnonzero(above & (column.data <= edges[i + 1]))

"""Explanations of a model on hold-out rows: what each column is worth, what it does, where the errors are.

The loss of a row is 1 for a wrong class, or the absolute error of a number, counted up to a limit. All limits hold
together: importance, calibration and subgroups have equal parts of delta, which is divided further among columns and
then among the groups, or bins, of each. Shares have Clopper-Pearson limits; means are bounded by betting, in an order
drawn by the seed. Groups of rows are fixed without the rows that are looked at: levels, quarters of the other rows,
tenths of the probability.

Of a model that was chosen on these rows among several, the limits are at its own share of delta: those of whichever
is chosen then hold but for a chance of delta, and no less.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from assay.data import Column, Encoding, Table, raw_table
from assay.messages import Message
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper
from assay.theory.holdout import mean_limits

Frame = Mapping[str, Any]
"""Columns by name, of equal length."""
MOST_ROWS = 2000
MOST_COLUMNS = 100
BINS = 10
FEWEST_ROWS = 10
GROUPED = Message("explain.grouped")


class Model(Protocol):
    """A fitted learner that reads a table (`learning.TableModel`)."""

    encoding: Encoding
    learner: Any

    @property
    def task(self) -> str: ...

    def labels(self, source: Any) -> np.ndarray: ...


@dataclass(frozen=True)
class Explanation:
    """Frames (columns by name) that `frame` turns into a data frame, and `plot` draws.

    importance   column; how much the mean loss grows when the column's cell is that of another row; low, high
    effects      column, value, and the mean prediction when every row has this value
    calibration  classes: predicted probability, share that happened, rows, low, high
    confusion    classes: true class, and the rows that were given each class
    hardest      rows of the table that were predicted worst
    subgroups    column, group, rows, mean loss, low, high

    `limits` says in a sentence what low and high are; where they cannot be given they are None. `clip` is up to what
    an absolute error counts.

    Parameters
    ----------
    importance : mapping
        Importance of each column, with limits.
    effects : mapping
        Mean prediction by value of a column.
    calibration : mapping
        Predicted and observed frequency.
    confusion : mapping
        Predicted classes by true class.
    hardest : mapping
        Rows with the largest losses.
    subgroups : mapping
        Mean loss by group, with limits.
    limits : str, default=""
        What low and high are, in a sentence.
    clip : float or None
        Absolute errors count at most this.
    """

    importance: Frame
    effects: Frame
    calibration: Frame
    confusion: Frame
    hardest: Frame
    subgroups: Frame
    limits: str = ""
    clip: float | None = None

    def frame(self, name: str) -> Any:
        """Return one of the frames as a pandas data frame if pandas is installed, else as an Arrow table.

        Parameters
        ----------
        name : str
            Name of the frame.
        """
        columns = dict(getattr(self, name))
        try:
            import pandas as pd
        except ImportError:
            import pyarrow as pa

            return pa.table(columns)
        return pd.DataFrame(columns)

    def plot(self) -> Any:
        """Return a matplotlib Figure of importances, effects of the most important columns, and subgroups."""

        return draw(self)


def explain(
    model: Model,
    table: Any,
    rows: Any,
    *,
    columns: Sequence[str] = (),
    delta: float = 0.05,
    share: float = 1.0,
    clip: float | None = None,
    grouped: bool = False,
    seed: int = 0,
) -> Explanation:
    """Return what a model does on rows of a table that it was not fitted to.

    Parameters
    ----------
    model : learner
        What `assay.learn` found, or `assay.load(file).model`.
    table : path, frame, dict or RawTable
        What `assay.data.raw_table` reads, with the target; its cells are read as the model reads new rows.
    rows : array-like of int
        Numbers of the rows to look at; those held out.
    columns : sequence of str
        Columns whose effect is shown; none: the six most important ones.
    delta : float, default=0.05
        Probability with which some limit may fail.
    share : float, default=1.0
        The part of delta that was this model's, if it was chosen on these rows among several.
    clip : float or None
        Absolute errors count at most this, fixed without these rows; None: the largest distance of the other rows'
        targets from their median.
    grouped : bool, default=False
        Whether rows come in groups; then there are no limits, which need independent draws.
    seed : int, default=0
        Seed of the permutations.

    Returns
    -------
    Explanation
        The frames.
    """
    seen = np.sort(np.asarray(rows, dtype=np.intp))
    cells = raw_table(table)
    others = np.setdiff1d(np.arange(cells.n_rows), seen)
    read = cells.read_as(model.encoding.schema, lenient=True)
    whole, labels = model.encoding.fitting(read)[0], model.labels(cells)
    fitting, y = whole.take(seen), labels[seen]
    classes = model.task == "classify"
    limit = 1.0 if classes else _clip(labels[others]) if clip is None else clip
    known = not grouped and limit is not None
    raw = model.encoding.raw(fitting)[0]
    view = _View(model, fitting, whole.take(others), raw, y, np.inf if limit is None else limit, seed)
    calibrated = classes and hasattr(model.learner, "predict_proba")
    part = share * delta / (3 if calibrated else 2) if known else None
    importance = _importance(view, part)
    shown = list(columns) or [importance["column"][i] for i in range(min(6, len(importance["column"])))]
    return Explanation(
        importance,
        _effects(view, shown),
        _calibration(view, part) if calibrated else {},
        _confusion(view) if classes else {},
        _hardest(view, seen),
        _subgroups(view, part),
        _sentence(delta, None if classes else limit, grouped),
        None if classes else limit,
    )


def grouped(certificate: Any) -> bool:
    """Tell whether a certificate is about new groups, so that its hold-out rows are no independent draws.

    Parameters
    ----------
    certificate : Certificate or None
        The certificate.

    Returns
    -------
    bool
        Whether it is.
    """
    claims = (*certificate.claims, *certificate.not_applicable)
    names = [claim.name for claim in claims] + [name for name, _ in certificate.unreported]
    return any(name.startswith("holdout.groups") for name in names)


def _clip(targets: np.ndarray) -> float | None:
    return (float(np.abs(targets - np.median(targets)).max()) or 1.0) if len(targets) else None


def _sentence(delta: float, clip: float | None, grouped: bool) -> str:
    if grouped:
        return GROUPED
    if clip is None:
        return Message("explain.limits", delta=delta)
    return Message("explain.limits-clip", delta=delta, clip=clip)


class _View:
    """The rows, raw and encoded, and what the model says of them."""

    def __init__(
        self, model: Model, table: Table, others: Table, raw: np.ndarray, y: np.ndarray, clip: float, seed: int
    ) -> None:
        self.model, self.table, self.others, self.raw, self.y, self.clip = model, table, others, raw, y, clip
        self.order = np.random.default_rng(seed).permutation(len(raw))
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
        if self.model.task == "classify":
            return (predicted != y).astype(np.float64)
        return np.minimum(np.abs(predicted - y), self.clip)

    def mean(self, values: np.ndarray, low: float, delta: float | None) -> tuple[float, float | None, float | None]:
        """Return the mean of values between `low` and the largest loss, in an order drawn, and its limits."""
        return (float(values.mean()), *(mean_limits(values, delta, low, self.clip) if delta else (None, None)))


def _importance(view: _View, delta: float | None) -> Frame:
    """Exchange the cells of a column within pairs of rows: the pairs' mean growths of the loss are independent draws,
    whose expectation is how much the mean loss grows when the cell is that of another row."""
    pairs = min(len(view.raw), MOST_ROWS) // 2
    rows = view.order[: 2 * pairs] if pairs else view.order[:1]
    other = np.arange(2 * pairs) ^ 1 if pairs else np.zeros(1, dtype=np.intp)
    raw, y, loss = view.raw[rows], view.y[rows], view.loss[rows]
    names = [column.name for column in view.model.encoding.schema][:MOST_COLUMNS]
    spans = view.model.encoding.spans()[:MOST_COLUMNS]
    results = []
    for name, span in zip(names, spans, strict=True):
        moved = raw.copy()
        moved[:, span] = raw[other, span]
        growth = (view.losses(view.predict(moved), y) - loss).reshape(-1, 2 if pairs else 1).mean(axis=1)
        results.append((name, *view.mean(growth, -view.clip, delta and delta / len(names))))
    results.sort(key=lambda item: -item[1])
    return _columns(("column", "importance", "low", "high"), results)


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
        result, counts = np.unique(there, return_counts=True)
        common = np.sort(result[np.argsort(-counts, kind="stable")[:12]])
        yield from zip(Column(column.type, common).values(), common, strict=True)


def _calibration(view: _View, delta: float | None) -> Frame:
    """Tenths of the probability: of the second of two classes, else of the predicted class. Empty ones are left out."""
    values, learner = view.answers(view.raw), view.model.learner
    if values.shape[1] == 2:
        probability, happened = values[:, 1], view.y == learner.classes_[1]
    else:
        probability, happened = values.max(axis=1), view.y == learner.classes_[values.argmax(axis=1)]
    bins = np.minimum((probability * BINS).astype(np.intp), BINS - 1)
    rows = []
    for part in (np.flatnonzero(bins == k) for k in np.unique(bins)):
        right = int(happened[part].sum())
        limits = _limits(right, len(part), delta and delta / BINS)
        rows.append((float(probability[part].mean()), right / len(part), len(part), *limits))
    return _columns(("probability", "share", "rows", "low", "high"), rows)


def _limits(k: int, n: int, delta: float | None) -> tuple[float | None, float | None]:
    return (clopper_pearson_lower(k, n, delta / 2), clopper_pearson_upper(k, n, delta / 2)) if delta else (None, None)


def _confusion(view: _View) -> Frame:
    labels = view.model.learner.classes_.tolist()
    where = {label: view.predicted == label for label in labels}
    counts = {f"said {label}": [int((where[label] & (view.y == true)).sum()) for true in labels] for label in labels}
    return {"true": labels, **counts}


def _hardest(view: _View, seen: np.ndarray, most: int = 20) -> Frame:
    """The rows of largest loss; of classes, those whose true class had the smallest probability."""
    size = view.loss
    if view.model.task == "classify":
        values = view.answers(view.raw)
        classes = view.model.learner.classes_
        own = np.minimum(np.searchsorted(classes, view.y), len(classes) - 1)
        size = 1 - np.where(classes[own] == view.y, values[np.arange(len(values)), own], 0.0)
    worst = np.argsort(-size, kind="stable")[:most]
    fields = {"row": seen[worst], "true": view.y[worst], "predicted": view.predicted[worst], "size": size[worst]}
    return {name: values.tolist() for name, values in fields.items()}


def _subgroups(view: _View, delta: float | None) -> Frame:
    """The mean loss of the rows of each level, and of each quarter of the other rows by a number.

    Each column has an equal part of delta, and each of its groups an equal part of that: given which rows are in which
    group of a column, their losses are independent draws of that group's.
    """
    columns = list(view.table.columns.values())[:MOST_COLUMNS]
    place = np.empty(len(view.order), dtype=np.intp)
    place[view.order] = np.arange(len(view.order))
    results = []
    for column in columns:
        parts = _groups(column, view.others.column(column.name))
        groups = [(name, rows) for name, rows in parts if len(rows) >= FEWEST_ROWS]
        share = delta and delta / (len(columns) * max(1, len(groups)))
        for name, rows in groups:
            loss = view.loss[rows[np.argsort(place[rows])]]
            if view.model.task == "classify":
                limits = (float(loss.mean()), *_limits(int(loss.sum()), len(loss), share))
            else:
                limits = view.mean(loss, 0.0, share)
            results.append((column.name, name, len(rows), *limits))
    return _columns(("column", "group", "rows", "loss", "low", "high"), results)


def _groups(column: Column, others: Column) -> Iterator[tuple[str, np.ndarray]]:
    """Yield groups of the rows of a column; numbers by the quarters of the other rows."""
    there = column.data[~column.missing]
    if column.missing.any():
        yield "missing", np.flatnonzero(column.missing)
    if column.type.kind in ("nominal", "ordered"):
        levels = column.type.levels
        for code in np.unique(there).astype(np.intp)[:50]:
            yield levels[code] if code < len(levels) else "new level", np.flatnonzero(column.data == code)
        return
    known = others.data[~others.missing]
    if column.type.kind == "text" or not len(known):
        return
    edges = np.unique(np.quantile(known, [0.25, 0.5, 0.75], method="nearest"))
    ends = Column(column.type, edges).values()
    names = [f"{end:.6g}" if column.type.kind == "numeric" else str(end)[:10] for end in ends]
    called = [f"up to {names[0]}", *(f"{a} to {b}" for a, b in pairwise(names)), f"above {names[-1]}"]
    place = np.searchsorted(edges, column.data, side="left")
    for i, name in enumerate(called):
        yield name, np.flatnonzero((place == i) & ~column.missing)


def draw(explanation: "Explanation") -> Any:
    """Return a matplotlib Figure: importances with limits, subgroups with limits, effects of up to six columns."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("drawing needs matplotlib: pip install 'assay[plot]'.") from None
    shown = list(dict.fromkeys(explanation.effects.get("column", ())))[:6]
    lines = 1 + -(-len(shown) // 3)
    figure = Figure(figsize=(12, 3.4 * lines), layout="constrained")
    grid = figure.add_gridspec(lines, 6)
    _bars(figure.add_subplot(grid[0, :3]), "Loss that shuffling adds", explanation.importance, ["column"], "importance")
    _bars(figure.add_subplot(grid[0, 3:]), "Loss by group", _worst(explanation.subgroups), ["column", "group"], "loss")
    for i, name in enumerate(shown):
        _effect(figure.add_subplot(grid[1 + i // 3, 2 * (i % 3) : 2 * (i % 3) + 2]), explanation, name)
    return figure


def _worst(groups: Any, most: int = 12) -> Any:
    order: Any = np.argsort([-loss for loss in groups["loss"]], kind="stable")[:most] if groups.get("loss") else []
    return {name: [values[i] for i in order] for name, values in groups.items()}


def _bars(axes: Any, title: str, frame: Any, names: list[str], value: str) -> None:
    labels = [" = ".join(str(part)[:24] for part in parts) for parts in zip(*(frame[name] for name in names))][:12]
    at, values = np.arange(len(labels)), np.array(frame[value][: len(labels)], dtype=float)
    low, high = (np.array(frame[end][: len(labels)], dtype=float) for end in ("low", "high"))
    axes.errorbar(values, at, xerr=[np.maximum(values - low, 0), np.maximum(high - values, 0)], fmt="o", capsize=3)
    axes.set_yticks(at, [label.replace("$", r"\$") for label in labels])
    axes.invert_yaxis()
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_title(title)


def _effect(axes: Any, explanation: "Explanation", name: str) -> None:
    frame = explanation.effects
    rows = [i for i, column in enumerate(frame["column"]) if column == name]
    labels = list(dict.fromkeys(frame["class"][i] for i in rows))
    for label in labels[-1:] if len(labels) == 2 else labels[:8]:
        some = [i for i in rows if frame["class"][i] == label]
        values = [frame["value"][i] for i in some]
        numbers = all(isinstance(value, float) for value in values)
        places = values if numbers else list(range(len(values)))
        axes.plot(places, [frame["mean"][i] for i in some], "o-", label=None if label is None else str(label))
        if not numbers:
            axes.set_xticks(places, [str(value)[:14].replace("$", r"\$") for value in values], rotation=45, ha="right")
    if labels != [None]:
        axes.legend(fontsize="small")
    axes.set_title(f"Mean prediction by {name}".replace("$", r"\$"))

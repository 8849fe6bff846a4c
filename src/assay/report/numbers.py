"""The numbers behind the figures of a study's model, from its hold-out rows.

Bands are theorems, not error bars. Shares at a threshold: the largest difference between a share on the hold-out rows
and on new data, over all thresholds at once and for both classes (Dvoretzky-Kiefer-Wolfowitz with Massart's constant).
Prediction sets: the coverage at each of `COVERAGES`, all at once. Both pay for the models compared on the same rows.
"""

from typing import Any

import numpy as np

from assay.data import Table
from assay.explain import explain
from assay.learning import Study, TableModel
from assay.plot import frames
from assay.report.structure import structure
from assay.theory.holdout import threshold_width

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_ROWS, _SHOWN, _DRAWN, _LISTED = 2_000, 12, 3, 10
_GROUP = ("column", "group", "rows", "loss", "low", "high")


def all_of(found: Study) -> dict[str, Any]:
    """Return every figure that the chosen model allows. Where models of folds vote they are of the first of them, and
    there are no thresholds to choose, which would be its own."""
    model, (X, y) = found.judged[0], found.encoded_holdout
    compared = 1 if model.memory is None else model.memory.compared
    delta = (1 - float(found.confidence)) / compared
    shown: dict[str, Any] = dict.fromkeys(("confusion", "threshold", "residuals"))
    shown |= _explained(found)
    shown["structure"] = structure(found, [line[0] for line in shown["importance"]])
    if found.task == "classify":
        frame = frames.confusion(model.learner, X, y)
        shown["confusion"] = {"labels": [str(one) for one in frame["labels"]], "counts": frame["counts"].tolist()}
        if len(model.classes_) == 2 and hasattr(model.learner, "predict_proba") and not found.folds:
            shown["threshold"] = _thresholds(model.learner, X, y, delta)
    else:
        frame = frames.residuals(model.learner, X, y)
        shown["residuals"] = {key: frame[key][:500].tolist() for key in ("predicted", "residual")}
    shown["coverage"] = _coverage(model, X, delta * compared)
    return shown


def _explained(found: Study) -> dict[str, Any]:
    """Return importance, effects, calibration, the hardest rows and the groups that fare worst, from at most `_ROWS`
    hold-out rows."""
    model, held = found.judged
    if len(held) > _ROWS:
        held = np.sort(np.random.default_rng(0).choice(held, _ROWS, replace=False))
    said = explain(model, found.table, held, delta=1 - float(found.confidence))
    calibration = said.calibration and {
        "predicted": said.calibration["probability"],
        **{key: said.calibration[key] for key in ("share", "low", "high")},
    }
    return {
        "importance": _lines(said.importance, ("column", "importance", "low", "high"))[:_SHOWN],
        "dependence": _dependence(said.effects),
        "calibration": calibration or None,
        "hardest": _lines(said.hardest, ("row", "true", "predicted", "size"))[:_LISTED],
        "subgroups": sorted(_lines(said.subgroups, _GROUP), key=lambda line: -line[4])[:_LISTED],
    }


def _lines(frame: Any, names: tuple[str, ...]) -> list[list[Any]]:
    return [list(line) for line in zip(*(frame[name] for name in names), strict=True)]


def _dependence(effects: Any) -> list[dict[str, Any]]:
    """Return the effects of the first columns, of the last class where there are classes."""
    rows = list(zip(*(effects[key] for key in ("column", "value", "class", "mean")), strict=True))
    last = rows[-1][2] if rows else None
    drawn = []
    for name in list(dict.fromkeys(line[0] for line in rows))[:_DRAWN]:
        mine = [(value, mean) for column, value, label, mean in rows if column == name and label == last]
        numeric = all(isinstance(value, float) for value, _ in mine)
        drawn.append(
            {
                "name": name,
                "class": "" if last is None else str(last),
                "values": [value for value, _ in mine] if numeric else [],
                "levels": [] if numeric else [str(value) for value, _ in mine],
                "means": [mean for _, mean in mine],
            }
        )
    return drawn


def _thresholds(learner: Any, X: np.ndarray, y: np.ndarray, delta: float) -> dict[str, Any] | None:
    """Return, at each threshold, the share of the second class that is missed and of the first that is called."""
    score, positive = learner.predict_proba(X)[:, 1], y == learner.classes_[1]
    a, b = int(positive.sum()), int((~positive).sum())
    if not a or not b:
        return None
    at = np.linspace(0, 1, 101)
    yes, no = np.sort(score[positive]), np.sort(score[~positive])
    return {
        "at": at.round(2).tolist(),
        "missed": (np.searchsorted(yes, at, "left") / a).tolist(),
        "alarms": (1 - np.searchsorted(no, at, "left") / b).tolist(),
        "width": float(threshold_width(a, b, delta)),
        "share": a / (a + b),
        "classes": [str(one) for one in learner.classes_],
    }


def _coverage(model: TableModel, X: np.ndarray, delta: float) -> list[dict[str, Any]]:
    """Return how large prediction sets are at each coverage; what it costs to look at all of them is paid."""
    lines = []
    for coverage in COVERAGES:
        try:
            if model.task == "classify":
                size = float(model.sets(X, coverage, delta / len(COVERAGES)).sum(axis=1).mean())
            else:
                low, high = model.intervals(X[:1], coverage, delta / len(COVERAGES))
                size = float(high[0] - low[0]) / 2
            lines.append({"coverage": coverage, "size": size})
        except ValueError:  # too few hold-out rows for this coverage, or a model that remembers none
            continue
    return [line for line in lines if np.isfinite(line["size"])]


def columns_of(model: TableModel, table: Table) -> list[dict[str, Any]]:
    """Return what a form needs of each column: kind, levels, a usual value, and how far values lie apart."""
    found = []
    for kind in model.columns:
        column = table.column(kind.name)
        there = np.flatnonzero(~column.missing)
        one: dict[str, Any] = {"name": kind.name, "kind": kind.kind, "usual": "", "levels": list(kind.levels)}
        if kind.kind == "numeric" and len(there):
            data = column.data[there]
            spread = float(np.subtract(*np.quantile(data, [0.75, 0.25])))
            marks = np.unique(np.quantile(data, np.linspace(0, 1, 21))).tolist()
            one |= {"usual": f"{float(np.median(data)):.6g}", "spread": spread or 1.0, "marks": marks}
        elif kind.levels and len(there):
            one["usual"] = kind.levels[int(np.bincount(column.data[there].astype(np.intp)).argmax())]
        elif len(there):
            one["usual"] = str(column.values()[there[0]])[:200]
        found.append(one)
    return found

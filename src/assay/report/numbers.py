"""The numbers behind the figures of a study's model: from its hold-out rows, and of its structure (weights, support
vectors, layers, a tree).

Limits are theorems, not error bars, and all that a page shows hold simultaneously, apart from the certificate: half of
delta is for explanations (`explain`), a quarter for thresholds (`theory.holdout`) and a quarter for prediction sets, at
each of `COVERAGES`. All pay for the finalists that were certified on the same rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.checker.family import find
from assay.data import Table
from assay.explain import explain
from assay.guarantees.ledger import before_looks
from assay.learning import Study, TableModel
from assay.plot import frames, tree_frames
from assay.theory.holdout import joint_limits
from assay.tree._export import ReadableTree, Words, as_text

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_ROWS, _SHOWN, _DRAWN, _LISTED = 2_000, 12, 3, 10
_GROUP = ("column", "group", "rows", "loss", "low", "high")


def all_of(study: Study) -> dict[str, Any]:
    """Return every figure that the chosen model allows. Where models of folds vote they are of the first of them, and
    there are no thresholds to choose, which would be its own."""
    model, (X, y) = study.judged[0], study.encoded_holdout
    spent = study.explaining
    shown: dict[str, Any] = dict.fromkeys(("confusion", "threshold", "residuals"))
    shown |= _explained(study)
    shown["structure"] = structure(study, [line[0] for line in shown["importance"]])
    if study.task == "classify":
        frame = frames.confusion(model.learner, X, y)
        shown["confusion"] = {"labels": [str(item) for item in frame["labels"]], "counts": frame["counts"].tolist()}
        scored = len(model.classes_) == 2 and hasattr(model.learner, "predict_proba")
        if scored and not study.folds and not spent["grouped"]:
            shown["threshold"] = _thresholds(model.learner, X, y, spent["delta"] * spent["share"] / 4)
    else:
        frame = frames.residuals(model.learner, X, y)
        shown["residuals"] = {key: frame[key][:500].tolist() for key in ("predicted", "residual")}
    total = float(study.certificate.delta_total)
    # what a model remembers pays for finalists and looks by itself
    shown["coverage"] = _coverage(model, X, before_looks(study.certificate) / 4)
    shown["limits"] = None if spent["grouped"] else {"sure": 1 - total, "both": max(0.0, 1 - 2 * total)}
    return shown


def _explained(study: Study) -> dict[str, Any]:
    """Return importance, effects, calibration, the hardest rows and the groups that fare worst, from at most `_ROWS`
    hold-out rows."""
    model, held = study.judged
    if len(held) > _ROWS:
        held = np.sort(np.random.default_rng(0).choice(held, _ROWS, replace=False))
    spent = study.explaining
    said = explain(model, study.raw, held, **(spent | {"delta": spent["delta"] / 2}))
    groups = _lines(said.subgroups, _GROUP)
    if study.task == "classify" and not spent["grouped"]:  # shown to a hundredth of a per cent
        groups = [[*line[:4], np.floor(1e4 * line[4]) / 1e4, np.ceil(1e4 * line[5]) / 1e4] for line in groups]
    calibration = said.calibration and {
        "predicted": said.calibration["probability"],
        **{key: said.calibration[key] for key in ("share", "low", "high")},
    }
    return {
        "clip": said.clip,
        "importance": _lines(said.importance, ("column", "importance", "low", "high"))[:_SHOWN],
        "dependence": _dependence(said.effects),
        "calibration": calibration or None,
        "hardest": _lines(said.hardest, ("row", "true", "predicted", "size"))[:_LISTED],
        "subgroups": sorted(groups, key=lambda line: -line[3] if line[4] is None else -line[4])[:_LISTED],
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


def _thresholds(learner: Any, X: np.ndarray, y: np.ndarray, delta: float) -> dict[str, Any]:
    """Return, at each threshold, which share of all rows is missed and which is called wrongly, with limits.

    A row of neither class is wrong wherever it falls: missed below the threshold, called wrongly from it on.
    """
    score, (no, yes) = learner.predict_proba(X)[:, 1], learner.classes_
    at = np.linspace(0, 1, 101).round(2)
    missed = np.searchsorted(np.sort(score[y != no]), at, "left")
    called = np.sum(y != yes) - np.searchsorted(np.sort(score[y != yes]), at, "left")
    limits = joint_limits(missed, called, len(y), delta)
    return {
        "at": at.tolist(),
        "missed": (missed / len(y)).tolist(),
        "called": (called / len(y)).tolist(),
        **{name: _outward(values, name).tolist() for name, values in limits._asdict().items()},
        "classes": [str(label) for label in learner.classes_],
    }


def _outward(values: np.ndarray, name: str) -> np.ndarray:
    """Return limits as they are shown, to a tenth of a per cent: lower ones rounded down, upper ones up."""
    return (np.floor if name.endswith("low") else np.ceil)(1000 * values) / 1000


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
    results = []
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
            known = column.data[there][column.data[there] < len(kind.levels)]
            one["usual"] = kind.levels[int(np.bincount(known.astype(np.intp), minlength=1).argmax())]
        elif len(there):
            one["usual"] = str(column.values()[there[0]])[:200]
        results.append(one)
    return results


_WEIGHTS, _POINTS, _VALUES, _LINES, _DEPTH = 12, 400, 12, 40, 3


def structure(study: Study, columns: Sequence[str]) -> dict[str, Any]:
    """Return the parts of the chosen model; support vectors are shown on the first two of the columns that are
    numbers."""
    model = study.judged[0]
    learner, names = model.learner, model.encoding.feature_names()
    shown: dict[str, Any] = dict.fromkeys(("coefficients", "support", "vectors", "network", "tree", "rules"))
    if np.shape(getattr(learner, "coef_", ()))[-1:] == (len(names),):
        frame = frames.coefficients(learner, names, _WEIGHTS)
        shown["coefficients"] = [frame["names"], frame["values"][:, -1].tolist()]
    arrays = find(learner.family)[1].arrays
    if "support_" in arrays:
        shown["support"] = [len(learner.support_), study.table.n_rows - len(study.judged[1])]
        shown["vectors"] = _vectors(study, columns)
    if "network_sizes_" in arrays:
        shown["network"] = learner.network_sizes_.tolist()
    if isinstance(learner, ReadableTree):
        words = _words(model, names)
        shown["tree"] = _tree(tree_frames.tree(learner, words=words))
        shown["rules"] = as_text(learner.nodes_, words).splitlines()[:_LINES]
    return shown


def _words(model: TableModel, names: list[str]) -> Words:
    """Return the names of the table's columns and levels, as the learner's conditions are to say them."""
    return Words(names, model.encoding.levels(), getattr(model.learner, "classes_", None))


def _tree(frame: Any) -> list[dict[str, Any]]:
    """Return the nodes of the upper levels: place, what it says, the condition that leads to it, and whether more
    follows below."""
    edges = [edge for edge in frame["edges"] if frame["depth"][edge[1]] <= _DEPTH]
    inner, over = {edge[0] for edge in edges}, {child: (parent, text) for parent, child, text in edges}
    drawn = [0, *over]
    ends = sorted((at for at in drawn if at not in inner), key=lambda at: frame["x"][at])
    x = {at: float(i) for i, at in enumerate(ends)}
    for at in sorted(inner, key=lambda at: -frame["depth"][at]):
        below = [x[child] for parent, child, _ in edges if parent == at]
        x[at] = (min(below) + max(below)) / 2
    return [
        {
            "x": x[at],
            "depth": int(frame["depth"][at]),
            "says": frame["text"][at],
            "code": int(frame["code"][at]),
            "condition": over[at][1] if at in over else "",
            "parent": drawn.index(over[at][0]) if at in over else -1,
            "more": at in ends and not frame["leaf"][at],
        }
        for at in drawn
    ]


def _vectors(study: Study, columns: Sequence[str]) -> dict[str, Any] | None:
    """Return training rows on two columns, those that are support vectors ringed."""
    model, held = study.judged
    sources, names = model.encoding.sources(), model.encoding.feature_names()
    kinds = {column.name: column.kind for column in model.encoding.schema}
    drawn = [name for name in columns if kinds.get(name) == "numeric" and name in sources]
    drawn.sort(key=lambda name: len(np.unique(study.table.column(name).data)) < _VALUES)  # few values lie on lines
    chosen = [sources.index(name) for name in drawn[:2]]
    if len(chosen) < 2:
        return None
    rows = study.table.take(np.setdiff1d(np.arange(study.table.n_rows), held))
    X, y = model.encode(rows)[0], model.labels(rows)
    learner, marked = model.learner, np.zeros(len(X), dtype=bool)
    if max(learner.support_, default=0) >= len(X):
        return None  # it was fitted to other rows than these
    marked[learner.support_] = True
    some = np.sort(np.random.default_rng(0).permutation(len(X))[:_POINTS])
    points = X[some][:, chosen]
    codes = np.searchsorted(model.classes_, y[some]) if study.task == "classify" else np.zeros(len(some), dtype=int)
    low, high = points.min(axis=0), points.max(axis=0)
    return {
        "points": points.tolist(),
        "codes": codes.tolist(),
        "x_range": [low[0], high[0]],
        "y_range": [low[1], high[1]],
        "x": names[chosen[0]],
        "y": names[chosen[1]],
        "rings": np.flatnonzero(marked[some]).tolist(),
    }

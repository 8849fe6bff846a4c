"""The numbers behind the figures of a study's model, from its hold-out rows.

Bands are theorems, not error bars. Shares at a threshold: the largest difference between a share on the hold-out rows
and on new data, over all thresholds at once and for both classes (Dvoretzky-Kiefer-Wolfowitz with Massart's constant).
Prediction sets: the coverage at each of `COVERAGES`, all at once. Both pay for the models compared on the same rows.
"""

import time
from typing import Any

import numpy as np

from assay.data import Table
from assay.learning import Result, TableModel
from assay.plot import frames
from assay.theory import conformal
from assay.theory.holdout import threshold_width

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_ROWS, _POINTS, _SECONDS, _SHOWN = 1_000, 12, 10.0, 12


def all_of(found: Result, table: Table | None, compared: int) -> dict[str, Any]:
    """Return every figure that the chosen model allows; those about columns need the table."""
    learner, (X, y) = found.model.learner, found.holdout
    delta = 1 - float(found.confidence)
    shown: dict[str, Any] = dict.fromkeys(("confusion", "calibration", "threshold", "residuals"))
    shown["structure"] = _structure(found)
    if found.task == "classify":
        frame = frames.confusion(learner, X, y)
        shown["confusion"] = {"labels": [str(one) for one in frame["labels"]], "counts": frame["counts"].tolist()}
        if hasattr(learner, "predict_proba"):
            frame = frames.calibration(learner, X, y)
            shown["calibration"] = {key: frame[key].tolist() for key in ("predicted", "observed", "rows")}
        if len(learner.classes_) == 2 and hasattr(learner, "predict_proba"):
            shown["threshold"] = _thresholds(learner, X, y, delta / max(compared, 1))
    else:
        frame = frames.residuals(learner, X, y)
        shown["residuals"] = {key: frame[key][:500].tolist() for key in ("predicted", "residual")}
    shown["coverage"] = _coverage(found, delta / max(compared, 1))
    return shown | ({"importance": [], "dependence": []} if table is None else _influence(found, table))


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


def _coverage(found: Result, delta: float) -> list[dict[str, Any]]:
    """Return, for each coverage, how far a prediction set reaches; what it costs to look at all of them is paid."""
    learner, (X, y) = found.model.learner, found.holdout
    sizes, scores = _sizes(learner, X, y, found.task)
    lines = []
    for coverage in COVERAGES:
        try:
            index = conformal.conditional_index(len(y), 1 - coverage, delta / len(COVERAGES))
            reach = float(conformal.threshold(sizes, index))
        except ValueError:
            continue
        if not np.isfinite(reach):
            continue
        many = None if scores is None else float((scores.max(axis=1)[:, None] - scores <= reach).sum(axis=1).mean())
        lines.append({"coverage": coverage, "reach": reach, "classes": many})
    return lines


def _sizes(learner: Any, X: np.ndarray, y: np.ndarray, task: str) -> tuple[np.ndarray, np.ndarray | None]:
    if task == "regress":
        return np.abs(y - learner.predict(X)), None
    scores = scores_of(learner, X)
    own = scores[np.arange(len(y)), np.searchsorted(learner.classes_, y)]
    return scores.max(axis=1) - own, scores


def scores_of(learner: Any, X: np.ndarray) -> np.ndarray:
    """Return a score for each row and class: probabilities, else 1 for the predicted class."""
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.predict_proba(X))
    return (learner.predict(X)[:, None] == learner.classes_[None, :]).astype(float)


def _influence(found: Result, table: Table) -> dict[str, Any]:
    """Return how much the hold-out error grows when a column is shuffled, and what the first columns do on average."""
    model, split = found.model, found.certificate.split
    assert split is not None
    held = np.asarray(split["holdout"])
    rng = np.random.default_rng(0)
    some = held if len(held) <= _ROWS else np.sort(rng.choice(held, _ROWS, replace=False))
    part = table.take(some)
    raw, y = model.encoding.raw(part)[0], model.labels(part)
    base, began, grown = _losses(model, raw, y).mean(), time.monotonic(), []
    for j in range(raw.shape[1]):
        if time.monotonic() - began > _SECONDS:
            break
        shuffled = raw.copy()
        shuffled[:, j] = rng.permutation(raw[:, j])
        change = _losses(model, shuffled, y) - base
        grown.append((float(change.mean()), float(change.std() / np.sqrt(len(y)))))
    order = np.argsort([-mean for mean, _ in grown], kind="stable")[:_SHOWN]
    names = [column.name for column in model.columns]
    importance = [[names[j], grown[j][0], *(grown[j][0] + k * grown[j][1] for k in (-2, 2))] for j in order]
    return {"importance": importance, "dependence": [_dependence(model, raw[:300], int(j)) for j in order[:3]]}


def _losses(model: TableModel, raw: np.ndarray, y: np.ndarray) -> np.ndarray:
    predicted = model.learner.predict(model.encoding.apply_raw(raw))
    return (predicted != y).astype(float) if model.task == "classify" else np.abs(predicted - y)


def _dependence(model: TableModel, raw: np.ndarray, j: int) -> dict[str, Any]:
    """Return the mean prediction (the probability of the last class) with a column set to each of some values."""
    column = model.columns[j]
    there = raw[~np.isnan(raw[:, j]), j]
    values = np.unique(np.quantile(there, np.linspace(0.02, 0.98, _POINTS))) if len(there) else np.zeros(1)
    if column.kind != "numeric":
        values = np.arange(min(len(column.levels), _POINTS), dtype=float)
    means = []
    for value in values:
        moved = raw.copy()
        moved[:, j] = value
        X = model.encoding.apply_raw(moved)
        if model.task == "classify":
            means.append(float(scores_of(model.learner, X)[:, -1].mean()))
        else:
            means.append(float(model.learner.predict(X).mean()))
    levels = [column.levels[int(v)] for v in values] if column.kind != "numeric" else []
    return {"name": column.name, "values": values.tolist(), "levels": levels, "means": means}


def _structure(found: Result) -> dict[str, Any]:
    """Return what the model is made of, as far as it can be drawn."""
    learner, names = found.model.learner, found.model.encoding.feature_names()
    shown: dict[str, Any] = dict.fromkeys(("coefficients", "support", "network", "tree"))
    if np.shape(getattr(learner, "coef_", ()))[-1:] == (len(names),):
        frame = frames.coefficients(learner, names, _SHOWN)
        shown["coefficients"] = [frame["names"], frame["values"][:, -1].tolist()]
    if hasattr(learner, "support_"):
        shown["support"] = [len(learner.support_), found.rows[0]]
    weights = getattr(learner, "coefs_", None)
    if isinstance(weights, list) and all(np.ndim(one) == 2 for one in weights):
        shown["network"] = [len(weights[0]), *(one.shape[1] for one in weights)]
    if hasattr(learner, "to_text"):
        shown["tree"] = learner.to_text().splitlines()[:40]
    return shown


def columns_of(model: TableModel, table: Table) -> list[dict[str, Any]]:
    """Return what a form needs of each column: kind, levels, a usual value, and how far values lie apart."""
    found = []
    for column in model.columns:
        data = table.columns[column.name].data if column.name in table.columns else np.zeros(0)
        there = data[~np.isnan(data)]
        if column.kind == "numeric":
            spread = float(np.subtract(*np.quantile(there, [0.75, 0.25]))) if len(there) else 1.0
            usual: Any = f"{float(np.median(there)):.6g}" if len(there) else ""
            marks = np.unique(np.quantile(there, np.linspace(0, 1, 21))).tolist() if len(there) else []
            known = {"usual": usual, "spread": spread or 1.0, "marks": marks}
            found.append({"name": column.name, "kind": "numeric", **known})
        else:
            codes = np.bincount(there.astype(np.intp), minlength=len(column.levels)) if len(there) else [0]
            usual = column.levels[int(np.argmax(codes))] if column.levels else ""
            found.append({"name": column.name, "kind": column.kind, "levels": list(column.levels), "usual": usual})
    return found

"""A row that a person typed: its prediction, and the nearest change of one column that would alter it."""

from functools import lru_cache
from typing import Any

import numpy as np

from assay import persist
from assay.learning import TableModel
from assay.report.numbers import scores_of


@lru_cache(maxsize=4)
def _model(file: str) -> TableModel:
    return persist.load(file).model


def predict(
    file: str, values: dict[str, str], columns: list[dict[str, Any]], coverage: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return prediction, probabilities, prediction sets at each coverage, and what would change the prediction.

    `values` are texts by column, empty for a gap; `columns` and `coverage` are what the study found.
    """
    model = _model(file)
    raw = np.array([[_number(column, values.get(column.name, "")) for column in model.columns]])
    X = model.encoding.apply_raw(raw)
    said = model.learner.predict(X)[0]
    found: dict[str, Any] = {"prediction": _text(said), "probabilities": [], "sets": [], "changes": []}
    if model.task == "classify":
        scores, classes = scores_of(model.learner, X)[0], model.learner.classes_
        if hasattr(model.learner, "predict_proba"):
            order = np.argsort(-scores, kind="stable")[:20]
            found["probabilities"] = [[_text(classes[k]), float(scores[k])] for k in order]
        for one in coverage:
            inside = [_text(classes[k]) for k in np.flatnonzero(scores.max() - scores <= one["reach"])]
            found["sets"].append([one["coverage"], inside])
    else:
        ends = [[float(said - one["reach"]), float(said + one["reach"])] for one in coverage]
        found["sets"] = [[one["coverage"], pair] for one, pair in zip(coverage, ends, strict=True)]
    found["changes"] = _changes(model, raw, said, columns)
    return found


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def _number(column: Any, text: str) -> float:
    """Return a typed value as the table has it: a number, the position of a level, NaN for a gap."""
    text = text.strip()
    if not text:
        return np.nan
    if column.kind != "numeric":
        if text not in column.levels:
            raise ValueError(f"{text[:60]!r} is not a value of the column {column.name!r}.")
        return float(column.levels.index(text))
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"the column {column.name!r} needs a number; got {text[:60]!r}.") from None
    if not np.isfinite(value):
        raise ValueError(f"the column {column.name!r} needs a finite number; got {text[:60]!r}.")
    return value


def _changes(model: TableModel, raw: np.ndarray, said: Any, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each column, the nearest value that alters the prediction (a number: by a twentieth), nearest first.

    Numbers are tried at twenty quantiles of the column, and nearness is in quarters' distances; names have no order.
    """
    rows, origin = [], []
    for j, one in enumerate(columns[:500]):
        for value in one["marks"] if one["kind"] == "numeric" else range(min(len(one["levels"]), 40)):
            if value != raw[0, j]:
                moved = raw[0].copy()
                moved[j] = value
                rows.append(moved)
                origin.append((j, float(value)))
    if not rows:
        return []
    predicted = model.learner.predict(model.encoding.apply_raw(np.array(rows)))
    limit = 0.05 * max(abs(float(said)), 1e-12) if model.task == "regress" else 0.0
    found: dict[int, tuple[float, float, str]] = {}
    for (j, value), other in zip(origin, predicted, strict=True):
        altered = abs(other - said) >= limit if model.task == "regress" else other != said
        number = columns[j]["kind"] == "numeric"
        away = abs(value - raw[0, j]) / columns[j]["spread"] if number and not np.isnan(raw[0, j]) else 1.0
        if altered and (j not in found or away < found[j][0]):
            found[j] = (away, value, _text(other))
    nearest = sorted(found.items(), key=lambda item: item[1][0])[:8]
    return [
        {
            "column": columns[j]["name"],
            "to": f"{value:.6g}" if columns[j]["kind"] == "numeric" else columns[j]["levels"][int(value)],
            "prediction": other,
        }
        for j, (_, value, other) in nearest
    ]


"""The numbers behind each figure, as dictionaries of arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix
from sklearn.utils.validation import check_is_fitted

Frame = dict[str, Any]


def history(model: Any) -> Frame:
    """Return `iteration`, `objective`, `violation` and `seconds` of the fit, an entry per iteration."""
    check_is_fitted(model)
    steps = getattr(model, "history_", None)
    if not steps:
        raise ValueError(
            f"{type(model).__name__}: the fit was not iterative, so there is no history to draw."
        )
    columns = np.asarray(steps, dtype=np.float64).T
    return dict(zip(("iteration", "objective", "violation", "seconds"), columns, strict=True))


def calibration(model: Any, X: Any, y: Any, bins: int = 10) -> Frame:
    """Return `predicted` (mean), `observed` (share) and `rows` of each bin of predicted probability.

    Bins without rows are left out. With two classes the probability is that of the second class; with more,
    that of the predicted class.
    """
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"{type(model).__name__}: gives no probabilities, so there is no calibration to draw."
        )
    probabilities, y = model.predict_proba(X), np.asarray(y)
    if len(model.classes_) == 2:
        score, hit = probabilities[:, 1], y == model.classes_[1]
    else:
        score, hit = probabilities.max(axis=1), y == model.classes_[probabilities.argmax(axis=1)]
    at = np.minimum((score * bins).astype(np.intp), bins - 1)
    rows = np.bincount(at, minlength=bins)
    some = rows > 0
    return {
        "predicted": np.bincount(at, score, bins)[some] / rows[some],
        "observed": np.bincount(at, hit, bins)[some] / rows[some],
        "rows": rows[some],
    }


def confusion(model: Any, X: Any, y: Any) -> Frame:
    """Return `labels` and `counts`: counts[i, j] rows of class i were predicted as class j."""
    labels = np.asarray(model.classes_)
    return {"labels": labels, "counts": confusion_matrix(y, model.predict(X), labels=labels)}


def residuals(model: Any, X: Any, y: Any) -> Frame:
    """Return `predicted` and `residual` (observed minus predicted) of each row."""
    predicted = np.asarray(model.predict(X), dtype=np.float64)
    return {"predicted": predicted.ravel(), "residual": (np.asarray(y, dtype=np.float64) - predicted).ravel()}


def coefficients(model: Any, names: Sequence[str] | None = None, limit: int = 20) -> Frame:
    """Return `names`, `values` (names x outputs) and `outputs` of the largest coefficients, largest first."""
    check_is_fitted(model)
    if not hasattr(model, "coef_"):
        raise ValueError(f"{type(model).__name__}: has no coefficients to draw.")
    values = np.atleast_2d(model.coef_).T
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    names = [f"x{j}" for j in range(len(values))] if names is None else [str(name) for name in names]
    if len(names) != len(values):
        raise ValueError(f"coefficients: {len(names)} names for {len(values)} coefficients.")
    order = np.argsort(-np.abs(values).max(axis=1), kind="stable")[:limit]
    classes = getattr(model, "classes_", ())
    outputs = [str(label) for label in classes] if len(classes) == values.shape[1] else [""] * values.shape[1]
    return {
        "names": [names[j] for j in order],
        "values": values[order],
        "outputs": outputs,
        "all": len(values),
    }


def boundary(model: Any, X: Any, y: Any, steps: int = 200) -> Frame:
    """Return the predicted class on a grid over two features, and the lines of a linear separator.

    `x`, `y` (steps,) are the grid's axes and `codes` (steps, steps) the positions in `classes_`. For two
    classes and a linear model, `normal` (of length one), `offset` and `margin` give the lines
    normal . x + offset = 0, = -margin and = +margin; the margin is the distance of the nearest row, or
    1 / |coef_| if a row is on the wrong side.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"boundary: draws two features; X has shape {X.shape}.")
    low, high = X.min(axis=0), X.max(axis=0)
    pad = 0.08 * np.where(high > low, high - low, 1.0)
    axes = [np.linspace(low[j] - pad[j], high[j] + pad[j], steps) for j in range(2)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    codes = np.searchsorted(model.classes_, model.predict(grid)).reshape(steps, steps)
    frame = {"x": axes[0], "y": axes[1], "codes": codes, "classes": np.asarray(model.classes_)}
    if hasattr(model, "coef_") and len(model.classes_) == 2:
        frame |= _lines(model, X, y)
    return frame


def _lines(model: Any, X: np.ndarray, y: np.ndarray) -> Frame:
    coefficients, offset = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    length = float(np.linalg.norm(coefficients))
    if length == 0:
        return {}
    distances = np.where(y == model.classes_[1], 1, -1) * (X @ coefficients + offset) / length
    nearest = float(distances.min())
    margin = nearest if nearest > 0 else 1 / length
    return {"normal": coefficients / length, "offset": offset / length, "margin": margin}

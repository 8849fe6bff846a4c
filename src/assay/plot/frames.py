"""The numbers behind each figure, as dictionaries of arrays."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import confusion_matrix
from sklearn.utils.validation import check_is_fitted

from assay.theory import plan
from assay.theory.rademacher import Suprema, monte_carlo
from assay.theory.spaces import Space

Frame = dict[str, Any]


def history(model: Any) -> Frame:
    """Return `iteration`, `objective`, `violation` and `seconds` of the fit, an entry per iteration."""
    check_is_fitted(model)
    steps = getattr(model, "history_", None)
    if not steps:
        raise ValueError(f"{type(model).__name__}: the fit was not iterative, so there is no history to draw.")
    columns = np.asarray(steps, dtype=np.float64).T
    return dict(zip(("iteration", "objective", "violation", "seconds"), columns, strict=True))


def calibration(model: Any, X: Any, y: Any, bins: int = 10) -> Frame:
    """Return `predicted` (mean), `observed` (share) and `rows` of each bin of predicted probability.

    Bins without rows are left out. With two classes the probability is that of the second class; with more,
    that of the predicted class.
    """
    if not hasattr(model, "predict_proba"):
        raise ValueError(f"{type(model).__name__}: gives no probabilities, so there is no calibration to draw.")
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


def mistakes(model: Any) -> Frame:
    """Return `rows` met and `share` of mistakes among them, at each mistake of the one pass of an online learner and at
    its end, and `voting`, the number of rows after which hypotheses vote."""
    check_is_fitted(model)
    if not hasattr(model, "places_"):
        raise ValueError(f"{type(model).__name__}: made no pass in which each row was met once; see VotedPerceptron.")
    met = np.append(model.places_ + 1, model.n_rows_)
    made = np.append(np.arange(1, model.n_updates_ + 1), model.n_updates_)
    return {"rows": met, "share": made / met, "voting": model.skipped_, "error": model.progressive_error_}


def bounds(
    space: Space,
    rows: Sequence[int] | None = None,
    *,
    delta: float = 0.05,
    training_error: float = 0.0,
    hoped: plan.Hoped | None = None,
) -> Frame:
    """Return `rows` and `bounds`: for each theorem the error guaranteed after that many rows.

    The share `training_error` of them is wrong, rounded up to whole rows. Each bound holds at delta on its
    own.
    Without `rows` they run from 10 until the tightest bound is within 0.01 of the training error, or to a million for
    a class without finite capacity, which needs something that is `hoped` for.
    """
    p = training_error
    if not 0 <= p < 1:
        raise ValueError(f"bounds: training_error must lie in [0, 1) (it is a share of the rows); got {p!r}.")
    if rows is None:
        finite = np.isfinite(space.vc_dimension)
        enough = plan.ghost_rows(0.01, delta, space.log_growth, training_error=p) if finite and p < 0.99 else 1000
        enough = enough if finite else 1_000_000
        rows = [int(n) for n in np.unique(np.geomspace(10, max(enough, 100), 40).astype(np.int64))]
    tables = [
        plan.error_guaranteed(n, delta, space, errors=plan.planned_errors(p, n), shared=False, hoped=hoped)
        for n in rows
    ]
    lines = {line.theorem: np.array([table[i].value for table in tables]) for i, line in enumerate(tables[0])}
    return {"rows": np.asarray(rows), "bounds": lines, "training_error": p}


def shattering(space: Space, points: ArrayLike, steps: int = 40) -> Frame:
    """Return every labelling of at most five points of a line or plane, and whether the space makes it.

    `points` (m, 2) (height 0 on a line), `labels` (2^m, m) of -1 and +1, `made` (2^m,), and for the
    labellings
    made `regions` (2^m, steps, steps), the label that one hypothesis with this labelling gives to the grid
    with axes `x` and `y`; zeros elsewhere, and everywhere if the space cannot name its hypotheses.
    """
    given = np.asarray(points, dtype=np.float64)
    given = given.reshape(-1, 1) if given.ndim == 1 else given
    if given.ndim != 2 or given.shape[1] not in (1, 2) or not 1 <= len(given) <= 5:
        raise ValueError(f"shattering: draws 1 to 5 points of a line or plane; got shape {given.shape}.")
    made = {tuple(row) for row in space.dichotomies(given).tolist()}
    labels = np.array(list(product((-1, 1), repeat=len(given))))
    flat = np.column_stack([given, np.zeros(len(given))])[:, :2]
    low, high = flat.min(axis=0), flat.max(axis=0)
    pad = np.where(high > low, 0.3 * (high - low), 1.0)
    axes = [np.linspace(low[j] - pad[j], high[j] + pad[j], steps) for j in range(2)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)[:, : given.shape[1]]
    regions = np.zeros((len(labels), steps, steps), dtype=np.int8)
    flags = np.array([tuple(row) in made for row in labels.tolist()])
    for i in np.flatnonzero(flags):
        try:
            rule = space.erm(given, labels[i]).hypothesis
        except NotImplementedError:
            break
        regions[i] = rule(grid).reshape(steps, steps)
    return {"points": flat, "labels": labels, "made": flags, "x": axes[0], "y": axes[1], "regions": regions}


def rademacher(suprema: Suprema, draws: int = 200, *, seed: int = 0, delta: float = 0.05) -> Frame:
    """Return `draws`, `value`, `lower` and `upper`: the estimated complexity as sign vectors are added.

    Each interval holds on its own with chance 1 - delta; `upper` is infinite if the suprema are not exact.
    """
    counts = np.unique(np.geomspace(2, max(2, draws), 25).astype(np.int64))
    found = [monte_carlo(suprema, int(count), seed, delta) for count in counts]
    columns = {name: np.array([getattr(one, name) for one in found]) for name in ("value", "lower", "upper")}
    return {"draws": counts, **columns}


def projection(model: Any, X: Any, y: Any) -> Frame:
    """Return `points` (rows, 1 or 2), the first projections of a discriminant analysis, and `labels`.

    With two classes, `threshold` is where the projection changes the predicted class.
    """
    if not hasattr(model, "transform") or not hasattr(model, "scalings_"):
        raise ValueError(f"{type(model).__name__}: has no discriminant directions to project on.")
    points = model.transform(X)[:, :2]
    frame = {"points": points, "labels": np.asarray(y), "classes": np.asarray(model.classes_)}
    if len(model.classes_) == 2:
        w, direction = model.coef_[0], model.scalings_[:, 0]
        length = float(w @ w) / float(w @ direction)  # scores are `length` times the projection, up to a shift
        frame["threshold"] = (model.threshold_ - float(model.xbar_ @ w)) / length
    return frame


def coefficient_path(path: Any, names: Sequence[str] | None = None) -> Frame:
    """Return `alphas`, `coefs` (columns x alphas), `names` and `used`, the number of columns not zero at
    each alpha."""
    d = len(path.coefs)
    names = [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]
    if len(names) != d:
        raise ValueError(f"coefficient_path: {len(names)} names for {d} coefficients.")
    return {
        "alphas": np.asarray(path.alphas),
        "coefs": np.asarray(path.coefs),
        "names": names,
        "used": np.count_nonzero(path.coefs, axis=0),
    }


def descents(runs: Mapping[str, Any]) -> Frame:
    """Return for each named descent `objective`, `epoch` and `seconds`, and `path` if it was kept."""
    return {
        name: {
            "objective": run.trace.objective,
            "epoch": np.arange(1, len(run.trace.objective) + 1),
            "seconds": run.trace.seconds,
            "path": run.trace.path,
        }
        for name, run in runs.items()
    }


def surface(value: Callable[[np.ndarray], float], runs: Mapping[str, Any], steps: int = 80) -> Frame:
    """Return a grid `x`, `y` and `values` of a function of two numbers around the paths of the descents."""
    paths = {name: run.trace.path for name, run in runs.items()}
    if not paths or any(path.ndim != 2 or path.shape[1] != 2 or not len(path) for path in paths.values()):
        raise ValueError("surface: draws paths of two numbers; run descend with keep_path=True on two parameters.")
    together = np.vstack(list(paths.values()))
    low, high = together.min(axis=0), together.max(axis=0)
    pad = 0.15 * np.where(high > low, high - low, 1.0)
    axes = [np.linspace(low[j] - pad[j], high[j] + pad[j], steps) for j in range(2)]
    values = np.array([[float(value(np.array([a, b]))) for a in axes[0]] for b in axes[1]])
    return {"x": axes[0], "y": axes[1], "values": values, "paths": paths}

"""The numbers behind each figure, as dictionaries of arrays."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import confusion_matrix
from sklearn.utils.validation import check_is_fitted

from assay.claims.claim import Certificate
from assay.kernels import Kernel
from assay.losses import surrogates
from assay.metrics import silhouette_samples
from assay.textbook.concepts import VersionSpace
from assay.theory import bottleneck, plan
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
    results = [monte_carlo(suprema, int(count), seed, delta) for count in counts]
    columns = {name: np.array([getattr(result, name) for result in results]) for name in ("value", "lower", "upper")}
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


def clusters(model: Any, X: Any, columns: tuple[int, int] = (0, 1)) -> Frame:
    """Return `x` (n, 2), two columns of the rows, the `label` of each row, and `centers` (k, 2)."""
    check_is_fitted(model)
    X, at = np.asarray(X, dtype=np.float64), list(columns)
    if X.ndim != 2 or len(at) != 2 or not all(0 <= j < X.shape[1] for j in at):
        raise ValueError(f"clusters: columns must be two of the {X.shape[-1]} columns of X; got {columns!r}.")
    return {"x": X[:, at], "label": model.predict(X), "centers": model.cluster_centers_[:, at]}


def cluster_choice(result: Any) -> Frame:
    """Return the curves of a `cluster.Sweep`: `k`, `rmsstd`, `silhouette`, and the k that each of them chooses."""
    consecutive = len(result.ks) >= 3 and bool(np.all(np.diff(result.ks) == 1))
    widest = None if np.isnan(result.silhouette).all() else result.widest
    return {
        "k": result.ks,
        "rmsstd": result.rmsstd,
        "silhouette": result.silhouette,
        "elbow": result.elbow if consecutive else None,
        "widest": widest,
    }


def silhouettes(X: Any, labels: Any) -> Frame:
    """Return the silhouette `width` of each row, by cluster and falling within it, and the `label` beside it."""
    labels = np.asarray(labels)
    width = silhouette_samples(X, labels)
    order = np.lexsort((-width, labels))
    return {"width": width[order], "label": labels[order], "mean": float(width.mean())}


def explained_variance(model: Any) -> Frame:
    """Return the `ratio` of the variance that each component explains, and the `total` up to it."""
    check_is_fitted(model)
    ratio = np.asarray(model.explained_variance_ratio_)
    return {"component": np.arange(1, len(ratio) + 1), "ratio": ratio, "total": np.cumsum(ratio)}


_BINS = 40


def support_vectors(model: Any, X: Any, y: Any, steps: int = 200) -> Frame:
    """Return the frame of `boundary`, the scores on its grid (two classes), and which rows are support vectors.

    `scores` (steps, steps) has the boundary at 0 and the margins at -1 and +1; `support` are the places of the support
    vectors, `violated` tells which of them lie inside the margin or on the wrong side (|y f(x)| < 1 up to rounding).
    """
    check_is_fitted(model)
    if not hasattr(model, "support_"):
        raise ValueError(f"{type(model).__name__}: has no support vectors to draw.")
    frame = boundary(model, X, y, steps)
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    support = np.asarray(model.support_)
    frame |= {"support": X[support], "violated": np.zeros(len(support), bool)}
    if len(frame["classes"]) == 2:
        grid = np.stack(np.meshgrid(frame["x"], frame["y"]), axis=-1).reshape(-1, 2)
        frame["scores"] = model.decision_function(grid).reshape(steps, steps)
        sign = np.where(y[support] == frame["classes"][1], 1.0, -1.0)
        frame["violated"] = sign * model.decision_function(X[support]) < 1 - 1e-2
    return frame


def dual_gap(models: Mapping[str, Any]) -> dict[str, Frame]:
    """Return for each fitted model `seconds`, `excess` (objective minus the lowest one it reached) and `violation`
    (duality gap, or how far the optimality conditions are broken) of each iteration."""
    results = {}
    for name, model in models.items():
        steps = history(model)
        excess = steps["objective"] - steps["objective"].min()
        results[name] = {"seconds": steps["seconds"], "excess": excess, "violation": steps["violation"]}
    return results


def alphas(model: Any, n_rows: int | None = None) -> Frame:
    """Return the dual variables alpha_i = |beta_i| of each function, with `edges` and `counts` of their histogram.

    `zero` counts rows that are no support vectors (of `n_rows`, by default those of the fit), `bound` those at C, which
    is infinity where the model has none.
    """
    check_is_fitted(model)
    if not hasattr(model, "pair_coef_"):
        raise ValueError(f"{type(model).__name__}: has no dual variables to draw.")
    alpha = np.abs(model.pair_coef_)
    rows = n_rows or getattr(model, "shape_fit_", (alpha.shape[1],))[0]
    positive = alpha[alpha > 0]
    C = float(getattr(model, "C", np.inf))
    top = C if np.isfinite(C) and positive.max(initial=0.0) <= C else float(positive.max(initial=1.0))
    counts, edges = np.histogram(positive, bins=_BINS, range=(0.0, top))
    return {
        "alpha": alpha,
        "counts": counts,
        "edges": edges,
        "zero": int(rows * len(alpha) - len(positive)),
        "bound": int(np.sum(positive >= C * (1 - 1e-9))),
        "C": C,
    }


def kernel_matrix(kernel: Kernel, X: Any, y: Any) -> Frame:
    """Return the Gram matrix with rows ordered by class, each class in the order given.

    `gram` (n, n), `borders` (n_classes + 1,) the first place of each class, `classes`, and `across` (n_classes,
    n_classes) the largest kernel value between two classes.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    classes, codes = np.unique(y, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    gram = kernel(X[order])
    borders = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    parts = [slice(*borders[k : k + 2]) for k in range(len(classes))]
    across = np.array([[gram[part, other].max() for other in parts] for part in parts])
    return {"gram": gram, "borders": borders, "classes": classes, "across": across, "order": order}


def tightness(certificates: Mapping[str, Certificate], errors: Mapping[str, float] | None = None) -> Frame:
    """Return `names`, `kinds`, `bounds` (names, kinds; NaN where there is none) and `errors` (NaN: not known)."""
    results = {
        name: {claim.kind: claim.value for claim in certificate.claims if claim.quantity and claim.direction == "upper"}
        for name, certificate in certificates.items()
    }
    kinds = list(dict.fromkeys(kind for bounds in results.values() for kind in bounds))
    if not kinds:
        raise ValueError("tightness: none of these certificates bounds an error on new data.")
    table = np.array([[bounds.get(kind, np.nan) for kind in kinds] for bounds in results.values()])
    known = np.array([(errors or {}).get(name, np.nan) for name in results])
    return {"names": list(results), "kinds": kinds, "bounds": table, "errors": known}


def version_space(space: VersionSpace, rows: ArrayLike, labels: Sequence[int], steps: int = 60) -> Frame:
    """Observe the rows; return `sizes`, `rows`, and on a grid `x`, `y` the `share` of hypotheses left that say +1."""
    X = np.asarray(rows, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != 2 or len(X) != len(labels):
        raise ValueError(f"version_space: needs rows of the plane and a label for each; got shape {X.shape}.")
    for row, label in zip(X, labels):
        space.observe(row, int(label))
    low, high = X.min(axis=0), X.max(axis=0)
    pad = np.where(high > low, 0.15 * (high - low), 1.0)
    x, y = (np.linspace(low[j] - pad[j], high[j] + pad[j], steps) for j in range(2))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    votes = [np.asarray(hypothesis(grid)) > 0 for hypothesis in space.hypotheses]
    share = np.mean(votes, axis=0) if votes else np.full(len(grid), np.nan)
    return {"sizes": space.sizes, "rows": X, "x": x, "y": y, "share": share.reshape(steps, steps)}


def surrogate_losses(margins: ArrayLike | None = None) -> Frame:
    """Return `margin`, and `losses`: every loss of the margin by name."""
    z = np.linspace(-3.0, 3.0, 601) if margins is None else np.asarray(margins, dtype=np.float64)
    return {"margin": z, "losses": surrogates(z)}


def structural_risk(errors: ArrayLike, dimensions: ArrayLike, rows: int, delta: float = 0.05) -> Frame:
    """Return `dimension`, `empirical` risk, `confidence` (Vapnik's term for that VC dimension), their sum `bound`, and
    the place `best` of its least value.

    confidence = sqrt((h (ln(2 n / h) + 1) + ln(4 / delta)) / n); classes are nested, h growing.
    """
    h, empirical = np.asarray(dimensions, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    grow = h.ndim == 1 and len(h) > 0 and bool(np.all(np.diff(h) > 0))
    if h.shape != empirical.shape or not grow or h[0] < 1 or h[-1] > 2 * rows:
        raise ValueError("structural_risk: an error for each VC dimension, which grow from at least 1 to at most 2 n.")
    confidence = np.sqrt((h * (np.log(2 * rows / h) + 1) + np.log(4 / delta)) / rows)
    bound = empirical + confidence
    return {
        "dimension": h,
        "empirical": empirical,
        "confidence": confidence,
        "bound": bound,
        "best": int(bound.argmin()),
    }


def information_curve(joint: ArrayLike, **options: Any) -> Frame:
    """Return `beta`, `compression` I(X;Z), `relevance` I(Z;Y), and their limits H(X) and I(X;Y)."""
    table = np.asarray(joint, dtype=np.float64)
    points = bottleneck.information_curve(table, **options)
    columns = {name: np.array([getattr(point, name) for point in points]) for name in bottleneck.CurvePoint._fields}
    limits = {
        "compression_limit": bottleneck.entropy(table.sum(axis=1)),
        "relevance_limit": bottleneck.mutual_information(table),
    }
    return columns | limits

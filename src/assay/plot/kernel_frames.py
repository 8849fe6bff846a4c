"""The numbers behind each figure of kernel machines, as dictionaries of arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from assay.kernels import Kernel
from assay.plot import frames
from assay.plot.frames import Frame

_BINS = 40


def support_vectors(model: Any, X: Any, y: Any, steps: int = 200) -> Frame:
    """Return the frame of `boundary`, the scores on its grid (two classes), and which rows are support vectors.

    `scores` (steps, steps) has the boundary at 0 and the margins at -1 and +1; `support` are the places of the support
    vectors, `violated` tells which of them lie inside the margin or on the wrong side (|y f(x)| < 1 up to rounding).
    """
    check_is_fitted(model)
    if not hasattr(model, "support_"):
        raise ValueError(f"{type(model).__name__}: has no support vectors to draw.")
    frame = frames.boundary(model, X, y, steps)
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
    found = {}
    for name, model in models.items():
        told = frames.history(model)
        excess = told["objective"] - told["objective"].min()
        found[name] = {"seconds": told["seconds"], "excess": excess, "violation": told["violation"]}
    return found


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
    across = np.array([[gram[one, other].max() for other in parts] for one in parts])
    return {"gram": gram, "borders": borders, "classes": classes, "across": across, "order": order}

"""The perceptron with a penalty, weights, a tolerance or early stopping: stochastic gradients of its loss max(0, -y f).

Without any of these the updates are Rosenblatt's, which `_perceptron` makes and keeps count of.
"""

from typing import Any

import numpy as np

from assay.linear_model._sgd import SGDClassifier

_TOL = 1e-3  # of the mean loss, where none is given
_KEPT = ("classes_", "coef_", "intercept_", "n_iter_", "t_", "history_", "n_features_in_", "feature_names_in_")
_COUNTS = ("updates_", "n_updates_", "converged_", "margin_")  # of plain updates


def is_plain(model: Any, sample_weight: Any, start: tuple[Any, Any]) -> bool:
    """Tell whether the updates are Rosenblatt's own, from zero until no mistake is left."""
    asked = (model.penalty, model.class_weight, sample_weight, *start)
    plain = all(one is None for one in asked) and model.tol in ("auto", None)
    return plain and not model.early_stopping and not model.warm_start


def descend(model: Any, X: Any, y: Any, sample_weight: Any, start: tuple[Any, Any]) -> None:
    """Fit by epochs of stochastic gradients, from the last fit if `warm_start` asks for it."""
    if model.warm_start and hasattr(model, "coef_"):
        start = tuple(last if new is None else new for new, last in zip(start, (model.coef_, model.intercept_)))
    inner = _inner(model)
    inner.fit(X, y, coef_init=start[0], intercept_init=start[1], sample_weight=sample_weight)
    _keep(model, inner)


def descend_once(model: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
    """Visit the rows once more."""
    inner = getattr(model, "_descent", None)
    if inner is None:
        inner = _inner(model)
        if hasattr(model, "coef_"):  # a plain fit came before
            inner.classes_, inner.coef_, inner.intercept_ = model.classes_, model.coef_, model.intercept_
            inner.n_features_in_, inner.eta0_, inner.t_ = model.n_features_in_, float(model.eta0), 0
            inner.moments_ = np.zeros((len(model.coef_), 2, model.n_features_in_ + 1))
    inner.set_params(**_parameters(model)).partial_fit(X, y, classes=classes, sample_weight=sample_weight)
    _keep(model, inner)


def _parameters(model: Any) -> dict[str, Any]:
    names = (
        "penalty alpha l1_ratio fit_intercept max_iter shuffle verbose eta0 n_jobs random_state early_stopping "
        "validation_fraction n_iter_no_change class_weight"
    )
    tol = _TOL if model.tol == "auto" else model.tol
    return {"tol": tol, **{name: getattr(model, name) for name in names.split()}}


def _inner(model: Any) -> Any:
    named = type("Perceptron", (SGDClassifier,), {})  # so that refusals and warnings name who was called
    return named(loss="perceptron", learning_rate="constant", **_parameters(model))


def _keep(model: Any, inner: Any) -> None:
    for name in _COUNTS:
        model.__dict__.pop(name, None)
    for name in _KEPT:
        if hasattr(inner, name):
            setattr(model, name, getattr(inner, name))
    model._descent = inner

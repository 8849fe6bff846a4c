"""Compile loops once: those that the main job uses, by studies of small tables; or those of every learner, by fitting,
predicting and certifying each on a few rows."""

import contextlib
import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from assay.base import Learner
from assay.learning import learn
from assay.registry import learners


def studies() -> list[tuple[str, Callable[[], None]]]:
    """Return name and work of studies that use the loops of `assay learn`: of two and more classes and of numbers, on
    numeric columns alone, and with nominal ones and missing values. Workers compile side by side."""
    return [
        (f"{name} of {'mixed' if mixed else 'numeric'} columns", partial(_study, target, mixed))
        for mixed in (True, False)
        for name, target in (("two classes", 2), ("three classes", 3), ("numbers", 0))
    ]


def _study(n_classes: int, mixed: bool) -> None:
    """Learn from a table of a few hundred rows; nothing is written to the ledger of looks."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(480, 3))
    total = x[:, 0] + x[:, 1] ** 2 + 0.3 * rng.normal(size=len(x))
    table: dict[str, Any] = {f"x{j}": x[:, j] for j in range(3)}
    if mixed:
        table["x2"] = np.where(rng.random(len(x)) < 0.1, np.nan, x[:, 2])
        table["kind"] = np.array(["a", "b", "c", "d"])[rng.integers(4, size=len(x))]
        table["sign"] = np.array([None, "minus", "plus"], dtype=object)[
            rng.integers(1, 3, len(x)) * (rng.random(len(x)) > 0.1)
        ]
    place = np.searchsorted(np.quantile(total, np.arange(1, n_classes) / n_classes), total) if n_classes else total
    table["y"] = np.array([f"c{item}" for item in place]) if n_classes else total
    before = os.environ.get("ASSAY_LOOKS")
    os.environ["ASSAY_LOOKS"] = "off"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            learn(table, "y")
    finally:
        del os.environ["ASSAY_LOOKS"]
        if before is not None:
            os.environ["ASSAY_LOOKS"] = before


def steps() -> list[tuple[str, Callable[[], None]]]:
    """Return name and work of each learner, so that a caller can show progress."""
    return [(kind.__name__, partial(_exercise, kind)) for kind in learners()]


def _exercise(kind: type[Learner]) -> None:
    """Fit to easy rows and to nearly dependent columns, with and without weights; then in other settings."""
    many = np.random.default_rng(0).normal(size=(1_200, 3))  # so many that blocks are worth a compiled loop
    easy = many[:60]
    hard = np.vander(np.linspace(0.0, 1.0, 60), 9)
    weights: list[dict[str, Any]] = [{}]
    if has_fit_parameter(kind, "sample_weight"):
        weights.append({"sample_weight": np.ones(60)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for X in (easy, hard):
            for y in _targets(kind, X):
                for weight in weights:
                    with contextlib.suppress(*(() if X is easy else (ValueError,))):  # some refuse dependent columns
                        _run(kind(), X, y, weight)
        for setting in kind.further_loops:
            X = many[:, :1] if setting.get("algorithm") == "exact" else many
            _run(kind(**setting), X, _targets(kind, many)[0], {})


def _run(model: Learner, X: np.ndarray, y: np.ndarray, weight: dict[str, Any]) -> None:
    """Fit, ask what the model is for (predictions, new columns or densities), and certify."""
    reads = get_tags(model).input_tags
    X = np.abs(X) if reads.positive_only else X
    X = np.round(X) if reads.categorical else X
    model.fit(X, y, **weight)
    name = next(name for name in ("predict", "transform", "score_samples") if hasattr(model, name))
    getattr(model, name)(X)
    model.certify(X, y, **weight)


def _targets(kind: type[Learner], X: np.ndarray) -> list[np.ndarray]:
    if kind.card.task != "classify":
        total = X.sum(axis=1)
        return [np.abs(total) + 1.0 if get_tags(kind()).target_tags.positive_only else total]
    two, three = X[:, 0] > np.median(X[:, 0]), np.digitize(X[:, 1], np.quantile(X[:, 1], [0.3, 0.6]))
    return [two, three] if get_tags(kind()).classifier_tags.multi_class else [two]

"""Compile every loop once: fit, predict and certify each learner on a few rows."""

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from assay.base import Learner
from assay.registry import learners


def steps() -> list[tuple[str, Callable[[], None]]]:
    """Return name and work of each learner, so that a caller can show progress."""
    return [(kind.__name__, partial(_exercise, kind)) for kind in learners()]


def _exercise(kind: type[Learner]) -> None:
    """Fit to easy rows and to nearly dependent columns, with and without weights."""
    easy = np.random.default_rng(0).normal(size=(60, 3))
    hard = np.vander(np.linspace(0.0, 1.0, 60), 9)
    weights: list[dict[str, np.ndarray]] = [{}]
    if has_fit_parameter(kind, "sample_weight"):
        weights.append({"sample_weight": np.ones(60)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for X in (easy, hard):
            for y in _targets(kind, X):
                for weight in weights:
                    model = kind().fit(X, y, **weight)
                    _answer(model, X)
                    model.certify(X, y, **weight)


def _answer(model: Learner, X: np.ndarray) -> None:
    """Ask a fitted model what it is for: predictions, new columns or densities."""
    name = next(name for name in ("predict", "transform", "score_samples") if hasattr(model, name))
    getattr(model, name)(X)


def _targets(kind: type[Learner], X: np.ndarray) -> list[np.ndarray]:
    if kind.card.task != "classify":
        return [X.sum(axis=1)]
    two, three = X[:, 0] > np.median(X[:, 0]), np.digitize(X[:, 1], np.quantile(X[:, 1], [0.3, 0.6]))
    return [two, three] if get_tags(kind()).classifier_tags.multi_class else [two]

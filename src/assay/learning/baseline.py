"""The baseline: what a model that looks at no column would do. Every study has it as a row."""

from typing import Any

import numpy as np

from assay.learning.metrics import Metric
from assay.messages import Message

NAME = Message("name.baseline")


def constant(y: np.ndarray, task: str) -> Any:
    """Return the commonest class (the first of equals), or the lower median of numbers."""
    if task == "classify":
        labels, counts = np.unique(y, return_counts=True)
        return labels[counts.argmax()]
    return float(np.sort(y)[(len(y) - 1) // 2])


def best_constant(metric: Metric, y: np.ndarray, classes: np.ndarray) -> Any:
    """Return the constant that the metric is best with: the mean for squared errors, of classes the one with the least
    loss (the first of equals; the commonest one before all others).

    >>> y = np.array(["no"] * 6 + ["yes"] * 4)
    >>> print(best_constant(Metric("f1", positive=1), y, np.unique(y)), best_constant(Metric("error"), y, np.unique(y)))
    yes no
    """
    task = "classify" if len(classes) else "regress"
    usual = constant(y, task)
    if metric.name in ("rmse", "r2"):
        return float(y.mean())
    if metric.name not in ("cost", "f1"):
        return usual
    codes = np.searchsorted(classes, y)
    ranked = [usual, *(label for label in classes if label != usual)]
    return min(
        ranked, key=lambda label: metric.of(codes, np.full(len(y), np.searchsorted(classes, label)), None, len(classes))
    )


def shares(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return how often each class occurs: the probabilities that a baseline gives every row."""
    return np.bincount(codes, minlength=n_classes) / len(codes)


def in_words(value: Any, task: str, metric: str = "") -> Message:
    number = Message("rival.mean" if metric in ("rmse", "r2") else "rival.median", value=value)
    return Message("baseline", rival=Message("rival.class", label=str(value)) if task == "classify" else number)


def rival(note: str) -> str:
    """Return what the baseline always predicts, of its note on the leaderboard."""
    return note.values["rival"] if isinstance(note, Message) else note

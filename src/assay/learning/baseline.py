"""The baseline: what a model that looks at no column would do. Every study has it as a row."""

from typing import Any

import numpy as np

from assay.messages import Message

NAME = Message("name.baseline")


def constant(y: np.ndarray, task: str) -> Any:
    """Return the commonest class (the first of equals), or the lower median of numbers."""
    if task == "classify":
        labels, counts = np.unique(y, return_counts=True)
        return labels[counts.argmax()]
    return float(np.sort(y)[(len(y) - 1) // 2])


def shares(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return how often each class occurs: the probabilities that a baseline gives every row."""
    return np.bincount(codes, minlength=n_classes) / len(codes)


def in_words(value: Any, task: str) -> Message:
    rival = Message("rival.class", label=str(value)) if task == "classify" else Message("rival.median", value=value)
    return Message("baseline", rival=rival)


def rival(note: str) -> str:
    """Return what the baseline always predicts, of its note on the leaderboard."""
    return note.values["rival"] if isinstance(note, Message) else note

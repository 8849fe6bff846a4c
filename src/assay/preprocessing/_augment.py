"""Augmented vectors: a hyperplane <w, x> = b becomes one through the origin, <(w, -b), (x, 1)> = 0."""

from typing import Any

import numpy as np


def augment(X: Any, *, unit: bool = False, position: str = "last") -> np.ndarray:
    """Return the rows (x, 1), or (1, x) with position="first"; with `unit` divided by their length.

    Dividing a row by its length changes on which side of a hyperplane through the origin it lies for no w,
    but it changes
    its distance: the margin of unit rows is not the margin of the rows that were given.

    >>> augment([[3.0, 4.0]]).tolist()
    [[3.0, 4.0, 1.0]]
    """
    if position not in ("first", "last"):
        raise ValueError(f"augment: position must be 'first' or 'last'; got {position!r}.")
    X = np.atleast_2d(np.asarray(X, dtype=np.float64))
    parts = [X, np.ones(len(X))]
    rows = np.column_stack(parts if position == "last" else parts[::-1])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) if unit else rows


def augmented_weights(w: Any, b: float) -> np.ndarray:
    """Return (w, -b), so that <(w, -b), (x, 1)> = <w, x> - b.

    >>> augmented_weights([2.0, 1.0], 3.0).tolist()
    [2.0, 1.0, -3.0]
    """
    return np.append(np.asarray(w, dtype=np.float64), -float(b))


def plain_weights(augmented: Any) -> tuple[np.ndarray, float]:
    """Return w and b of (w, -b).

    >>> plain_weights([2.0, 1.0, -3.0])
    (array([2., 1.]), 3.0)
    """
    augmented = np.asarray(augmented, dtype=np.float64)
    return augmented[:-1].copy(), -float(augmented[-1])

"""Three disjoint parts of the rows: to fit, to choose, to judge once."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state


class Parts(NamedTuple):
    """Row numbers of three disjoint parts, each in increasing order."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def three_way_split(
    rows: int,
    shares: Sequence[float] = (0.6, 0.2, 0.2),
    *,
    stratify: Any = None,
    random_state: Any = None,
) -> Parts:
    """Return the row numbers of a training, a validation and a test part.

    Parameters
    ----------
    rows : number of rows
    shares : three positive numbers that sum to 1
    stratify : labels of the rows, optional
        Each part then has its share of every class, to within one row. (Bounds of `certify` ask for a plain draw:
        rows that are held out by class are not independent draws.)
    random_state : seed

    >>> parts = three_way_split(10, random_state=0)
    >>> [len(part) for part in parts]
    [6, 2, 2]
    """
    given = np.asarray(shares, dtype=np.float64)
    if given.shape != (3,) or not (given > 0).all() or abs(given.sum() - 1) > 1e-9:
        raise ValueError(f"three_way_split: shares must be three positive numbers that sum to 1; got {shares!r}.")
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 3:
        raise ValueError(f"three_way_split: rows must be an integer >= 3, a row for each part; got {rows!r}.")
    labels = np.zeros(rows) if stratify is None else np.asarray(stratify)
    if labels.shape != (rows,):
        raise ValueError(f"three_way_split: stratify must hold one label for each of the {rows} rows.")
    order = check_random_state(random_state).permutation(rows)
    order = order[np.argsort(labels[order], kind="stable")]  # classes one after the other, each in random order
    ends = _ends(labels[order], given)
    part = np.concatenate([np.repeat([0, 1, 2], sizes) for sizes in ends])
    return Parts(*(np.sort(order[part == k]) for k in range(3)))


def _ends(sorted_labels: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return how many rows of each class go to each part: running shares of all rows so far, rounded, so that
    both the parts and the classes in them are off by less than one row."""
    _, counts = np.unique(sorted_labels, return_counts=True)
    until = np.cumsum(counts)
    cuts = np.floor(until[:, None] * np.cumsum(shares)[:2] + 0.5 - 1e-12).astype(np.int64)
    running = np.column_stack([cuts[:, 0], cuts[:, 1] - cuts[:, 0], until - cuts[:, 1]])
    return np.diff(running, axis=0, prepend=np.zeros((1, 3), dtype=np.int64))

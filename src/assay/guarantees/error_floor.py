"""Identical rows with different labels: a floor under every classifier's training error (claim train.error-floor)."""

from collections.abc import Iterator

import numpy as np

from assay.claims.claim import Claim
from assay.data.blocks import Block
from assay.scan import Rows


def error_floor(rows: Rows) -> Iterator[Claim]:
    """Yield claim train.error-floor if some identical rows carry different labels."""
    keys = np.concatenate(rows.map(_row_keys, np.random.default_rng(0).normal(size=rows.n_features)))
    sorted_keys = np.sort(keys)
    if (sorted_keys[1:] != sorted_keys[:-1]).all():
        return
    order = np.argsort(keys, kind="stable")
    sizes = np.diff(np.flatnonzero(np.concatenate([[True], np.diff(keys[order]) != 0, [True]])))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    candidates = np.sort(order[sizes[groups] > 1])
    X, y = gather(rows, candidates)
    found = _conflicts(_groups(X, keys[candidates]), y, candidates)
    if found is not None:
        floor, listed, group = found
        yield Claim(
            "train.error-floor", float(floor), "lower", {"rows": rows.n_rows}, witness={"rows": listed, "group": group}
        )


def _row_keys(block: Block, direction: np.ndarray) -> np.ndarray:
    """Return a projection of each row; identical rows of a block have equal keys.

    Rows summed in another order (the last few of the data) may be missed, which makes the floor lower, not
    wrong.
    """
    return block.X @ direction


def gather(rows: Rows, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of the wanted row numbers (sorted)."""

    def pick(block: Block) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.searchsorted(wanted, [block.start, block.start + len(block.X)])
        at = wanted[low:high] - block.start
        return block.X[at] + 0.0, block.y[at]

    parts = rows.map(pick)
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def _groups(X: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return a number for each row, the same for two rows only if they are identical; equal rows have equal
    keys."""
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    other = np.flatnonzero((X[first[group]] != X).any(axis=1))
    if len(other):  # different rows with one key
        group[other] = len(first) + np.unique(X[other], axis=0, return_inverse=True)[1]
    return group


def _conflicts(group: np.ndarray, y: np.ndarray, numbers: np.ndarray) -> tuple[int, np.ndarray, np.ndarray] | None:
    """Return the floor, the rows of conflicting groups and their group numbers; None if there is no
    conflict."""
    classes = int(y.max()) + 1
    cells = (int(group.max()) + 1) * classes
    table = np.bincount(group * classes + y, minlength=cells).reshape(-1, classes)
    excess = table.sum(axis=1) - table.max(axis=1)
    if not excess.any():
        return None
    listed = excess[group] > 0
    _, renumbered = np.unique(group[listed], return_inverse=True)
    return int(excess.sum()), numbers[listed].astype(np.int64), renumbered.astype(np.int64)

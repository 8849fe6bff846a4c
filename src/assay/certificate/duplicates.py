"""Identical rows with different labels: a floor under every classifier's training error (claim D03)."""

from collections.abc import Iterator

import numpy as np

from assay.certificate.claim import Claim
from assay.scan import Rows
from assay.scan.blocks import Block


def error_floor(rows: Rows) -> Iterator[Claim]:
    """Yield claim D03 if some identical rows carry different labels."""
    keys = np.concatenate(rows.map(_row_keys, np.random.default_rng(0).normal(size=rows.n_features)))
    sorted_keys = np.sort(keys)
    if (sorted_keys[1:] != sorted_keys[:-1]).all():
        return
    order = np.argsort(keys, kind="stable")
    sizes = np.diff(np.flatnonzero(np.concatenate([[True], np.diff(keys[order]) != 0, [True]])))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    candidates = np.sort(order[sizes[groups] > 1])
    found = _conflicts(*_gather(rows, candidates), candidates)
    if found is not None:
        floor, listed, group = found
        yield Claim("D03/1", float(floor), "lower", {"rows": rows.n_rows}, witness={"rows": listed, "group": group})


def _row_keys(block: Block, direction: np.ndarray) -> np.ndarray:
    """Return a projection of each row; identical rows of a block have equal keys.

    Rows summed in another order (the last few of the data) may be missed, which makes the floor lower, not wrong.
    """
    return block.X @ direction


def _gather(rows: Rows, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of the wanted row numbers (sorted)."""

    def pick(block: Block) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.searchsorted(wanted, [block.start, block.start + len(block.X)])
        at = wanted[low:high] - block.start
        return block.X[at] + 0.0, block.y[at]

    parts = rows.map(pick)
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def _conflicts(X: np.ndarray, y: np.ndarray, numbers: np.ndarray) -> tuple[int, np.ndarray, np.ndarray] | None:
    """Return the floor, the rows of conflicting groups and their group numbers; None if there is no conflict."""
    _, group = np.unique(X, axis=0, return_inverse=True)
    table = np.zeros((group.max() + 1, int(y.max()) + 1), dtype=np.int64)
    np.add.at(table, (group, y), 1)
    excess = table.sum(axis=1) - table.max(axis=1)
    if not excess.any():
        return None
    listed = excess[group] > 0
    _, renumbered = np.unique(group[listed], return_inverse=True)
    return int(excess.sum()), numbers[listed].astype(np.int64), renumbered.astype(np.int64)

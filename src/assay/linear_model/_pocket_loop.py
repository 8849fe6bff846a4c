"""The compiled loop of the pocket algorithm."""

import numpy as np

from assay.jit import compiled
from assay.linear_model._row_loops import add, dot


@compiled
def count_errors(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    signs: np.ndarray,
    w: np.ndarray,
    b: float,
    enough: int,
) -> int:
    """Return the number of rows with y (<w, x> + b) <= 0, or `enough` as soon as there are so many."""
    errors = 0
    for i in range(signs.shape[0]):
        errors += signs[i] * (dot(starts, columns, values, i, w) + b) <= 0.0
        if errors >= enough:
            break
    return errors


@compiled
def pocket_pass(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    signs: np.ndarray,
    order: np.ndarray,
    intercept: bool,
    w: np.ndarray,
    b: np.ndarray,
    best_w: np.ndarray,
    best: np.ndarray,
    limit: int,
) -> tuple[int, bool]:
    """Visit the rows in `order`; update w (d,), b (1,) on mistakes; after each update keep the better vector.

    best holds (errors, intercept) of best_w. Stops after `limit` updates or at zero errors; returns the
    number of updates,
    and whether the pass came to its end.
    """
    updates = 0
    for i in order:
        if signs[i] * (dot(starts, columns, values, i, w) + b[0]) > 0.0:
            continue
        if updates == limit or best[0] == 0:
            return updates, False
        add(starts, columns, values, i, signs[i], w)
        if intercept:
            b[0] += signs[i]
        updates += 1
        errors = count_errors(starts, columns, values, signs, w, b[0], int(best[0]))
        if errors < best[0]:
            best[0], best[1] = errors, b[0]
            best_w[:] = w
    return updates, True

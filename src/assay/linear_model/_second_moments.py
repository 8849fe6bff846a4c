"""Second moments of the columns and the target about their means: all that the lasso's coordinate descent reads."""

from typing import Any, NamedTuple

import numpy as np

from assay.base import require_finite
from assay.data.blocks import Block
from assay.params import refuse
from assay.scan import Rows

_MOST_COLUMNS = 20_000  # their second moments take 3.2 GB


class Moments(NamedTuple):
    """Centred second moments: X'X (d, d), X'y (d,), y'y; the means that were taken out; the sum of
    weights."""

    gram: np.ndarray
    cross: np.ndarray
    total: float
    mean: np.ndarray
    mean_y: float
    weight: float


def centred_moments(model: Any, rows: Rows, intercept: bool) -> Moments:
    """Return the second moments of the rows about their means; about zero without intercept. Two passes at
    most."""
    d = rows.n_features
    if d > _MOST_COLUMNS:
        raise refuse(
            model,
            f"second moments of {d} columns take {8 * d * d / 2**30:.0f} GiB; at most {_MOST_COLUMNS} "
            "columns are fitted.",
        )
    first = next(iter(rows.blocks()))
    with np.errstate(invalid="ignore", over="ignore"):
        pilot = np.append(first.X.mean(axis=0), first.y.mean()) if intercept else np.zeros(d + 1)
    sums = rows.sum(_second_moments, pilot)
    if not np.isfinite(sums).all():
        require_finite(rows, model)
        raise refuse(
            model,
            "the entries are too large; their squares overflow. Coordinate descent iterations resulted in non-finite "
            "parameter values.",
        )
    weight = float(sums[d, d])
    shift = sums[d] / weight if intercept else np.zeros(d + 2)
    central = sums - weight * np.outer(shift, shift)
    means = pilot + np.append(shift[:d], shift[d + 1])
    gram = np.ascontiguousarray(central[:d, :d])
    return Moments(
        gram,
        central[:d, d + 1].copy(),
        max(float(central[d + 1, d + 1]), 0.0),
        means[:d],
        float(means[d]),
        weight,
    )


def _second_moments(block: Block, pilot: np.ndarray) -> np.ndarray:
    """Return sum s_i a_i a_i^T, a = (x - pilot, 1, y - pilot)."""
    from assay.loops.moments import moments

    with np.errstate(invalid="ignore", over="ignore"):
        y = (block.y.reshape(-1, 1) - pilot[-1]).astype(np.float64)
        return moments(block.X, y, block.weight, pilot[:-1])

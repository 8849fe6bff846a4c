"""k-means on a line, solved exactly.

    minimise over c_1, ..., c_k    J(c) = sum_i w_i min_j (x_i - c_j)^2,    x_i numbers

Claim:  J is at most `value` above its minimum over all centres (D22): there are no local minima here.
Method: clusters of sorted numbers are intervals; dynamic programming over their borders, each layer by halving,
        O(k n log n). Wang & Song 2011.
"""

import itertools
from typing import Any

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.cluster._assignment import by_blocks, summary
from assay.data.blocks import Block
from assay.scan import Rows

_MOST_CUTS = 2**22  # distinct values times clusters, up to which the checker repeats the programme


def best_centers(rows: Rows, k: int) -> np.ndarray:
    """Return the k best centres of one column, (k, 1), in increasing order; fewer distinct values repeat the last."""
    from assay.cluster._exact_1d_loop import line_borders

    x, w = _values(rows)
    values, at = np.unique(x[w > 0], return_inverse=True)
    mass = np.bincount(at, weights=w[w > 0])
    if len(values) <= k:
        return np.append(values, np.repeat(values[-1], k - len(values)))[:, None]
    middle = np.average(values, weights=mass)
    moved = values - middle
    prefix = [np.append(0.0, np.cumsum(part)) for part in (mass, mass * moved, mass * moved * moved)]
    borders = line_borders(*prefix, k)
    parts = [slice(a, b) for a, b in itertools.pairwise(borders)]
    return np.array([[middle + np.average(moved[part], weights=mass[part])] for part in parts])


def line_excess(learner: Any, rows: Rows) -> Claim | NotApplicable:
    """Return claim D22: how far the cost of the centres is above the least one."""
    x, w = _values(rows)
    k, distinct = len(learner.cluster_centers_), len(np.unique(x))
    if distinct * k > _MOST_CUTS:
        return NotApplicable(
            "D22/1", f"The proof repeats the programme, up to {_MOST_CUTS} distinct values times clusters."
        )
    known = summary(rows, learner)
    cost, best = (by_blocks(rows, known, centers)[1] for centers in (learner.cluster_centers_, best_centers(rows, k)))
    rounding = cost_rounding(x[w > 0], w[w > 0]) * k * (2 * distinct.bit_length() + 6)
    params = {"clusters": k, "rows": rows.n_rows}
    return Claim("D22/1", max(cost - best, 0.0) * (1 + 1e-6) + 1e-14 * cost + rounding, params=params)


def cost_rounding(x: np.ndarray, w: np.ndarray) -> float:
    """Return more than the rounding of a cost from running sums: 2 g sum w x^2 + 4 g max|x| sum w |x| (+ 2 g max|x|^2
    sum w unless weights are whole), x about the mean, g = (n + 8) u; twice that, for the checker's own."""
    x = np.abs(x - np.average(x, weights=w))
    largest, first, second = float(x.max()), float(w @ x), float(w @ (x * x))
    error = 2 * second + 4 * largest * first + (0.0 if np.all(w == np.floor(w)) else 2 * largest**2 * float(w.sum()))
    return 2 * 2.3e-16 * (len(x) + 64) * error


def _values(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    parts = rows.map(_column)
    return np.concatenate([x for x, _ in parts]), np.concatenate([w for _, w in parts])


def _column(block: Block) -> tuple[np.ndarray, np.ndarray]:
    weight = np.ones(len(block.X)) if block.weight is None else block.weight
    return block.X[:, 0].copy(), weight.copy()

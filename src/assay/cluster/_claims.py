"""What k-means proves of its rows: the cost of its centres (D20), and what any centres must cost (D21)."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.cluster._assignment import StreamedPasses, summary
from assay.cluster._exact_1d import cost_rounding
from assay.data.blocks import Block
from assay.optim.duality import outward
from assay.scan import Rows, thread_map

_WIDEST = 2_000  # columns up to which the checker encloses eigenvalues
_STEPS = 2**28  # of the programme over buckets, for all columns
_MOST_BUCKETS = 1024
_MOST_ENTRIES = 2**28  # of X that are held at once to be sorted


def fixed_point(learner: Any, rows: Rows) -> Claim:
    """Return claim D20: the cost, and how far a centre is from the mean of its rows."""
    centers = learner.cluster_centers_
    passes = StreamedPasses(rows, summary(rows, learner))
    passes.begin(centers)
    found = passes.assign(centers)
    full = found.counts > 0
    means = passes.known.origin + found.sums[full] / found.counts[full, None]
    apart = float(np.max(np.linalg.norm(centers[full] - means, axis=1), initial=0.0))
    rounding = 1e-13 * float(np.linalg.norm(rows.largest_entries))  # of sums in another order
    params = {"clusters": len(centers), "rows": rows.n_rows, "shift": apart * (1 + 1e-9) + rounding}
    return Claim("D20/1", outward(passes.inertia(centers)), params=params)


def floor(learner: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield claim D21: the larger of two lower bounds of the cost of any centres."""
    k, d = learner.cluster_centers_.shape
    stated = {"clusters": k, "rows": rows.n_rows}
    bounds = []
    if d <= _WIDEST:
        bounds.append((spectral_bound(rows, learner, k), {"form": "spectral"} | stated))
    buckets = int(min(math.sqrt(_STEPS / (k * d)), _MOST_BUCKETS))
    if rows.n_rows * d <= _MOST_ENTRIES and buckets >= 8:
        bounds.append((axes_bound(rows, k, buckets), {"form": "axes", "buckets": buckets} | stated))
    value, params = max(bounds, key=lambda bound: bound[0], default=(0.0, {}))
    if value > 0:
        yield Claim("D21/1", value * (1 - 1e-9), "lower", params)
    else:
        yield NotApplicable("D21/1", "Nothing shows that k centres must cost more than 0 here.")


def spectral_bound(rows: Rows, learner: Any, k: int) -> float:
    """Return trace S - the k - 1 largest eigenvalues of the weighted scatter S about the mean, less rounding."""
    origin = summary(rows, learner).origin
    M = rows.sum(_scatter, origin)
    S = M[:-1, :-1] - np.outer(M[:-1, -1], M[:-1, -1]) / M[-1, -1]
    values = np.linalg.eigvalsh(S)[::-1]
    rounding = 1e-13 * (rows.n_rows / 4096 + len(S)) * len(S) * float(np.trace(S))
    return max(float(np.trace(S) - np.maximum(values[: k - 1], 0.0).sum()) - rounding, 0.0)


def _scatter(block: Block, origin: np.ndarray) -> np.ndarray:
    A = np.column_stack([block.X - origin, np.ones(len(block.X))])
    return A.T @ A if block.weight is None else (A * block.weight[:, None]).T @ A


def axes_bound(rows: Rows, k: int, buckets: int) -> float:
    """Return the sum over columns of what k centres on that column alone must cost, less rounding."""
    parts = rows.map(lambda block: (block.X, block.weight))
    X = np.concatenate([x for x, _ in parts])
    weight = np.ones(len(X)) if parts[0][1] is None else np.concatenate([w for _, w in parts])
    columns = range(X.shape[1])
    found = thread_map(lambda j: _column_bound(X[:, j], weight, k, buckets), columns, n_jobs=rows.n_jobs)
    return float(sum(found))


def _column_bound(column: np.ndarray, weight: np.ndarray, k: int, buckets: int) -> float:
    from assay.cluster._exact_1d_loop import bucket_optimum

    order = np.argsort(column, kind="stable")
    order = order[weight[order] > 0]
    x, w = column[order], weight[order]
    x = x - np.average(x, weights=w)
    edges = np.unique(np.linspace(0, len(x), min(buckets, len(x)) + 1).astype(np.int64))
    sums = np.array([np.add.reduceat(part, edges[:-1]) for part in (w, w * x, w * x * x)])
    prefix = np.concatenate([np.zeros((3, 1)), np.cumsum(sums, axis=1)], axis=1)
    cuttable = x[edges[1:] - 1] > x[edges[:-1]]
    return max(bucket_optimum(*prefix, cuttable, k) - k * cost_rounding(x, w), 0.0)

"""What k-medoids proves of its rows: the cost of the medoids, and how much one exchange could lower it (D20/2)."""

from typing import Any

import numpy as np

from assay.claims.claim import Claim
from assay.cluster._kmedoids import in_memory, pair_distances
from assay.cluster._medoid_search import Distances, State
from assay.scan import Rows, one_blas_thread

_MOST_PAIRS = 2**29  # of candidates and rows; with more rows, evenly spaced ones are candidates
_UNIT = 2.0**-53


def swap_claim(learner: Any, rows: Rows) -> Claim:
    """Return claim D20/2 for these rows."""
    table = in_memory(rows)
    n, d = table.shape
    tried = int(min(n, max(1, _MOST_PAIRS // n)))
    candidates = np.unique(np.linspace(0, n - 1, tried).astype(np.int64))
    metric, params = learner._named_metric(), learner.metric_params or {}
    k = learner._n_features_out

    def between(numbers: np.ndarray, others: np.ndarray | None) -> np.ndarray:
        if learner._is_precomputed:
            return table[:, numbers].T if others is None else table[numbers][:, learner.medoid_indices_]
        others_rows = table if others is None else learner.cluster_centers_
        return pair_distances(metric, params, table[numbers], others_rows)

    with one_blas_thread():
        distances = Distances(n, between, learner.n_jobs, stored=False)
        state = State(distances, np.arange(k))
        least = 0.0
        for start in range(0, len(candidates), distances.step):
            change, _ = state.changes(distances.of(candidates[start : start + distances.step]))
            least = min(least, float(change.min()))
    rounding = 16 * (n + 4 * d + 64) * _UNIT
    stated = {"clusters": k, "rows": n, "candidates": tried, "cost": state.cost * (1 + rounding)}
    return Claim("D20/2", -least + rounding * (state.cost - least), params=stated)

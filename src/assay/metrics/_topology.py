"""How well a map keeps what is near near: the rank correlation of distances before and after."""

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.utils import check_array, check_consistent_length, check_random_state


def distance_correlation(X: Any, Z: Any, *, max_rows: int = 1000, random_state: Any = 0) -> float:
    """Return Spearman's rank correlation of the distances between rows of X with those between the same rows of Z.

    1: pairs that are farther apart in X are farther apart in Z too; 0: Z tells nothing of it. Of more than `max_rows`
    rows so many are drawn.

    >>> distance_correlation([[0.0], [1.0], [3.0]], [[0.0, 0.0], [0.0, 2.0], [0.0, 6.0]])
    1.0
    """
    X, Z = (check_array(part, dtype=np.float64, ensure_min_samples=3) for part in (X, Z))
    check_consistent_length(X, Z)
    if len(X) > max_rows:
        drawn = np.sort(check_random_state(random_state).choice(len(X), max_rows, replace=False))
        X, Z = X[drawn], Z[drawn]
    before, after = pdist(X), pdist(Z)
    if np.ptp(before) == 0 or np.ptp(after) == 0:
        raise ValueError("distance_correlation: all distances of X, or of Z, are equal, so that they have no order.")
    return float(spearmanr(before, after).statistic)

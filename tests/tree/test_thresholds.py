"""The best threshold of a numeric column, by trying all thresholds one by one in plain arithmetic."""

import numpy as np
import pytest

from assay.tree.growth._nominal_missing import impurity
from assay.tree.growth._thresholds import ENTROPY, GINI, SQUARED, best_thresholds

NAMES = {SQUARED: "squared_error", GINI: "gini", ENTROPY: "entropy"}


def weight_of(stats, kind):
    return stats[0] if kind == SQUARED else stats.sum()


def judged(left, right, lost, kind, directed, whole):
    """Return gain and gain ratio of one threshold."""
    known = weight_of(left + right, kind)
    share = weight_of(left, kind) / known
    split = -share * np.log2(share) - (1 - share) * np.log2(1 - share)

    def after(a, b, total):
        return sum(weight_of(part, kind) / total * impurity(part, NAMES[kind]) for part in (a, b))

    if directed and lost is not None:
        gain = impurity(left + right + lost, NAMES[kind]) - min(
            after(left + lost, right, whole), after(left, right + lost, whole)
        )
    else:
        gain = known / whole * (impurity(left + right, NAMES[kind]) - after(left, right, known))
    return gain, gain / split


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("n", [40, 600])
def test_best_of_all_thresholds(kind, missing, directed, n):
    rng = np.random.default_rng(kind)
    X, w, least = np.round(rng.normal(size=(n, 2)), 1), rng.uniform(0.2, 2.0, n), 3.0
    if kind == SQUARED:
        y = rng.normal(size=n) + X[:, 0]
        stats = np.stack([np.ones(n), y, y * y], axis=1) * w[:, None]
    else:
        stats = np.eye(3)[rng.integers(0, 3, n)] * w[:, None]
    lost = stats[:7].sum(axis=0) if missing else None
    whole = w.sum() + (weight_of(lost, kind) if missing else 0.0)
    found = np.empty((2, 5))
    best_thresholds(X, stats, w, np.empty(0) if lost is None else lost, kind, directed, whole, least, found)
    for f in range(2):
        every = {}
        for t in np.unique(X[:, f])[:-1]:
            side = X[:, f] <= t
            if min(w[side].sum(), w[~side].sum()) >= least:
                left, right = stats[side].sum(axis=0), stats[~side].sum(axis=0)
                every[t] = judged(left, right, lost, kind, directed, whole)
        gain, ratio, threshold, share, _ = found[f]
        assert gain == pytest.approx(max(gain for gain, _ in every.values()))
        chosen = max(t for t in every if t <= threshold)
        assert every[chosen] == pytest.approx((gain, ratio))
        assert share == pytest.approx(w[X[:, f] <= threshold].sum() / w.sum())

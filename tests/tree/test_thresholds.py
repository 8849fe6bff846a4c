"""The best threshold of a numeric column, by trying all thresholds one by one in plain arithmetic."""

from itertools import combinations

import numpy as np
import pytest

from assay.tree.growth._nominal import Method, column_splits, impurity
from assay.tree.growth._nominal_splits import ENTROPY, GINI, SQUARED
from assay.tree.growth._records import Limits

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
    Z = X.copy()
    Z[:7] = np.nan if missing else X[:7]
    method = Method(NAMES[kind], "binary", "direction" if directed else "fractional", {}, 0, Limits(3))
    target = y if kind == SQUARED else np.argmax(stats, axis=1)
    found = column_splits(Z, target, w, method._replace(n_classes=0 if kind == SQUARED else 3))
    known = ~np.isnan(Z[:, 0])
    for f in range(2):
        every = {}
        for t in np.unique(X[known, f])[:-1]:
            side = X[:, f] <= t
            if min(w[side & known].sum(), w[~side & known].sum()) >= least:
                left, right = stats[side & known].sum(axis=0), stats[~side & known].sum(axis=0)
                every[t] = judged(left, right, lost, kind, directed, w.sum())
        gain, ratio, threshold, share = found[f]
        assert gain == pytest.approx(max(gain for gain, _ in every.values()))
        chosen = max(t for t in every if t <= threshold)
        assert every[chosen] == pytest.approx((gain, ratio))
        assert share == pytest.approx(w[known & (X[:, f] <= threshold)].sum() / w[known].sum())


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("gaps", ["fractional", "direction"])
def test_best_of_all_subsets_of_levels(n_classes, gaps):
    """Brute force over all two-way partitions of five levels."""
    rng = np.random.default_rng(n_classes)
    x, w = rng.integers(0, 5, 90).astype(float), rng.uniform(0.5, 2.0, 90)
    y = rng.normal(size=90) + x if n_classes == 0 else rng.integers(0, n_classes, 90)
    if n_classes == 0:
        stats = np.stack([np.ones(90), y, y * y], axis=1) * w[:, None]
    else:
        stats = np.eye(n_classes)[y] * w[:, None]
    x[:9] = np.nan
    kind, name = (SQUARED, "squared_error") if n_classes == 0 else (GINI, "gini")
    every = []
    for subset in (s for r in range(1, 5) for s in combinations(range(5), r)):
        left = np.isin(x, subset)
        right = ~np.isnan(x) & ~left
        sums = [stats[part].sum(axis=0) for part in (left, right, np.isnan(x))]
        every.append(judged(*sums, kind, gaps == "direction", w.sum())[0])
    split = column_splits(x[:, None], y, w, Method(name, "binary", gaps, {0: 5}, n_classes, Limits()))[0]
    assert split.gain == pytest.approx(max(every))

"""Trees of a forest on nominal columns and missing values: each node looks at some columns, drawn anew for it."""

from typing import Any

import numpy as np

from assay.tree._nodes import Nodes
from assay.tree.growth._nominal_missing import Method, Sides, Split, _Growth
from assay.tree.growth._records import Limits


def grow_random_features(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, method: Method, limits: Limits, seed: int
) -> Nodes:
    """Return a tree whose nodes choose among `limits.max_features` columns that are not constant there.

    With `limits.random`, each of those columns offers one split drawn at random: a threshold between its smallest and
    its largest value, or a subset of its levels.
    """
    return _RandomFeaturesGrowth(X, y, weight, method, limits, np.random.default_rng(int(seed))).nodes()


class _RandomFeaturesGrowth(_Growth):
    def __init__(self, X, y, weight, method: Method, limits: Limits, rng: Any):
        self.most, self.random, self.rng = limits.max_features, limits.random, rng
        super().__init__(X, y, weight, method)

    def _candidates(self, rows: np.ndarray, w: np.ndarray, used: frozenset) -> list[Split]:
        found: list[Split] = []
        for f in self.rng.permutation(self.X.shape[1]):
            split = self._column(int(f), rows, w)
            if split is not None:
                found.append(split)
            if len(found) == self.most:
                break
        return sorted(found, key=lambda split: split.column)

    def _numeric(self, f, x, stats, w, known_w, lost) -> Split | None:
        low, high = x.min(), x.max()
        if not self.random or low == high:
            return super()._numeric(f, x, stats, w, known_w, lost)
        t = float(self.rng.uniform(low, high))
        left = x <= (t if t < high else low)
        share, least = known_w[left].sum() / known_w.sum(), self.method.min_samples_leaf - 1e-9
        if min(known_w[left].sum(), known_w[~left].sum()) < least:
            return None
        parts = np.stack([stats[left].sum(axis=0), stats[~left].sum(axis=0)])[None]
        gain, ratio, default = self._judge(parts, w.sum(), known_w.sum(), lost)
        shares = np.array([share, 1 - share])
        threshold = t if t < high else float(low)
        return Split(f, float(gain[0]), float(ratio[0]), threshold, None, 2, shares, int(default[0]))

    def _subsets(self, sums: np.ndarray, weights: np.ndarray, present: np.ndarray) -> Sides:
        if not self.random:
            return super()._subsets(sums, weights, present)
        side = self.rng.integers(0, 2, len(present))
        side[self.rng.choice(len(present), 2, replace=False)] = 0, 1  # neither branch is empty
        subset = present[side == 0]
        left = sums[subset].sum(axis=0, keepdims=True)
        return Sides(left, sums.sum(axis=0) - left, weights[subset].sum(keepdims=True), lambda i: subset)

"""Discretisation of numeric columns at the border of largest information gain (C4.5's bi-partition)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner
from assay.params import check


@dataclass(eq=False, repr=False)
class BiPartition(OneToOneFeatureMixin, TransformerMixin, Learner):
    """Replace each column by 0 up to a threshold and 1 above it.

    Candidates are the middles of neighbouring different values; the threshold is the one with the largest gain
    Ent(D) - sum_v |D_v| / |D| Ent(D_v), the first of equal ones. A column with one value stays 0.

    Attributes
    ----------
    thresholds_ : (d,)
        0 for a column with one value, of which `divided_` is 0.
    gains_ : (d,)
        In bits.

    Examples
    --------
    >>> from assay.preprocessing import BiPartition
    >>> cut = BiPartition().fit([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0], [4.0, 5.0]], ["a", "a", "b", "b"])
    >>> cut.thresholds_.tolist(), cut.transform([[2.4, 9.0], [2.6, 0.0]]).tolist()
    ([2.5, 0.0], [[0.0, 0.0], [1.0, 0.0]])
    """

    family = "features.cuts"

    def fit(self, X: Any, y: Any = None) -> "BiPartition":
        """Find the threshold of each column."""
        check(self)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        codes = np.unique(y, return_inverse=True)[1]
        found = [_best(X[:, j], codes) for j in range(X.shape[1])]
        self.thresholds_, self.gains_, self.divided_ = (np.array(part) for part in zip(*found))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return 1 where an entry lies above its column's threshold."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return ((self.thresholds_ < X) & (self.divided_ == 1)).astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _best(x: np.ndarray, codes: np.ndarray) -> tuple[float, float, int]:
    """Return the threshold of largest gain, the gain, and whether there is one."""
    order = np.argsort(x, kind="stable")
    x, member = x[order], np.eye(codes.max() + 1)[codes[order]]
    border = np.flatnonzero(x[1:] > x[:-1])
    if not len(border):
        return 0.0, 0.0, 0
    left = member.cumsum(axis=0)[border]
    right = member.sum(axis=0) - left
    parts = [part.sum(axis=1) / len(x) * _entropy(part) for part in (left, right)]
    gains = _entropy(member.sum(axis=0, keepdims=True))[0] - sum(parts)
    best = int(np.argmax(gains >= gains.max() - 1e-12))
    low, high = x[border[best]], x[border[best] + 1]
    middle = low + (high - low) / 2
    return float(middle if low <= middle < high else low), float(gains[best]), 1


def _entropy(counts: np.ndarray) -> np.ndarray:
    """Return the entropy of each row of counts in bits."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return -np.sum(shares * np.log2(np.where(shares > 0, shares, 1.0)), axis=1)

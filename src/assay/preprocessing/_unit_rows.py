"""Rows of unit length, as perceptron and margin arguments want them."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner
from assay.params import Choice, check, refuse


@dataclass(eq=False, repr=False)
class UnitRows(OneToOneFeatureMixin, TransformerMixin, Learner):
    """Divide each row by its length; a row of zeros has no direction and is refused with its number.

    Parameters
    ----------
    zero : "refuse" or "keep"
        What a row of zeros meets; scikit-learn's Normalizer keeps it.

    Examples
    --------
    >>> from assay.preprocessing import UnitRows
    >>> UnitRows().fit_transform([[3.0, 4.0], [0.0, -2.0]]).tolist()
    [[0.6, 0.8], [0.0, -1.0]]
    """

    family = "features.columns"
    constraints: ClassVar = {"zero": Choice("refuse", "keep")}

    _: KW_ONLY
    zero: str = "refuse"

    def fit(self, X: Any, y: Any = None) -> "UnitRows":
        """Learn the number of columns."""
        check(self)
        validate_data(self, X, dtype=np.float64)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def transform(self, X: Any) -> np.ndarray:
        """Return the rows divided by their lengths."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        largest = np.abs(X).max(axis=1, keepdims=True)  # taken out first, so that no square over- or underflows
        empty = np.flatnonzero(largest[:, 0] == 0)
        if len(empty) and self.zero == "refuse":
            raise refuse(self, f"row {empty[0]} (counted from 0) is zero and has no direction; there are {len(empty)}.")
        scaled = X / np.where(largest == 0, 1.0, largest)
        length = np.linalg.norm(scaled, axis=1, keepdims=True)
        return scaled / np.where(length == 0, 1.0, length)

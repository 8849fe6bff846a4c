"""Columns brought to one scale, or to scales that say how much each of them counts."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner, read_rows, require_finite
from assay.data.blocks import Block
from assay.params import check, refuse


@dataclass(eq=False, repr=False)
class ScaledColumns(OneToOneFeatureMixin, TransformerMixin, Learner):
    """Subtract each column's mean and divide by its standard deviation, or multiply columns by the roots of weights.

        variance   z_j = (x_j - mean_j) / s_j,  s_j^2 = sum_i (x_ij - mean_j)^2 / n;  a constant column becomes 0
        weights    z_j = sqrt(w_j) x_j,  so that  |z - z'|^2 = sum_j w_j (x_j - x'_j)^2

    The first is scikit-learn's StandardScaler, in sums over blocks of rows: X may be Parquet files or a Dask table. The
    second makes any learner that looks at Euclidean distances use those of `metrics.distance.Weighted`.

    Parameters
    ----------
    by : "variance", or numbers >= 0
        Unit variance, or a weight for each column.
    n_jobs : int or None
        Threads; changes the time, never a bit.

    Attributes
    ----------
    center_, factor_ : (d,)
        z_j = (x_j - center_j) * factor_j.

    Examples
    --------
    >>> from assay.preprocessing import ScaledColumns
    >>> ScaledColumns().fit_transform([[1.0, 10.0], [3.0, 30.0]]).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    >>> ScaledColumns([4.0, 0.0]).fit_transform([[1.0, 10.0], [3.0, 30.0]]).tolist()
    [[2.0, 0.0], [6.0, 0.0]]
    """

    family = "features.scaled"

    by: Any = "variance"
    _: KW_ONLY
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None) -> "ScaledColumns":
        """Find center and factor of each column of rows X."""
        check(self)
        rows = read_rows(self, X, None)
        require_finite(rows, self)
        d = rows.n_features
        if not isinstance(self.by, str):
            weights = np.asarray(self.by, dtype=np.float64)
            if weights.shape != (d,) or not np.isfinite(weights).all() or weights.min() < 0:
                raise refuse(self, f"by must be {d} weights >= 0, one for each column; got {str(self.by)[:60]}.")
            self.center_, self.factor_ = np.zeros(d), np.sqrt(weights)
            return self
        if self.by != "variance":
            raise refuse(self, f'by must be "variance" or a weight for each column; got {self.by!r}.')
        self.center_ = rows.sum(_total) / rows.n_rows
        squares, rest = rows.sum(_squares, self.center_)
        spread = np.sqrt(np.maximum(squares - rest**2 / rows.n_rows, 0.0) / rows.n_rows)
        constant = spread <= 8 * np.finfo(float).eps * np.abs(self.center_)  # what rounding of the mean leaves
        self.factor_ = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the rows with scaled columns."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return (X - self.center_) * self.factor_

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return rows of which `transform` makes X; a column with factor 0 comes back as its center."""
        check_is_fitted(self)
        X = np.asarray(X, dtype=np.float64)
        return X / np.where(self.factor_ == 0, np.inf, self.factor_) + self.center_


def _total(block: Block) -> np.ndarray:
    return block.X.sum(axis=0)


def _squares(block: Block, center: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of squares of x - center, and of x - center, which is nearly 0."""
    X = block.X - center
    return (X * X).sum(axis=0), X.sum(axis=0)

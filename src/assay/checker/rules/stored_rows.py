"""What predictors that ask stored rows share: the distance to the last bit, and votes whose ties go to the first."""

from typing import Any

import numpy as np

from assay.checker.predictors import Predictor


class AskedRows(Predictor):
    """Votes or means of stored rows X; `_predicted` gives them with bounds of their errors."""

    X: np.ndarray
    first_of_equals = True

    @property
    def columns(self) -> int:
        return self.X.shape[1]

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, errors = self._predicted(X)
        return values, errors if self.classes is not None else errors.max(axis=0)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self._predicted(X)[1]

    def _predicted(self, X: np.ndarray) -> tuple[Any, Any]:
        raise NotImplementedError


def power_of_gaps(gaps: np.ndarray, metric: int) -> np.ndarray:
    """Return sums of squares (metric 0), sums (1) or maxima (2) of the rows of gaps, added column by column as the
    learner does: the same bits."""
    if metric == 2:
        return gaps.max(axis=1)
    return np.add.accumulate(gaps * gaps if metric == 0 else gaps, axis=1)[:, -1]

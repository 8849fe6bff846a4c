"""What predictors that ask stored rows share: scores, and votes that are exact unless inverse distances tie."""

from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.predictors import Predictor
from assay.checker.record import Refused


class AskedRows(Predictor):
    """Votes or means of stored rows X; `_predicted` gives them with bounds of their errors."""

    X: np.ndarray
    open_votes = "inverse distances are irrational numbers, and nearly tied"

    @property
    def columns(self) -> int:
        return self.X.shape[1]

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, errors = self._predicted(X)
        return values, errors if self.classes is None else errors.max(axis=0)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self._predicted(X)[1]

    def exact_scores(self, x: np.ndarray) -> list[Fraction]:
        """Return the votes for one row; inverse distances that are nearly tied are left open."""
        values, errors = self._predicted(x[None])
        ranked = np.sort(values[0])
        if errors.any() and not ranked[-1] - ranked[-2] > 4 * errors.max():
            raise Refused(self.open_votes)
        return [Fraction(value) for value in values[0].tolist()]

    def _predicted(self, X: np.ndarray) -> tuple[Any, Any]:
        raise NotImplementedError

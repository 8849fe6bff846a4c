"""The objective of a linear model as a function of its coefficients: what `fit` minimises."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.losses import log_loss, multinomial, squared_error


class Objective:
    """Adds `objective`; a learner says what its losses and its penalty are."""

    coef_: np.ndarray
    intercept_: Any

    def objective(self, X: Any, y: Any, coef: Any = None, intercept: Any = None) -> float:
        """Return what the fit minimises on rows X, y of equal weight, at the fitted coefficients or at others.

        `coef` and `intercept` have the shapes of `coef_` and `intercept_`.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        W = np.atleast_2d(self.coef_ if coef is None else np.asarray(coef, dtype=np.float64))
        b = self.intercept_ if intercept is None else np.asarray(intercept, dtype=np.float64)
        return float(self._losses(np.asarray(y), X @ W.T + b).sum() + self._penalty(W, len(X)))

    def _losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the loss of each row for scores (n, outputs)."""
        raise NotImplementedError

    def _penalty(self, W: np.ndarray, n: int) -> float:
        """Return the penalty of weights (outputs, columns) after n rows."""
        return 0.0


class SquaredObjective(Objective):
    """1/2 sum |y - f|^2 plus a penalty."""

    def _losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return squared_error.value(y.reshape(len(y), -1), scores).sum(axis=1)


class LogisticObjective(Objective):
    """C sum ln(1 + exp(-y f)), or of the softmax for one score per class, plus 1/2 |W|^2 (nothing if C is infinite)."""

    classes_: np.ndarray
    C: float

    def _losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        codes = np.searchsorted(self.classes_, y)
        if scores.shape[1] == 1:
            losses = log_loss.value(np.where(codes == 1, 1.0, -1.0), scores[:, 0])
        else:
            losses = multinomial.value(codes, scores)
        return losses if np.isinf(self.C) else self.C * losses

    def _penalty(self, W: np.ndarray, n: int) -> float:
        return 0.0 if np.isinf(self.C) else 0.5 * float((W * W).sum())

"""`objective`: what a learner minimised, callable at any coefficients on any rows.

    objective(X, y, coef, intercept) = sum_i loss(y_i, f(x_i)) + penalty,    f = <coef, x> + intercept

A learner says what its losses and its penalty are; kernel machines have the same in `assay.svm._objective`, with
coefficients of kernel functions instead of columns.
"""

from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.losses import Loss, log_loss, multinomial, squared_error
from assay.params import refuse


class Objective:
    """Adds `objective`; a learner says what its losses and its penalty are."""

    coef_: np.ndarray
    intercept_: Any

    def objective(self, X: Any, y: Any = None, coef: Any = None, intercept: Any = None) -> float:
        """Return what the fit minimises on rows X, y of equal weight, at the fitted coefficients or at others.

        `coef` and `intercept` have the shapes of `coef_` and `intercept_`; of a kernel machine `coef` is (outputs,
        support vectors), the coefficients of its functions.
        """
        check_is_fitted(self)
        if y is None and get_tags(self).target_tags.required:
            raise refuse(self, "objective needs y, the targets of the rows.")
        W = self._fitted_coef() if coef is None else np.asarray(coef, dtype=np.float64)
        b = np.asarray(self.intercept_ if intercept is None else intercept, dtype=np.float64)
        W, b = np.atleast_2d(W), np.atleast_1d(b)
        scores = self._scores_of(X, W) + b
        return float(self._row_losses(np.asarray(y), scores).sum() + self._penalty(W, b, len(scores)))

    def _fitted_coef(self) -> np.ndarray:
        return self.coef_.toarray() if hasattr(self.coef_, "toarray") else self.coef_

    def _scores_of(self, X: Any, W: np.ndarray) -> np.ndarray:
        """Return the scores of each row without intercept, (n, outputs)."""
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64, accept_sparse="csr") @ W.T)

    def _row_losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the loss of each row for scores (n, outputs)."""
        raise NotImplementedError

    def _penalty(self, W: np.ndarray, b: np.ndarray, n: int) -> float:
        """Return the penalty of coefficients (outputs, columns) and intercepts after n rows."""
        return 0.0


def elastic(W: np.ndarray, l1: float, l2: float) -> float:
    """Return l1 |W|_1 + l2/2 |W|^2."""
    return l1 * float(np.abs(W).sum()) + 0.5 * l2 * float((W * W).sum())


def one_against_rest(classes: np.ndarray, loss: Loss, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the loss of each row in each hyperplane, (n, outputs): one of two classes, else one against the rest each.

    Losses of numbers are of the labels -1 and +1.
    """
    codes = np.searchsorted(classes, y)
    told = [1] if len(classes) == 2 else range(len(classes))
    return loss.value(np.where(codes[:, None] == told, 1.0, -1.0), scores)


def told_weights(learner: Any, y: np.ndarray) -> np.ndarray:
    """Return the weight of each row in each hyperplane: that of its class if it is the one told from the rest, else 1;
    of two classes both have theirs."""
    codes, K = np.searchsorted(learner.classes_, y), len(learner.classes_)
    weight = class_weights(learner, y)[codes][:, None]
    return weight if K == 2 else np.where(codes[:, None] == range(K), weight, 1.0)


def class_weights(learner: Any, y: np.ndarray) -> np.ndarray:
    """Return the weight of each class, (classes,)."""
    if learner.class_weight is None:
        return np.ones(len(learner.classes_))
    return compute_class_weight(learner.class_weight, classes=learner.classes_, y=y)


class SquaredObjective(Objective):
    """1/2 sum |y - f|^2 plus a penalty."""

    def _row_losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return squared_error.value(y.reshape(len(y), -1), scores).sum(axis=1)


class LogisticObjective(Objective):
    """C sum ln(1 + exp(-y f)), or of the softmax for one score per class, plus r |W|_1 + (1 - r)/2 |W|^2 (nothing if C
    is infinite); with solver="liblinear" intercepts are penalised as coefficients of a column."""

    def _row_losses(self: Any, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        codes = np.searchsorted(self.classes_, y)
        if scores.shape[1] == 1:
            losses = log_loss.value(np.where(codes == 1, 1.0, -1.0), scores[:, 0])
        else:
            losses = multinomial.value(codes, scores)
        losses = class_weights(self, y)[codes] * losses
        return losses if np.isinf(self._cost) else self._cost * losses

    def _penalty(self: Any, W: np.ndarray, b: np.ndarray, n: int) -> float:
        if np.isinf(self._cost):
            return 0.0
        penalised = np.append(W, b / self._column) if self._column else W
        return elastic(penalised, self._share, 1.0 - self._share)

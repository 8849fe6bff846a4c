"""What linear classifiers and regressors share: scores, and how far rounding can move them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner
from assay.claims.claim import NotApplicable
from assay.data.blocks import Block
from assay.guarantees.ledger import Statement
from assay.guarantees.margins import linear_statements
from assay.guarantees.norm import Norm
from assay.optim.duality import score_error, score_rounding
from assay.scan import Rows

_UNIT = 2.0**-53
_LEAST = 1e-140  # what underflow can hide of a mean square, generously


class LinearModel(Learner):
    """f(x) = <w, x> + b, with `coef_` and `intercept_`."""

    coef_: np.ndarray
    intercept_: Any
    fit_intercept: bool

    def _scores(self, X: Any) -> np.ndarray:
        """Return X w + b, one column per row of `coef_`, or one number per row of X if `coef_` has one
        dimension."""
        check_is_fitted(self)
        sparse = "csr" if get_tags(self).input_tags.sparse else False
        X = validate_data(self, X, reset=False, dtype=np.float64, accept_sparse=sparse)
        return X @ self.coef_.T + self.intercept_

    def _rounding(self, rows: Rows) -> np.ndarray:
        """Return, for each score column, how far rounding can move any score, doubled: whoever recomputes the
        scores in another order resolves every row that is resolved here."""
        return score_rounding(rows, self.coef_, self.intercept_)


class LinearClassifier(LinearModel):
    """Predicts the class by the sign of one score, or by the largest of one score per class."""

    family = "linear.classifier"
    classes_: np.ndarray

    def decision_function(self, X: Any) -> np.ndarray:
        """Return <w, x> + b: (n,) for two classes, (n, n_classes) for more."""
        scores = self._scores(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted label of each row."""
        winners = _winners(self._scores(X))
        return self.classes_[winners]

    def predicted_positions(self, rows: Rows) -> np.ndarray:
        """Return the predicted class of each row, as a position in `classes_`; -1 where rounding leaves it
        open."""
        return np.concatenate(rows.map(_positions, self.coef_, self.intercept_, self._rounding(rows)))

    def score_bounds(self, rows: Rows) -> tuple[np.ndarray, float]:
        """Return the scores of each row, and how far rounding can move them."""
        return np.concatenate(rows.map(_plain_scores, self.coef_, self.intercept_)), float(self._rounding(rows).max())

    def count_errors(self, rows: Rows) -> tuple[int, int]:
        """Return the least and the largest number of errors on `rows` that rounding of the scores leaves
        open."""
        low, high = rows.sum(_error_counts, self.coef_, self.intercept_, self._rounding(rows))
        return int(low), int(high)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield what margins say about new data."""
        yield from linear_statements(self, rows, self._margin_rounding(rows))

    def _margin_rounding(self, rows: Rows) -> float:
        """Return how far rounding can move the margin of any row, doubled."""
        return float(self._rounding(rows).max()) * (1 if len(self.coef_) == 1 else 4)


class LinearRegressor(LinearModel):
    """Predicts f(x) itself."""

    family = "linear.regressor"

    def predict(self, X: Any) -> np.ndarray:
        """Return <w, x> + b for each row."""
        return self._scores(X)

    def squared_error(self, rows: Rows) -> tuple[float, float]:
        """Return an interval that holds the mean squared error on `rows`, whatever the rounding of the
        scores."""
        rounding = self._rounding(rows)
        total, cross = rows.sum(_squared_residuals, self.coef_, self.intercept_, rounding)
        count = rows.n_rows * len(rounding)
        slack = (cross + 1e-12 * total) / count
        mean = total / count
        low = mean - slack
        return low if low > _LEAST else 0.0, mean + slack + _LEAST

    def function_norm(self, rows: Rows) -> Norm | str:
        """Return |(w, b)|, the sum of the squared lengths of the rows, and whether there is an intercept."""
        if self.family != "linear.regressor" or np.ndim(self.coef_) > 1:
            return "The bound is about one score that is the prediction itself."
        length = float(np.hypot(np.linalg.norm(self.coef_), np.max(np.abs(self.intercept_))))
        return Norm(length, float(rows.sum(_squared_length)), bool(getattr(self, "fit_intercept", True)))

    def loss_rounding(self, rows: Rows) -> float:
        """Return how far rounding can move the absolute error of any row, doubled."""
        return float(np.max(self._rounding(rows)))

    def clipped_errors(self, rows: Rows, clip: float) -> np.ndarray:
        """Return min(|y - f(x)|, clip) of each row (mean over targets), rounded up by what rounding can
        hide."""
        rounding = self._rounding(rows)
        return np.concatenate(rows.map(_clipped, self.coef_, self.intercept_, rounding, clip))


def _winners(scores: np.ndarray) -> np.ndarray:
    """Return the position of the class that scores (n, 1) or (n, n_classes) decide for."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


def _plain_scores(block: Block, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    return block.X @ coef.T + intercept


def _positions(block: Block, coef: np.ndarray, intercept: np.ndarray, rounding: np.ndarray) -> np.ndarray:
    scores = block.X @ coef.T + intercept
    best = np.sort(scores, axis=1)[:, -2:]
    lead = np.abs(scores[:, 0]) if len(coef) == 1 else best[:, 1] - best[:, 0]
    return np.where(lead > 2 * rounding.max(), _winners(scores), -1)


def _error_counts(block: Block, coef: np.ndarray, intercept: np.ndarray, rounding: np.ndarray) -> tuple[int, int]:
    """Return how many rows are certainly wrong, and how many not certainly right: first with one bound on the
    rounding for all rows, then, where that leaves a row open, with its own."""
    if len(coef) == 1:
        from assay.loops.scores import binary_errors_block

        low, high = binary_errors_block(block.X, block.y, coef[0], intercept[0], rounding[0])
        if low == high:
            return low, high
    margin = _margins(block, coef, intercept)
    slack = rounding[0] if len(coef) == 1 else 2 * rounding.max()
    low, left = int(np.count_nonzero(margin < -slack)), np.flatnonzero(np.abs(margin) <= slack)
    own = score_error(block.X[left], coef, intercept)
    own = own[:, 0] if len(coef) == 1 else 2 * own.max(axis=1)
    wrong, right = np.count_nonzero(margin[left] < -own), np.count_nonzero(margin[left] > own)
    return low + int(wrong), low + len(left) - int(right)


def _margins(block: Block, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return how far the score of each row's class is above the largest other one (0 for the class without a
    row of `coef_`)."""
    scores = block.X @ coef.T + intercept
    if len(coef) == 1:
        return scores[:, 0] * (2.0 * block.y - 1.0)
    row = np.arange(len(scores))
    own = scores[row, block.y]
    scores[row, block.y] = -np.inf
    return own - scores.max(axis=1)


def _squared_length(block: Block) -> float:
    return float(np.einsum("ij,ij->", block.X, block.X))


def _residuals(block: Block, coef: np.ndarray, intercept: Any) -> np.ndarray:
    residuals = block.y - (block.X @ coef.T + intercept)
    return residuals.reshape(len(residuals), -1)


def _squared_residuals(block: Block, coef: np.ndarray, intercept: Any, rounding: np.ndarray) -> tuple[float, float]:
    """Return sum r^2, and a bound on how much rounding of the residuals changes it."""
    residuals = _residuals(block, coef, intercept)
    slack = rounding + 2 * _UNIT * np.abs(residuals)
    return float((residuals**2).sum()), float(((2 * np.abs(residuals) + slack) * slack).sum())


def _clipped(block: Block, coef: np.ndarray, intercept: Any, rounding: np.ndarray, clip: float) -> np.ndarray:
    residuals = np.abs(_residuals(block, coef, intercept)) * (1 + 2 * _UNIT) + rounding
    return np.minimum(residuals, clip).mean(axis=1)

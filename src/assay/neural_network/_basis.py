"""What networks share whose outputs are linear in features of the row: their least squares, predictions and claims.

    minimise over W, b    1/(2 n) sum_i |y_i - W f(x_i) - b|^2 + alpha/2 |W|^2

A class is the target +1 against -1, and the label of a row that of the largest output.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh, lstsq
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from assay.base import Learner, label_classes, read_rows, require_finite
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Evidence, Predictions, Scores
from assay.params import refuse
from assay.scan import Rows
from assay.scan.memory import MemoryRows

_UNIT = 2.0**-53
_LEAST = 1e-140
_MOST_FEATURES = 2_000  # as the checker's rule


class Basis(Learner):
    """A network whose outputs are linear in its features."""

    figure = "network"
    coef_: np.ndarray
    intercept_: np.ndarray
    alpha: float

    # What a network adds

    def _features(self, X: np.ndarray) -> np.ndarray:
        """Return the features of rows, (n, q)."""
        raise NotImplementedError

    def _feature_errors(self, X: np.ndarray, F: np.ndarray) -> np.ndarray:
        """Return how far rounding can move each feature, doubled."""
        raise NotImplementedError

    # Reading and solving

    def _read(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows in memory and the targets of the outputs, (n, K)."""
        rows = read_rows(self, X, y)
        require_finite(rows, self)
        rows = self._coded(rows)
        parts = [(block.X, np.asarray(block.y)) for block in rows.blocks()]
        X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
        return np.ascontiguousarray(X, dtype=np.float64), self._targets(y, len(getattr(self, "classes_", ())))

    def _coded(self, rows: Any) -> Any:
        return rows

    @staticmethod
    def _targets(y: np.ndarray, classes: int) -> np.ndarray:
        """Return the target of each output: +1 or -1 for a class, else the numbers themselves."""
        if not classes:
            return np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return np.where(y[:, None] == (np.arange(classes) if classes > 2 else 1), 1.0, -1.0)

    def _outputs(self, F: np.ndarray, Y: np.ndarray) -> dict[str, np.ndarray]:
        """Return the output weights of least squares on features F (n, q) and targets Y (n, K)."""
        n, q = F.shape
        middle, mean = F.mean(axis=0), Y.mean(axis=0)
        A = np.vstack([(F - middle) / np.sqrt(n), np.sqrt(self.alpha) * np.eye(q)]) if self.alpha else F - middle
        B = np.vstack([(Y - mean) / np.sqrt(n), np.zeros((q, Y.shape[1]))]) if self.alpha else Y - mean
        W = lstsq(A, B, check_finite=False)[0].T
        W = np.where(np.abs(W) < _LEAST, 0.0, W)
        return {"coef_": W, "intercept_": mean - W @ middle}

    def _objective(self, F: np.ndarray, Y: np.ndarray, W: np.ndarray, b: np.ndarray) -> float:
        return float(0.5 * np.square(F @ W.T + b - Y).sum() / len(Y) + 0.5 * self.alpha * np.square(W).sum())

    # Prediction

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self._features(X) @ self.coef_.T + self.intercept_

    def _bounded(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Return outputs, and twice how far rounding can move each."""
        F = self._features(block.X)
        size = np.abs(self.coef_).T
        rounding = (2 * len(size) + 24) * _UNIT * (np.abs(F) @ size + np.abs(self.intercept_))
        return F @ self.coef_.T + self.intercept_, 2 * (rounding + self._feature_errors(block.X, F) @ size) + _LEAST

    # Certificate

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield how far the output weights are from the best of the same features."""
        q = self.coef_.shape[1]
        if q > _MOST_FEATURES:
            yield NotApplicable("D34/2", f"The checker factorises at most {_MOST_FEATURES} features; there are {q}.")
            return
        n = rows.n_rows
        slope, wobble, square, off, cost = rows.sum(_normal_sums, self, len(getattr(self, "classes_", ())))
        penalty = self.alpha * np.column_stack([self.coef_, np.zeros(len(self.coef_))])
        square[np.diag_indices(q)] += n * self.alpha
        curvature = 0.5 * float(eigvalsh(square / n)[0]) - 2 * float(off.sum(axis=1).max()) / n
        curvature -= (4 * q + 64) * _UNIT * float(np.trace(square)) / n
        own = float(cost) / (2 * n) + self.alpha / 2 * float(np.square(self.coef_).sum())
        gap = np.inf
        if curvature > 1e-15:
            g = np.abs(slope / n + penalty) + 2 * wobble / n + 64 * _UNIT * np.abs(penalty)
            gap = float(np.square(g).sum()) / (2 * curvature)
        value, curvature = (gap, curvature) if gap < own else (own, 0.0)
        params = {"rows": n, "alpha": float(self.alpha), "curvature": curvature}
        yield Claim("D34/2", value * (1 + 1e-6) + _LEAST, params=params)


def _normal_sums(block: Block, model: Any, classes: int) -> tuple[Any, ...]:
    """Return sums over a block: residuals times features with a bound of the error, products of features with a bound
    of theirs, and an upper bound of the squared residuals."""
    Z, off = model._bounded(block)
    F = model._features(block.X)
    error = np.column_stack([model._feature_errors(block.X, F), np.zeros(len(F))])
    F = np.column_stack([F, np.ones(len(F))])
    residual, n = Z - model._targets(np.asarray(block.y), classes), len(F)
    size, rounding = np.abs(F), 4 * (n + 64) * _UNIT
    wobble = (off + rounding * np.abs(residual)).T @ size + (np.abs(residual) + off).T @ error
    mixed = size.T @ error
    plain = rounding * (size.T @ size) + mixed + mixed.T + error.T @ error
    return residual.T @ F, wobble, F.T @ F, plain, float(np.square(np.abs(residual) + off).sum())


class BasisClassifier(ClassifierMixin, Basis):
    """A classifier whose scores are linear in features."""

    def _coded(self, rows: Any) -> Any:
        self.classes_ = label_classes(self, rows)
        return rows.encoded(self.classes_)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the outputs: (n,), positive for the second of two classes, or (n, classes)."""
        Z = self._scores(X)
        return Z[:, 0] if Z.shape[1] == 1 else Z

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of the largest output of each row."""
        Z = self._scores(X)
        return self.classes_[(Z[:, 0] > 0).astype(np.int64) if Z.shape[1] == 1 else Z.argmax(axis=1)]

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores."""
        yield Scores(_row_scores, (self,))


def _row_scores(block: Block, model: Any) -> tuple[np.ndarray, np.ndarray]:
    Z, radius = model._bounded(block)
    return Z, radius.max(axis=1)


class BasisRegressor(RegressorMixin, Basis):
    """A regression whose predictions are linear in features."""

    def _coded(self, rows: Any) -> Any:
        if isinstance(rows, MemoryRows) and rows.y is not None and rows.y.ndim == 2 and rows.y.shape[1] == 1:
            rows.y = column_or_1d(rows.y, warn=True)
        if isinstance(rows, MemoryRows) and rows.y is not None and rows.y.ndim > 2:
            raise refuse(self, f"y must be (n,) or (n, targets); got shape {rows.y.shape}.")
        return rows

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted value of each row, (n,), or (n, targets)."""
        Z = self._scores(X)
        return Z[:, 0] if Z.shape[1] == 1 else Z

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions."""
        radius = np.max(rows.map(_largest_radius, self), axis=0)  # the checker has one bound for the rows of a block
        yield Predictions(_values, (self, radius))


def _values(block: Block, model: Any, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return model._bounded(block)[0], radius[None, :]


def _largest_radius(block: Block, model: Any) -> np.ndarray:
    return model._bounded(block)[1].max(axis=0)

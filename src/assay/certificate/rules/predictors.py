"""The checker's own predictors: decision values of a stored model, each with a bound on its error."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.certificate.rules.numerics import above, gamma


@dataclass(frozen=True)
class Linear:
    """Scores X W' + b of a linear model: one row of W per output."""

    family: str
    W: np.ndarray  # (K, d)
    b: np.ndarray  # (K,)
    classes: tuple[str, ...] | None

    @property
    def binary(self) -> bool:
        return self.classes is not None and len(self.W) == 1

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores (rows, K) and error bounds (K,) that hold for rows no larger than `largest`, column by column."""
        values = (X @ self.W[0])[:, None] if len(self.W) == 1 else X @ self.W.T
        return values + self.b, self._error(np.abs(self.W) @ largest)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        """Return sharper error bounds (rows, K) for these rows alone."""
        return self._error(np.abs(X) @ np.abs(self.W).T)

    def _error(self, magnitude: np.ndarray) -> np.ndarray:
        return gamma(2 * self.W.shape[1] + 8) * (magnitude + np.abs(self.b))


def margins(
    model: Linear, scores: np.ndarray, errors: np.ndarray, codes: np.ndarray
) -> tuple[np.ndarray, Any]:
    """Return score of the true class minus the best other one, and a bound of its error; the row is right iff > 0."""
    known = np.maximum(codes, 0)
    if model.binary:
        margin, error = np.where(known == 1, scores[:, 0], -scores[:, 0]), errors[..., 0]
    else:
        rows = np.arange(len(scores))
        others = scores.copy()
        others[rows, known] = -np.inf
        margin, error = scores[rows, known] - others.max(axis=1), above(2 * errors.max(axis=-1), 2)
    return np.where(codes < 0, -np.inf, margin), error


def error_counts(view: Any) -> tuple[int, int]:
    """Return how many rows of the block are certainly wrong, and how many are not certainly right."""
    scores, errors = view.scores
    margin, error = margins(view.model, scores, errors, view.codes)
    error = error + 2.0**-52 * np.abs(np.where(np.isfinite(margin), margin, 0.0))
    open_rows = np.flatnonzero(np.abs(margin) <= error)
    low, high = int(np.sum(margin < -error)), int(np.sum(margin <= error))
    if len(open_rows):
        sharp = view.model.row_errors(view.X[open_rows])
        margin, error = margins(view.model, scores[open_rows], sharp, view.codes[open_rows])
        error = error + 2.0**-52 * np.abs(margin)
        low += int(np.sum((margin < -error) | ((margin == 0) & (error == 0))))
        high -= int(np.sum(margin > error))
    return low, high


def predicted(view: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the predicted class of each row, and whether the checker is sure of it."""
    scores, errors = view.scores
    guess = (scores[:, 0] > 0).astype(np.int64) if view.model.binary else scores.argmax(axis=1)
    margin, error = margins(view.model, scores, errors, guess)
    return guess, margin > error + 2.0**-52 * np.abs(margin)

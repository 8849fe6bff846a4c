"""The checker's own predictors: decision values of a stored model, each with a bound on its error."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from assay.certificate.rules.numerics import above, gamma

MOST_EXACT = 256
"""Rows of a block that are decided in exact arithmetic, at most; more are left open."""


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

    @property
    def columns(self) -> int:
        return self.W.shape[1]

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores (rows, K) and error bounds (K,) that hold for rows no larger than `largest`, column by column."""
        values = (X @ self.W[0])[:, None] if len(self.W) == 1 else X @ self.W.T
        return values + self.b, self._error(np.abs(self.W) @ largest)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        """Return sharper error bounds (rows, K) for these rows alone."""
        return self._error(np.abs(X) @ np.abs(self.W).T)

    def _error(self, magnitude: np.ndarray) -> np.ndarray:
        return gamma(2 * self.W.shape[1] + 8) * (magnitude + np.abs(self.b))


@dataclass(frozen=True)
class Quadratic:
    """Scores <u, A u> + <w, u> + b, u = x - center: one A, w, b per output."""

    family: str
    center: np.ndarray  # (d,)
    A: np.ndarray  # (K, d, d)
    w: np.ndarray  # (K, d)
    b: np.ndarray  # (K,)
    classes: tuple[str, ...]

    @property
    def binary(self) -> bool:
        return len(self.A) == 1

    @property
    def columns(self) -> int:
        return len(self.center)

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores (rows, K) and error bounds (K,) that hold for rows no larger than `largest`, column by column."""
        u = X - self.center
        values = [np.einsum("ij,ij->i", u @ A + w, u) + b for A, w, b in zip(self.A, self.w, self.b)]
        return np.stack(values, axis=1), self._error(largest[None, :])[0]

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        """Return sharper error bounds (rows, K) for these rows alone."""
        return self._error(np.abs(X))

    def _error(self, size: np.ndarray) -> np.ndarray:
        u = size + np.abs(self.center)  # |x - c| is off by U (|x| + |c|), which this magnitude holds
        parts = [np.einsum("ij,ij->i", u @ np.abs(A) + np.abs(w), u) + abs(b) for A, w, b in zip(self.A, self.w, self.b)]
        return gamma(4 * self.columns + 32) * np.stack(parts, axis=1)


def margins(
    model: Any, scores: np.ndarray, errors: np.ndarray, codes: np.ndarray
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
    """Return how many rows of the block are certainly wrong, and how many are not certainly right.

    Rows that the bound for the whole block leaves open get a bound of their own, then exact arithmetic.
    """
    scores, errors = view.scores
    margin, error = margins(view.model, scores, errors, view.codes)
    error = error + 2.0**-52 * np.abs(np.where(np.isfinite(margin), margin, 0.0))
    low, high = int(np.sum(margin < -error)), int(np.sum(margin <= error))
    rows = np.flatnonzero(np.abs(margin) <= error)
    if not len(rows):
        return low, high
    margin, error = margins(view.model, scores[rows], view.model.row_errors(view.X[rows]), view.codes[rows])
    error = error + 2.0**-52 * np.abs(margin)
    low, high = low + int(np.sum(margin < -error)), high - int(np.sum(margin > error))
    rows = rows[np.abs(margin) <= error]
    if len(rows) <= MOST_EXACT:
        wrong = sum(not _exactly_right(view.model, view.X[i], view.codes[i]) for i in rows)
        low, high = low + wrong, high - (len(rows) - wrong)
    return low, high


def _exactly_right(model: Linear, x: np.ndarray, code: int) -> bool:
    """Decide one row in rational arithmetic; zero and ties are errors."""
    row = [Fraction(v) for v in x.tolist()]
    scores = [sum((Fraction(w) * v for w, v in zip(ws, row)), Fraction(b)) for ws, b in zip(model.W.tolist(), model.b.tolist())]
    if model.binary:
        return scores[0] > 0 if code == 1 else scores[0] < 0
    return all(scores[code] > other for k, other in enumerate(scores) if k != code)


def predicted(view: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the predicted class of each row, and whether the checker is sure of it."""
    scores, errors = view.scores
    guess = (scores[:, 0] > 0).astype(np.int64) if view.model.binary else scores.argmax(axis=1)
    margin, error = margins(view.model, scores, errors, guess)
    return guess, margin > error + 2.0**-52 * np.abs(margin)

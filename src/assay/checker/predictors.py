"""The checker's own predictors: decision values of a stored model, each with a bound on its error."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.numerics import U, above, gamma
from assay.checker.record import Refused, Rejected

MOST_EXACT = 256
"""Rows of a block that are decided in exact arithmetic, at most; more are left open."""


class Predictor:
    """What the rules ask of any family of models; a family overrides what it has."""

    classes: tuple[str, ...] | None = None
    width = 1  # numbers that it makes of a row while it predicts, which limits the rows of a block
    reads_gaps = False  # whether a row may lack values
    loss = "absolute"  # what the mean loss of a model without classes is about
    degree: int | None = None  # of the polynomials that its scores are, if they are any
    compared = True  # whether the scores of a classifier are compared with each other, instead of voting in pairs

    @property
    def columns(self) -> int:
        """Number of columns the model reads."""
        raise NotImplementedError

    @property
    def binary(self) -> bool:
        """True for a classifier with one score: second class iff it is above zero."""
        return False

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores (rows, K) and error bounds (K,) for rows no larger than `largest`, column by
        column."""
        raise Rejected("such a model has no scores")

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        """Return error bounds (rows, K) for these rows alone."""
        raise Rejected("such a model has no scores")

    def exact_scores(self, x: np.ndarray) -> list[Fraction]:
        """Return the scores of one row in rational arithmetic."""
        raise Refused("the scores of such a model are not rational numbers")

    def losses(self, view: Any, clip: float, low: float) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the loss of each row clipped to [low, low + clip], less low, from below and above."""
        scores, errors = view.scores
        if scores.shape[1] != 1 or view.targets.shape[1] != 1:
            raise Rejected("it needs a regression with one target")
        residual = np.abs(view.targets - scores)[:, 0]
        slack = errors[0] + 4 * U * residual
        return np.clip(residual - slack, 0.0, clip), np.minimum(residual + slack, clip)

    def check_encoding(self, table: Any) -> None:
        """Reject the encoding of the table model that this model is the member of, if it needs a certain one."""

    def own_growth(self, descriptor: Any, points: int) -> Decimal | None:
        """Return ln of a bound of the number of ways in which a class of hypotheses that only this family has labels
        so many points, after checking that the model belongs to it; None for other classes."""
        return None

    def price(self, descriptor: Any) -> int:
        """Return by how much delta is divided because the size of the class was not fixed in advance."""
        return 1

    def weight_norm(self) -> tuple[float, float]:
        """Return bounds, from below and above, of the length of weights and intercept, all outputs together."""
        raise Rejected("it needs scores that are linear in the columns or in a kernel's space")

    def squared_lengths(self, X: np.ndarray) -> np.ndarray:
        """Return an upper bound of the squared length of each row in the space of the weights."""
        raise Rejected("it needs scores that are linear in the columns or in a kernel's space")


class DensityModel(Predictor):
    """A model whose scores are ln p(x)."""

    loss = "log"

    def log_bounds(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of ln p(x) for each row, from below and above; -infinity where the density is zero."""
        raise NotImplementedError

    def losses(self, view: Any, clip: float, low: float) -> tuple[np.ndarray, np.ndarray]:
        least, most = (-bound - low for bound in reversed(self.log_bounds(view.X, view.largest)))
        slack = 4 * U * (np.abs(np.clip(most, -clip, clip)) + abs(low))
        return np.clip(least - slack, 0.0, clip), np.clip(most + slack, 0.0, clip)


class DistanceModel(Predictor):
    """A model that stands for a set of points (centres, a flat): its loss is the squared distance to it."""

    loss = "distance"

    def squared_distances(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the squared distance of each row, from below and above."""
        raise NotImplementedError

    def losses(self, view: Any, clip: float, low: float) -> tuple[np.ndarray, np.ndarray]:
        least, most = self.squared_distances(view.X)
        return np.clip(least, 0.0, clip), np.minimum(most, clip)


@dataclass(frozen=True)
class Linear(Predictor):
    """Scores X W' + b of a linear model: one row of W per output."""

    W: np.ndarray  # (K, d)
    b: np.ndarray  # (K,)
    classes: tuple[str, ...] | None = None
    degree = 1

    @property
    def columns(self) -> int:
        return self.W.shape[1]

    @property
    def binary(self) -> bool:
        return self.classes is not None and len(self.W) == 1

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = (X @ self.W[0])[:, None] if len(self.W) == 1 else X @ self.W.T
        return values + self.b, self._error(np.abs(self.W) @ largest)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self._error(np.abs(X) @ np.abs(self.W).T)

    def _error(self, magnitude: np.ndarray) -> np.ndarray:
        return gamma(2 * self.W.shape[1] + 8) * (magnitude + np.abs(self.b))

    def exact_scores(self, x: np.ndarray) -> list[Fraction]:
        row = [Fraction(value) for value in x.tolist()]
        pairs = zip(self.W.tolist(), self.b.tolist())
        return [sum((Fraction(w) * v for w, v in zip(weights, row)), Fraction(b)) for weights, b in pairs]

    def weight_norm(self) -> tuple[float, float]:
        return norm_bounds(float(np.sum(self.W * self.W)), 0.0, self)

    def squared_lengths(self, X: np.ndarray) -> np.ndarray:
        return above(np.einsum("ij,ij->i", X, X), X.shape[1] + 4)


def norm_bounds(square: float, slip: float, model: Any) -> tuple[float, float]:
    """Return bounds of |(w, b)| from |w|^2, which is off by `slip` and by the rounding of a plain sum."""
    offsets = math.fsum(model.b * model.b)
    rounding = gamma(4 * (model.columns + len(model.b)) * max(1, len(model.b)) + 64) * (square + offsets)
    low, high = (square + offsets) - slip - rounding, (square + offsets) + slip + rounding
    if not math.isfinite(high):
        raise Refused("the length of the weights overflows")
    return math.sqrt(max(low, 0.0)) * (1 - 1e-15), above(math.sqrt(max(high, 0.0)))


@dataclass(frozen=True)
class Quadratic(Predictor):
    """Scores <u, A u> + <w, u> + b, u = x - center: one A, w, b per output."""

    center: np.ndarray  # (d,)
    A: np.ndarray  # (K, d, d)
    w: np.ndarray  # (K, d)
    b: np.ndarray  # (K,)
    classes: tuple[str, ...] | None
    degree = 2

    @property
    def columns(self) -> int:
        return len(self.center)

    @property
    def binary(self) -> bool:
        return len(self.A) == 1

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._evaluate(X - self.center, self.A, self.w, self.b), self._error(largest[None, :])[0]

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self._error(np.abs(X))

    def _error(self, size: np.ndarray) -> np.ndarray:
        u = size + np.abs(self.center)  # |x - c| is off by U (|x| + |c|), which this magnitude holds
        return gamma(4 * self.columns + 32) * self._evaluate(u, *map(np.abs, (self.A, self.w, self.b)))

    @staticmethod
    def _evaluate(u: np.ndarray, *parts: np.ndarray) -> np.ndarray:
        return np.stack([np.einsum("ij,ij->i", u @ A + w, u) + b for A, w, b in zip(*parts)], axis=1)

    def exact_scores(self, x: np.ndarray) -> list[Fraction]:
        u = [Fraction(a) - Fraction(c) for a, c in zip(x.tolist(), self.center.tolist())]
        found = []
        for A, w, b in zip(self.A.tolist(), self.w.tolist(), self.b.tolist()):
            rows = (sum((Fraction(a) * v for a, v in zip(row, u)), Fraction(c)) for row, c in zip(zip(*A), w))
            found.append(sum((r * v for r, v in zip(rows, u)), Fraction(b)))
        return found


def margins(model: Predictor, scores: np.ndarray, errors: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return score of the true class minus the best other one, and a bound of its error; right iff above
    0."""
    known = np.maximum(codes, 0)
    if model.binary:
        margin, error = np.where(known == 1, scores[:, 0], -scores[:, 0]), errors[..., 0]
    else:
        rows = np.arange(len(scores))
        others = scores.copy()
        others[rows, known] = -np.inf
        margin = scores[rows, known] - others.max(axis=1)
        error = above(2 * errors.max(axis=-1), 2) + 2.0**-52 * np.abs(margin)
    return np.where(codes < 0, -np.inf, margin), error


def error_counts(
    model: Predictor, X: np.ndarray, codes: np.ndarray, scores: np.ndarray, errors: np.ndarray
) -> tuple[int, int]:
    """Return how many rows are certainly wrong, and how many are not certainly right.

    Rows that the bound for the whole block leaves open get a bound of their own, then exact arithmetic; where scores
    are exact (counts of votes), a margin of zero is a tie and an error.
    """
    margin, error = margins(model, scores, errors, codes)
    tie = (margin == 0) & (error == 0)
    # What is not a number, after an overflow, compares as false: such a row is neither certainly right nor wrong.
    low, high = int(np.sum((margin < -error) | tie)), int(np.sum(~(margin > error)))
    rows = np.flatnonzero(~(np.abs(margin) > error) & ~tie)
    if len(rows):
        margin, error = margins(model, scores[rows], model.row_errors(X[rows]), codes[rows])
        low, high = low + int(np.sum(margin < -error)), high - int(np.sum(margin > error))
        rows = rows[~(np.abs(margin) > error)]
    if len(rows) <= MOST_EXACT:
        try:
            wrong = sum(not _exactly_right(model, X[i], codes[i]) for i in rows)
        except Refused:  # such rows stay open
            return low, high
        low, high = low + wrong, high - (len(rows) - wrong)
    return low, high


def _exactly_right(model: Predictor, x: np.ndarray, code: int) -> bool:
    scores = model.exact_scores(x)
    if model.binary:
        return scores[0] > 0 if code == 1 else scores[0] < 0
    return all(scores[code] > other for k, other in enumerate(scores) if k != code)


def predicted(view: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the predicted class of each row, and whether the checker is sure of it."""
    scores, errors = view.scores
    guess = (scores[:, 0] > 0).astype(np.int64) if view.model.binary else scores.argmax(axis=1)
    margin, error = margins(view.model, scores, errors, guess)
    return guess, margin > error

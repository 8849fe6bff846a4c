"""The checker's own predictors: decision values of a stored model, each with a bound on its error.

A claim is about what `predict` says, which rounds too. So an error bound here holds the rounding of two sums, the
checker's and the learner's, whatever their order: where a margin exceeds it, both decide alike. A row within the bound
is open: an error where the claim bounds errors from above, none where it bounds them from below. Nothing is settled by
better arithmetic than the learner's. Votes that are counted without rounding have the error zero; tied ones are open
too, unless `first_of_equals` says that the learner's rule is the first class.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from assay.checker.numerics import U, above, gamma
from assay.checker.record import Refused, Rejected


class Predictor:
    """What the rules ask of any family of models; a family overrides what it has."""

    classes: tuple[str, ...] | None = None
    width = 1  # numbers that it makes of a row while it predicts, which limits the rows of a block
    reads_gaps = False  # whether a row may lack values
    loss = "absolute"  # what the mean loss of a model without classes is about
    degree: int | None = None  # of the polynomials that its scores are, if they are any
    first_of_equals = False  # whether `predict` gives the first class where exact scores (of error 0) are tied
    scores_are_probabilities = False  # of a classifier, whose probabilities are else the logistic function of them
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

    def losses(self, view: Any, clip: float, low: float) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the loss of each row clipped to [low, low + clip], less low, from below and above."""
        scores, errors = view.bounds
        if scores.shape[1] != 1 or view.targets.shape[1] != 1:
            raise Rejected("it needs a regression with one target")
        residual = np.abs(view.targets - scores)[:, 0]
        slack = errors[:, 0] + 4 * U * residual
        return np.clip(residual - slack, 0.0, clip), np.minimum(residual + slack, clip)

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

    Rows that the bound for the whole block leaves open get a bound of their own.
    """
    wrong, right = _judged(model, scores, errors, codes)
    rows = np.flatnonzero(~(wrong | right))
    if len(rows):
        wrong[rows], right[rows] = _judged(model, *_by_row(model, X[rows]), codes[rows])
    return int(wrong.sum()), int((~right).sum())


def _judged(
    model: Predictor, scores: np.ndarray, errors: np.ndarray, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows are certainly predicted wrong, and which certainly right."""
    margin, error = margins(model, scores, errors, codes)
    # What is not a number, after an overflow, compares as false: such a row is neither certainly right nor wrong.
    wrong, right = margin < -error, margin > error
    if model.first_of_equals:
        tied, first = (margin == 0) & (error == 0), _guess(model, scores) == codes
        wrong, right = wrong | (tied & ~first), right | (tied & first)
    return wrong, right


def _by_row(model: Predictor, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of these rows and the bounds of each row: both of one and the same array, since votes that are
    open in a larger block may be certain here."""
    return model.scores(X, np.abs(X).max(axis=0, initial=0.0))[0], model.row_errors(X)


def _guess(model: Predictor, scores: np.ndarray) -> np.ndarray:
    return (scores[:, 0] > 0).astype(np.int64) if model.binary else scores.argmax(axis=1)


def decided(
    model: Predictor, X: np.ndarray, result: tuple[np.ndarray, np.ndarray] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the predicted class of each row, and whether `predict` certainly says the same; `result` are the scores
    and their errors, if they are known."""
    scores, errors = model.scores(X, np.abs(X).max(axis=0, initial=0.0)) if result is None else result
    guess = _guess(model, scores)
    sure = _judged(model, scores, errors, guess)[1]
    rows = np.flatnonzero(~sure)
    if len(rows):
        result = _by_row(model, X[rows])
        guess[rows] = _guess(model, result[0])
        sure[rows] = _judged(model, *result, guess[rows])[1]
    return guess, sure


def predicted(view: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the predicted class of each row of a block, and whether `predict` certainly says the same."""
    return decided(view.model, view.X, view.scores)

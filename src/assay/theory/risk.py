"""Empirical and expected risk, and what their difference says about a model.

Losses are those of `assay.losses.predictions`. The empirical risk is the mean of a loss over a sample, the expected
risk its mean under the distribution: exact for a finite one, by quadrature or sampling otherwise.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.losses.predictions import zero_one
from assay.theory import _checks as check
from assay.theory import vc

Loss = Callable[[np.ndarray, np.ndarray], np.ndarray]


def empirical_risk(losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Return the weighted mean of the losses; times the sum of weights it is the training objective."""
    values = np.asarray(losses, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError("losses must be a non-empty one-dimensional array of finite numbers.")
    if sample_weight is None:
        return math.fsum(values) / values.size
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != values.shape or weight.min() < 0.0 or not weight.sum() > 0.0:
        raise ValueError("sample_weight must be non-negative numbers, one for each loss, not all 0.")
    return math.fsum(values * weight) / math.fsum(weight)


class FiniteDistribution:
    """Points x with labels y and their probabilities: everything about it is a finite sum."""

    def __init__(self, X: ArrayLike, y: ArrayLike, probability: ArrayLike) -> None:
        self.X, self.y = np.asarray(X), np.asarray(y)
        self.probability = np.asarray(probability, dtype=np.float64)
        p = self.probability
        if len(self.X) != len(self.y) or p.shape != (len(self.y),) or p.min() < 0 or abs(math.fsum(p) - 1) > 1e-9:
            raise ValueError("X, y and probability must have one length, probabilities >= 0 adding up to 1.")

    def risk(self, predict: Callable[[np.ndarray], np.ndarray], loss: Loss = zero_one) -> float:
        """Return the expected loss of a predictor, exactly."""
        return float(math.fsum(self.probability * loss(self.y, predict(self.X))))

    def disagreement(self, first: Callable, second: Callable) -> float:
        """Return P[first(x) != second(x)], a pseudo-metric on hypotheses."""
        return float(math.fsum(self.probability[np.asarray(first(self.X)) != np.asarray(second(self.X))]))

    def mean(self) -> np.ndarray:
        """Return E X, one number for each coordinate of the points."""
        return self.probability @ self._rows()

    def covariance(self) -> np.ndarray:
        """Return the matrix E (X_i - mu_i)(X_j - mu_j) = E X_i X_j - mu_i mu_j of the points."""
        centred = (self._rows() - self.mean()) * np.sqrt(self.probability)[:, None]
        return centred.T @ centred

    def _rows(self) -> np.ndarray:
        return np.asarray(self.X, dtype=np.float64).reshape(len(self.y), -1)

    def sample(self, m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return m independent rows and their labels."""
        rows = rng.choice(len(self.y), size=m, p=self.probability / self.probability.sum())
        return self.X[rows], self.y[rows]

    def bayes(self) -> tuple[dict, float]:
        """Return the label with the largest probability at each point, and the error of that classifier."""
        table: dict = {}
        for x, label, p in zip(self.X, self.y.tolist(), self.probability.tolist()):
            key = tuple(np.atleast_1d(x).tolist())
            table.setdefault(key, {})[label] = table.get(key, {}).get(label, 0.0) + p
        best = {key: max(shares, key=lambda v: shares[v]) for key, shares in table.items()}
        error = math.fsum(sum(shares.values()) - max(shares.values()) for shares in table.values())
        return best, float(error)


class MonteCarlo(NamedTuple):
    """A simulated mean, its standard error and an interval for the true mean."""

    value: float
    standard_error: float
    lower: float
    upper: float


def simulated_risk(
    losses_of: Callable[[np.random.Generator, int], ArrayLike],
    *,
    draws: int = 10_000,
    delta: float = 0.05,
    high: float | None = None,
    seed: int = 0,
) -> MonteCarlo:
    """Return the mean of the losses that `losses_of(rng, draws)` draws.

    With losses in [0, high] the interval is Hoeffding's; without, 4 standard errors either side, and no
    promise.
    """
    values = np.asarray(losses_of(np.random.default_rng(seed), check.whole("draws", draws, low=2)), dtype=np.float64)
    mean, error = math.fsum(values) / values.size, float(values.std(ddof=1)) / math.sqrt(values.size)
    if high is None:
        return MonteCarlo(mean, error, mean - 4.0 * error, mean + 4.0 * error)
    check.losses(values, high)
    half = high * math.sqrt(math.log(2.0 / check.failure(delta)) / (2.0 * values.size))
    return MonteCarlo(mean, error, max(0.0, mean - half), min(high, mean + half))


def diagnose(training: float, test: float, small_training: float, small_test: float) -> str:
    """Return which of four cases a training and a test risk are, given what counts as small for each.

    >>> diagnose(0.02, 0.30, 0.05, 0.10)
    'overfits'
    """
    fits = check.number("training", training) <= check.number("small_training", small_training)
    holds = check.number("test", test) <= check.number("small_test", small_test)
    if fits:
        return "generalises well" if holds else "overfits"
    return "too good to be true" if holds else "underfits"


class StructuralChoice(NamedTuple):
    """The class with the smallest bound, and the bound of each."""

    chosen: int
    bounds: tuple[float, ...]


def structural_minimum(
    errors: Sequence[int], n: int, delta: float, log_growths: Sequence[vc.LogGrowth]
) -> StructuralChoice:
    """Return the class whose training errors plus VC confidence are smallest, delta shared equally.

    The confidence is `vc.massart_deviation`, so every printed value bounds the error of the model chosen in
    that class, and the smallest of them may be quoted.
    """
    if len(errors) != len(log_growths) or not errors:
        raise ValueError("errors and log_growths must have the same, positive length.")
    share = check.failure(delta) / len(errors)
    counted = [check.errors(k, n) for k in errors]
    bounds = tuple(k / m + vc.massart_deviation(m, share, g) for (k, m), g in zip(counted, log_growths))
    return StructuralChoice(int(np.argmin(bounds)), bounds)


def regularised_minimum(risks: ArrayLike, penalties: ArrayLike, strength: float) -> int:
    """Return the index of the smallest risk + strength * penalty; ties go to the smaller penalty."""
    risk, penalty = np.asarray(risks, dtype=np.float64), np.asarray(penalties, dtype=np.float64)
    if risk.ndim != 1 or risk.shape != penalty.shape or risk.size == 0:
        raise ValueError("risks and penalties must be lists of one length.")
    total = risk + check.number("strength", strength, low=0.0) * penalty
    return int(np.lexsort((penalty, total))[0])

"""Where error comes from: bias, variance and noise; approximation, estimation and optimisation."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.theory import _checks as check


class BiasVariance(NamedTuple):
    """Means over test points: squared bias, variance, noise, and the squared error seen directly."""

    bias2: float
    variance: float
    noise: float
    error: float
    standard_error: float

    @property
    def total(self) -> float:
        return self.bias2 + self.variance + self.noise


def bias_variance(
    learner: Any,
    sample: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]],
    X: ArrayLike,
    truth: ArrayLike,
    *,
    noise: float = 0.0,
    runs: int = 200,
    seed: int = 0,
) -> BiasVariance:
    """Return the parts of the squared error of a regressor over training sets drawn by `sample(rng)`.

    E (y - f(x))^2 = (E f - truth)^2 + Var f + noise at each test point x, f varying with the training set
    and y = truth plus noise of that variance. The squared bias is corrected for the variance of the mean
    over `runs`; `error` is the mean squared error against freshly drawn noisy targets, so error and total
    agree within its standard error.
    """
    from sklearn.base import clone

    X, truth = np.asarray(X, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    runs, rng = check.whole("runs", runs, low=2), np.random.default_rng(seed)
    noise = check.number("noise", noise, low=0.0)
    predictions = np.array([clone(learner).fit(*sample(rng)).predict(X) for _ in range(runs)])
    variance = predictions.var(axis=0, ddof=1)
    bias2 = (predictions.mean(axis=0) - truth) ** 2 - variance / runs
    targets = truth + math.sqrt(noise) * rng.standard_normal(predictions.shape)
    errors = ((targets - predictions) ** 2).mean(axis=1)
    return BiasVariance(
        float(bias2.mean()),
        float(variance.mean()),
        noise,
        float(errors.mean()),
        float(errors.std(ddof=1)) / math.sqrt(runs),
    )


class ErrorDecomposition(NamedTuple):
    """Parts of the risk of a model above zero: Bayes error, approximation, estimation, optimisation."""

    bayes: float
    approximation: float
    estimation: float
    optimisation: float


def error_decomposition(bayes: float, best: float, minimiser: float, model: float) -> ErrorDecomposition:
    """Return how much of the risk of a model is due to noise, class, sample and solver; it is their sum.

    bayes: the smallest risk of any classifier; best: of the class; minimiser: risk of the exact empirical
    minimiser; model: risk of what the solver returned. The last part may be negative: a worse optimum can
    generalise better.
    """
    for name, low, high in (("best", bayes, best), ("minimiser", best, minimiser)):
        if high < low:
            raise ValueError(f"{name} must not be below the smallest risk of a larger set; got {high} < {low}.")
    return ErrorDecomposition(bayes, best - bayes, minimiser - best, model - minimiser)

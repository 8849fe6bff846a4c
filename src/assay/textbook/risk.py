"""Risk: losses of predictions, empirical and expected risk, bias and variance, regularised risk minimisation.

The empirical risk is the mean loss over a sample, the expected risk the mean loss under the distribution: a finite sum,
or by sampling. Losses here are of predictions, loss(y, f(x)); those of scores are in `assay.losses`.

    minimise_risk    min over w, b of  Omega(w) + C sum_i loss(y_i, f_i),    f = X w + b

Method: the alternating direction method of multipliers (ADMM; Boyd et al. 2011, 3.3 and 3.4.1) on the copies f and
        u = w. Omega and the loss enter by their proximal operators, prox(v, t) = argmin_u t g(u) + 1/2 (u - v)^2; the
        remaining least-squares problem is factorised once. For a kernel, pass its embedding of the rows as X.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve

from assay.losses import Loss, absolute_error, squared_error
from assay.theory import _checks as check
from assay.theory import vc

LossFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]
_RELAXATION = 1.6
_BALANCE = 10.0  # ratio of the two residuals beyond which the step is changed


def zero_one(y: ArrayLike, prediction: ArrayLike) -> np.ndarray:
    """Return 1 where the prediction differs from y, else 0.

    Parameters
    ----------
    y : array-like
        Labels or targets.
    prediction : array-like
        Predictions.

    Returns
    -------
    ndarray
        Loss of each row.

    Examples
    --------
    >>> zero_one(["a", "b"], ["a", "c"]).tolist()
    [0.0, 1.0]
    """
    return (np.asarray(y) != np.asarray(prediction)).astype(np.float64)


def squared(y: ArrayLike, prediction: ArrayLike) -> np.ndarray:
    """Return (y - f)^2, twice `assay.losses.squared_error`.

    Parameters
    ----------
    y : array-like
        Labels or targets.
    prediction : array-like
        Predictions.

    Returns
    -------
    ndarray
        Loss of each row.

    Examples
    --------
    >>> squared([1.0], [3.0]).tolist()
    [4.0]
    """
    return 2.0 * squared_error.value(np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64))


def absolute(y: ArrayLike, prediction: ArrayLike) -> np.ndarray:
    """Return |y - f|.

    Parameters
    ----------
    y : array-like
        Labels or targets.
    prediction : array-like
        Predictions.

    Returns
    -------
    ndarray
        Loss of each row.

    Examples
    --------
    >>> absolute([1.0], [3.0]).tolist()
    [2.0]
    """
    return absolute_error.value(np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64))


def log_loss(y: ArrayLike, probability: ArrayLike) -> np.ndarray:
    """Return -ln P(y | x) for labels 0..K-1 and rows of class probabilities, clipped away from 0 by 1e-15.

    Parameters
    ----------
    y : array-like
        Labels or targets.
    probability : array-like
        Class probabilities, a row for each label.

    Returns
    -------
    ndarray
        Loss of each row.

    Examples
    --------
    >>> log_loss([0], [[1.0, 0.0]]).tolist() == [0.0]
    True
    """
    labels, p = np.asarray(y), np.asarray(probability, dtype=np.float64)
    if p.ndim != 2 or labels.shape != (len(p),) or labels.dtype.kind not in "iu" or labels.max() >= p.shape[1]:
        raise ValueError(f"y must be integers below the number of columns of the probabilities {p.shape}.")
    if not np.allclose(p.sum(axis=1), 1.0) or p.min() < 0.0:
        raise ValueError("each row of probabilities must be non-negative and add up to 1.")
    return -np.log(np.clip(p[np.arange(len(p)), labels], 1e-15, None))


def empirical_risk(losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Return the weighted mean of the losses; times the sum of weights it is the training objective.

    Parameters
    ----------
    losses : array-like
        Loss of each row.
    sample_weight : array-like or None
        Weights of the rows; None: each has the weight 1.

    Returns
    -------
    float
        The mean.
    """
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
    """Points x with labels y and their probabilities: everything about it is a finite sum.

    Parameters
    ----------
    X : array-like
        Points, one in each row.
    y : array-like
        Labels or targets.
    probability : array-like
        Probability of each point; their sum is 1.
    """

    def __init__(self, X: ArrayLike, y: ArrayLike, probability: ArrayLike) -> None:
        self.X, self.y = np.asarray(X), np.asarray(y)
        self.probability = np.asarray(probability, dtype=np.float64)
        p = self.probability
        if len(self.X) != len(self.y) or p.shape != (len(self.y),) or p.min() < 0 or abs(math.fsum(p) - 1) > 1e-9:
            raise ValueError("X, y and probability must have one length, probabilities >= 0 adding up to 1.")

    def risk(self, predict: Callable[[np.ndarray], np.ndarray], loss: LossFunction = zero_one) -> float:
        """Return the expected loss of a predictor, exactly.

        Parameters
        ----------
        predict : callable
            The predictor, a function of rows.
        loss : callable, default=zero_one
            Loss of labels and predictions.
        """
        return float(math.fsum(self.probability * loss(self.y, predict(self.X))))

    def disagreement(self, first: Callable, second: Callable) -> float:
        """Return P[first(x) != second(x)], a pseudo-metric on hypotheses.

        Parameters
        ----------
        first, second : callable
            Functions from rows to labels.
        """
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
        """Return m independent rows and their labels.

        Parameters
        ----------
        m : int
            Number of rows.
        rng : Generator
            Random generator.
        """
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
    """A simulated mean, its standard error and an interval for the true mean.

    Parameters
    ----------
    value : float
        The mean.
    standard_error : float
        Its standard error.
    lower, upper : float
        Ends of the interval.
    """

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

    Parameters
    ----------
    losses_of : callable
        `losses_of(rng, draws)` returns so many losses.
    draws : int, default=10000
        Number of losses.
    delta : float, default=0.05
        Probability with which the statement may fail.
    high : float or None
        Largest possible loss; None: unknown.
    seed : int, default=0
        Seed of what is drawn.

    Returns
    -------
    MonteCarlo
        Mean and interval.
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

    Parameters
    ----------
    training : float
        Training risk.
    test : float
        Test risk.
    small_training : float
        Largest training risk that counts as small.
    small_test : float
        Largest test risk that counts as small.

    Returns
    -------
    str
        Name of the case.

    Examples
    --------
    >>> diagnose(0.02, 0.30, 0.05, 0.10)
    'overfits'
    """
    fits = check.number("training", training) <= check.number("small_training", small_training)
    holds = check.number("test", test) <= check.number("small_test", small_test)
    if fits:
        return "generalises well" if holds else "overfits"
    return "too good to be true" if holds else "underfits"


class StructuralChoice(NamedTuple):
    """The class with the smallest bound, and the bound of each.

    Parameters
    ----------
    chosen : int
        Number of the class.
    bounds : tuple of float
        Bound of each class.
    """

    chosen: int
    bounds: tuple[float, ...]


def structural_minimum(
    errors: Sequence[int], n: int, delta: float, log_growths: Sequence[vc.LogGrowth]
) -> StructuralChoice:
    """Return the class whose training errors plus VC confidence are smallest, delta shared equally.

    The confidence is `vc.massart_deviation`, so every printed value bounds the error of the model chosen in
    that class, and the smallest of them may be quoted.

    Parameters
    ----------
    errors : sequence of int
        Training errors of the best of each class.
    n : int
        Number of rows.
    delta : float
        Probability with which the statement may fail.
    log_growths : sequence of float or callable
        Logarithm of the growth function of each class.

    Returns
    -------
    StructuralChoice
        The choice.
    """
    if len(errors) != len(log_growths) or not errors:
        raise ValueError("errors and log_growths must have the same, positive length.")
    share = check.failure(delta) / len(errors)
    counted = [check.errors(k, n) for k in errors]
    bounds = tuple(k / m + vc.massart_deviation(m, share, g) for (k, m), g in zip(counted, log_growths))
    return StructuralChoice(int(np.argmin(bounds)), bounds)


def regularised_minimum(risks: ArrayLike, penalties: ArrayLike, strength: float) -> int:
    """Return the index of the smallest risk + strength * penalty; ties go to the smaller penalty.

    Parameters
    ----------
    risks : array-like
        Risk of each candidate.
    penalties : array-like
        Penalty of each candidate.
    strength : float
        Weight of the penalties.

    Returns
    -------
    int
        Number of the candidate.
    """
    risk, penalty = np.asarray(risks, dtype=np.float64), np.asarray(penalties, dtype=np.float64)
    if risk.ndim != 1 or risk.shape != penalty.shape or risk.size == 0:
        raise ValueError("risks and penalties must be lists of one length.")
    total = risk + check.number("strength", strength, low=0.0) * penalty
    return int(np.lexsort((penalty, total))[0])


class BiasVariance(NamedTuple):
    """Means over test points: squared bias, variance, noise, and the squared error seen directly.

    Parameters
    ----------
    bias2 : float
        Mean squared bias.
    variance : float
        Mean variance of the predictions.
    noise : float
        Variance of the noise.
    error : float
        Mean squared error, seen directly.
    standard_error : float
        Its standard error.
    """

    bias2: float
    variance: float
    noise: float
    error: float
    standard_error: float

    @property
    def total(self) -> float:
        """The sum of the parts."""
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

    Parameters
    ----------
    learner : learner
        Regressor that can be cloned and fitted.
    sample : callable
        `sample(rng)` returns a training set (X, y).
    X : array-like
        Test points.
    truth : array-like
        Expected target at each of them.
    noise : float, default=0.0
        Variance of the noise of a target.
    runs : int, default=200
        Number of training sets.
    seed : int, default=0
        Seed of what is drawn.

    Returns
    -------
    BiasVariance
        The parts of the error.
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
    """Parts of the risk of a model above zero: Bayes error, approximation, estimation, optimisation.

    Parameters
    ----------
    bayes : float
        Bayes error.
    approximation : float
        Risk of the best of the class above it.
    estimation : float
        Risk of the empirical minimiser above that.
    optimisation : float
        Risk of the model above that.
    """

    bayes: float
    approximation: float
    estimation: float
    optimisation: float


def error_decomposition(bayes: float, best: float, minimiser: float, model: float) -> ErrorDecomposition:
    """Return how much of the risk of a model is due to noise, class, sample and solver; it is their sum.

    bayes: the smallest risk of any classifier; best: of the class; minimiser: risk of the exact empirical
    minimiser; model: risk of what the solver returned. The last part may be negative: a worse optimum can
    generalise better.

    Parameters
    ----------
    bayes : float
        Smallest risk of any classifier.
    best : float
        Smallest risk in the class.
    minimiser : float
        Risk of the exact empirical minimiser.
    model : float
        Risk of what the solver returned.

    Returns
    -------
    ErrorDecomposition
        The parts.
    """
    for name, low, high in (("best", bayes, best), ("minimiser", best, minimiser)):
        if high < low:
            raise ValueError(f"{name} must not be below the smallest risk of a larger set; got {high} < {low}.")
    return ErrorDecomposition(bayes, best - bayes, minimiser - best, model - minimiser)


class Penalty(NamedTuple):
    """value(w), and prox(v, t) = argmin_w t value(w) + 1/2 |w - v|^2.

    Parameters
    ----------
    value : callable
        Penalty of weights w.
    prox : callable
        prox(v, t) = argmin_w t value(w) + 1/2 |w - v|^2.
    """

    value: Callable[[np.ndarray], float]
    prox: Callable[[np.ndarray, float], np.ndarray]


L2 = Penalty(lambda w: 0.5 * float(w @ w), lambda v, t: v / (1 + t))
L1 = Penalty(lambda w: float(np.abs(w).sum()), lambda v, t: np.sign(v) * np.maximum(np.abs(v) - t, 0.0))


def elastic_net(l1: float, l2: float) -> Penalty:
    """Return the penalty l1 |w|_1 + l2/2 |w|^2.

    Parameters
    ----------
    l1 : float
        Weight of the absolute values.
    l2 : float
        Weight of the squares.

    Returns
    -------
    Penalty
        The penalty.
    """
    if not (np.isfinite([l1, l2]).all() and min(l1, l2) >= 0):
        raise ValueError(f"elastic_net: l1 and l2 must be finite numbers >= 0; got {l1!r} and {l2!r}.")
    return Penalty(lambda w: l1 * L1.value(w) + l2 * L2.value(w), lambda v, t: L1.prox(v, t * l1) / (1 + t * l2))


class Minimum(NamedTuple):
    """w, b, the objective there, the steps taken, and whether both residuals met the tolerance.

    Parameters
    ----------
    w : ndarray
        Weights.
    b : float
        Intercept.
    objective : float
        The objective there.
    n_iter : int
        Number of steps.
    converged : bool
        Whether both residuals met the tolerance.
    """

    w: np.ndarray
    b: float
    objective: float
    n_iter: int
    converged: bool


def minimise_risk(
    X: np.ndarray,
    y: np.ndarray,
    loss: Loss,
    penalty: Penalty = L2,
    *,
    C: float = 1.0,
    intercept: bool = True,
    tol: float = 1e-9,
    max_iter: int = 50_000,
) -> Minimum:
    """Return the minimum of penalty(w) + C sum loss(y_i, <w, x_i> + b); labels are y = -1, +1.

    tol : stop when the copies agree with w and f, and stand still, to tol relative to their length.

    Parameters
    ----------
    X : ndarray
        Rows.
    y : ndarray
        Labels or targets.
    loss : Loss
        A loss of `assay.losses`.
    penalty : Penalty, default=L2
        The penalty.
    C : float, default=1.0
        Weight of the losses.
    intercept : bool, default=True
        Whether there is an intercept.
    tol : float, default=1e-09
        Relative tolerance of both residuals.
    max_iter : int, default=50000
        Largest number of steps.

    Returns
    -------
    Minimum
        The minimiser.

    Examples
    --------
    >>> from assay.losses import hinge
    >>> X, y = np.array([[3.0, 3.0], [4.0, 3.0], [1.0, 1.0]]), np.array([1.0, 1.0, -1.0])
    >>> found = minimise_risk(X, y, hinge, C=10.0)
    >>> [round(float(w), 6) for w in found.w], round(found.b, 6)
    ([0.5, 0.5], -2.0)
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if not (np.isfinite(C) and C > 0):
        raise ValueError(f"minimise_risk: C must be a finite number > 0; got {C!r}.")
    if loss.prox is None:
        raise ValueError(f"minimise_risk: the loss {loss.name} has no proximal operator here.")
    A = np.column_stack([X, np.ones(len(X))]) if intercept else X
    d = X.shape[1]
    normal = A.T @ A
    normal[np.arange(d), np.arange(d)] += 1.0
    factor = cho_factor(normal)
    copies, dual, rho = np.zeros(len(X) + d), np.zeros(len(X) + d), 1.0
    w, step, converged = np.zeros(A.shape[1]), 0, False
    while step < max_iter and not converged:
        step += 1
        target = copies - dual
        w = cho_solve(factor, A.T @ target[: len(X)] + np.pad(target[len(X) :], (0, A.shape[1] - d)))
        exact = np.concatenate([A @ w, w[:d]])
        mixed = _RELAXATION * exact + (1 - _RELAXATION) * copies + dual
        before = copies
        copies = np.concatenate([loss.prox(y, mixed[: len(X)], C / rho), penalty.prox(mixed[len(X) :], 1 / rho)])
        dual = mixed - copies
        apart, moved = float(np.linalg.norm(exact - copies)), float(np.linalg.norm(copies - before))
        converged = bool(max(apart, moved) <= tol * (1e-3 + max(np.linalg.norm(exact), np.linalg.norm(copies))))
        if step % 50 == 0 and not 1 / _BALANCE < apart / max(moved, 1e-300) < _BALANCE:
            factor_of_rho = 2.0 if apart > moved else 0.5
            rho, dual = rho * factor_of_rho, dual / factor_of_rho
    b = float(w[d]) if intercept else 0.0
    value = penalty.value(w[:d]) + C * float(loss.value(y, X @ w[:d] + b).sum())
    return Minimum(w[:d], b, value, step, converged)

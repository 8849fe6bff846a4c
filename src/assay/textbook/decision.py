"""Bayesian decision theory: posterior, conditional risk, the Bayes rule, and its error for Gaussian classes.

    P(c | x) = P(c) P(x | c) / sum_l P(l) P(x | l)         P(c) is the prior, P(x | c) the likelihood
    R(i | x) = sum_j cost[i, j] P(j | x)                   the conditional risk of decision i
    h(x)     = argmin_i R(i | x),   r = E_x R(h(x) | x)    the Bayes rule, and the Bayes risk

With zero-one cost the risk of i is 1 - P(i | x), so that the Bayes rule predicts the class of largest posterior.

Linear discriminant analysis is the Bayes rule if every class is Gaussian, all share a covariance and the priors are the
true ones. The error of any linear rule on such classes is then known in closed form: along w, class k is normal with
mean <w, mu_k> and variance w^T Sigma w.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve
from scipy.special import logsumexp, ndtr

from assay.theory import _checks as check

REJECT = -1
"""The decision of `minimum_risk` not to decide."""


def posterior(prior: Any, likelihood: Any, *, log: bool = False) -> np.ndarray:
    """Return P(c | x) of each row, from P(c) and P(x | c); each row sums to 1.

    Parameters
    ----------
    prior : (K,)
        P(c), numbers >= 0 that sum to 1.
    likelihood : (K,) or (n, K)
        P(x | c) of each class: probabilities from a table, or values of densities.
    log : bool
        Whether `likelihood` holds logarithms, which do not underflow; -inf stands for 0.

    Returns
    -------
    ndarray
        P(c | x), a row for each x.

    Examples
    --------
    A rare disease (1 %), a test that finds 95 % of the ill and alarms 5 % of the healthy:

    >>> posterior([0.01, 0.99], [0.95, 0.05]).round(4).tolist()
    [0.161, 0.839]
    """
    prior = _distribution("prior", prior)
    given = np.asarray(likelihood, dtype=np.float64)
    if given.ndim not in (1, 2) or given.shape[-1] != len(prior):
        raise ValueError(f"likelihood must have a column for each of {len(prior)} classes; got shape {given.shape}.")
    if np.isnan(given).any() or (given == np.inf).any() or (not log and (given < 0).any()):
        raise ValueError("likelihood must be numbers >= 0, or with log=True their logarithms; some entries are not.")
    with np.errstate(divide="ignore"):
        joint = np.log(prior) + (given if log else np.log(given))
    total = logsumexp(joint, axis=-1, keepdims=True)
    if np.any(total == -np.inf):
        row = int(np.argmax(np.ravel(total) == -np.inf))
        raise ValueError(f"likelihood: no class can have produced row {row}, so it has no posterior.")
    shares = np.exp(joint - total)
    return shares / shares.sum(axis=-1, keepdims=True)


def conditional_risk(posterior: Any, cost: Any) -> np.ndarray:
    """Return R(i | x) = sum_j cost[i, j] P(j | x), (n, decisions), of every decision.

    cost[i, j] is what decision i costs if the class is j; there may be more or fewer decisions than classes.

    Parameters
    ----------
    posterior : array-like
        P(c | x), a row for each x.
    cost : array-like
        Cost of decision i if the class is j, in row i and column j.

    Returns
    -------
    ndarray
        Risk of each decision, for each row.

    Examples
    --------
    >>> conditional_risk([[0.3, 0.7]], [[0, 10], [1, 0]]).tolist()
    [[7.0, 0.3]]
    """
    shares = _posterior(posterior)
    return shares @ _cost(cost, shares.shape[-1]).T


def minimum_risk(posterior: Any, cost: Any = None, *, reject: float | None = None) -> np.ndarray:
    """Return the decision of least risk for each row (the first of several); no rule has a smaller risk.

    Parameters
    ----------
    posterior : array-like of shape (n, K)
        P(c | x), a row for each x.
    cost : (decisions, K), optional
        None is 1 for an error and 0 otherwise; then the decision is the class of largest posterior.
    reject : float >= 0, optional
        What it costs not to decide. Where every decision risks more, the answer is `REJECT` (-1).

    Returns
    -------
    ndarray
        Number of the decision for each row.

    Examples
    --------
    >>> P = [[0.9, 0.1], [0.6, 0.4]]
    >>> minimum_risk(P).tolist(), minimum_risk(P, [[0, 5], [1, 0]]).tolist(), minimum_risk(P, reject=0.2).tolist()
    ([0, 0], [0, 1], [0, -1])
    """
    shares = _posterior(posterior)
    risk = conditional_risk(shares, 1 - np.eye(shares.shape[-1]) if cost is None else cost)
    best = risk.argmin(axis=-1)
    if reject is None:
        return best
    limit = check.number("reject", reject, low=0.0, why="the cost of not deciding")
    return np.where(risk.min(axis=-1) > limit, REJECT, best)


def bayes_risk(joint: Any, cost: Any = None) -> float:
    """Return the least risk that any rule has, for a finite distribution: joint[x, c] = P(x, c), which sums to 1.

    With 0/1 cost it is 1 - sum_x max_c P(x, c) = 1 - E max_c P(c | x).

    Parameters
    ----------
    joint : array-like
        P(x, c), a row for each x.
    cost : array-like or None
        Cost of decision i if the class is j; None: 1 for an error, 0 otherwise.

    Returns
    -------
    float
        The Bayes risk.

    Examples
    --------
    >>> round(bayes_risk([[0.4, 0.1], [0.2, 0.3]]), 12)
    0.3
    """
    table = np.asarray(joint, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"joint must have a row for each x and a column for each class; got shape {table.shape}.")
    _distribution("joint", table.ravel())
    costs = _cost(1 - np.eye(table.shape[1]) if cost is None else cost, table.shape[1])
    return float((table @ costs.T).min(axis=1).sum())


def gaussian_bayes_risk(distance: float, prior: float = 0.5) -> float:
    """Return the least error rate for two Gaussian classes of one covariance whose means are `distance` standard
    deviations apart (the Mahalanobis distance), the first of probability `prior`.

    Equal classes: Phi(-distance / 2). In general, with t = ln((1 - prior) / prior) / distance,
    prior Phi(t - distance / 2) + (1 - prior) Phi(-t - distance / 2).

    Parameters
    ----------
    distance : float
        Mahalanobis distance of the means.
    prior : float, default=0.5
        Probability of the first class.

    Returns
    -------
    float
        The Bayes error rate.

    Examples
    --------
    >>> round(gaussian_bayes_risk(2.0), 6)
    0.158655
    """
    distance = check.number("distance", distance, low=0.0)
    prior = check.probability("prior", prior)
    if distance == 0:
        return min(prior, 1 - prior)
    shift = np.log((1 - prior) / prior) / distance
    return float(prior * ndtr(shift - distance / 2) + (1 - prior) * ndtr(-shift - distance / 2))


def _distribution(name: str, values: Any) -> np.ndarray:
    result = np.asarray(values, dtype=np.float64)
    if result.ndim != 1 or not result.size or not (result >= 0).all() or abs(result.sum() - 1) > 1e-9:
        raise ValueError(f"{name} must be numbers >= 0 that sum to 1; got {result!r}.")
    return result


def _posterior(values: Any) -> np.ndarray:
    result = np.asarray(values, dtype=np.float64)
    if result.ndim != 2 or not (result >= -1e-12).all() or not (np.abs(result.sum(axis=1) - 1) <= 1e-6).all():
        raise ValueError(f"posterior must have rows of numbers >= 0 that sum to 1; got shape {result.shape}.")
    return result


def _cost(values: Any, classes: int) -> np.ndarray:
    result = np.asarray(values, dtype=np.float64)
    if result.ndim != 2 or not len(result) or result.shape[1] != classes or not np.isfinite(result).all():
        raise ValueError(
            f"cost must have a row for each decision and a column for each of {classes} classes, all finite; "
            f"got shape {result.shape}."
        )
    return result


class LinearRule(NamedTuple):
    """Second class iff <coef, x> + intercept > 0.

    Parameters
    ----------
    coef : ndarray
        Weights.
    intercept : float
        Intercept.
    """

    coef: np.ndarray
    intercept: float


def bayes_rule(means: Any, covariance: Any, priors: Any = (0.5, 0.5)) -> LinearRule:
    """Return the rule of least error for two Gaussian classes with means (2, d) and one covariance (d, d).

    Parameters
    ----------
    means : array-like
        Means of the two classes.
    covariance : array-like
        Common covariance matrix.
    priors : array-like, default=(0.5, 0.5)
        Probabilities of the two classes.

    Returns
    -------
    LinearRule
        The rule.

    Examples
    --------
    >>> bayes_rule([[0.0], [2.0]], [[1.0]])
    LinearRule(coef=array([2.]), intercept=-2.0)
    """
    means, covariance, priors = _checked(means, covariance, priors)
    coef = solve(covariance, means[1] - means[0], assume_a="pos")
    intercept = float(np.log(priors[1] / priors[0]) - coef @ (means[0] + means[1]) / 2)
    return LinearRule(coef, intercept)


def gaussian_risk(coef: Any, intercept: float, means: Any, covariance: Any, priors: Any = (0.5, 0.5)) -> float:
    """Return the probability that a linear rule errs on a new row of two Gaussian classes with one covariance.

    p_0 Phi((<w, mu_0> + b) / s) + p_1 Phi(-(<w, mu_1> + b) / s), s^2 = w^T Sigma w.

    Parameters
    ----------
    coef : array-like
        Weights of the rule.
    intercept : float
        Intercept of the rule.
    means : array-like
        Means of the two classes.
    covariance : array-like
        Common covariance matrix.
    priors : array-like, default=(0.5, 0.5)
        Probabilities of the two classes.

    Returns
    -------
    float
        Error rate.

    Examples
    --------
    >>> round(gaussian_risk(*bayes_rule([[0.0], [2.0]], [[1.0]]), [[0.0], [2.0]], [[1.0]]), 6)
    0.158655
    """
    means, covariance, priors = _checked(means, covariance, priors)
    w = np.ravel(np.asarray(coef, dtype=np.float64))
    spread = np.sqrt(w @ covariance @ w)
    if not spread > 0:
        raise ValueError("gaussian_risk: coef must not be zero, or the rule has no direction.")
    first, second = (means @ w + float(np.ravel(intercept)[0])) / spread
    return float(priors[0] * ndtr(first) + priors[1] * ndtr(-second))


def _checked(means: Any, covariance: Any, priors: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    means, covariance, priors = (np.asarray(part, dtype=np.float64) for part in (means, covariance, priors))
    if means.ndim != 2 or len(means) != 2 or covariance.shape != (means.shape[1],) * 2:
        raise ValueError(
            f"means must be (2, d) and covariance (d, d); got shapes {means.shape} and {covariance.shape}."
        )
    if priors.shape != (2,) or not (priors > 0).all() or abs(priors.sum() - 1) > 1e-9:
        raise ValueError(f"priors must be two positive numbers that sum to 1; got {priors!r}.")
    return means, covariance, priors

"""Algorithmic stability and sample compression.

A learner that hardly changes when one row changes does not overfit.

Replace-one stability beta: for every sample and every row put in the place of another, the loss at every
point changes by at most beta. For a loss in [0, M] (Bousquet and Elisseeff 2002; Mohri et al. 2018, chapter
14), with probability 1 - delta,  L <= L_n + beta + (2 n beta + M) sqrt(ln(1/delta) / (2n)).

For w minimising (1/n) sum loss_i(w) + (strength/2) |w|^2 with a convex sigma-Lipschitz loss and |x| <= r,
strong convexity on both samples gives |w - w'| <= 2 sigma r / (strength n), hence beta = 2 sigma sigma' r^2
/ (strength n) for an evaluation loss that is sigma'-Lipschitz. There must be no unpenalised intercept,
strength is fixed in advance and r holds for every possible row, not only for those seen.

Sample compression is about a model that can be rebuilt from a few of its training rows.

Theorem (Littlestone and Warmuth 1986; Floyd and Warmuth 1995; Langford 2005). Fix in advance a map that
rebuilds a classifier from k rows and a message, weights P(k) that add up to at most 1 and weights of
messages likewise. With probability 1 - delta over n independent rows, for every choice of k rows and
message: if the rebuilt classifier makes e errors on the other n - k rows, its error rate is at most the
Clopper-Pearson limit of e in n - k at delta P(k) P(message) / C(n, k). Rows are handed over in the order of
their indices; if the order carries information, k! more is paid.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.theory import _checks as check
from assay.theory.concentration import clopper_pearson_upper, log_choose


def uniform_stability(
    n: int,
    strength: float,
    radius: float,
    *,
    lipschitz: float = 1.0,
    evaluation_lipschitz: float | None = None,
) -> float:
    """Return beta = 2 sigma sigma' r^2 / (strength n) of a minimiser of mean loss + (strength/2) |w|^2.

    A support vector machine with scikit-learn's C has strength 1/(C n) and sigma = 1. The evaluation loss
    has the constant of the training loss unless another is given.

    Parameters
    ----------
    n : int
        Number of training rows.
    strength : float
        Strong convexity of the objective (the penalty's weight).
    radius : float
        Length of the longest row.
    lipschitz : float, default=1.0
        Lipschitz constant of the loss in the score.
    evaluation_lipschitz : float or None
        Lipschitz constant of the loss that is evaluated; None: the same.

    Returns
    -------
    float
        Uniform stability beta.
    """
    n, strength = check.whole("n", n), check.positive("strength", strength)
    sigma = check.positive("lipschitz", lipschitz)
    other = sigma if evaluation_lipschitz is None else check.positive("evaluation_lipschitz", evaluation_lipschitz)
    return check.enlarge(2.0 * sigma * other * check.positive("radius", radius) ** 2 / (strength * n))


def stability_bound(
    loss: float, beta: float, n: int, delta: float, *, high: float = 1.0, removal: bool = False
) -> float:
    """Return loss + beta + (2 n beta + high) sqrt(ln(1/delta) / (2n)), `loss` the mean training loss.

    With `removal` beta is leave-one-out stability and the bound is loss + 2 beta + (4 n beta + high)
    sqrt(...), theorem 12 of Bousquet and Elisseeff 2002. At most `high`.

    Parameters
    ----------
    loss : float
        Mean training loss.
    beta : float
        Uniform stability.
    n : int
        Number of training rows.
    delta : float
        Probability with which the statement may fail.
    high : float, default=1.0
        Largest possible loss.
    removal : bool, default=False
        Whether beta is leave-one-out stability.

    Returns
    -------
    float
        Upper bound of the error rate or expected loss.
    """
    n, high = check.whole("n", n), check.positive("high", high)
    loss, beta = check.number("loss", loss, low=0.0, high=high), check.number("beta", beta, low=0.0)
    factor = 2.0 if removal else 1.0
    root = math.sqrt(-math.log(check.failure(delta)) / (2.0 * n))
    return min(high, check.enlarge(loss + factor * beta + (2.0 * factor * n * beta + high) * root))


def suboptimality_slack(gap: float, strength: float, radius: float, lipschitz: float = 1.0) -> float:
    """Return 2 sigma' r sqrt(2 gap / strength), to be added when the shipped w is only `gap`-optimal.

    Half of it for the training loss and half for the risk: |w - w*| <= sqrt(2 gap / strength).

    Parameters
    ----------
    gap : float
        Suboptimality of the objective.
    strength : float
        Strong convexity of the objective (the penalty's weight).
    radius : float
        Length of the longest row.
    lipschitz : float, default=1.0
        Lipschitz constant of the loss in the score.

    Returns
    -------
    float
        What is to be added to beta.
    """
    gap, strength = check.number("gap", gap, low=0.0), check.positive("strength", strength)
    slope = check.positive("lipschitz", lipschitz) * check.positive("radius", radius)
    return check.enlarge(2.0 * slope * math.sqrt(2.0 * gap / strength))


class MeasuredStability(NamedTuple):
    """Largest changes seen: of the loss anywhere when a row is removed, or replaced, and of its own loss.

    Parameters
    ----------
    removal : float
        Largest change of the loss anywhere when a row is left out.
    replacement : float
        Largest change of the loss anywhere when a row is replaced.
    own : float
        Largest change of a row's own loss when it is left out.
    """

    removal: float
    replacement: float
    own: float


def measured_stability(
    learner: Any,
    X: ArrayLike,
    y: ArrayLike,
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    rows: Iterable[int] | None = None,
) -> MeasuredStability:
    """Return the largest change of `loss(y, output)` when one row is left out, or replaced by the next one.

    Output is the learner's decision_function if it has one, else predict. This is a lower bound of the true
    stability: only these changes are tried, on this sample. The learner is cloned and refitted twice for
    each of `rows` (all by default).

    Parameters
    ----------
    learner : learner
        Learner that can be cloned and fitted.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.
    loss : callable
        Loss as a function of labels and outputs.
    rows : iterable of int or None
        Numbers of the rows that are changed; None: all.

    Returns
    -------
    MeasuredStability
        The largest changes.
    """
    from sklearn.base import clone

    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if len(X) < 3:
        raise ValueError(f"leaving rows out needs at least 3 of them; got {len(X)}.")

    def losses(keep: np.ndarray) -> np.ndarray:
        fitted = clone(learner).fit(X[keep], y[keep])
        output = getattr(fitted, "decision_function", fitted.predict)(X)
        return np.asarray(loss(y, output), dtype=np.float64)

    everything = np.arange(len(X))
    base = losses(everything)
    removal = replacement = own = 0.0
    for i in everything if rows is None else rows:
        without = np.abs(losses(np.delete(everything, i)) - base)
        replaced = everything.copy()
        replaced[i] = (i + 1) % len(X)
        removal, own = max(removal, float(without.max())), max(own, float(without[i]))
        replacement = max(replacement, float(np.abs(losses(replaced) - base).max()))
    return MeasuredStability(removal, replacement, own)


def log_size_weight(k: int, largest: int | None = None) -> float:
    """Return ln P(k): uniform on 0..largest if that is given, else 6 / (pi^2 (k+1)^2).

    Parameters
    ----------
    k : int
        Number of rows that rebuild the model.
    largest : int or None
        Largest k allowed in advance; None: any, with weights that fall.

    Returns
    -------
    float
        Natural logarithm of the weight.
    """
    k = check.whole("k", k, low=0)
    if largest is None:
        return math.log(6.0) - 2.0 * math.log(math.pi * (k + 1))
    if k > check.whole("largest", largest, low=0):
        raise ValueError(f"k = {k} exceeds the largest size {largest} that was fixed in advance.")
    return -math.log(largest + 1)


def compression_bound(
    errors: int,
    n: int,
    k: int,
    delta: float,
    *,
    largest: int | None = None,
    log_message: float = 0.0,
    ordered: bool = False,
) -> float:
    """Return the error bound of a model rebuilt from k of n rows with `errors` errors on the other n - k.

    `largest` selects the weight of the size (see `log_size_weight`), `log_message` <= 0 is ln of the
    message's weight.

    Parameters
    ----------
    errors : int
        Errors on the n - k rows that do not rebuild the model.
    n : int
        Number of training rows.
    k : int
        Number of rows that rebuild the model.
    delta : float
        Probability with which the statement may fail.
    largest : int or None
        Largest k allowed in advance; None: any, with weights that fall.
    log_message : float, default=0.0
        Natural logarithm of the weight of the message sent along, at most 0.
    ordered : bool, default=False
        Whether the order of the k rows matters.

    Returns
    -------
    float
        Upper bound of the error rate or expected loss.

    Examples
    --------
    >>> round(compression_bound(0, 1000, 3, 0.05), 4)
    0.025
    """
    n, k = check.whole("n", n), check.whole("k", k, low=0)
    if k >= n:
        raise ValueError(f"k must be less than n (some rows must be left to judge by); got k = {k}, n = {n}.")
    if check.whole("errors", errors, low=0) > n - k:
        raise ValueError(f"errors are counted on the n - k = {n - k} other rows; got {errors}.")
    log_weight = log_size_weight(k, largest) + check.number("log_message", log_message, high=0.0)
    log_weight -= log_choose(n, k) + (math.lgamma(k + 1) if ordered else 0.0)
    log_weight *= 1.0 + 1e-13 if log_weight < 0.0 else 1.0  # outward: the error of the logarithms of factorials
    return clopper_pearson_upper(errors, n - k, delta, log_weight=min(0.0, log_weight))

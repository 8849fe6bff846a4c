"""PAC-Bayes bounds: an average over hypotheses pays for its distance from a prior.

Theorem (Seeger 2002; Maurer 2004). Fix a prior P before seeing n independent rows. With probability 1 -
delta, for every distribution Q over hypotheses at once, kl(mean loss of Q, risk of Q) <= (KL(Q, P) +
ln(Xi(n)/delta)) / n, for losses in [0, 1]; Xi(n) <= 2 sqrt(n). A majority vote errs only if half of the
weight errs, hence a factor 2, or 4 when the losses of pairs are used.

References: Langford and Shawe-Taylor 2002; Langford 2005; Germain et al. 2015; Lorenzen, Igel and Seldin
2019; Masegosa, Lorenzen, Igel and Seldin 2020.

Bounds for votes whose members were each trained on some of the rows and are evaluated on the others (out of bag).
Member j has a loss l_j in [0, 1] (0 or 1, or one minus the share it gives to the true class); W is its mean over
the members. The vote is wrong only where W >= w: w = 1/2 for mean shares, ceil(T/2)/T for one vote each of T
members. So a function f >= 0 with f(W) >= 1 for W >= w bounds the error of the vote by E f(W):

    first          f(W) = W / w                          factor 1/w,         loss l_j
    tandem         f(W) = (W / w)^2                      factor 1/w^2,       loss l_i l_j of a pair
    disagreement   f(W) = W + W (1 - W) / w              factor (1 + 1/w)/2, loss of a pair as below

The last is concave, 0 at 0 and 1 at w and at 1; it is the mean over pairs of (1 + 1/w)(l_i + l_j)/2 - l_i l_j / w,
which lies between 0 and its value (1 + 1/w)/2 at (0, 1). It is smallest where members err on the same rows.

Theorem. Let g_k, k = 1..N, be losses in [0, 1] with risks G_k, and e_k their means over n_k rows that g_k does not
depend on, n the harmonic mean of the n_k. For fixed r > 0, with probability 1 - delta,

    mean G  <=  (1 - exp(-r mean e - ln(1/delta)/n)) / (1 - exp(-r)).

Proof. Let D(G) = -ln(1 - G (1 - exp(-r))). By convexity of exp(-r x), E exp(n_k (D(G_k) - r e_k)) <= 1, given the
rows that g_k depends on. n (mean D(G_k) - r mean e_k) is an average of n_k (D(G_k) - r e_k) with weights
proportional to 1/n_k, so its exponential has mean at most 1 by Jensen's inequality, whatever the dependence of the
terms. Markov's inequality, and D convex. The rate r is the best of a grid fixed in advance.

References: Catoni 2007 (the form of the bound); Lorenzen, Igel and Seldin 2019; Masegosa, Lorenzen, Igel and Seldin
2020 (tandem losses, out-of-bag rows).
"""

import math
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfc
from scipy.stats import binom

from assay.theory import _checks as check
from assay.theory.concentration import kl_upper, maurer_xi


def gibbs_bound(loss: float, divergence: float, n: int, delta: float) -> float:
    """Return kl_upper(loss, (divergence + ln(Xi(n)/delta)) / n): the risk of a hypothesis drawn from Q.

    `loss` is the mean training loss under Q, `divergence` KL(Q, P) in nats.

    Parameters
    ----------
    loss : float
        Mean training loss, in [0, 1].
    divergence : float
        KL divergence of posterior and prior, in nats.
    n : int
        Number of training rows.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Upper bound of the risk.
    """
    loss = check.number("loss", loss, low=0.0, high=1.0)
    divergence = check.number("divergence", divergence, low=0.0)
    return kl_upper(loss, (divergence + math.log(maurer_xi(n)) - math.log(check.failure(delta))) / n)


class LinearPacBayes(NamedTuple):
    """Bounds of a linear classifier and of its noisy version, and the length mu that attains them.

    Parameters
    ----------
    bound : float
        Bound of the linear classifier.
    gibbs_bound : float
        Bound of the classifier with noisy weights.
    gibbs_loss : float
        Its mean training loss.
    mu : float
        Length of the mean of the weights.
    """

    bound: float
    gibbs_bound: float
    gibbs_loss: float
    mu: float


def linear_gibbs_loss(normalised_margins: ArrayLike, mu: float, counts: ArrayLike | None = None) -> float:
    """Return the mean of P[N(0,1) > mu z_i], z_i = y_i w.x_i / (|w| |x_i|): errors of weights N(mu w, I).

    With `counts`, z_i stands for so many rows.

    Parameters
    ----------
    normalised_margins : array-like
        y_i <w, x_i> / (|w| |x_i|) of the training rows.
    mu : float
        Length of the mean of the weights.
    counts : array-like or None
        How many rows each margin stands for; None: one each.

    Returns
    -------
    float
        The mean error.
    """
    z = np.asarray(normalised_margins, dtype=np.float64)
    if z.ndim != 1 or z.size == 0 or not np.all(np.abs(z) <= 1.0 + 1e-9):
        raise ValueError("normalised margins y w.x / (|w| |x|) must be a non-empty list of numbers in [-1, 1].")
    mu = check.number("mu", mu, low=0.0)
    wrong = 0.5 * erfc(mu * z / math.sqrt(2.0))
    weights = None if counts is None else np.asarray(counts, dtype=np.float64)
    return min(1.0, float(np.average(wrong, weights=weights)) * (1.0 + 1e-12))


def linear_bound(normalised_margins: ArrayLike, delta: float, *, mu: float | None = None) -> LinearPacBayes:
    """Return the error bound of sign(w.x), twice that of weights N(mu w/|w|, I) against the prior N(0, I).

    KL = mu^2/2. The statement holds for all mu at once, so the best is taken unless one is given. The
    feature space and its scaling must be fixed without looking at the rows; an intercept is a constant
    feature of fixed scale.

    Parameters
    ----------
    normalised_margins : array-like
        y_i <w, x_i> / (|w| |x_i|) of the training rows.
    delta : float
        Probability with which the statement may fail.
    mu : float or None
        Length of the mean of the weights; None: the best.

    Returns
    -------
    LinearPacBayes
        Both bounds.
    """
    n = len(np.asarray(normalised_margins))

    def at(length: float) -> LinearPacBayes:
        loss = linear_gibbs_loss(normalised_margins, length)
        risk = gibbs_bound(loss, 0.5 * length * length, n, delta)
        return LinearPacBayes(min(1.0, 2.0 * risk), risk, loss, length)

    if mu is not None:
        return at(check.number("mu", mu, low=0.0))
    grid = [at(2.0 ** (j / 2.0)) for j in range(-6, 29)]
    best = min(grid, key=lambda found: found.gibbs_bound)
    finer = [at(best.mu * 2.0 ** (j / 16.0)) for j in range(-8, 9)]
    return min(finer, key=lambda found: found.gibbs_bound)


def divergence(weights: ArrayLike, prior: ArrayLike | None = None) -> float:
    """Return KL(weights, prior) = sum w ln(w/p) in nats; the prior is uniform unless given.

    Parameters
    ----------
    weights : array-like
        Weights of the members; their sum is 1.
    prior : array-like or None
        Weights fixed before the rows were seen; None: all are equal.

    Returns
    -------
    float
        The divergence, in nats.
    """
    w = _distribution("weights", weights)
    p = np.full(w.size, 1.0 / w.size) if prior is None else _distribution("prior", prior)
    if p.size != w.size or np.any((p == 0.0) & (w > 0.0)):
        raise ValueError("prior must have as many entries as weights and be positive wherever they are.")
    used = w > 0.0
    return max(0.0, math.fsum(w[used] * (np.log(w[used]) - np.log(p[used]))))


def vote_bound(
    errors: ArrayLike,
    rows: ArrayLike,
    delta: float,
    *,
    weights: ArrayLike | None = None,
    prior: ArrayLike | None = None,
) -> float:
    """Return twice the PAC-Bayes bound of the mean error: a bound for the weighted vote (first order).

    errors[j] of rows[j] rows that member j was not trained on (out-of-bag rows) are wrong. With n the
    smallest of rows, 2 kl_upper(sum w_j e_j, (KL + ln(2 sqrt(n)/delta)) / n). Index sets must be drawn
    without looking at the data, and T and the prior fixed in advance; ties count as errors.

    Parameters
    ----------
    errors : array-like
        Number of out-of-bag errors of each member.
    rows : array-like
        Number of out-of-bag rows of each member.
    delta : float
        Probability with which the statement may fail.
    weights : array-like or None
        Weights of the members; their sum is 1. None: all are equal.
    prior : array-like or None
        Weights fixed before the rows were seen; None: all are equal.

    Returns
    -------
    float
        Upper bound of the error rate of the vote.
    """
    rates, n = _rates(errors, rows)
    if rates.ndim != 1:
        raise ValueError("errors must hold one count for each member.")
    w = np.full(rates.size, 1.0 / rates.size) if weights is None else _distribution("weights", weights)
    return _vote(float(w @ rates), divergence(w, prior), n, delta, 2.0)


def tandem_bound(
    errors: ArrayLike,
    rows: ArrayLike,
    delta: float,
    *,
    weights: ArrayLike | None = None,
    prior: ArrayLike | None = None,
) -> float:
    """Return four times the PAC-Bayes bound of the mean joint error of two members (second order).

    errors[i, j] counts the rows out-of-bag for both i and j, rows[i, j] of them, on which both are wrong;
    the diagonal holds the members' own errors. 4 kl_upper(w'Ew, (2 KL + ln(2 sqrt(n)/delta)) / n), n the
    smallest of rows. By Markov's inequality for the square of the share of wrong votes.

    Parameters
    ----------
    errors : array-like
        Number of rows on which members i and j are both wrong.
    rows : array-like
        Number of rows out-of-bag for both.
    delta : float
        Probability with which the statement may fail.
    weights : array-like or None
        Weights of the members; their sum is 1. None: all are equal.
    prior : array-like or None
        Weights fixed before the rows were seen; None: all are equal.

    Returns
    -------
    float
        Upper bound of the error rate of the vote.
    """
    rates, n = _rates(errors, rows)
    if rates.ndim != 2 or rates.shape[0] != rates.shape[1] or not np.array_equal(rates, rates.T):
        raise ValueError("errors and rows must be square and symmetric, one entry for each pair of members.")
    w = np.full(len(rates), 1.0 / len(rates)) if weights is None else _distribution("weights", weights)
    return _vote(float(w @ rates @ w), 2.0 * divergence(w, prior), n, delta, 4.0)


def _vote(rate: float, paid: float, n: int, delta: float, factor: float) -> float:
    log_term = math.log(2.0 * math.sqrt(n)) - math.log(check.failure(delta))
    return min(1.0, factor * kl_upper(min(1.0, rate * (1.0 + 1e-12)), (paid + log_term) / n))


def _distribution(name: str, values: ArrayLike) -> np.ndarray:
    w = np.asarray(values, dtype=np.float64)
    if w.ndim != 1 or w.size == 0 or not np.all(w >= 0.0) or abs(math.fsum(w) - 1.0) > 1e-9:
        raise ValueError(f"{name} must be non-negative numbers that add up to 1.")
    return w


def _rates(errors: ArrayLike, rows: ArrayLike) -> tuple[np.ndarray, int]:
    wrong, total = np.asarray(errors), np.asarray(rows)
    if wrong.shape != total.shape or wrong.size == 0 or not np.all((wrong >= 0) & (wrong <= total) & (total >= 1)):
        raise ValueError("errors and rows must have one shape, rows >= 1 and 0 <= errors <= rows everywhere.")
    return wrong / total, int(total.min())


RATES = range(-5, 3)
"""Exponents of two: the grid of rates r."""
_CHUNK = 8_192  # rows summed at a time, so few that single precision counts them without error
SHARES = {"first": 0.5, "tandem": 0.25, "disagreement": 0.25}
"""Forms of the bound, and the share of delta that each has."""


class VoteBound(NamedTuple):
    """A bound of the error of a vote; the form and the exponent of the rate that attain it, its mean loss and rows.

    Parameters
    ----------
    bound : float
        The bound.
    form : str
        Name of the inequality that gave it.
    exponent : int
        Exponent of the rate that attains it.
    loss : float
        Mean loss of the members, or of pairs.
    rows : float
        Number of rows it was taken over.
    """

    bound: float
    form: str
    exponent: int
    loss: float
    rows: float


class OutOfBag:
    """Sums over rows from which every form of the bound follows; fed block by block.

    Parameters
    ----------
    members : int
        Number of members.
    """

    def __init__(self, members: int):
        self.rows, self.single, self.both = (np.zeros((members, members)) for _ in range(3))

    def add(self, losses: np.ndarray, out: np.ndarray) -> "OutOfBag":
        """Take in losses (rows, members) in [0, 1] and which of them count: the member did not see the row.

        Parameters
        ----------
        losses : ndarray
            Losses in [0, 1].
        out : ndarray
            Which of them count.
        """
        for i in range(0, len(losses), _CHUNK):
            seen_not = np.ascontiguousarray(out[i : i + _CHUNK], dtype=np.float32)  # sums of 0 and 1 are exact
            self.rows += seen_not.T @ seen_not
            counted = losses[i : i + _CHUNK] * seen_not
            if np.all((counted == 0) | (counted == 1)):
                counted = counted.astype(np.float32)
            self.single += counted.T @ seen_not.astype(counted.dtype)
            self.both += counted.T @ counted
        return self

    def loss(self, form: str, threshold: float) -> tuple[float, float, float]:
        """Return the mean loss of a form, scaled to [0, 1], the harmonic mean of its rows, and its factor.

        Parameters
        ----------
        form : str
            Name of the form of the bound.
        """
        total: np.ndarray
        rows: np.ndarray
        if form == "first":
            total, rows, factor = self.single.diagonal(), self.rows.diagonal(), 1 / threshold
        elif form == "tandem":
            total, rows, factor = self.both, self.rows, 1 / threshold**2
        else:
            factor = (1 + 1 / threshold) / 2
            total = self.single + self.single.T - self.both / (threshold * factor)
            rows = self.rows
        if rows.min() < 1:
            return 1.0, 1.0, factor
        return min(1.0, max(0.0, float((total / rows).mean()))), float(rows.size / (1 / rows).sum()), factor

    def bound(self, delta: float, threshold: float = 0.5) -> VoteBound:
        """Return the smallest bound of the vote's error over forms and rates, which share delta."""
        delta, threshold = check.failure(delta), check.number("threshold", threshold, low=0.25, high=1.0)
        results = []
        for form, share in SHARES.items():
            loss, rows, factor = self.loss(form, threshold)
            for exponent in RATES:
                risk = mean_risk_bound(loss, rows, delta * share / len(RATES), 2.0**exponent)
                results.append(VoteBound(check.up(factor * risk), form, exponent, loss, rows))
        return min(results)


def mean_risk_bound(loss: float, rows: float, delta: float, rate: float) -> float:
    """Return (1 - exp(-rate loss - ln(1/delta)/rows)) / (1 - exp(-rate)): a bound of the mean risk.

    Parameters
    ----------
    loss : float
        Mean loss over the rows, in [0, 1].
    rows : float
        Number of rows.
    delta : float
        Probability with which the statement may fail.
    rate : float
        Parameter of the inequality, above 0 and fixed in advance.

    Returns
    -------
    float
        Upper bound of the mean risk.

    Examples
    --------
    >>> round(mean_risk_bound(0.1, 400.0, 0.05, 0.5), 4)
    0.142
    """
    paid = rate * loss - math.log(check.failure(delta)) / check.positive("rows", rows)
    return check.enlarge(math.expm1(-paid) / math.expm1(-check.positive("rate", rate)))


# Members that err independently of each other ------------------------------------------------------------------


def independent_error(members: int, error: float) -> float:
    """Return the error rate of a vote of members that err independently, each with the same probability below 1/2.

        P[H wrong] = P[Bin(T, 1 - eps) <= floor(T / 2)] = sum over k <= T/2 of C(T, k) (1 - eps)^k eps^(T - k)

    A tie of an even number of members counts as an error. Members of a real ensemble are fitted to the same rows and
    never independent: this is what independence would give, not what an ensemble does.

    Parameters
    ----------
    members : int
        Number of members.
    error : float
        Error rate of each member, below 1/2.

    Returns
    -------
    float
        Error rate of the vote.

    Examples
    --------
    >>> round(independent_error(5, 0.3), 5), round(independent_error(25, 0.35), 7)
    (0.16308, 0.0604449)
    """
    members, error = _independent(members, error)
    return float(binom.cdf(members // 2, members, 1 - error))


def independent_error_bound(members: int, error: float) -> float:
    """Return exp(-T (1 - 2 eps)^2 / 2), Hoeffding's bound of `independent_error`, rounded up.

    Parameters
    ----------
    members : int
        Number of members.
    error : float
        Error rate of each member, below 1/2.

    Returns
    -------
    float
        Upper bound of the error rate of the vote.

    Examples
    --------
    >>> round(independent_error_bound(25, 0.35), 5)
    0.32465
    """
    members, error = _independent(members, error)
    return check.up(math.exp(-0.5 * members * (1 - 2 * error) ** 2))


def _independent(members: int, error: float) -> tuple[int, float]:
    if isinstance(members, bool) or not isinstance(members, Integral) or members < 1:
        raise ValueError(f"members must be an integer >= 1; got {members!r}.")
    rate = check.number("error", error, low=0.0, high=1.0)
    if rate >= 0.5:
        raise ValueError(f"error must be below 1/2, else a larger vote errs more, not less; got {error!r}.")
    return int(members), rate

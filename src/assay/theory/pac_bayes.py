"""PAC-Bayes bounds: an average over hypotheses pays for its distance from a prior.

Theorem (Seeger 2002; Maurer 2004). Fix a prior P before seeing n independent rows. With probability 1 -
delta, for every distribution Q over hypotheses at once, kl(mean loss of Q, risk of Q) <= (KL(Q, P) +
ln(Xi(n)/delta)) / n, for losses in [0, 1]; Xi(n) <= 2 sqrt(n). A majority vote errs only if half of the
weight errs, hence a factor 2, or 4 when the losses of pairs are used.

References: Langford and Shawe-Taylor 2002; Langford 2005; Germain et al. 2015; Lorenzen, Igel and Seldin
2019; Masegosa, Lorenzen, Igel and Seldin 2020.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfc

from assay.theory import _checks as check
from assay.theory.concentration import kl_upper, maurer_xi


def gibbs_bound(loss: float, divergence: float, n: int, delta: float) -> float:
    """Return kl_upper(loss, (divergence + ln(Xi(n)/delta)) / n): the risk of a hypothesis drawn from Q.

    `loss` is the mean training loss under Q, `divergence` KL(Q, P) in nats.
    """
    loss = check.number("loss", loss, low=0.0, high=1.0)
    divergence = check.number("divergence", divergence, low=0.0)
    return kl_upper(loss, (divergence + math.log(maurer_xi(n)) - math.log(check.failure(delta))) / n)


class LinearPacBayes(NamedTuple):
    """Bounds of a linear classifier and of its noisy version, and the length mu that attains them."""

    bound: float
    gibbs_bound: float
    gibbs_loss: float
    mu: float


def linear_gibbs_loss(normalised_margins: ArrayLike, mu: float, counts: ArrayLike | None = None) -> float:
    """Return the mean of P[N(0,1) > mu z_i], z_i = y_i w.x_i / (|w| |x_i|): errors of weights N(mu w, I).

    With `counts`, z_i stands for so many rows.
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
    """Return KL(weights, prior) = sum w ln(w/p) in nats; the prior is uniform unless given."""
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

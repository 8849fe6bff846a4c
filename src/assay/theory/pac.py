"""Finite classes, prefix codes and selection on a hold-out set.

`size` is the number of hypotheses |H| (an integer of any length), fixed before the sample is seen; m (or n)
the number of independent rows; epsilon an error; delta the probability with which a statement may fail.
Every statement is about all hypotheses at once, so it holds for the one that a learner picks.

References: Valiant 1984; Blumer, Ehrenfeucht, Haussler and Warmuth 1987; Mohri, Rostamizadeh and Talwalkar
2018, chapter 2; Langford 2005.
"""

import math

from assay.theory import _checks as check
from assay.theory.concentration import clopper_pearson_upper, kl_upper, log_share, log_union_bound


def realizable_failure(m: int, epsilon: float, size: int, *, exponential: bool = False) -> float:
    """Return |H| (1-epsilon)^m: the chance that some h with error above epsilon makes none on m rows.

    `exponential=True` gives the larger textbook form |H| exp(-m epsilon). At most 1.
    """
    m, epsilon = check.whole("m", m), check.probability("epsilon", epsilon)
    rate = epsilon if exponential else -math.log1p(-epsilon)
    return check.up(math.exp(log_union_bound(-m * rate, size)))


def realizable_error(m: int, delta: float, size: int, *, exponential: bool = False) -> float:
    """Return 1 - (delta/|H|)^(1/m), for every consistent h; textbook form (ln|H| + ln(1/delta))/m."""
    exponent = -log_share(delta, size) / check.whole("m", m)
    return check.up(exponent if exponential else -math.expm1(-exponent))


def realizable_sample_size(epsilon: float, delta: float, size: int, *, exponential: bool = False) -> int:
    """Return the smallest m that leaves every consistent h with error <= epsilon, with chance 1 - delta.

    >>> realizable_sample_size(0.1, 0.05, 3**10, exponential=True), realizable_sample_size(0.1, 0.05, 3**10)
    (140, 133)
    """
    epsilon = check.probability("epsilon", epsilon)
    rate = epsilon if exponential else -math.log1p(-epsilon)
    return check.ceil(-log_share(delta, size) / rate)


def agnostic_failure(m: int, epsilon: float, size: int, *, two_sided: bool = True) -> float:
    """Return 2|H| exp(-2 m epsilon^2): the chance that some h has true and empirical error epsilon apart.

    One-sided (only the true error above the empirical one) without the 2. At most 1.
    """
    m, epsilon = check.whole("m", m), check.probability("epsilon", epsilon)
    return check.up(math.exp(log_union_bound(-2.0 * m * epsilon * epsilon, (1 + two_sided) * size)))


def agnostic_deviation(m: int, delta: float, size: int, *, two_sided: bool = True) -> float:
    """Return sqrt((ln|H| + ln(2/delta)) / (2m)), ln(1/delta) if one-sided: |L - L_m| for all h at once."""
    m, one = check.whole("m", m), log_share(delta, (1 + two_sided) * size)
    return check.enlarge(math.sqrt(-one / (2.0 * m)))


def agnostic_sample_size(epsilon: float, delta: float, size: int, *, two_sided: bool = True) -> int:
    """Return the smallest m whose deviation over the whole class is at most epsilon."""
    epsilon = check.probability("epsilon", epsilon)
    return check.ceil(-log_share(delta, (1 + two_sided) * size) / (2.0 * epsilon * epsilon))


def erm_sample_size(epsilon: float, delta: float, size: int) -> int:
    """Return ceil(2 ln(2|H|/delta) / epsilon^2): then empirical risk minimisation is epsilon-optimal.

    If true and empirical error differ by at most epsilon/2 for all h, the minimiser of the empirical error
    has true error at most min L + epsilon.
    """
    return agnostic_sample_size(check.probability("epsilon", epsilon) / 2.0, delta, size)


def finite_class_bound(k: int, n: int, delta: float, size: int) -> float:
    """Return the error bound of any h in a finite class after k errors in n training rows.

    Clopper-Pearson limit at delta/|H|; the sharpest of the union bounds. Assumes independent rows and a
    class fixed before they were seen (models trained on the same rows are not such a class).

    >>> round(finite_class_bound(0, 100, 0.05, 3**10), 4)
    0.1305
    """
    return clopper_pearson_upper(k, n, delta, log_weight=-check.log_size(size))


def finite_class_loss_bound(loss: float, n: int, delta: float, size: int) -> float:
    """Return the bound kl_upper(loss, ln(|H|/delta)/n) for a mean `loss` in [0, 1] over n rows."""
    n = check.whole("n", n)
    return kl_upper(loss, -log_share(delta, size) / n)


def occam_bound(k: int, n: int, delta: float, log_prior: float) -> float:
    """Return the error bound of a hypothesis with prior exp(log_prior) after k errors in n training rows.

    Theorem (Occam's razor; Blumer et al. 1987, Langford 2005): if the priors of all hypotheses add up to at
    most 1 and were fixed in advance, then with probability 1 - delta the Clopper-Pearson limit at delta
    times the prior holds for all of them at once. A prefix code of b bits is the prior 2^-b, log_prior = -b
    ln 2.
    """
    return clopper_pearson_upper(k, n, delta, log_weight=check.number("log_prior", log_prior, high=0.0))


def occam_loss_bound(loss: float, n: int, delta: float, log_prior: float) -> float:
    """Return kl_upper(loss, (ln(1/prior) + ln(1/delta))/n) for a mean `loss` in [0, 1] over n rows."""
    n, log_prior = check.whole("n", n), check.number("log_prior", log_prior, high=0.0)
    return kl_upper(loss, (-log_prior - math.log(check.failure(delta))) / n)


def holdout_bound(k: int, m: int, delta: float, *, candidates: int = 1) -> float:
    """Return the error bound of the one chosen among `candidates` models after k errors in m hold-out rows.

    Theorem: union bound over Clopper-Pearson limits at delta/candidates. All candidates, counted whether
    reported or not, must be fixed before the hold-out rows are looked at; the choice among them may use the
    rows.

    >>> holdout_bound(5, 100, 0.05) < holdout_bound(5, 100, 0.05, candidates=20)
    True
    """
    return clopper_pearson_upper(k, m, delta, log_weight=-math.log(check.whole("candidates", candidates)))

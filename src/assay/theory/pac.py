"""Finite classes, prefix codes and selection on a hold-out set.

`size` is the number of hypotheses |H| (an integer of any length), fixed before the sample is seen; m (or n)
the number of independent rows; epsilon an error; delta the probability with which a statement may fail.
Every statement is about all hypotheses at once, so it holds for the one that a learner picks.

References: Valiant 1984; Blumer, Ehrenfeucht, Haussler and Warmuth 1987; Mohri, Rostamizadeh and Talwalkar
2018, chapter 2; Langford 2005.

The prefix code of decision trees has any binary numbers as thresholds; no box is fixed in advance. Nodes are written
level by level. One bit tells a leaf from a split; a leaf names one of K labels (K equally likely words), a split one of
d columns and a threshold t <= ... relative to e, the exponent of the last threshold that was written for that column (0
before the first):

    0                                    t = 0
    1, sign, gamma(z), gamma(L), rest    t = +- m 2^(E - L + 1), m odd with L bits, z the place of E - e in
                                         0, 1, -1, 2, -2, ...; the L - 2 bits of m between its first and last

gamma is Elias' code of 1, 2, 3, ... with 2 floor(log2 i) + 1 bits, whose words have sum 2^-length equal to 1. So the
words of thresholds have sum exactly 1 too: 1/2 for zero and 1/2 * 2 * 1/2 * 1 * sum_L 2^-gamma(L) 2^(L-2) 2^-(L-2)
for the others. The sum over all finite trees is at most 1, since it is the probability that a branching process with
two children or none, equally likely, dies out (Kraft's inequality). 2^-bits is a prior for `pac.occam_bound`.
"""

import math
from collections.abc import Iterator

import numpy as np

from assay.theory import _checks as check
from assay.theory.concentration import clopper_pearson_upper, kl_upper, log_share, log_union_bound


def realizable_failure(m: int, epsilon: float, size: int, *, exponential: bool = False) -> float:
    """Return |H| (1-epsilon)^m: the chance that some h with error above epsilon makes none on m rows.

    `exponential=True` gives the larger textbook form |H| exp(-m epsilon). At most 1.

    Parameters
    ----------
    m : int
        Number of rows.
    epsilon : float
        Error, or deviation of the error.
    size : int
        Number of hypotheses, fixed before the rows are seen.
    exponential : bool, default=False
        Whether exp(-epsilon) replaces 1 - epsilon, as in textbooks.

    Returns
    -------
    float
        Upper bound of the probability, at most 1.
    """
    m, epsilon = check.whole("m", m), check.probability("epsilon", epsilon)
    rate = epsilon if exponential else -math.log1p(-epsilon)
    return check.up(math.exp(log_union_bound(-m * rate, size)))


def realizable_error(m: int, delta: float, size: int, *, exponential: bool = False) -> float:
    """Return 1 - (delta/|H|)^(1/m), for every consistent h; textbook form (ln|H| + ln(1/delta))/m.

    Parameters
    ----------
    m : int
        Number of rows.
    delta : float
        Probability with which the statement may fail.
    size : int
        Number of hypotheses, fixed before the rows are seen.
    exponential : bool, default=False
        Whether exp(-epsilon) replaces 1 - epsilon, as in textbooks.

    Returns
    -------
    float
        Upper bound of the error rate.
    """
    exponent = -log_share(delta, size) / check.whole("m", m)
    return check.up(exponent if exponential else -math.expm1(-exponent))


def realizable_sample_size(epsilon: float, delta: float, size: int, *, exponential: bool = False) -> int:
    """Return the smallest m that leaves every consistent h with error <= epsilon, with chance 1 - delta.

    Parameters
    ----------
    epsilon : float
        Error, or deviation of the error.
    delta : float
        Probability with which the statement may fail.
    size : int
        Number of hypotheses, fixed before the rows are seen.
    exponential : bool, default=False
        Whether exp(-epsilon) replaces 1 - epsilon, as in textbooks.

    Returns
    -------
    int
        Number of rows.

    Examples
    --------
    >>> realizable_sample_size(0.1, 0.05, 3**10, exponential=True), realizable_sample_size(0.1, 0.05, 3**10)
    (140, 133)
    """
    epsilon = check.probability("epsilon", epsilon)
    rate = epsilon if exponential else -math.log1p(-epsilon)
    return check.ceil(-log_share(delta, size) / rate)


def agnostic_failure(m: int, epsilon: float, size: int, *, two_sided: bool = True) -> float:
    """Return 2|H| exp(-2 m epsilon^2): the chance that some h has true and empirical error epsilon apart.

    One-sided (only the true error above the empirical one) without the 2. At most 1.

    Parameters
    ----------
    m : int
        Number of rows.
    epsilon : float
        Error, or deviation of the error.
    size : int
        Number of hypotheses, fixed before the rows are seen.
    two_sided : bool, default=True
        Whether both directions count.

    Returns
    -------
    float
        Upper bound of the probability, at most 1.
    """
    m, epsilon = check.whole("m", m), check.probability("epsilon", epsilon)
    return check.up(math.exp(log_union_bound(-2.0 * m * epsilon * epsilon, (1 + two_sided) * size)))


def agnostic_deviation(m: int, delta: float, size: int, *, two_sided: bool = True) -> float:
    """Return sqrt((ln|H| + ln(2/delta)) / (2m)), ln(1/delta) if one-sided: |L - L_m| for all h at once.

    Parameters
    ----------
    m : int
        Number of rows.
    delta : float
        Probability with which the statement may fail.
    size : int
        Number of hypotheses, fixed before the rows are seen.
    two_sided : bool, default=True
        Whether both directions count.

    Returns
    -------
    float
        The deviation.
    """
    m, one = check.whole("m", m), log_share(delta, (1 + two_sided) * size)
    return check.enlarge(math.sqrt(-one / (2.0 * m)))


def agnostic_sample_size(epsilon: float, delta: float, size: int, *, two_sided: bool = True) -> int:
    """Return the smallest m whose deviation over the whole class is at most epsilon.

    Parameters
    ----------
    epsilon : float
        Error, or deviation of the error.
    delta : float
        Probability with which the statement may fail.
    size : int
        Number of hypotheses, fixed before the rows are seen.
    two_sided : bool, default=True
        Whether both directions count.

    Returns
    -------
    int
        Number of rows.
    """
    epsilon = check.probability("epsilon", epsilon)
    return check.ceil(-log_share(delta, (1 + two_sided) * size) / (2.0 * epsilon * epsilon))


def erm_sample_size(epsilon: float, delta: float, size: int) -> int:
    """Return ceil(2 ln(2|H|/delta) / epsilon^2): then empirical risk minimisation is epsilon-optimal.

    If true and empirical error differ by at most epsilon/2 for all h, the minimiser of the empirical error
    has true error at most min L + epsilon.

    Parameters
    ----------
    epsilon : float
        Error, or deviation of the error.
    delta : float
        Probability with which the statement may fail.
    size : int
        Number of hypotheses, fixed before the rows are seen.

    Returns
    -------
    int
        Number of rows.
    """
    return agnostic_sample_size(check.probability("epsilon", epsilon) / 2.0, delta, size)


def finite_class_bound(k: int, n: int, delta: float, size: int) -> float:
    """Return the error bound of any h in a finite class after k errors in n training rows.

    Clopper-Pearson limit at delta/|H|; the sharpest of the union bounds. Assumes independent rows and a
    class fixed before they were seen (models trained on the same rows are not such a class).

    Parameters
    ----------
    k : int
        Number of errors.
    n : int
        Number of training rows.
    delta : float
        Probability with which the statement may fail.
    size : int
        Number of hypotheses, fixed before the rows are seen.

    Returns
    -------
    float
        Upper bound of the error rate or expected loss.

    Examples
    --------
    >>> round(finite_class_bound(0, 100, 0.05, 3**10), 4)
    0.1305
    """
    return clopper_pearson_upper(k, n, delta, log_weight=-check.log_size(size))


def finite_class_loss_bound(loss: float, n: int, delta: float, size: int) -> float:
    """Return the bound kl_upper(loss, ln(|H|/delta)/n) for a mean `loss` in [0, 1] over n rows.

    Parameters
    ----------
    loss : float
        Mean training loss, in [0, 1].
    n : int
        Number of training rows.
    delta : float
        Probability with which the statement may fail.
    size : int
        Number of hypotheses, fixed before the rows are seen.

    Returns
    -------
    float
        Upper bound of the error rate or expected loss.
    """
    n = check.whole("n", n)
    return kl_upper(loss, -log_share(delta, size) / n)


def occam_bound(k: int, n: int, delta: float, log_prior: float) -> float:
    """Return the error bound of a hypothesis with prior exp(log_prior) after k errors in n training rows.

    Theorem (Occam's razor; Blumer et al. 1987, Langford 2005): if the priors of all hypotheses add up to at
    most 1 and were fixed in advance, then with probability 1 - delta the Clopper-Pearson limit at delta
    times the prior holds for all of them at once. A prefix code of b bits is the prior 2^-b, log_prior = -b
    ln 2.

    Parameters
    ----------
    k : int
        Number of errors.
    n : int
        Number of training rows.
    delta : float
        Probability with which the statement may fail.
    log_prior : float
        Natural logarithm of the prior probability, at most 0.

    Returns
    -------
    float
        Upper bound of the error rate or expected loss.
    """
    return clopper_pearson_upper(k, n, delta, log_weight=check.number("log_prior", log_prior, high=0.0))


def occam_loss_bound(loss: float, n: int, delta: float, log_prior: float) -> float:
    """Return kl_upper(loss, (ln(1/prior) + ln(1/delta))/n) for a mean `loss` in [0, 1] over n rows.

    Parameters
    ----------
    loss : float
        Mean training loss, in [0, 1].
    n : int
        Number of training rows.
    delta : float
        Probability with which the statement may fail.
    log_prior : float
        Natural logarithm of the prior probability, at most 0.

    Returns
    -------
    float
        Upper bound of the error rate or expected loss.
    """
    n, log_prior = check.whole("n", n), check.number("log_prior", log_prior, high=0.0)
    return kl_upper(loss, (-log_prior - math.log(check.failure(delta))) / n)


def holdout_bound(k: int, m: int, delta: float, *, candidates: int = 1) -> float:
    """Return the error bound of the one chosen among `candidates` models after k errors in m hold-out rows.

    Theorem: union bound over Clopper-Pearson limits at delta/candidates. All candidates, counted whether
    reported or not, must be fixed before the hold-out rows are looked at; the choice among them may use the
    rows.

    Parameters
    ----------
    k : int
        Number of errors.
    m : int
        Number of hold-out rows.
    delta : float
        Probability with which the statement may fail.
    candidates : int, default=1
        Number of models among which the choice was made.

    Returns
    -------
    float
        Upper bound of the error rate or expected loss.

    Examples
    --------
    >>> holdout_bound(5, 100, 0.05) < holdout_bound(5, 100, 0.05, candidates=20)
    True
    """
    return clopper_pearson_upper(k, m, delta, log_weight=-math.log(check.whole("candidates", candidates)))


_LONGEST = 53
_FINER = 12  # exponents below that of the upper end which are tried for a short threshold


def gamma_bits(i: int) -> int:
    """Return the length of Elias' gamma code of i >= 1.

    Parameters
    ----------
    i : int
        A whole number from 1.

    Returns
    -------
    int
        Number of bits.

    Examples
    --------
    >>> [gamma_bits(i) for i in (1, 2, 3, 4, 8)]
    [1, 3, 3, 5, 7]
    """
    return 2 * i.bit_length() - 1


def exponent(t: float) -> int:
    """Return E with 2^E <= |t| < 2^(E + 1), for t other than 0.

    Parameters
    ----------
    t : float
        A number other than 0.

    Returns
    -------
    int
        The exponent.
    """
    return math.frexp(t)[1] - 1


def threshold_bits(t: float, previous: int = 0) -> int:
    """Return the length of the code of a threshold after one of exponent `previous`.

    Parameters
    ----------
    t : float
        The threshold.
    previous : int, default=0
        Exponent of the last threshold written for the column.

    Returns
    -------
    int
        Number of bits.

    Examples
    --------
    >>> threshold_bits(0.0), threshold_bits(1.0), threshold_bits(2.5), threshold_bits(2.5, previous=1)
    (1, 4, 9, 7)
    """
    if t == 0:
        return 1
    odd = abs(t).as_integer_ratio()[0]
    length = (odd // (odd & -odd)).bit_length()
    return 2 + gamma_bits(_place(exponent(t) - previous)) + gamma_bits(length) + max(0, length - 2)


def _place(shift: int) -> int:
    return 2 * shift if shift > 0 else 1 - 2 * shift


def shortest(low: float, high: float, previous: int = 0) -> float:
    """Return a threshold t with low <= t < high whose code is short: the shortest of those not much finer than high.

    Parameters
    ----------
    low : float
        Smallest threshold allowed.
    high : float
        The threshold is below this.
    previous : int, default=0
        Exponent of the last threshold written for the column.

    Returns
    -------
    float
        The threshold.

    Examples
    --------
    >>> shortest(2.3, 2.9), shortest(-0.1, 7.0), shortest(96.5, 101.0, previous=6)
    (2.5, 0.0, 100.0)
    """
    if low <= 0 < high:
        return 0.0
    best = low
    for t in _candidates(low, high, previous):
        if threshold_bits(t, previous) < threshold_bits(best, previous):
            best = t
    return best


def _candidates(low: float, high: float, previous: int) -> Iterator[float]:
    """Yield, for each exponent and length, the number of that kind in [low, high) that is next to its end nearest 0."""
    sign = 1.0 if low > 0 else -1.0
    near, far = (low, high) if low > 0 else (-high, -low)  # magnitudes: [near, far), or (near, far] below zero
    top = exponent(far)
    least = max(exponent(near) if near > 0 else top - _FINER, top - _FINER)
    for E in sorted({*range(least, top + 1), previous}):
        start = max(near, math.ldexp(1.0, E))
        for length in range(1, _LONGEST + 1):
            unit = math.ldexp(1.0, E - length + 1)
            if unit == 0:
                break
            m = math.ceil(start / unit)
            t = sign * m * unit
            if t and not low <= t < high:
                t = sign * (m + 1) * unit
            if t and low <= t < high:
                yield t
                break


def tree_bits(column: np.ndarray, threshold: np.ndarray, child: np.ndarray, n_columns: int, n_labels: int) -> float:
    """Return the length of the code of a binary tree: children of node i are child[i] and child[i] + 1, -1 for a leaf.

    Equally likely words of d columns and K labels count as log2 d and log2 K bits.

    Parameters
    ----------
    column : ndarray
        Column tested by each node.
    threshold : ndarray
        Threshold of each node.
    child : ndarray
        Number of the first child of each node, -1 for a leaf.
    n_columns : int
        Number of columns.
    n_labels : int
        Number of classes.

    Returns
    -------
    float
        Number of bits.

    Examples
    --------
    >>> stump = [0, -1, -1], [2.5, 0.0, 0.0], [1, -1, -1]
    >>> tree_bits(*map(np.array, stump), n_columns=4, n_labels=2)  # 3 for the shape, 2, 9, and 1 for each leaf
    16.0
    """
    previous: dict[int, int] = {}
    bits, level = 0.0, [0]
    while level:
        below: list[int] = []
        for at in level:
            bits += 1
            if child[at] < 0:
                bits += math.log2(n_labels)
                continue
            j, t = int(column[at]), float(threshold[at])
            bits += math.log2(n_columns) + threshold_bits(t, previous.get(j, 0))
            if t:
                previous[j] = exponent(t)
            below += (int(child[at]), int(child[at]) + 1)
        level = below
    return bits

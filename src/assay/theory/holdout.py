"""Hold-out bounds beyond an error rate: ROC curves, balanced error, two models on the same rows, folds, costs.

Hold-out rows are independent, in an order that does not depend on their values, and were not used to choose the models;
delta is the probability with which a bound may fail. (Error rates at all thresholds of a score at once go through the
growth function: `vc.ghost_sample_bound` with `SignedThresholds`.)

Cross-validation: each fold is a hold-out set for the model trained without it, but the K models share rows, so pooling
the n errors as one binomial count is wrong. The mean of K dependent estimates is at least as concentrated as one of
them. The bounds are about the average of the fold models (or one of them drawn at random), not about a model refitted
on all rows. Folds have equal size and are drawn without looking at the data.

Costs at the thresholds of a grid, for all costs at once: a row of the second class ("yes") with a score below the
threshold is missed; one of the first class with a score not below it is a false alarm. Both are events among all rows,
so that the class frequencies need not be estimated: the mean cost is (cost of a miss) P[missed at t] + (cost of a false
alarm) P[false alarm at t]. Clopper-Pearson limits at delta / (4 T) for T thresholds fixed in advance: two events, two
sides. The first probability grows with t and the second falls, so that each limit may be replaced by the best of those
of thresholds above, or below.

References: Hoeffding 1963, section 5 (averages over all ways to form independent blocks); Massart 1990 (the constant of
Dvoretzky, Kiefer and Wolfowitz); Clopper and Pearson 1934; Waudby-Smith and Ramdas 2024 (betting); Blum, Kalai and
Langford 1999; Bengio and Grandvalet 2004 (why no better bound for folds is known).

Selective classification: errors among the rows that a classifier decides, when it may reject those whose share of votes
is too small. A row is decided if its share is above t. For thresholds t = g/64, fixed in advance, errors among the N
decided of m hold-out rows are binomial given which rows are decided, so that Clopper-Pearson limits, each at delta /
128, hold for all 64 of them at once with half of delta. The other half is for thresholds between two of them:

    P[wrong | share > t]  <=  P[wrong and share > g/64] / P[share > (g+1)/64],    g/64 < t < (g+1)/64,

whose numerator and denominator have limits at delta / 256 each. So a threshold may be chosen by looking at these rows.
Nothing is assumed about ties or about the distribution of the shares. Compare Geifman and El-Yaniv 2017, who search for
one threshold.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from assay.theory import _checks as check
from assay.theory.concentration import (
    betting_upper,
    clopper_pearson_lower,
    clopper_pearson_upper,
    kl_lower,
    kl_upper,
    maurer_xi,
)


def auc_lower(auc: float, positives: int, negatives: int, delta: float) -> float:
    """Return the smallest q with kl(auc, q) <= ln(1/delta) / min(a, b) for a positive and b negative rows, ties counted
    one half.

    The area is the mean, over all ways to give each row of the smaller class a row of the other, of the mean of min(a,
    b) independent pairs. E exp(t mean) of a mean of such means is at most that of one, since exp is convex, so that
    Chernoff's bound for min(a, b) draws holds for it (Hoeffding 1963, section 5).

    Parameters
    ----------
    auc : float
        Area under the ROC curve on the hold-out rows.
    positives : int
        Number of rows of the positive class.
    negatives : int
        Number of rows of the negative class.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Lower bound of the area on new data.

    Examples
    --------
    >>> round(auc_lower(0.9, 100, 100, 0.05), 3)
    0.811
    """
    auc = check.number("auc", auc, low=0.0, high=1.0)
    a, b = check.whole("positives", positives), check.whole("negatives", negatives)
    return kl_lower(auc, -math.log(check.failure(delta)) / min(a, b))


def balanced_upper(errors: Sequence[int], rows: Sequence[int], delta: float) -> float:
    """Return an upper bound of the mean over classes of the error rates within them; each class has rows.

    Given how many rows each class has, the mean of the observed rates is the mean, over all ways to pick min(rows) rows
    of each of the K classes, of the mean of K min(rows) independent losses. Chernoff's bound holds for independent
    losses of different expectations (ibid., theorem 1), and as for the area above for means of such means. Where one
    class has few rows, K limits at delta / K are better: `in_blocks` tells which, by the numbers of rows alone.

    Parameters
    ----------
    errors : sequence of int
        Errors: of each class, or of each fold.
    rows : sequence of int
        Number of rows: of each class, or of all.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Upper bound of the balanced error rate.

    Examples
    --------
    >>> round(balanced_upper([5] * 10, [25] * 10, 0.05) - 0.2, 3)
    0.066
    """
    counts = [check.errors(k, m) for k, m in zip(errors, rows, strict=True)]
    K, delta = len(counts), check.failure(delta)
    if in_blocks(rows, delta):
        seen = math.fsum(k / m for k, m in counts) / K
        return kl_upper(min(1.0, seen), -math.log(delta) / (K * min(rows)))
    return math.fsum(clopper_pearson_upper(k, m, delta / K) for k, m in counts) / K


def in_blocks(rows: Sequence[int], delta: float) -> bool:
    """Tell whether as many rows of each class as the rarest has give a smaller bound than a limit for each class, by
    Hoeffding's widths of both.

    Parameters
    ----------
    rows : sequence of int
        Number of rows of each class.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    bool
        Whether blocks of equal size are better.
    """
    K = len(rows)
    apart = math.fsum(math.sqrt(math.log(K / delta) / m) for m in rows) / K
    return math.sqrt(math.log(1 / delta) / (K * min(rows))) <= apart


def threshold_width(positives: int, negatives: int, delta: float) -> float:
    """Return sqrt(ln(4/delta) / (2 min(a, b))): how far any point of the ROC curve can be off in either direction.

    For a positive and b negative rows, the shares of either class above a threshold are, for all thresholds at
    once, within this of their expectations; half of delta for each class.

    Parameters
    ----------
    positives : int
        Number of rows of the positive class.
    negatives : int
        Number of rows of the negative class.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        The width.
    """
    a, b = check.whole("positives", positives), check.whole("negatives", negatives)
    return check.enlarge(math.sqrt(math.log(4.0 / check.failure(delta)) / (2.0 * min(a, b))))


def difference_upper(first_only: int, second_only: int, m: int, delta: float) -> float:
    """Return an upper bound of L(h1) - L(h2) from m rows on which both were tried.

    `first_only` rows are wrong for h1 and right for h2, `second_only` the other way round. Two
    Clopper-Pearson limits, half of delta each: upper for the first kind minus lower for the second.

    Parameters
    ----------
    first_only : int
        Rows on which only the first model is wrong.
    second_only : int
        Rows on which only the second model is wrong.
    m : int
        Number of hold-out rows.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Upper bound of the difference of the error rates.
    """
    total = check.whole("first_only", first_only, low=0) + check.whole("second_only", second_only, low=0)
    check.errors(total, m)
    half = check.failure(delta) / 2.0
    return clopper_pearson_upper(first_only, m, half) - clopper_pearson_lower(second_only, m, half)


def sign_test(first: int, second: int) -> float:
    """Return P[Bin(first + second, 1/2) <= first]: how likely so few are, if the first kind is at least as likely.

    Of the rows on which exactly one of two models errs, `first` are errors of the first alone and `second` of the
    second alone. Given their number, the former are binomial with the probability p1 / (p1 + p2), which is at least
    1/2 if the first model errs at least as often as the second: p1 + both >= p2 + both. So the p-value is exact, and
    whoever says "the first is better" when it is at most delta is wrong with a chance of at most delta.

    Parameters
    ----------
    first : int
        Rows on which only the first model is wrong.
    second : int
        Rows on which only the second model is wrong.

    Returns
    -------
    float
        The p-value.

    Examples
    --------
    >>> round(sign_test(1, 4), 6)
    0.1875
    """
    k, n = check.whole("first", first, low=0), check.whole("second", second, low=0) + first
    return 1.0 if n == 0 else min(1.0, float(bdtr(k, n, 0.5)) * (1 + 1e-9))


def mean_limits(values: ArrayLike, delta: float, low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
    """Return limits between which the mean of values in [low, high] lies, by betting, half of delta for either side.

    Parameters
    ----------
    values : array-like
        Independent values.
    delta : float
        Probability with which the statement may fail.
    low : float, default=0.0
        Smallest possible value.
    high : float, default=1.0
        Largest possible value.

    Returns
    -------
    tuple of float
        Lower and upper limit of the mean.

    Examples
    --------
    >>> least, most = mean_limits([-1.0, 1.0] * 200, 0.05, -1.0, 1.0)
    >>> least < 0 < most
    True
    """
    width = check.positive("high - low", high - low)
    x = np.clip((np.asarray(values, dtype=np.float64) - low) / width, 0.0, 1.0)
    half, more = check.failure(delta) / 2, 1e-9 * width  # more than the scaling rounds
    least, most = high - width * betting_upper(1.0 - x, half), low + width * betting_upper(x, half)
    return max(low, least - more), min(high, most + more)


def _folds(errors: ArrayLike, m: int) -> tuple[np.ndarray, int]:
    counts, m = np.asarray(errors), check.whole("m", m, why="the rows of each fold")
    if counts.ndim != 1 or counts.size < 2 or counts.dtype.kind not in "iu" or counts.min() < 0 or counts.max() > m:
        raise ValueError(f"errors must be at least two integers in [0, {m}], one for each fold of {m} rows.")
    return counts, m


def fold_hoeffding(errors: ArrayLike, m: int, delta: float) -> float:
    """Return the mean fold error + sqrt(ln(1/delta) / (2m)), m the rows of one fold.

    By convexity of the exponential, the moment bound of the mean of K dependent folds is that of one fold.

    Parameters
    ----------
    errors : array-like
        Errors: of each class, or of each fold.
    m : int
        Number of hold-out rows.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Upper bound of the mean of the members' error rates.
    """
    counts, m = _folds(errors, m)
    mean = int(counts.sum()) / (counts.size * m)
    return check.up(mean + math.sqrt(-math.log(check.failure(delta)) / (2.0 * m)), mean)


def fold_kl(errors: ArrayLike, m: int, delta: float) -> float:
    """Return kl_upper(mean fold error, ln(Xi(m)/delta) / m), by joint convexity of kl.

    Parameters
    ----------
    errors : array-like
        Errors: of each class, or of each fold.
    m : int
        Number of hold-out rows.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Upper bound of the mean of the members' error rates.
    """
    counts, m = _folds(errors, m)
    mean = int(counts.sum()) / (counts.size * m)
    return kl_upper(mean, (math.log(maurer_xi(m)) - math.log(check.failure(delta))) / m)


def fold_binomial(errors: ArrayLike, m: int, delta: float) -> float:
    """Return the mean of K Clopper-Pearson limits, each at delta/K.

    Parameters
    ----------
    errors : array-like
        Errors: of each class, or of each fold.
    m : int
        Number of hold-out rows.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Upper bound of the mean of the members' error rates.
    """
    counts, m = _folds(errors, m)
    limits = [clopper_pearson_upper(int(k), m, delta, log_weight=-math.log(counts.size)) for k in counts]
    return check.up(math.fsum(limits) / counts.size)


class Limits(NamedTuple):
    """Limits of the shares of all rows at each threshold.

    Parameters
    ----------
    missed_low, missed_high : ndarray
        Lower and upper limit of the share missed.
    called_low, called_high : ndarray
        Lower and upper limit of the share called.
    """

    missed_low: np.ndarray
    missed_high: np.ndarray
    called_low: np.ndarray
    called_high: np.ndarray


def joint_limits(missed: ArrayLike, called: ArrayLike, rows: int, delta: float) -> Limits:
    """Return limits of both shares at every threshold; all hold together with probability 1 - delta.

    `missed` and `called` count rows at thresholds in increasing order, which do not depend on these rows.

    Parameters
    ----------
    missed : array-like
        Number of rows missed at each threshold.
    called : array-like
        Number of rows called at each threshold.
    rows : int
        Number of rows: of each class, or of all.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    Limits
        Lower and upper limits by threshold.

    Examples
    --------
    >>> found = joint_limits([0, 3, 10], [40, 2, 0], 100, 0.05)
    >>> bool(found.missed_high[1] < 0.14) and bool(found.called_low[0] > 0.25)
    True
    """
    first, second = (np.asarray(counts, dtype=np.int64).tolist() for counts in (missed, called))
    share = check.failure(delta) / (4 * len(first))
    lows = [np.array([clopper_pearson_lower(k, rows, share) for k in counts]) for counts in (first, second)]
    highs = [np.array([clopper_pearson_upper(k, rows, share) for k in counts]) for counts in (first, second)]
    return Limits(
        np.maximum.accumulate(lows[0]),
        np.minimum.accumulate(highs[0][::-1])[::-1],
        np.maximum.accumulate(lows[1][::-1])[::-1],
        np.minimum.accumulate(highs[1]),
    )


GRID = 64
"""Thresholds fixed in advance: 0, 1/64, ..., 63/64."""


class AtThreshold(NamedTuple):
    """A limit of the selective risk at one threshold, and what it was computed from.

    Parameters
    ----------
    limit : float
        Upper bound of the error rate among decided rows.
    form : str
        Name of the inequality that gave it.
    wrong : int
        Errors among the decided rows.
    decided : int
        Number of decided rows.
    joint : float or None
        Upper bound of the share of rows that are decided and wrong.
    coverage : float or None
        Lower bound of the share of rows that are decided.
    """

    limit: float
    form: str
    wrong: int
    decided: int
    joint: float | None = None
    coverage: float | None = None

    def params(self) -> dict[str, Any]:
        """Return the parameters of the claim selective.risk that this proves."""
        counts = {"wrong": self.wrong, "decided": self.decided}
        if self.form == "fixed":
            return counts
        more = {} if self.form == "grid" else {"joint": self.joint, "coverage": self.coverage}
        return {"form": self.form, **counts, **more}


def at_threshold(
    shares: np.ndarray, wrong: np.ndarray, threshold: float, delta: float, slack: Any = 0.0
) -> AtThreshold | None:
    """Return the limit of P[wrong | share > threshold]; None if too few rows are decided. `slack` is how far a share
    can be off by rounding: such rows count as errors, and not as decided.

    Parameters
    ----------
    shares : ndarray
        Confidence of each row's prediction, such as the vote's share.
    wrong : ndarray
        Whether the prediction of each row is wrong.
    threshold : float
        Rows with a larger share are decided, the others rejected.
    delta : float
        Probability with which the statement may fail.
    slack : array-like, default=0.0
        How far a share can be off by rounding.

    Returns
    -------
    AtThreshold or None
        The limit, or None.

    Examples
    --------
    >>> shares, wrong = np.linspace(0.3, 1, 200), np.arange(200) < 40
    >>> found = at_threshold(shares, wrong, 0.5, 0.05)
    >>> found.decided, found.wrong, round(found.limit, 3)
    (143, 0, 0.053)
    """
    shares, wrong = np.asarray(shares, dtype=np.float64), np.asarray(wrong, dtype=bool)
    threshold, delta = check.number("threshold", threshold, low=0.0, high=1.0), check.failure(delta)
    low = math.floor(threshold * GRID) / GRID
    on_grid = low == threshold
    high, m = low if on_grid else low + 1 / GRID, len(shares)
    decided = int(np.sum(shares > high + slack))
    errors = int(np.sum((shares > low - slack) & wrong)) if np.any(slack) else int(np.sum((shares > low) & wrong))
    if not decided or errors > (decided if on_grid else m):
        return None
    if on_grid:
        limit = clopper_pearson_upper(errors, decided, delta / (2 * GRID))
        return AtThreshold(limit, "grid", errors, decided)
    joint = min(1.0, clopper_pearson_upper(errors, m, delta / (4 * GRID)) + 1e-9)
    coverage = clopper_pearson_lower(decided, m, delta / (4 * GRID)) - 1e-9
    if coverage <= 0:
        return None
    return AtThreshold(min(1.0, joint / coverage), "between", errors, decided, joint, coverage)


def fixed_threshold(
    shares: np.ndarray, wrong: np.ndarray, threshold: float, delta: float, slack: Any = 0.0
) -> AtThreshold | None:
    """Return the limit as `at_threshold` does, for the one threshold that was fixed before the rows were looked at.

    Parameters
    ----------
    shares : ndarray
        Confidence of each row's prediction, such as the vote's share.
    wrong : ndarray
        Whether the prediction of each row is wrong.
    threshold : float
        Rows with a larger share are decided, the others rejected.
    delta : float
        Probability with which the statement may fail.
    slack : array-like, default=0.0
        How far a share can be off by rounding.

    Returns
    -------
    AtThreshold or None
        The limit, or None.

    Examples
    --------
    >>> shares, wrong = np.linspace(0.3, 1, 200), np.arange(200) < 40
    >>> round(fixed_threshold(shares, wrong, 0.5, 0.05).limit, 3)
    0.021
    """
    decided = int(np.sum(shares > threshold + slack))
    errors = int(np.sum((shares > threshold - slack) & wrong))
    if not decided or errors > decided:
        return None
    return AtThreshold(clopper_pearson_upper(errors, decided, check.failure(delta)), "fixed", errors, decided)


class Curve(NamedTuple):
    """Error against coverage: for each threshold the share of rows decided, of errors among them, and its limit.

    Parameters
    ----------
    threshold : ndarray
        Thresholds.
    coverage : ndarray
        Share of rows decided at each threshold.
    error : ndarray
        Error rate among them.
    limit : ndarray
        Upper bound of the error rate on new data.
    """

    threshold: np.ndarray
    coverage: np.ndarray
    error: np.ndarray
    limit: np.ndarray


def curve(shares: np.ndarray, wrong: np.ndarray, delta: float = 0.05) -> Curve:
    """Return error, coverage and the limit of the error on new data at every threshold, all valid at once.

    Parameters
    ----------
    shares : ndarray
        Confidence of each row's prediction, such as the vote's share.
    wrong : ndarray
        Whether the prediction of each row is wrong.
    delta : float, default=0.05
        Probability with which the statement may fail.

    Returns
    -------
    Curve
        Error, coverage and limit by threshold.

    Examples
    --------
    >>> found = curve(np.array([0.6, 0.9, 0.95, 1.0]), np.array([True, False, False, False]))
    >>> found.coverage[[0, 40, 63]].tolist(), found.error[[0, 40]].tolist()
    ([1.0, 0.75, 0.25], [0.25, 0.0])
    """
    shares, wrong = np.asarray(shares, dtype=np.float64), np.asarray(wrong, dtype=bool)
    thresholds = np.arange(GRID) / GRID
    decided = np.array([np.sum(shares > t) for t in thresholds])
    errors = np.array([np.sum((shares > t) & wrong) for t in thresholds])
    results = [at_threshold(shares, wrong, float(t), delta) for t in thresholds]
    limits = np.array([1.0 if result is None else result.limit for result in results])
    rate = np.where(decided > 0, errors / np.maximum(decided, 1), np.nan)
    return Curve(thresholds, decided / max(1, len(shares)), rate, limits)

"""Hold-out statements other than an error rate: the ROC curve, classes counted alike, and the difference of two models.

References: Hoeffding 1963, section 5 (means over all ways to form independent blocks); Massart 1990 (the constant of
Dvoretzky, Kiefer and Wolfowitz); Clopper and Pearson 1934. Hold-out rows are independent and were not used to choose
the models. (Error rates of all thresholds of a score at once go through the growth function: `vc.ghost_sample_bound`
with `SignedThresholds`.)
"""

import math
from collections.abc import Sequence

from assay.theory import _checks as check
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper, kl_lower, kl_upper


def auc_lower(auc: float, positives: int, negatives: int, delta: float) -> float:
    """Return the smallest q with kl(auc, q) <= ln(1/delta) / min(a, b) for a positive and b negative rows, ties counted
    one half.

    The area is the mean, over all ways to give each row of the smaller class a row of the other, of the mean of min(a,
    b) independent pairs. E exp(t mean) of a mean of such means is at most that of one, since exp is convex, so that
    Chernoff's bound for min(a, b) draws holds for it (Hoeffding 1963, section 5).

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
    Hoeffding's widths of both."""
    K = len(rows)
    apart = math.fsum(math.sqrt(math.log(K / delta) / m) for m in rows) / K
    return math.sqrt(math.log(1 / delta) / (K * min(rows))) <= apart


def threshold_width(positives: int, negatives: int, delta: float) -> float:
    """Return sqrt(ln(4/delta) / (2 min(a, b))): how far any point of the ROC curve can be off in either direction.

    For a positive and b negative rows, the shares of either class above a threshold are, for all thresholds at
    once, within this of their expectations; half of delta for each class.
    """
    a, b = check.whole("positives", positives), check.whole("negatives", negatives)
    return check.enlarge(math.sqrt(math.log(4.0 / check.failure(delta)) / (2.0 * min(a, b))))


def difference_upper(first_only: int, second_only: int, m: int, delta: float) -> float:
    """Return an upper bound of L(h1) - L(h2) from m rows on which both were tried.

    `first_only` rows are wrong for h1 and right for h2, `second_only` the other way round. Two
    Clopper-Pearson limits, half of delta each: upper for the first kind minus lower for the second.
    """
    total = check.whole("first_only", first_only, low=0) + check.whole("second_only", second_only, low=0)
    check.errors(total, m)
    half = check.failure(delta) / 2.0
    return clopper_pearson_upper(first_only, m, half) - clopper_pearson_lower(second_only, m, half)

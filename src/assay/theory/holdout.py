"""Hold-out statements other than an error rate: the ROC curve, and the difference of two models.

References: Agarwal, Graepel, Herbrich, Har-Peled and Roth 2005 (McDiarmid's inequality for the area); Massart
1990 (the constant of Dvoretzky, Kiefer and Wolfowitz); Clopper and Pearson 1934. Hold-out rows are independent
and were not used to choose the models. (Error rates of all thresholds of a score at once go through the growth
function: `vc.ghost_sample_bound` with `SignedThresholds`.)
"""

import math

from assay.theory import _checks as check
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper


def auc_lower(auc: float, positives: int, negatives: int, delta: float) -> float:
    """Return auc - sqrt((a+b) ln(1/delta) / (2ab)) for a positive and b negative rows, ties counted one half.

    Replacing a positive row moves the area by at most 1/a, a negative one by 1/b.
    """
    auc = check.number("auc", auc, low=0.0, high=1.0)
    a, b = check.whole("positives", positives), check.whole("negatives", negatives)
    half = math.sqrt((a + b) * -math.log(check.failure(delta)) / (2.0 * a * b))
    return max(0.0, auc - check.enlarge(half))


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

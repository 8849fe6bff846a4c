"""What mistakes cost at each threshold of a score, simultaneously at all thresholds of a grid and for all costs.

A row of the second class ("yes") whose score is below the threshold is missed; one of the first class whose score is
not below it is called wrongly. Both are events among all rows, so that their shares need no estimate of how common
the classes are: the mean cost is (cost of a miss) P[missed at t] + (cost of a wrong call) P[called wrongly at t].

Reference: Clopper and Pearson 1934, at delta / (4 T) for T thresholds that are fixed in advance: two events, two
sides. P[missed at t] grows with t, and P[called wrongly at t] falls, so that each limit may be replaced by the best of
those of thresholds above, or below.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.theory import _checks as check
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper


class Limits(NamedTuple):
    """Limits of the shares of all rows at each threshold."""

    missed_low: np.ndarray
    missed_high: np.ndarray
    called_low: np.ndarray
    called_high: np.ndarray


def joint_limits(missed: ArrayLike, called: ArrayLike, rows: int, delta: float) -> Limits:
    """Return limits of both shares at every threshold; all hold together with probability 1 - delta.

    `missed` and `called` count rows at thresholds in increasing order, which do not depend on these rows.

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

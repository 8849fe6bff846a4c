"""What K-fold cross-validation proves: a bound for the mean risk of the K fold models, no more.

Each fold is an honest hold-out set for the model trained without it, but the K models share rows, so the n
errors are not independent and pooling them as one binomial count is wrong. The mean of K dependent
estimates is at least as concentrated as one of them, and that is what these bounds use. They are about the
average of the fold models (or one of them drawn at random), not about a model refitted on all rows. Folds
have equal size and are drawn without looking at the data.

References: Blum, Kalai and Langford 1999; Bengio and Grandvalet 2004 (why no better is known).
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from assay.theory import _checks as check
from assay.theory.concentration import clopper_pearson_upper, kl_upper, maurer_xi


def _folds(errors: ArrayLike, m: int) -> tuple[np.ndarray, int]:
    counts, m = np.asarray(errors), check.whole("m", m, why="the rows of each fold")
    if counts.ndim != 1 or counts.size < 2 or counts.dtype.kind not in "iu" or counts.min() < 0 or counts.max() > m:
        raise ValueError(f"errors must be at least two integers in [0, {m}], one for each fold of {m} rows.")
    return counts, m


def fold_hoeffding(errors: ArrayLike, m: int, delta: float) -> float:
    """Return the mean fold error + sqrt(ln(1/delta) / (2m)), m the rows of one fold.

    By convexity of the exponential, the moment bound of the mean of K dependent folds is that of one fold.
    """
    counts, m = _folds(errors, m)
    mean = int(counts.sum()) / (counts.size * m)
    return check.up(mean + math.sqrt(-math.log(check.failure(delta)) / (2.0 * m)), mean)


def fold_kl(errors: ArrayLike, m: int, delta: float) -> float:
    """Return kl_upper(mean fold error, ln(Xi(m)/delta) / m), by joint convexity of kl."""
    counts, m = _folds(errors, m)
    mean = int(counts.sum()) / (counts.size * m)
    return kl_upper(mean, (math.log(maurer_xi(m)) - math.log(check.failure(delta))) / m)


def fold_binomial(errors: ArrayLike, m: int, delta: float) -> float:
    """Return the mean of K Clopper-Pearson limits, each at delta/K."""
    counts, m = _folds(errors, m)
    limits = [clopper_pearson_upper(int(k), m, delta, log_weight=-math.log(counts.size)) for k in counts]
    return check.up(math.fsum(limits) / counts.size)

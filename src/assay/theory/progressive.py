"""Progressive validation: an online learner is judged on each row before it learns from it.

h_t depends on rows before t only, so the losses are a martingale around the risks whatever the learner
does. The bounds are for the mean risk of h_1..h_n: the risk of one of them drawn at random; of the averaged
predictor if the loss is convex; twice it bounds a majority vote. They say nothing of the last h alone,
and they need one pass over rows in an order chosen without looking.

References: Blum, Kalai and Langford 1999; Cesa-Bianchi, Conconi and Gentile 2004. Proof of the second form:
the product of exp(-t loss_i) / (1 - L_i (1 - e^-t)) is a supermartingale; Markov's inequality, then
Jensen's.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from numpy.typing import ArrayLike

from assay.theory import _checks as check

RATES = tuple(2.0**j for j in range(-8, 5))  # t of the second form, fixed in advance


class Progressive(NamedTuple):
    """The smaller of the two forms, and the rate t of the second if it is that one."""

    bound: float
    rate: float | None


def progressive_hoeffding(losses: ArrayLike, delta: float) -> float:
    """Return mean + sqrt(ln(1/delta) / (2n)) for losses in [0, 1] (Hoeffding-Azuma), at most 1."""
    values = check.losses(losses)
    mean = math.fsum(values) / values.size
    return check.up(mean + math.sqrt(-math.log(check.failure(delta)) / (2.0 * values.size)), mean)


def progressive_bound(losses: ArrayLike, delta: float, *, rates: Sequence[float] = RATES) -> float:
    """Return min over t of (1 - exp(-t mean - ln(|rates|/delta)/n)) / (1 - e^-t), at most 1.

    Much better than `progressive_hoeffding` when the losses are small: without any loss it is about
    ln(1/delta)/n.
    """
    values = check.losses(losses)
    n, mean = values.size, math.fsum(values) / values.size
    paid = (math.log(len(rates)) - math.log(check.failure(delta))) / n
    bounds = [math.expm1(-t * mean - paid) / math.expm1(-t) for t in (check.positive("rates", t) for t in rates)]
    return check.up(min(bounds), mean)


def progressive_choice(losses: ArrayLike, delta: float) -> Progressive:
    """Return the smaller of `progressive_hoeffding` and `progressive_bound`, each at delta / 2.

    >>> progressive_choice([0.0] * 99 + [1.0], 0.05).bound < progressive_choice([1.0, 0.0] * 50, 0.05).bound
    True
    """
    half = check.failure(delta) / 2
    plain = Progressive(progressive_hoeffding(losses, half), None)
    share = half / len(RATES)
    others = (Progressive(progressive_bound(losses, share, rates=(t,)), t) for t in RATES)
    return min(plain, *others, key=lambda one: one.bound)

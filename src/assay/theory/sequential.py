"""Anytime-valid statements about a stream: is a mean still at most what was promised, and what is it?

Losses x_1, x_2, ... in [0, 1] arrive one by one and may be inspected after each: stopping when the numbers please does
not raise the error probability. This rests on Ville's inequality: a non-negative supermartingale that starts at 1 ever
reaches 1/alarm with probability at most alarm.

Progressive validation: an online learner is evaluated on each row before it is updated with it. h_t depends on rows
before t only, so the losses are a martingale around the risks whatever the learner does. The bounds are for the mean
risk of h_1..h_n: the risk of one of them drawn at random; of the averaged predictor if the loss is convex; twice it
bounds a majority vote. They say nothing about the last h alone, and need one pass over rows in an order chosen without
looking at them. Proof of the second form: the product of exp(-t loss_i) / (1 - L_i (1 - e^-t)) is a supermartingale;
Markov's inequality, then Jensen's.

References: Ville 1939; Robbins 1970 (mixtures, confidence sequences); Waudby-Smith and Ramdas 2024 (betting on bounded
values); Shin, Ramdas and Rinaldo 2024 (processes started at each moment, for late changes); Blum, Kalai and Langford
1999; Cesa-Bianchi, Conconi and Gentile 2004.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betaln, xlog1py, xlogy

from assay.theory import _checks as check

STAKES = 0.5 ** np.arange(1, 11)
"""Shares of the money that are bet on a loss above the promise."""
_ENOUGH = 1e100  # money beyond which counting it is of no use
RATES = tuple(2.0**j for j in range(-8, 5))  # t of the second form, fixed in advance


class Promise:
    """Watches whether the mean of losses is at most `bound`; says that it is not with a chance of `alarm` at most, if
    each loss is expected, given the earlier ones, to be at most the bound.

    For each stake f, money begun at moment j becomes prod_{s >= j} (1 + f (x_s / bound - 1)), which no step is expected
    to increase while the promise is kept. A share 1/(j (j + 1)) of it is begun at each moment j, so that a promise that
    breaks late is noticed as well, at the price of 2 ln j in the logarithm. The evidence is the mean over the stakes.

    Parameters
    ----------
    bound : float
        Bound of the expected loss that is watched.
    alarm : float, default=0.01
        Largest probability of a false alarm, over all time.

    Examples
    --------
    >>> kept, broken = Promise(0.1), Promise(0.1)
    >>> kept.see([0, 0, 0, 0, 0, 0, 0, 0, 0, 1] * 30)
    >>> broken.see([0, 0, 0, 0, 0, 0, 0, 0, 0, 1] * 30 + [0, 1] * 20)
    >>> kept.broken, broken.broken
    (False, True)
    """

    def __init__(self, bound: float, alarm: float = 0.01) -> None:
        self.bound, self.alarm = check.probability("bound", bound), check.probability("alarm", alarm)
        self.count, self.total, self.most = 0, 0.0, 1.0
        self.alarmed_at: int | None = None
        self._money = np.zeros(len(STAKES))

    def see(self, losses: Iterable[float]) -> None:
        """Take further losses, in the order in which they came.

        Parameters
        ----------
        losses : iterable of float
            Losses in [0, 1].
        """
        for loss in check.losses(list(losses), least=0).tolist():
            self._see(loss)

    def _see(self, loss: float) -> None:
        self.count += 1
        self.total += loss
        begun = 1.0 / (self.count * (self.count + 1.0))
        self._money = np.minimum((self._money + begun) * (1.0 + STAKES * (loss / self.bound - 1.0)), _ENOUGH)
        self.most = max(self.most, self.evidence)
        if self.broken and self.alarmed_at is None:
            self.alarmed_at = self.count

    @property
    def evidence(self) -> float:
        """How much money there is now, of 1 at the beginning: what is begun, and what is not begun yet."""
        return float(self._money.mean()) + 1.0 / (self.count + 1.0)

    @property
    def broken(self) -> bool:
        """Whether the evidence has ever reached 1/alarm."""
        return self.most * self.alarm >= 1.0 + 1e-9

    @property
    def mean(self) -> float:
        """The mean of the losses so far; NaN of none."""
        return self.total / self.count if self.count else math.nan

    def limits(self, delta: float = 0.05) -> tuple[float, float]:
        """Return limits of the expected loss, if it does not change; see `mean_always`."""
        return mean_always(self.total, self.count, delta)

    def plain(self) -> dict[str, Any]:
        """Return what is known as plain numbers."""
        return {
            "bound": self.bound, "alarm": self.alarm, "count": self.count, "total": self.total, "most": self.most,
            "alarmed_at": self.alarmed_at, "money": self._money.tolist(),
        }  # fmt: skip

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Promise":
        """Return what `plain` wrote down; raise ValueError if that is not what it wrote.

        Parameters
        ----------
        plain : mapping
            What was written down.
        """
        try:
            result = cls(plain["bound"], plain["alarm"])
            result.count = check.whole("count", plain["count"], low=0)
            result.total = check.number("total", plain["total"], low=0.0, high=result.count)
            result.most = check.number("most", plain["most"], low=1.0)
            at = plain["alarmed_at"]
            result.alarmed_at = None if at is None else check.whole("alarmed_at", at)
            money = [check.number("money", item, low=0.0, high=_ENOUGH) for item in plain["money"]]
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is no record of a promise: {error!r}") from None
        if len(money) != len(STAKES):
            raise ValueError(f"a record of a promise has {len(STAKES)} stakes; this one has {len(money)}.")
        result._money = np.array(money)
        return result


def mean_always(total: float, count: int, delta: float) -> tuple[float, float]:
    """Return limits of the expected loss from the sum of `count` losses in [0, 1]: the limits after every count hold
    together, but for a chance of delta.

    The likelihood of the losses under coins, mixed over Beta(1/2, 1/2), over that under a mean g is, as a function of
    each loss, below the straight line between its values at 0 and 1, and so expected to grow at no step if g is the
    mean (Robbins 1970). The limits are where it reaches 1/delta.

    Parameters
    ----------
    total : float
        Sum of the losses so far.
    count : int
        Their number.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    tuple of float
        Lower and upper limit of the expected loss.

    Examples
    --------
    >>> [round(one, 4) for one in mean_always(10, 100, 0.05)]
    [0.0291, 0.2275]
    """
    n, log_inverse = check.whole("count", count, low=0), -math.log(check.failure(delta))
    s = check.number("total", total, low=0.0, high=float(n))
    if not n:
        return 0.0, 1.0
    mixed = betaln(0.5 + s, 0.5 + n - s) - betaln(0.5, 0.5)

    def beyond(g: float) -> float:
        return mixed - float(xlogy(s, g) + xlog1py(n - s, -g)) - log_inverse

    mean, edge = s / n, 1e-15
    if beyond(mean) >= 0:  # never so, since the mixture is below the largest likelihood; but for rounding
        return 0.0, 1.0
    low = brentq(beyond, edge, mean) if mean > edge and beyond(edge) > 0 else 0.0
    high = brentq(beyond, mean, 1 - edge) if mean < 1 - edge and beyond(1 - edge) > 0 else 1.0
    return check.down(low - 1e-10), check.up(high + 1e-10)


class Progressive(NamedTuple):
    """The smaller of the two forms, and the rate t of the second if it is that one.

    Parameters
    ----------
    bound : float
        The bound.
    rate : float or None
        Rate t of the second form; None: the first form.
    """

    bound: float
    rate: float | None


def progressive_hoeffding(losses: ArrayLike, delta: float) -> float:
    """Return mean + sqrt(ln(1/delta) / (2n)) for losses in [0, 1] (Hoeffding-Azuma), at most 1.

    Parameters
    ----------
    losses : array-like
        Losses in [0, 1], each observed before the next row was learnt from.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Upper bound of the mean error rate of the hypotheses met.
    """
    values = check.losses(losses)
    mean = math.fsum(values) / values.size
    return check.up(mean + math.sqrt(-math.log(check.failure(delta)) / (2.0 * values.size)), mean)


def progressive_bound(losses: ArrayLike, delta: float, *, rates: Sequence[float] = RATES) -> float:
    """Return min over t of (1 - exp(-t mean - ln(|rates|/delta)/n)) / (1 - e^-t), at most 1.

    Much better than `progressive_hoeffding` when the losses are small: without any loss it is about
    ln(1/delta)/n.

    Parameters
    ----------
    losses : array-like
        Losses in [0, 1], each observed before the next row was learnt from.
    delta : float
        Probability with which the statement may fail.
    rates : sequence of float, default=RATES
        Rates t tried, fixed in advance.

    Returns
    -------
    float
        Upper bound of the mean error rate of the hypotheses met.
    """
    values = check.losses(losses)
    n, mean = values.size, math.fsum(values) / values.size
    paid = (math.log(len(rates)) - math.log(check.failure(delta))) / n
    bounds = [math.expm1(-t * mean - paid) / math.expm1(-t) for t in (check.positive("rates", t) for t in rates)]
    return check.up(min(bounds), mean)


def progressive_choice(losses: ArrayLike, delta: float) -> Progressive:
    """Return the smaller of `progressive_hoeffding` and `progressive_bound`, each at delta / 2.

    Parameters
    ----------
    losses : array-like
        Losses in [0, 1], each observed before the next row was learnt from.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    Progressive
        The smaller bound.

    Examples
    --------
    >>> progressive_choice([0.0] * 99 + [1.0], 0.05).bound < progressive_choice([1.0, 0.0] * 50, 0.05).bound
    True
    """
    half = check.failure(delta) / 2
    plain = Progressive(progressive_hoeffding(losses, half), None)
    share = half / len(RATES)
    others = (Progressive(progressive_bound(losses, share, rates=(t,)), t) for t in RATES)
    return min(plain, *others, key=lambda item: item.bound)

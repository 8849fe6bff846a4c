"""Bets on a mean loss below a value: whoever wins much was right, with a probability that the gain tells
(holdout.betting)."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from assay.checker.bounds.error_rate import ln_above
from assay.checker.draws import order_of_bets
from assay.checker.numerics import U, gamma

_LARGEST_LOSS = 0.98  # share of the money that a single bet can lose


class Bets:
    """Losses in [0, 1], rounded up, of rows whose digests tell in which order bets are made."""

    def __init__(self) -> None:
        self.losses: list[np.ndarray] = []
        self.digests: list[bytes] = []

    def add(self, losses: np.ndarray, digests: Sequence[bytes]) -> None:
        self.losses.append(losses)
        self.digests += digests

    @property
    def mean(self) -> float:
        """The mean loss, a little less for rounding."""
        losses = np.concatenate(self.losses)
        return math.fsum(losses) / len(losses) * (1 - 1e-9) - 1e-9

    def prove(self, g: float, delta: Fraction) -> bool:
        """Tell whether they prove a mean below g."""
        return betting_proves(np.concatenate(self.losses)[order_of_bets(self.digests)], g, delta)


def betting_proves(losses: np.ndarray, g: float, delta: Fraction) -> bool:
    """Tell whether bets on a mean below g of losses in [0, 1], in their order, multiply money by 1 / delta.

    W_t = product over s <= t of 1 - stake_s (loss_s - g). The stakes are fixed by g and the rows before, and a bet
    loses 98 % of the money at most, so that W_t stays positive, and is fair or worse when the mean is g or more. It
    rises with g, where the stake is at its cap too: what is proved below g is proved at g. Losses rounded up are losses
    of rows as well, of a mean that is not smaller, so that what is proved of theirs is true of the mean.
    """
    if not 0 < g < 1:
        return g >= 1
    m, log = len(losses), ln_above(1 / delta)
    seen = np.arange(2, m + 2)
    deviations = (losses - (0.5 + np.cumsum(losses)) / seen) ** 2
    spread = np.append(0.25, (0.25 + np.cumsum(deviations)) / seen)[:m]
    stakes = np.minimum(_LARGEST_LOSS / (1 - g), np.sqrt(2 * log / (m * spread)))
    gains = np.log1p(-stakes * (losses - g))
    money = np.cumsum(gains) - gamma(2 * m + 8) * np.cumsum(np.abs(gains)) - 256 * U * np.arange(1, m + 1)
    return bool(money.max() >= log)

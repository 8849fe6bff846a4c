"""Which rows a member of an ensemble is trained on: drawn by a generator that a certificate can name and repeat.

SplitMix64 (Steele, Lea and Flood 2014): from the state mix(seed), draw number i is mix(state + i gamma) modulo
2^64. With replacement, draw i picks the row number floor(high 32 bits * n / 2^32); without, the rows with the
smallest draws are picked. The certificate's checker has the same few lines, written again from SPEC.md.
"""

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np

from assay.params import refuse

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def bag(seed: int, n: int, size: int, replace: bool = True) -> np.ndarray:
    """Return `size` row numbers out of 0 .. n - 1; without replacement they are distinct and ascending."""
    if replace:
        return ((_draws(seed, size) >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)).astype(np.int64)
    return np.sort(np.argsort(_draws(seed, n), kind="stable")[:size])


def _draws(seed: int, count: int) -> np.ndarray:
    start = _mix(np.array([seed], dtype=np.uint64))
    return _mix(start + np.arange(1, count + 1, dtype=np.uint64) * _GAMMA)


def _mix(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Draw:
    """How the rows of a member are drawn from n: so many, with or without replacement, by weights if there are some.

    With weights, draw i picks the first row whose summed weights, as a share of all, exceed the high 53 bits of the
    draw as a fraction.
    """

    def __init__(self, n: int, size: int, replace: bool = True, weight: np.ndarray | None = None) -> None:
        self.n, self.size, self.replace = n, size, replace
        self.weight: Any = weight
        if weight is not None:
            self._below = np.cumsum(weight) / weight.sum()

    def rows(self, seed: int) -> np.ndarray:
        """Return the row numbers that a seed draws."""
        if self.weight is None:
            return bag(seed, self.n, self.size, self.replace)
        if not self.replace:
            return self._without(seed)
        place = (_draws(seed, self.size) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return np.minimum(np.searchsorted(self._below, place, side="right"), self._last)

    @property
    def _last(self) -> int:
        return int(np.flatnonzero(self.weight)[-1])

    def _without(self, seed: int) -> np.ndarray:
        """Return distinct rows, drawn one after the other by the weights of those that are left: the rows with the
        smallest -ln(u) / weight."""
        fraction = ((_draws(seed, self.n) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        with np.errstate(divide="ignore"):
            times = np.where(self.weight > 0, -np.log(fraction) / np.where(self.weight > 0, self.weight, 1.0), np.inf)
        return np.sort(np.argsort(times, kind="stable")[: self.size])

    def times(self, seed: int) -> np.ndarray:
        """Return how often each row is drawn."""
        return np.bincount(self.rows(seed), minlength=self.n)


def require_one_sample(model: Any, n: int | None = None) -> None:
    """Refuse to speak of the rows that members did not see, if a warm start fitted them to different tables, or is
    about to fit more of them to n rows."""
    numbers = sorted({draw.n for draw in model.draws_} | ({n} if n else set()), reverse=True)
    if len(numbers) > 1:
        raise refuse(
            model, f"some members were fitted to {numbers[0]} rows, others to {numbers[1]}: they share no rows unseen."
        )


def check_kept(owner: Any, kept: int) -> int:
    """Return how many members a warm start keeps, if it may keep so many."""
    if kept > owner.n_estimators:
        raise refuse(
            owner,
            f"n_estimators={owner.n_estimators} must be larger or equal to len(estimators_)={kept} when "
            "warm_start==True.",
        )
    return kept


def sample_size(owner: Any, n: int, weight: np.ndarray | None) -> int:
    """Return how many rows `max_samples` asks for: None is n, a float a share of n or of the sum of the weights."""
    asked = owner.max_samples
    if asked is None:
        return n
    if isinstance(asked, Integral) and not isinstance(asked, bool) and int(asked) >= 1:
        return int(asked)
    if not isinstance(asked, Real) or isinstance(asked, (bool, Integral)) or not 0 < float(asked) < np.inf:
        raise refuse(owner, f"max_samples must be None, an integer >= 1 or a share > 0; got {asked!r}.")
    total = n if weight is None else float(weight.sum())
    size = max(int(float(asked) * total), 1)
    if size < max(10, n ** (1 / 3)):
        of = f"the number of samples is {n}" if weight is None else f"the total sum of sample weights is {total}"
        warnings.warn(
            f"Using the fractional value max_samples={asked} when {of} results in a low number ({size}) of bootstrap "
            "samples. We recommend passing `max_samples` as an integer.",
            stacklevel=4,
        )
    return size

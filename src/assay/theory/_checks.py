"""Refusals shared by the bounds, and the outward rounding of what they return."""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

SLACK = 1e-10  # relative; larger than the error of SciPy's inverse beta and of a sum of a million terms


def up(value: float, floor: float = 0.0) -> float:
    """Return `value` enlarged by more than its rounding error, at least `floor` and at most 1."""
    return min(1.0, max(floor, value * (1.0 + SLACK) + 1e-15))


def enlarge(value: float) -> float:
    """Return a non-negative `value` enlarged by more than its rounding error, without a cap at 1."""
    return value * (1.0 + SLACK) + 1e-15


def down(value: float, ceiling: float = 1.0) -> float:
    """Return `value` diminished by more than its rounding error, at least 0 and at most `ceiling`."""
    return max(0.0, min(ceiling, value * (1.0 - SLACK) - 1e-15))


def ceil(value: float) -> int:
    """Return the smallest integer that is surely not below the real number behind `value`."""
    if value > 2.0**52:
        raise ValueError("the sample size asked for exceeds 2^52 rows; ask for a larger error or a smaller class.")
    return max(1, math.ceil(value * (1.0 + 1e-13)))


def number(name: str, value: Any, *, low: float = -math.inf, high: float = math.inf, why: str = "") -> float:
    """Return `value` as a finite float in [low, high]."""
    fits = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if fits and low <= value <= high:
        return float(value)
    reason = f" ({why})" if why else ""
    raise ValueError(f"{name} must be a finite number in [{low:g}, {high:g}]{reason}; got {value!r}.")


def positive(name: str, value: Any, *, why: str = "") -> float:
    """Return `value` as a finite float > 0."""
    if isinstance(value, Real) and not isinstance(value, bool) and 0.0 < float(value) < math.inf:
        return float(value)
    raise ValueError(f"{name} must be a finite number > 0{f' ({why})' if why else ''}; got {value!r}.")


def probability(name: str, value: Any, why: str = "") -> float:
    """Return `value` as a float strictly between 0 and 1."""
    if isinstance(value, Real) and not isinstance(value, bool) and 0.0 < float(value) < 1.0:
        return float(value)
    raise ValueError(f"{name} must lie strictly between 0 and 1{f' ({why})' if why else ''}; got {value!r}.")


def failure(delta: Any) -> float:
    """Return delta, the probability with which the bound is allowed to fail."""
    return probability("delta", delta, "it is the probability with which the bound may fail")


def whole(name: str, value: Any, *, low: int = 1, why: str = "") -> int:
    """Return `value` as an integer >= low."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low:
        return int(value)
    raise ValueError(f"{name} must be an integer >= {low}{f' ({why})' if why else ''}; got {value!r}.")


def errors(k: Any, m: Any) -> tuple[int, int]:
    """Return (k, m): k errors among m rows."""
    m = whole("m", m, why="the number of rows")
    k = whole("k", k, low=0, why="the number of errors")
    if k > m:
        raise ValueError(f"k must not exceed m (k counts errors among m rows); got k = {k}, m = {m}.")
    return k, m


def losses(values: ArrayLike, high: float = 1.0, *, least: int = 1) -> np.ndarray:
    """Return the losses as a 1-D float array, each of them in [0, high]."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size < least:
        raise ValueError(f"losses must be a one-dimensional array of at least {least} values; got shape {array.shape}.")
    outside = ~((array >= 0.0) & (array <= high))
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(
            f"losses must lie in [0, {high:g}] (the bound needs that range; clip the loss and say so);"
            f" row {row} has {array[row]!r}."
        )
    return array


def log_size(size: Any) -> float:
    """Return ln |H| of a finite class, for integers of any length."""
    if isinstance(size, float) and math.isinf(size):
        raise ValueError("size must be finite: this bound is for finite classes; use the growth function of the class.")
    return math.log(whole("size", size, why="the number of hypotheses"))


def log_growth_at(log_growth: float | Callable[[int], float], n: int) -> float:
    """Return ln of the growth function at n points, given as that number or as the function itself."""
    value = log_growth(n) if callable(log_growth) else log_growth
    if isinstance(value, Real) and value == math.inf:
        raise ValueError(
            "log_growth is infinite: the class has infinite capacity, so this bound says nothing about it."
        )
    return number("log_growth", value, low=0.0, why="ln of a number of patterns, finite only for finite capacity")

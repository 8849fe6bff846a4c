"""Parameter checks: one sentence per refusal, saying who, what, why and what came instead."""

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any


def refuse(owner: Any, sentence: str) -> ValueError:
    """Return the error to raise, opened by the name of the learner that refuses."""
    return ValueError(f"{type(owner).__name__}: {sentence}")


def number(
    owner: Any,
    name: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
    allow_inf: bool = False,
    why: str = "",
) -> float:
    """Return the named parameter as a float in [low, high], without the ends that are open."""
    value = getattr(owner, name)
    real = isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)
    above = real and (low < value if open_low else low <= value)
    below = real and (value < high if open_high else value <= high)
    if above and below and (allow_inf or math.isfinite(value)):
        return float(value)
    bounds = [] if low == -math.inf else [f"{'>' if open_low else '>='} {low:g}"]
    bounds += [] if high == math.inf else [f"{'<' if open_high else '<='} {high:g}"]
    kind = "a number" if allow_inf else "a finite number"
    reason = f" ({why})" if why else ""
    raise refuse(owner, f"{name} must be {kind} {' and '.join(bounds)}{reason}; got {value!r}.".replace("  ", " "))


def positive(owner: Any, name: str, *, allow_inf: bool = False, why: str = "") -> float:
    """Return the named parameter as a float > 0."""
    return number(owner, name, low=0.0, open_low=True, allow_inf=allow_inf, why=why)


def count(owner: Any, name: str, *, low: int = 1, why: str = "") -> int:
    """Return the named parameter as an integer >= low."""
    value = getattr(owner, name)
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low:
        return int(value)
    reason = f" ({why})" if why else ""
    raise refuse(owner, f"{name} must be an integer >= {low}{reason}; got {value!r}.")


def choice(owner: Any, name: str, allowed: Collection[Any]) -> Any:
    """Return the named parameter, which must be one of `allowed`."""
    value = getattr(owner, name)
    if any(value is option or (type(value) is type(option) and value == option) for option in allowed):
        return value
    listed = ", ".join(repr(option) for option in allowed)
    raise refuse(owner, f"{name} must be one of {listed}; got {value!r}.")


def flag(owner: Any, name: str) -> bool:
    """Return the named parameter as a bool."""
    return bool(choice(owner, name, (True, False)))

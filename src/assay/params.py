"""Constraints of constructor parameters, declared beside the class, and one sentence per refusal: who, what, why, and
what came instead.

    class Ridge(LinearRegressor):
        constraints = {"alpha": Number(low=0.0), "max_iter": Count(), "solver": Choice("auto", "svd")}

        def fit(self, X, y):
            check(self)

A class inherits the constraints of its bases and adds its own. What depends on the data, or on several parameters at
once, stays in `fit`.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol


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
    real = isinstance(value, Real) and not isinstance(value, bool) and not _is_beyond(value) and not math.isnan(value)
    above = real and (low < value if open_low else low <= value)
    below = real and (value < high if open_high else value <= high)
    if above and below and (allow_inf or math.isfinite(value)):
        return float(value)
    bounds = [] if low == -math.inf else [f"{'>' if open_low else '>='} {low:g}"]
    bounds += [] if high == math.inf else [f"{'<' if open_high else '<='} {high:g}"]
    kind = "a number" if allow_inf else "a finite number"
    reason = f" ({why})" if why else ""
    raise refuse(owner, f"{name} must be {kind} {' and '.join(bounds)}{reason}; got {value!r}.".replace("  ", " "))


def _is_beyond(value: Any) -> bool:
    """Tell whether a whole number has more bits than compiled loops and stored files have for one."""
    return isinstance(value, Integral) and not -(2**63) <= int(value) < 2**63


def positive(owner: Any, name: str, *, allow_inf: bool = False, why: str = "") -> float:
    """Return the named parameter as a float > 0."""
    return number(owner, name, low=0.0, open_low=True, allow_inf=allow_inf, why=why)


def count(owner: Any, name: str, *, low: int = 1, high: int | None = None, why: str = "") -> int:
    """Return the named parameter as an integer >= low, and <= high if there is such an end."""
    value = getattr(owner, name)
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if whole and int(value) >= low and (high is None or int(value) <= high):
        return int(value)
    reason = f" ({why})" if why else ""
    end = "" if high is None else f" and <= {high}"
    raise refuse(owner, f"{name} must be an integer >= {low}{end}{reason}; got {value!r}.")


def choice(owner: Any, name: str, allowed: Collection[Any]) -> Any:
    """Return the named parameter, which must be one of `allowed`."""
    value = getattr(owner, name)
    if any(value is option or (_kind(value) is _kind(option) and value == option) for option in allowed):
        return value
    listed = ", ".join(repr(option) for option in allowed)
    raise refuse(owner, f"{name} must be one of {listed}; got {value!r}.")


def _kind(value: Any) -> type:
    """Return the type of a value; text of NumPy's is text."""
    return str if isinstance(value, str) else type(value)


def flag(owner: Any, name: str) -> bool:
    """Return the named parameter as a bool."""
    return bool(choice(owner, name, (True, False)))


class Constraint(Protocol):
    """What a parameter may be."""

    def check(self, owner: Any, name: str) -> Any:
        """Return the parameter, or raise the refusal."""


@dataclass(frozen=True)
class Number:
    """A number in [low, high], without the ends that are open."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    allow_inf: bool = False
    why: str = ""

    def check(self, owner: Any, name: str) -> float:
        ends = {"low": self.low, "high": self.high, "open_low": self.open_low, "open_high": self.open_high}
        return number(owner, name, **ends, allow_inf=self.allow_inf, why=self.why)  # type: ignore[arg-type]


def Positive(*, allow_inf: bool = False, why: str = "") -> Number:
    """A number > 0."""
    return Number(low=0.0, open_low=True, allow_inf=allow_inf, why=why)


@dataclass(frozen=True)
class Count:
    """An integer >= low, and <= high: what `predict` repeats or makes so many times has such an end."""

    low: int = 1
    why: str = ""
    high: int | None = None

    def check(self, owner: Any, name: str) -> int:
        return count(owner, name, low=self.low, high=self.high, why=self.why)


class Choice:
    """One of a few values."""

    def __init__(self, *allowed: Any) -> None:
        self.allowed = allowed

    def check(self, owner: Any, name: str) -> Any:
        return choice(owner, name, self.allowed)


Flag = Choice(True, False)
"""True or False."""


class Maybe:
    """One of `values` (None if nothing else is named), or what the constraint asks for."""

    def __init__(self, constraint: Constraint, *values: Any) -> None:
        self.constraint, self.values = constraint, values or (None,)

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        if any(value is option or (type(value) is type(option) and value == option) for option in self.values):
            return value
        return self.constraint.check(owner, name)


@dataclass(frozen=True)
class Function:
    """Something that can be called; `what` says with what."""

    what: str

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        if callable(value):
            return value
        raise refuse(owner, f"{name} must be one of the names it knows, or a function of {self.what}; got {value!r}.")


@dataclass(frozen=True)
class Kind:
    """Something of a type; `what` says which."""

    type: type
    what: str

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        if isinstance(value, self.type):
            return value
        raise refuse(owner, f"{name} must be {self.what}; got {value!r}.")


class NameOr:
    """One of a few names, or something that is no text: whatever the constraint, if there is one, asks for."""

    def __init__(self, constraint: Constraint | None, *names: str) -> None:
        self.constraint, self.names = constraint, names

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        if isinstance(value, str):
            return choice(owner, name, self.names)
        return value if self.constraint is None else self.constraint.check(owner, name)


def constraints(owner: Any) -> Mapping[str, Constraint]:
    """Return the constraints declared by the class of `owner` and its bases, those of the class last."""
    results: dict[str, Constraint] = {}
    for base in reversed(type(owner).__mro__):
        results |= vars(base).get("constraints", {})
    return results


def check(owner: Any) -> None:
    """Refuse the first parameter that its constraint does not allow, by scikit-learn's error, which is a ValueError."""
    seed = getattr(owner, "random_state", None)
    if isinstance(seed, Integral) and not 0 <= int(seed) < 2**32:
        raise refuse(owner, f"random_state: Seed must be between 0 and 2**32 - 1; got {seed!r}.")
    try:
        for name, constraint in constraints(owner).items():
            constraint.check(owner, name)
    except ValueError as error:
        from sklearn.utils._param_validation import InvalidParameterError

        raise InvalidParameterError(str(error)) from None

"""Kernels as plain lists, for files: a name and the parameters of the constructor, kernels in kernels."""

import math
from typing import Any

from assay.kernels._algebra import (
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    PowerSeries,
    Precomputed,
    Product,
    Scaled,
    Sigmoid,
    Sum,
)
from assay.kernels._histogram import HistogramIntersection

KNOWN: dict[str, type[Kernel]] = {
    kind.__name__: kind
    for kind in (
        Linear,
        Polynomial,
        Gaussian,
        Laplacian,
        Sigmoid,
        PowerSeries,
        HistogramIntersection,
        Precomputed,
        Sum,
        Product,
        Scaled,
    )
}
MOST_NESTED, MOST_KERNELS, MOST_FACTORS = 64, 1_000, 1_000
"""How deep kernels may lie in kernels, how many there may be in all, and how long a power series may be."""


def to_plain(kernel: Kernel) -> list[Any]:
    """Return [name, parameters] of a kernel of this room."""
    return _to_plain(kernel, 1, [0])


def _to_plain(kernel: Kernel, depth: int, made: list[int]) -> list[Any]:
    if KNOWN.get(type(kernel).__name__) is not type(kernel):
        raise ValueError(
            f"{kernel!r} holds a Python function or is of a class of its own, which a file cannot keep; use the "
            f"kernels {', '.join(KNOWN)}, their sums, products and multiples."
        )
    _within_limits(depth, made)
    return [type(kernel).__name__, [_value(getattr(kernel, name), depth, made) for name in kernel.fields]]


def _value(value: Any, depth: int, made: list[int]) -> Any:
    if isinstance(value, Kernel):
        return _to_plain(value, depth + 1, made)
    if isinstance(value, list):
        return [float(factor) for factor in value]
    return int(value) if float(value) == int(value) and not isinstance(value, float) else float(value)


def from_plain(value: Any) -> Kernel:
    """Return the kernel that `Kernel.plain` wrote; anything else is refused in words.

    >>> from_plain(["Sum", [["Linear", []], ["Gaussian", [0.5]]]])
    (Linear() + Gaussian(gamma=0.5))
    """
    return _from_plain(value, 1, [0])


def _from_plain(value: Any, depth: int, made: list[int]) -> Kernel:
    _within_limits(depth, made)
    if not (isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], list)):
        raise ValueError("a kernel in a file is a list of its name and its parameters.")
    name, given = value
    if name not in KNOWN:
        raise ValueError(f"no kernel is called {name[:40]!r}; there are {', '.join(KNOWN)}.")
    kind = KNOWN[name]
    if len(given) != len(kind.fields):
        raise ValueError(f"{name}: {len(kind.fields)} parameters are needed; got {len(given)}.")
    return kind(*(_parameter(kind, field, part, depth, made) for field, part in zip(kind.fields, given, strict=True)))


def _parameter(kind: type[Kernel], field: str, value: Any, depth: int, made: list[int]) -> Any:
    if field in ("first", "second", "kernel"):
        return _from_plain(value, depth + 1, made)
    if field == "factors":
        if not isinstance(value, list) or not len(value) <= MOST_FACTORS or not all(map(_is_number, value)):
            raise ValueError(f"{kind.__name__}: factors must be a list of at most {MOST_FACTORS} numbers.")
        return value
    if not _is_number(value):
        raise ValueError(f"{kind.__name__}: {field} must be a finite number.")
    return value


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)


def _within_limits(depth: int, made: list[int]) -> None:
    made[0] += 1
    if depth > MOST_NESTED or made[0] > MOST_KERNELS:
        raise ValueError(
            f"a kernel of more than {MOST_KERNELS} kernels, or nested deeper than {MOST_NESTED}, is neither written "
            "nor read."
        )

"""Kernels by name: the one a learner uses, as in scikit-learn or by rule of thumb; and kernels as plain lists for
files, a name and the parameters of the constructor, kernels in kernels.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from assay.kernels._algebra import (
    Function,
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
    _rows,
)

MOST_NESTED, MOST_KERNELS, MOST_FACTORS = 64, 1_000, 1_000
"""How deep kernels may lie in kernels, how many there may be in all, and how long a power series may be."""
NAMES = ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed", "auto")


class HistogramIntersection(Kernel):
    """kappa(x, z) = sum_j min(x_j, z_j) for entries >= 0: what two histograms have in common.

    Positive semidefinite, since min(a, b) is the inner product of the indicators of [0, a] and [0, b]. For rows that
    sum to 1 it is 1 minus half the Manhattan distance.

    >>> HistogramIntersection()(np.array([[0.5, 0.5]]), np.array([[0.2, 0.8]]))
    array([[0.7]])
    """

    psd = True

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        from assay.kernels._loops import intersections

        for part in (X, Z):
            if part.size and part.min() < 0:
                raise ValueError(f"{self!r}: histograms have no negative entries; the least is {part.min():g}.")
        out = np.empty((len(X), len(Z)))
        intersections(np.ascontiguousarray(X), np.ascontiguousarray(Z), out)
        return out

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return _rows(X).sum(axis=1)


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


def named_kernel(kernel: str | Kernel | Callable, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0) -> Kernel:
    """Return the kernel object for a name of scikit-learn's ("linear", "poly", "rbf", "sigmoid", "laplacian",
    "precomputed"), a kernel object itself, or a function of two arrays of rows.

    >>> named_kernel("rbf", gamma=0.5)
    Gaussian(gamma=0.5)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Function(kernel)
    made: dict[str, Callable[[], Kernel]] = {
        "linear": Linear,
        "poly": lambda: Polynomial(degree, gamma, coef0),
        "rbf": lambda: Gaussian(gamma),
        "sigmoid": lambda: Sigmoid(gamma, coef0),
        "laplacian": lambda: Laplacian(gamma, norm=1),
        "precomputed": Precomputed,
    }
    if not isinstance(kernel, str) or kernel not in made:
        raise ValueError(f"kernel must be one of {', '.join(NAMES)}, a kernel object or a function; got {kernel!r}.")
    return made[kernel]()


def median_gamma(X: np.ndarray, size: int = 1000, seed: int = 0) -> float:
    """Return gamma = 1 / median squared distance between rows (a sample of them), the usual width of a
    Gaussian kernel."""
    X = np.asarray(X, dtype=np.float64)
    rows = np.random.default_rng(seed).choice(len(X), min(size, len(X)), replace=False)
    from scipy.spatial.distance import pdist

    distances = pdist(X[rows], "sqeuclidean")
    distances = distances[distances > 0]
    return 1.0 / float(np.median(distances)) if len(distances) else 1.0


def choose_kernel(X: Any) -> Kernel:
    """Return a linear kernel for sparse text-like data (more columns than rows, or under 5 % non-zero
    entries), else a
    Gaussian one of median width.

    >>> choose_kernel(np.array([[0.0], [1.0], [3.0]]))
    Gaussian(gamma=0.25)
    """
    n, d = X.shape
    filled = X.nnz / (n * d) if hasattr(X, "nnz") else np.count_nonzero(X) / (n * d)
    if d > n or (d > 20 and filled < 0.05):
        return Linear()
    return Gaussian(median_gamma(X.toarray() if hasattr(X, "toarray") else X))

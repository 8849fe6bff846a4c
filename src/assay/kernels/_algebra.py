"""Kernel functions, their algebra, and kernels by name.

A kernel is a symmetric function kappa(x, z) whose Gram matrix on every finite set of points is positive semidefinite:
exactly then kappa(x, z) = <phi(x), phi(z)> for some feature map phi (Mercer, Moore-Aronszajn). Sums with positive
factors, products and g(x) kappa(x, z) g(z) of kernels are kernels, and are written with Python's operators:

    0.5 * Gaussian(gamma=2.0) + Linear() * Polynomial(degree=2)
    Linear().rescaled(g)                                        # g(x) kappa(x, z) g(z)

Model files store a kernel as a plain list: its name and the parameters of its constructor, nested kernels likewise.
"""

import math
from collections.abc import Callable
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np

from assay.params import count, number, positive

_BLOCK = 2_000_000  # entries of a Gram block that is computed in one go
MOST_NESTED, MOST_KERNELS, MOST_FACTORS = 64, 1_000, 1_000
"""How deep kernels may lie in kernels, how many there may be in all, and how long a power series may be."""
NAMES = ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed", "auto")


class Kernel:
    """A function of two rows. `psd` tells whether it is proved to be positive semidefinite (None: not
    known)."""

    psd: bool | None = None
    fields: tuple[str, ...] = ()  # parameters of the constructor

    def __call__(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        """Return the Gram matrix (kappa(x_i, z_j))_ij, (n, m); Z defaults to X."""
        X = _rows(X)
        Z = X if Z is None else _rows(Z)
        if X.shape[1] != Z.shape[1]:
            raise ValueError(f"{self!r}: rows have {X.shape[1]} and {Z.shape[1]} columns; they must agree.")
        step = max(1, _BLOCK // max(1, len(Z)))
        out = np.empty((len(X), len(Z)))
        for start in range(0, len(X), step):
            out[start : start + step] = self.block(X[start : start + step], Z)
        return out

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the Gram block of two double-precision arrays.

        Parameters
        ----------
        Z : ndarray
            Rows of the second array.
        """
        raise NotImplementedError

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """Return kappa(x_i, x_i), (n,)."""
        X = _rows(X)
        return np.array([self.block(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(len(X))])

    def features(self, X: np.ndarray) -> np.ndarray:
        """Return phi(X) with <phi(x), phi(z)> = kappa(x, z), where phi has finitely many components."""
        raise ValueError(f"{self!r} has no finite feature map.")

    def plain(self) -> list[Any]:
        """Return the kernel as a list of its name and its parameters: str, int, float and lists of them alone.

        `from_plain` turns it back. A kernel that holds a Python function has no such form and is refused.

        >>> (2 * Gaussian(0.5)).plain()
        ['Scaled', [['Gaussian', [0.5]], 2.0]]
        """

        return to_plain(self)

    def __add__(self, other: "Kernel") -> "Sum":
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> "Kernel":
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other) if isinstance(other, (int, float)) else NotImplemented

    __rmul__ = __mul__

    def rescaled(self, g: Callable[[np.ndarray], np.ndarray]) -> "Rescaled":
        """Return the kernel g(x) kappa(x, z) g(z); g maps rows (n, d) to numbers (n,).

        Parameters
        ----------
        g : callable
            Returns a number for each row.
        """
        return Rescaled(self, g)

    def __repr__(self) -> str:
        values = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({values})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def _rows(X: Any) -> np.ndarray:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"A kernel needs rows in two dimensions; got an array of shape {X.shape}.")
    return X


# Named kernels
# ------------------------------------------------------------------------------------------------------


class Linear(Kernel):
    """kappa(x, z) = <x, z>.

    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]]))
    array([[1.]])
    """

    psd = True

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return X @ Z.T

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", _rows(X), _rows(X))

    def features(self, X: np.ndarray) -> np.ndarray:
        return _rows(X)


class Polynomial(Kernel):
    """kappa(x, z) = (gamma <x, z> + coef0)^degree, degree a positive integer, gamma > 0.

    Positive semidefinite when coef0 >= 0: then it is a sum of powers of <x, z> with non-negative factors.

    Parameters
    ----------
    degree : int, default=3
        The power.
    gamma : float, default=1.0
        Factor of the distance or inner product.
    coef0 : float, default=0.0
        What is added to the inner product.

    Examples
    --------
    >>> Polynomial(degree=2)(np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]]))
    array([[1.]])
    """

    fields = ("degree", "gamma", "coef0")

    def __init__(self, degree: int = 3, gamma: float = 1.0, coef0: float = 0.0) -> None:
        self.degree, self.gamma, self.coef0 = degree, gamma, coef0
        count(self, "degree", why="a negative <x, z> has no real power that is not an integer")
        positive(self, "gamma")
        number(self, "coef0")

    @property
    def psd(self) -> bool | None:  # type: ignore[override]
        """Whether every Gram matrix is positive semidefinite."""
        return True if self.coef0 >= 0 else None

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return (self.gamma * (X @ Z.T) + self.coef0) ** self.degree

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return (self.gamma * Linear().diagonal(X) + self.coef0) ** self.degree

    def features(self, X: np.ndarray) -> np.ndarray:
        """Return all monomials of degree <= `degree`, weighted by the roots of the multinomial
        coefficients."""
        if self.coef0 < 0:
            raise ValueError(f"{self!r}: with coef0 < 0 it is no sum of squares, so it has no feature map.")
        X = math.sqrt(self.gamma) * _rows(X)
        X = np.column_stack([X, np.full(len(X), math.sqrt(self.coef0))]) if self.coef0 else X
        columns = []
        for chosen in combinations_with_replacement(range(X.shape[1]), self.degree):
            powers = np.bincount(chosen, minlength=X.shape[1])
            ways = math.factorial(self.degree) / math.prod(math.factorial(int(p)) for p in powers)
            columns.append(math.sqrt(ways) * np.prod(X[:, list(chosen)], axis=1))
        return np.column_stack(columns)


class Gaussian(Kernel):
    """kappa(x, z) = exp(-gamma |x - z|^2); gamma = 1 / (2 sigma^2).

    Parameters
    ----------
    gamma : float, default=1.0
        Factor of the distance or inner product.

    Examples
    --------
    >>> bool(Gaussian(gamma=0.5)(np.zeros((1, 1)), np.full((1, 1), 2.0))[0, 0] == np.exp(-2.0))
    True
    """

    psd = True
    fields = ("gamma",)

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma
        positive(self, "gamma")

    @classmethod
    def of_width(cls, sigma: float) -> "Gaussian":
        """Return exp(-|x - z|^2 / (2 sigma^2)).

        Parameters
        ----------
        sigma : float
            Width of the Gaussian.
        """
        return cls(1.0 / (2.0 * sigma * sigma))

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.exp(-self.gamma * squared_distances(X, Z))

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.ones(len(X))


class Laplacian(Kernel):
    """kappa(x, z) = exp(-gamma |x - z|), Euclidean norm (norm=2) or sum of absolute differences (norm=1).

    The notes print the Euclidean one as exp(-|x - z| / sigma), gamma = 1 / sigma; scikit-learn's
    `laplacian_kernel` is norm=1.

    Parameters
    ----------
    gamma : float, default=1.0
        Factor of the distance or inner product.
    norm : int, default=2
        2: Euclidean norm; 1: sum of absolute differences.

    Examples
    --------
    >>> bool(Laplacian(gamma=1.0)(np.zeros((1, 2)), np.array([[3.0, 4.0]]))[0, 0] == np.exp(-5.0))
    True
    """

    psd = True
    fields = ("gamma", "norm")

    def __init__(self, gamma: float = 1.0, norm: int = 2) -> None:
        self.gamma, self.norm = gamma, norm
        positive(self, "gamma")
        if norm not in (1, 2):
            raise ValueError(f"Laplacian: norm must be 1 or 2; got {norm!r}.")

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        if self.norm == 2:
            return np.exp(-self.gamma * np.sqrt(squared_distances(X, Z)))
        from scipy.spatial.distance import cdist

        return np.exp(-self.gamma * cdist(X, Z, "cityblock"))

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.ones(len(X))


class Sigmoid(Kernel):
    """kappa(x, z) = tanh(gamma <x, z> + coef0): in general not positive semidefinite, so no optimality is
    claimed for it.

    With gamma = 1, coef0 = -1/2 and the points 0 and 1 the Gram matrix has the eigenvalues +-0.6535.

    Parameters
    ----------
    gamma : float, default=1.0
        Factor of the distance or inner product.
    coef0 : float, default=0.0
        What is added to the inner product.
    """

    psd = False
    fields = ("gamma", "coef0")

    def __init__(self, gamma: float = 1.0, coef0: float = 0.0) -> None:
        self.gamma, self.coef0 = gamma, coef0
        number(self, "gamma")
        number(self, "coef0")

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.tanh(self.gamma * (X @ Z.T) + self.coef0)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.tanh(self.gamma * Linear().diagonal(X) + self.coef0)


class PowerSeries(Kernel):
    """kappa(x, z) = sum_p c_p <x, z>^p with c_p >= 0, cut at the last factor given; 1 + t + t^2 is the
    quadratic kernel.

    Parameters
    ----------
    factors : array-like
        c_0, c_1, ... of the powers.

    Examples
    --------
    >>> PowerSeries([1, 1, 1])(np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]]))
    array([[3.]])
    """

    psd = True
    fields = ("factors",)

    def __init__(self, factors: Any) -> None:
        self.factors = [float(c) for c in factors]
        if not self.factors or not all(math.isfinite(c) and c >= 0 for c in self.factors):
            raise ValueError(
                f"PowerSeries: factors must be finite and >= 0 (a negative one may leave no kernel); got {factors!r}."
            )

    @classmethod
    def converged(
        cls, factor: Callable[[int], float], reach: float, *, tol: float = 1e-14, most: int = 1000
    ) -> "PowerSeries":
        """Return the series with factors `factor(p)`, cut where the rest is at most tol of the sum wherever |<x, z>| <=
        reach; refuse one that does not converge absolutely there.

        Once the terms c_p reach^p fall by a ratio of at most q < 1 the rest is at most the last term times q / (1 - q).
        No finite number of terms tells how the others go on: the ratios of the last eight are taken for theirs.

        Parameters
        ----------
        factor : callable
            Returns the factor of power p.
        reach : float
            Largest absolute inner product.
        tol : float, default=1e-14
            Change of the values that ends the iterations.
        most : int, default=1000
            Largest number of factors.

        Examples
        --------
        >>> series = PowerSeries.converged(lambda p: 1 / math.factorial(p), 2.0)
        >>> bool(abs(series(np.array([[2.0]]), np.array([[1.0]]))[0, 0] - math.exp(2.0)) < 1e-13)
        True
        """
        factors: list[float] = []
        terms: list[float] = []
        power = 1.0  # of the reach; infinite rather than an error where it leaves the range of doubles
        for p in range(most):
            factors.append(float(factor(p)))
            terms.append(factors[-1] * power if factors[-1] else 0.0)
            power *= float(reach)
            last = [term for term in terms if term > 0][-9:]
            if not math.isfinite(terms[-1]) or len(last) < 9:
                continue
            q = max(after / before for before, after in pairwise(last))
            if q < 1 and terms[-1] * q / (1 - q) <= tol * sum(terms) and terms[-1] > 0:
                return cls(factors)
        raise ValueError(
            f"PowerSeries: the series was not seen to converge absolutely at |<x, z>| = {reach:g} within {most} terms; "
            "shorten the rows, or give finitely many factors."
        )

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.polynomial.polynomial.polyval(X @ Z.T, self.factors)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.polynomial.polynomial.polyval(Linear().diagonal(X), self.factors)

    def features(self, X: np.ndarray) -> np.ndarray:
        X = _rows(X)
        parts = [math.sqrt(c) * Polynomial(p).features(X) for p, c in enumerate(self.factors) if p and c]
        if self.factors[0]:
            parts.insert(0, np.full((len(X), 1), math.sqrt(self.factors[0])))
        return np.column_stack(parts)


class Precomputed(Kernel):
    """The Gram matrix is given: rows of X are rows of the matrix, columns are the training points."""

    def __call__(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        return _rows(X)

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return _rows(X)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.diag(X).copy()


class Function(Kernel):
    """Any function of two arrays of rows that returns their Gram matrix.

    Parameters
    ----------
    function : callable
        Returns the Gram matrix of two arrays of rows.
    """

    def __init__(self, function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        self.function = function

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        gram = np.asarray(self.function(X, Z), dtype=np.float64)
        if gram.shape != (len(X), len(Z)):
            raise ValueError(
                f"The kernel must return one number per pair of rows, {(len(X), len(Z))}; got {gram.shape}."
            )
        return gram


# Closure ----------------------------------------------------------------------------------------------------


def _both(first: Kernel, second: Kernel) -> bool | None:
    return True if first.psd and second.psd else None


class Sum(Kernel):
    """kappa_1 + kappa_2.

    Parameters
    ----------
    first, second : Kernel
        The terms.
    """

    fields = ("first", "second")

    def __init__(self, first: Kernel, second: Kernel) -> None:
        self.first, self.second = first, second
        self.psd = _both(first, second)

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return self.first.block(X, Z) + self.second.block(X, Z)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return self.first.diagonal(X) + self.second.diagonal(X)

    def features(self, X: np.ndarray) -> np.ndarray:
        return np.column_stack([self.first.features(X), self.second.features(X)])

    def __repr__(self) -> str:
        return f"({self.first!r} + {self.second!r})"


class Product(Kernel):
    """kappa_1 kappa_2, entry by entry (Schur).

    Parameters
    ----------
    first, second : Kernel
        The factors.
    """

    fields = ("first", "second")

    def __init__(self, first: Kernel, second: Kernel) -> None:
        self.first, self.second = first, second
        self.psd = _both(first, second)

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return self.first.block(X, Z) * self.second.block(X, Z)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return self.first.diagonal(X) * self.second.diagonal(X)

    def features(self, X: np.ndarray) -> np.ndarray:
        first, second = self.first.features(X), self.second.features(X)
        return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)

    def __repr__(self) -> str:
        return f"({self.first!r} * {self.second!r})"


class Scaled(Kernel):
    """factor * kappa; positive semidefinite for factor >= 0.

    Parameters
    ----------
    kernel : Kernel
        A kernel.
    factor : float
        The factor.
    """

    fields = ("kernel", "factor")

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.kernel, self.factor = kernel, float(factor)
        number(self, "factor")
        self.psd = kernel.psd if factor > 0 else (True if factor == 0 else None)

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return self.factor * self.kernel.block(X, Z)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return self.factor * self.kernel.diagonal(X)

    def features(self, X: np.ndarray) -> np.ndarray:
        if self.factor < 0:
            raise ValueError(f"{self!r}: a negative multiple of a kernel has no feature map.")
        return math.sqrt(self.factor) * self.kernel.features(X)

    def __repr__(self) -> str:
        return f"{self.factor!r} * {self.kernel!r}"


class Rescaled(Kernel):
    """g(x) kappa(x, z) g(z) for a real function g of rows.

    Parameters
    ----------
    kernel : Kernel
        A kernel.
    g : callable
        Returns a number for each row.
    """

    def __init__(self, kernel: Kernel, g: Callable[[np.ndarray], np.ndarray]) -> None:
        self.kernel, self.g = kernel, g
        self.psd = kernel.psd

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return self.g(X)[:, None] * self.kernel.block(X, Z) * self.g(Z)[None, :]

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return self.g(_rows(X)) ** 2 * self.kernel.diagonal(X)

    def features(self, X: np.ndarray) -> np.ndarray:
        return self.g(_rows(X))[:, None] * self.kernel.features(X)


def squared_distances(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return |x_i - z_j|^2, (n, m), never negative; columns are centred first so that a common offset
    cancels nothing."""
    centre = Z.mean(axis=0) if len(Z) else 0.0
    X, Z = X - centre, Z - centre
    out = X @ Z.T
    out *= -2.0
    out += np.einsum("ij,ij->i", X, X)[:, None]
    out += np.einsum("ij,ij->i", Z, Z)[None, :]
    return np.maximum(out, 0.0, out=out)


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

    Parameters
    ----------
    value : dict
        What `Kernel.plain` wrote.

    Returns
    -------
    Kernel
        The kernel.

    Examples
    --------
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

    Parameters
    ----------
    kernel : str or Kernel or callable
        Its name, a kernel, or a function of two arrays of rows.
    gamma : float, default=1.0
        Factor of the distance or inner product.
    degree : int, default=3
        The power.
    coef0 : float, default=0.0
        What is added to the inner product.

    Returns
    -------
    Kernel
        The kernel.

    Examples
    --------
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
    Gaussian kernel.

    Parameters
    ----------
    X : ndarray
        Rows.
    size : int, default=1000
        Largest number of rows that is looked at.
    seed : int, default=0
        Seed of what is drawn.

    Returns
    -------
    float
        gamma.
    """
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

    Parameters
    ----------
    X : array-like
        Rows.

    Returns
    -------
    Kernel
        The kernel.

    Examples
    --------
    >>> choose_kernel(np.array([[0.0], [1.0], [3.0]]))
    Gaussian(gamma=0.25)
    """
    n, d = X.shape
    filled = X.nnz / (n * d) if hasattr(X, "nnz") else np.count_nonzero(X) / (n * d)
    if d > n or (d > 20 and filled < 0.05):
        return Linear()
    return Gaussian(median_gamma(X.toarray() if hasattr(X, "toarray") else X))

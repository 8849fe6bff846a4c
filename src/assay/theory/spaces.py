"""Hypothesis spaces as objects: what a class can do to points, and how much it can do.

A space knows its growth function (the most patterns it makes on m points), its VC dimension, the
dichotomies of given points, whether it shatters them and, where that is feasible, its exact empirical risk
minimiser. Labels are -1 and +1; rows that are equal get equal labels. `descriptor()` is plain data from
which another program can recompute `log_growth`.

`growth` and `vc_dimension` are exact where `exact_growth` and `exact_vc` say so and upper bounds otherwise.

References: Vapnik and Chervonenkis 1971; Cover 1965; Dudley 1978, 1979; Blumer et al. 1989; Gey 2018
(stumps). Upper bounds come from counting: patterns of a function of several classifiers are at most the
product of their numbers of patterns.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.theory import _checks as check
from assay.theory import _patterns, shatter
from assay.theory._patterns import Rule
from assay.theory._tails import binomial_sum, log_binomial_sum
from assay.theory.vc import cover, log_cover

_ROUND = 1e-9  # added to every logarithm, so that it is surely not below the exact one


class Minimiser(NamedTuple):
    """A hypothesis with the smallest (weighted) number of errors in its space."""

    errors: float
    labels: np.ndarray
    hypothesis: Rule


@dataclass(frozen=True)
class Space(ABC):
    """A set of functions from points to labels."""

    tag: ClassVar[str]
    exact_growth: ClassVar[bool] = True
    exact_vc: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.type in (int, "int"):
                low = 2 if item.name == "n_classes" else 1
                check.whole(f"{type(self).__name__}: {item.name}", value, low=low)
            elif item.type in (bool, "bool") and not isinstance(value, bool):
                raise ValueError(f"{type(self).__name__}: {item.name} must be True or False; got {value!r}.")

    def descriptor(self) -> dict[str, Any]:
        """Return the class as plain JSON values."""
        return {"class": self.tag} | {item.name: getattr(self, item.name) for item in fields(self)}

    @property
    @abstractmethod
    def vc_dimension(self) -> int | float:
        """The size of the largest set that the space shatters."""

    @abstractmethod
    def _growth(self, m: int) -> int:
        """Return the formula for the growth function at m >= 1 points."""

    def _log_growth(self, n: int) -> float:
        return math.log(self._growth(n))

    def growth(self, m: int) -> int:
        """Return the largest number of patterns on m points, or a bound above it, as an exact integer."""
        m = check.whole("m", m)
        return min(2**m, self._growth(m)) if self._two_labels else self._growth(m)

    def log_growth(self, n: int) -> float:
        """Return ln of the growth function at n points, or of a bound above it, rounded up."""
        return self._log_growth(check.whole("n", n)) + _ROUND

    @property
    def _two_labels(self) -> bool:
        return getattr(self, "n_classes", 2) == 2

    def dichotomies(self, points: ArrayLike) -> np.ndarray:
        """Return the labellings of the points that the space makes, one row of -1 and +1 for each, sorted."""
        points = self._points(points)
        return _patterns.unpack(self._masks(points), len(points))

    def shatters(self, points: ArrayLike) -> bool:
        """Return whether the space makes all 2^m labellings of the m points."""
        points = self._points(points)
        if len(points) > self.vc_dimension or len(np.unique(points, axis=0)) < len(points):
            return False
        return len(self._masks(points)) == 2 ** len(points)

    def realizes(self, points: ArrayLike, labels: ArrayLike) -> bool:
        """Return whether some hypothesis of the space gives exactly these labels."""
        points = self._points(points)
        return _patterns.pack(_patterns.signs(labels, len(points))) in self._masks(points)

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Minimiser:
        """Return the hypothesis with the smallest weighted number of errors; found exactly."""
        X = self._points(X)
        y, weight = _patterns.signs(y, len(X)), _patterns.weights(sample_weight, len(X))
        return self._found(X, y, weight, self._rule(X, y * weight))

    def _found(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray, rule: Rule) -> Minimiser:
        labels = rule(X)
        return Minimiser(float(weight[labels != y].sum()), labels, rule)

    def _points(self, points: ArrayLike) -> np.ndarray:
        return _patterns.points(points, getattr(self, "d", 1), type(self).__name__)

    def _masks(self, points: np.ndarray) -> set[int]:
        raise NotImplementedError(f"{type(self).__name__}: its dichotomies cannot be listed; use growth(m).")

    def _rule(self, X: np.ndarray, gain: np.ndarray) -> Rule:
        raise NotImplementedError(f"{type(self).__name__}: exact minimisation of the error is not feasible.")


@dataclass(frozen=True)
class Thresholds(Space):
    """+1 to the right of a point of the line: 1[x > t]. VC dimension 1, m + 1 patterns."""

    tag: ClassVar[str] = "thresholds"
    vc_dimension: ClassVar[int] = 1  # type: ignore[misc]

    def _growth(self, m: int) -> int:
        return m + 1

    def _masks(self, points: np.ndarray) -> set[int]:
        return set(_patterns.suffixes(points[:, 0]))

    def _rule(self, X: np.ndarray, gain: np.ndarray) -> Rule:
        return _patterns.best_threshold(X, gain, features=[0], signs=(1,))


@dataclass(frozen=True)
class SignedThresholds(Space):
    """A threshold on the line with +1 on either side. VC dimension 2, 2m patterns."""

    tag: ClassVar[str] = "signed_thresholds"
    vc_dimension: ClassVar[int] = 2  # type: ignore[misc]

    def _growth(self, m: int) -> int:
        return 2 * m

    def _masks(self, points: np.ndarray) -> set[int]:
        return _patterns.with_complements(_patterns.suffixes(points[:, 0]), len(points))

    def _rule(self, X: np.ndarray, gain: np.ndarray) -> Rule:
        return _patterns.best_threshold(X, gain, features=[0], signs=(1, -1))


@dataclass(frozen=True)
class UnionsOfIntervals(Space):
    """+1 on at most k closed intervals of the line. VC dimension 2k; Sauer's sum is attained."""

    k: int
    tag: ClassVar[str] = "unions_of_intervals"

    @property
    def vc_dimension(self) -> int:
        return 2 * self.k

    def _growth(self, m: int) -> int:
        return binomial_sum(m, 2 * self.k)

    def _log_growth(self, n: int) -> float:
        return log_binomial_sum(n, 2 * self.k)

    def _masks(self, points: np.ndarray) -> set[int]:
        return set(_patterns.unions(points[:, 0], self.k))

    def _rule(self, X: np.ndarray, gain: np.ndarray) -> Rule:
        return _patterns.best_intervals(X, gain, self.k)


@dataclass(frozen=True)
class Intervals(UnionsOfIntervals):
    """+1 on a closed interval [a, b] of the line. VC dimension 2, 1 + m(m+1)/2 patterns.

    >>> Intervals().vc_dimension, [Intervals().growth(m) for m in range(1, 7)]
    (2, [2, 4, 7, 11, 16, 22])
    """

    k: int = field(default=1, init=False, repr=False)
    tag: ClassVar[str] = "intervals"

    def descriptor(self) -> dict[str, Any]:
        return {"class": self.tag}


@dataclass(frozen=True)
class Boxes(Space):
    """+1 inside a box with sides parallel to the axes of R^d. VC dimension 2d.

    Growth at most min(Sauer's sum for 2d, (1 + m(m+1)/2)^d).
    """

    d: int
    tag: ClassVar[str] = "boxes"
    exact_growth: ClassVar[bool] = False

    @property
    def vc_dimension(self) -> int:
        return 2 * self.d

    def _growth(self, m: int) -> int:
        return min(binomial_sum(m, 2 * self.d), (1 + m * (m + 1) // 2) ** self.d)

    def _log_growth(self, n: int) -> float:
        return min(log_binomial_sum(n, 2 * self.d), self.d * math.log(1 + n * (n + 1) // 2))

    def _masks(self, points: np.ndarray) -> set[int]:
        return _patterns.boxes(points)

    def _rule(self, X: np.ndarray, gain: np.ndarray) -> Rule:
        return _patterns.best_box(X, gain)


class _Lifted(Space):
    """A hyperplane through the origin after mapping each point to a vector of exact fractions."""

    def _lift(self, points: np.ndarray) -> list[list]:
        raise NotImplementedError

    def _masks(self, points: np.ndarray) -> set[int]:
        return shatter.cells(self._lift(points))

    def _separation(self, points: np.ndarray, labels: np.ndarray) -> shatter.Separation:
        return shatter.separate_lifted(self._lift(points), labels)

    def realizes(self, points: ArrayLike, labels: ArrayLike) -> bool:
        return self.separation(points, labels).separable

    def separation(self, points: ArrayLike, labels: ArrayLike) -> shatter.Separation:
        """Return a separator of these labels, or the weights that prove there is none; decided exactly."""
        points = self._points(points)
        return self._separation(points, _patterns.signs(labels, len(points)))

    def _rule(self, X: np.ndarray, gain: np.ndarray) -> Rule:
        best = max(self._masks(X), key=lambda mask: _patterns.score(mask, gain))
        found = self._separation(X, _patterns.unpack({best}, len(X))[0])
        assert found.normal is not None
        return shatter.LiftedRule(found.normal, self._lift)


@dataclass(frozen=True)
class HalfSpaces(_Lifted):
    """+1 where w.x + b > 0 in R^d (b = 0 without `bias`). VC dimension d + 1 (d without bias).

    Growth: Cover's 2 (C(m-1,0) + ... + C(m-1,d)). Without a bias a row on the hyperplane cannot be moved
    off it by shifting b, so Sauer's sum for VC dimension d, which counts such ties too, is used;
    `dichotomies` leaves ties out.

    >>> HalfSpaces(2).vc_dimension, [HalfSpaces(2).growth(m) for m in range(2, 7)]
    (3, [4, 8, 14, 22, 32])
    >>> HalfSpaces(2).shatters([[0, 0], [1, 0], [0, 1]]), HalfSpaces(2).shatters([[0, 0], [1, 1], [2, 2]])
    (True, False)
    """

    d: int
    bias: bool = True
    tag: ClassVar[str] = "halfspaces"

    @property
    def exact_growth(self) -> bool:  # type: ignore[override]
        return self.bias

    @property
    def vc_dimension(self) -> int:
        return self.d + self.bias

    def _growth(self, m: int) -> int:
        return cover(m, self.d + 1) if self.bias else binomial_sum(m, self.d)

    def _log_growth(self, n: int) -> float:
        return log_cover(n, self.d + 1) if self.bias else log_binomial_sum(n, self.d)

    def _lift(self, points: np.ndarray) -> list[list]:
        return shatter.monomials(points, 1, constant=self.bias)


@dataclass(frozen=True)
class FunctionSpace(Space):
    """Sign of a function from a linear space of the given dimension that contains the constants.

    VC dimension at most the dimension D (Dudley 1978); growth Cover's count in R^D. With K classes the
    label is the largest of K such functions and is fixed by K(K-1)/2 comparisons.
    """

    dimension: int
    n_classes: int = 2
    tag: ClassVar[str] = "function_space"
    exact_growth: ClassVar[bool] = False
    exact_vc: ClassVar[bool] = False

    @property
    def _pairs(self) -> int:
        return self.n_classes * (self.n_classes - 1) // 2

    @property
    def vc_dimension(self) -> int:
        return self.dimension if self._pairs == 1 else _dimension_from_growth(self._growth)

    def _growth(self, m: int) -> int:
        return cover(m, self.dimension) ** self._pairs

    def _log_growth(self, n: int) -> float:
        return self._pairs * log_cover(n, self.dimension)


@dataclass(frozen=True)
class MulticlassHalfSpaces(Space):
    """The label whose score w_k.x + b_k is largest among K classes, ties by a fixed rule.

    The label is fixed by K(K-1)/2 comparisons of two scores, each a half-space: growth is at most the
    product. The dimension reported is the largest v with growth(v) >= 2^v, a bound for the patterns of
    right and wrong.
    """

    d: int
    n_classes: int
    bias: bool = True
    tag: ClassVar[str] = "multiclass_halfspaces"
    exact_growth: ClassVar[bool] = False
    exact_vc: ClassVar[bool] = False

    @property
    def _pairs(self) -> int:
        return self.n_classes * (self.n_classes - 1) // 2

    @property
    def vc_dimension(self) -> int:
        return _dimension_from_growth(self._growth)

    def _growth(self, m: int) -> int:
        return HalfSpaces(self.d, self.bias)._growth(m) ** self._pairs

    def _log_growth(self, n: int) -> float:
        return self._pairs * HalfSpaces(self.d, self.bias)._log_growth(n)


@dataclass(frozen=True)
class PolynomialClassifiers(_Lifted):
    """Sign of a polynomial of that degree in d variables: half-spaces over its C(d+degree, d) monomials."""

    d: int
    degree: int
    tag: ClassVar[str] = "polynomials"

    @property
    def vc_dimension(self) -> int:
        return math.comb(self.d + self.degree, self.degree)

    def _growth(self, m: int) -> int:
        return cover(m, self.vc_dimension)

    def _log_growth(self, n: int) -> float:
        return log_cover(n, self.vc_dimension)

    def _lift(self, points: np.ndarray) -> list[list]:
        return shatter.monomials(points, self.degree, constant=True)


@dataclass(frozen=True)
class Balls(_Lifted):
    """+1 inside a ball of R^d. VC dimension d + 1.

    |x - c|^2 <= r^2 is linear in (2c, r^2 - |c|^2), so m points cut R^(d+1) by m hyperplanes into at most
    Sauer's C(m,0) + ... + C(m,d+1) cells, and exactly so many in general position (Dudley 1979).
    """

    d: int
    tag: ClassVar[str] = "balls"

    @property
    def vc_dimension(self) -> int:
        return self.d + 1

    def _growth(self, m: int) -> int:
        return binomial_sum(m, self.d + 1)

    def _log_growth(self, n: int) -> float:
        return log_binomial_sum(n, self.d + 1)

    def _lift(self, points: np.ndarray) -> list[list]:
        return shatter.paraboloid(points)

    def _masks(self, points: np.ndarray) -> set[int]:
        last = 1 << len(points)  # the direction of the squared norm, which a ball fixes to be positive
        cells = shatter.cells([*self._lift(points), shatter.vertical(self.d)])
        return {mask - last for mask in cells if mask & last}

    def _separation(self, points: np.ndarray, labels: np.ndarray) -> shatter.Separation:
        return shatter.separate_lifted([*self._lift(points), shatter.vertical(self.d)], np.append(labels, 1))


@dataclass(frozen=True)
class Stumps(Space):
    """One feature of d against a threshold, +1 on either side.

    VC dimension: the largest v with C(v, floor(v/2)) <= 2d (Gey 2018). Growth: a split of m points into j
    and m - j can come from at most 2d ends of an order (d if j = m/2), so at most 2 (1 + sum_{j < m/2}
    min(C(m,j), 2d) + [m even] min(C(m,m/2)/2, d)); for m >= 2d + 1 mostly 2 + 2d(m-1), which `log_growth`
    uses.
    """

    d: int
    tag: ClassVar[str] = "stumps"

    @property
    def vc_dimension(self) -> int:
        v = 1
        while math.comb(v + 1, (v + 1) // 2) <= 2 * self.d:
            v += 1
        return v

    def _growth(self, m: int) -> int:
        splits = sum(min(math.comb(m, j), 2 * self.d) for j in range(1, (m - 1) // 2 + 1))
        middle = min(math.comb(m, m // 2) // 2, self.d) if m % 2 == 0 else 0
        return 2 * (1 + splits + middle)

    def _log_growth(self, n: int) -> float:
        return math.log(2 + 2 * self.d * (n - 1))

    def _masks(self, points: np.ndarray) -> set[int]:
        masks = {mask for j in range(self.d) for mask in _patterns.suffixes(points[:, j])}
        return _patterns.with_complements(masks, len(points))

    def _rule(self, X: np.ndarray, gain: np.ndarray) -> Rule:
        return _patterns.best_threshold(X, gain, features=range(self.d), signs=(1, -1))


@dataclass(frozen=True)
class Trees(Space):
    """Decision trees with at most `leaves` leaves, each node testing one of d real features, K labels.

    Growth at most Catalan(leaves-1) (d(m-1)+1)^(leaves-1) K^leaves: shapes, splits (each node makes at most
    d(m-1)+1 unordered bipartitions, the trivial one included) and labels. A tree with fewer leaves is one
    with trivial splits.
    """

    d: int
    leaves: int
    n_classes: int = 2
    tag: ClassVar[str] = "trees"
    exact_growth: ClassVar[bool] = False
    exact_vc: ClassVar[bool] = False

    @property
    def vc_dimension(self) -> int:
        return _dimension_from_growth(self._growth)

    def _growth(self, m: int) -> int:
        inner = self.leaves - 1
        shapes = math.comb(2 * inner, inner) // self.leaves
        return shapes * (self.d * (m - 1) + 1) ** inner * self.n_classes**self.leaves

    def _log_growth(self, n: int) -> float:
        inner = self.leaves - 1
        shapes = math.log(math.comb(2 * inner, inner) // self.leaves)
        return shapes + inner * math.log(self.d * (n - 1) + 1) + self.leaves * math.log(self.n_classes)


@dataclass(frozen=True)
class Votes(Space):
    """Sign of a weighted sum of T hypotheses of a base space.

    Growth at most Pi_base(m)^T times the patterns of a hyperplane through the origin of R^T, for which
    Sauer's sum is taken because weighted votes may tie.
    """

    base: Space
    T: int
    tag: ClassVar[str] = "votes"
    exact_growth: ClassVar[bool] = False
    exact_vc: ClassVar[bool] = False

    def descriptor(self) -> dict[str, Any]:
        return {"class": self.tag, "base": self.base.descriptor(), "T": self.T}

    @property
    def vc_dimension(self) -> int:
        return _dimension_from_growth(self._growth)

    def _growth(self, m: int) -> int:
        return self.base.growth(m) ** self.T * binomial_sum(m, self.T)

    def _log_growth(self, n: int) -> float:
        return self.T * self.base.log_growth(n) + log_binomial_sum(n, self.T)


@dataclass(frozen=True, init=False)
class Finite(Space):
    """A finite set of hypotheses, given by its size or by the hypotheses themselves (callables X -> -1, +1)."""

    size: int
    hypotheses: tuple[Callable[[np.ndarray], np.ndarray], ...]
    tag: ClassVar[str] = "finite"

    def __init__(self, hypotheses: int | Sequence[Callable]) -> None:
        given = () if isinstance(hypotheses, int) else tuple(hypotheses)
        size = hypotheses if isinstance(hypotheses, int) else len(given)
        object.__setattr__(self, "size", check.whole("Finite: the number of hypotheses", size))
        object.__setattr__(self, "hypotheses", given)

    def descriptor(self) -> dict[str, Any]:
        return {"class": self.tag, "size": self.size}

    def __len__(self) -> int:
        return self.size

    @property
    def exact_growth(self) -> bool:  # type: ignore[override]
        return False

    @property
    def exact_vc(self) -> bool:  # type: ignore[override]
        return False

    @property
    def vc_dimension(self) -> int:
        return self.size.bit_length() - 1

    def _growth(self, m: int) -> int:
        return self.size

    def _points(self, points: ArrayLike) -> np.ndarray:
        return np.asarray(points)

    def patterns(self, X: ArrayLike) -> np.ndarray:
        """Return the label of every hypothesis (rows) on every point (columns)."""
        if not self.hypotheses:
            raise ValueError(
                "Finite: only the number of hypotheses was given; pass the hypotheses themselves."
            )
        return np.array([_patterns.signs(h(np.asarray(X)), len(X)) for h in self.hypotheses])

    def _masks(self, points: np.ndarray) -> set[int]:
        return {_patterns.pack(row) for row in self.patterns(points)}

    def _rule(self, X: np.ndarray, gain: np.ndarray) -> Rule:
        return self.hypotheses[int(np.argmax(self.patterns(X) @ gain))]


@dataclass(frozen=True)
class Unbounded(Space):
    """A class that shatters sets of every size, so that no bound through its growth function exists."""

    reason: str
    tag: ClassVar[str] = "unbounded"
    vc_dimension: ClassVar[float] = math.inf  # type: ignore[misc]

    def _growth(self, m: int) -> int:
        return 2**m

    def log_growth(self, n: int) -> float:
        raise ValueError(
            f"this class has infinite capacity ({self.reason}): no growth-function bound exists."
        )


@dataclass(frozen=True)
class Linear:
    """The family of linear classifiers; `at` gives the space for a number of features and classes."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        if n_classes == 2:
            return HalfSpaces(n_features, intercept)
        return MulticlassHalfSpaces(n_features, n_classes, intercept)

    def __str__(self) -> str:
        return "linear classifiers: the sign of w.x + b, or the largest of K such scores"


@dataclass(frozen=True)
class LinearFunctions:
    """The family of linear functions for regression; its capacity is measured by norms, not by counting."""

    def at(self, n_features: int, n_classes: int = 0, intercept: bool = True) -> Space:
        return Unbounded("real-valued functions have losses, not patterns; use a norm or hold-out bound")

    def __str__(self) -> str:
        return "linear functions w.x + b"


def _dimension_from_growth(growth: Callable[[int], int]) -> int:
    """Return the largest v with growth(v) >= 2^v, which bounds the VC dimension."""
    high = 1
    while growth(high) >= 2**high:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if growth(middle) >= 2**middle else (low, middle)
    return low

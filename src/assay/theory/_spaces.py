"""Hypothesis spaces: the base class, spaces of the line and of R^d, and spaces known by a count of their dichotomies.

Counted spaces give upper bounds: a product over the classifiers they consist of. A comparison of two affine functions
with a fixed rule for ties is a half-space with bias, so Cover's count bounds its dichotomies; the VC dimension reported
is the largest v with growth(v) >= 2^v.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.messages import Message
from assay.theory import _checks as check
from assay.theory import _patterns, vc
from assay.theory._patterns import Rule
from assay.theory.concentration import binomial_sum, log_binomial_sum
from assay.theory.vc import cover, log_cover, log_sauer, sauer

_ROUND = 1e-9  # added to every logarithm, so that it is surely not below the exact one


class Minimiser(NamedTuple):
    """A hypothesis with the smallest (weighted) number of errors in its space.

    Parameters
    ----------
    errors : float
        The (weighted) number of errors.
    labels : ndarray
        Its labels of the rows.
    hypothesis : Rule
        The hypothesis, a function of rows.
    """

    errors: float
    labels: np.ndarray
    hypothesis: Rule


@dataclass(frozen=True)
class Space(ABC):
    """A set of functions from points to labels."""

    tag: ClassVar[str]
    exact_growth: ClassVar[bool] = True
    exact_vc: ClassVar[bool] = True

    @property
    def price(self) -> int:
        """By how much delta is divided where the size of the class was not fixed in advance."""
        return 1

    @property
    def why_no_bound(self) -> str:
        """Why a class without a finite VC dimension has no bound by its size."""
        return Message("why.infinite", space=str(self))

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.type in (int, "int"):
                low = 2 if item.name == "n_classes" else 1
                check.whole(f"{type(self).__name__}: {item.name}", value, low=low)
            elif item.type in (bool, "bool") and not isinstance(value, bool):
                raise ValueError(f"{type(self).__name__}: {item.name} must be True or False; got {value!r}.")

    def __str__(self) -> str:
        parts = [f"{name} = {value}" for name, value in self.descriptor().items() if name != "class"]
        return self.tag.replace("-", " ") + (f" ({', '.join(parts)})" if parts else "")

    def at(self, n_features: int, n_classes: int = 2, bias: bool = True) -> "Space":
        """Return the space for so many features and classes; this one does not depend on them.

        Parameters
        ----------
        n_classes : int, default=2
            Number of classes.
        bias : bool, default=True
            Whether hyperplanes have an intercept.
        """
        return self

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
        """Return the largest number of patterns on m points, or a bound above it, as an exact integer.

        Parameters
        ----------
        m : int
            Number of points.
        """
        m = check.whole("m", m)
        return min(2**m, self._growth(m)) if self._two_labels else self._growth(m)

    def log_growth(self, n: int) -> float:
        """Return ln of the growth function at n points, or of a bound above it, rounded up.

        Parameters
        ----------
        n : int
            Number of points.
        """
        return self._log_growth(check.whole("n", n)) + _ROUND

    @property
    def _two_labels(self) -> bool:
        return getattr(self, "n_classes", 2) == 2

    def dichotomies(self, points: ArrayLike) -> np.ndarray:
        """Return the labellings of the points that the space makes, one row of -1 and +1 for each, sorted.

        Parameters
        ----------
        points : array-like
            Points, one in each row.
        """
        points = self._points(points)
        return _patterns.unpack(self._masks(points), len(points))

    def shatters(self, points: ArrayLike) -> bool:
        """Return whether the space makes all 2^m labellings of the m points.

        Parameters
        ----------
        points : array-like
            Points, one in each row.
        """
        points = self._points(points)
        if len(points) > self.vc_dimension or len(np.unique(points, axis=0)) < len(points):
            return False
        return len(self._masks(points)) == 2 ** len(points)

    def largest_shattered(self, points: ArrayLike) -> tuple[int, ...]:
        """Return the indices of a largest subset of the points that the space shatters.

        Subsets of a shattered set are shattered, so sets grow by one point from those that still are; when
        none of the next size is left, the answer is proved for these points.

        Parameters
        ----------
        points : array-like
            Points, one in each row.
        """
        points = self._points(points)
        alive: list[tuple[int, ...]] = [()]
        largest: tuple[int, ...] = ()
        while alive:
            largest = alive[0]
            grown = [(*subset, i) for subset in alive for i in range(max(subset, default=-1) + 1, len(points))]
            alive = [subset for subset in grown if self.shatters(points[list(subset)])]
        return largest

    def realizes(self, points: ArrayLike, labels: ArrayLike) -> bool:
        """Return whether some hypothesis of the space gives exactly these labels.

        Parameters
        ----------
        points : array-like
            Points, one in each row.
        labels : array-like
            Label of each row.
        """
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
class LiftedSpace(Space):
    """A hyperplane through the origin after mapping each point to a vector of exact fractions."""

    def _lift(self, points: np.ndarray) -> list[list]:
        raise NotImplementedError

    def _masks(self, points: np.ndarray) -> set[int]:
        return vc.cells(self._lift(points))

    def _separation(self, points: np.ndarray, labels: np.ndarray) -> vc.Separation:
        return vc.separate_lifted(self._lift(points), labels)

    def realizes(self, points: ArrayLike, labels: ArrayLike) -> bool:
        return self.separation(points, labels).separable

    def separation(self, points: ArrayLike, labels: ArrayLike) -> vc.Separation:
        """Return a separator of these labels, or the weights that prove there is none; decided exactly.

        Parameters
        ----------
        points : array-like
            Points, one in each row.
        labels : array-like
            Label of each row.
        """
        points = self._points(points)
        return self._separation(points, _patterns.signs(labels, len(points)))

    def _rule(self, X: np.ndarray, gain: np.ndarray) -> Rule:
        best = max(self._masks(X), key=lambda mask: _patterns.score(mask, gain))
        result = self._separation(X, _patterns.unpack({best}, len(X))[0])
        assert result.normal is not None
        return vc.LiftedRule(result.normal, self._lift)


@dataclass(frozen=True)
class CountedSpace(Space):
    """A space with an upper bound of its growth function and nothing else."""

    exact_growth: ClassVar[bool] = False
    exact_vc: ClassVar[bool] = False

    @property
    def vc_dimension(self) -> int:
        """The VC dimension, or a bound above it."""
        return dimension_from_growth(self._growth)


def dimension_from_growth(growth: Callable[[int], int]) -> int:
    """Return the largest v with growth(v) >= 2^v, which bounds the VC dimension."""
    high = 1
    while growth(high) >= 2**high:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if growth(middle) >= 2**middle else (low, middle)
    return low


@dataclass(frozen=True)
class OfDimension(CountedSpace):
    """Any class of the given VC dimension, nothing else known of it: Sauer's lemma counts its patterns.

    Parameters
    ----------
    dimension : int
        VC dimension.

    Examples
    --------
    >>> OfDimension(11).vc_dimension
    11
    """

    dimension: int
    tag: ClassVar[str] = "vc-dimension"
    exact_vc: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"a class of VC dimension {self.dimension}"

    @property
    def vc_dimension(self) -> int:
        """The VC dimension, or a bound above it."""
        return self.dimension

    def _growth(self, m: int) -> int:
        return sauer(m, self.dimension)

    def _log_growth(self, n: int) -> float:
        return log_sauer(n, self.dimension)


@dataclass(frozen=True)
class SparseHalfSpaces(CountedSpace):
    """Half-spaces of R^d that use at most s features: one choice of s of them, then Cover's count.

    Parameters
    ----------
    d : int
        Number of columns.
    s : int
        Largest number of columns used.
    """

    d: int
    s: int
    tag: ClassVar[str] = "sparse-halfspaces"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.s > self.d:
            raise ValueError(f"SparseHalfSpaces: s must be at most d; got s = {self.s}, d = {self.d}.")

    def _growth(self, m: int) -> int:
        return math.comb(self.d, self.s) * cover(m, self.s + 1)


@dataclass(frozen=True)
class Intersections(CountedSpace):
    """Intersections of k half-spaces of R^d: convex polyhedra with at most k faces.

    Parameters
    ----------
    d : int
        Number of columns.
    k : int
        Number of half-spaces, prototypes or intervals.
    """

    d: int
    k: int
    tag: ClassVar[str] = "intersections"

    def _growth(self, m: int) -> int:
        return cover(m, self.d + 1) ** self.k


@dataclass(frozen=True)
class StumpConjunctions(CountedSpace):
    """Conjunctions of at most s conditions on single features (rules).

    Parameters
    ----------
    d : int
        Number of columns.
    s : int
        Largest number of columns used.
    """

    d: int
    s: int
    tag: ClassVar[str] = "stump-conjunctions"

    def _growth(self, m: int) -> int:
        return (2 * self.d * (m - 1) + 2) ** self.s


@dataclass(frozen=True)
class DecisionLists(CountedSpace):
    """Lists of at most `tests` conditions on single features, a label for each and one for the rest.

    Parameters
    ----------
    d : int
        Number of columns.
    tests : int
        Largest number of conditions.
    n_classes : int, default=2
        Number of classes.
    """

    d: int
    tests: int
    n_classes: int = 2
    tag: ClassVar[str] = "decision-lists"

    def descriptor(self) -> dict[str, Any]:
        return {"class": self.tag, "d": self.d, "tests": self.tests, "classes": self.n_classes}

    def _growth(self, m: int) -> int:
        return (2 * self.d * (m - 1) + 2) ** self.tests * self.n_classes ** (self.tests + 1)


@dataclass(frozen=True)
class DepthTrees(CountedSpace):
    """Decision trees of at most the given depth over d real features: all 2^depth - 1 nodes split.

    Parameters
    ----------
    d : int
        Number of columns.
    depth : int
        Largest depth.
    n_classes : int, default=2
        Number of classes.
    """

    d: int
    depth: int
    n_classes: int = 2
    tag: ClassVar[str] = "depth-trees"

    def descriptor(self) -> dict[str, Any]:
        return {"class": self.tag, "d": self.d, "depth": self.depth, "classes": self.n_classes}

    def _growth(self, m: int) -> int:
        leaves = 2**self.depth
        return (self.d * (m - 1) + 1) ** (leaves - 1) * self.n_classes**leaves


@dataclass(frozen=True)
class Prototypes(CountedSpace):
    """The label of the nearest of k labelled points of R^d: k(k-1)/2 bisecting hyperplanes and k labels.

    Parameters
    ----------
    d : int
        Number of columns.
    k : int
        Number of half-spaces, prototypes or intervals.
    n_classes : int, default=2
        Number of classes.
    """

    d: int
    k: int
    n_classes: int = 2
    tag: ClassVar[str] = "prototypes"

    def descriptor(self) -> dict[str, Any]:
        return {"class": self.tag, "d": self.d, "k": self.k, "classes": self.n_classes}

    def _growth(self, m: int) -> int:
        return cover(m, self.d + 1) ** (self.k * (self.k - 1) // 2) * self.n_classes**self.k


@dataclass(frozen=True)
class ThresholdNets(CountedSpace):
    """Feed-forward nets of threshold units with biases, layers (inputs, hidden, ..., 1).

    Baum and Haussler 1989: in topological order each unit is a half-space of the outputs of the layer
    before it.

    Parameters
    ----------
    layers : tuple of int
        Number of units of each layer, inputs first, 1 last.
    """

    layers: tuple[int, ...]
    tag: ClassVar[str] = "threshold-nets"

    def __post_init__(self) -> None:
        if len(self.layers) < 2 or self.layers[-1] != 1:
            raise ValueError(f"ThresholdNets: layers must be (inputs, ..., 1); got {self.layers!r}.")
        for width in self.layers:
            check.whole("ThresholdNets: a layer's width", width)

    def descriptor(self) -> dict[str, Any]:
        return {"class": self.tag, "layers": list(self.layers)}

    def _growth(self, m: int) -> int:
        pairs = zip(self.layers[:-1], self.layers[1:])
        return math.prod(cover(m, inputs + 1) ** units for inputs, units in pairs)


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

    tag: ClassVar[str] = "signed-thresholds"
    vc_dimension: ClassVar[int] = 2  # type: ignore[misc]

    def _growth(self, m: int) -> int:
        return 2 * m

    def _masks(self, points: np.ndarray) -> set[int]:
        return _patterns.with_complements(_patterns.suffixes(points[:, 0]), len(points))

    def _rule(self, X: np.ndarray, gain: np.ndarray) -> Rule:
        return _patterns.best_threshold(X, gain, features=[0], signs=(1, -1))


@dataclass(frozen=True)
class UnionsOfIntervals(Space):
    """+1 on at most k closed intervals of the line. VC dimension 2k; Sauer's sum is attained.

    Parameters
    ----------
    k : int
        Number of half-spaces, prototypes or intervals.
    """

    k: int
    tag: ClassVar[str] = "unions-of-intervals"

    @property
    def vc_dimension(self) -> int:
        """The VC dimension, or a bound above it."""
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

    Parameters
    ----------
    d : int
        Number of columns.
    """

    d: int
    tag: ClassVar[str] = "boxes"
    exact_growth: ClassVar[bool] = False

    @property
    def vc_dimension(self) -> int:
        """The VC dimension, or a bound above it."""
        return 2 * self.d

    def _growth(self, m: int) -> int:
        return min(binomial_sum(m, 2 * self.d), (1 + m * (m + 1) // 2) ** self.d)

    def _log_growth(self, n: int) -> float:
        return min(log_binomial_sum(n, 2 * self.d), self.d * math.log(1 + n * (n + 1) // 2))

    def _masks(self, points: np.ndarray) -> set[int]:
        return _patterns.boxes(points)

    def _rule(self, X: np.ndarray, gain: np.ndarray) -> Rule:
        return _patterns.best_box(X, gain)


@dataclass(frozen=True)
class HalfSpaces(LiftedSpace):
    """+1 where w.x + b > 0 in R^d (b = 0 without `bias`). VC dimension d + 1 (d without bias).

    Growth: Cover's 2 (C(m-1,0) + ... + C(m-1,d)). Without a bias a row on the hyperplane cannot be moved
    off it by shifting b, so Sauer's sum for VC dimension d, which counts such ties too, is used;
    `dichotomies` leaves ties out.

    Parameters
    ----------
    d : int
        Number of columns.
    bias : bool, default=True
        Whether the hyperplanes have an intercept.

    Examples
    --------
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
        """Whether `growth` is the growth function and no bound above it."""
        return self.bias

    @property
    def vc_dimension(self) -> int:
        """The VC dimension, or a bound above it."""
        return self.d + self.bias

    def _growth(self, m: int) -> int:
        return cover(m, self.d + 1) if self.bias else binomial_sum(m, self.d)

    def _log_growth(self, n: int) -> float:
        return log_cover(n, self.d + 1) if self.bias else log_binomial_sum(n, self.d)

    def _lift(self, points: np.ndarray) -> list[list]:
        return vc.monomials(points, 1, constant=self.bias)


@dataclass(frozen=True)
class PolynomialClassifiers(LiftedSpace):
    """Sign of a polynomial of that degree in d variables: half-spaces over its C(d+degree, d) monomials.

    Parameters
    ----------
    d : int
        Number of columns.
    degree : int
        Degree of the polynomial.
    """

    d: int
    degree: int
    tag: ClassVar[str] = "polynomials"

    @property
    def vc_dimension(self) -> int:
        """The VC dimension, or a bound above it."""
        return math.comb(self.d + self.degree, self.degree)

    def _growth(self, m: int) -> int:
        return cover(m, self.vc_dimension)

    def _log_growth(self, n: int) -> float:
        return log_cover(n, self.vc_dimension)

    def _lift(self, points: np.ndarray) -> list[list]:
        return vc.monomials(points, self.degree, constant=True)


@dataclass(frozen=True)
class Balls(LiftedSpace):
    """+1 inside a ball of R^d. VC dimension d + 1.

    |x - c|^2 <= r^2 is linear in (2c, r^2 - |c|^2), so m points cut R^(d+1) by m hyperplanes into at most
    Sauer's C(m,0) + ... + C(m,d+1) cells, and exactly so many in general position (Dudley 1979).

    Parameters
    ----------
    d : int
        Number of columns.
    """

    d: int
    tag: ClassVar[str] = "balls"

    @property
    def vc_dimension(self) -> int:
        """The VC dimension, or a bound above it."""
        return self.d + 1

    def _growth(self, m: int) -> int:
        return binomial_sum(m, self.d + 1)

    def _log_growth(self, n: int) -> float:
        return log_binomial_sum(n, self.d + 1)

    def _lift(self, points: np.ndarray) -> list[list]:
        return vc.paraboloid(points)

    def _masks(self, points: np.ndarray) -> set[int]:
        last = 1 << len(points)  # the direction of the squared norm, which a ball fixes to be positive
        cells = vc.cells([*self._lift(points), vc.vertical(self.d)])
        return {mask - last for mask in cells if mask & last}

    def _separation(self, points: np.ndarray, labels: np.ndarray) -> vc.Separation:
        return vc.separate_lifted([*self._lift(points), vc.vertical(self.d)], np.append(labels, 1))


@dataclass(frozen=True)
class Stumps(Space):
    """One feature of d against a threshold, +1 on either side.

    VC dimension: the largest v with C(v, floor(v/2)) <= 2d (Gey 2018). Growth: a split of m points into j
    and m - j can come from at most 2d ends of an order (d if j = m/2), so at most 2 (1 + sum_{j < m/2}
    min(C(m,j), 2d) + [m even] min(C(m,m/2)/2, d)); for m >= 2d + 1 mostly 2 + 2d(m-1), which `log_growth`
    uses.

    Parameters
    ----------
    d : int
        Number of columns.
    """

    d: int
    tag: ClassVar[str] = "stumps"

    @property
    def vc_dimension(self) -> int:
        """The VC dimension, or a bound above it."""
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

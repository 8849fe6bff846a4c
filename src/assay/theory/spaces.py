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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from assay.theory import _checks as check
from assay.theory import _patterns
from assay.theory._patterns import Rule
from assay.theory._spaces import (
    Balls,
    Boxes,
    CountedSpace,
    DecisionLists,
    DepthTrees,
    HalfSpaces,
    Intersections,
    Intervals,
    Minimiser,
    OfDimension,
    PolynomialClassifiers,
    Prototypes,
    SignedThresholds,
    Space,
    SparseHalfSpaces,
    StumpConjunctions,
    Stumps,
    ThresholdNets,
    Thresholds,
    UnionsOfIntervals,
    dimension_from_growth,
)
from assay.theory.concentration import binomial_sum, log_binomial_sum
from assay.theory.vc import cover, log_cover


@dataclass(frozen=True)
class FunctionSpace(Space):
    """Sign of a function from a linear space of the given dimension that contains the constants.

    VC dimension at most the dimension D (Dudley 1978); growth Cover's count in R^D. With K classes the
    label is the largest of K such functions and is fixed by K(K-1)/2 comparisons.

    Parameters
    ----------
    dimension : int
        Dimension of the linear space.
    n_classes : int, default=2
        Number of classes.
    """

    dimension: int
    n_classes: int = 2
    tag: ClassVar[str] = "function-space"
    exact_growth: ClassVar[bool] = False
    exact_vc: ClassVar[bool] = False

    def descriptor(self) -> dict[str, Any]:
        return {"class": self.tag, "dimension": self.dimension, "classes": self.n_classes}

    @property
    def _pairs(self) -> int:
        return self.n_classes * (self.n_classes - 1) // 2

    @property
    def vc_dimension(self) -> int:
        """The VC dimension, or a bound above it."""
        return self.dimension if self._pairs == 1 else dimension_from_growth(self._growth)

    def _growth(self, m: int) -> int:
        return cover(m, self.dimension) ** self._pairs

    def _log_growth(self, n: int) -> float:
        return self._pairs * log_cover(n, self.dimension)


@dataclass(frozen=True)
class MulticlassHalfSpaces(CountedSpace):
    """The label whose score w_k.x + b_k is largest among K classes, ties by a fixed rule.

    The label is fixed by K(K-1)/2 comparisons of two scores, each a half-space: growth is at most the
    product. The dimension reported is the largest v with growth(v) >= 2^v, a bound for the patterns of
    right and wrong.

    Parameters
    ----------
    d : int
        Number of columns.
    n_classes : int
        Number of classes.
    bias : bool, default=True
        Whether the hyperplanes have an intercept.
    """

    d: int
    n_classes: int
    bias: bool = True
    tag: ClassVar[str] = "multiclass-halfspaces"

    def descriptor(self) -> dict[str, Any]:
        plain = {"class": self.tag, "d": self.d, "classes": self.n_classes}
        return plain if self.bias else plain | {"bias": False}

    @property
    def _pairs(self) -> int:
        return self.n_classes * (self.n_classes - 1) // 2

    def _growth(self, m: int) -> int:
        return HalfSpaces(self.d, self.bias)._growth(m) ** self._pairs

    def _log_growth(self, n: int) -> float:
        return self._pairs * HalfSpaces(self.d, self.bias)._log_growth(n)


@dataclass(frozen=True)
class Trees(CountedSpace):
    """Decision trees with at most `leaves` leaves, each node testing one of d real features, K labels.

    Growth at most Catalan(leaves-1) (d(m-1)+1)^(leaves-1) K^leaves: shapes, splits (each node makes at most
    d(m-1)+1 unordered bipartitions, the trivial one included) and labels. A tree with fewer leaves is one
    with trivial splits.

    Parameters
    ----------
    d : int
        Number of columns.
    leaves : int
        Largest number of leaves.
    n_classes : int, default=2
        Number of classes.
    """

    d: int
    leaves: int
    n_classes: int = 2
    tag: ClassVar[str] = "trees"

    def descriptor(self) -> dict[str, Any]:
        return {"class": self.tag, "d": self.d, "leaves": self.leaves, "classes": self.n_classes}

    def _growth(self, m: int) -> int:
        inner = self.leaves - 1
        shapes = math.comb(2 * inner, inner) // self.leaves
        return shapes * (self.d * (m - 1) + 1) ** inner * self.n_classes**self.leaves

    def _log_growth(self, n: int) -> float:
        inner = self.leaves - 1
        shapes = math.log(math.comb(2 * inner, inner) // self.leaves)
        return shapes + inner * math.log(self.d * (n - 1) + 1) + self.leaves * math.log(self.n_classes)


@dataclass(frozen=True)
class Votes(CountedSpace):
    """Sign of a weighted sum of T hypotheses of a base space.

    Growth at most Pi_base(m)^T times the patterns of a hyperplane through the origin of R^T, for which
    Sauer's sum is taken because weighted votes may tie.

    Parameters
    ----------
    base : Space
        Space of the voting hypotheses.
    T : int
        Number of hypotheses.
    """

    base: Space
    T: int
    tag: ClassVar[str] = "votes"

    def descriptor(self) -> dict[str, Any]:
        return {"class": self.tag, "base": self.base.descriptor(), "T": self.T}

    def _growth(self, m: int) -> int:
        return self.base.growth(m) ** self.T * binomial_sum(m, self.T)

    def _log_growth(self, n: int) -> float:
        return self.T * self.base.log_growth(n) + log_binomial_sum(n, self.T)


@dataclass(frozen=True, init=False)
class Finite(Space):
    """A finite set of hypotheses, given by its size or as callables from rows to -1 and +1.

    One that was given its hypotheses can be asked for membership and listed.

    Parameters
    ----------
    hypotheses : int or sequence of callable
        Their number, or functions from rows to -1 and +1.

    Examples
    --------
    >>> from assay.textbook.concepts import polygons
    >>> triangle, *others = polygons()
    >>> triangle in Finite(others), [concept.name for concept in Finite(others)]
    (False, ['quadrilateral', 'pentagon'])
    """

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

    def __iter__(self) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
        return iter(self._listed())

    def __contains__(self, hypothesis: object) -> bool:
        return hypothesis in self._listed()

    def _listed(self) -> tuple[Callable[[np.ndarray], np.ndarray], ...]:
        if not self.hypotheses:
            raise ValueError("Finite: only the number of hypotheses was given; pass the hypotheses themselves.")
        return self.hypotheses

    @property
    def exact_growth(self) -> bool:  # type: ignore[override]
        """Whether `growth` is the growth function and no bound above it."""
        return False

    @property
    def exact_vc(self) -> bool:  # type: ignore[override]
        """Whether `vc_dimension` is exact."""
        return False

    @property
    def vc_dimension(self) -> int:
        """The VC dimension, or a bound above it."""
        return self.size.bit_length() - 1

    def _growth(self, m: int) -> int:
        return self.size

    def _points(self, points: ArrayLike) -> np.ndarray:
        return np.asarray(points)

    def patterns(self, X: ArrayLike) -> np.ndarray:
        """Return the label of every hypothesis (rows) on every point (columns)."""
        X = np.asarray(X)
        return np.array([_patterns.signs(h(X), len(X)) for h in self])

    def _masks(self, points: np.ndarray) -> set[int]:
        return {_patterns.pack(row) for row in self.patterns(points)}

    def _rule(self, X: np.ndarray, gain: np.ndarray) -> Rule:
        return self.hypotheses[int(np.argmax(self.patterns(X) @ gain))]


@dataclass(frozen=True)
class Unbounded(Space):
    """A class that shatters sets of every size, so that no bound through its growth function exists.

    Parameters
    ----------
    reason : str
        Why the class shatters sets of every size.
    """

    reason: str
    tag: ClassVar[str] = "unbounded"
    vc_dimension: ClassVar[float] = math.inf  # type: ignore[misc]

    def _growth(self, m: int) -> int:
        return 2**m

    def __str__(self) -> str:
        return self.reason

    def log_growth(self, n: int) -> float:
        raise ValueError(f"this class has infinite capacity ({self.reason}): no growth-function bound exists.")


@dataclass(frozen=True)
class Linear:
    """The family of linear classifiers; `at` gives the space for a number of features and classes."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        """Return the space for so many features and classes.

        Parameters
        ----------
        n_features : int
            Number of columns.
        n_classes : int
            Number of classes.
        intercept : bool, default=True
            Whether there is an intercept.
        """
        if n_classes == 2:
            return HalfSpaces(n_features, intercept)
        return MulticlassHalfSpaces(n_features, n_classes, intercept)

    def __str__(self) -> str:
        return "linear classifiers: the sign of w.x + b, or the largest of K such scores"


@dataclass(frozen=True)
class Quadratic:
    """The family of classifiers by polynomials of degree two; `at` gives the space."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        """Return the space for so many features and classes.

        Parameters
        ----------
        n_features : int
            Number of columns.
        n_classes : int
            Number of classes.
        intercept : bool, default=True
            Whether there is an intercept.
        """
        return FunctionSpace(math.comb(n_features + 2, 2), n_classes)

    def __str__(self) -> str:
        return "quadratic classifiers: the sign of a polynomial of degree two, or the largest of K such scores"


@dataclass(frozen=True)
class LinearFunctions:
    """The family of linear functions for regression; its capacity is measured by norms, not by counting."""

    def at(self, n_features: int, n_classes: int = 0, intercept: bool = True) -> Space:
        """Return the space for so many features and classes.

        Parameters
        ----------
        n_features : int
            Number of columns.
        n_classes : int
            Number of classes.
        intercept : bool, default=True
            Whether there is an intercept.
        """
        return Unbounded("real-valued functions have losses, not patterns; use a norm or hold-out bound")

    def __str__(self) -> str:
        return "linear functions w.x + b"


__all__ = [
    "Balls",
    "Boxes",
    "DecisionLists",
    "DepthTrees",
    "Finite",
    "FunctionSpace",
    "HalfSpaces",
    "Intersections",
    "Intervals",
    "Linear",
    "LinearFunctions",
    "Minimiser",
    "MulticlassHalfSpaces",
    "OfDimension",
    "PolynomialClassifiers",
    "Prototypes",
    "Quadratic",
    "SignedThresholds",
    "Space",
    "SparseHalfSpaces",
    "StumpConjunctions",
    "Stumps",
    "ThresholdNets",
    "Thresholds",
    "Trees",
    "Unbounded",
    "UnionsOfIntervals",
    "Votes",
]

"""What every hypothesis space can do: its capacity, its dichotomies of given points, its risk minimiser."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.messages import Message
from assay.theory import _checks as check
from assay.theory import _patterns, shatter
from assay.theory._patterns import Rule

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
        """Return the space for so many features and classes; this one does not depend on them."""
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

    def largest_shattered(self, points: ArrayLike) -> tuple[int, ...]:
        """Return the indices of a largest subset of the points that the space shatters.

        Subsets of a shattered set are shattered, so sets grow by one point from those that still are; when
        none of the next size is left, the answer is proved for these points.
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
class LiftedSpace(Space):
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
class CountedSpace(Space):
    """A space with an upper bound of its growth function and nothing else."""

    exact_growth: ClassVar[bool] = False
    exact_vc: ClassVar[bool] = False

    @property
    def vc_dimension(self) -> int:
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

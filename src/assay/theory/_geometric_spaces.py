"""Spaces of the line and of R^d: thresholds, intervals, boxes, half-spaces, polynomials, balls, stumps."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from assay.theory import _patterns, shatter
from assay.theory._patterns import Rule
from assay.theory._space import LiftedSpace, Space
from assay.theory._tails import binomial_sum, log_binomial_sum
from assay.theory.vc import cover, log_cover


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
    """+1 on at most k closed intervals of the line. VC dimension 2k; Sauer's sum is attained."""

    k: int
    tag: ClassVar[str] = "unions-of-intervals"

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


@dataclass(frozen=True)
class HalfSpaces(LiftedSpace):
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
class PolynomialClassifiers(LiftedSpace):
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
class Balls(LiftedSpace):
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

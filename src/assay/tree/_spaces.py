"""Hypothesis spaces of trees and of what is made of trees."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from assay.theory.spaces import Trees, Unbounded, Votes


@dataclass(frozen=True)
class _Everything(Unbounded):
    """Labels any distinct rows in any way, so that its growth function is 2^n and bounds nothing."""

    def log_growth(self, n: int) -> float:
        return n * math.log(2)


@dataclass(frozen=True)
class OfAnySize:
    """A family whose size is not limited in advance, such as trees with as many leaves as rows ask for."""

    what: str

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Unbounded:
        return _Everything(self.what)

    def __str__(self) -> str:
        return self.what


class _ByLogarithms:
    """The VC dimension from logarithms of the growth function; its integers have millions of digits here."""

    log_growth: Callable[[int], float]

    @property
    def vc_dimension(self) -> int:
        """A number that it does not exceed, within a factor of two of the largest v with growth(v) >= 2^v."""
        high = 1
        while self.log_growth(high) >= high * math.log(2):
            high *= 2
        return high


@dataclass(frozen=True)
class TreesOfOneSize(_ByLogarithms, Trees):
    """Trees with as many leaves as the fitted one; leaves have 1 / (leaves (leaves + 1)) of delta."""

    @property
    def price(self) -> int:
        return self.leaves * (self.leaves + 1)

    def __str__(self) -> str:
        return f"trees of {self.leaves} leaves on {self.d} columns"


@dataclass(frozen=True)
class VotesOfOneSize(_ByLogarithms, Votes):
    """Votes of as many members as the fitted one; T members have 1 / (T (T + 1)) of delta."""

    @property
    def price(self) -> int:
        return self.T * (self.T + 1) * self.base.price

    def __str__(self) -> str:
        return f"weighted votes of {self.T} members from {self.base}"

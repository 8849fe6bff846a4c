"""Hypothesis spaces of trees and of what is made of trees."""

import math
from dataclasses import dataclass

from assay.theory.spaces import Unbounded


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

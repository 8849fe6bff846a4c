"""Hypothesis spaces of trees and of what is made of trees."""

from dataclasses import dataclass

from assay.theory.spaces import Unbounded


@dataclass(frozen=True)
class OfAnySize:
    """A family whose size is not limited in advance, such as trees with as many leaves as the rows ask for."""

    what: str

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Unbounded:
        return Unbounded(self.what)

    def __str__(self) -> str:
        return self.what

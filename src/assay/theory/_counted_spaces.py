"""Spaces known only through a count of their patterns: a product over the classifiers they consist of.

All values are upper bounds. A comparison of two affine functions with a fixed rule for ties is a half-space with
bias, so Cover's count bounds its patterns; the VC dimension reported is the largest v with growth(v) >= 2^v.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.theory import _checks as check
from assay.theory._space import CountedSpace
from assay.theory.vc import cover, log_sauer, sauer


@dataclass(frozen=True)
class OfDimension(CountedSpace):
    """Any class of the given VC dimension, nothing else known of it: Sauer's lemma counts its patterns.

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
        return self.dimension

    def _growth(self, m: int) -> int:
        return sauer(m, self.dimension)

    def _log_growth(self, n: int) -> float:
        return log_sauer(n, self.dimension)


@dataclass(frozen=True)
class SparseHalfSpaces(CountedSpace):
    """Half-spaces of R^d that use at most s features: one choice of s of them, then Cover's count."""

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
    """Intersections of k half-spaces of R^d: convex polyhedra with at most k faces."""

    d: int
    k: int
    tag: ClassVar[str] = "intersections"

    def _growth(self, m: int) -> int:
        return cover(m, self.d + 1) ** self.k


@dataclass(frozen=True)
class StumpConjunctions(CountedSpace):
    """Conjunctions of at most s conditions on single features (rules)."""

    d: int
    s: int
    tag: ClassVar[str] = "stump-conjunctions"

    def _growth(self, m: int) -> int:
        return (2 * self.d * (m - 1) + 2) ** self.s


@dataclass(frozen=True)
class DecisionLists(CountedSpace):
    """Lists of at most `tests` conditions on single features, a label for each and one for the rest."""

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
    """Decision trees of at most the given depth over d real features: all 2^depth - 1 nodes split."""

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
    """The label of the nearest of k labelled points of R^d: k(k-1)/2 bisecting hyperplanes and k labels."""

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

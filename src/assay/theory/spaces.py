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

from assay.theory._combined_spaces import (
    Finite,
    FunctionSpace,
    Linear,
    LinearFunctions,
    MulticlassHalfSpaces,
    Quadratic,
    Trees,
    Unbounded,
    Votes,
)
from assay.theory._spaces import (
    Balls,
    Boxes,
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
)

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

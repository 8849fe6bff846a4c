"""Worlds in which the true risk is known, and one repetition of every probabilistic claim in one of them.

A case draws a sample, computes the claim and compares it with the truth: (violated, informative). For
bounds that are uniform over a class, any hypothesis that breaks its bound is a violation. Informative means
that the bound says something (an error bound below one half, unless the case says otherwise). Controls are
wrong on purpose and must be caught.
"""

from bench.worlds import (
    classes,
    clusters,
    combined,
    densities,
    holdout,
    machines,
    margins,
    neighbors,
    online,
    others,
    penalised,
    stumps,
    trees,
    vouched,
)
from bench.worlds._case import CASES, Case

__all__ = [
    "CASES",
    "Case",
    "classes",
    "clusters",
    "combined",
    "densities",
    "holdout",
    "machines",
    "margins",
    "neighbors",
    "online",
    "others",
    "penalised",
    "stumps",
    "trees",
    "vouched",
]

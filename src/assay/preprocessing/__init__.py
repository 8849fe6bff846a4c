"""Nonlinear transforms, augmented and normalised rows, discretisation: what prepares columns for a learner."""

from assay.borrowed import borrowed
from assay.preprocessing._transforms import (
    BiPartition,
    PolynomialTransform,
    ScaledColumns,
    UnitRows,
    augment,
    augmented_weights,
    monomial_count,
    plain_weights,
)

__all__ = [
    "BiPartition",
    "PolynomialTransform",
    "ScaledColumns",
    "UnitRows",
    "augment",
    "augmented_weights",
    "monomial_count",
    "plain_weights",
]

__getattr__, __dir__ = borrowed(__name__, __all__)

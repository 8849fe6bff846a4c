"""Nonlinear transforms, augmented and normalised rows, discretisation: what prepares columns for a learner."""

from assay.preprocessing._augment import augment, augmented_weights, plain_weights
from assay.preprocessing._bipartition import BiPartition
from assay.preprocessing._polynomial import PolynomialTransform, monomial_count
from assay.preprocessing._scaled import ScaledColumns
from assay.preprocessing._unit_rows import UnitRows

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

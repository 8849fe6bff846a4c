"""Nonlinear transforms and augmented vectors: what makes a linear method fit curves."""

from assay.preprocessing._augment import augment, augmented_weights, plain_weights
from assay.preprocessing._polynomial import PolynomialTransform, monomial_count

__all__ = ["PolynomialTransform", "augment", "augmented_weights", "monomial_count", "plain_weights"]

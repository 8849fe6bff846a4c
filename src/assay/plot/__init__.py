"""Figures of fitted models and of learning theory.

Every function returns a matplotlib Figure and shows nothing on the screen.

The numbers come from the function of the same name in `assay.plot.frames`. Drawing needs matplotlib:
`pip install assay[plot]`.
"""

from assay.plot.figures import (
    boundary,
    bounds,
    calibration,
    coefficients,
    confusion,
    default,
    history,
    rademacher,
    residuals,
    shattering,
)
from assay.plot.linear import coefficient_path, descents, projection, surface
from assay.plot.theory import information_curve, learning_curve, tightness, version_space

__all__ = [
    "boundary",
    "bounds",
    "calibration",
    "coefficient_path",
    "coefficients",
    "confusion",
    "default",
    "descents",
    "history",
    "information_curve",
    "learning_curve",
    "projection",
    "rademacher",
    "residuals",
    "shattering",
    "surface",
    "tightness",
    "version_space",
]

"""Figures of fitted models. Every function returns a matplotlib Figure and shows nothing on the screen.

The numbers come from the function of the same name in `assay.plot.frames`. Drawing needs matplotlib:
`pip install assay[plot]`.
"""

from assay.plot.figures import (
    boundary,
    calibration,
    coefficients,
    confusion,
    default,
    history,
    residuals,
)

__all__ = ["boundary", "calibration", "coefficients", "confusion", "default", "history", "residuals"]

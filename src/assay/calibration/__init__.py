"""Probabilities of any classifier, calibrated on rows that it was not fitted to."""

from assay.borrowed import borrowed
from assay.calibration._calibrated import CalibratedClassifierCV

__all__ = ["CalibratedClassifierCV"]

__getattr__, __dir__ = borrowed(__name__, __all__)

"""Classes of unequal size and errors of unequal cost: moved thresholds, costs, rejection, and resampled rows."""

from assay.imbalance._sampling import (
    EasyEnsembleClassifier,
    OverSampler,
    ResampledWarning,
    UnderSampler,
    prior_correction,
    rescale,
)
from assay.imbalance._thresholds import CostClassifier, ThresholdClassifier

__all__ = [
    "CostClassifier",
    "EasyEnsembleClassifier",
    "OverSampler",
    "ResampledWarning",
    "ThresholdClassifier",
    "UnderSampler",
    "prior_correction",
    "rescale",
]

"""Choosing among learners by what can be proved about them; scikit-learn's own tools work as they are."""

from assay.borrowed import borrowed
from assay.model_selection._srm import Candidate, StructuralRiskMinimizer
from assay.model_selection._tuned_threshold import TunedThresholdClassifierCV
from assay.model_selection._validation import (
    CrossValidated,
    LearningCurve,
    Parts,
    PenaltyPath,
    ValidatedChoice,
    choose_on_validation,
    penalty_path,
    three_way_split,
)

__all__ = [
    "Candidate",
    "CrossValidated",
    "LearningCurve",
    "Parts",
    "PenaltyPath",
    "StructuralRiskMinimizer",
    "TunedThresholdClassifierCV",
    "ValidatedChoice",
    "choose_on_validation",
    "penalty_path",
    "three_way_split",
]

__getattr__, __dir__ = borrowed(__name__, __all__)

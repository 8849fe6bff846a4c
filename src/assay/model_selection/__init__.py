"""Choosing among learners by what can be proved about them; scikit-learn's own tools work as they are."""

from assay.model_selection._folds import CrossValidated
from assay.model_selection._learning_curve import LearningCurve
from assay.model_selection._split import Parts, three_way_split
from assay.model_selection._srm import Candidate, StructuralRiskMinimizer
from assay.model_selection._validation import PenaltyPath, ValidatedChoice, choose_on_validation, penalty_path

__all__ = [
    "Candidate",
    "CrossValidated",
    "LearningCurve",
    "Parts",
    "PenaltyPath",
    "StructuralRiskMinimizer",
    "ValidatedChoice",
    "choose_on_validation",
    "penalty_path",
    "three_way_split",
]

"""Ensembles: many learners whose predictions are added, averaged or put to the vote."""

from assay.ensemble._adaboost import AdaBoostClassifier
from assay.ensemble._boosting import GradientBoostingClassifier, GradientBoostingRegressor
from assay.ensemble._forest import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

__all__ = [
    "AdaBoostClassifier",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]

"""Ensembles: many learners whose predictions are added, averaged or put to the vote."""

from assay.borrowed import borrowed
from assay.ensemble._adaboost import AdaBoostClassifier
from assay.ensemble._adaboost_regressor import AdaBoostRegressor
from assay.ensemble._bagging import BaggingClassifier, BaggingRegressor
from assay.ensemble._committee import ForestCommitteeClassifier
from assay.ensemble._committee_votes import VotingClassifier, VotingRegressor
from assay.ensemble._extra_trees import ExtraTreesClassifier, ExtraTreesRegressor
from assay.ensemble._forest import RandomForestClassifier, RandomForestRegressor
from assay.ensemble._gradient_boosting import GradientBoostingClassifier, GradientBoostingRegressor
from assay.ensemble._hist_boosting import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from assay.ensemble._lpboost import LPBoost
from assay.ensemble._stacking import StackingClassifier, StackingRegressor
from assay.ensemble._subspace import RandomSubspaceClassifier, RandomSubspaceRegressor

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "ForestCommitteeClassifier",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "LPBoost",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RandomSubspaceClassifier",
    "RandomSubspaceRegressor",
    "StackingClassifier",
    "StackingRegressor",
    "VotingClassifier",
    "VotingRegressor",
]

__getattr__, __dir__ = borrowed(__name__, __all__)

"""Ensembles: many learners whose predictions are added, averaged or put to the vote.

    ParallelEnsemble  _votes      Forest: RandomForest*, ExtraTrees*;  Bagging: Bagging*, RandomSubspace*
    AdaBoost          _adaboost   AdaBoost*;  LPBoost and ForestCommittee have weights and votes of their own
    Boosted           _boosted    GradientBoosting* on exact trees, HistGradientBoosting* on histograms
    CombinedLearner   _combined   NamedMembers: WeightedEnsemble: Voting*;  Stacking*;  multiclass, imbalance
    below them        _members (sequence of members, input, metadata routing), _bootstrap (samples, out-of-bag rows)

Left: the base class and its file, right: the classifiers and regressors derived from it.
"""

from assay.borrowed import borrowed
from assay.ensemble._adaboost import AdaBoostClassifier
from assay.ensemble._adaboost_regressor import AdaBoostRegressor
from assay.ensemble._bagging import (
    BaggingClassifier,
    BaggingRegressor,
    RandomSubspaceClassifier,
    RandomSubspaceRegressor,
)
from assay.ensemble._forest import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from assay.ensemble._forest_committee import ForestCommitteeClassifier
from assay.ensemble._gradient_boosting import GradientBoostingClassifier, GradientBoostingRegressor
from assay.ensemble._hist_boosting import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from assay.ensemble._log_target import LogTargetRegressor
from assay.ensemble._lpboost import LPBoost
from assay.ensemble._stacking import StackingClassifier, StackingRegressor
from assay.ensemble._voting import VotingClassifier, VotingRegressor

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
    "LogTargetRegressor",
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

"""Linear models: least squares, ridge, logistic regression, the perceptron and its relatives, linear separation."""

from assay.borrowed import borrowed
from assay.linear_model._elastic_net import ElasticNet, ElasticNetPath, Lasso, elastic_net_path
from assay.linear_model._elastic_net_cv import ElasticNetCV, LassoCV
from assay.linear_model._glm import GeneralizedLinearRegressor
from assay.linear_model._least_squares import LinearRegression, RankWarning, Ridge
from assay.linear_model._logistic import LogisticRegression
from assay.linear_model._logistic_cv import LogisticRegressionCV
from assay.linear_model._perceptron import Perceptron, PerceptronTrace, perceptron_trace
from assay.linear_model._perceptron_variants import Pocket, VotedPerceptron
from assay.linear_model._ridge_cv import RidgeCV
from assay.linear_model._separator import InseparableWarning, LinearSeparator
from assay.linear_model._sgd import SGDClassifier, SGDRegressor
from assay.linear_model._tweedie import GammaRegressor, PoissonRegressor, TweedieRegressor

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "ElasticNetPath",
    "GammaRegressor",
    "GeneralizedLinearRegressor",
    "InseparableWarning",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LinearSeparator",
    "LogisticRegression",
    "LogisticRegressionCV",
    "Perceptron",
    "PerceptronTrace",
    "Pocket",
    "PoissonRegressor",
    "RankWarning",
    "Ridge",
    "RidgeCV",
    "SGDClassifier",
    "SGDRegressor",
    "TweedieRegressor",
    "VotedPerceptron",
    "elastic_net_path",
    "perceptron_trace",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
